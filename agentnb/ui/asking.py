"""asking: what waits for a person, as a page shows it, and what their answer does to the session."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from agentnb.board.secrets import hidden, masked
from agentnb.board.values import ABSENT, thaw
from agentnb.errors import AgentNbError, Problem
from agentnb.expressions.schemas import Schema
from agentnb.recipe.words import types_of
from agentnb.ui.fields import Field, fields_of, parsed, with_changes
from agentnb.world.people import verdict_of

if TYPE_CHECKING:
    from agentnb.session import Session
    from agentnb.session.pending import Pending

_WAYS: Final = {"boolean": "confirm", "number": "number", "integer": "number", "object": "json", "array": "json",
                "null": "json"}  # fmt: skip
_YES, _NO = frozenset({"yes", "true"}), frozenset({"no", "false"})


def asked(pending: Pending) -> dict[str, Any]:
    """Return one thing that waits, as plain values: a question, an approval with its arguments, or a held call.

    `way` says how a question is answered: `text`, `choice` of its `options`, `confirm`, `number` or `json`; a value
    that was masked when the run was kept is a `secret`. `model` says of a held call that a model is asked.
    """
    arguments = dict(pending.arguments or {})
    told = masked(arguments)
    found: dict[str, Any] = {
        "id": str(pending.id),
        "kind": pending.kind,
        "node": pending.node,
        "name": hidden(str(pending.name)),
        "prompt": str(told.get("prompt") or hidden(str(pending.name)) or pending.node),
        "role": str(told.get("role") or ""),
        "left": pending.left,
        "options": list(map(_told, _options(pending))),
    }
    if pending.kind == "answer":
        return {**found, "way": _way(pending)}
    if pending.kind == "approval":
        return {**found, "arguments": _asked_for(pending, arguments)}
    answer = None if pending.answer is ABSENT else fields_of(pending.answer, "answer")
    rows = fields_of(arguments) if arguments else []
    return {**found, "arguments": rows, "answer": answer, "model": not arguments.keys().isdisjoint(_MODEL)}


_MODEL: Final = frozenset({"messages", "prompt"})


def _told(option: Any) -> str:
    named = {True: "yes", False: "no"}
    return named[option] if isinstance(option, bool) else str(masked(option))


def _options(pending: Pending) -> list[Any]:
    """Return what may be answered, as the values that they are: the options, else what the schema lists."""
    if pending.kind == "approval":
        return ["yes", "no"]
    schema = pending.arguments.get("schema")
    listed = schema.get("enum") if isinstance(schema, Mapping) else None
    options = thaw(pending.arguments.get("options") or listed or ())
    return list(options) if isinstance(options, list | tuple) else []


def _way(pending: Pending) -> str:
    if str(pending.id).startswith("masked_"):
        return "secret"
    options = _options(pending)
    if options:
        words = [_told(option).casefold() for option in options]
        return "confirm" if len(words) == 2 and words[0] in _YES and words[1] in _NO else "choice"
    kinds = types_of(pending.arguments.get("schema"))
    return _WAYS.get(kinds[0], "text") if len(kinds) == 1 else "text"


def _asked_for(pending: Pending, arguments: dict[str, Any]) -> list[Field]:
    """Return what leave is asked for; the prompt stands above it. What must stay comes first, if it says anything."""
    rows = fields_of({name: value for name, value in arguments.items() if name != "prompt"}) if arguments else []
    if pending.free is None:
        return rows
    free = [[name] for name in pending.free]
    fixed = [{**row, "as": "fixed", "note": ""} for row in rows if row["path"][:1] not in free and row["text"]]
    return [*fixed, *(row for row in rows if row["path"][:1] in free)]


def give(session: Session, value: Any, target: str | None) -> None:
    """Give a typed answer to the node that waits, as the value that it asks for; an approval takes it as yes or no.

    Raises:
        AgentNbError: U305, the answer is not of its kind; U322, it does not fit what the node declares.
    """
    waits = next((one for one in session.pending if one.kind != "call" and target in (one.node, one.id)), None)
    if waits is None or waits.kind == "answer":
        session.answer(value if waits is None else _meant(waits, value), node=target)
        return
    decided = verdict_of(value, "the cockpit's answer")
    if decided["approved"]:
        session.approve(target)
    else:
        session.deny(target, decided["reason"])


def _meant(waits: Pending, typed: Any) -> Any:
    """Return the value that was meant: an option as it was declared, a number, true or false, JSON, else the text.

    U322: what a person has answered does not fit the schema of the node that asks.
    """
    way, options = _way(waits), _options(waits)
    if not isinstance(typed, str):
        value = typed
    elif _told(typed) in map(_told, options):
        value = next(option for option in options if _told(option) == typed)
    elif way == "confirm" and not options:
        value = {"yes": True, "no": False}.get(typed.strip().casefold(), typed)
    else:
        value = parsed(typed, way if way in ("number", "json") else "text", waits.node)
    schema = waits.arguments.get("schema")
    fault = next(Schema(schema).faults(value), None) if schema is not None else None
    if fault is not None:
        raise AgentNbError(
            Problem("U322", f"{waits.node!r} asks for another answer", "the cockpit's answer",
                    hidden(fault.rule or fault.message), "answer what the question asks for; nothing was given")
        )  # fmt: skip
    return value


def change(session: Session, value: Any, target: str | None) -> None:
    """Change a held call by what was typed into its fields: `value` has changes of its `arguments`, or its `answer`.

    Before the call goes out, a `reply` (a text, or {text, as}) is put in its place. Of an approval the arguments are
    changed: what leave is asked for.

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
    reply = changes.get("reply")
    if isinstance(reply, dict) and held.answer is ABSENT:
        session.change(held.id, answer=parsed(str(reply.get("text", "")), str(reply.get("as") or "text"), held.name))
