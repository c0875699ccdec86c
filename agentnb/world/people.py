"""people: asking a person. On a terminal at once; in a notebook the session waits for `session.answer`."""

from __future__ import annotations

import sys
from typing import Any, Final

WAIT: Final = object()  # the answer that says: a person has to come


def in_kernel() -> bool:
    """Say whether this process is a Jupyter kernel."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None


def on_terminal() -> bool:
    """Say whether a person can be asked by a line of text, here and now."""
    if in_kernel() or sys.stdin is None or sys.stdin.closed:
        return False
    return sys.stdin.isatty() and sys.stdout.isatty()


def ask_on_terminal(prompt: str) -> Any:
    """Return the line that is typed, or WAIT where nobody can type one."""
    if not on_terminal():
        return WAIT
    try:
        return input(f"{prompt}\n> ")
    except EOFError:
        return WAIT
