"""Event queue: the frontier of a reactive run: a queue of events, each with the activations that it triggers.

If the nodes triggered by an event are known at once, their activations are queued. Otherwise the event itself is
queued; when it reaches the front, `match_events` replaces it with the activations that it triggers. Only the front of
the queue is read, so the length of the queue does not affect the cost of a step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from agentnb.engine.core.events import make_event
from agentnb.engine.core.history import LATE, ActivationRow, carry
from agentnb.engine.core.time_travel import amend

if TYPE_CHECKING:
    from agentnb.engine.core.frames import Activation
    from agentnb.engine.core.history import Event
    from agentnb.engine.core.run import Run
    from agentnb.recipe.model import Reactive

_new_row = tuple.__new__  # the constructor of a named tuple costs twice as much


def make_entries(run: Run, events: Sequence[Event]) -> list[int]:
    """Return the queue entries for these events."""
    reactive, entries = _get_reactive(run), list[int]()
    activation, index = run.tables.add_activation, run.plan.index
    for event in events:
        if not reactive.has_listeners(event):
            continue
        names = reactive.list_triggered(run, event)
        if names:
            entries += [activation(_new_row(ActivationRow, (index[name], 0, 0, event.seq, -1))) for name in names]
        else:
            entries.append(activation(_new_row(ActivationRow, (-1, 0, 0, event.seq, -1))))
    return entries


def advance(run: Run, activation: Activation) -> int:
    """Queue the events emitted by a step, remove its own activation, and return the new start of the queue."""
    history, emitted = run.history, activation.work.emitted
    if emitted:
        new = make_entries(run, emitted)
        history.push(carry(new))
    _forget(run, activation)
    start = run.queue_start
    if history.push_activations[start] == activation.id:
        at = history.row_after(start)
    else:  # a person has moved another activation to the front
        rest = history.queue(start, len(history.push_activations))
        rest.remove(activation.id)
        at = _write(run, rest)
    over = None if activation.event < 0 or activation.row.about <= LATE else activation.event
    return match_events(run, at, over, emitted)


def match_events(run: Run, at: int, over: int | None = None, emitted: Sequence[Event] = ()) -> int:
    """Match the events at the front of the queue until an activation is at the front.

    Return the new start of the queue.

    Args:
        at: where the queue begins.
        over: the number of the event whose last activation may just have ended.
        emitted: the events of the step being committed, which are not in the history yet.
    """
    history, reactive, activations = run.history, _get_reactive(run), run.tables.activations
    while True:
        row = activations[history.push_activations[at]] if at < len(history.push_activations) else None
        if over is not None and (row is None or row.event != over or row.about <= LATE):
            late = reactive.list_delayed(run, _find_event(run, over, emitted))
            if late:
                return _insert_before(
                    run, at, [_make_activation_id(run, node, event, about) for node, about, event in late]
                )
        if row is None or row.node >= 0:
            return at
        over = row.event
        deliveries = reactive.list_deliveries(run, _find_event(run, over, emitted))
        if deliveries:
            return _insert_before(
                run, history.row_after(at), [_make_activation_id(run, name, over, about) for name, about in deliveries]
            )
        at = history.row_after(at)


def settle(run: Run) -> None:
    """Match the external events at the front of the queue at the run's position, as part of its last step."""
    history = run.history
    if run.plan.recipe.reactive is None or run.current_history is not history or run.position != history.tip:
        return
    row, at = run.position - history.base, match_events(run, run.queue_start)
    history.push_ends[row] = len(history.push_activations)
    history.queue_starts[row] = run.queue_start = at


def match_again(run: Run) -> None:
    """Queue the events that wait at the run's position for the nodes that listen to them now.

    Of the event that is being delivered, the activations of nodes that are still in the recipe remain.
    """
    activations, plan, last = run.tables.activations, run.plan, run.get_last_activation()
    before, queue = run.frontier(), dict[int, None]()
    for number in before:
        row = activations[number]
        if row.event >= 0 and row.about > LATE and (last is None or row.event != last.event):
            queue |= dict.fromkeys(make_entries(run, [_find_event(run, row.event, ())]))
        elif plan.nodes[row.node].id in plan.index:
            queue[number] = None
    if [*queue] != before:
        amend(run, [*queue])
    settle(run)


def append(run: Run, event: Event) -> None:
    """Queue an external event as part of the last step; it is matched when it reaches the front."""
    history, new = run.history, make_entries(run, [event])
    row = run.position - history.base
    history.push(carry(new))
    history.push_ends[row] = len(history.push_activations)


def _insert_before(run: Run, at: int, turns: Sequence[int]) -> int:
    """Insert activations before the queue that begins at `at` without copying it; return the new start of the queue."""
    start = _write(run, turns)
    run.history.insert_before(at, start)
    return start


def _write(run: Run, queue: Sequence[int]) -> int:
    """Append activations to the push rows; return where they begin."""
    history = run.history
    start = len(history.push_activations)
    history.push(carry(queue))
    return start


def _make_activation_id(run: Run, name: str, event: int, about: int) -> int:
    return run.tables.add_activation(ActivationRow(run.plan.index[name], 0, 0, event, about))


def _forget(run: Run, activation: Activation) -> None:
    """Forget a finished activation triggered by an event: a reactive run has as many of them as steps."""
    if activation.event >= 0:
        run.live_activations.pop(activation.id, None)
        activation.frame.activations.pop(activation.id, None)


def _find_event(run: Run, seq: int, emitted: Sequence[Event]) -> Event:
    found = next((event for event in emitted if event.seq == seq), None) or run.get_event(seq)
    assert found is not None
    return found


def _get_reactive(run: Run) -> Reactive:
    reactive = run.plan.recipe.reactive
    assert reactive is not None
    return reactive


def emit_from_outside(run: Run, type_: str, payload: Any, actor: str = "user", **options: Any) -> Event:
    """Record an event that a person emits at the run's position, and queue it for the nodes that it triggers."""
    event = make_event(run, None, type_, payload, actor, options)
    run.history.events.append(event)
    enqueue(run, event)
    return event


def enqueue(run: Run, event: Event) -> None:
    """Queue an external event at the run's position."""
    from agentnb.engine.core.scheduler import expand

    if run.plan.recipe.reactive is not None:
        append(run, event)
    elif run.plan.listeners:
        entry = run.tables.add_activation(ActivationRow(-1, 0, event=event.seq))
        queue = expand(run, carry([*run.frontier(), entry]))
        amend(run, [number for number, _, _ in queue])


__all__ = ["advance", "append", "emit_from_outside", "enqueue", "make_entries", "match_again", "match_events", "settle"]
