"""The state of a run that a drawing shows, as plain values. A drawing never accesses a session."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Reactions:
    """The effects of events in a run: how many of each type, which nodes they activated, which nodes emitted them.

    `deliveries` counts deliveries by (type, node), `emissions` emitted events by (node, type); an external event has no
    node. The last step was the delivery `last_delivery`, by type and node, and emitted events of the types
    `last_emitted`.
    """

    counts: Mapping[str, int] = field(default_factory=dict)
    deliveries: Mapping[tuple[str, str], int] = field(default_factory=dict)
    emissions: Mapping[tuple[str, str], int] = field(default_factory=dict)
    last_delivery: tuple[str, str] | None = None
    last_emitted: AbstractSet[str] = frozenset()


@dataclass(frozen=True, slots=True)
class RunView:
    """The state of a run, for a picture.

    `visited` counts the steps of each node. `board` holds the values unchanged: the drawing truncates and masks them.
    `written` and `read` are the keys that the last step touched; paths such as `ticket.text` mark their key.
    `seen_reads` and `seen_writes` are the keys that each node has touched so far, for the data-flow edges. `taken` are
    the edges that the run has taken so far, as indices into `recipe.edges`. `reactions` states what events did, where
    they activate nodes; `stops_at` are event types with a breakpoint.
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
            "last": self.reactions is not None
            and self.reactions.last_delivery is not None
            and node == self.reactions.last_delivery[1],
        }
        return tuple(name for name, holds in marks.items() if holds)
