"""session: one run of one recipe, for people: stepped, looked at, edited, taken back, forked. Knows no widget."""

from agentnb.session.session import Session

__all__ = ["Session"]
