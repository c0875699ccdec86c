"""The rows of a chain of histories as concatenated numpy arrays, without a loop over the steps."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from itertools import repeat
from operator import is_, ne
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from agentnb.board.masking import mask_atoms
from agentnb.board.paths import SET, changes, get_at
from agentnb.board.scopes import Sentinel
from agentnb.board.values import ABSENT, ATOMS, Absent
from agentnb.engine.core.history import CARRIED
from agentnb.engine.persistence.state_projection import StateProjection
from agentnb.engine.replay.equality import iter_innermost_differences
from agentnb.expressions.paths import format_path, resolve_path
from agentnb.secrets import is_secret
from agentnb.trace.row_index import StepIndex, count_edits, get_previous

Ints = NDArray[np.int64]
Objects = NDArray[np.object_]
# Types that pandas can display and compare without user code; comparing a Decimal may raise. A wide integer is shown as
# another type.
SIMPLE: Final = ATOMS - {Absent, Decimal, Fraction, range}
_KINDS: Final = {"I": np.uint32, "i": np.int32, "q": np.int64, "B": np.uint8}


def to_array(column: array[int], end: int) -> NDArray[Any]:
    """Return the first rows of a column as a new array: a run may continue to append to the column."""
    return np.frombuffer(column[:end], dtype=_KINDS[column.typecode])


def to_objects(values: Sequence[Any], size: int | None = None) -> Objects:
    """Return an array of these very objects (the first `size` of them); lists stay single elements."""
    return np.fromiter(values, dtype=object, count=len(values) if size is None else size)


def choose_int_type(size: int) -> type[np.signedinteger[Any]]:
    """Return the smallest integer type that holds -1 and the numbers below `size`."""
    return np.int8 if size < 128 else np.int16 if size < 32768 else np.int32


def find_used(numbers: NDArray[Any], size: int) -> list[int]:
    """Return the numbers below `size` that occur."""
    used: list[int] = np.flatnonzero(np.bincount(numbers, minlength=size)).tolist()
    return used


def find_firsts(numbers: NDArray[Any], targets: Sequence[int]) -> list[int]:
    """Return the index of the first occurrence of each wanted number; searches in windows, as most occur early."""
    firsts: dict[int, int] = {}
    start, size = 0, 4096
    while len(firsts) < len(targets) and start < len(numbers):
        seen, places = np.unique(numbers[start : start + size], return_index=True)
        for number, position in zip(seen.tolist(), places.tolist(), strict=True):
            firsts.setdefault(number, start + position)
        start, size = start + size, size * 4
    return list(firsts.values())


def mask_identical(values: Sequence[Any] | Objects, what: object) -> NDArray[np.bool_]:
    """Return a mask of the values that are this very object."""
    return np.fromiter(map(is_, values, repeat(what)), dtype=bool, count=len(values))


class Columns:
    """The rows of a reading at the time of creation; later rows are not included."""

    def __init__(self, reading: StepIndex) -> None:
        self.reading, self.tables = reading, reading.tables
        self.parts = reading.parts()
        self.tip = self.parts[-1].history.base + self.parts[-1].last
        # A path that is only read has no code yet: assign it before the codes are counted.
        self._known = {
            number: [self.tables.add_path(scope, path) >> 2 for scope, path in pairs]
            for number in range(len(self.tables.activations))
            if (pairs := reading.list_known_reads(number))
        }
        self.codes = list(self.tables.codes)

    def _get_steps(self, name: str) -> NDArray[Any]:
        """Return a column of the steps from 1 on."""
        return _join([to_array(getattr(part, name), last + 1)[1:] for part, last in self.parts])

    @cached_property
    def activations(self) -> NDArray[Any]:
        """The activation of each step."""
        return self._get_steps("step_activations")

    @cached_property
    def started(self) -> Ints:
        """When each step began, in ns."""
        return self._get_steps("start_times")

    @cached_property
    def seconds(self) -> NDArray[np.float64]:
        """The duration of each step in seconds, without the time spent waiting for a person."""
        took = self._get_steps("end_times")  # a private copy
        np.subtract(took, self.started, out=took)
        for history, last in self.reading.parts():
            for step, waited in history.waiting_ns.items() if history.peek("waiting_ns") else ():
                if step <= history.base + last:
                    took[step - 1] -= waited
        seconds: NDArray[np.float64] = took / 1e9
        return seconds

    @cached_property
    def flag(self) -> NDArray[np.uint8]:
        """The phase and status of each step."""
        return self._get_steps("step_flags")

    @cached_property
    def node(self) -> NDArray[Any]:
        """The node number of each step."""
        nodes: NDArray[Any] = self._nodes[self.activations]
        return nodes

    @cached_property
    def _nodes(self) -> NDArray[Any]:
        """The node of each activation, in the smallest integer type."""
        return self._map_activations(lambda row: row.node, choose_int_type(len(self.reading.nodes)))

    @cached_property
    def frame(self) -> Ints:
        """The frame number of each step."""
        if not self.nested:
            return np.zeros(self.tip, dtype=np.int64)
        frames: Ints = self._map_activations(lambda row: row.frame, np.int64)[self.activations]
        return frames

    @cached_property
    def nested(self) -> bool:
        """Whether any frame was opened."""
        return len(self.tables.frames) > 1

    @cached_property
    def rows(self) -> NDArray[np.int32]:
        """The row numbers of the steps, shared by the lazily created columns."""
        return np.arange(self.tip, dtype=np.int32)

    def _map_activations(self, what: Callable[[Any], int], dtype: Any) -> NDArray[Any]:
        activations = list(self.tables.activations)
        return np.fromiter(map(what, activations), dtype=dtype, count=len(activations))

    def node_at(self, steps: Ints) -> NDArray[Any]:
        """Return the nodes of these steps; -1 for step 0."""
        return np.concatenate([np.array([-1], dtype=self.node.dtype), self.node])[steps]

    def frame_at(self, steps: Ints) -> Ints:
        """Return the frames of these steps; the root for step 0."""
        return np.concatenate([np.array([0]), self.frame])[steps]

    # -- writes ----------------------------------------------------------------------------------------------

    def _iter_ends(self, name: str) -> Iterator[tuple[Any, NDArray[Any], int]]:
        """Yield (history, end of each step's rows, number of rows) for the rows delimited by the column `name`."""
        for part, last in self.parts:
            ends = to_array(getattr(part, name), last + 1)
            yield part, ends, int(ends[-1])

    def _select_rows(self, name: str) -> Ints:
        parts = []
        for part, ends, size in self._iter_ends(name):
            counts = np.diff(ends)
            start = int(ends[0])
            if size - start == len(counts) and counts.all():  # one row per step, as in most runs
                rows = np.arange(part.base + 1 - start, part.base + len(ends))
                rows[:start] = part.base
            else:
                rows = np.repeat(np.arange(part.base, part.base + len(ends)), np.concatenate([ends[:1], counts]))
            parts.append(rows)
        return _join(parts)

    @cached_property
    def write_steps(self) -> Ints:
        """The step of each write."""
        return self._select_rows("write_ends")

    @cached_property
    def write_codes(self) -> NDArray[Any]:
        """The code of each write: path and op."""
        return _join([to_array(part.write_codes, size) for part, _, size in self._iter_ends("write_ends")])

    @cached_property
    def write_paths(self) -> Ints:
        """The path number of each write: its code without the op."""
        return (self.write_codes >> 2).astype(np.int64)

    @cached_property
    def new_values(self) -> list[Any]:
        """The value that each write wrote, frozen."""
        return self._list("write_ends", "new_values")

    @cached_property
    def old_values(self) -> list[Any]:
        """The frozen value of each write's first key before the write."""
        return self._list("write_ends", "old_values")

    def _list(self, end: str, name: str) -> list[Any]:
        if len(self.parts) == 1:  # the run's own column is not copied, because its existing rows never change
            column: list[Any] = getattr(self.parts[0].history, name)
            return column
        return [value for part, _, size in self._iter_ends(end) for value in getattr(part, name)[:size]]

    @cached_property
    def written_in_place(self) -> NDArray[np.bool_]:
        """A mask of the writes that a node made by mutating a value it had read."""
        in_place = np.zeros(len(self.write_codes), dtype=bool)
        offset = 0
        for part, _, size in self._iter_ends("write_ends"):
            in_place[[offset + row for row in part.in_place if row < size]] = True
            offset += size
        return in_place

    @cached_property
    def changed(self) -> NDArray[np.bool_]:
        """A mask of the writes after which the value at their path differed from before."""
        size = len(self.write_codes)
        old, new = self.old_values[:size], self.new_values[:size]
        changed = ~np.fromiter(map(is_, old, new), dtype=bool, count=size)
        rows = np.flatnonzero(changed)
        if {*map(type, new)} <= SIMPLE:  # comparing these runs no user code
            certain = np.fromiter(map(ne, old, new), dtype=bool, count=size)
            rows = np.flatnonzero(changed & ~(certain & self._sets_whole_keys))
        for row in rows.tolist():
            code = self.write_codes[row]
            path = self.codes[code >> 2][1]
            changed[row] = changes(path, code & 3, old[row], new[row], path)
        return changed

    @cached_property
    def _sets_whole_keys(self) -> NDArray[np.bool_]:
        """A mask of the writes that set a whole key."""
        is_key = np.array([len(path) == 1 for _, path in self.codes], dtype=bool)
        mask: NDArray[np.bool_] = is_key[self.write_paths] & (self.write_codes & 3 == SET)
        return mask

    @cached_property
    def changed_parts(self) -> list[tuple[str, ...]]:
        """The paths of the parts of each written value that differed, below its key; () for a value as a whole."""
        parts: list[tuple[str, ...]] = [()] * len(self.write_codes)
        for row in np.flatnonzero(self.changed).tolist():
            new, code = self.new_values[row], int(self.write_codes[row])
            path = self.codes[code >> 2][1]
            if code & 3 == SET and type(new) not in ATOMS:
                old = get_previous(self.old_values[row], path)
                differences = iter_innermost_differences(old, new, path[1:])
                parts[row] = tuple(format_path(each.path) for each in differences if each.path != path[1:])
            if not parts[row] and len(path) > 1:
                parts[row] = (format_path(path[1:]),)
        return parts

    @cached_property
    def written_by_node(self) -> NDArray[np.bool_]:
        """A mask of the writes made by nodes: not inputs, and not edits by people."""
        by_node = self.write_steps > 0
        offset = 0
        for part, ends, size in self._iter_ends("write_ends"):
            by_node[offset : offset + int(ends[0])] = False
            for step in {
                intervention.step
                for intervention in part.interventions
                if part.base < intervention.step < part.base + len(ends)
            }:
                end = offset + part.write_ends[step - part.base]
                by_node[end - count_edits(part, step) : end] = False
            offset += size
        return by_node

    @cached_property
    def write_values(self) -> tuple[Values, Values]:
        """The values at each write's path before and after the write: (old, new)."""
        path_numbers = self.write_paths
        new = Values.of(self.new_values, path_numbers, self.secret)
        used = find_used(path_numbers, len(self.codes))
        deep = [number for number in used if len(self.codes[number][1]) > 1]
        if not deep and new.plain and not (self.write_codes & 3).any():
            # Only whole keys were set: an old value is the key's new value of before, and absent at its first write.
            absent = np.zeros(len(path_numbers), dtype=bool)
            absent[find_firsts(path_numbers, used)] = True
            return Values(
                to_objects(
                    mask_atoms(self.old_values, set(map(type, self.old_values))) if new.masked else self.old_values,
                    len(path_numbers),
                ),
                path_numbers,
                self.secret,
                absent=absent,
                plain=True,
            ), new
        old = self.old_values[: len(path_numbers)]
        for row in np.flatnonzero(np.isin(path_numbers, deep)).tolist():
            old[row] = get_previous(old[row], self.codes[path_numbers[row]][1])
        return Values.of(old, path_numbers, self.secret), new

    # -- names -----------------------------------------------------------------------------------------------

    @cached_property
    def keys(self) -> list[str]:
        """The dotted text of each code's path."""
        return [format_path(path) for _, path in self.codes]

    @cached_property
    def secret(self) -> NDArray[np.bool_]:
        """A mask of the codes whose path contains the name of a secret."""
        return np.array([any(map(is_secret, path)) for _, path in self.codes], dtype=bool)

    @cached_property
    def scopes(self) -> Ints:
        """The scope of each code."""
        return np.array([scope for scope, _ in self.codes], dtype=np.int64)

    # -- reads and pushes ------------------------------------------------------------------------------------

    @cached_property
    def reads(self) -> tuple[Ints, Ints]:
        """The steps and codes of the reads."""
        steps, codes = [], []
        for part, last in self.parts:
            size = min(len(part.read_steps), len(part.read_codes))
            step, code = to_array(part.read_steps, size), to_array(part.read_codes, size)
            count = int(np.searchsorted(step, part.base + last, side="right"))
            steps.append(step[:count].astype(np.int64))
            codes.append((code[:count] >> 2).astype(np.int64))
        recorded = _join(steps), _join(codes)
        return self._merge_known(*recorded) if self._known else recorded

    def _merge_known(self, steps: Ints, codes: Ints) -> tuple[Ints, Ints]:
        """Add the static reads known from the recipe, once per step, in the order of the steps."""
        activations = self.activations.astype(np.int64)
        counts = np.zeros(len(self.tables.activations), dtype=np.int64)
        counts[list(self._known)] = [len(wheres) for wheres in self._known.values()]
        begins = np.zeros(len(counts), dtype=np.int64)
        begins[list(self._known)] = np.cumsum([0, *map(len, self._known.values())])[:-1]
        wheres = np.array([where for indexes in self._known.values() for where in indexes], dtype=np.int64)
        each = counts[activations]
        inside = np.arange(int(each.sum())) - np.repeat(np.cumsum(each) - each, each)
        found_steps = [steps, np.repeat(np.arange(1, len(activations) + 1), each)]
        found_codes = [codes, wheres[np.repeat(begins[activations], each) + inside]]
        size = len(self.codes)
        both = np.unique(np.concatenate(found_steps).astype(np.int64) * size + np.concatenate(found_codes))
        return both // size, both % size

    @cached_property
    def taken(self) -> tuple[Ints, NDArray[Any], NDArray[Any], Objects | None]:
        """The edges that were taken: step, target's number, edge's number, value of the condition (None: no values)."""
        steps = self._select_rows("push_ends")
        activations, edges = (
            _join([to_array(getattr(part, name), size) for part, _, size in self._iter_ends("push_ends")])
            for name in ("push_activations", "push_edges")
        )
        values = self._list("push_ends", "push_values")
        start = int(np.searchsorted(steps, 1))  # steps take edges, the start (step 0) takes none
        events = self._map_activations(lambda row: row.event >= 0, bool)  # activations by events are not edges
        if values.count(None) == len(values) and not events.any():
            return steps[start:], self._nodes[activations[start:]], edges[start:], None
        values_held = to_objects(values, len(steps))
        is_taken = ~(mask_identical(values_held, CARRIED) | events[activations])
        is_taken[:start] = False
        return steps[is_taken], self._nodes[activations[is_taken]], edges[is_taken], values_held[is_taken]

    def values_after(self, scope: int, key: str) -> tuple[Ints, Objects]:
        """Return the steps after which the value at a dotted key of a scope may differ, and the frozen values."""
        replica, seen = StateProjection(self.tables), set[int]()
        outer: int | None = scope
        while outer is not None:
            seen.add(outer)
            outer = replica.parent(outer)
        firsts = {str(path[0]): None for number, path in self.codes if number in seen}
        path = resolve_path(key, firsts)
        numbers = [
            at for at, (number, code_path) in enumerate(self.codes) if number in seen and code_path[0] == path[0]
        ]
        rows = np.flatnonzero(np.isin(self.write_paths, numbers))
        steps, codes = self.write_steps[rows], self.write_codes[rows]
        # Only ever set as a whole
        if len(numbers) == 1 and self.codes[numbers[0]][1] == path and not (codes & 3).any():
            return steps, to_objects(self.new_values, len(self.write_paths))[rows]
        values = []
        for row, code in zip(rows.tolist(), codes.tolist(), strict=True):
            replica.write(code, self.new_values[row])
            value = replica.get(scope, path[0])
            values.append(value if len(path) == 1 or value is ABSENT else get_at(value, path[1:]))
        return steps, to_objects(values)

    # -- inputs and outputs --------------------------------------------------------------------------------

    def inputs(self) -> Iterator[Any]:
        """Yield the frozen inputs of each step from step 1 on, in one pass over all rows."""
        return self.reading.iter_inputs(1, self.tip)

    def outputs(self) -> Iterator[Any]:
        """Yield what each step wrote in its node's scope, frozen, from step 1 on, in one pass over all rows."""
        return self.reading.iter_outputs(1, self.tip)


class Values:
    """Frozen values with the code of their keys; `plain` if all are atoms.

    `masked` is True if some of these are not as they are on the board, `absent` is a mask of missing values, `hide` a
    mask of values below the name of a secret.
    """

    def __init__(
        self,
        frozen: Objects,
        where: NDArray[Any],
        secret: NDArray[np.bool_],
        *,
        absent: NDArray[np.bool_],
        plain: bool,
        masked: bool = False,
    ) -> None:
        self.frozen, self.absent, self.plain, self.masked = frozen, absent, plain, masked
        self.hide: NDArray[np.bool_] | None = secret[where] if secret.any() else None

    @classmethod
    def of(cls, values: Sequence[Any], where: NDArray[Any], secret: NDArray[np.bool_]) -> Values:
        """Create Values: check the types, and find the missing values."""
        size = len(where)
        values = values if len(values) == size else values[:size]
        types, missing = set(map(type, values)), {Absent, Sentinel}
        absent = np.zeros(size, dtype=bool)
        if not types.isdisjoint(missing):
            absent = np.fromiter((type(value) in missing for value in values), dtype=bool, count=size)
        shown, plain = values, types - missing <= SIMPLE
        if plain:
            shown = mask_atoms(values, types)
            if shown is not values and not set(map(type, shown)) - missing <= SIMPLE:
                shown, plain = values, False  # with a wide integer
        masked = shown is not values
        return cls(to_objects(shown, size), where, secret, absent=absent, plain=plain, masked=masked)


def _join(parts: list[NDArray[Any]]) -> NDArray[Any]:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


__all__ = ["Columns", "Objects", "Values", "to_array", "to_objects"]
