"""The kernel's main event loop, found from the main thread. Every command of a page is posted to it."""

from __future__ import annotations

import asyncio
import sys
import threading


def get_kernel_loop() -> asyncio.AbstractEventLoop | None:
    """Return the loop that runs a cell's code; None if there is none, as in a script.

    A widget's callback may run in another thread and another loop, so this is called once, while a cell runs.
    """
    if threading.current_thread() is threading.main_thread():
        try:
            return asyncio.get_running_loop()
        except RuntimeError:
            pass
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    io_loop = getattr(getattr(shell, "kernel", None), "io_loop", None)
    loop = getattr(io_loop, "asyncio_loop", None)
    return loop if isinstance(loop, asyncio.AbstractEventLoop) else None
