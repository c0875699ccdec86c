"""How a Burr application is recognized without importing Burr."""

from __future__ import annotations


def is_application(value: object) -> bool:
    """Return True for a Burr Application."""
    classes = type(value).__mro__
    return any(cls.__name__ == "Application" and cls.__module__.partition(".")[0] == "burr" for cls in classes)
