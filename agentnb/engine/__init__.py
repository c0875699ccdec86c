"""The execution engine; start reading at `core/step.py`. It knows no node kind: the table of kinds is an argument."""
