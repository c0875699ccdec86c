"""A step's part of the details pane: its inputs and writes, its calls and events, and the edges that it took."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import asdict
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from agentnb.board.values import ABSENT, FrozenList
from agentnb.engine.core.history import (
    CARRIED,
    PHASES,
    STATUSES,
    UNCAUGHT,
    UNKNOWN_EDGE,
    Call,
    Event,
    Failure,
    Intervention,
)
from agentnb.errors import AgentNbError
from agentnb.expressions.paths import format_path
from agentnb.session.state import get_state
from agentnb.text import safe_str
from agentnb.trace.row_index import OPS
from agentnb.ui.details.cells import ROWS, Cells, make_more_cell, to_line
from agentnb.ui.details.inner_run import describe_inner_run
from agentnb.ui.details.node import describe_event

if TYPE_CHECKING:
    from agentnb.engine.core.history import ActivationRow, History
    from agentnb.session import Session
    from agentnb.trace.row_index import StepIndex

_CALLS: Final = 20  # calls of one step shown
_SHORT: Final = 160  # characters of a value within a line
_CAUSES: Final = 8  # events before the delivered one that are named
_step_of: Final = attrgetter("step")
_at_of: Final = attrgetter("at")


def describe_step(session: Session, number: int, cells: Cells) -> dict[str, Any]:
    """Return what a step did; step `number` must exist."""
    reading, step = session.trace.reading(), session.trace.steps[number - 1]
    history, row = reading.owner(number)
    activation, note, failure = reading.activation(number), reading.note(number), reading.failure(number)
    sets_off, conditions = _explain_activations(session, number)
    rounds = (
        1
        if history.parent is None and not activation.frame
        else reading.replica(number - 1).frames.get(activation.frame, 1)
    )
    return {
        "step": number,
        "node": step.node_id,
        "phase": PHASES[history.step_flags[row] & 3],
        "status": STATUSES[history.step_flags[row] >> 2 & 3],
        "type": str(step.type),
        "frame": to_line(_format_frames(session, reading, activation)),
        "branch": step.branch,
        "round": rounds,
        "time": step.timestamp.isoformat(timespec="milliseconds"),
        "seconds": step.seconds,
        "notes": [
            cells.of(f"notes/{name}", name, getattr(note, name))
            for name in ("thought", "action", "observation", "score")
            if note is not None and getattr(note, name) is not None
        ],
        "inputs": cells.rows("inputs", reading.inputs(number)),
        "outputs": list(_writes(reading, number, cells)),
        "error": None
        if failure is None
        else _describe_problem(session, number, step.node_id, failure, history.step_flags[row]),
        "calls": _describe_calls(history, number, cells),
        "more_calls": max(_count(history.calls, number, _step_of) - _CALLS, 0),
        "delivered": _describe_delivery(session, activation, cells),
        "events": [
            describe_event(event, cells, f"events/{at}")
            for at, event in enumerate(_get_emitted(history, number)[:ROWS])
        ],
        "targets": list(islice(_iter_taken_edges(session, history, number), ROWS)),
        "sets_off": sets_off,
        "why": conditions,
        "interventions": [
            _describe_intervention(each, cells, f"interventions/{at}")
            for at, each in enumerate(_list_interventions(reading, number))
        ],
        "inside": describe_inner_run(session, number),
    }


def _format_frames(session: Session, reading: StepIndex, activation: ActivationRow) -> str:
    """Return the frames that a step ran in: `root`, or the enclosing nodes, outermost first."""
    names, frame = [], activation.frame
    while frame:
        row = reading.tables.frames[frame]
        region = session.recipe.regions.get(row.region)
        names.append((region.title if region else "") or row.region)
        frame = row.parent
    return " / ".join(reversed(names)) or "root"


def _writes(reading: StepIndex, number: int, cells: Cells) -> Iterator[dict[str, Any]]:
    """Yield what a step changed: the key, the value before and after, how, and by which person, if any."""
    writes = reading.writes(number)
    people = [by_person for _, _, by_person in reading.rows(number)]
    own_scope = reading.tables.frames[reading.activation(number).frame].scope
    for index, ((scope, path, op, old, new, in_place), by_person) in enumerate(zip(writes, people, strict=True)):
        if index == ROWS:
            yield {"key": make_more_cell(len(writes) - ROWS)["text"], "old": None, "new": None, "op": "", "note": ""}
            return
        key, notes = format_path(path), ["changed in place"] if in_place else []
        notes += ["by a person"] if by_person else []
        notes += [] if scope == own_scope else [f"on the board of {reading.frame_name(scope)}"]
        yield {
            "key": to_line(key),
            "old": None if old is ABSENT else cells.of(f"old/{index}", key, old),
            "new": None if new is ABSENT else cells.of(f"new/{index}", key, new),
            "op": OPS[op],
            "note": to_line(", ".join(notes)),
        }


def _describe_problem(session: Session, number: int, node: str, failure: Failure, flag: int) -> dict[str, Any]:
    """Return a step's failure as a card shows it."""
    if number == session.position and session.error is not None:
        return asdict(session.error)
    if isinstance(failure.error, AgentNbError) and failure.error.problems:
        problem = asdict(failure.error.problems[0])
    else:
        problem = {"code": "", "what": f"{node!r} failed: {failure.type}: {failure.message}", "why": "", "do": ""}
        problem["where"] = str(session.recipe.nodes[node].place or "") if node in session.recipe.nodes else ""
        problem["severity"] = "error"
    problem["where"] = failure.add_line(problem["where"])
    if not flag & UNCAUGHT:
        problem |= {
            "why": problem["why"] or "the recipe defines where to continue after such a failure",
            "severity": "warning",
        }
    return {name: safe_str(text) for name, text in problem.items()}


def _count(rows: list[Any], number: int, of: Any) -> int:
    return bisect_right(rows, number, key=of) - bisect_left(rows, number, key=of)


def _describe_calls(history: History, number: int, cells: Cells) -> list[dict[str, Any]]:
    first = bisect_left(history.calls, number, key=_step_of)
    end = min(bisect_right(history.calls, number, key=_step_of), first + _CALLS)
    return [_call(call, cells, f"calls/{place}") for place, call in enumerate(history.calls[first:end])]


def _call(call: Call, cells: Cells, at: str) -> dict[str, Any]:
    """Return one attempt of a call: the request (a prompt by role), the response, the time and cost."""
    arguments = call.arguments if isinstance(call.arguments, dict) else {"": call.arguments}
    silent = call.error is not None and call.result is None
    messages = [(role, text) for name, value in arguments.items() for role, text in _iter_prompts(name, value)]
    rest = {name: value for name, value in arguments.items() if not list(_iter_prompts(name, value))}
    return {
        "call": call.call + 1,
        "kind": call.kind,
        "name": to_line(call.name),
        "attempt": call.attempt,
        "wait": call.wait,
        "seconds": call.seconds,
        "tokens": None if call.tokens_in is None and call.tokens_out is None else [call.tokens_in, call.tokens_out],
        "cost": None if call.cost_usd is None else str(call.cost_usd),
        "messages": [cells.of(f"{at}/messages/{n}", role, text) for n, (role, text) in enumerate(messages[:ROWS])],
        "arguments": cells.rows(f"{at}/arguments", rest),
        "result": None if silent else cells.of(f"{at}/result", "answer", call.result),
        "error": None if call.error is None else cells.text(f"{at}/error", "error", call.error),
    }  # fmt: skip


def _iter_prompts(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield (role, text) for an argument that is sent to a model as a prompt; nothing for any other argument."""
    if name in ("system", "prompt") and isinstance(value, str):
        yield ("system" if name == "system" else "user"), value
    elif name == "messages" and _is_talk(value):
        for each in value:
            more_of_it = any(key not in ("role", "content") for key in each)
            yield str(each["role"]), each if more_of_it else each.get("content", "")


def _is_talk(value: Any) -> bool:
    return isinstance(value, list | FrozenList) and all(isinstance(each, dict) and "role" in each for each in value)


def _get_emitted(history: History, number: int) -> list[Event]:
    """Return the events emitted in a step, or by people while it was the current step."""
    events = history.events
    first, end = bisect_left(events, number, key=_at_of), bisect_right(events, number, key=_at_of)
    return events[first:end]


def _describe_delivery(session: Session, activation: ActivationRow, cells: Cells) -> dict[str, Any] | None:
    """Return the event that activated a node, with the events that caused it, nearest first."""
    event = get_state(session).run.get_event(activation.event) if activation.event >= 0 else None
    if event is None:
        return None
    known = {each.id: each for each in session.trace.reading().events()} if event.cause is not None else {}
    causes, seen, cause = list[list[Any]](), {event.id}, known.get(event.cause or "")
    while cause is not None and cause.id not in seen and len(causes) < _CAUSES:
        causes.append([to_line(cause.id), to_line(cause.type), cause.step, to_line(cause.actor)])
        seen.add(cause.id)
        cause = known.get(cause.cause or "")
    return {**describe_event(event, cells, "delivered"), "causes": causes}


def _iter_taken_edges(session: Session, history: History, number: int) -> Iterator[dict[str, Any]]:
    """Yield the edges that a step took, with the results of their conditions."""
    run, row = get_state(session).run, number - history.base
    for push in range(history.push_ends[row - 1], history.push_ends[row]):
        target, value = run.tables.activations[history.push_activations[push]], history.push_values[push]
        if value is CARRIED or target.node < 0 or target.event >= 0:
            continue
        name = run.get_node_id(history.push_activations[push])
        number, text = history.push_edges[push], "" if value is None else to_line(value)
        edge = None if number == UNKNOWN_EDGE else run.plan.edges[number]
        kind, condition = ("", "") if edge is None else (edge.kind, to_line(edge.condition))
        yield {"target": to_line(name), "kind": kind, "condition": condition, "value": text[:_SHORT]}


def _explain_activations(session: Session, number: int) -> tuple[list[str], list[dict[str, Any]]]:
    """Return the nodes that a step's events activate, and each evaluated condition with what it read."""
    try:
        explanation = session.why(number)
    except Exception as error:  # noqa: BLE001  (a condition is user code, which runs again here)
        row = {
            "condition": f"cannot be evaluated: {to_line(type(error).__name__)}",
            "value": "",
            "target": "",
            "warning": "",
        }
        return [], [{**row, "taken": False, "operands": []}]
    conditions = [
        {
            "condition": to_line(each.condition) or "always",
            "target": to_line(each.target)
            if explanation.delivered_event is not None
            else to_line(each.target) or "the end",
            "value": _shorten_value(each.value),
            "taken": each.taken,
            "operands": [[to_line(text), _shorten_value(value, text)] for text, value in each.operands],
            "warning": to_line(each.warning),
        }
        for each in explanation.conditions[:ROWS]
    ]
    return (
        [to_line(name) for name in explanation.targets[:ROWS]] if explanation.delivered_event is not None else []
    ), conditions


def _shorten_value(value: Any, name: str = "") -> str:
    """Return a value as a few words on one line."""
    return to_line(Cells().of("", name, value)["text"])[:_SHORT]


def _list_interventions(reading: StepIndex, number: int) -> list[Intervention]:
    return [
        intervention
        for history, _ in reading.at(number)
        for intervention in history.interventions
        if intervention.step == number
    ][:ROWS]


def _describe_intervention(intervention: Intervention, cells: Cells, at: str) -> dict[str, Any]:
    """Return an intervention made while a step was the current one."""
    return {
        "action": to_line(intervention.action),
        "target": to_line(intervention.target),
        "actor": to_line(intervention.actor),
        "time": intervention.time.isoformat(timespec="seconds"),
        "old": None if intervention.old is ABSENT else cells.of(f"{at}/old", intervention.target, intervention.old),
        "new": None if intervention.new is ABSENT else cells.of(f"{at}/new", intervention.target, intervention.new),
    }
