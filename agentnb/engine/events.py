"""events: what nodes and people emit, numbered in one sequence a run, kept for every dialect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentnb.board.values import freeze
from agentnb.engine import deliveries
from agentnb.engine.history import CARRIED, ActRow, Event
from agentnb.engine.travel import amend

if TYPE_CHECKING:
    from agentnb.engine.run import Run
    from agentnb.engine.work import Work


def seen(run: Run) -> list[Event]:
    """Return the events of a run up to where it stands, in order."""
    events: list[Event] = []
    for history, end in run.parts():
        first = history.base if history.parent else -1
        events += [event for event in history.events if first <= event.at <= end]
    return events


def numbered(run: Run, work: Work | None, type_: str, payload: Any, actor: str | None, **words: Any) -> Event:
    """Return a new event, numbered after those before it; its id and its cause follow from that.

    `words` are what somebody says of it: id, cause, time, mark; what is said of it stands in place of what follows.
    """
    own = work.emitted[-1].seq if work is not None and work.emitted else 0
    seq = max(run.last_event(), own) + 1
    cause = work.event if work is not None and "cause" not in words else None
    return Event(
        seq=seq,
        step=None,
        id=words.get("id") or f"evt_{seq:03d}",
        type=type_,
        actor=actor if actor is not None else work.node.id if work is not None else "user",
        cause=words.get("cause", None if cause is None else cause.id),
        time=words.get("time") or run.clock.now(),
        payload=freeze(payload),
        at=run.position,
        mark=words.get("mark"),
    )


def emit_from_outside(run: Run, type_: str, payload: Any, actor: str = "user", **words: Any) -> Event:
    """Keep an event that a person emits where the run stands, and queue it for those that it sets off."""
    event = numbered(run, None, type_, payload, actor, **words)
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
