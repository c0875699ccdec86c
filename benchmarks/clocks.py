"""clocks: how this process's time and memory are measured, so that what else the machine does counts little.

Time is the processor's (`time.process_time`), with the garbage collector at rest: it is run before, not meanwhile.
"""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections.abc import Callable
from statistics import median
from typing import Any


def seconds_of(work: Callable[[], Any]) -> float:
    """Return the processor seconds that a call takes."""
    gc.collect()
    gc.disable()
    try:
        start = time.process_time()
        work()
        return time.process_time() - start
    finally:
        gc.enable()


def bytes_of(work: Callable[[], Any]) -> int:
    """Return by how many bytes a call makes the process's objects grow."""
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        work()
        gc.collect()
        return tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()


def medians(measure: Callable[[], float], runs: int) -> float:
    """Return the median of several measurements."""
    return median(measure() for _ in range(runs))
