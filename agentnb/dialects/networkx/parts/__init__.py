"""The parts of the networkx dialect besides its schema, loader, api and errors."""
