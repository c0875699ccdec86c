"""flight: a step that has begun and is not committed yet, and what it may be held at."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator
from time import perf_counter_ns
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Final

from agentnb.board.values import ABSENT, freeze
from agentnb.engine.history import Act

if TYPE_CHECKING:
    from agentnb.engine.frames import Activation
    from agentnb.engine.run import Run
    from agentnb.engine.work import Effect

NEED_LOOP: Final = object()


class NeedLoop:
    """Awaited to come back inside an event loop."""

    def __await__(self) -> Generator[Any, Any, None]:
        """Hand the mark to whoever drives this coroutine."""
        yield NEED_LOOP


class Hold:
    """What a step waits at: for a person's answer, at a call that may be read and changed, at an event it has emitted.

    `kind` is `answer`, `approval`, `call` or `emit`. `go` lets it go on: with the effect as it stands now, or with
    `answer` where it is `answered`. `until` is the moment, in nanoseconds of `clock`, from which on it goes on by
    itself.
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
    """A step that has begun and is not committed yet: its coroutine, and what it is held at.

    `noted` counts how often people have done something meanwhile.
    """

    __slots__ = ("act", "at", "began", "coro", "gone", "hold", "looped", "noted", "task", "waits")

    def __init__(self, act: Activation, awaitable: Awaitable[Any], began: int) -> None:
        self.act, self.began = act, began
        self.at = act.work.run.position  # after which step it began: no two turns of a node begin at one
        own = awaitable.__class__ is CoroutineType
        self.coro: Coroutine[Any, Any, Any] = awaitable if own else _awaited(awaitable)  # type: ignore[assignment]  # as just asked
        self.hold: Hold | None = None
        self.task: asyncio.Task[int] | None = None
        self.waits: asyncio.Future[Any] | None = None  # what it awaits in the task of somebody else
        self.gone, self.noted = False, 0
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


def under_way(run: Run, flight: Flight, act: str, step: int) -> Act:
    """Return the act that says that people did something while a step was under way (`held`), or that it `ended`."""
    work = flight.act.work
    how = {"calls": work.called, "events": len(work.emitted)} if act == "held" else {"held": flight.noted}
    new = freeze({"turn": flight.act.id, **how})
    return Act(step, act, flight.act.node.id, ABSENT, new, "user", run.clock.seen())


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
