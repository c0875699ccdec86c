"""Reducers combine a node's writes with the current value, one by one or when branches are merged.

A write inside a branch starts from the value before the branches. So that a merge can combine the contributions of all
branches, a history records the parts of such a write beside its result.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from operator import is_not
from typing import TYPE_CHECKING, Any, NamedTuple

from agentnb.board.copies import make_reader_copy
from agentnb.board.paths import SET, Path, apply_change
from agentnb.board.values import ABSENT, FrozenList, freeze, thaw

if TYPE_CHECKING:
    from agentnb.engine.core.frames import Frame
    from agentnb.engine.core.history import History
    from agentnb.engine.core.plan import Plan
    from agentnb.engine.core.run import Run

Reducer = Callable[[Any, Any], Any]


class Part(NamedTuple):
    """One change of a key: `value` combined with the current one by the reducer of `node`, or an `op` at a path below.

    `node` is empty if no reducer is declared. `value` is frozen.
    """

    node: str
    op: int
    path: Path
    value: Any


class ReducedWrite:
    """A write whose value is computed when the step is committed: its parts, applied in order to the current value.

    A condition may have asked for the value earlier; it is not computed twice from the same current value.
    """

    __slots__ = ("_last_result", "parts")

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = tuple(parts)
        self._last_result: tuple[Any, Any] | None = None  # the current value and the result of the last computation

    def apply_to(self, old: Any, key: str, plan: Plan) -> Any:
        """Return the value to write, starting from the current value `old`; both are frozen, or ABSENT."""
        known = self._last_result
        if known is not None and known[0] is old:
            return known[1]
        new = self._combine(old, key, plan)
        self._last_result = old, new
        return new

    def _combine(self, old: Any, key: str, plan: Plan) -> Any:
        for part in self.parts:
            reducer = _get_reducer(plan, part.node, key) if part.node else None
            if part.node and old is not ABSENT and reducer is not None:
                old = freeze(reducer(make_reader_copy(old), thaw(part.value)), old)
            else:
                old = apply_change(old, part.path, part.op, part.value, (key, *part.path))
        return old


def replaces_value(parts: Sequence[Part]) -> bool:
    """Return True if a write replaces the value of its key, regardless of reducers."""
    return any(not part.node and not part.path and part.op == SET for part in parts)


def find_added_items(old: Any, new: Any) -> Sequence[Any]:
    """Return the items that a reducer has appended to a list; none if it did anything else."""
    if type(old) is not FrozenList or type(new) is not FrozenList or len(new) <= len(old):
        return ()
    if any(map(is_not, old.items[: old.size], new.items)):
        return ()
    return new.items[old.size : new.size]


def _get_reducer(plan: Plan, node: str, key: str) -> Reducer | None:
    """Return the reducer that a node declares for a key; None if the recipe has changed and no longer declares it."""
    owner = plan.recipe.nodes.get(node)
    reducer: Reducer | None = None if owner is None else (owner.params.get("reducers") or {}).get(key)
    return reducer


def wrap_reducers(perform: Callable[..., Any], reducers: Mapping[str, Reducer], node: str) -> Callable[..., Any]:
    """Wrap a node's function so that its writes to some keys are combined with the old values by reducers."""
    from agentnb.engine.core.work import Append, Outcome

    def wrap_value(key: Any, value: Any) -> Any:
        plain = key in reducers and value is not ABSENT and type(value) not in (Append, ReducedWrite)
        return ReducedWrite([Part(node, SET, (), freeze(value))]) if plain else value

    def reduce_result(result: Any) -> Any:
        if isinstance(result, Outcome):
            places = [
                (path, wrap_value(path[0], value) if len(path) == 1 else value) for path, value in result.nested_writes
            ]
            return replace(result, writes=reduce_result(result.writes), nested_writes=places)
        if isinstance(result, Mapping):
            return {key: wrap_value(key, value) for key, value in result.items()}
        return await_and_reduce(result) if isinstance(result, Awaitable) else result

    async def await_and_reduce(result: Awaitable[Any]) -> Any:
        return reduce_result(await result)

    if inspect.iscoroutinefunction(perform):

        async def reduce_awaited(work: Any) -> Any:
            return reduce_result(await perform(work))

        return reduce_awaited
    return lambda work: reduce_result(perform(work))


def merge_writes(
    run: Run, frames: Sequence[Frame], node: str, reducers: Mapping[str, Reducer]
) -> dict[str, ReducedWrite]:
    """Return the branches' writes to the keys that reducers combine, all parts in branch order.

    These are the keys for which a node of a branch has a reducer, and those for which the section's own `node` has one.
    For the latter, values set by branches count as parts.
    """
    if not frames:
        return {}
    start = min(frame.row.opened_at for frame in frames)
    scopes = {frame.scope.id: index for index, frame in enumerate(frames)}
    spans = [(history, *_build_row_query(history, start, end)) for history, end in run.parts() if end >= start]
    keys = {*reducers, *(key for span in spans for key in _get_keys(run, scopes, *span))}
    parts: dict[str, list[list[Part]]] = {}
    if keys:
        for history, first, last in spans:
            for row in range(first, last):
                scope, path = run.tables.codes[history.write_codes[row] >> 2]
                if scope in scopes and path[0] in keys:
                    key = str(path[0])
                    branches = parts.setdefault(key, [[] for _ in frames])
                    branches[scopes[scope]] += _get_parts(history, row, path[1:], node if key in reducers else "")
    return {key: ReducedWrite([part for branch in branches for part in branch]) for key, branches in parts.items()}


def _build_row_query(history: History, start: int, end: int) -> tuple[int, int]:
    """Return the range of write rows of a history's steps `start` to `end`, including the interventions after them."""
    row = start - 1 - history.base
    return (history.write_ends[row] if row >= 0 else 0), history.write_ends[end - history.base]


def _get_keys(run: Run, scopes: Mapping[int, int], history: History, first: int, last: int) -> set[str]:
    """Return the keys of some scopes that reducers have written in a range of rows."""
    keys = set()
    for row in reversed(history.reduced_parts):
        if row < first:
            break
        scope, path = run.tables.codes[history.write_codes[row] >> 2]
        if row < last and scope in scopes:
            keys.add(str(path[0]))
    return keys


def _get_parts(history: History, row: int, path: Path, node: str) -> Sequence[Part]:
    """Return the parts of one write; `node` is the node whose reducer applies to a key set as a whole."""
    parts = history.reduced_parts.get(row) or (Part("", history.write_codes[row] & 3, path, history.new_values[row]),)
    return [part._replace(node=node) if not part.node and part.op == SET and not part.path else part for part in parts]


__all__ = ["Part", "ReducedWrite", "Reducer", "merge_writes", "replaces_value", "wrap_reducers"]
