"""Stores of runs: in memory, in an SQLite file, on a PostgreSQL server. Drivers are imported on first use."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from agentnb.store.memory import MemoryLog
    from agentnb.store.sql_log import SqlLog
    from agentnb.store.urls import open_log

_HOMES: Final = {"MemoryLog": "memory", "SqlLog": "sql_log", "open_log": "urls"}

__all__ = ["MemoryLog", "SqlLog", "open_log"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    setattr(sys.modules[__name__], name, value)
    return value
