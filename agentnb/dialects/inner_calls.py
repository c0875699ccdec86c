"""Calls that a node's user function makes while it runs: effects of the step.

The code that performs such a call (a model, a tool) finds the step that it runs in, if any, in `CALLS`.
"""

from __future__ import annotations

import asyncio
import types
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterator
from contextlib import closing, contextmanager, suppress
from contextvars import Context, ContextVar, copy_context
from dataclasses import dataclass, field
from inspect import isawaitable
from threading import RLock
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from agentnb.board.values import thaw
from agentnb.engine.core.pending_step import Hold
from agentnb.event_loops import NEED_LOOP, get_running_loop

if TYPE_CHECKING:
    from agentnb.engine.core.work import Work
    from agentnb.world.effect import Effect


class Suspended(BaseException):
    """Raised through a node's function when a call is paused.

    The function runs again with the results of its earlier calls. The rest of the call is awaited in the context in
    which it was made.
    """

    def __init__(self, key: int | str, coroutine: Coroutine[Any, Any, Any], waits_for: Any) -> None:
        self.key, self.coroutine, self.waits_for = key, coroutine, waits_for
        self.context = copy_context()


class CallEnd(NamedTuple):
    """The end of a call."""

    value: Any = None
    error: Exception | None = None

    def result(self) -> Any:
        """Return the value, or raise the error."""
        if self.error is not None:
            raise self.error
        return self.value


@dataclass
class Calls:
    """The calls of a node's function in one attempt of its step. The function may run several times during the attempt.

    It runs again after a call was paused, with the results of all earlier calls (`ends`, by number or by the call's
    key).

    A coroutine may make calls in its own tasks. Such a task cannot be suspended, unlike `driver`, the task that runs
    the step: a paused call (`suspended`) then interrupts the function, and the calls in `running` continue meanwhile.
    """

    # The exceptions that interrupt a function so that it can run again
    stops: ClassVar[tuple[type[BaseException], ...]] = (Suspended,)

    work: Work
    ends: dict[int | str, CallEnd] = field(default_factory=dict)
    call_count: int = 0
    driver: asyncio.Task[Any] | None = None
    running: set[asyncio.Task[Any]] = field(default_factory=set)
    suspended: Suspended | None = None
    lock: RLock = field(default_factory=RLock)

    def call(self, effect: Effect, key: str | None = None) -> Any:
        """Perform an effect synchronously, from a function that cannot await."""
        with self.lock:  # a node may call several tools in threads
            known = self._make_key(key)
            if known not in self.ends:
                self.ends[known] = self._perform(effect, known)
                _repeat_stream(self.work)
            return self.ends[known].result()

    async def acall(self, effect: Effect, key: str | None = None) -> Any:
        """Perform an effect from a coroutine."""
        task = _get_task()
        if self.suspended is not None:  # the function runs again
            raise self.suspended
        known = self._make_key(key)
        if known not in self.ends:
            coroutine = self.work.call(effect)
            self.ends[known] = await (
                _drive_to_end(coroutine)
                if task is None or task is self.driver
                else self._drive_in_task(task, known, coroutine)
            )
            _repeat_stream(self.work)
        return self.ends[known].result()

    async def _drive_in_task(
        self, task: asyncio.Task[Any], key: int | str, coroutine: Coroutine[Any, Any, Any]
    ) -> CallEnd:
        self.running.add(task)
        try:
            return await _drive_until_held(key, coroutine)
        except Suspended as suspended:
            if self.suspended is None:
                self.suspended = suspended
            raise
        finally:
            self.running.discard(task)

    async def run_until_ended(self, run: Callable[[], Any], stopped: BaseException | None = None) -> Any:
        """Run a node's function until none of `stops` interrupts it; return its result.

        `stopped` is the exception that has already interrupted it.
        """
        while True:
            if stopped is not None:
                await self.resume(stopped)
            self.work.copies.clear()  # it sees the state as it was
            try:
                result = run()
                return await result if isawaitable(result) else result
            except self.stops as stopped_again:
                stopped = stopped_again

    async def resume(self, stopped: BaseException) -> None:
        """Wait for the end of a paused call; then the function can run again."""
        assert isinstance(stopped, Suspended)
        while self.running:
            await asyncio.wait(self.running)
        self.suspended = None
        self.ends[stopped.key] = await run_in_context(stopped.context, _drive_to_end(_await_rest(stopped)))
        _repeat_stream(self.work)
        self.call_count = 0

    def to_question(self, _error: Exception) -> dict[str, Any] | None:
        """Return the record of a tool that raised an error in order to ask a person; None if it did not ask."""
        return None

    def to_recorded(self, answer: Any) -> Any:
        """Return the record of a tool's answer."""
        return {"value": answer}

    def answer_in(self, result: Any) -> Any:
        """Return the answer of a tool, whether new, recorded, or changed by a person."""
        return result

    def add_writes(self, record: dict[str, Any]) -> dict[str, Any]:
        """Return the record of the call being performed with what it wrote to the state, besides its answer."""
        return record

    def repeat_writes(self, record: Any) -> None:
        """Write to the state what a call wrote, whether its record is new or old."""

    def _make_key(self, key: str | None) -> int | str:
        if key is not None:
            return key
        self.call_count += 1
        return self.call_count

    def _perform(self, effect: Effect, key: int | str) -> CallEnd:
        run, coroutine = self.work.run, self.work.call(effect)
        threaded, run.uses_threads = run.uses_threads, False  # the function blocks its thread anyway
        try:
            waits_for = coroutine.send(None)
        except StopIteration as ended:
            return CallEnd(ended.value)
        except Exception as error:  # noqa: BLE001  (raised where the function made the call)
            return CallEnd(error=error)
        finally:
            run.uses_threads = threaded
        raise Suspended(key, coroutine, waits_for)


async def _drive_to_end(call: Awaitable[Any]) -> CallEnd:
    try:
        return CallEnd(await call)
    except Exception as error:  # noqa: BLE001  (raised where the function made the call)
        return CallEnd(error=error)


@types.coroutine
def _drive_until_held(key: int | str, coroutine: Coroutine[Any, Any, Any]) -> Generator[Any, Any, CallEnd]:
    """Await a call in a task that a function has created.

    Raises:
        Suspended: the call is paused.
    """
    error: BaseException | None = None
    reply: Any = None
    while True:
        try:
            waits_for = coroutine.send(reply) if error is None else coroutine.throw(error)
        except StopIteration as ended:
            return CallEnd(ended.value)
        except Exception as raised:  # noqa: BLE001  (raised where the function made the call)
            return CallEnd(error=raised)
        reply, error = None, None
        if isinstance(waits_for, Hold):
            raise Suspended(key, coroutine, waits_for)
        if waits_for is not NEED_LOOP:
            try:
                reply = yield waits_for
            except BaseException as raised:  # noqa: BLE001  (a cancellation is passed to the call, too)
                error = raised


def _get_task() -> asyncio.Task[Any] | None:
    """Return the task that runs this code, if there is one."""
    return None if get_running_loop() is None else asyncio.current_task()


@dataclass
class Performed:
    """A call that is being performed: its name, and what it writes to the state besides its answer."""

    name: str
    writes: list[tuple[str, Any]] = field(default_factory=list)


CALLS: ContextVar[Calls | None] = ContextVar("CALLS", default=None)
PERFORMED: ContextVar[Performed | None] = ContextVar("PERFORMED", default=None)


@types.coroutine
def _await_rest(suspended: Suspended) -> Generator[Any, Any, Any]:
    """Await the rest of a suspended call; replies and exceptions go to the call."""
    with closing(suspended.coroutine):
        yield suspended.waits_for
        return (yield from suspended.coroutine)


@types.coroutine
def run_in_context(context: Context, coroutine: Coroutine[Any, Any, Any]) -> Generator[Any, Any, Any]:
    """Await a coroutine in a separate context."""
    error: BaseException | None = None
    reply: Any = None
    calls = context.get(CALLS)
    while True:
        if calls is not None:
            calls.driver = _get_task()
        try:
            yielded = context.run(coroutine.send, reply) if error is None else context.run(coroutine.throw, error)
        except StopIteration as ended:
            return ended.value
        reply, error = None, None
        try:
            reply = yield yielded
        except BaseException as raised:  # noqa: BLE001  (a cancellation is passed to the node, too)
            error = raised


@contextmanager
def outside(name: str) -> Iterator[None]:
    """Perform the call with this name. Its inner calls are not effects, so a tool that calls a model is one call."""
    calls, performed = CALLS.set(None), PERFORMED.set(Performed(name))
    try:
        yield
    finally:
        PERFORMED.reset(performed)
        CALLS.reset(calls)


def add_result(error: Exception, result: dict[str, Any]) -> None:
    """Attach to an error what is recorded with it, unless it has a result of its own."""
    if result and not hasattr(error, "result"):
        with suppress(AttributeError, TypeError):  # its class allows no other attributes
            error.result = result  # type: ignore[attr-defined]


def stream(work: Work, chunk: Any) -> None:
    """Emit a chunk that a function or one of its calls streams.

    Its actor is the call that is being performed, if any.
    """
    performed = PERFORMED.get()
    work.emit("custom", chunk, None if performed is None else performed.name)


def _repeat_stream(work: Work) -> None:
    """Emit the streamed output of recorded calls, because they are not performed again."""
    while (
        work.run.recorded is not None
        and (event := work.run.recorded.next_event(work)) is not None
        and event.type == "custom"
        and event.actor != work.node.id
    ):
        work.emit("custom", thaw(event.payload), event.actor)


__all__ = ["CALLS", "PERFORMED", "CallEnd", "Calls", "Suspended", "add_result", "outside", "run_in_context", "stream"]
