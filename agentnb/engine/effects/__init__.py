"""Calls to the world outside: dispatch, recorded calls and errors, crash recovery, step-into."""
