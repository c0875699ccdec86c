"""asking: what waits for a person, as a page shows it, and what their answer does to the session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentnb.board.secrets import hidden, masked
from agentnb.board.values import ABSENT
from agentnb.errors import AgentNbError, Problem
from agentnb.ui.fields import fields_of, with_changes
from agentnb.world.people import verdict_of

if TYPE_CHECKING:
    from agentnb.session import Session
    from agentnb.session.pending import Pending


def asked(pending: Pending) -> dict[str, Any]:
    """Return one thing that waits, as plain values: a question, an approval with its arguments, or a held call."""
    arguments = dict(pending.arguments or {})
    told = masked(arguments)
    options = told.get("options") or (("yes", "no") if pending.kind == "approval" else ())
    found: dict[str, Any] = {
        "id": str(pending.id),
        "kind": pending.kind,
        "node": pending.node,
        "name": hidden(str(pending.name)),
        "prompt": str(told.get("prompt") or hidden(str(pending.name)) or pending.node),
        "role": str(told.get("role") or ""),
        "left": pending.left,
        "options": [str(option) for option in options] if isinstance(options, list | tuple) else [],
    }
    if pending.kind == "answer":
        return found
    shown = arguments if pending.kind == "call" else _asked_for(arguments)
    found["arguments"] = fields_of(shown) if shown else []
    if pending.kind == "call":
        found["answer"] = None if pending.answer is ABSENT else fields_of(pending.answer, "answer")
    return found


def _asked_for(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return what leave is asked for: the prompt stands above it."""
    return {name: value for name, value in arguments.items() if name != "prompt"}


def give(session: Session, value: Any, target: str | None) -> None:
    """Give a typed answer to the node that waits; an approval takes it as yes or no."""
    if not any(one.kind == "approval" and target in (one.node, one.id) for one in session.pending):
        session.answer(value, node=target)
        return
    decided = verdict_of(value, "the cockpit's answer")
    if decided["approved"]:
        session.approve(target)
    else:
        session.deny(target, decided["reason"])


def change(session: Session, value: Any, target: str | None) -> None:
    """Change a held call by what was typed into its fields: `value` has changes of its `arguments`, or its `answer`.

    Of an approval the arguments are changed: what leave is asked for.

    Raises:
        AgentNbError: U307, no such call or approval waits; U305 and U306, as `with_changes` does.
    """
    held = next((one for one in session.pending if one.kind != "answer" and one.id == target), None)
    if held is None:
        raise AgentNbError(
            Problem("U307", f"no call or approval {target!r} waits", "the cockpit's editor",
                    "it has gone on, or another cell has changed where the run stands", "look at session.pending")
        )  # fmt: skip
    changes = value if isinstance(value, dict) else {}
    if changes.get("arguments"):
        session.change(held.id, arguments=with_changes(dict(held.arguments), changes["arguments"]))
    if changes.get("answer") and held.answer is not ABSENT:
        session.change(held.id, answer=with_changes(held.answer, changes["answer"]))
