from __future__ import annotations

import asyncio
import contextvars
import threading

import pytest

from agentnb.engine.threads import in_thread

here = contextvars.ContextVar("here", default="nowhere")


def test_it_returns_what_the_function_returns_or_raises_what_it_raises():
    assert asyncio.run(in_thread(divmod, 7, 2)) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        asyncio.run(in_thread(divmod, 7, 0))


def test_the_function_runs_elsewhere_with_the_context_variables_of_here():
    async def main():
        here.set("set")
        return await in_thread(lambda: (here.get(), threading.current_thread()))

    value, thread = asyncio.run(main())
    assert value == "set"
    assert thread is not threading.current_thread()


def test_many_wait_for_one_another():
    barrier = threading.Barrier(50, timeout=30)

    async def main():
        await asyncio.gather(*(in_thread(barrier.wait) for _ in range(50)))

    asyncio.run(main())
    assert not barrier.broken
