"""batches: how much of a run may be lost when its process dies, and the thread that sees to it while nothing moves."""

from __future__ import annotations

import threading
import weakref
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Batch:
    """How much may be lost when a process dies: at most so many steps, and what was done in so many milliseconds."""

    steps: int = 1000
    ms: int = 200


class Behind(Protocol):
    """What may have something that has waited to be kept."""

    def catch_up(self) -> bool:
        """Keep what has waited; say whether more may come."""
        ...


def begin_catching_up(behind: Behind, batch: Batch, name: str) -> threading.Thread:
    """Begin a thread that keeps what has waited for as long as it may; it ends with whom it works for."""
    gone = threading.Event()
    weakref.finalize(behind, gone.set).atexit = False
    words = (weakref.ref(behind), batch.ms / 1000, gone)
    thread = threading.Thread(target=_catch_up, args=words, name=f"agentnb-keep-{name}", daemon=True)
    thread.start()
    return thread


def _catch_up(behind: weakref.ref[Behind], seconds: float, gone: threading.Event) -> None:
    while not gone.wait(seconds):
        here = behind()
        if here is None or not here.catch_up():
            return
        del here


__all__ = ["Batch", "begin_catching_up"]
