"""Calls to the world outside: dispatch, pending steps, recorded calls, step-into, event loops and threads."""
