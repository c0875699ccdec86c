"""numbering: the next event of a run: its number, and the id, the time and the cause that follow where none is said."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from agentnb.board.values import freeze
from agentnb.engine.history import Event

if TYPE_CHECKING:
    from agentnb.engine.run import Run
    from agentnb.engine.work import Work

_new_event = tuple.__new__  # the constructor of a named tuple costs twice as much


def numbered(run: Run, work: Work | None, type_: str, payload: Any, actor: str | None,
             words: Mapping[str, Any]) -> Event:  # fmt: skip
    """Return a new event, numbered after those before it; its id and its cause follow from that.

    `words` are what somebody says of it: id, cause, time, mark; what is said of it stands in place of what follows.
    """
    last = work.emitted[-1].seq if work is not None and work.emitted else 0
    if not last or run.flights or run.recorded is not None:  # else it has numbered its last one after all others
        last = max(run.last_event(), last)
    seq = last + 1
    if work is not None and actor is None:
        actor = work.node.id
    said = words.get
    if "cause" in words:
        cause = words["cause"]
    else:
        origin = None if work is None else work.event
        cause = None if origin is None else origin.id
    fields = (seq, None, said("id") or f"evt_{seq:03d}", type_, "user" if actor is None else actor, cause,
              said("time") or run.clock.now(), freeze(payload), run.position, said("mark"))  # fmt: skip
    return _new_event(Event, fields)


def retold(event: Event, actor: str | None, words: Mapping[str, Any]) -> Event:
    """Return an event that was emitted before as its node tells it now, with the number, id and time that it had."""
    if actor is None and not words:
        return event
    said = {name: words[name] for name in ("cause", "mark") if name in words}
    return event._replace(actor=event.actor if actor is None else actor, **said)


def committed(events: Iterable[Event], step: int) -> list[Event]:
    """Return the events that a step has emitted as they are kept, now that it has its number."""
    return [
        _new_event(Event, (seq, step, id_, type_, actor, cause, time, payload, step, mark))
        for seq, _, id_, type_, actor, cause, time, payload, _, mark in events
    ]


__all__ = ["committed", "numbered", "retold"]
