"""executor: who drives the heart. Without a loop while nothing suspends, in a loop when something does.

`run_plain` is "call step until something says stop". `run_in_loop` is the same for async code, and it runs parallel
branches at the same time. Both take up a flight (a step that awaits) with the same coroutine: what was begun without a
loop goes on inside one.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
import types
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any, Final

from agentnb.engine.effects import NEED_LOOP, Flight, Hold, in_loop
from agentnb.engine.frames import Activation
from agentnb.engine.run import DONE, FAILED, GO, LANES, PAUSED, SUSPENDED, Halt, Run
from agentnb.engine.step import land, step

LOOP: Final = 100  # a code of the plain driver: go on inside a loop
SLICE_NS: Final = 4_000_000  # how long a run in a loop keeps others waiting
SLOW_NS: Final = 5_000_000  # a node that took longer goes to a thread the next time, in a live run
_HELD: Final = object()
_GONE: Final = object()


def run_plain(run: Run, *, once: bool = False) -> int:
    """Call step until something says stop, with no loop; LOOP when one is needed from here on."""
    before, run.plain = run.plain, True
    try:
        while True:
            code = take_off(run) if run.flights else step(run)
            if code == SUSPENDED:
                code = take_off(run)
            if code == LANES:
                code = GO if once else LOOP
            if code or once:
                return code
    finally:
        run.plain = before


def take_off(run: Run) -> int:
    """Drive the flight at the front as far as it goes without a loop."""
    flight = next(iter(run.flights.values()))
    if not flight.held and not flight.looped:
        try:
            flight.take(flight.coro.send(None))
        except StopIteration as ended:
            return land(run, flight, ended.value)
        except Exception as error:  # noqa: BLE001  (the node's failure)
            return land(run, flight, None, error)
    return SUSPENDED if flight.held else LOOP


@types.coroutine
def _carry(flight: Flight) -> Generator[Any, Any, Any]:
    """Go on with a coroutine that may have begun elsewhere; return what it returns, _HELD, or _GONE."""
    error: BaseException | None = None
    reply: Any = None
    while True:
        try:
            yielded = flight.coro.send(reply) if error is None else flight.coro.throw(error)
        except StopIteration as ended:
            return ended.value
        reply, error = None, None
        if yielded is NEED_LOOP:
            continue
        if isinstance(yielded, Hold):
            flight.hold = yielded
            return _HELD
        flight.waits = yielded
        try:
            reply = yield yielded
        except BaseException as raised:  # noqa: BLE001  (a cancellation too goes to the node first)
            error = raised
        flight.waits = None
        if flight.gone and flight.task is None:  # given up: its coroutine is closed, and this task goes on
            return _GONE


async def fly(run: Run, flight: Flight) -> int:
    """Await a flight to its end and commit it; SUSPENDED when it is held."""
    if flight.held:
        return SUSPENDED
    try:
        result = await _carry(flight)
    except asyncio.CancelledError:
        raise
    except Exception as error:  # noqa: BLE001  (the node's failure)
        return GO if flight.gone else land(run, flight, None, error)
    if result is _HELD:
        return SUSPENDED
    if result is _GONE:
        return PAUSED
    return GO if flight.gone else land(run, flight, result)


async def step_in_loop(run: Run) -> int:
    """One step, for async code; in a live run a node that is known to be slow goes to a thread."""
    if run.flights:
        code = SUSPENDED
    elif run.threaded and (act := run.live[run.history.p_act[run.pos]]).node.slow and not act.what:
        run.flights[act.id] = Flight(act, _threaded(act), run.ns())
        code = SUSPENDED
    else:
        code = step(run)
        history = run.history
        if run.threaded and history.s_t1[-1] - history.s_t0[-1] > SLOW_NS and len(history.s_act) > 1:
            run.plan.nodes[run.tables.acts[history.s_act[-1]].node].slow = True
    if code == SUSPENDED:
        code = await fly(run, next(iter(run.flights.values())))
    return GO if code == LANES else code


async def run_in_loop(run: Run, between: Callable[[], None] | None = None) -> int:
    """Call step until something says stop, for async code.

    Every few milliseconds the loop is given back, and `between` is called. The `run.halt` that it begins with ends
    it before the next step.
    """
    pausing, halt = run.ns() + SLICE_NS, run.halt
    while not halt.on:
        if any(frame.row.branch >= 0 for frame in run.frames.values()):
            code = await _run_lanes(run, halt)
        else:
            code = await step_in_loop(run)
        if code:
            return code
        if run.ns() > pausing:
            if between is not None:
                between()
            await asyncio.sleep(0)
            pausing = run.ns() + SLICE_NS
    return PAUSED


# -- parallel branches ---------------------------------------------------------------------------------------------


def heads(run: Run) -> list[Activation]:
    """Return the activations that may run now: the first of each lane that waits for no lane inside it."""
    busy = {frame.parent.lane.id for frame in run.frames.values() if frame.row.branch >= 0 and frame.parent}
    found: dict[int, Activation] = {}
    for number in run.frontier():
        act = run.activation(number)
        if act.frame.lane.id not in busy:
            found.setdefault(act.frame.lane.id, act)
    return list(found.values()) or [run.activation(run.frontier()[0])]


async def _run_lanes(run: Run, halt: Halt) -> int:
    """Run the branches of the open parallel sections at the same time, until they have ended or something says stop."""
    before, run.threaded = run.threaded, True
    tasks: dict[asyncio.Task[int], Flight] = {}
    code = GO
    try:
        while True:
            if not code:
                code = PAUSED if halt.on else _dispatch(run, tasks)
            if not tasks:
                return code
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                flight = tasks.pop(task)
                if task.cancelled():
                    flight.coro.close()  # it may never have begun
                landed = GO if task.cancelled() else task.result()
                code = code or (GO if landed == LANES else landed)
            if not any(frame.row.branch >= 0 for frame in run.frames.values()) and not tasks:
                return code
            if code == FAILED:
                await _ground(run, tasks)
    finally:
        run.threaded = before
        await _ground(run, tasks)


def _dispatch(run: Run, tasks: dict[asyncio.Task[int], Flight]) -> int:
    """Begin every activation that may run and is not in flight; sync functions go to threads."""
    for act in heads(run):
        if act.id in run.flights:
            flight = run.flights[act.id]
            if flight.task is None and flight.hold is not None:
                if flight.held:
                    return SUSPENDED
                _task(run, tasks, flight)
            continue
        if act.what or inspect.iscoroutinefunction(act.perform):
            code = step(run, act)
            if code == SUSPENDED:
                _task(run, tasks, run.flights[act.id])
            elif code not in (GO, LANES):
                return code
            if code != SUSPENDED:
                return GO if run.frontier() else DONE
        else:
            flight = run.flights[act.id] = Flight(act, _threaded(act), run.ns())
            _task(run, tasks, flight)
    return GO


def _task(run: Run, tasks: dict[asyncio.Task[int], Flight], flight: Flight) -> None:
    flight.task = asyncio.get_running_loop().create_task(fly(run, flight))
    tasks[flight.task] = flight


async def _threaded(act: Activation) -> Any:
    result = await asyncio.to_thread(act.perform, act.work)
    return await result if isinstance(result, Awaitable) else result


async def _ground(run: Run, tasks: dict[asyncio.Task[int], Flight]) -> None:
    """Cancel what is still in flight and wait until it has gone; those steps run again when they are stepped."""
    for task, flight in tasks.items():
        run.flights.pop(flight.act.id, None)
        if not task.done():
            flight.cancel()
    if tasks:
        await asyncio.gather(*tasks, return_exceptions=True)
        for flight in tasks.values():
            flight.coro.close()  # a task that was cancelled before it began has not touched it
        tasks.clear()


# -- a loop for those who have none ----------------------------------------------------------------------------------


def in_own_loop(work: Callable[[], Coroutine[Any, Any, int]]) -> int:
    """Run a coroutine to its end: in a loop of its own, in a worker thread where one is running here already."""
    if not in_loop():
        return asyncio.run(work())
    found: list[Any] = []
    loops: list[asyncio.AbstractEventLoop] = []

    async def main() -> int:
        loops.append(asyncio.get_running_loop())
        return await work()

    def target() -> None:
        try:
            found.append(asyncio.run(main()))
        except BaseException as error:  # noqa: BLE001  (raised again where it belongs)
            found.append(error)

    context = contextvars.copy_context()
    thread = threading.Thread(target=context.run, args=(target,), name="agentnb-run", daemon=True)
    thread.start()
    try:
        thread.join()
    except BaseException:  # an interrupt: the steps in flight are cancelled, those committed stay
        for loop in loops:
            loop.call_soon_threadsafe(_cancel_all, loop)
        thread.join()
        raise
    if isinstance(found[0], BaseException):
        raise found[0]
    return int(found[0])


def _cancel_all(loop: asyncio.AbstractEventLoop) -> None:
    for task in asyncio.all_tasks(loop):
        task.cancel()
