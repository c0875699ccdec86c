"""events: what nodes and people emit, numbered in one sequence a run, kept for every dialect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentnb.engine import deliveries
from agentnb.engine.history import CARRIED, ActRow, Event
from agentnb.engine.numbering import numbered
from agentnb.engine.travel import amend

if TYPE_CHECKING:
    from agentnb.engine.run import Run


def seen(run: Run) -> list[Event]:
    """Return the events of a run up to where it stands, in order; without those that are unseen yet (see `Run`)."""
    events: list[Event] = []
    for history, end in run.parts():
        first = history.base if history.parent else -1
        events += [event for event in history.events if first <= event.at <= end]
    return [event for event in events if event.seq not in run.unseen] if run.unseen else events


def emit_from_outside(run: Run, type_: str, payload: Any, actor: str = "user", **words: Any) -> Event:
    """Keep an event that a person emits where the run stands, and queue it for those that it sets off."""
    event = numbered(run, None, type_, payload, actor, words)
    run.history.events.append(event)
    enqueue(run, event)
    return event


def enqueue(run: Run, event: Event) -> None:
    """Queue an event from outside, where the run stands."""
    from agentnb.engine.frontier import expanded

    if run.plan.recipe.reactive is not None:
        deliveries.append(run, event)
    elif run.plan.listeners:
        entry = run.tables.act(ActRow(-1, 0, 0, event.seq))
        queue = expanded(run, [(number, CARRIED) for number in [*run.frontier(), entry]])
        amend(run, [number for number, _ in queue])
