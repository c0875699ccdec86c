"""view: what a drawing shows of a run, as plain values. A drawing never asks a session."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class RunView:
    """Where a run stands, for a picture.

    `visited` counts the steps of each node. `board` holds the values as they are: the drawing cuts and masks them.
    `written` and `read` are the keys that the last step touched; paths such as `ticket.text` mark their key.
    `seen_reads` and `seen_writes` are the keys that each node has touched so far, for the data-flow edges.
    `taken` are the edges that the run has gone along so far, by their place in `recipe.edges`.
    """

    current: str | None = None
    next: AbstractSet[str] = frozenset()
    visited: Mapping[str, int] = field(default_factory=dict)
    failed: AbstractSet[str] = frozenset()
    waiting: AbstractSet[str] = frozenset()
    breakpoints: AbstractSet[str] = frozenset()
    board: Mapping[str, Any] = field(default_factory=dict)
    written: AbstractSet[str] = frozenset()
    read: AbstractSet[str] = frozenset()
    seen_reads: Mapping[str, AbstractSet[str]] = field(default_factory=dict)
    seen_writes: Mapping[str, AbstractSet[str]] = field(default_factory=dict)
    taken: AbstractSet[int] = frozenset()

    def marks(self, node: str) -> tuple[str, ...]:
        """Return the classes that a node carries in the picture, in a fixed order."""
        marks = {
            "visited": self.visited.get(node, 0) > 0,
            "next": node in self.next,
            "waiting": node in self.waiting,
            "failed": node in self.failed,
            "current": node == self.current,
            "breakpoint": node in self.breakpoints,
        }
        return tuple(name for name, holds in marks.items() if holds)
