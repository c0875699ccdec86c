"""engine: how a run moves. The heart is `step.py`; it knows no node kind, the table of kinds is an argument."""
