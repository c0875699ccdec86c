"""The parts of the coreason dialect besides its schema, loader, api and errors."""
