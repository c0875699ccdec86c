"""Sessions: step through one run of one recipe, inspect, edit, undo and fork it. Independent of the widget."""

from agentnb.session.session import Session

__all__ = ["Session"]
