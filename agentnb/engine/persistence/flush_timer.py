"""Flush timer: how much of a run may be lost in a crash, and the thread that flushes while no step runs."""

from __future__ import annotations

import threading
import weakref
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Batch:
    """How much may be lost in a crash: at most so many steps, and so many milliseconds."""

    steps: int = 1000
    ms: int = 200


class Behind(Protocol):
    """An object that may have unsaved records."""

    def catch_up(self) -> bool:
        """Save what is pending; return True if more may come."""
        ...


def begin_catching_up(behind: Behind, batch: Batch, name: str) -> threading.Thread:
    """Start a daemon thread that flushes the batch when it is due; it stops with its owner."""
    gone = threading.Event()
    weakref.finalize(behind, gone.set).atexit = False
    words = (weakref.ref(behind), batch.ms / 1000, gone)
    thread = threading.Thread(target=_flush_periodically, args=words, name=f"agentnb-keep-{name}", daemon=True)
    thread.start()
    return thread


def _flush_periodically(behind: weakref.ref[Behind], seconds: float, gone: threading.Event) -> None:
    while not gone.wait(seconds):
        here = behind()
        if here is None or not here.catch_up():
            return
        del here


__all__ = ["Batch", "begin_catching_up"]
