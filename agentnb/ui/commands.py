"""The commands of the page and what each does to a session. Commands that move the run start on the kernel's loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from agentnb.draw.reactive import event_type
from agentnb.errors import AgentNbError, Problem, did_you_mean
from agentnb.ui import actions, prompts, value_editor
from agentnb.ui.fork_tree import named
from agentnb.ui.page_queries import look

if TYPE_CHECKING:
    from agentnb.session import Session

Does = Callable[["Session", Any, Any], Any]


def _stop_at(session: Session, _: Any, node: Any) -> None:
    """Toggle a breakpoint before a node or at events of a type."""
    type_ = event_type(session.recipe, str(node))
    if type_ is None:
        there = [row for row in session.breakpoints if row.node == node and row.side == "before"]
    else:
        there = [row for row in session.breakpoints if row.event == type_ and row.node is None]
    for row in there:
        session.breakpoints.remove(row)
    if not there:
        session.breakpoints.add(None if type_ is not None else node, event=type_)


def _stop_when(session: Session, text: Any, _: Any) -> None:
    session.breakpoints.add(when=str(text))


def _enable(session: Session, on: Any, number: Any) -> None:
    for row in session.breakpoints:
        if row.id == number:
            row.enabled = bool(on)
    session.breakpoints.changed()


def _speed(session: Session, steps: Any, _: Any) -> None:
    session.speed = steps


def _remove(session: Session, _: Any, number: Any) -> None:
    session.breakpoints.remove(number)


def _unwatch(session: Session, _: Any, text: Any) -> None:
    session.watches.remove(str(text))
    session.changed()


def _fork(session: Session, name: Any, at: Any) -> Session:
    """Create a fork at the current step or after a given one, with this session's breakpoints, and show it."""
    found = session.fork(at, name=str(name or "").strip() or None)
    found.breakpoints.from_rows(session.breakpoints.to_rows())
    for source in session.watches.sources():
        found.watch(source)
    return found


_DO: Final[dict[str, Does]] = {
    "step": lambda session, _, __: session.step(),
    "run": lambda session, _, __: session.run(),
    "run_to": lambda session, _, node: session.run(until=str(node)),
    "into": lambda session, _, __: session.step_into(),
    "over": lambda session, _, __: session.step_over(),
    "out": lambda session, _, __: session.step_out(),
    "back": lambda session, _, __: session.back(),
    "run_back": lambda session, _, __: session.run_back(),
    "goto": lambda session, place, _: session.goto(int(place)),
    "speed": _speed,
    "pause": lambda session, _, __: session.pause(),
    "stop": lambda session, _, __: session.stop(),
    "reset": lambda session, _, __: session.reset(),
    "answer": prompts.give,
    "approve": lambda session, _, which: session.approve(which),
    "deny": lambda session, why, which: session.deny(which, str(why or "")),
    "change": prompts.change,
    "retry": lambda session, _, __: session.retry(),
    "skip": actions.skip,
    "set_next": lambda session, _, node: session.set_next(str(node)),
    "set_budget": actions.raise_limit,
    "emit": actions.emit,
    "edit": value_editor.edit,
    "delete": value_editor.delete,
    "fork": _fork,
    "switch": lambda session, _, run: named(session, run),
    "look": look,
    "stop_at": _stop_at,
    "stop_when": _stop_when,
    "enable": _enable,
    "remove": _remove,
    "watch": lambda session, text, _: session.watch(str(text)),
    "unwatch": _unwatch,
}
BESIDE: Final[dict[str, Does]] = {
    "step": lambda session, _, __: session.astep(),
    "run": lambda session, _, __: session.start(),
    "retry": lambda session, _, __: session.astep(),
    "run_to": lambda session, _, node: session.start(str(node)),
    "into": lambda session, _, __: session.astep_into(),
    "over": lambda session, _, __: session.astep_over(),
    "out": lambda session, _, __: session.astep_out(),
    "run_back": lambda session, _, __: session.arun_back(),
}  # variants for a running loop; some return an awaitable
VERBS: Final = tuple(_DO)
LEADS: Final = frozenset({"fork", "switch"})  # these return the session to show from now on
ASIDE: Final = frozenset(
    {"look", "stop_at", "stop_when", "enable", "remove", "watch", "unwatch", "speed"}
)  # these do not move the run


def carry_out(session: Session, verb: str, value: Any = None, target: Any = None) -> Any:
    """Run a command; return the message to show, if any.

    Raises:
        AgentNbError: U301, the command does not exist; otherwise what the session raises.
    """
    does = _DO.get(verb)
    if does is None:
        raise AgentNbError(
            Problem("U301", f"the cockpit has no command {verb!r}", "a message from the page",
                    f"its commands are: {', '.join(VERBS)}",
                    did_you_mean(verb, VERBS, "reload the page, so that it fits this version"))
        )  # fmt: skip
    found = does(session, value, target)
    return found if verb == "look" or verb in LEADS else None
