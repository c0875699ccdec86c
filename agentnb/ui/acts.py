"""acts: what people did to a run, and what stopped it, each in a few words; masked and cut."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agentnb.board.secrets import hidden, is_secret
from agentnb.board.values import ABSENT
from agentnb.draw.text import clean
from agentnb.ui.board import text_of

if TYPE_CHECKING:
    from agentnb.engine.history import Act

BREAK: Final = "breakpoint"
_WIDTH: Final = 48  # characters of a value
_SAID: Final = {
    "edit": "{target} = {value} was set by hand",
    BREAK: "stopped by the breakpoint {target}",
    "set_next": "{target!r} was made the next node",
    "skip": "{target!r} was skipped by hand",
    "answer": "{target!r} was answered: {value}",
    "approve": "{target!r} was approved",
    "deny": "{target!r} was denied",
    "change": "a call of {target!r} was changed",
    "emit": "{target!r} was emitted from outside",
    "budget": "the limit {target} was set to {value}",
    "cancelled": "{target!r} was cancelled while it was at work",
    "interrupted": "{target!r} was interrupted",
    "exhausted": "{target!r} was given up at a limit of the budget",
}  # what is recorded besides says how a run was held, which concerns its replay alone


def told(act: Act) -> str:
    """Return what a person did, or what stopped the run, in a few words; empty where it is nobody's concern.

    Example:
        >>> from datetime import UTC, datetime
        >>> from agentnb.engine.history import Act
        >>> told(Act(3, "edit", "n", 1, 5, "user", datetime.now(UTC)))
        'n = 5 was set by hand'
    """
    target = clean(hidden(act.target))
    if act.act == "edit" and act.new is ABSENT:
        return f"{target} was deleted by hand"
    return _SAID[act.act].format(target=target, value=_value(act)) if concerns(act) else ""


def concerns(act: Act) -> bool:
    """Say whether an act is one that people are told of."""
    return act.act in _SAID


def _value(act: Act) -> str:
    key = next(filter(is_secret, act.target.split(".")), act.target)
    return text_of(key, act.new, _WIDTH)
