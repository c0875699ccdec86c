"""The form that adds a breakpoint or a logpoint: one row per clause, and the breakpoint that typed text means."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agentnb.errors import AgentNbError
from agentnb.ui.history_queries import describe_error

if TYPE_CHECKING:
    from agentnb.session import Session


class Clause(NamedTuple):
    """A choice of the form: what stops the run, a hint for its field, and the clauses that the typed text means."""

    label: str
    hint: str
    parse: Callable[[str], dict[str, Any]]
    optional: bool = False  # the field may stay empty


def _number(text: str) -> Any:
    """Return an integer, or the text, which the breakpoint then refuses."""
    return int(text) if text.isascii() and text.isdigit() else text


def _parse_share(text: str) -> Any:
    """Return a share such as 0.8 or 80 %, or the text, which the breakpoint then refuses."""
    with suppress(ValueError):
        return float(text.rstrip("% ")) / 100 if text.endswith("%") else float(text)
    return text


CLAUSES: Final[dict[str, Clause]] = {
    "when": Clause("this holds", "e.g. n > 3", lambda text: {"when": text}),
    "key": Clause("a key is written", "e.g. reply", lambda text: {"key": text}),
    "in_place": Clause("a value changes in place", "any key",
                       lambda text: {"in_place": True, "key": text or None}, optional=True),
    "no_progress": Clause("a node sees the same board again", "any node",
                          lambda text: {"no_progress": True, "node": text or None}, optional=True),
    "budget": Clause("the budget is used up to", "e.g. 80%", lambda text: {"budget": _parse_share(text)}),
    "error": Clause("a step fails", "any error", lambda text: {"error": text or True}, optional=True),
    "call": Clause("a call is sent", "e.g. model, or *", lambda text: {"call": text}),
    "event": Clause("an event is emitted", "its type", lambda text: {"event": text}),
    "step": Clause("a step is done", "its number", lambda text: {"step": _number(text)}),
}  # fmt: skip


def list_clauses() -> list[list[Any]]:
    """Return the choices as the page receives them: [name, label, hint, whether the field may stay empty]."""
    return [[name, clause.label, clause.hint, clause.optional] for name, clause in CLAUSES.items()]


def parse_breakpoint_form(typed: Any) -> dict[str, Any]:
    """Return the arguments of a breakpoint for what a page has sent: {clause, text, log}; a text is a condition."""
    fields = typed if isinstance(typed, dict) else {"text": typed}
    text, log = (str(fields.get(part) or "").strip() for part in ("text", "log"))
    clause = CLAUSES.get(str(fields.get("clause") or "when"), CLAUSES["when"])
    return {**clause.parse(text), **({"log": log} if log else {})}


def describe_form_error(session: Session, typed: Any) -> str:
    """Return what is wrong with a breakpoint typed into the form; empty if it can be added."""
    try:
        session.breakpoints.make(parse_breakpoint_form(typed))
    except AgentNbError as error:
        return describe_error(error)
    return ""


def add_breakpoint(session: Session, typed: Any) -> None:
    """Add the breakpoint, or with a message the logpoint, that was typed into the form.

    Raises:
        AgentNbError: what `session.breakpoints.add` raises.
    """
    fields = parse_breakpoint_form(typed)
    message = fields.pop("log", None)
    if message is None:
        session.breakpoints.add(**fields)
    else:
        session.breakpoints.log(message, **fields)


__all__ = ["CLAUSES", "add_breakpoint", "describe_form_error", "list_clauses", "parse_breakpoint_form"]
