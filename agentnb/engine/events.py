"""events: what nodes and people emit, numbered in one sequence a run, kept for every dialect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentnb.board.values import freeze
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


def numbered(run: Run, work: Work | None, type_: str, payload: Any, actor: str) -> Event:
    """Return a new event, numbered after those before it; its id and its cause follow from that."""
    own = work.emitted[-1].seq if work is not None and work.emitted else 0
    seq = max(run.last_event(), own) + 1
    cause = work.event if work is not None else None
    return Event(
        seq=seq,
        step=None,
        id=f"evt_{seq:03d}",
        type=type_,
        actor=actor or (work.node.id if work is not None else "user"),
        cause=cause.id if cause is not None else None,
        time=run.clock.now(),
        payload=freeze(payload),
        at=run.position,
    )


def emit_from_outside(run: Run, type_: str, payload: Any) -> Event:
    """Keep an event that a person emits where the run stands, and queue it for its listeners."""
    from agentnb.engine.frontier import expanded

    event = numbered(run, None, type_, payload, "user")
    run.history.events.append(event)
    if run.plan.listeners:
        entry = run.tables.act(ActRow(-1, 0, 0, event.seq))
        queue = expanded(run, [(number, CARRIED) for number in [*run.frontier(), entry]])
        amend(run, [number for number, _ in queue])
    return event
