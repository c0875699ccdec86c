"""The problems of Burr applications."""

from __future__ import annotations

from collections.abc import Iterable

from agentnb.errors import Place, Problem, did_you_mean
from agentnb.text import safe_repr


def make_hooks_problem(names: Iterable[str], place: Place) -> Problem:
    """Return the warning about hooks, trackers and persisters.

    L541: the hooks of a Burr application are not called.
    """
    return Problem("L541", f"the application's hooks are not called: {', '.join(names)}", str(place),
                   "a session moves back and forth, and records its own history",
                   "use the session's frames and a store, or subscribe to the session", "warning")  # fmt: skip


def make_halt_problem(name: object, known: Iterable[str], place: Place) -> Problem:
    """Return the Problem of a halt at an action or a tag that does not exist.

    L542: a Burr application has no action or tag with this name.
    """
    known = list(known)
    return Problem("L542", f"there is no action or tag {safe_repr(name)}", str(place),
                   f"the application has: {', '.join(known)}",
                   did_you_mean(str(name), known, "use one of them"))  # fmt: skip


__all__ = ["make_halt_problem", "make_hooks_problem"]
