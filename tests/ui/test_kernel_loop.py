from __future__ import annotations

import asyncio
import sys
import threading
from types import SimpleNamespace

from agentnb.ui.kernel_loop import get_kernel_loop


def in_thread(function):
    results = []
    thread = threading.Thread(target=lambda: results.append(function()))
    thread.start()
    thread.join()
    return results[0]


def kernel(monkeypatch, loop):
    shell = SimpleNamespace(kernel=SimpleNamespace(io_loop=SimpleNamespace(asyncio_loop=loop)))
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))


def test_a_script_has_no_kernel_loop(monkeypatch):
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))
    assert get_kernel_loop() is None


def test_a_running_event_loop_is_the_kernel_loop():
    async def main():
        return get_kernel_loop() is asyncio.get_running_loop()

    assert asyncio.run(main())


def test_in_another_thread_it_is_still_the_kernel_loop(monkeypatch):
    loop = asyncio.new_event_loop()
    kernel(monkeypatch, loop)

    async def callback():
        return get_kernel_loop()

    try:
        assert in_thread(lambda: asyncio.run(callback())) is loop
    finally:
        loop.close()
