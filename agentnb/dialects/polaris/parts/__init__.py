"""The parts of the polaris dialect besides its schema, loader, api and errors."""
