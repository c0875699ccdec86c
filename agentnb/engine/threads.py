"""threads: where sync calls go that may hold others up. Each gets a thread, however many branches run."""

from __future__ import annotations

import asyncio
import contextvars
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import Any, Final

# A loop's own pool has a handful of threads: branches that wait for one another would wait without end.
MOST: Final = 256


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(MOST, "agentnb")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # a forked process has none of the threads


async def in_thread(call: Callable[..., Any], *words: Any) -> Any:
    """Call a function in a thread of its own, with the context variables of here, and return what it returns."""
    context = contextvars.copy_context()
    return await asyncio.get_running_loop().run_in_executor(_pool(), partial(context.run, call, *words))
