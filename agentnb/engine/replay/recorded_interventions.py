"""Recorded interventions, repeated in the replay at the same positions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from agentnb.board.paths import APPEND, DELETE
from agentnb.board.values import ABSENT
from agentnb.engine.control import interventions
from agentnb.engine.core import supersteps, time_travel
from agentnb.engine.core.drivers import find_heads
from agentnb.engine.core.event_queue import enqueue, settle
from agentnb.engine.core.work import Append
from agentnb.engine.replay.divergence import Divergence
from agentnb.errors import AgentNbError, format_error

if TYPE_CHECKING:
    from agentnb.engine.core.frames import Activation
    from agentnb.engine.core.history import Event, Intervention
    from agentnb.engine.core.run import Run
    from agentnb.engine.replay.divergence import Sides
    from agentnb.engine.replay.step_record import RecordedIntervention, WriteRecord


def redo(run: Run, sides: Sides, recorded: RecordedIntervention, number: int) -> Divergence | None:
    """Repeat an intervention made after step `number`; return the divergence if it cannot be repeated."""
    intervention = recorded.intervention
    try:
        if recorded.event is not None:
            _emit(run, sides, recorded.event)
        elif intervention is not None and recorded.write is not None:
            _edit(run, sides, intervention, recorded.write)
        elif intervention is not None and intervention.action == "front":
            row = sides.map_activation(sides.record.tables.activations[intervention.new["turn"]])
            _make_next(run, lambda activation: activation.row == row)
        elif intervention is not None and intervention.action == "set_next":
            _make_next(run, lambda activation: activation.node.id == intervention.old)
            interventions.set_next(run, intervention.target)
    except AgentNbError as error:
        what, target = ("emit", "") if intervention is None else (intervention.action, intervention.target)
        why = f"the intervention {what} {target!r} cannot be repeated: {format_error(error)}"
        replayed_value = ABSENT if intervention is None else intervention.new
        return Divergence(number, None, "act", target, replayed_value, ABSENT, why, ends=recorded.write is None)
    return None


def list_next_activations(run: Run) -> list[Activation]:
    """Return the activations that may run next: in parallel branches, one per branch."""
    settle(run)
    if any(frame.row.branch >= 0 for frame in run.frames.values()):
        return find_heads(run)
    head = interventions.get_current_activation(run)
    return [] if head is None else [head]


def _make_next(run: Run, is_meant: Callable[[Activation], bool]) -> None:
    """Make the activation that is meant the next one; it may be behind those of other branches."""
    activation = next(filter(is_meant, list_next_activations(run)), None)
    if activation is not None:
        time_travel.move_to_front(run, activation)


def to_written_value(row: WriteRecord) -> Any:
    """Return the value that a node would return to make a write."""
    return ABSENT if row.op == DELETE else Append(row.new) if row.op == APPEND else row.new


def _edit(run: Run, sides: Sides, intervention: Intervention, wrote: WriteRecord) -> None:
    """Repeat an edit. It is recorded, because in a superstep edits are visible and what other nodes write is not."""
    scope, history = time_travel.get_scopes(run).get(sides.frames.get(wrote.scope, -1)), run.history
    if scope is not None:
        run.write(scope, wrote.path, to_written_value(wrote))
        supersteps.show_edit(run, scope, str(wrote.path[0]))
        history.write_ends[run.position - history.base] = len(history.new_values)
        history.interventions.append(intervention._replace(step=run.position))


def _emit(run: Run, sides: Sides, event: Event) -> None:
    """Record an external event, with its recorded number if that is free, and queue it for its listeners."""
    last_event = run.last_event()
    seq = event.seq if event.seq > last_event else last_event + 1
    emitted = event._replace(seq=seq, id=event.id if seq == event.seq else f"evt_{seq:03d}", at=run.position)
    run.history.events.append(emitted)
    sides.events[event.seq], sides.ids[event.id] = emitted.seq, emitted.id
    enqueue(run, emitted)


__all__ = ["list_next_activations", "redo", "to_written_value"]
