"""The parts of the activegraph dialect besides its schema, loader, api and errors."""
