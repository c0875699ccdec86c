"""activegraph: agents as behaviours on events: a log is the truth, and a graph of objects follows from it.

The front door is `Runtime(Graph(), behaviors=[...]).run_goal(text)`; `.session` steps it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentnb.dialects.doors import door

if TYPE_CHECKING:
    from agentnb.dialects.activegraph.behaviors import (
        Behavior,
        RelationBehavior,
        behavior,
        clear_registry,
        get_registry,
        register,
        relation_behavior,
    )
    from agentnb.dialects.activegraph.budgets import Budget
    from agentnb.dialects.activegraph.caches import LLMCache, ToolCache
    from agentnb.dialects.activegraph.context import View
    from agentnb.dialects.activegraph.errors import (
        ActiveGraphError,
        AmbiguousBehaviorError,
        AmbiguousToolError,
        ApprovalNotFoundError,
        BehaviorNotFoundError,
        EventNotFoundError,
        InternalEvaluatorError,
        InvalidActivateAfter,
        InvalidArgumentType,
        InvalidPatchLifecycleState,
        InvalidPatchOperation,
        InvalidRuntimeConfiguration,
        LLMBehaviorError,
        MissingProviderError,
        NonSerializableEventError,
        PackConflictError,
        PackError,
        PackSchemaViolation,
        PackValidationError,
        PackVersionConflictError,
        RegistrationError,
        ReplayDivergenceError,
        ReservedFieldError,
        ToolError,
        ToolNotFoundError,
        UnknownToolError,
        UnsupportedPatternError,
    )
    from agentnb.dialects.activegraph.events import Event
    from agentnb.dialects.activegraph.graph import Graph
    from agentnb.dialects.activegraph.graph_stores import GraphStore, InMemoryGraphStore
    from agentnb.dialects.activegraph.models import LLMMessage, LLMProvider, LLMResponse, ToolCall
    from agentnb.dialects.activegraph.objects import Object, Patch, PendingApproval, Relation
    from agentnb.dialects.activegraph.observing import configure_logging
    from agentnb.dialects.activegraph.packs import ObjectType, Pack, PackPolicy, PackPrompt, RelationType
    from agentnb.dialects.activegraph.party import Frame, Policy
    from agentnb.dialects.activegraph.runtime import Runtime
    from agentnb.dialects.activegraph.status import BehaviorFailure, RunQuantumResult, RuntimeStatus
    from agentnb.dialects.activegraph.thinking import LLMBehavior, llm_behavior
    from agentnb.dialects.activegraph.times import Clock, FrozenClock, IDGen, TickingClock
    from agentnb.dialects.activegraph.tools import Tool, ToolContext, clear_tool_registry, get_tool_registry, tool

_HERE = "agentnb.dialects.activegraph"
_HOMES = {
    name: f"{_HERE}.{module}"
    for module, names in {
        "behaviors": "Behavior RelationBehavior behavior clear_registry get_registry register relation_behavior",
        "budgets": "Budget",
        "caches": "LLMCache ToolCache",
        "context": "View",
        "errors": "ActiveGraphError AmbiguousBehaviorError AmbiguousToolError ApprovalNotFoundError "
        "BehaviorNotFoundError EventNotFoundError InternalEvaluatorError InvalidActivateAfter "
        "InvalidArgumentType InvalidPatchLifecycleState InvalidPatchOperation "
        "InvalidRuntimeConfiguration LLMBehaviorError MissingProviderError NonSerializableEventError "
        "PackConflictError PackError PackSchemaViolation PackValidationError PackVersionConflictError "
        "RegistrationError ReplayDivergenceError ReservedFieldError ToolError ToolNotFoundError "
        "UnknownToolError UnsupportedPatternError",
        "events": "Event",
        "graph": "Graph",
        "graph_stores": "GraphStore InMemoryGraphStore",
        "models": "LLMMessage LLMProvider LLMResponse ToolCall",
        "objects": "Object Patch PendingApproval Relation",
        "observing": "configure_logging",
        "packs": "ObjectType Pack PackPolicy PackPrompt RelationType",
        "party": "Frame Policy",
        "runtime": "Runtime",
        "status": "BehaviorFailure RunQuantumResult RuntimeStatus",
        "thinking": "LLMBehavior llm_behavior",
        "times": "Clock FrozenClock IDGen TickingClock",
        "tools": "Tool ToolContext clear_tool_registry get_tool_registry tool",
    }.items()
    for name in names.split()
}

__all__ = [
    "ActiveGraphError",
    "AmbiguousBehaviorError",
    "AmbiguousToolError",
    "ApprovalNotFoundError",
    "Behavior",
    "BehaviorFailure",
    "BehaviorNotFoundError",
    "Budget",
    "Clock",
    "Event",
    "EventNotFoundError",
    "Frame",
    "FrozenClock",
    "Graph",
    "GraphStore",
    "IDGen",
    "InMemoryGraphStore",
    "InternalEvaluatorError",
    "InvalidActivateAfter",
    "InvalidArgumentType",
    "InvalidPatchLifecycleState",
    "InvalidPatchOperation",
    "InvalidRuntimeConfiguration",
    "LLMBehavior",
    "LLMBehaviorError",
    "LLMCache",
    "LLMMessage",
    "LLMProvider",
    "LLMResponse",
    "MissingProviderError",
    "NonSerializableEventError",
    "Object",
    "ObjectType",
    "Pack",
    "PackConflictError",
    "PackError",
    "PackPolicy",
    "PackPrompt",
    "PackSchemaViolation",
    "PackValidationError",
    "PackVersionConflictError",
    "Patch",
    "PendingApproval",
    "Policy",
    "RegistrationError",
    "Relation",
    "RelationBehavior",
    "RelationType",
    "ReplayDivergenceError",
    "ReservedFieldError",
    "RunQuantumResult",
    "Runtime",
    "RuntimeStatus",
    "TickingClock",
    "Tool",
    "ToolCache",
    "ToolCall",
    "ToolContext",
    "ToolError",
    "ToolNotFoundError",
    "UnknownToolError",
    "UnsupportedPatternError",
    "View",
    "behavior",
    "clear_registry",
    "clear_tool_registry",
    "configure_logging",
    "get_registry",
    "get_tool_registry",
    "llm_behavior",
    "register",
    "relation_behavior",
    "tool",
]

__getattr__ = door(__name__, _HOMES)
