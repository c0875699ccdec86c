"""One fold over the history of a run, for readers that follow it: each row is read once, many rows in bulk."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from agentnb.engine.core.history import History
    from agentnb.engine.core.run import Run

    Ints = NDArray[np.int64]


class HistoryReducer(Protocol):
    """What a reader knows of one history. It finds by itself which rows are new: a history only grows, or is undone."""

    def read(self, run: Run, history: History, end: int) -> None:
        """Read the rows that are new; `end` is the row of the session's current position."""


Part = TypeVar("Part", bound=HistoryReducer)


class HistoryFold(Generic[Part]):
    """The reducers of the histories that a session's run is made of: a fork shares those of its parents' steps."""

    def __init__(self, reducer: Callable[[], Part]) -> None:
        self._reducer = reducer
        self._parts: dict[History, Part] = {}

    def parts(self, run: Run) -> Iterator[tuple[History, int, Part]]:
        """Yield each history up to the current position, oldest first: its last row, and what its reducer has read."""
        for history, step in run.parts():
            part = self._parts.get(history)
            if part is None:
                part = self._parts[history] = self._reducer()
            end = step - history.base
            part.read(run, history, end)
            yield history, end, part

    def part(self, history: History) -> Part:
        """Return what the reducer of a history has read."""
        return self._parts[history]


# -- many rows at once ----------------------------------------------------------------------------------------------

MANY: Final = 512  # the number of rows from which numpy pays off
_TABLE: Final = 1 << 20  # the largest range of numbers that are looked up in a table


def to_array(column: array[int], begin: int, end: int) -> Ints:
    """Return a part of a column, as a copy: the run may append meanwhile."""
    import numpy as np

    part = column[begin:end]
    return np.frombuffer(part, dtype=np.dtype(part.typecode)).astype(np.int64)


def compute_rows(ends: array[int], begin: int, end: int) -> tuple[Ints, int, int]:
    """Return the row of each entry of the rows from `begin` to before `end`, and the range of these entries.

    `ends` holds the end of each row's entries.
    """
    import numpy as np

    row_ends = to_array(ends, begin - 1, end)
    return np.repeat(np.arange(begin, end), np.diff(row_ends)), int(row_ends[0]), int(row_ends[-1])


def iter_unknown_pairs(left: Ints, right: Ints, known: Collection[tuple[int, int]]) -> Iterator[tuple[int, int, int]]:
    """Yield (index, left, right) of each pair that is not in `known`, in order; a pair may be repeated."""
    import numpy as np

    if not len(left):
        return
    wide = int(right.max()) + 1
    numbers = left * wide + right
    table = (int(left.max()) + 1) * wide
    inside = [a * wide + b for a, b in known if b < wide and a * wide + b < table]
    if table <= _TABLE:
        is_known = np.zeros(table, dtype=bool)
        is_known[inside] = True
        places = np.flatnonzero(~is_known[numbers])
    else:
        places = np.flatnonzero(~np.isin(numbers, np.array(inside, dtype=np.int64)))
    for index in places.tolist():
        yield index, int(left[index]), int(right[index])


def group_indices(numbers: Ints, first: int) -> Iterator[tuple[int, array[int]]]:
    """Yield each distinct number with its indices, counted from `first`, in order."""
    import numpy as np

    if not len(numbers):
        return
    small: Any = np.uint16 if numbers.max() < 1 << 16 else np.int64  # small integers are sorted faster
    order = np.argsort(numbers.astype(small), kind="stable")
    sorted_ = numbers[order]
    begins = np.flatnonzero(np.concatenate([[True], sorted_[1:] != sorted_[:-1]]))
    for begin, end in zip(begins.tolist(), [*begins[1:].tolist(), len(order)], strict=True):
        yield int(sorted_[begin]), array("q", (order[begin:end] + first).tobytes())
