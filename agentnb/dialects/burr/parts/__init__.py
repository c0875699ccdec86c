"""The parts of the Burr dialect besides its schema, loader, api and errors."""
