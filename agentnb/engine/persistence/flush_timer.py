"""Flush timer: how much of a run may be lost in a crash, and the threads that flush while no step runs.

One thread per process waits for all runs. Only a run with unsaved records when its time has come gets its own thread,
so that a hanging store does not delay other runs; most short runs have ended by then.
"""

from __future__ import annotations

import heapq
import os
import threading
import time
import weakref
from dataclasses import dataclass
from itertools import count
from typing import Final, Protocol

_IDLE: Final = 10.0  # seconds that the common thread waits for another run before it ends


@dataclass(frozen=True, slots=True)
class Batch:
    """How much may be lost in a crash: at most this many steps and milliseconds."""

    steps: int = 1000
    ms: int = 200


class Flushable(Protocol):
    """An object that may have unsaved records."""

    def catch_up(self) -> bool:
        """Save what is pending; return True if more may follow."""
        ...

    def needs_thread(self) -> bool:
        """Return True if something is pending; otherwise `flush_later` is called again when something is."""
        ...


class _Timer:
    """The thread that waits until the first of many flushes is due."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._due: list[tuple[float, int, weakref.ref[Flushable], float, str]] = []  # a heap: time, order, ...
        self._order = count()
        self._runs = False

    def add(self, behind: Flushable, seconds: float, name: str) -> None:
        entry = (time.monotonic() + seconds, next(self._order), weakref.ref(behind), seconds, name)
        with self._changed:
            heapq.heappush(self._due, entry)
            if not self._runs:
                self._runs = True
                threading.Thread(target=self._wait, name="agentnb-keep", daemon=True).start()
            elif self._due[0] is entry:
                self._changed.notify()

    def _wait(self) -> None:
        while True:
            with self._changed:
                if not self._due:
                    self._changed.wait(_IDLE)
                    if not self._due:
                        self._runs = False
                        return
                remaining = self._due[0][0] - time.monotonic()
                if remaining > 0:
                    self._changed.wait(remaining)
                    continue
                _, _, ref, seconds, name = heapq.heappop(self._due)
            behind = ref()
            if behind is not None and behind.needs_thread():
                _start_thread(behind, seconds, name)
            del behind


_TIMER = _Timer()


def flush_later(behind: Flushable, batch: Batch, name: str) -> None:
    """Flush the batch when it is due, if it has not been saved by then."""
    _TIMER.add(behind, batch.ms / 1000, name)


def _start_thread(behind: Flushable, seconds: float, name: str) -> None:
    """Start a daemon thread that flushes now and whenever a flush is due; it stops with its owner."""
    closed = threading.Event()
    weakref.finalize(behind, closed.set).atexit = False
    args = (weakref.ref(behind), seconds, closed)
    threading.Thread(target=_flush_periodically, args=args, name=f"agentnb-keep-{name}", daemon=True).start()


def _flush_periodically(behind: weakref.ref[Flushable], seconds: float, closed: threading.Event) -> None:
    while True:
        lag = behind()
        if lag is None or not lag.catch_up():
            return
        del lag
        if closed.wait(seconds):
            return


def _after_fork() -> None:
    global _TIMER  # noqa: PLW0603  (the thread stays in the parent, and so do the runs that it waits for)
    _TIMER = _Timer()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)

__all__ = ["Batch", "flush_later"]
