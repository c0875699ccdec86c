"""Events: numbered in one sequence per run and recorded for all dialects, with the default id, time and cause."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from agentnb.board.values import freeze
from agentnb.engine.core.history import Event

if TYPE_CHECKING:
    from agentnb.engine.core.frames import Frame
    from agentnb.engine.core.run import Run
    from agentnb.engine.core.work import Work

_new_event = tuple.__new__  # the constructor of a named tuple costs twice as much


def make_event(run: Run, work: Work | None, type_: str, payload: Any, actor: str | None,
             options: Mapping[str, Any]) -> Event:  # fmt: skip
    """Return a new event with the next number; its default id and cause are derived from it.

    `options` overrides the defaults: id, cause, time, mark.
    """
    last = work.emitted[-1].seq if work is not None and work.emitted else 0
    # Otherwise the last event of the run was emitted by this node
    if not last or run.pending_steps or run.recorded is not None:
        last = max(run.last_event(), last)
    seq = last + 1
    if work is not None and actor is None:
        actor = work.node.id
    get = options.get
    if "cause" in options:
        cause = options["cause"]
    else:
        origin = None if work is None else work.event
        cause = None if origin is None else origin.id
    time = get("time") or (run.clock.now() if work is None else work.now())
    fields = (seq, None, get("id") or f"evt_{seq:03d}", type_, "user" if actor is None else actor, cause,
              time, freeze(payload), run.position, get("mark"))  # fmt: skip
    return _new_event(Event, fields)


def restore_event(event: Event, actor: str | None, options: Mapping[str, Any]) -> Event:
    """Return a previously emitted event with the actor, cause and mark passed now; number, id and time stay."""
    if actor is None and not options:
        return event
    values = {name: options[name] for name in ("cause", "mark") if name in options}
    return event._replace(actor=event.actor if actor is None else actor, **values)


def stamp_events(events: Iterable[Event], step: int) -> list[Event]:
    """Return a step's emitted events as they are recorded, with the number of the step."""
    return [
        _new_event(Event, (seq, step, id_, type_, actor, cause, time, payload, step, mark))
        for seq, _, id_, type_, actor, cause, time, payload, _, mark in events
    ]


def get_visible_events(run: Run) -> list[Event]:
    """Return the events of a run up to its position, in order, without hidden events (see `Run`)."""
    events: list[Event] = []
    for history, end in run.parts():
        events += [event for event in history.events if event.at <= end]
    return [event for event in events if event.seq not in run.hidden_events] if run.hidden_events else events


def get_events_before(run: Run, frame: Frame) -> list[Event]:
    """Return the events that precede the steps of an open frame.

    Events of concurrent branches are left out until the branches have joined: when they are emitted is a matter of
    speed, and a run must not depend on it.
    """
    events = get_visible_events(run)
    own = {(one.row.parent, one.row.opened_at): one.id for one in frame.iter_enclosing() if one.row.branch >= 0}
    if not own:
        return events
    rows = run.tables.frames

    @cache
    def precedes(number: int) -> bool:
        row = rows[number]
        is_concurrent = row.branch >= 0 and own.get((row.parent, row.opened_at), number) != number
        return not is_concurrent and (row.parent < 0 or precedes(row.parent))

    return [event for event in events if event.step is None or precedes(run.get_step_activation(event.step).frame)]


__all__ = ["get_events_before", "get_visible_events", "make_event", "restore_event", "stamp_events"]
