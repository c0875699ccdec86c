"""Validation of a trace that was read: its numbers refer to existing rows, and its rows have values of their types.

A file is untrusted input. A trace that passes can be displayed, stepped and compared without an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import chain, pairwise
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from agentnb.board.paths import OPS
from agentnb.engine.core.history import (
    NO_ACTIVATION,
    UNKNOWN_EDGE,
    ActivationRow,
    Call,
    Event,
    FrameRow,
    History,
    Intervention,
    Note,
    Tables,
)
from agentnb.trace.row_index import TYPES, EdgeRow, NodeRow

if TYPE_CHECKING:
    from agentnb.trace.trace import SimulationTrace

LARGEST: Final = 2**53  # the largest exact float; only times in nanoseconds may exceed it
_NUMBER: Final = (int, float)
_MAYBE_TEXT: Final = (str, type(None))
_MAYBE_INT: Final = (int, type(None))
# The types of the fields of each row; any other field may hold any board value.
_TYPES: Final[dict[type, dict[str, Any]]] = {
    NodeRow: {"id": str, "kind": str, "type": str},
    EdgeRow: {"source": str, "target": str, "kind": str, "condition": str, "asks": bool},
    FrameRow: {"id": int, "parent": int, "owner": int, "region": str, "policy": str, "branch": int, "scope": int,
               "opened_at": int},
    ActivationRow: {"node": int, "frame": int, "purpose": int, "event": int, "about": int},
    Intervention: {"step": int, "action": str, "target": str, "actor": str, "time": datetime},
    Event: {"seq": int, "step": _MAYBE_INT, "id": str, "type": str, "actor": str, "cause": _MAYBE_TEXT,
            "time": datetime, "at": int, "mark": _MAYBE_TEXT},
    Call: {"step": int, "activation": int, "call": int, "kind": str, "name": str, "attempt": int, "wait": _NUMBER,
           "error": _MAYBE_TEXT, "seconds": _NUMBER, "tokens_in": _MAYBE_INT, "tokens_out": _MAYBE_INT,
           "provider": _MAYBE_TEXT, "model": _MAYBE_TEXT, "finish_reason": _MAYBE_TEXT},
    Note: {"thought": _MAYBE_TEXT, "inputs": (Mapping, type(None)), "score": (int, float, type(None))},
}  # fmt: skip


def check_trace(trace: SimulationTrace) -> None:
    """Raise if a trace that was read cannot be displayed.

    Raises:
        ValueError: a number is out of range, or a value is of another type.
    """
    reading = trace.reading()
    _check(isinstance(trace.agent_id, str) and isinstance(trace.run_id, str), "the names of the agent and the run")
    _check(isinstance(trace.agent_version, str), "the agent's version")
    _check(isinstance(trace.score, int | float | None), "the score")
    _check(isinstance(trace.outcome, dict | None), "the outcome")
    activation_count = len(reading.tables.activations)
    for call in trace.unanswered():
        named = isinstance(call.kind, str) and isinstance(call.name, str) and isinstance(call.arguments, Mapping)
        _check(
            named and _is_number(call.activation) and 0 <= call.activation < activation_count,
            "a call without a response",
        )
    _check_rows("nodes", reading.nodes)
    for node in reading.nodes:
        _check(node.type.lower() in TYPES, f"the type of node {node.id!r}")
        for name, path in node.inputs:
            _check(isinstance(name, str) and _is_path(path), f"the inputs of node {node.id!r}")
    _check_rows("edges", reading.edges)
    known = {node.id for node in reading.nodes}
    _check(len(known) == len(reading.nodes), "the ids of the nodes")
    _check(all({edge.source, edge.target} <= known for edge in reading.edges), "the ends of an edge")
    _check_tables(reading.tables, len(reading.nodes))
    _check(reading.chain[0].base == 0, "the start of the run")
    _check(
        all(above.base <= below.base <= above.tip for above, below in pairwise(reading.chain)), "the start of a fork"
    )
    for history in reading.chain:
        _check_history(history, len(reading.edges))


def _check_tables(tables: Tables, nodes: int) -> None:
    _check_rows("frames", tables.frames)
    for number, frame in enumerate(tables.frames):
        inside = -1 <= frame.parent < number and -1 <= frame.owner < nodes and 0 <= frame.scope <= number
        _check(frame.id == number and inside and (frame.parent >= 0 or not number), f"frame {number}")
        _check(tables.frames[frame.scope].scope == frame.scope, f"the scope of frame {number}")
    _check_rows("activations", tables.activations)
    frames = len(tables.frames)
    for activation in tables.activations:
        _check(
            -1 <= activation.node < nodes and 0 <= activation.frame < frames, f"an activation of node {activation.node}"
        )
    for scope, path in tables.codes:
        _check(type(scope) is int and 0 <= scope < frames and _is_path(path), "a path of the board")


def _check_history(history: History, edges: int) -> None:
    tables, tip = history.tables, history.tip
    activation_count, frames, codes = len(tables.activations), len(tables.frames), 4 * len(tables.codes)
    rows, writes, pushes = len(history.step_activations), len(history.new_values), len(history.push_activations)
    columns = (
        history.start_times,
        history.end_times,
        history.step_flags,
        history.queue_starts,
        history.write_ends,
        history.push_ends,
    )
    _check(rows > 0 and all(len(column) == rows for column in columns), "the columns of the steps")
    _check(all(number < activation_count for number in history.step_activations[1:]), "the activation of a step")
    _check(history.step_activations[0] == NO_ACTIVATION, "the row before the first step")
    _check(_is_rising(history.write_ends, writes) and _is_rising(history.push_ends, pushes), "the rows of a step")
    _check(
        history.write_ends[-1] == writes == len(history.write_codes)
        and len(history.push_values) == len(history.push_edges) == pushes,
        "the number of rows",
    )
    _check(
        all(start <= end for start, end in zip(history.queue_starts, history.push_ends, strict=True)),
        "the queue of a step",
    )
    _check(all(number < activation_count for number in history.push_activations), "the next nodes after a step")
    _check(all(UNKNOWN_EDGE <= number < edges for number in history.push_edges), "the edge that a step took")
    _check(all(code < codes and code & 3 < len(OPS) for code in history.write_codes), "a write")
    _check(all(code >> 2 < len(tables.codes) for code in history.read_codes), "a read")
    _check(len(history.read_codes) == len(history.read_steps), "the columns of the reads")
    _check(
        _is_rising(history.read_steps, tip) and (not history.read_steps or history.read_steps[0] >= history.base),
        "a read's step",
    )
    for number, end in history.insertions.items():
        _check(_is_number(number) and _is_number(end) and 0 <= number < end <= pushes, "a waiting entry of the queue")
    for number, end in history.insertion_returns.items():
        _check(_is_number(number) and _is_number(end) and 0 <= end <= number < pushes, "the end of an insertion")
    for row, places in history.replacements.items():
        step, first, last = places
        sound = all(map(_is_number, (row, *places))) and 0 <= row < first <= last <= pushes
        _check(sound and history.base < step <= tip, "a replacement in the queue")
    for opened in chain(history.opened_frames.values(), history.closed_frames.values()):
        _check(all(_is_number(number) and 0 <= number < frames for number in opened), "a frame of a step")
    sparse = (history.opened_frames, history.closed_frames, history.errors, history.notes, history.waiting_ns)
    for step in chain(history.rare, *sparse):
        _check(_is_number(step) and history.base <= step <= tip, "the number of a step")
    _check(all(map(_is_number, history.waiting_ns.values())), "the waiting time of a step")
    _check(all(_is_number(row) and 0 <= row < writes for row in history.in_place), "a write in place")
    _check(all(_is_number(row) and 0 <= row < writes for row in history.reduced_parts), "the parts of a write")
    for part in chain(*history.reduced_parts.values()):
        _check(isinstance(part.node, str) and part.op in range(len(OPS)), "the parts of a write")
    _check(all(map(_is_number, chain(history.order, history.order.values()))), "the order of the steps")
    for name, listed in (("notes", history.notes.values()), ("calls", history.calls), ("people", history.interventions),
                         ("events", history.events), ("calls", history.uncommitted_calls)):  # fmt: skip
        _check_rows(name, listed)
    for note in history.notes.values():
        _check(all(isinstance(name, str) for name in note.inputs or ()), "the inputs of a step")
    for failure in history.errors.values():
        _check(all(isinstance(text, str) for text in (failure.type, failure.message, failure.line)), "a failure")
    _check(
        all(0 <= call.activation < activation_count for call in chain(history.calls, history.uncommitted_calls)),
        "the activation of a call",
    )
    _check(
        _is_rising([intervention.step for intervention in history.interventions], tip), "the step of an intervention"
    )


def _check_rows(name: str, rows: Iterable[Any]) -> None:
    """Check the types of the fields, and the size of the numbers, of rows of one class, field by field."""
    rows = list(rows)
    for field, kinds in _TYPES[type(rows[0])].items() if rows else ():
        column = [*map(attrgetter(field), rows)]
        types = {*map(type, column)}
        _check(all(issubclass(cls, kinds) for cls in types), f"{field!r} in {name}")
        numbers = (
            [value for value in column if isinstance(value, int)] if any(issubclass(t, int) for t in types) else ()
        )
        _check(not numbers or -LARGEST < min(numbers) <= max(numbers) < LARGEST, f"{field!r} in {name}")


def _is_path(path: Any) -> bool:
    return isinstance(path, tuple) and bool(path) and all(isinstance(part, str | int) for part in path)


def _is_number(value: Any) -> bool:
    return type(value) is int and -LARGEST < value < 2**63


def _is_rising(numbers: Sequence[int], limit: int) -> bool:
    """Return True if the numbers never decrease and none exceeds `most`."""
    return all(a <= b for a, b in pairwise(numbers)) and (not numbers or numbers[-1] <= limit)


def _check(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(f"{what}: invalid value")


__all__ = ["check_trace"]
