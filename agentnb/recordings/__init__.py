"""Recordings: runs in files and of other systems, opened read-only. `formats` is the table used by `nb.open`."""
