"""Platforms without threads: WebAssembly in a browser (Pyodide, JupyterLite), whose event loop cannot be nested.

`run_here` nevertheless runs a coroutine to completion: by the stack switching of JavaScript where there is one (JSPI),
else on a loop of its own, which knows timers and nothing of the page. What only the page's loop can deliver, such as
the answer of a server, ends with a Problem that names the `await`.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Coroutine
from importlib import import_module
from typing import Any, TypeVar

from agentnb.errors import ExecutionError, Problem

T = TypeVar("T")


def has_threads() -> bool:
    """Return True if this platform can start threads."""
    return sys.platform != "emscripten"


def run_here(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to completion in this thread, whether an event loop runs in it or not.

    Raises:
        ExecutionError: X533, it waits for what only the running loop can deliver.
    """
    ffi = _get_ffi()
    if ffi is not None and ffi.can_run_sync():
        result: T = ffi.run_sync(coroutine)
        return result
    outer = asyncio._get_running_loop()  # noqa: SLF001  (as asyncio offers it to those who make loops)
    task = None if outer is None else asyncio.current_task(outer)
    if outer is not None and task is not None:
        asyncio.tasks._leave_task(outer, task)  # noqa: SLF001  (the same)
    asyncio._set_running_loop(None)  # noqa: SLF001  (the same)
    try:
        with asyncio.Runner(loop_factory=_TimerLoop) as runner:
            return runner.run(coroutine)
    finally:
        asyncio._set_running_loop(outer)  # noqa: SLF001  (the same)
        if outer is not None and task is not None:
            asyncio.tasks._enter_task(outer, task)  # noqa: SLF001  (the same)


def _get_ffi() -> Any:
    """Return Pyodide's functions for JavaScript; None elsewhere."""
    try:
        return import_module("pyodide.ffi")
    except ImportError:
        return None


class _Timers:
    """The selector of a loop without input and output: it only waits for the next timer."""

    def select(self, timeout: float | None) -> list[Any]:
        """Wait until the next timer is due.

        X533: run() waits for what only the page's event loop can deliver.

        Raises:
            ExecutionError: X533, there is no timer, so nothing would ever happen.
        """
        if timeout is None:
            raise ExecutionError(
                Problem("X533", "this cannot be waited for without `await` here", "a run in a browser",
                        "a node waits for the page (a request, a message), and there is no other thread to wait in",
                        "write `await session.arun()` or `await session.astep()`, or call session.start()")
            )  # fmt: skip
        time.sleep(timeout)
        return []


class _TimerLoop(asyncio.BaseEventLoop):
    """An event loop without input and output."""

    def __init__(self) -> None:
        super().__init__()
        self._selector = _Timers()

    def _process_events(self, event_list: list[Any]) -> None:
        """Handle no events: there are none."""

    def _write_to_self(self) -> None:
        """Wake nothing: no other thread calls."""


__all__ = ["has_threads", "run_here"]
