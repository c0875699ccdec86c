"""The parts of the symphony dialect besides its schema, loader, api and errors."""
