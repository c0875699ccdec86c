"""The step function, the only place where a node runs: perform it, commit its result, advance the frontier.

Begin: the activation at the front of the frontier is performed. Commit: its writes become rows and change the board as
they are applied; then its pushes and its row follow; last, with no call in between, frontier and counter advance.
Anything beyond the counter (after an interrupt, an error or a failing condition) is undone by one `repair`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Mapping
from types import CoroutineType
from typing import Any

from agentnb.board.values import ABSENT, freeze
from agentnb.engine.core import error_routing, scheduler
from agentnb.engine.core.events import stamp_events
from agentnb.engine.core.frames import Activation
from agentnb.engine.core.history import ERROR, FAIL, LEAVE, RUN, Note
from agentnb.engine.core.interfaces import StepAbandoned
from agentnb.engine.core.pending_step import PendingStep, record_interrupted
from agentnb.engine.core.rng import roll_back_draws, save_draws
from agentnb.engine.core.run import DONE, EXHAUSTED, GO, PLAIN, SUSPENDED, Run
from agentnb.engine.core.time_travel import repair
from agentnb.engine.core.work import Enter, Outcome, Repeat, Work
from agentnb.errors import with_article

_new_note = tuple.__new__  # the constructor of a named tuple costs twice as much


def step(run: Run, activation: Activation | None = None) -> int:
    """Run the next activation once and commit it; return GO, or why the run stops.

    `activation` selects an activation of the frontier other than the first (the head of another branch).
    """
    if activation is None:
        number = run.history.push_activations[run.queue_start]
        # A rebuilt frame may lack its activations
        activation = run.live_activations.get(number) or run.find_activation(number)
    started_at = run.ns()
    if run.armed:
        save_draws(run)
    try:
        if activation.purpose == FAIL:
            code = error_routing.leave_after_failure(run, activation, started_at)
        else:
            result: Any = activation.perform(activation.work)
            code = (
                commit(run, activation, result, started_at)
                if type(result) is dict
                else settle(run, activation, result, started_at)
            )
    except (Exception, SystemExit) as error:  # noqa: BLE001  (any exception of a node is its failure, not the engine's)
        code = error_routing.fail(run, activation, error, started_at)
    except StepAbandoned:
        return abandon(run, activation)
    return run.after_step(activation, code) if run.armed else code


def abandon(run: Run, activation: Activation) -> int:
    """Abandon a step stopped by a limit; when it runs again, it does not repeat the calls it has made."""
    repair(run)
    activation = run.refresh_activation(activation)
    run.pending_steps.pop(activation.id, None)
    run.dispatcher.remember(activation.work)
    activation.work.has_ended = True
    activation.work = run.make_work(activation)
    roll_back_draws(run)
    return EXHAUSTED


def commit_pending_step(run: Run, pending_step: PendingStep, result: Any, error: Exception | None = None) -> int:
    """Commit the step of a finished pending step: with the result of its node, or as a failure."""
    activation, step = run.refresh_activation(pending_step.activation), run.position + 1
    del run.pending_steps[activation.id]
    try:
        if error is not None:
            raise error
        started_at = pending_step.started_at
        code = (
            commit(run, activation, result, started_at)
            if type(result) is dict
            else settle(run, activation, result, started_at)
        )
    except Exception as raised:  # noqa: BLE001  (as in `step`)
        code = error_routing.fail(run, activation, raised, pending_step.started_at)
    except StepAbandoned:
        return abandon(run, activation)
    if pending_step.waiting_ns and run.position >= step:
        run.history.waiting_ns[step] = pending_step.waiting_ns
    if pending_step.intervention_count and run.position >= step:
        run.history.interventions.append(record_interrupted(run, pending_step, "ended", step))
    return run.after_step(activation, code) if run.armed else code


def settle(run: Run, activation: Activation, result: Any, started_at: int) -> int:
    """Commit a node's return value, whatever its form; an awaitable becomes a pending step."""
    if type(result) is CoroutineType:  # by far the most common; an ABC check costs as much as a step
        if not run.armed:
            save_draws(run)  # its code has not started yet; if interrupted, it draws the same values again
        if run.without_loop:
            return _drive(run, activation, result, started_at)
        run.pending_steps[activation.id] = PendingStep(activation, result, started_at)
        return SUSPENDED
    match result:
        case Outcome():
            return _commit_outcome(run, activation, result, started_at)
        case None:
            return commit(run, activation, {}, started_at)
        case Enter():
            return scheduler.enter(run, activation, result, started_at)
        case Repeat():
            return scheduler.repeat_body(run, activation, started_at)
        case Mapping():
            return commit(run, activation, dict(result), started_at)
        case Awaitable():
            run.pending_steps[activation.id] = PendingStep(activation, result, started_at)
            return SUSPENDED
    raise TypeError(
        f"a node returned {with_article(type(result).__name__)}, where a mapping or an Outcome was expected"
    )


def _drive(run: Run, activation: Activation, coroutine: CoroutineType[Any, Any, Any], started_at: int) -> int:
    """Run a coroutine without an event loop; if it suspends (few effects do), it becomes a pending step."""
    try:
        yielded = coroutine.send(None)
    except StopIteration as ended:
        result = ended.value
    except (Exception, StepAbandoned):
        raise
    except BaseException:  # an interrupt: registered as a pending step, it is handled like any interrupted step
        run.pending_steps[activation.id] = PendingStep(activation, coroutine, started_at)
        raise
    else:
        pending_step = run.pending_steps[activation.id] = PendingStep(activation, coroutine, started_at)
        pending_step.handle_yield(yielded)
        return SUSPENDED
    return (
        commit(run, activation, result, started_at)
        if type(result) is dict
        else settle(run, activation, result, started_at)
    )


def _commit_outcome(run: Run, activation: Activation, outcome: Outcome, started_at: int) -> int:
    activation.work.result = outcome.result
    if outcome.nested_writes:
        activation.work.own_writes.extend(outcome.nested_writes)
        activation.work.busy = True
    if outcome.thought is not None or outcome.action is not None or outcome.observation is not None or outcome.inputs:
        action, observation, inputs = outcome.action, outcome.observation, outcome.inputs
        action = None if action is None else freeze(action)
        observation = None if observation is None else freeze(observation)
        inputs = None if inputs is None else freeze(inputs)
        note = _new_note(Note, (outcome.thought, action, observation, inputs, outcome.score))
        run.history.notes[run.position + 1] = note
    chosen = None if outcome.route is None else scheduler.choose_targets(run, activation, outcome.route, outcome.value)
    if outcome.error is None:
        return commit(run, activation, outcome.writes, started_at, chosen)
    handlers = error_routing.find_handlers(run, activation, outcome.error)
    return commit(run, activation, outcome.writes, started_at, chosen or [], handlers)


def commit(
    run: Run,
    activation: Activation,
    writes: Mapping[str, Any],
    started_at: int,
    chosen: scheduler.Pushes | None = None,
    handlers: scheduler.Pushes | None = None,
) -> int:
    """Write the step's writes, determine where it leads, and append its row.

    `chosen` is where a router leads; `handlers` run first, if the step failed after its work.
    """
    history, scope, work = run.history, activation.scope, activation.work
    data, codes = scope.own_data() if scope.shared else scope.data, scope.codes
    if activation.purpose:  # the inside closes before a composite node writes to its own scope
        scheduler.leave(run, activation)
    if work.own_writes:
        for path, value in work.own_writes:
            run.write(scope, path, value)
        work.own_writes, work.applied_writes = [], work.own_writes
    if work.copies and scope.parent is None:
        _write_in_place(run, activation, work.find_changes_before_reducers(writes))
    for key, value in writes.items():
        if type(value) in PLAIN and key in codes and not scope.open:
            history.write_codes.append(codes[key])
            history.new_values.append(value)
            history.old_values.append(data.get(key, ABSENT))
            data[key] = value
        else:
            run.write(scope, (key,), value)
    if work.copies:
        _write_in_place(run, activation, work.find_in_place_changes(writes))
    if activation.quick and chosen is None and run.joinless_since <= run.position:
        next_activation, joins = activation.next, None
        if next_activation >= 0:
            history.push_activations.append(next_activation)
            history.push_values.append(None)
            history.push_edges.append(activation.node.always_edge)
        elif next_activation < -1:
            joins = scheduler.follow(run, activation)
        if history.replacements or joins is not None:
            pos = scheduler.advance_past(run, activation, joins)
        else:
            pos = run.queue_start + 1
    else:
        pos = scheduler.append_next_activations(run, activation, chosen, handlers or [])
    flag = LEAVE if activation.purpose else RUN
    return finish(run, activation, started_at, flag if handlers is None else flag | ERROR, pos)


def _write_in_place(run: Run, activation: Activation, changes: Iterable[tuple[str, Any]]) -> None:
    """Write what a node has changed in place, except for keys that were written by others after it read them."""
    for key, changed in changes:
        if activation.scope.get(key) is activation.work.copies[key][1]:
            run.write(activation.scope, (key,), changed, in_place=True)


def finish(run: Run, activation: Activation, started_at: int, flag: int, pos: int, *, counted: bool = True) -> int:
    """Append the row of a step; last, with no call in between, advance frontier and counter."""
    history, work = run.history, activation.work
    number = run.position + 1
    if work.reads:
        codes = activation.scope.codes
        for key in work.reads:
            history.read_codes.append(codes[key] if key in codes else run.get_key_code(activation.scope, key))
            history.read_steps.append(number)
        work.reads.clear()
    flushes = work.busy or work.copies
    if flushes:
        _flush(run, work, number)
    pends = len(history.push_activations)
    history.step_activations.append(activation.id)
    history.start_times.append(started_at)
    history.end_times.append(run.ns())
    history.step_flags.append(activation.flag | flag if counted else flag)
    history.queue_starts.append(pos)
    history.write_ends.append(len(history.new_values))
    history.push_ends.append(pends)
    used = run.counted_steps + activation.cost if counted else run.counted_steps
    run.queue_start = pos
    run.counted_steps = used
    run.position = number
    if flushes:
        work.reset()  # not earlier: an interrupted step must know what it has done
    if number >= run.next_due:
        code = run.handle_due()
        return DONE if pos == pends else code
    return DONE if pos == pends else GO


def _flush(run: Run, work: Work, number: int) -> None:
    """Append the events, calls and times of a step under its number."""
    if work.emitted:
        run.history.events.extend(stamp_events(work.emitted, number))
    for call in work.calls:
        run.history.calls.append(call if call.step == number else call._replace(step=number))
    if work.times:
        run.history.times[number] = tuple(work.times)


__all__ = ["commit", "commit_pending_step", "finish", "repair", "settle", "step"]
