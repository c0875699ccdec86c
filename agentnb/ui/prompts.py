"""Pending questions, approvals and calls as the page shows them, and the effect of a person's answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from agentnb.board.masking import mask_value
from agentnb.board.values import ABSENT, thaw
from agentnb.draw.board_table import find_row
from agentnb.errors import AgentNbError, Problem
from agentnb.expressions.json_schema import Schema
from agentnb.recipe.descriptions import list_types
from agentnb.session.parts import get_parts
from agentnb.text import safe_str
from agentnb.ui.artifacts import make_artifact
from agentnb.ui.board_view import get_replaced_values
from agentnb.ui.fields import Field, apply_changes, make_fields, parse
from agentnb.world.human_input import to_verdict

if TYPE_CHECKING:
    from agentnb.session import Session
    from agentnb.session.pending import Pending

_WAYS: Final = {"boolean": "confirm", "number": "number", "integer": "number", "object": "json", "array": "json",
                "null": "json"}  # fmt: skip
_YES, _NO = frozenset({"yes", "true"}), frozenset({"no", "false"})


def describe_pending(pending: Pending) -> dict[str, Any]:
    """Return one pending item as plain values: a question, an approval with its arguments, or a pending call.

    `input` states how a question is answered: `text`, `choice` of its `options`, `confirm`, `number` or `json`; a value
    that was masked when the run was recorded is a `secret`. `model` is True for a pending call to a model.
    """
    arguments = dict(pending.arguments or {})
    shown = mask_value(arguments)
    description: dict[str, Any] = {
        "id": str(pending.id),
        "kind": pending.kind,
        "node": pending.node,
        "name": safe_str(pending.name),
        "prompt": str(next(filter(None, map(shown.get, _PROMPTS)), None) or safe_str(pending.name) or pending.node),
        "role": str(shown.get("role") or ""),
        "seconds_left": pending.seconds_left,
        "options": list(map(_format_option, _list_options(pending))),
    }
    if pending.kind == "answer":
        return {**description, "input": _choose_input(pending)}
    if pending.kind == "approval":
        return {**description, "arguments": _make_requested_fields(pending, arguments)}
    answer = None if pending.answer is ABSENT else make_fields(pending.answer, "answer")
    rows = make_fields(arguments) if arguments else []
    return {**description, "arguments": rows, "answer": answer, "model": not arguments.keys().isdisjoint(_MODEL)}


def describe_request(session: Session, pending: Pending) -> list[dict[str, Any]]:
    """Return the values that a person decides about, as artifacts with their key.

    These are what the node reads, otherwise what the last step wrote, otherwise the newest keys of the board: between a
    request and the person there may be nodes that only route. The earlier version of a value is the one that its last
    write replaced.
    """
    board, node = session.board, session.recipe.nodes.get(pending.node)
    known = dict.fromkeys(board)
    written = sorted(get_parts(session).pictures.view().written)
    paths = (node.reads if node is not None else ()) or written or list(known)[-_ABOUT:]
    keys = [key for key in dict.fromkeys(find_row(path, known) for path in paths) if key in board]
    writers = get_parts(session).explanations.writers(keys)
    requests = []
    for key in keys[:_ABOUT]:
        step = writers[key].step if key in writers else 0
        old_value = get_replaced_values(session, step).get(key, ABSENT) if step else ABSENT
        requests.append(
            {"key": safe_str(key, 200), **make_artifact(board[key], key, old_value, f"the value before step {step}")}
        )
    return requests


_PROMPTS: Final = ("prompt", "value")  # the arguments that have a question; LangGraph's interrupts have a value
_ABOUT: Final = 6  # values shown with a question
_MODEL: Final = frozenset({"messages", "prompt"})


def _format_option(option: Any) -> str:
    named = {True: "yes", False: "no"}
    return named[option] if isinstance(option, bool) else str(mask_value(option))


def _list_options(pending: Pending) -> list[Any]:
    """Return the possible answers as values: the options, otherwise those listed by the schema."""
    if pending.kind == "approval":
        return ["yes", "no"]
    schema = pending.arguments.get("schema")
    listed = schema.get("enum") if isinstance(schema, Mapping) else None
    options = thaw(pending.arguments.get("options") or listed or ())
    return list(options) if isinstance(options, list | tuple) else []


def _choose_input(pending: Pending) -> str:
    if pending.is_masked:
        return "secret"
    options = _list_options(pending)
    if options:
        texts = [_format_option(option).casefold() for option in options]
        return "confirm" if len(texts) == 2 and texts[0] in _YES and texts[1] in _NO else "choice"
    kinds = list_types(pending.arguments.get("schema"))
    return _WAYS.get(kinds[0], "text") if len(kinds) == 1 else "text"


def _make_requested_fields(pending: Pending, arguments: dict[str, Any]) -> list[Field]:
    """Return what approval is requested for, as fields below the prompt; fixed ones come first unless empty."""
    rows = make_fields({name: value for name, value in arguments.items() if name != "prompt"}) if arguments else []
    for row in rows:
        name = str(row["path"][0]) if len(row["path"]) == 1 else ""
        if name in pending.replaces:
            artifact = make_artifact(arguments[name], name, pending.replaces[name], "its current value")
            row |= {part: artifact[part] for part in ("diff", "since") if part in artifact}
    if pending.free is None:
        return rows
    free = [[name] for name in pending.free]
    fixed = [{**row, "as": "fixed", "note": ""} for row in rows if row["path"][:1] not in free and row["text"]]
    return [*fixed, *(row for row in rows if row["path"][:1] in free)]


def give(session: Session, value: Any, target: str | None) -> None:
    """Supply a typed answer to the waiting node as the value that it expects; an approval expects yes or no.

    Raises:
        AgentNbError: U305, the answer does not parse; U322, it does not match the node's schema.
    """
    action, value, reason = _interpret(session, value, target)
    if action == "answer":
        session.answer(value, node=target)
    elif action == "approve":
        session.approve(target)
    else:
        session.deny(target, reason)


async def agive(session: Session, value: Any, target: str | None) -> None:
    """Do the same without holding the kernel's loop while the rest of the node runs; errors as of `give`."""
    action, value, reason = _interpret(session, value, target)
    interventions = get_parts(session).interventions
    if action == "answer":
        await interventions.aanswer(value, target)
    else:
        await interventions.adecide(action, target, None, reason)


def _interpret(session: Session, value: Any, target: str | None) -> tuple[str, Any, str]:
    """Return what a typed answer does (answer, approve, deny), its value, and the reason of a denial."""
    pending = next(
        (pending for pending in session.pending if pending.kind != "call" and target in (pending.node, pending.id)),
        None,
    )
    if pending is None or pending.kind == "answer":
        return "answer", value if pending is None else _parse_answer(pending, value), ""
    decided = to_verdict(value, "the cockpit's answer")
    return "approve" if decided["approved"] else "deny", None, str(decided["reason"] or "")


def _parse_answer(pending: Pending, typed: Any) -> Any:
    """Return the value meant: an option as declared, a number, true or false, JSON, otherwise the text.

    U322: an answer does not match the schema of the node that asks it
    """
    widget, options = _choose_input(pending), _list_options(pending)
    if not isinstance(typed, str):
        value = typed
    elif _format_option(typed) in map(_format_option, options):
        value = next(option for option in options if _format_option(option) == typed)
    elif widget == "confirm" and not options:
        value = {"yes": True, "no": False}.get(typed.strip().casefold(), typed)
    else:
        value = parse(typed, widget if widget in ("number", "json") else "text", pending.node)
    schema = pending.arguments.get("schema")
    fault = next(Schema(schema).faults(value), None) if schema is not None else None
    if fault is not None:
        raise AgentNbError(
            Problem("U322", f"{pending.node!r} cannot accept this answer", "the cockpit's answer",
                    fault.rule or fault.message, "enter an answer that fits the question; nothing was submitted")
        )  # fmt: skip
    return value


def apply_change(session: Session, value: Any, target: str | None) -> None:
    """Change a pending call by its edited fields: `value` has changes of its `arguments` or its `answer`.

    Before the call is sent, a `reply` (a text, or {text, as}) replaces its response. For an approval, the arguments for
    which approval is requested are changed.

    Raises:
        AgentNbError: U307, no such call or approval is pending; U305 and U306, as `apply_changes` does.
    """
    pending_call = next(
        (pending for pending in session.pending if pending.kind != "answer" and pending.id == target), None
    )
    if pending_call is None:
        raise AgentNbError(
            Problem("U307", f"no call or approval {target!r} is pending", "the cockpit's editor",
                    "the run has continued, or another cell has moved it", "see session.pending")
        )  # fmt: skip
    changes = value if isinstance(value, dict) else {}
    if changes.get("arguments"):
        session.change(pending_call.id, arguments=apply_changes(dict(pending_call.arguments), changes["arguments"]))
    if changes.get("answer") and pending_call.answer is not ABSENT:
        session.change(pending_call.id, answer=apply_changes(pending_call.answer, changes["answer"]))
    reply = changes.get("reply")
    if isinstance(reply, dict) and pending_call.answer is ABSENT:
        session.change(
            pending_call.id, answer=parse(str(reply.get("text", "")), str(reply.get("as") or "text"), pending_call.name)
        )
