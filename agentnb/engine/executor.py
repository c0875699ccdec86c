"""executor: who drives the heart. Without a loop while nothing suspends, in a loop when something does.

`run_plain` is "call step until something says stop". `run_in_loop` is the same for async code, and it runs parallel
branches at the same time. Both take up a flight (a step that awaits) with the same coroutine: what was begun without a
loop goes on inside one.
"""

from __future__ import annotations

import asyncio
import inspect
import types
from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass, field
from typing import Any, Final

from agentnb.engine.chance import take_note
from agentnb.engine.effects import Spent
from agentnb.engine.flight import NEED_LOOP, Flight, Hold
from agentnb.engine.frames import Activation
from agentnb.engine.loops import in_own_loop
from agentnb.engine.run import BREAK, ENDING, EXHAUSTED, FAILED, GO, GOING, LANES, NONE, PAUSED, SUSPENDED, Halt, Run
from agentnb.engine.step import given_up, land, step
from agentnb.engine.threads import in_thread
from agentnb.engine.travel import amend, open_tip

LOOP: Final = 100  # a code of the plain driver: go on inside a loop
SLICE_NS: Final = 4_000_000  # how long a run in a loop keeps others waiting
AT_LEAST: Final = 0.001  # seconds that branches wait before they look again at a question whose time is up
SLOW_NS: Final = 5_000_000  # a node that took longer goes to a thread the next time, in a live run
_HELD: Final = object()
_GONE: Final = object()


def run_plain(run: Run, *, once: bool = False, flight: Flight | None = None) -> int:
    """Call step until something says stop, with no loop; LOOP when one is needed from here on.

    `flight` says which one is taken up first, where there are several.
    """
    if not once and _in_lanes(run):  # branches run at the same time, and that takes a loop
        return LOOP
    before, run.plain = run.plain, True
    try:
        while True:
            code = take_off(run, flight) if flight else _go_on(run) if run.flights else step(run)
            if code == SUSPENDED:
                code = take_off(run)
            if code == LANES:
                code = GO if once else LOOP
            if code or once:
                return code
    finally:
        run.plain = before


def _in_lanes(run: Run) -> bool:
    """Say whether a parallel section is open."""
    return len(run.frames) > 1 and any(frame.row.branch >= 0 for frame in run.frames.values())


def _go_on(run: Run) -> int:
    """Take up what has begun; where all of that waits for people, begin what may run beside it."""
    act = beside(run)
    return take_off(run) if act is None else step(run, act)


def beside(run: Run) -> Activation | None:
    """Return what may begin while everything that has begun waits for people: the head of another branch."""
    if not run.flights or not all(_asks(flight) for flight in run.flights.values()) or not _in_lanes(run):
        return None
    spent = run.used >= run.limit
    return next((act for act in heads(run) if act.id not in run.flights and not (spent and act.cost)), None)


def _asks(flight: Flight) -> bool:
    return flight.held and flight.hold is not None and flight.hold.kind in ("answer", "approval")


def next_flight(run: Run) -> Flight:
    """Return the flight that goes on next: the first that is not held, else the first."""
    flights = run.flights.values()
    return next((flight for flight in flights if not flight.held), None) or next(iter(flights))


def take_off(run: Run, flight: Flight | None = None) -> int:
    """Drive a flight, else the one that goes on next, as far as it goes without a loop."""
    flight = flight or next_flight(run)
    if not flight.held and not flight.looped:
        try:
            flight.take(flight.coro.send(None))
        except StopIteration as ended:
            return land(run, flight, ended.value)
        except Exception as error:  # noqa: BLE001  (the node's failure)
            return land(run, flight, None, error)
        except Spent:
            return given_up(run, flight.act)
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
        return GO if flight.gone else _ending(run, land(run, flight, None, error))
    except Spent:
        return GO if flight.gone else _ending(run, given_up(run, flight.act))
    if result is _HELD:
        return SUSPENDED
    if result is _GONE:
        return PAUSED
    return GO if flight.gone else _ending(run, land(run, flight, result))


def _ending(run: Run, code: int) -> int:
    """Note that branches only end from here on, where a step says that the run does not go on."""
    if run.lanes and code not in (GO, LANES, SUSPENDED):
        run.lanes = ENDING
    return code


async def step_in_loop(run: Run, flight: Flight | None = None) -> int:
    """One step, for async code: that of a flight, where one is named. In a live run a slow node goes to a thread."""
    if flight is not None:
        code = SUSPENDED
    elif run.flights:
        other = beside(run)
        code = SUSPENDED if other is None else step(run, other)
    elif run.threaded and (act := run.activation(run.history.p_act[run.pos])).node.slow and not act.what:
        take_note(run)
        run.flights[act.id] = Flight(act, _threaded(act), run.ns())
        code = SUSPENDED
    else:
        before, run.plain = run.plain, not run.threaded
        try:
            code = step(run)
        finally:
            run.plain = before
        history = run.history
        if run.threaded and history.s_t1[-1] - history.s_t0[-1] > SLOW_NS and len(history.s_act) > 1:
            run.plan.nodes[run.tables.acts[history.s_act[-1]].node].slow = True
    if code == SUSPENDED:
        took_off, known = flight or next_flight(run), len(run.history.s_act)
        code = await fly(run, took_off)
        history = run.history
        if run.threaded and len(history.s_act) > known and history.s_t1[-1] - history.s_t0[-1] < SLOW_NS:
            took_off.act.node.slow = False  # it was slow once, when others had the processor perhaps
    return GO if code == LANES else code


async def run_in_loop(run: Run, between: Callable[[], None] | None = None) -> int:
    """Call step until something says stop, for async code.

    Every few milliseconds the loop is given back, and `between` is called. The `run.halt` that it begins with ends
    it before the next step.
    """
    pausing, halt = run.ns() + SLICE_NS, run.halt
    while not halt.on:
        if _in_lanes(run):
            code = await _run_lanes(run, halt)
        else:
            code = await step_in_loop(run)
        if code:
            return code
        if run.history.s_t1[-1] > pausing:
            if between is not None:
                between()
            await asyncio.sleep(0)
            pausing = run.ns() + SLICE_NS
    return PAUSED


# -- parallel branches ---------------------------------------------------------------------------------------------


def heads(run: Run) -> list[Activation]:
    """Return the activations that may run now: the first of each lane that waits for no lane inside it."""
    waiting = [run.activation(number) for number in run.frontier()]
    busy: set[int] = set()
    for act in waiting:
        outer = act.frame.lane.parent
        while outer is not None and outer.lane.id not in busy:
            busy.add(outer.lane.id)
            outer = outer.lane.parent
    found: dict[int, Activation] = {}
    for act in waiting:
        if act.frame.lane.id not in busy:
            found.setdefault(act.frame.lane.id, act)
    return list(found.values())


@dataclass(slots=True)
class _Lanes:
    """Branches that run at the same time: what is in flight, and at which turn a breakpoint has ended it.

    `passed` are the turns before which no breakpoint is asked for any more: the run stood there when it went on.
    """

    passed: set[int]
    tasks: dict[asyncio.Task[int], Flight] = field(default_factory=dict)
    stood: Activation | None = None


async def _run_lanes(run: Run, halt: Halt) -> int:
    """Run the branches of the open parallel sections at the same time, until they have ended or something says stop.

    A branch that waits for a person keeps no other one waiting.
    """
    before, run.threaded, run.lanes = run.threaded, True, GOING
    lanes, code = _Lanes({run.frontier()[0]}), GO
    tasks = lanes.tasks
    try:
        while True:
            if not code:
                code = PAUSED if halt.on else _dispatch(run, lanes)
            if not tasks:
                break
            run.lanes = ENDING if code else GOING
            done, _ = await asyncio.wait(tasks, timeout=_time_left(run), return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                code = _landed(tasks.pop(task), task, code)
            if not tasks and not _in_lanes(run):
                break
            if code == FAILED:
                await _ground(run, tasks)
    finally:
        run.threaded, run.lanes = before, NONE
        await _ground(run, tasks)
    if code == BREAK and lanes.stood is not None:
        _come_first(run, lanes.stood)
    return code


def _time_left(run: Run) -> float | None:
    """Return the seconds until the first question's time is up; None where there is no end to any."""
    left = [flight.hold.left for flight in run.flights.values() if flight.held and flight.hold is not None]
    return min((max(seconds, AT_LEAST) for seconds in left if seconds is not None), default=None)


def _landed(flight: Flight, task: asyncio.Task[int], code: int) -> int:
    """Return why the lanes do not go on, after one more has landed. A failure says more than any other reason."""
    if task.cancelled():
        flight.coro.close()  # it may never have begun
        return code
    landed = task.result()
    if landed == FAILED:
        return landed
    return code or (GO if landed == LANES or _asks(flight) else landed)


def _dispatch(run: Run, lanes: _Lanes) -> int:
    """Begin every activation that may run and is not in flight; sync functions go to threads.

    No more is begun than may end: what is left of the budget, and of the steps that this call was asked for.
    """
    waits, spared, waiting, tasks = False, False, heads(run), lanes.tasks
    while waiting:
        act = waiting.pop(0)
        flight = run.flights.get(act.id)
        if flight is not None:
            if flight.held and not _asks(flight):
                return SUSPENDED
            waits = waits or flight.held
            if not flight.held and flight.task not in tasks:
                _task(run, tasks, flight)
        elif _enough(run, act, tasks):
            spared = True
        elif _breaks(run, act, lanes):
            return BREAK
        elif act.what or inspect.iscoroutinefunction(act.perform):
            code = step(run, act)
            if code == SUSPENDED:
                _task(run, tasks, run.flights[act.id])
            elif code not in (GO, LANES) or not _in_lanes(run):
                return code if code != LANES else GO
            else:
                waiting = heads(run)  # a frame has been left, or its body begins once more
        else:
            take_note(run)
            flight = run.flights[act.id] = Flight(act, _threaded(act), run.ns())
            _task(run, tasks, flight)
    return GO if tasks else SUSPENDED if waits else EXHAUSTED if spared else GO


def _breaks(run: Run, act: Activation, lanes: _Lanes) -> bool:
    """Say whether the run stops before this turn of a branch."""
    if run.before is None or not act.frame.lane.parent or act.id in lanes.passed or not run.before(act):
        lanes.passed.discard(act.id)
        return False
    lanes.stood = act
    return True


def _come_first(run: Run, act: Activation) -> None:
    """Make the turn before which the run has stopped the next one: it may stand behind those of other branches."""
    rest = run.frontier()
    if act.id in rest and rest[0] != act.id:
        rest.remove(act.id)
        open_tip(run, amend=True)
        amend(run, [act.id, *rest])


def _enough(run: Run, act: Activation, tasks: dict[asyncio.Task[int], Flight]) -> bool:
    """Say whether what is in flight uses up all that may still run."""
    counted = sum(flight.act.cost for flight in tasks.values())
    ends = bool(tasks) and run.position + len(tasks) >= run.stop_at
    return ends or (act.cost > 0 and run.used + counted >= run.limit)


def _task(run: Run, tasks: dict[asyncio.Task[int], Flight], flight: Flight) -> None:
    flight.task = asyncio.get_running_loop().create_task(fly(run, flight))
    tasks[flight.task] = flight


async def _threaded(act: Activation) -> Any:
    result = await in_thread(act.perform, act.work)
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


__all__ = [
    "LOOP",
    "beside",
    "fly",
    "heads",
    "in_own_loop",
    "next_flight",
    "run_in_loop",
    "run_plain",
    "step_in_loop",
    "take_off",
]
