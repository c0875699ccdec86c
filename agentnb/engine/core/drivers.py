"""Drivers: run steps one after another, without an event loop or inside one.

`run_plain` calls `step` until a stop condition holds. `run_in_loop` does the same for async code and runs parallel
branches concurrently. Both resume a pending step (a `PendingStep`) through the same coroutine, so a step that began
without an event loop can continue inside one.
"""

from __future__ import annotations

import asyncio
import inspect
import types
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from types import CoroutineType
from typing import Any, Final

from agentnb.board.values import ABSENT, freeze
from agentnb.engine.core.frames import Activation
from agentnb.engine.core.history import Intervention
from agentnb.engine.core.interfaces import StepAbandoned
from agentnb.engine.core.pending_step import Hold, PendingStep, cancel
from agentnb.engine.core.rng import roll_back_draws, save_draws
from agentnb.engine.core.run import (
    BREAK,
    ENDING,
    EXHAUSTED,
    FAILED,
    GO,
    GOING,
    LANES,
    NONE,
    PAUSED,
    SUSPENDED,
    Halt,
    Run,
)
from agentnb.engine.core.step import abandon, commit_pending_step, step
from agentnb.engine.core.threads import call_in_thread
from agentnb.engine.core.time_travel import move_to_front, open_tip
from agentnb.engine.core.work import Perform
from agentnb.event_loops import NEED_LOOP, run_in_own_loop

LOOP: Final = 100  # a return code of the plain driver: the run must continue in an event loop
SLICE_NS: Final = 4_000_000  # how long a run may block other tasks of its event loop
MIN_WAIT: Final = 0.001  # seconds: the shortest wait before branches check for a question whose timeout has passed
SLOW_NS: Final = 5_000_000  # in a live run, a node that took longer runs in a thread the next time
# async code that runs longer than this without awaiting blocks the other tasks of its event loop
BLOCKS_NS: Final = 100_000_000
_HELD: Final = object()
_GONE: Final = object()


def run_plain(run: Run, *, once: bool = False, pending_step: PendingStep | None = None) -> int:
    """Call `step` without an event loop until a stop condition holds; return the code, LOOP if an event loop is needed.

    `pending_step` is the pending step to resume first if there are several.
    """
    if not once and _is_in_lanes(run):  # branches run concurrently, which requires an event loop
        return LOOP
    was_without_loop, run.without_loop = run.without_loop, True
    try:
        while True:
            code = (
                resume_without_loop(run, pending_step)
                if pending_step
                else _resume_pending(run)
                if run.pending_steps
                else step(run)
            )
            if code == SUSPENDED:
                code = resume_without_loop(run)
            if code == LANES:
                code = GO if once else LOOP
            if code or once:
                return code
    finally:
        run.without_loop = was_without_loop


def _is_in_lanes(run: Run) -> bool:
    """Return True if a parallel section is open."""
    return len(run.frames) > 1 and any(frame.row.branch >= 0 for frame in run.frames.values())


def _resume_pending(run: Run) -> int:
    """Resume the pending steps; if all of them wait for people, start a step of another branch."""
    activation = find_activation_beside(run)
    return resume_without_loop(run) if activation is None else step(run, activation)


def find_activation_beside(run: Run) -> Activation | None:
    """Return the next activation of another branch if all pending steps wait for people, else None."""
    if (
        not run.pending_steps
        or not all(_waits_for_person(pending_step) for pending_step in run.pending_steps.values())
        or not _is_in_lanes(run)
    ):
        return None
    spent = run.counted_steps >= run.limit
    return next(
        (
            activation
            for activation in find_heads(run)
            if activation.id not in run.pending_steps and not (spent and activation.cost)
        ),
        None,
    )


def _waits_for_person(pending_step: PendingStep) -> bool:
    return pending_step.is_held and pending_step.hold is not None and pending_step.hold.kind in ("answer", "approval")


def choose_pending_step(run: Run) -> PendingStep:
    """Return the pending step to resume next: the first that is not paused or, if all are paused, the first."""
    pending_steps = run.pending_steps.values()
    return next((pending_step for pending_step in pending_steps if not pending_step.is_held), None) or next(
        iter(pending_steps)
    )


def resume_without_loop(run: Run, pending_step: PendingStep | None = None) -> int:
    """Resume `pending_step` (default: the next pending step) and run it as far as possible without an event loop."""
    pending_step = pending_step or choose_pending_step(run)
    if not pending_step.is_held and not pending_step.needs_loop:
        pending_step.resume()
        try:
            pending_step.handle_yield(pending_step.coro.send(None))
        except StopIteration as ended:
            return commit_pending_step(run, pending_step, ended.value)
        except Exception as error:  # noqa: BLE001  (the node's failure)
            return commit_pending_step(run, pending_step, None, error)
        except StepAbandoned:
            return abandon(run, pending_step.activation)
    return SUSPENDED if pending_step.is_held else LOOP


@types.coroutine
def _advance_in_thread(pending_step: PendingStep) -> Generator[Any, Any, tuple[bool, Any]]:
    """Run a coroutine in a thread up to its next await.

    Return whether it has ended, and its result or the awaited object. If the step is abandoned, the thread runs to its
    end and the result is discarded.
    """
    waits = pending_step.awaited_future = asyncio.ensure_future(call_in_thread(_advance, pending_step.coro))
    outcome: tuple[bool, Any] = False, None
    try:
        outcome = yield from waits
    except asyncio.CancelledError:
        if not pending_step.is_cancelled or pending_step.task is not None:
            raise
    finally:
        pending_step.awaited_future = None
    return outcome


def _advance(coro: Coroutine[Any, Any, Any]) -> tuple[bool, Any]:
    try:
        return False, coro.send(None)
    except StopIteration as ended:
        return True, ended.value


@types.coroutine
def _resume_coroutine(pending_step: PendingStep) -> Generator[Any, Any, Any]:
    """Resume a coroutine that may have been started elsewhere; return its result, _HELD or _GONE."""
    error: BaseException | None = None
    reply: Any = None
    pending_step.resume()
    if pending_step.leaves_loop:
        ended, yielded = yield from _advance_in_thread(pending_step)
        if ended or pending_step.is_cancelled:
            return yielded if ended else _GONE
        if isinstance(yielded, Hold):
            pending_step.hold_at(yielded)
            return _HELD
        assert yielded is NEED_LOOP
    run = pending_step.activation.work.run
    shares_loop = run.uses_threads and type(pending_step.coro) is CoroutineType  # not for a node that was stepped into
    while True:
        resumed_at = run.ns()
        try:
            yielded = pending_step.coro.send(reply) if error is None else pending_step.coro.throw(error)
        except StopIteration as ended:
            return ended.value
        finally:
            if shares_loop and (took := run.ns() - resumed_at) > BLOCKS_NS:
                run.blocked = (pending_step.activation.id, took)
        reply, error = None, None
        if yielded is NEED_LOOP:
            continue
        if isinstance(yielded, Hold):
            pending_step.hold_at(yielded)
            return _HELD
        pending_step.awaited_future = yielded
        try:
            reply = yield yielded
        except BaseException as raised:  # noqa: BLE001  (a cancellation is passed to the node first, too)
            error = raised
        pending_step.awaited_future = None
        # Abandoned: its coroutine is closed, and this task continues
        if pending_step.is_cancelled and pending_step.task is None:
            return _GONE


async def finish_pending_step(run: Run, pending_step: PendingStep) -> int:
    """Await a pending step and commit it; return SUSPENDED if it is paused."""
    if pending_step.is_held:
        return SUSPENDED
    try:
        result = await _resume_coroutine(pending_step)
    except asyncio.CancelledError:
        raise
    except KeyboardInterrupt:  # raised by the node's own code, which has ended: the step runs again
        run.pending_steps.pop(pending_step.activation.id, None)
        roll_back_draws(run)
        raise
    except Exception as error:  # noqa: BLE001  (the node's failure)
        return (
            GO if pending_step.is_cancelled else _mark_ending(run, commit_pending_step(run, pending_step, None, error))
        )
    except StepAbandoned:
        return GO if pending_step.is_cancelled else _mark_ending(run, abandon(run, pending_step.activation))
    if result is _HELD:
        return SUSPENDED
    if result is _GONE:
        return PAUSED
    return GO if pending_step.is_cancelled else _mark_ending(run, commit_pending_step(run, pending_step, result))


def _mark_ending(run: Run, code: int) -> int:
    """Set `run.lanes` to ENDING (no new steps of branches) if a step's code stops the run; return the code."""
    if run.lanes and code not in (GO, LANES, SUSPENDED):
        run.lanes = ENDING
    return code


async def step_in_loop(run: Run, pending_step: PendingStep | None = None) -> int:
    """Run one step in async code (`pending_step` if passed). In a live run, a slow node runs in a thread."""
    first = False  # whether this node runs for the first time, in a thread
    if pending_step is not None:
        code = SUSPENDED
    elif run.pending_steps:
        other = find_activation_beside(run)
        code = SUSPENDED if other is None else step(run, other)
    elif run.uses_threads and _is_slow(
        activation := run.find_activation(run.history.push_activations[run.queue_start])
    ):
        save_draws(run)
        run.pending_steps[activation.id] = PendingStep(activation, _perform_call_in_thread(activation), run.ns())
        code, first = SUSPENDED, activation.node.index not in run.plan.slow
    else:
        was_without_loop, run.without_loop = run.without_loop, not run.uses_threads
        try:
            code = step(run)
        finally:
            run.without_loop = was_without_loop
        history = run.history
        if (
            run.uses_threads
            and history.end_times[-1] - history.start_times[-1] > SLOW_NS
            and len(history.step_activations) > 1
        ):
            run.plan.slow |= {run.tables.activations[history.step_activations[-1]].node}
    if code == SUSPENDED:
        took_off, known = pending_step or choose_pending_step(run), len(run.history.step_activations)
        code = await finish_pending_step(run, took_off)
        history = run.history
        if run.uses_threads and len(history.step_activations) > known:
            is_quick = history.end_times[-1] - history.start_times[-1] < SLOW_NS
            node, plan = took_off.activation.node.index, run.plan
            if is_quick:  # it may have been slow only because the processor was busy
                plan.slow -= {node}
                plan.quick |= {node}
            elif first:
                plan.slow |= {node}
    return GO if code == LANES else code


def _is_slow(activation: Activation) -> bool:
    """Return True if the last run of an activation's node took long or, in a live run, if it has not run yet.

    False for coroutine functions: calling one only creates the coroutine, which runs in the loop.
    """
    node, run = activation.node.index, activation.work.run
    if activation.purpose or not (node in run.plan.slow or (run.keeps_loop_free > 0 and node not in run.plan.quick)):
        return False
    return not _is_coroutine_function(activation.perform)


async def run_in_loop(run: Run, between: Callable[[], None] | None = None) -> int:
    """Call `step` in async code until a stop condition holds; return the code.

    Every few milliseconds `between` is called and control returns to the event loop. Setting the `run.halt` that was
    current at the start stops the run before the next step.
    """
    pausing, halt = run.ns() + SLICE_NS, run.halt
    while not halt.is_requested:
        if _is_in_lanes(run):
            code = await _run_lanes(run, halt)
        else:
            code = await step_in_loop(run)
        if code:
            return code
        if run.history.end_times[-1] > pausing:
            if between is not None:
                between()
            await asyncio.sleep(0)
            pausing = run.ns() + SLICE_NS
    return PAUSED


# -- parallel branches ---------------------------------------------------------------------------------------------


def find_heads(run: Run) -> list[Activation]:
    """Return the activations that can run now: the first of each lane that is not waiting for an inner lane."""
    waiting = [run.find_activation(number) for number in run.frontier()]
    busy: set[int] = set()
    for activation in waiting:
        outer = activation.frame.lane.parent
        while outer is not None and outer.lane.id not in busy:
            busy.add(outer.lane.id)
            outer = outer.lane.parent
    heads: dict[int, Activation] = {}
    for activation in waiting:
        if activation.frame.lane.id not in busy:
            heads.setdefault(activation.frame.lane.id, activation)
    return list(heads.values())


@dataclass(slots=True)
class _Lanes:
    """The concurrently running branches: the tasks in flight, and the activations at which a breakpoint stopped them.

    `skipped_breakpoints` holds the activations whose breakpoint is not checked again, because the run already stopped
    there. `cost` is the number of counted steps in flight. `ended_tasks` holds the tasks that have ended; `wake_event`
    is set when a task ends.
    """

    skipped_breakpoints: set[int]
    tasks: dict[asyncio.Task[int], PendingStep] = field(default_factory=dict)
    stopped_activation: Activation | None = None
    cost: int = 0
    ended_tasks: list[asyncio.Task[int]] = field(default_factory=list)
    wake_event: asyncio.Event = field(default_factory=asyncio.Event)
    may_be_held: bool = True  # whether a step may be waiting for a person

    def start(self, run: Run, pending_step: PendingStep) -> None:
        """Create a task that awaits a pending step."""
        pending_step.task = asyncio.get_running_loop().create_task(finish_pending_step(run, pending_step))
        pending_step.task.add_done_callback(self._end_task)
        self.tasks[pending_step.task] = pending_step
        self.cost += pending_step.activation.cost

    def _end_task(self, task: asyncio.Task[int]) -> None:
        self.ended_tasks.append(task)
        self.wake_event.set()

    def remove(self, task: asyncio.Task[int]) -> PendingStep:
        """Remove a task that has ended; return its step."""
        pending_step = self.tasks.pop(task)
        self.cost -= pending_step.activation.cost
        return pending_step

    async def wait(self, run: Run) -> list[asyncio.Task[int]]:
        """Wait until a task has ended, or a question times out; return the tasks that have ended."""
        remaining = _get_time_left(run) if self.may_be_held else None
        self.may_be_held = remaining is not None
        if not self.ended_tasks:
            with suppress(TimeoutError):
                await asyncio.wait_for(
                    self.wake_event.wait(), remaining
                ) if remaining is not None else await self.wake_event.wait()
        self.wake_event.clear()
        ended, self.ended_tasks = self.ended_tasks, []
        return [task for task in ended if task in self.tasks]


async def _run_lanes(run: Run, halt: Halt) -> int:
    """Run the branches of the open parallel sections concurrently until they end or a stop condition holds.

    A branch that waits for a person does not block the others.
    """
    used_threads, run.uses_threads, run.lanes = run.uses_threads, True, GOING
    lanes, code = _Lanes({run.frontier()[0]}), GO
    tasks = lanes.tasks
    try:
        while True:
            if not code and run.lanes == GOING:
                code = PAUSED if halt.is_requested else _dispatch(run, lanes)
            if not tasks:
                break
            if code:
                run.lanes = ENDING
            for task in await lanes.wait(run):
                pending_step = lanes.remove(task)
                lanes.may_be_held = lanes.may_be_held or pending_step.is_held
                code = _get_code_after(pending_step, task, code)
            # A step may just have ended the run while its task has not been collected yet: nothing else starts then.
            if not code and run.lanes == ENDING and not any(task.done() for task in tasks):
                run.lanes = GOING
            if not tasks and not _is_in_lanes(run):
                break
            if code == FAILED:
                await _cancel_all(run, tasks)
    finally:
        run.uses_threads, run.lanes = used_threads, NONE
        await _cancel_all(run, tasks)
    if code == BREAK and lanes.stopped_activation is not None:
        _make_next(run, lanes.stopped_activation)
    return code


def _get_time_left(run: Run) -> float | None:
    """Return the seconds until the first question times out; None if none has a timeout."""
    times = [
        pending_step.hold.seconds_left
        for pending_step in run.pending_steps.values()
        if pending_step.is_held and pending_step.hold is not None
    ]
    return min((max(seconds, MIN_WAIT) for seconds in times if seconds is not None), default=None)


def _get_code_after(pending_step: PendingStep, task: asyncio.Task[int], code: int) -> int:
    """Return the code of the parallel section after one more task has ended. A failure overrides all other codes."""
    if task.cancelled():
        pending_step.coro.close()  # it may never have started
        return code
    landed = task.result()
    if landed == FAILED:
        return landed
    return code or (GO if landed == LANES or _waits_for_person(pending_step) else landed)


def _dispatch(run: Run, lanes: _Lanes) -> int:
    """Start all activations that can run and are not in flight; sync functions run in threads.

    Start no more than the remaining budget and the number of requested steps allow.
    """
    index = run.queue_index
    if index is not None and index.ready is not None and index.is_current(run):
        ready, index.ready = index.ready, []
        # some may have run in the meantime
        queued = [number for number in dict.fromkeys(ready) if number in index.rows]
        code = _start(run, lanes, map(run.find_activation, queued))
        if lanes.tasks or code not in (GO, SUSPENDED, EXHAUSTED):
            return code
    if index is not None:
        index.ready = []
    return _start(run, lanes, find_heads(run))


def _start(run: Run, lanes: _Lanes, activations: Iterable[Activation]) -> int:
    """Start the activations that are not in flight; return SUSPENDED, EXHAUSTED or GO if none is left in flight."""
    waits, spared, waiting, tasks = False, False, deque(activations), lanes.tasks
    while waiting:
        activation = waiting.popleft()
        pending_step = run.pending_steps.get(activation.id)
        if pending_step is not None:
            if pending_step.is_held and not _waits_for_person(pending_step):
                return _invalidate_ready(run, SUSPENDED)
            waits = waits or pending_step.is_held
            lanes.may_be_held = lanes.may_be_held or pending_step.is_held
            if not pending_step.is_held and pending_step.task not in tasks:
                lanes.start(run, pending_step)
        elif _exhausts_limits(run, activation, lanes):
            spared = True
        elif _is_at_breakpoint(run, activation, lanes):
            return _invalidate_ready(run, BREAK)
        elif activation.purpose or _is_coroutine_function(activation.perform):
            code = step(run, activation)
            if code == SUSPENDED:
                lanes.start(run, run.pending_steps[activation.id])
            elif code not in (GO, LANES) or not _is_in_lanes(run):
                return _invalidate_ready(run, code if code != LANES else GO)
            else:
                waiting = deque(find_heads(run))  # a frame was closed, or its body starts another iteration
        else:
            save_draws(run)
            pending_step = run.pending_steps[activation.id] = PendingStep(
                activation, _perform_call_in_thread(activation), run.ns()
            )
            lanes.start(run, pending_step)
    if spared:
        _invalidate_ready(run, GO)
    return GO if tasks else SUSPENDED if waits else EXHAUSTED if spared else GO


def _is_coroutine_function(perform: Perform) -> bool:
    """Return True if a node's function is a coroutine function; `inspect` takes 1 µs for this."""
    code = getattr(perform, "__code__", None)
    return bool(code and code.co_flags & inspect.CO_COROUTINE) or inspect.iscoroutinefunction(perform)


def _invalidate_ready(run: Run, code: int) -> int:
    """Return the code; the next dispatch examines the whole queue, because something that can run was not started."""
    if run.queue_index is not None:
        run.queue_index.ready = None
    return code


def _is_at_breakpoint(run: Run, activation: Activation, lanes: _Lanes) -> bool:
    """Return True if a breakpoint stops the run before this activation of a branch."""
    if (
        run.before_activation is None
        or not activation.frame.lane.parent
        or activation.id in lanes.skipped_breakpoints
        or not run.before_activation(activation)
    ):
        lanes.skipped_breakpoints.discard(activation.id)
        return False
    lanes.stopped_activation = activation
    return True


def _make_next(run: Run, activation: Activation) -> None:
    """Make the activation at which the run stopped the next one; it may be queued behind those of other branches.

    This is recorded, because the person's next action refers to it: a replay repeats this first.
    """
    queue = run.frontier()
    if activation.id in queue and queue[0] != activation.id:
        open_tip(run, amend=True)
        move_to_front(run, activation)
        new = freeze({"turn": activation.id})
        run.history.interventions.append(
            Intervention(run.position, "front", activation.node.id, ABSENT, new, "user", run.clock.peek())
        )


def _exhausts_limits(run: Run, activation: Activation, lanes: _Lanes) -> bool:
    """Return True if the activations in flight use up the remaining steps."""
    ends = bool(lanes.tasks) and run.position + len(lanes.tasks) >= run.stop_at
    return ends or (activation.cost > 0 and run.counted_steps + lanes.cost >= run.limit)


async def _perform_call_in_thread(activation: Activation) -> Any:
    result = await call_in_thread(activation.perform, activation.work)
    return await result if isinstance(result, Awaitable) else result


async def _cancel_all(run: Run, tasks: dict[asyncio.Task[int], PendingStep]) -> None:
    """Cancel what is in flight and wait until it has ended; these steps start again on the next step."""
    for task, pending_step in tasks.items():
        run.pending_steps.pop(pending_step.activation.id, None)
        if not task.done():
            cancel(run, pending_step)
    if tasks:
        await asyncio.gather(*tasks, return_exceptions=True)
        for pending_step in tasks.values():
            pending_step.coro.close()  # a task cancelled before it started has not touched it
        tasks.clear()


__all__ = [
    "LOOP",
    "choose_pending_step",
    "find_activation_beside",
    "find_heads",
    "finish_pending_step",
    "resume_without_loop",
    "run_in_loop",
    "run_in_own_loop",
    "run_plain",
    "step_in_loop",
]
