"""Differences between two corresponding steps: writes, edits, failures, events, calls and routes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import islice, zip_longest
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agentnb.analysis.alignment import StepKeys
from agentnb.board.masking import find_secret_word
from agentnb.board.paths import DELETE, OPS, Path, get_at
from agentnb.board.values import ABSENT, thaw
from agentnb.engine.core.history import CARRIED, STATUSES, UNKNOWN_EDGE
from agentnb.engine.replay.equality import ValueDifference, are_messages_equal, iter_innermost_differences
from agentnb.expressions.paths import format_path, parse_path
from agentnb.text import safe_repr, safe_str

if TYPE_CHECKING:
    from agentnb.engine.core.history import Call, Event
    from agentnb.trace.row_index import EdgeRow, StepIndex

MOST: Final = 20  # maximum number of reported places inside one value
_TRACEBACK: Final = ("traceback",)  # of the event of a failure: it names files and lines, which may move


class Difference(NamedTuple):
    """One difference between two runs. The values are not masked; `agentnb.ABSENT` represents a missing value.

    `step_a` and `step_b` are the corresponding steps, None if one run has no such step, 0 for the start. `path` is a
    path of the board; or `error`, `route`, `event:TYPE...`, `call:NAME...`; empty if a whole step is missing. `node` is
    None for the start.
    """

    step_a: int | None
    step_b: int | None
    node: str | None
    path: str
    a: Any
    b: Any
    reason: str
    scope: int = 0  # in the first run or, if it has none, the second

    def __str__(self) -> str:
        """Return the difference as one sentence, without secrets."""
        where = "at the start" if self.node is None else self._format_steps()
        return safe_str(f"{where}: {self.reason}")

    def __repr__(self) -> str:
        """Return the sentence in brackets, because the raw values may be secrets."""
        return f"<Difference {self}>"

    def _format_steps(self) -> str:
        name = safe_repr(self.node, 200)
        if self.step_a == self.step_b:
            return f"step {self.step_a}, {name}"
        steps = [f"step {step} of {run}" for step, run in ((self.step_a, "a"), (self.step_b, "b")) if step is not None]
        return f"{' and '.join(steps)}, {name}"


class _WriteSummary(NamedTuple):
    scope: int
    op: int
    new: Any
    by_node: bool


class StepRows:
    """The results of each step of a run, in a form that can be compared with another run."""

    def __init__(self, keys: StepKeys, run_id: str = "") -> None:
        self.keys, self.reading, self.run_id = keys, keys.reading, run_id

    def writes(self, step: int) -> dict[tuple[str, Path], list[_WriteSummary]]:
        """Return the writes of a step by scope and path, in order; those by a person come last."""
        codes, summaries = self.reading.tables.codes, dict[tuple[str, Path], list[_WriteSummary]]()
        for history, row, by_person in self.reading.rows(step):
            scope, path = codes[history.write_codes[row] >> 2]
            # the inputs count as written by the start itself
            by_node = not by_person or (step == 0 and history.parent is None)
            summary = _WriteSummary(scope, history.write_codes[row] & 3, history.new_values[row], by_node)
            summaries.setdefault((self.keys.frame(scope), path), []).append(summary)
        return summaries

    def route(self, step: int) -> tuple[list[str], list[Any], list[EdgeRow | None]]:
        """Return the nodes to which a step's followed edges led, the values of their conditions, and the edges.

        An edge is None if the recipe has none, or it is not known which one it was.
        """
        nodes, activations = self.reading.nodes, self.reading.tables.activations
        history, row = self.reading.owner(step)
        pushes = range(history.push_ends[row - 1], history.push_ends[row])
        taken = [
            at
            for at in pushes
            if history.push_values[at] is not CARRIED and activations[history.push_activations[at]].node >= 0
        ]
        numbers = [history.push_edges[at] for at in taken]
        return (
            [nodes[activations[history.push_activations[at]].node].id for at in taken],
            [history.push_values[at] for at in taken],
            [None if number == UNKNOWN_EDGE else self.reading.edges[number] for number in numbers],
        )

    def value(self, scope: int, path: Path, step: int) -> Any:
        """Return the frozen value at a path of a scope after a step; ABSENT if there is none."""
        value = self.reading.replica(step).get(scope, str(path[0]))
        return value if value is ABSENT or len(path) == 1 else get_at(value, path[1:])

    def status(self, step: int) -> str:
        """Return the status of a step."""
        history, row = self.reading.owner(step)
        return STATUSES[history.step_flags[row] >> 2 & 3]

    @cached_property
    def _calls(self) -> dict[int, list[Call]]:
        calls: dict[int, list[Call]] = {}
        for part, last in self.reading.parts():
            for call in part.calls:
                if call.step <= part.base + last and call.call >= 0:
                    calls.setdefault(call.step, []).append(call)
        return calls

    @cached_property
    def _events(self) -> dict[int, list[Event]]:
        events: dict[int, list[Event]] = {}
        for event in self.reading.events():
            events.setdefault(event.at, []).append(event)
        return events

    def calls(self, step: int) -> list[Call]:
        """Return the attempts of the calls of a step."""
        return self._calls.get(step, [])

    def events(self, step: int) -> list[Event]:
        """Return the events emitted in a step, or by a person after it."""
        return self._events.get(step, [])


def iter_differences(a: StepRows, b: StepRows, step_a: int, step_b: int) -> Iterator[Difference]:
    """Yield the differences between two corresponding steps (0 and 0: the start): failures, writes, then the rest."""
    if _is_shared(a.reading, b.reading, step_a, step_b):
        return
    node = a.keys.keys[step_a - 1].node if step_a else None
    at = step_a, step_b, node
    edits = list[Difference]()
    if step_a and step_b:
        yield from _iter_failures(a, b, at)  # before the writes that are missing because of them
    for difference, by_node in _writes(a, b, at):
        if by_node:
            yield difference
        else:
            edits.append(difference)
    if step_a and step_b:
        yield from _iter_routes(a, b, at)
    yield from _iter_events(a, b, at)
    if step_a and step_b:
        yield from _iter_calls(a, b, at)
    yield from edits


def _is_shared(a: StepIndex, b: StepIndex, step_a: int, step_b: int) -> bool:
    """Return True if both steps are the same rows, which a fork shares with its parent."""
    if step_a != step_b:
        return False
    rows = zip(a.at(step_a), b.at(step_b), strict=False)
    return len(a.at(step_a)) == len(b.at(step_b)) and all(left[0] is two[0] and left[1] == two[1] for left, two in rows)


def iter_unlike_places(a: StepRows, b: StepRows, left: Any, right: Any, path: Path = ()) -> Iterator[ValueDifference]:
    """Yield the first places where two frozen values certainly differ; the ids of the two runs count as equal."""
    for row in islice(iter_innermost_differences(left, right, path), MOST):
        if row.sure and not (type(row.recorded) is str and (row.recorded, row.replayed) == (a.run_id, b.run_id)):
            yield row


Place = tuple[int, int, str | None]


def _writes(a: StepRows, b: StepRows, at: Place) -> Iterator[tuple[Difference, bool]]:
    """Yield the differences of the writes to each path, and whether both sides were written by the node."""
    writes_a, writes_b = a.writes(at[0]), b.writes(at[1])
    for name, path in {**writes_a, **writes_b}:
        for left, right in zip_longest(writes_a.get((name, path), []), writes_b.get((name, path), [])):
            written = left or right
            assert written is not None
            by_node = (left is None or left.by_node) and (right is None or right.by_node)
            scope = written.scope
            if left is not None and right is not None and left.op == right.op:
                for row in iter_unlike_places(a, b, left.new, right.new, path):
                    yield _compare_write(at, row.path, row.recorded, row.replayed, by_node, scope), by_node
                continue
            value_a, value_b = (ABSENT if side is None or side.op == DELETE else side.new for side in (left, right))
            if not by_node:  # an edit in one run: the other has the previous value
                value_a = a.value(scope, path, at[0]) if left is None else value_a
                value_b = b.value(scope, path, at[1]) if right is None else value_b
            yield _compare_write(at, path, value_a, value_b, by_node, scope, left, right), by_node


def _compare_write(
    at: Place, path: Path, left: Any, right: Any, by_node: bool, scope: int,
    wrote_a: _WriteSummary | None = None, wrote_b: _WriteSummary | None = None,
) -> Difference:  # fmt: skip
    name, secret = format_path(path), find_secret_word(path)
    texts = ["nothing" if value is ABSENT else safe_repr(value, key=secret) for value in (left, right)]
    for number, summary in enumerate((wrote_a, wrote_b)):
        if summary is not None and OPS[summary.op] != "set":
            texts[number] = f"{OPS[summary.op]} {texts[number]}" if summary.op != DELETE else "a deletion"
    if not by_node:
        reason = f"a person's edit: {name!r} is {texts[0]} in a and {texts[1]} in b"
    elif at[2] is None:
        reason = f"the runs began with {name!r} as {texts[0]} in a and {texts[1]} in b"
    else:
        reason = f"{name!r} was written as {texts[0]} in a and {texts[1]} in b"
    return Difference(*at, name, _thaw(left), _thaw(right), reason, scope)


def _thaw(value: Any) -> Any:
    return value if value is ABSENT else thaw(value)


def _iter_failures(a: StepRows, b: StepRows, at: Place) -> Iterator[Difference]:
    left, right = a.reading.failure(at[0]), b.reading.failure(at[1])
    status = a.status(at[0]), b.status(at[1])
    texts = [ABSENT if failure is None else f"{failure.type}: {failure.message}" for failure in (left, right)]
    if status[0] == status[1] and (left is None or right is None or are_messages_equal(str(texts[0]), str(texts[1]))):
        return
    outcomes = [word if text is ABSENT else f"failed with {safe_str(text, 200)}"
            for word, text in zip(status, texts, strict=True)]  # fmt: skip
    yield Difference(
        *at,
        "error",
        texts[0],
        texts[1],
        f"it {_describe_recorded(outcomes[0])} in a and {_describe_recorded(outcomes[1])} in b",
    )


def _describe_recorded(outcome: str) -> str:
    return outcome if outcome.startswith("failed") else "succeeded" if outcome == "ok" else f"was {outcome}"


def _iter_routes(a: StepRows, b: StepRows, at: Place) -> Iterator[Difference]:
    (left, values_a, edges_a), (right, values_b, edges_b) = a.route(at[0]), b.route(at[1])
    if left != right:
        texts = [", ".join(names) or "no node" for names in (left, right)]
        yield Difference(*at, "route", texts[0], texts[1], f"it led to {texts[0]} in a and to {texts[1]} in b")
        return
    for target, value_a, value_b, edge_a, edge_b in zip(left, values_a, values_b, edges_a, edges_b, strict=True):
        if next(iter_unlike_places(a, b, value_a, value_b), None) is not None:
            texts = [safe_repr(value) for value in (value_a, value_b)]
            reason = f"the condition of the edge to {target!r} was {texts[0]} in a and {texts[1]} in b"
            yield Difference(*at, "route", _thaw(value_a), _thaw(value_b), reason)
        # an edge that only one of the recipes has was edited, rather than chosen
        elif edge_a and edge_b and edge_a != edge_b and edge_a in b.reading.edges and edge_b in a.reading.edges:
            texts = [safe_str(edge.condition or edge.kind, 200) for edge in (edge_a, edge_b)]
            reason = f"it led to {target!r} by the edge {texts[0]!r} in a and {texts[1]!r} in b"
            yield Difference(*at, "route", texts[0], texts[1], reason)


def _iter_events(a: StepRows, b: StepRows, at: Place) -> Iterator[Difference]:
    for left, right in zip_longest(a.events(at[0]), b.events(at[1])):
        if left is None or right is None or left.type != right.type:
            type_a, type_b = (ABSENT if event is None else event.type for event in (left, right))
            texts = ["no event" if name is ABSENT else repr(name) for name in (type_a, type_b)]
            reason = f"{texts[0]} was emitted in a and {texts[1]} in b"
            yield Difference(*at, f"event:{(left or right).type}", type_a, type_b, reason)
            continue
        for row in iter_unlike_places(a, b, left.payload, right.payload):
            if row.path == _TRACEBACK:
                continue
            name = f"event:{left.type}{_format_subpath(row.path)}"
            yield _compare_values(at, name, row.recorded, row.replayed, "was emitted as")


def _iter_calls(a: StepRows, b: StepRows, at: Place) -> Iterator[Difference]:
    for left, right in zip_longest(a.calls(at[0]), b.calls(at[1])):
        if (
            left is None
            or right is None
            or (left.kind, left.name, left.attempt) != (right.kind, right.name, right.attempt)
        ):
            name_a, name_b = (ABSENT if call is None else call.name for call in (left, right))
            texts = ["no call" if name is ABSENT else f"a call of {name!r}" for name in (name_a, name_b)]
            name = (left or right).name
            yield Difference(*at, f"call:{name}", name_a, name_b, f"it made {texts[0]} in a and {texts[1]} in b")
            continue
        for part, verb in (("arguments", "was sent as"), ("result", "was answered as"), ("error", "failed with")):
            for row in iter_unlike_places(a, b, getattr(left, part), getattr(right, part)):
                yield _compare_values(
                    at, f"call:{left.name}.{part}{_format_subpath(row.path)}", row.recorded, row.replayed, verb
                )


def _format_subpath(path: Path) -> str:
    return f".{format_path(path)}" if path else ""


def _compare_values(at: Place, name: str, left: Any, right: Any, verb: str) -> Difference:
    secret = find_secret_word(parse_path(name))
    texts = ["nothing" if value is ABSENT else safe_repr(value, key=secret) for value in (left, right)]
    return Difference(*at, name, _thaw(left), _thaw(right), f"{name!r} {verb} {texts[0]} in a and {texts[1]} in b")


__all__ = ["Difference", "StepRows", "iter_differences"]
