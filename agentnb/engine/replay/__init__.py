"""Replay: a recorded run executed again with its recorded effects, and where it diverges."""
