"""The parts of the LangGraph dialect besides its schema, loader, api and errors."""
