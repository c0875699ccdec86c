"""polaris: control flow built in Python: systems, decisions, switches, parallel work, loops, handlers.

Systems are plain or async functions; their parameters say by type what they are given, and what they return is stored
by its type. `Graph` builds, `validate()` checks, `agentnb.load(graph)` makes a Recipe of it, and
`await GraphExecutor().execute(graph)` runs it as its document says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentnb.dialects.doors import door

if TYPE_CHECKING:
    from agentnb.dialects.polaris.api import ExecutionError, ExecutionResult, GraphExecutor
    from agentnb.dialects.polaris.devtools import DevToolsPlugin, SystemInfo
    from agentnb.dialects.polaris.graph import Graph
    from agentnb.dialects.polaris.hooks import (
        AllGraphSchedules,
        GraphEvent,
        HooksAPI,
        OnBranchCancelled,
        OnDecisionComplete,
        OnDecisionStart,
        OnGraphComplete,
        OnGraphFailure,
        OnGraphStart,
        OnLoopEnd,
        OnLoopIteration,
        OnLoopStart,
        OnParallelComplete,
        OnParallelStart,
        OnSwitchComplete,
        OnSwitchStart,
        OnSystemComplete,
        OnSystemError,
        OnSystemRetry,
        OnSystemStart,
        OnSystemTimeout,
    )
    from agentnb.dialects.polaris.systems import Out, Res, SystemContext, system
    from agentnb.dialects.polaris.validate import Finding, ValidationResult

__all__ = [
    "AllGraphSchedules",
    "DevToolsPlugin",
    "ExecutionError",
    "ExecutionResult",
    "Finding",
    "Graph",
    "GraphEvent",
    "GraphExecutor",
    "HooksAPI",
    "OnBranchCancelled",
    "OnDecisionComplete",
    "OnDecisionStart",
    "OnGraphComplete",
    "OnGraphFailure",
    "OnGraphStart",
    "OnLoopEnd",
    "OnLoopIteration",
    "OnLoopStart",
    "OnParallelComplete",
    "OnParallelStart",
    "OnSwitchComplete",
    "OnSwitchStart",
    "OnSystemComplete",
    "OnSystemError",
    "OnSystemRetry",
    "OnSystemStart",
    "OnSystemTimeout",
    "Out",
    "Res",
    "SystemContext",
    "SystemInfo",
    "ValidationResult",
    "system",
]

_HERE = "agentnb.dialects.polaris"
_HOMES = {
    "Graph": f"{_HERE}.graph",
    "system": f"{_HERE}.systems",
    "Out": f"{_HERE}.systems",
    "Res": f"{_HERE}.systems",
    "SystemContext": f"{_HERE}.systems",
    "ValidationResult": f"{_HERE}.validate",
    "Finding": f"{_HERE}.validate",
    "GraphExecutor": f"{_HERE}.api",
    "ExecutionResult": f"{_HERE}.api",
    "ExecutionError": f"{_HERE}.api",
    "DevToolsPlugin": f"{_HERE}.devtools",
    "SystemInfo": f"{_HERE}.devtools",
    **dict.fromkeys(("AllGraphSchedules", "GraphEvent", "HooksAPI"), f"{_HERE}.hooks"),
    **{name: f"{_HERE}.hooks" for name in __all__ if name.startswith("On")},
}

__getattr__ = door(__name__, _HOMES)
