"""llm: models. One protocol, one client a file; vendors' packages are imported by their own client only."""
