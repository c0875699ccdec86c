"""nesting: asyncio made re-entrant, on request only. The one door to nest-asyncio."""

from __future__ import annotations

import importlib


def enable_nesting() -> str:
    """Let `asyncio.run` and the like be called where a loop already runs, in this whole process; say what did it.

    agentnb itself never needs it: in a notebook write `await session.arun()`, or `session.start()`. It is for code
    around it that cannot be awaited. While such a nested run goes, buttons wait until it has ended. The maintained
    continuation nest-asyncio2 is taken where it is installed (ipykernel brings it), else nest-asyncio.
    """
    try:
        module = importlib.import_module("nest_asyncio2")
    except ImportError:
        module = importlib.import_module("nest_asyncio")
    module.apply()
    return module.__name__
