"""Interventions: what a person does to a run, recorded: edits, another next node, a skipped step.

An intervention at the end of the history belongs to its last step. An intervention in the past, or where a fork has
started, starts a separate branch, so that shared steps never change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from agentnb.board.paths import apply_change
from agentnb.board.scopes import Scope, make_closed_scope_error, put
from agentnb.board.values import ABSENT, freeze
from agentnb.engine.core import scheduler, supersteps
from agentnb.engine.core.event_queue import enqueue, settle
from agentnb.engine.core.events import make_event
from agentnb.engine.core.frames import Activation, Frame
from agentnb.engine.core.history import LEAVE, SKIPPED, Event, Intervention, carry
from agentnb.engine.core.pending_step import record_interrupted
from agentnb.engine.core.run import Run
from agentnb.engine.core.step import finish
from agentnb.engine.core.time_travel import open_tip, repair
from agentnb.engine.core.work import split_op
from agentnb.errors import ExecutionError, Problem
from agentnb.expressions.paths import format_path, resolve_path

_ACTOR: Final = ContextVar("_ACTOR", default="user")


@contextmanager
def acting_as(name: str) -> Iterator[None]:
    """Record interventions made in this context under `name` instead of `user`, for example for an assistant."""
    token = _ACTOR.set(name)
    try:
        yield
    finally:
        _ACTOR.reset(token)


def get_actor() -> str:
    """Return the name under which interventions are recorded in this context."""
    return _ACTOR.get()


def get_current_scope(run: Run) -> Scope:
    """Return the scope at the run's position: that of the next activation, or the root scope."""
    if len(run.frames) == 1:
        return run.root.scope
    head = get_current_activation(run)
    return run.root.scope if head is None else head.scope


def get_current_activation(run: Run) -> Activation | None:
    """Return the next activation; None at the end."""
    at = run.current_history
    if run.queue_start >= at.push_ends[run.position - at.base]:
        return None
    number = at.push_activations[run.queue_start]
    return run.find_activation(number) if run.tables.activations[number].node >= 0 else None


def _match_next_event(run: Run) -> None:
    """Match the event at the front of the queue, if it was emitted from outside, so that its first delivery is next."""
    if get_current_activation(run) is None and run.frontier():
        open_tip(run, amend=True)
        settle(run)


def record_intervention(
    run: Run, action: str, target: str, old: Any = ABSENT, new: Any = ABSENT, by: str | None = None
) -> None:
    """Record an intervention at the run's position, with a snapshot of its values."""
    run.history.interventions.append(
        Intervention(run.position, action, target, freeze(old), freeze(new), by or get_actor(), run.clock.peek())
    )


def record_steps_in_flight(run: Run) -> None:
    """Record which steps are in flight during an intervention, and how far each of them is."""
    run.history.interventions += _record_holds(run)
    for pending_step in run.pending_steps.values():
        pending_step.intervention_count += 1


def _record_holds(run: Run) -> list[Intervention]:
    return [record_interrupted(run, pending_step, "held", run.position) for pending_step in run.pending_steps.values()]


def edit(run: Run, changes: Mapping[str, Any]) -> None:
    """Write values at dotted paths at the run's position: all of them or, if there is a problem, none.

    Raises:
        BoardError: the board does not accept a value or a path.
    """
    repair(run)
    _check_edit(run, get_current_scope(run), changes)
    open_tip(run, amend=True)
    scope, history, interventions, pending_steps = (
        get_current_scope(run),
        run.history,
        _record_holds(run),
        [*run.pending_steps.values()],
    )
    row, now = run.position - history.base, run.clock.peek()
    for text, value in changes.items():
        path = resolve_path(text, scope.visible_items())
        old = scope.get_at(path)
        run.write(scope, path, value)
        supersteps.show_edit(run, scope, str(path[0]))
        interventions.append(
            Intervention(run.position, "edit", format_path(path), old, scope.get_at(path), get_actor(), now)
        )
    end = len(history.new_values)
    # No call in between: an interrupt leaves either the whole edit or nothing.
    history.write_ends[row] = end
    history.interventions += interventions
    for pending_step in pending_steps:
        pending_step.intervention_count += 1


def _check_edit(run: Run, scope: Scope, changes: Mapping[str, Any]) -> None:
    """Raise the error that these changes would cause, because a rejected edit must not create a branch."""
    seen, reactive = scope.make_view("trial"), run.plan.recipe.reactive
    for text, value in changes.items():
        path = resolve_path(text, seen.visible_items())
        if scope.open:
            raise make_closed_scope_error(scope, path)
        op, new = split_op(value)
        put(seen, path[0], apply_change(seen.get(path[0]), path[1:], op, freeze(new), path))
        if reactive is not None:
            reactive.check_value(str(path[0]), seen.get(path[0]))


def emit(run: Run, type_: str, payload: Any, by: str, **options: Any) -> Event:
    """Record an external event, queue it for the nodes that it triggers, and apply its projection to the board."""
    reactive, scope, history = run.plan.recipe.reactive, run.root.scope, run.history
    event = make_event(run, None, type_, payload, by, options)
    writes = () if reactive is None else reactive.project(run, event)  # raises for an invalid event
    history.events.append(event)
    enqueue(run, event)
    record_intervention(run, "emit", type_, ABSENT, event.payload, by)
    for path, value in writes:  # recorded as edits, as part of the intervention
        old = scope.get_at(path)
        run.write(scope, path, value)
        new = scope.get_at(path)
        if old is not new:
            history.interventions.append(
                Intervention(run.position, "edit", format_path(path), old, new, by, run.clock.peek())
            )
    history.write_ends[run.position - history.base] = len(history.new_values)
    return event


def set_next(run: Run, node: str) -> None:
    """Make `node` the next one, replacing the current one; frames that do not contain it are closed.

    Raises:
        ExecutionError: X101, there is no such node; X107, it is in a region that is not open; X123, it is triggered by
            events, and none waits for it.
    """
    number = run.plan.number(node)
    region = run.plan.nodes[number].node.scope
    repair(run)
    _match_next_event(run)
    queue, head = run.frontier(), get_current_activation(run)
    frame: Frame | None = run.root if head is None else head.frame
    while frame is not None and frame.row.region != region:
        frame = frame.parent
    if frame is None:  # it may already be queued in another branch
        frame = next(
            (run.find_activation(entry).frame for entry in queue if run.tables.activations[entry].node == number), None
        )
    if frame is None:
        raise ExecutionError(
            Problem(
                "X107",
                f"{node!r} cannot be next here",
                f"region {region!r}",
                "it is inside a node whose frame is not open, so it has no scope",
                f"set the next node to {run.plan.recipe.regions[region].owner!r}, and step into it",
            )
        )
    if run.plan.recipe.reactive is not None:
        activation = _find_queued(run, number)
    elif run.plan.supersteps:
        activation = supersteps.make_superstep_activation(run, number, frame)
    else:
        activation = run.get_activation(number, frame)
    closed = _find_frames_to_close(run, head, frame)
    # Already queued (in another branch, or further back): only move it to the front
    if activation.id in queue and not closed:
        rest = list(queue)
        rest.remove(activation.id)
    else:
        rest = [
            entry for entry in queue[1:] if entry != activation.id and scheduler.get_frame(run, entry) not in closed
        ]
    open_tip(run, amend=True)
    new = Intervention(
        run.position, "set_next", node, None if head is None else head.node.id, node, get_actor(), run.clock.peek()
    )
    _replace_queue(run, [activation.id, *rest], closed, new)


def _find_queued(run: Run, number: int) -> Activation:
    """Return the first queued activation of a node of a reactive run.

    X123: a node that is triggered only by events cannot be next if no event is queued for it.
    """
    queued = next((entry for entry in run.frontier() if run.tables.activations[entry].node == number), None)
    if queued is None:
        node = run.plan.nodes[number].node.id
        raise ExecutionError(
            Problem("X123", f"{node!r} cannot be next here", f"node {node!r}",
                    "it is triggered by events, and no event is queued for it at this step",
                    "emit the event: session.emit(type, payload)")
        )  # fmt: skip
    return run.find_activation(queued)


def _replace_queue(run: Run, queue: list[int], closed: list[Frame], intervention: Intervention) -> None:
    """Replace the frontier of the last step, and close the frames that are left by this."""
    run.note_joins(queued=True)
    history, step = run.history, run.position
    row, start = step - history.base, len(history.push_activations)
    history.push(carry(queue))
    end = len(history.push_activations)
    closing = tuple(frame.id for frame in sorted(closed, key=lambda frame: -frame.depth))
    shut = history.closed_frames.get(step, ()) + closing
    if closing:
        history.mark_rare(step)
    # No call in between: an interrupt leaves either the whole intervention or nothing.
    if closing:
        history.closed_frames[step] = shut
        run.dirty = True
    history.push_ends[row] = end
    history.queue_starts[row] = run.queue_start = start
    history.interventions += [intervention]
    for number in closing:
        run.close_frame(number)
    run.dirty = False


def _find_frames_to_close(run: Run, head: Activation | None, frame: Frame) -> list[Frame]:
    """Return the frames to close when the run continues in `frame`: those of its current node, and all inside them."""
    if head is None:
        return []
    owner = head.node.index if head.purpose else None
    step_in = head.frame
    while step_in is not frame and step_in.parent is not None:
        owner = step_in.row.owner if step_in.parent is frame else owner
        step_in = step_in.parent
    tops = [top for top in run.frames.values() if top.parent is frame and top.row.owner == owner]
    return [other for other in run.frames.values() if any(other.is_within(top) for top in tops)]


def skip(run: Run, writes: Mapping[str, Any]) -> int:
    """Continue as if the next node had written these values; the conditions of its edges choose what follows.

    Raises:
        ExecutionError: X108, there is no next node; or a condition fails, or cannot be evaluated without the node.
    """
    _match_next_event(run)
    activation = get_current_activation(run)
    if activation is None:
        raise ExecutionError(
            Problem("X108", "there is no step to skip", "the end of the run", "no node is next", "go back first")
        )
    open_tip(run, amend=True)
    step, now = run.position, run.ns()
    route = supersteps.choose_after_skip(run, activation, writes) if run.plan.supersteps else ()
    if activation.purpose:
        scheduler.leave(run, activation)
    for key, value in writes.items():
        run.write(activation.scope, (key,), value)
    chosen = scheduler.choose_targets(run, activation, route, None)
    pos = scheduler.advance(run, activation, [*chosen, *scheduler.find_next_activations(run, activation)])
    run.history.interventions.append(
        Intervention(step, "skip", activation.node.id, ABSENT, dict(writes), get_actor(), run.clock.peek())
    )
    return finish(run, activation, now, SKIPPED | (LEAVE if activation.purpose else 0), pos)
