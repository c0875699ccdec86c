"""Short texts for interventions and for what stopped a run, masked and truncated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agentnb.board.values import ABSENT
from agentnb.draw.label_text import clean
from agentnb.secrets import is_secret
from agentnb.ui.board_view import format_value

if TYPE_CHECKING:
    from agentnb.engine.core.history import Intervention

BREAK: Final = "breakpoint"
_WIDTH: Final = 48  # characters of a value
# Other recorded interventions concern pending calls, which matter for replay only
_SAID: Final = {
    "edit": "{target} = {value} was set {by}",
    BREAK: "stopped by the breakpoint {target}",
    "set_next": "{target!r} was made the next node{also}",
    "skip": "{target!r} was skipped {by}",
    "answer": "{target!r} was answered: {value}",
    "approve": "{target!r} was approved{also}",
    "deny": "{target!r} was denied{also}",
    "change": "a call of {target!r} was changed{also}",
    "emit": "{target!r} was emitted from outside",
    "budget": "the limit {target} was set to {value}",
    "cancelled": "{target!r} was cancelled while it was running",
    "interrupted": "{target!r} was interrupted",
    "exhausted": "{target!r} was abandoned at a limit of the budget",
}


def describe_intervention(intervention: Intervention) -> str:
    """Return an intervention, or what stopped the run, as a few words; empty if it is not shown to people.

    Example:
        >>> from datetime import UTC, datetime
        >>> from agentnb.engine.core.history import Intervention
        >>> describe_intervention(Intervention(3, "edit", "n", 1, 5, "user", datetime.now(UTC)))
        'n = 5 was set manually'
    """
    target, also = (
        clean(intervention.target),
        "" if intervention.actor == "user" else f" by {clean(intervention.actor)}",
    )
    by = also.lstrip() or "manually"
    if intervention.action == "edit" and intervention.new is ABSENT:
        return f"{target} was deleted {by}"
    return (
        _SAID[intervention.action].format(target=target, value=_get_value(intervention), by=by, also=also)
        if is_shown(intervention)
        else ""
    )


def is_shown(intervention: Intervention) -> bool:
    """Return True if an intervention is shown to people."""
    return intervention.action in _SAID


def _get_value(intervention: Intervention) -> str:
    key = next(filter(is_secret, intervention.target.split(".")), intervention.target)
    return format_value(key, intervention.new, _WIDTH)
