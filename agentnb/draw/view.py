"""view: what a drawing shows of a run, as plain values. A drawing never asks a session."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Reactions:
    """What events have done in a run: how many have come of each type, whom they set off, who told of them.

    `heard` counts deliveries by (type, node), `told` events by (node, type); an event from outside is nobody's.
    The last step was the delivery `last`, by type and node, and told of events of the types `last_told`.
    """

    came: Mapping[str, int] = field(default_factory=dict)
    heard: Mapping[tuple[str, str], int] = field(default_factory=dict)
    told: Mapping[tuple[str, str], int] = field(default_factory=dict)
    last: tuple[str, str] | None = None
    last_told: AbstractSet[str] = frozenset()


@dataclass(frozen=True, slots=True)
class RunView:
    """Where a run stands, for a picture.

    `visited` counts the steps of each node. `board` holds the values as they are: the drawing cuts and masks them.
    `written` and `read` are the keys that the last step touched; paths such as `ticket.text` mark their key.
    `seen_reads` and `seen_writes` are the keys that each node has touched so far, for the data-flow edges.
    `taken` are the edges that the run has gone along so far, by their place in `recipe.edges`.
    `reactions` say what events have done, where they set nodes off; `stops_at` are types of events with a breakpoint.
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
    reactions: Reactions | None = None
    stops_at: AbstractSet[str] = frozenset()

    def marks(self, node: str) -> tuple[str, ...]:
        """Return the classes that a node carries in the picture, in a fixed order."""
        marks = {
            "visited": self.visited.get(node, 0) > 0,
            "next": node in self.next,
            "waiting": node in self.waiting,
            "failed": node in self.failed,
            "current": node == self.current,
            "breakpoint": node in self.breakpoints,
            "last": self.reactions is not None and self.reactions.last is not None and node == self.reactions.last[1],
        }
        return tuple(name for name, holds in marks.items() if holds)
