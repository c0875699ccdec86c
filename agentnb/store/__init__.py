"""store: where runs are kept: in this process, in an SQLite file, on a PostgreSQL server. Imports none of them yet."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from agentnb.store.log import SqlLog
    from agentnb.store.memory import MemoryLog
    from agentnb.store.urls import open_log

_HOMES: Final = {"MemoryLog": "memory", "SqlLog": "log", "open_log": "urls"}

__all__ = ["MemoryLog", "SqlLog", "open_log"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    setattr(sys.modules[__name__], name, value)
    return value
