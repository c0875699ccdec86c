"""The polaris dialect: control flow built in Python: systems, decisions, switches, parallel branches, loops, handlers.

Systems are plain or async functions. Their parameters declare by type what they receive, and their return value is
stored by its type. `Graph` builds, `validate()` checks, `agentnb.load(graph)` creates a Recipe, and `await
GraphExecutor().execute(graph)` runs it as defined by polaris's document.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentnb.dialects.lazy_names import make_lazy_names

if TYPE_CHECKING:
    from agentnb.dialects.polaris.api import ExecutionError, ExecutionResult, GraphExecutor
    from agentnb.dialects.polaris.parts.devtools import DevToolsPlugin, SystemInfo
    from agentnb.dialects.polaris.parts.graph import Graph
    from agentnb.dialects.polaris.parts.systems import Out, Res, SystemContext, system
    from agentnb.dialects.polaris.parts.validation import Finding, ValidationResult
    from agentnb.dialects.polaris.schema import (
        ConditionalEdge,
        DecisionNode,
        Edge,
        ErrorEdge,
        GraphEdge,
        JoinNode,
        LoopBackEdge,
        LoopNode,
        Node,
        ParallelEdge,
        ParallelNode,
        SequentialEdge,
        SwitchNode,
        SystemNode,
        TimeoutEdge,
    )
    from agentnb.session.schedules import AllGraphSchedules, GraphEvent, HooksAPI, Schedule

    OnBranchCancelled = Schedule.OnBranchCancelled
    OnDecisionComplete = Schedule.OnDecisionComplete
    OnDecisionStart = Schedule.OnDecisionStart
    OnGraphComplete = Schedule.OnGraphComplete
    OnGraphFailure = Schedule.OnGraphFailure
    OnGraphStart = Schedule.OnGraphStart
    OnLoopEnd = Schedule.OnLoopEnd
    OnLoopIteration = Schedule.OnLoopIteration
    OnLoopStart = Schedule.OnLoopStart
    OnParallelComplete = Schedule.OnParallelComplete
    OnParallelStart = Schedule.OnParallelStart
    OnSwitchComplete = Schedule.OnSwitchComplete
    OnSwitchStart = Schedule.OnSwitchStart
    OnSystemComplete = Schedule.OnSystemComplete
    OnSystemError = Schedule.OnSystemError
    OnSystemRetry = Schedule.OnSystemRetry
    OnSystemStart = Schedule.OnSystemStart
    OnSystemTimeout = Schedule.OnSystemTimeout

__all__ = [
    "AllGraphSchedules",
    "ConditionalEdge",
    "DecisionNode",
    "DevToolsPlugin",
    "Edge",
    "ErrorEdge",
    "ExecutionError",
    "ExecutionResult",
    "Finding",
    "Graph",
    "GraphEdge",
    "GraphEvent",
    "GraphExecutor",
    "HooksAPI",
    "JoinNode",
    "LoopBackEdge",
    "LoopNode",
    "Node",
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
    "ParallelEdge",
    "ParallelNode",
    "Res",
    "SequentialEdge",
    "SwitchNode",
    "SystemContext",
    "SystemInfo",
    "SystemNode",
    "TimeoutEdge",
    "ValidationResult",
    "system",
]

_HERE = "agentnb.dialects.polaris"
_HOMES = {
    "Graph": f"{_HERE}.parts.graph",
    "system": f"{_HERE}.parts.systems",
    "Out": f"{_HERE}.parts.systems",
    "Res": f"{_HERE}.parts.systems",
    "SystemContext": f"{_HERE}.parts.systems",
    "ValidationResult": f"{_HERE}.parts.validation",
    "Finding": f"{_HERE}.parts.validation",
    "GraphExecutor": f"{_HERE}.api",
    "ExecutionResult": f"{_HERE}.api",
    "ExecutionError": f"{_HERE}.api",
    "DevToolsPlugin": f"{_HERE}.parts.devtools",
    "SystemInfo": f"{_HERE}.parts.devtools",
    **{name: f"{_HERE}.schema" for name in __all__ if name.endswith(("Node", "Edge"))},
    **dict.fromkeys(("AllGraphSchedules", "GraphEvent", "HooksAPI"), "agentnb.session.schedules"),
    **{name: "agentnb.session.schedules:Schedule" for name in __all__ if name.startswith("On")},
}

__getattr__, __dir__ = make_lazy_names(__name__, _HOMES)
