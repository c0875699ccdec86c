"""Event reactions: counts of event types, their emitters, and the nodes they activated. Reads each row once."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from typing import TYPE_CHECKING, Any

from agentnb.session.history_fold import HistoryFold

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from agentnb.draw.run_view import Reactions
    from agentnb.engine.core.history import Event, History
    from agentnb.engine.core.run import Run

EventRoute = tuple[str, str, str]  # emitter ("" for events from outside), event type, activated node


class _Rows:
    """What is known of one history: the contribution of each step and event, and how far they are counted."""

    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self.steps: list[EventRoute | None] = [None]
        self.emissions: list[tuple[str, str]] = []  # emitter and type of each event
        self.last: Event | None = None
        self.at = (0, 0)
        self.counts: Counter[Any] = Counter()  # of the first `at` steps and events

    def _fits(self, history: History) -> bool:
        """Return True if the rows read so far are still there: the last step may have been undone."""
        known = len(self.emissions)
        same = not known or (known <= len(history.events) and history.events[known - 1] is self.last)
        return same and len(self.steps) <= len(history.step_activations)

    def read(self, run: Run, history: History, end: int) -> None:
        """Read the rows added since the last call; from the start if the last of them was undone."""
        if not self._fits(history):
            self._clear()
        events = bisect_right(history.events, history.base + end, key=_get_event_step)
        new = history.events[len(self.emissions) : events]
        for event in new:
            self.emissions.append((_find_emitter(run, event), event.type))
        if new:
            self.last = new[-1]
        for number in range(len(self.steps), end + 1):
            activation = run.tables.activations[history.step_activations[number]]
            delivered = run.get_event(activation.event)
            node = run.plan.nodes[activation.node].id
            self.steps.append(None if delivered is None else (_find_emitter(run, delivered), delivered.type, node))

        self._move_to(end, events)

    def _move_to(self, row: int, events: int) -> None:
        """Make `counts` those of the first rows and events; the position may have moved either way."""
        (row0, events0), self.at = self.at, (row, events)
        self.counts.update(_iter_contributions(self.steps[row0 + 1 : row + 1], self.emissions[events0:events]))
        self.counts.subtract(_iter_contributions(self.steps[row + 1 : row0 + 1], self.emissions[events:events0]))


class EventReactions:
    """The effects of events in a session, for its drawing."""

    def __init__(self) -> None:
        self._fold = HistoryFold(_Rows)

    def up_to(self, run: Run) -> tuple[Reactions, set[EventRoute]]:
        """Return the effects of events up to the current position, and each route of an event from node to node."""
        from agentnb.draw.run_view import Reactions

        counts: Counter[Any] = Counter()
        for _, _, rows in self._fold.parts(run):
            counts.update(rows.counts)
        for pending_step in run.pending_steps.values():
            counts.update(
                _iter_contributions(
                    (),
                    [(pending_step.activation.node.id, event.type) for event in pending_step.activation.work.emitted],
                )
            )
        by_type: dict[str, int] = {}
        deliveries: dict[tuple[str, str], int] = {}
        emissions: dict[tuple[str, str], int] = {}
        for (kind, *parts), number in counts.items():
            if number > 0 and kind == "event":
                by_type[parts[0]] = by_type.get(parts[0], 0) + number
                if parts[1]:
                    emissions[parts[1], parts[0]] = number
            elif number > 0:
                deliveries[parts[1], parts[2]] = deliveries.get((parts[1], parts[2]), 0) + number
        routes = {tuple(parts) for (kind, *parts), number in counts.items() if kind == "delivery" and number > 0}
        return Reactions(by_type, deliveries, emissions, *self._find_last(run)), routes

    def _find_last(self, run: Run) -> tuple[tuple[str, str] | None, frozenset[str]]:
        """Return the type and node of the last step's delivery, and the types of the events that it emitted."""
        at, row = run.current_history, run.position - run.current_history.base
        route = self._fold.part(at).steps[row] if row else None
        if route is None:
            return None, frozenset()
        first = bisect_right(at.events, run.position - 1, key=_get_event_step)
        end = bisect_right(at.events, run.position, key=_get_event_step)
        return route[1:], frozenset(event.type for event in at.events[first:end] if event.step == run.position)


def _iter_contributions(
    steps: Iterable[EventRoute | None], emitted: Iterable[tuple[str, str]]
) -> Iterator[tuple[str, ...]]:
    """Yield what steps and events contribute to the counts."""
    yield from (("delivery", *route) for route in steps if route is not None)
    yield from (("event", type_, emitter) for emitter, type_ in emitted)


def _find_emitter(run: Run, event: Event) -> str:
    """Return the node in whose step an event was emitted; empty if in none."""
    if event.step is None:
        return ""
    history = run.find_history_of_step(event.step)
    return run.get_node_id(history.step_activations[event.step - history.base])


def _get_event_step(event: Event) -> int:
    return event.at


__all__ = ["EventReactions", "EventRoute"]
