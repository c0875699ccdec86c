"""verbs: what each command of a person does to a session. Those of a moving run begin on the loop; see desk."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from agentnb.errors import AgentNbError, Problem, did_you_mean
from agentnb.ui import asking
from agentnb.ui.board import looked
from agentnb.ui.fields import retyped
from agentnb.ui.looks import look

if TYPE_CHECKING:
    from agentnb.session import Session

Does = Callable[["Session", Any, Any], Any]


def _stop_at(session: Session, _: Any, node: Any) -> None:
    """Stop before a node from now on; where that was asked for already, no longer."""
    there = [row for row in session.breakpoints if row.node == node and row.side == "before"]
    for row in there:
        session.breakpoints.remove(row)
    if not there:
        session.breakpoints.add(node=node)


def _stop_when(session: Session, text: Any, _: Any) -> None:
    session.breakpoints.add(when=str(text))


def _enable(session: Session, on: Any, number: Any) -> None:
    for row in session.breakpoints:
        if row.id == number:
            row.enabled = bool(on)
    session.breakpoints.changed()


def _remove(session: Session, _: Any, number: Any) -> None:
    session.breakpoints.remove(number)


def _unwatch(session: Session, _: Any, text: Any) -> None:
    session.watches.remove(str(text))
    session.changed()


def _edit(session: Session, typed: Any, key: Any) -> None:
    """Write a value that was typed: a text where a text stands, else JSON."""
    session.edit({str(key): retyped(looked(session, str(key))["field"], str(typed))})


_DO: Final[dict[str, Does]] = {
    "step": lambda session, _, __: session.step(),
    "run": lambda session, _, __: session.run(),
    "into": lambda session, _, __: session.step_into(),
    "over": lambda session, _, __: session.step_over(),
    "out": lambda session, _, __: session.step_out(),
    "back": lambda session, _, __: session.back(),
    "run_back": lambda session, _, __: session.run_back(),
    "goto": lambda session, place, _: session.goto(int(place)),
    "pause": lambda session, _, __: session.pause(),
    "stop": lambda session, _, __: session.stop(),
    "reset": lambda session, _, __: session.reset(),
    "answer": asking.give,
    "approve": lambda session, _, which: session.approve(which),
    "deny": lambda session, why, which: session.deny(which, str(why or "")),
    "change": asking.change,
    "edit": _edit,
    "look": look,
    "stop_at": _stop_at,
    "stop_when": _stop_when,
    "enable": _enable,
    "remove": _remove,
    "watch": lambda session, text, _: session.watch(str(text)),
    "unwatch": _unwatch,
}
VERBS: Final = tuple(_DO)
ASIDE: Final = frozenset({"look", "stop_at", "stop_when", "enable", "remove", "watch", "unwatch"})  # moves nothing


def carry_out(session: Session, verb: str, value: Any = None, target: Any = None) -> Any:
    """Do what a person asks for; return what they are to be told, if anything.

    Raises:
        AgentNbError: U301, there is no such command; else what the session itself raises.
    """
    does = _DO.get(verb)
    if does is None:
        raise AgentNbError(
            Problem("U301", f"the cockpit has no command {verb!r}", "a message from the page",
                    f"its commands are: {', '.join(VERBS)}",
                    did_you_mean(verb, VERBS, "reload the page, so that it fits this version"))
        )  # fmt: skip
    found = does(session, value, target)
    return found if verb == "look" else None
