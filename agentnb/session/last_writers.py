"""The last writer of every key of the board. Reads each write once."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from agentnb.engine.control.interventions import get_current_scope
from agentnb.session.history_fold import MANY, HistoryFold, group_indices, to_array

if TYPE_CHECKING:
    from agentnb.board.paths import Path
    from agentnb.engine.core.history import History
    from agentnb.engine.core.run import Run


class Writer(NamedTuple):
    """The writer of a value: the step and its node; "" for the inputs, None for a person's edit after that step."""

    step: int
    node: str | None


class _WriteIndex:
    """The writes of one history: their numbers by scope and key, and the steps after which a person edited a path."""

    def __init__(self) -> None:
        self.numbers: dict[tuple[int, str], array[int]] = {}
        self.edited_paths: set[tuple[str, int]] = set()
        self._writes = self._read_interventions = 0
        # By scope and key: of the first writes, this many, the index of the last that changed the key
        self._changes: dict[tuple[int, str], tuple[int, int]] = {}

    def read(self, run: Run, history: History, _end: int) -> None:
        """Read the rows added since the last call."""
        codes, writes = run.tables.codes, history.write_ends[-1]
        if writes - self._writes > MANY:
            self._read_many(codes, history, writes)
        for number in range(self._writes, writes):
            scope, path = codes[history.write_codes[number] >> 2]
            self.numbers.setdefault((scope, str(path[0])), array("q")).append(number)
        self._writes = max(self._writes, writes)
        for intervention in history.interventions[self._read_interventions :]:
            if intervention.action == "edit":
                parts = intervention.target.split(".")
                self.edited_paths |= {(".".join(parts[:size]), intervention.step) for size in range(1, len(parts) + 1)}
        self._read_interventions = len(history.interventions)

    def _read_many(self, codes: Sequence[tuple[int, Path]], history: History, end: int) -> None:
        """Read many writes at once; a key has the numbers of all its paths, in order."""
        keys = [(scope, str(path[0])) for scope, path in codes]
        index_by_key = {key: index for index, key in enumerate(dict.fromkeys(keys))}
        key_of = to_array(array("q", (index_by_key[key] for key in keys)), 0, len(keys))
        named = list(index_by_key)
        for index, numbers in group_indices(
            key_of[to_array(history.write_codes, self._writes, end) >> 2], self._writes
        ):
            self.numbers.setdefault(named[index], array("q")).extend(numbers)
        self._writes = end

    def last(self, history: History, scope: int, key: str, end: int) -> int | None:
        """Return the step of the last write up to row `end` that changed a key; None if there is none."""
        numbers = self.numbers.get((scope, key))
        if numbers is None:
            return None
        start = bisect_left(numbers, history.write_ends[end])
        known_start, known = self._changes.get((scope, key), (0, -1))
        if known_start > start:  # the run has gone back
            known_start, known = 0, -1
        index = next(
            (at for at in range(start - 1, known_start - 1, -1) if history.changes(numbers[at], (key,))), known
        )
        self._changes[scope, key] = start, index
        return None if index < 0 else history.base + bisect_right(history.write_ends, numbers[index])


class LastWriters:
    """The last writers of the keys on a session's board; a write below a key counts for the key."""

    def __init__(self) -> None:
        self._fold = HistoryFold(_WriteIndex)

    def of(self, run: Run, keys: Iterable[str]) -> dict[str, Writer]:
        """Return the last writer of each of these keys at the current position, if it was written."""
        parts = [*self._fold.parts(run)][::-1]
        scope, writers = get_current_scope(run).id, dict[str, Writer]()
        for key in keys:
            for history, end, written in parts:
                step = written.last(history, scope, key, end)
                if step is not None:
                    writers[key] = Writer(step, _get_node(run, history, written, key, step))
                    break
        return writers


def _get_node(run: Run, history: History, written: _WriteIndex, key: str, step: int) -> str | None:
    if (key, step) in written.edited_paths or (step == history.base and step > 0):
        return None  # row 0 of a fork holds its edits
    return run.get_node_id(history.step_activations[step - history.base]) if step > history.base else ""
