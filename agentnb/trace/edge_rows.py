"""The rows of the edges table: the edge of the recipe that each step took, and the events delivered to each node."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from agentnb.trace.columns import Columns, Objects, to_objects

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from agentnb.engine.core.history import Event
    from agentnb.trace.row_index import StepIndex


class TakenEdges(NamedTuple):
    """Edges that were taken, one row each.

    `edge` is the number of the edge; UNKNOWN_EDGE if the recipe has none, or it is not known which one it was. `values`
    are the values of the conditions; None if no edge had one.
    """

    steps: NDArray[Any]
    source: NDArray[Any]
    target: NDArray[Any]
    edge: NDArray[Any]
    values: Objects | None


class DeliveredEvents(NamedTuple):
    """Events delivered to nodes, one row each, with `types` and `ids`; `order` merges them with the edges."""

    steps: NDArray[Any]
    source: NDArray[Any]
    target: NDArray[Any]
    types: Objects
    ids: Objects
    order: NDArray[Any]

    def join(self, edges: NDArray[Any], deliveries: NDArray[Any]) -> NDArray[Any]:
        """Return a column of both tables, in the order of their steps."""
        return np.concatenate([deliveries, edges])[self.order] if len(deliveries) else edges


def find_taken_edges(columns: Columns) -> TakenEdges:
    """Return the edges that the steps of a run took, without event deliveries: see `find_deliveries`."""
    steps, target, edge, values = columns.taken
    return TakenEdges(steps, columns.node_at(steps), target, edge, values)


def find_deliveries(columns: Columns, taken: TakenEdges) -> DeliveredEvents:
    """Return the deliveries of a run; `step` is the one in which an event reached its node."""
    rows = list(iter_deliveries(columns.reading))
    steps, source, target = (
        np.array([getattr(row, name) for row in rows], dtype=np.int64) for name in ("step", "source", "target")
    )
    order = np.argsort(np.concatenate([steps, taken.steps]), kind="stable")
    return DeliveredEvents(
        steps,
        source,
        target,
        to_objects([row.event.type for row in rows]),
        to_objects([row.event.id for row in rows]),
        order,
    )


class Delivered(NamedTuple):
    """One delivery: a step, the event that reached its node, and the node that emitted the event.

    Nodes are numbers; `source` is -1 for an event from outside.
    """

    step: int
    source: int
    target: int
    event: Event


def iter_deliveries(reading: StepIndex) -> Iterator[Delivered]:
    """Yield the deliveries of a run, step by step."""
    activations = reading.tables.activations
    if all(row.event < 0 for row in activations):
        return
    events = {event.seq: event for event in reading.events()}
    for history, last in reading.parts():
        for row in range(1, last + 1):
            activation = activations[history.step_activations[row]]
            event = events.get(activation.event) if activation.event >= 0 else None
            if event is not None:
                yield Delivered(history.base + row, _find_emitter(reading, event), activation.node, event)


def _find_emitter(reading: StepIndex, event: Event) -> int:
    """Return the node in whose step an event was emitted; -1 if in none."""
    return -1 if event.step is None else reading.activation(event.step).node


__all__ = ["Delivered", "DeliveredEvents", "TakenEdges", "find_deliveries", "find_taken_edges", "iter_deliveries"]
