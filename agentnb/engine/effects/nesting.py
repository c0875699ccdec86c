"""Re-entrant asyncio, on request only. The only module that imports nest-asyncio."""

from __future__ import annotations

import importlib


def enable_nesting() -> str:
    """Allow `asyncio.run` and the like while an event loop is running, in the whole process; return the module used.

    agentnb itself never needs it: in a notebook write `await session.arun()`, or `session.start()`. It is for
    surrounding code that cannot be awaited. During such a nested run, buttons do not respond until it has ended. The
    maintained successor nest-asyncio2 is used if it is installed (ipykernel depends on it), else nest-asyncio.
    """
    try:
        module = importlib.import_module("nest_asyncio2")
    except ImportError:
        module = importlib.import_module("nest_asyncio")
    module.apply()
    return module.__name__
