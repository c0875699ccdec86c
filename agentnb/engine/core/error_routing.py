"""Error routing: a failure leads to an error edge, a rescue or an enclosing composite node, or stops the run."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from agentnb.board.masking import register_secrets
from agentnb.engine.core.frames import Activation, Frame
from agentnb.engine.core.history import CANCELLED, ERROR, FAIL, LEAVE, UNCAUGHT, Failure, carry
from agentnb.engine.core.run import FAILED, GO, Run
from agentnb.engine.core.scheduler import (
    Pushes,
    advance,
    choose_targets,
    find_handler,
    find_next_activations,
    get_frame,
    leave,
    make_event_entries,
)
from agentnb.engine.core.supersteps import SuperstepError, find_failed_activation
from agentnb.engine.core.threads import replace_unraisable
from agentnb.errors import AgentRuntimeError, BoardError, format_error
from agentnb.recipe.model import Rescue
from agentnb.user_code import find_line


def fail(run: Run, activation: Activation, error: Exception | SystemExit, started_at: int) -> int:
    """Commit a failed step and schedule its handler. Its writes are discarded unless its kind keeps them."""
    from agentnb.engine.core.time_travel import repair

    repair(run)
    activation, spelled = run.refresh_activation(activation), replace_unraisable(error)
    work = activation.work
    own_writes = [*work.applied_writes, *work.own_writes]
    for values in (work.own_writes, work.applied_writes, work.copies):
        values.clear()  # conditions evaluated from here on see the current board
    # The failure's message may contain the node's inputs.
    register_secrets(activation.scope.visible_items(), owner=run.tables.secrets)
    return _commit_failure(run, activation, _make_failure(run, activation, spelled), own_writes, started_at)


def _make_failure(run: Run, activation: Activation, error: Exception) -> Failure:
    named = error.named if isinstance(error, SuperstepError) else error
    line = find_line(error, activation.node.node.params.get("function"), run.plan.recipe.folder)
    return Failure(type(named).__name__, format_error(error), error, isinstance(error, TimeoutError), line)


def find_handlers(run: Run, activation: Activation, error: Exception) -> Pushes:
    """Record that a step failed after its work, and return the activations of its handlers.

    Raises:
        Exception: the error itself, if no error edge handles it.
    """
    failure = _make_failure(run, activation, error)
    targets = activation.node.timeouts if failure.timeout else activation.node.errors
    if not targets:
        raise error
    register_secrets(activation.scope.visible_items(), owner=run.tables.secrets)
    run.history.errors[run.position + 1] = failure
    return [(find_handler(run, activation, target), None, edge) for target, edge in targets]


def leave_after_failure(run: Run, activation: Activation, started_at: int) -> int:
    """Leave a composite node in which a step failed, by its own error edges or its rescue."""
    step = run.position + 1
    failure = next(at.errors[number] for at in reversed(run.chain) for number in reversed(at.errors) if number < step)
    return _commit_failure(run, activation, failure, [], started_at)


def _commit_failure(
    run: Run, activation: Activation, failure: Failure, own_writes: list[tuple[Any, Any]], started_at: int
) -> int:
    """Commit the step of a failure; `own_writes` holds its writes, for a kind that keeps them."""
    from agentnb.engine.core.step import finish

    work, node = activation.work, activation.node
    work.result = failure.result  # for the conditions of a rescue's edges
    # a failure of the run itself: no handler of the recipe applies
    fatal = isinstance(failure.error, AgentRuntimeError)
    of_node = activation.purpose == FAIL or not isinstance(failure.error, SuperstepError)
    targets = () if fatal or not of_node else node.timeouts if failure.timeout else node.errors
    activation, handlers = _apply_failure(run, activation, own_writes, fatal=fatal)
    run.history.errors[run.position + 1] = failure
    pushes: Pushes = make_event_entries(run, work) if node.kind.keeps_writes else []
    if not (node.kind.keeps_writes or node.kind.keeps_events):
        work.emitted.clear()
    if targets or handlers is not None:
        if activation.purpose:
            leave(run, activation)
        # The handlers of a failure come first in the queue: its error edges, then the edges of a rescue.
        front = [*((find_handler(run, activation, target), None, edge) for target, edge in targets), *(handlers or [])]
        flag = ERROR | (LEAVE if activation.purpose else 0)
        return finish(run, activation, started_at, flag, advance(run, activation, pushes, front))
    if node.kind.keeps_writes:  # the failure of a behavior is an event of its run and does not end it
        return finish(run, activation, started_at, ERROR, advance(run, activation, pushes))
    catcher = None if fatal else _find_catcher(run, activation, failure)
    stay = _write_queue(run, activation, catcher)
    code = finish(run, activation, started_at, ERROR | (0 if catcher else UNCAUGHT), stay)
    code = _cancel_branches(run, activation, catcher) or code
    return code if catcher else FAILED


def _apply_failure(
    run: Run, activation: Activation, own_writes: list[tuple[Any, Any]], *, fatal: bool
) -> tuple[Activation, Pushes | None]:
    """Apply the writes that a failed step keeps; return where its rescue leads (None: no rescue, or the rescue failed).

    A rescue that fails (its condition, target or value) is ignored and its changes are undone.
    """
    from agentnb.engine.core.time_travel import repair

    rescues = [None] if fatal or activation.node.node.rescue is None else [activation.node.node.rescue, None]
    for rescue in rescues:
        if activation.node.kind.keeps_writes:
            with suppress(BoardError):  # the first rejected write and all later ones are dropped
                for path, value in own_writes:
                    run.write(activation.scope, path, value)
        if rescue is None:
            break
        try:
            return activation, apply_rescue(run, activation, rescue)
        except Exception:  # noqa: BLE001  (the node's own failure is the one reported)
            repair(run)
            activation = run.refresh_activation(activation)
    return activation, None


def apply_rescue(run: Run, activation: Activation, rescue: Rescue) -> Pushes:
    """Apply the writes of a rescue and return where it leads; the frames of a composite node are closed first."""
    if activation.purpose:
        leave(run, activation)
    for key, value in rescue.writes.items():
        run.write(activation.scope, (key,), value)
    return (
        find_next_activations(run, activation)
        if rescue.route is None
        else choose_targets(run, activation, rescue.route, None)
    )


def _find_catcher(run: Run, activation: Activation, failure: Failure) -> tuple[int, Frame] | None:
    """Return the nearest enclosing composite node that handles the failure, with its frame; None if there is none."""
    frame = activation.frame
    while frame.parent is not None:
        owner = run.plan.nodes[frame.row.owner]
        if (owner.timeouts if failure.timeout else owner.errors) or owner.node.rescue is not None:
            return owner.index, frame.parent
        frame = frame.parent
    return None


def _write_queue(run: Run, activation: Activation, catcher: tuple[int, Frame] | None) -> int:
    """Write the queue after a failure: the failed node first, or the composite node that handles it."""
    queue = run.frontier()
    if catcher is None:
        new = [queue.pop(queue.index(activation.id)), *queue]  # only once: it may be queued a second time further back
    else:
        index, frame = catcher
        inside = [top for top in run.frames.values() if top.parent is frame and top.row.owner == index]
        remaining = [n for n in queue if not any(get_frame(run, n).is_within(top) for top in inside)]
        new = [
            find_failed_activation(run, inside[0])
            if run.plan.supersteps
            else run.get_activation(index, frame, FAIL).id,
            *remaining,
        ]
    history = run.history
    pos = len(history.push_activations)
    history.push(carry(new))
    return pos


def _cancel_branches(run: Run, failed: Activation, catcher: tuple[int, Frame] | None) -> int:
    """Record the other branches ended by a failure as cancelled, one step per branch."""
    from agentnb.engine.core.step import finish

    code, previous_step = GO, run.position - 1
    seen = {failed.frame.lane.id}
    for number in run.history.queue_after(previous_step):
        activation = run.find_activation(number)
        lane = activation.frame.lane
        if lane.id in seen or lane.parent is None or failed.frame.is_within(lane):
            continue
        if catcher is not None and not lane.is_within(catcher[1]):
            continue
        seen.add(lane.id)
        pending_step = run.pending_steps.pop(number, None)
        run.dispatcher.end_calls(activation.work)
        calls = list(activation.work.calls)
        if pending_step is not None:
            pending_step.cancel()
        activation.work.reset()
        if calls:
            activation.work.calls.extend(calls)
            activation.work.busy = True
        now = run.ns()
        code = finish(run, activation, now, CANCELLED, run.queue_start, counted=False)
    return code


__all__ = ["fail", "leave_after_failure"]
