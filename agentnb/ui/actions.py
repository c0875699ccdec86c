"""Actions beside moving the run: emit an event, skip a failed node, raise a limit, set the next node.

Typed values arrive as text and are parsed here. Invalid input raises a Problem and changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from agentnb.board.masking import register_secrets
from agentnb.board.values import freeze
from agentnb.draw.diagram import is_reactive
from agentnb.draw.reactive import ANY
from agentnb.errors import AgentNbError, Problem
from agentnb.session.state import get_state
from agentnb.session.status import find_limit
from agentnb.text import safe_repr
from agentnb.ui.details.cells import to_line
from agentnb.ui.fields import parse

if TYPE_CHECKING:
    from agentnb.recipe.model import Node
    from agentnb.session import Session

LATEST: Final = 30  # events shown
_TYPES: Final = 200  # event types offered


def list_available_actions(session: Session) -> dict[str, bool]:
    """Return which of these actions are available; none while a step is in flight or in a read-only recorded run."""
    state = get_state(session)
    status, error = state.status, session.error
    limit = find_limit(status, state.run, state.limits)
    failed = status == "failed" and session.current is not None
    return {
        "emit": is_reactive(session.recipe),
        "retry": failed and limit is None,
        # a missing requirement of the recipe cannot be skipped
        "skip": failed and error is not None and error.code != "X121",
        "set_next": bool(session.recipe.nodes),
        "set_budget": limit is not None,
    }


def describe_limit(session: Session) -> dict[str, Any] | None:
    """Return the limit that stopped the run, its usage and a suggested next value, as texts."""
    state = get_state(session)
    limit = find_limit(state.status, state.run, state.limits)
    if limit is None:
        return None
    value = getattr(state.limits.budget, limit)
    used = session.status.used.get(limit)
    more = 2 * max(value, 0 if used is None else used) or 1
    return {"name": limit, "value": str(value), "used": "" if used is None else str(used), "more": str(more)}


def can_be_next(session: Session, node: Node) -> bool:
    """Return True if a node can become the next node: it is scheduled, or belongs to an open frame."""
    if node.id == session.current:
        return False
    if any(entry.node == node.id for entry in session.frontier):
        return True
    return session.recipe.reactive is None and node.scope in {frame.region for frame in session.stack}


def query_events(session: Session, _: Any) -> dict[str, Any]:
    """Return the event types that nodes listen to, and the latest events, newest first."""
    types = dict.fromkeys(type_ for node in session.recipe.nodes.values() for type_ in node.on if type_ != ANY)
    events = session.events
    rows = [
        [
            event.seq,
            to_line(event.id),
            to_line(event.type),
            to_line(event.actor),
            to_line(event.cause or ""),
            event.step,
            event.at,
        ]
        for event in reversed(events[-LATEST:])
    ]
    return {"types": [to_line(type_) for type_ in types][:_TYPES], "rows": rows, "more": max(len(events) - LATEST, 0)}


def emit(session: Session, typed: Any, type_: Any) -> None:
    """Emit an event with a payload typed as JSON; empty text means no payload.

    Raises:
        AgentNbError: U305, the payload is not JSON; U323, the event has no type.
    """
    name, text = str(type_ or "").strip(), str(typed or "").strip()
    if not name:
        raise AgentNbError(
            Problem("U323", "an event needs a type", "the cockpit's form for events",
                    "behaviors subscribe to event types", "enter one, such as 'goal.created'")
        )  # fmt: skip
    payload = parse(text, "json", "payload") if text else None
    register_secrets(freeze(payload), owner=get_state(session).run.tables.secrets)
    session.emit(name, payload)


def skip(session: Session, typed: Any, _: Any) -> None:
    """Skip the failed node and write the typed JSON mapping of values by key; empty text writes nothing.

    Raises:
        AgentNbError: U305, the text is not JSON; U324, it is not a mapping; otherwise what `session.skip` raises.
    """
    text = str(typed or "").strip()
    writes = parse(text, "json", "what it would have written") if text else {}
    if not isinstance(writes, dict):
        raise AgentNbError(
            Problem("U324", "the writes of a skipped node must be a mapping", "the cockpit's form for a failed node",
                    f"it is {safe_repr(text, 40)}", 'write values by key, for example {"reply": "none"}')
        )  # fmt: skip
    register_secrets(freeze(writes), owner=get_state(session).run.tables.secrets)
    session.skip(writes)


def raise_limit(session: Session, typed: Any, name: Any) -> None:
    """Set a budget limit to a typed number; None removes it.

    Raises:
        AgentNbError: U305, the text is not a number; otherwise what `session.set_budget` raises.
    """
    session.set_budget(**{str(name): None if typed is None else parse(str(typed), "number", str(name))})
