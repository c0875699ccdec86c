"""breakpoints: where a run stops by itself, and what is watched on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from agentnb.errors import ExecutionError, Problem

if TYPE_CHECKING:
    from agentnb.engine.run import Run

Ask = Callable[[Mapping[str, Any]], Any]


@dataclass(slots=True)
class Breakpoint:
    """A place to stop at: a node (before or after it), or a condition of the board after any step.

    With both, the run stops at the node when the condition holds. `hits` counts how often it was met; it stops from
    the `on_hit`-th time on; with `once` it goes after it has stopped the run.
    """

    id: int
    node: str | None = None
    when: Ask | None = None
    text: str = ""
    side: Literal["before", "after"] = "before"
    on_hit: int = 1
    once: bool = False
    enabled: bool = True
    hits: int = 0


@dataclass(slots=True)
class Breakpoints:
    """The breakpoints of a session; an empty one costs a run nothing.

    `changed` is called when one comes or goes.
    """

    nodes: Callable[[], Mapping[str, Any]]
    changed: Callable[[], None]
    rows: dict[int, Breakpoint] = field(default_factory=dict)
    made: int = 0

    def put(self, **wanted: Any) -> Breakpoint:
        """Add a breakpoint and return it."""
        self.made += 1
        row = self.rows[self.made] = Breakpoint(self.made, **wanted)
        self.changed()
        return row

    def remove(self, which: Breakpoint | int | str) -> None:
        """Remove a breakpoint, by itself, its id, or all those of a node."""
        gone = [row for row in self if which in (row, row.id, row.node)]
        if not gone:
            raise ExecutionError(
                Problem(
                    "X109",
                    f"there is no breakpoint {which!r}",
                    "session.breakpoints",
                    f"there are: {', '.join(f'{row.id} ({row.node or row.text})' for row in self) or 'none'}",
                    "name one of them by its id or its node",
                )
            )
        for row in gone:
            del self.rows[row.id]
        self.changed()

    def clear(self) -> None:
        """Remove all of them."""
        self.rows.clear()
        self.changed()

    def __iter__(self) -> Iterator[Breakpoint]:
        return iter(list(self.rows.values()))

    def __len__(self) -> int:
        return len(self.rows)

    def hit(self, run: Run, ran: str, following: str | None, board: Mapping[str, Any]) -> Breakpoint | None:
        """Return the breakpoint that is met after node `ran`, before node `following`; its hit is counted."""
        for row in self:
            node = following if row.side == "before" else ran
            if not row.enabled or (row.node is not None and row.node != node):
                continue
            if row.when is not None and not row.when(board):
                continue
            row.hits += 1
            if row.hits < row.on_hit:
                continue
            if row.once:
                del self.rows[row.id]
            return row
        return None
