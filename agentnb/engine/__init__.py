"""The execution engine.

Start reading at `core/step.py`. The engine has no node kinds of its own: the table of kinds is an argument.
"""
