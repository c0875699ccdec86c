"""The parts of the agentruntime dialect besides its schema, loader, api and errors."""
