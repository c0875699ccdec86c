"""effects: the one door to the world. Time-out, retry, back-off, holding, recording: all of it here, none in a kind.

A node that calls an effect is a coroutine. Driven without a loop it may yield two things: NEED_LOOP (what it awaits
next needs an event loop) and a Hold (the effect waits for a person). Everything else is a loop's own future.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Generator
from time import perf_counter_ns
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Final

from agentnb.board.values import ATOMS, FrozenDict, freeze
from agentnb.engine.history import Call
from agentnb.engine.threads import in_thread, spelled_out
from agentnb.errors import AgentRuntimeError, BoardError, ExecutionError, Problem
from agentnb.world.chaos import SPARED, Key, tokens_of
from agentnb.world.llm.base import LLMError
from agentnb.world.people import WAIT

if TYPE_CHECKING:
    from agentnb.engine.frames import Activation
    from agentnb.engine.run import Run
    from agentnb.engine.work import Effect, Work

NEED_LOOP: Final = object()
NO_ARGUMENTS: Final = freeze({})
PLAIN_ANSWERS: Final = ATOMS | {dict, list, tuple, FrozenDict}  # nothing to wait for, no usage to read from them
_new_call = tuple.__new__  # a row a call: the constructor of a named tuple costs twice as much


class NeedLoop:
    """Awaited to come back inside an event loop."""

    def __await__(self) -> Generator[Any, Any, None]:
        """Hand the mark to whoever drives this coroutine."""
        yield NEED_LOOP


class Hold:
    """An effect that waits: for a person's answer, or to be read and changed before it goes out or comes back.

    `go` lets it go on: with the effect as it stands now, or with `answer` where it is `answered`. `until` is the
    moment, in nanoseconds of `clock`, from which on it goes on by itself.
    """

    __slots__ = ("answer", "answered", "clock", "effect", "go", "kind", "moment", "until")

    def __init__(self, effect: Effect, kind: str, moment: str, answer: Any = None) -> None:
        self.effect, self.kind, self.moment, self.answer = effect, kind, moment, answer
        self.answered = self.go = False
        self.until: int | None = None
        self.clock: Callable[[], int] = perf_counter_ns

    def ends_at(self, until: int, clock: Callable[[], int]) -> Hold:
        """Make it end by itself at a moment of a clock."""
        self.until, self.clock = until, clock
        return self

    @property
    def left(self) -> float | None:
        """The seconds that are left until it ends by itself; None where it does not."""
        return None if self.until is None else (self.until - self.clock()) / 1e9

    @property
    def late(self) -> bool:
        """Whether its time is up, and nobody has let it go on before."""
        left = self.left
        return not self.go and left is not None and left <= 0

    def __await__(self) -> Generator[Any, Any, Hold]:
        """Hand itself to the driver; come back when the driver sends anything."""
        yield self
        return self


class Flight:
    """A step that has begun and is not committed yet: its coroutine, and what it is held at."""

    __slots__ = ("act", "at", "began", "coro", "gone", "hold", "looped", "task", "waits")

    def __init__(self, act: Activation, awaitable: Awaitable[Any], began: int) -> None:
        self.act, self.began = act, began
        self.at = act.work.run.position  # after which step it began: no two turns of a node begin at one
        own = awaitable.__class__ is CoroutineType
        self.coro: Coroutine[Any, Any, Any] = awaitable if own else _awaited(awaitable)  # type: ignore[assignment]  # as just asked
        self.hold: Hold | None = None
        self.task: asyncio.Task[int] | None = None
        self.waits: asyncio.Future[Any] | None = None  # what it awaits in the task of somebody else
        self.gone = False
        self.looped = False  # it cannot go on without a loop

    def take(self, yielded: Any) -> None:
        """Take what the coroutine yielded, driven without a loop: what it is held at, or that it needs one."""
        if isinstance(yielded, Hold):
            self.hold = yielded
        else:
            assert yielded is NEED_LOOP
            self.looped = True

    @property
    def held(self) -> bool:
        """Whether it waits for somebody to let it go on."""
        return self.hold is not None and not self.hold.go and not self.hold.late

    def cancel(self) -> None:
        """Give this step up: its late writes are refused, its coroutine is closed or its task cancelled."""
        work = self.act.work
        work.dead = self.gone = True
        self.act.work = type(work)(work.run, self.act)
        if self.task is not None:
            self.task.cancel()
            return
        self.coro.close()
        if self.waits is not None:  # whoever drives it shall not wait for what nobody wants any more
            self.waits.get_loop().call_soon_threadsafe(self.waits.cancel)


async def _awaited(awaitable: Awaitable[Any]) -> Any:
    await NeedLoop()
    return await awaitable


def running_loop() -> asyncio.AbstractEventLoop | None:
    """Return the event loop that is running in this thread; None where there is none."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def in_loop() -> bool:
    """Say whether an event loop is running in this thread."""
    return running_loop() is not None


class Spent(BaseException):
    """Raised at the door where a limit lets no further attempt out: the step is given up, and runs again later.

    It is no Exception: no node shall catch it, and its step has not failed.
    """


async def perform(run: Run, work: Work, effect: Effect) -> Any:
    """Do one effect for a node and return the answer: the latest of its attempts.

    Raises:
        Exception: what the last attempt raised; TimeoutError when it took longer than `effect.timeout` seconds.
        Spent: a limit of the run is reached; the run says which.
    """
    number, spending = len(work.calls), run.spending
    attempt, wait, call = 0, 0.0, effect.target and _at_target
    key = None if run.chaos is None else _key(run, work, effect)
    while True:
        attempt += 1
        if spending is not None and not spending.lets_out(run, work, effect, wait):
            raise Spent
        if wait:
            await run.need_loop()
            await run.clock.sleep(wait)
        began, error, answer, sent = run.ns(), None, None, sent_of(effect)
        try:
            if call is None:  # once: a script shall find the same place at each attempt
                call = run.world.find(effect, work)
            if run.threaded or effect.timeout is not None or effect.blocking or key is not None:
                answer = await _slow(run, call, effect, key and (*key, attempt))
            else:
                answer = call(effect)
            if answer.__class__ not in PLAIN_ANSWERS:
                answer = await _settled(run, answer, effect)
            if effect.check is not None:
                effect.check(answer)
        except (Exception, SystemExit) as raised:  # noqa: BLE001  (kept in the row of the attempt; the last is raised)
            error, answer = spelled_out(raised), None
        work.busy, took = True, (run.ns() - began) / 1e9
        try:
            row = _row(work, number, effect, sent, attempt, wait, answer, error, took)
        except BoardError as unfit:  # an answer that nothing can keep is the attempt's failure
            error = unfit
            row = _row(work, number, effect, sent, attempt, wait, None, error, took)
        work.calls.append(row)
        if error is None:
            return answer if run.hold is None else await _read_first(run, work, effect, answer)
        if attempt >= effect.attempts or _for_good(error):
            raise error
        wait = max(effect.backoff, getattr(error, "retry_after", None) or 0.0)


def _for_good(error: Exception) -> bool:
    """Say whether another attempt would fail alike: the run's own mistake, or what a model's server refuses."""
    return isinstance(error, AgentRuntimeError) or (isinstance(error, LLMError) and not error.again)


async def held_first(run: Run, work: Work, effect: Effect) -> Any:
    """Do one effect where somebody may want to read and change it before it goes out, or to answer in its place."""
    if run.hold is not None and run.hold(work, effect, "before"):
        held = await Hold(effect, "call", "before")
        effect = held.effect
        if held.answered:
            work.busy = True
            row = _row(work, len(work.calls), effect, sent_of(effect), 1, 0.0, held.answer, None, 0.0)
            work.calls.append(row)
            return held.answer
    return await perform(run, work, effect)


async def _read_first(run: Run, work: Work, effect: Effect, answer: Any) -> Any:
    """Return an answer that somebody may want to read and change before its node gets it."""
    if run.hold is None or not run.hold(work, effect, "after"):
        return answer
    back = await Hold(effect, "call", "after", answer)
    if not back.answered:
        return answer
    work.calls[-1] = work.calls[-1]._replace(result=freeze(back.answer))
    return back.answer


def _at_target(effect: Effect) -> Any:
    return effect.target(**effect.arguments)  # type: ignore[misc]  # taken only where the effect brings one


def _key(run: Run, work: Work, effect: Effect) -> tuple[str, str, int]:
    """Return what names a call in every run alike: its node, its kind, and how many of those came before."""
    node, kind = work.node.id, effect.kind
    return node, kind, run.calls_before(kind, node) + len({row.call for row in work.calls if row.kind == kind})


async def _slow(run: Run, call: Callable[[Effect], Any], effect: Effect, key: Key | None) -> Any:
    """Make a call that might hold others up: in a thread, unless it is async anyway. Chaos may come between."""
    if effect.kind in SPARED:
        return call(effect)
    spent = 0.0 if key is None else await _disturbed(run, effect, key)
    await run.need_loop()
    if inspect.iscoroutinefunction(effect.target or call):
        answer = await _limited(call(effect), effect, spent)
    elif run.threaded or effect.timeout is not None or effect.blocking:
        answer = await _limited(in_thread(call, effect), effect, spent)
    else:
        answer = call(effect)
    if run.chaos is None or key is None or effect.kind != "llm":
        return answer
    answer = await _settled(run, answer, effect)
    await run.clock.sleep(run.chaos.throttled(key, tokens_of(answer)))
    return answer


async def _disturbed(run: Run, effect: Effect, key: Key) -> float:
    """Let chaos hold a call up, or make it fail; return how many seconds it was held up.

    Raises:
        TimeoutError: it is held up for longer than the effect may take.
    """
    assert run.chaos is not None
    delay = run.chaos.delay(key)
    late = effect.timeout is not None and delay >= effect.timeout
    if delay > 0:
        await run.need_loop()
        await run.clock.sleep(effect.timeout if late and effect.timeout is not None else delay)
    if late:
        raise _too_late(effect)
    run.chaos.strike(key)
    return delay


async def _settled(run: Run, answer: Any, effect: Effect) -> Any:
    """Return what an answer comes to: a person's when one has to be asked, what an awaitable gives, or itself."""
    if answer is WAIT:
        return await _asked(run, effect)
    if inspect.isawaitable(answer):
        await run.need_loop()
        answer = await _limited(answer, effect)
    return answer


async def _limited(awaitable: Awaitable[Any], effect: Effect, spent: float = 0.0) -> Any:
    """Await something within the time that an effect has left."""
    if effect.timeout is None:
        return await awaitable
    try:
        return await asyncio.wait_for(awaitable, effect.timeout - spent)
    except TimeoutError:
        raise _too_late(effect) from None


def _too_late(effect: Effect) -> TimeoutError:
    return TimeoutError(f"{effect.kind} {effect.name!r} took longer than {effect.timeout:g} s")


async def _asked(run: Run, effect: Effect) -> Any:
    hold = Hold(effect, "answer", "before")
    if effect.timeout is not None:
        hold.ends_at(run.ns() + round(effect.timeout * 1e9), run.ns)
    held = await hold
    if held.late:
        raise TimeoutError(f"nobody has answered {effect.name!r} within {effect.timeout:g} s")
    if not held.answered:
        raise ExecutionError(
            Problem(
                "X106",
                f"nobody has answered {effect.name!r}",
                f"the {effect.kind} of node {effect.name!r}",
                "the step went on without an answer",
                "call session.answer(value)",
            )
        )
    return held.answer


def sent_of(effect: Effect) -> Any:
    """Return what an effect sends, frozen before it goes out: what is called may change its arguments."""
    given = effect.arguments
    return freeze(given if given.__class__ is dict else dict(given)) if given else NO_ARGUMENTS


def _row(
    work: Work,
    number: int,
    effect: Effect,
    arguments: Any,
    attempt: int,
    wait: float,
    answer: Any,
    error: Exception | None,
    seconds: float,
) -> Call:
    # Its step is only guessed: what runs beside it may be committed first, and then `flush` gives it another number.
    step, act, kind, name = work.run.position + 1, work.act.id, effect.kind, effect.name
    message = None if error is None else f"{type(error).__name__}: {error}"
    if answer.__class__ in PLAIN_ANSWERS:
        known = (step, act, number, kind, name, attempt, wait, arguments, freeze(answer), message, seconds)
        return _new_call(Call, (*known, None, None, None))
    usage = getattr(answer, "usage", None)
    return Call(
        step,
        act,
        number,
        kind,
        name,
        attempt,
        wait,
        arguments,
        freeze(getattr(answer, "content", answer)),
        message,
        seconds,
        tokens_in=getattr(usage, "tokens_in", None),
        tokens_out=getattr(usage, "tokens_out", None),
        cost_usd=getattr(usage, "cost_usd", None),
    )
