"""Whether a run makes progress: the boards that each node had at its visits, for breakpoints that ask."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agentnb.engine.persistence.state_projection import StateProjection
from agentnb.engine.replay.equality import iter_innermost_differences

if TYPE_CHECKING:
    from agentnb.engine.control.breakpoints import Side
    from agentnb.engine.core.history import History
    from agentnb.engine.core.run import Run

_PLAIN: Final = frozenset({str, int, float, bool, bytes, type(None)})
_WIDTH, _DEPTH = 16, 3  # a mark looks at this many parts and levels of a value


class _Visit(NamedTuple):
    """A node at some position: what tells its visits from those of others, and the board that it saw."""

    key: tuple[Any, ...]
    board: dict[str, Any]


class Progress:
    """The visits of nodes up to the current position, read from the history: it knows what ran before it was asked.

    Only a mark of each board is compared at first; boards with equal marks are then compared in full.
    """

    def __init__(self) -> None:
        self._chain: list[History] = []
        self._visits: list[dict[Side, _Visit]] = []  # by position
        self._positions: dict[tuple[Any, ...], list[int]] = {}  # key -> positions
        self._replica: StateProjection | None = None  # after the last of the positions
        self._writes = 0  # rows of writes that it has applied

    def is_repeated(self, run: Run, side: Side) -> bool:
        """Return True if the next node (`before`) or the last one (`after`) had an equal board at an earlier visit."""
        self.follow(run)
        visit = self._visits[run.position].get(side)
        if visit is None:
            return False
        return any(
            at < run.position and _are_equal(self._visits[at][side].board, visit.board)
            for at in self._positions[visit.key]
        )

    def follow(self, run: Run) -> None:
        """Take in the steps since the last call; forget those that were gone back over."""
        chain = run.chain[: run.chain.index(run.current_history) + 1]
        if len(chain) != len(self._chain) or any(a is not b for a, b in zip(chain, self._chain, strict=True)):
            self._chain, self._visits, self._positions, self._replica = chain, [], {}, None
        if run.position < len(self._visits) - 1:
            while len(self._visits) > run.position + 1:
                self._drop()
            self._replica = None
        elif self._visits and run.position == len(self._visits) - 1 and self._replica is None:
            return
        ends = [*(part.base for part in chain[1:]), run.position]
        first = len(self._visits) - 1  # an intervention after the last known step may have changed its board
        for part, end in zip(chain, ends, strict=True):
            if part is not chain[-1] and 0 <= end <= first:
                continue
            for step in range(max(first, part.base), end + 1):
                self._add_visit(part, step)

    def _drop(self) -> None:
        for visit in self._visits.pop().values():
            self._positions[visit.key].pop()

    def _add_visit(self, history: History, step: int) -> None:
        row, replica = step - history.base, self._replica
        if replica is None:
            replica = self._replica = StateProjection(history.tables)
            replica.move_to(history, step)
        elif row == 0 and len(self._visits) == step + 1 and history is not self._chain[0]:
            replica.apply_steps(history, step, step, 0)  # what was changed where the fork begins
        else:
            replica.apply_steps(history, min(step, len(self._visits) - 1), step, self._writes)
        self._writes = history.write_ends[row]
        if len(self._visits) == step + 1:
            self._drop()
        visits = dict(_iter_visits(history, row, replica))
        self._visits.append(visits)
        for visit in visits.values():
            self._positions.setdefault(visit.key, []).append(step)


def _iter_visits(history: History, row: int, replica: StateProjection) -> Iterator[tuple[Side, _Visit]]:
    """Yield the visit of the next node after a row, and that of the node whose step the row is."""
    if history.queue_starts[row] < history.push_ends[row]:
        yield "before", _visit("before", history, history.push_activations[history.queue_starts[row]], replica)
    if row:
        yield "after", _visit("after", history, history.step_activations[row], replica)


def _visit(side: Side, history: History, number: int, replica: StateProjection) -> _Visit:
    activation = history.tables.activations[number]
    board = dict(replica.visible_items(history.tables.frames[activation.frame].scope))
    return _Visit((side, activation.frame, activation.node, activation.purpose, _mark(board)), board)


def _mark(value: Any, depth: int = _DEPTH) -> int:
    """Return a number that is the same for equal values, and mostly another for others."""
    kind = type(value)
    if kind in _PLAIN:
        return hash((kind.__name__, value)) if value == value else 0  # noqa: PLR0124  (not a number)
    if depth and isinstance(value, Mapping):
        parts = value.items() if len(value) <= _WIDTH else ()
        return hash((len(value), sum(hash((key, _mark(part, depth - 1))) for key, part in parts)))
    if depth and isinstance(value, list | tuple):
        ends = [*islice(value, _WIDTH), *([value[-1]] if value else [])]
        return hash((len(value), *(_mark(part, depth - 1) for part in ends)))
    return 0


def _are_equal(left: dict[str, Any], right: dict[str, Any]) -> bool:
    return left.keys() == right.keys() and all(
        left[key] is value or next(iter(iter_innermost_differences(left[key], value)), None) is None
        for key, value in right.items()
    )


__all__ = ["Progress"]
