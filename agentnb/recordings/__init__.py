"""Recordings: runs of files and of other systems, opened read-only. `formats` is the table that `nb.open` reads."""
