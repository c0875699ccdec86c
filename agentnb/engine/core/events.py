"""Events that nodes and people emit, numbered in one sequence per run and recorded for every dialect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentnb.engine.core import event_queue
from agentnb.engine.core.event_ids import numbered
from agentnb.engine.core.history import CARRIED, ActRow, Event
from agentnb.engine.core.time_travel import amend

if TYPE_CHECKING:
    from agentnb.engine.core.run import Run


def seen(run: Run) -> list[Event]:
    """Return the events of a run up to its position, in order, without its unseen ones (see `Run`)."""
    events: list[Event] = []
    for history, end in run.parts():
        first = history.base if history.parent else -1
        events += [event for event in history.events if first <= event.at <= end]
    return [event for event in events if event.seq not in run.unseen] if run.unseen else events


def emit_from_outside(run: Run, type_: str, payload: Any, actor: str = "user", **words: Any) -> Event:
    """Record an event that a person emits at the run's position, and queue it for the nodes that it triggers."""
    event = numbered(run, None, type_, payload, actor, words)
    run.history.events.append(event)
    enqueue(run, event)
    return event


def enqueue(run: Run, event: Event) -> None:
    """Queue an external event at the run's position."""
    from agentnb.engine.core.scheduler import expanded

    if run.plan.recipe.reactive is not None:
        event_queue.append(run, event)
    elif run.plan.listeners:
        entry = run.tables.act(ActRow(-1, 0, 0, event.seq))
        queue = expanded(run, [(number, CARRIED) for number in [*run.frontier(), entry]])
        amend(run, [number for number, _ in queue])
