"""The activegraph dialect: agents as behaviors triggered by events.

The log is the source of truth, and a graph of objects is derived from it.

The entry point is `Runtime(Graph(), behaviors=[...]).run_goal(text)`; `.session` steps it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentnb.dialects.lazy_names import make_lazy_names

if TYPE_CHECKING:
    from agentnb.dialects.activegraph.api import Runtime
    from agentnb.dialects.activegraph.errors import (
        ActiveGraphError,
        AmbiguousBehaviorError,
        AmbiguousToolError,
        ApprovalNotFoundError,
        BehaviorNotFoundError,
        ConfigurationError,
        DuplicateEventError,
        EventNotFoundError,
        ExecutionError,
        InternalEvaluatorError,
        InvalidActivateAfter,
        InvalidArgumentType,
        InvalidPatchLifecycleState,
        InvalidPatchOperation,
        InvalidRuntimeConfiguration,
        InvalidToolRegistration,
        LLMBehaviorError,
        MissingProviderError,
        MissingToolError,
        NonSerializableEventError,
        PackConflictError,
        PackError,
        PackNotFoundError,
        PackPromptLoadError,
        PackSchemaViolation,
        PackSettingsMissingError,
        PackValidationError,
        PackVersionConflictError,
        PatternError,
        RegistrationError,
        ReplayDivergenceError,
        ReplayError,
        ReservedFieldError,
        StorageError,
        ToolError,
        ToolNotFoundError,
        UnknownToolError,
        UnsupportedPatternError,
    )
    from agentnb.dialects.activegraph.parts.behaviors import (
        Behavior,
        RelationBehavior,
        behavior,
        clear_registry,
        get_registry,
        register,
        relation_behavior,
    )
    from agentnb.dialects.activegraph.parts.budgets import Budget
    from agentnb.dialects.activegraph.parts.caches import CachedToolResponse, LLMCache, ToolCache
    from agentnb.dialects.activegraph.parts.clocks import Clock, FrozenClock, IDGen, TickingClock
    from agentnb.dialects.activegraph.parts.context import View
    from agentnb.dialects.activegraph.parts.diff import Diff, DivergentObject, DivergentRelation
    from agentnb.dialects.activegraph.parts.events import Event
    from agentnb.dialects.activegraph.parts.graph import Graph
    from agentnb.dialects.activegraph.parts.graph_stores import GraphStore, InMemoryGraphStore
    from agentnb.dialects.activegraph.parts.llm_delivery import LLMBehavior, llm_behavior
    from agentnb.dialects.activegraph.parts.log_output import configure_logging
    from agentnb.dialects.activegraph.parts.models import LLMMessage, LLMProvider, LLMResponse, ToolCall
    from agentnb.dialects.activegraph.parts.objects import Object, Patch, PendingApproval, Relation
    from agentnb.dialects.activegraph.parts.package_logs import to_activegraph
    from agentnb.dialects.activegraph.parts.packs import (
        DiscoveredPack,
        EmptySettings,
        ObjectType,
        Pack,
        PackPolicy,
        PackPrompt,
        RelationType,
        discover,
        load_by_name,
        load_prompts_from_dir,
    )
    from agentnb.dialects.activegraph.parts.recorded import (
        DirectToolInvoker,
        RecordedLLMProvider,
        RecordedToolProvider,
        RecordingLLMProvider,
        RecordingToolProvider,
        ToolInvoker,
    )
    from agentnb.dialects.activegraph.parts.run_config import Frame, Policy
    from agentnb.dialects.activegraph.parts.status import BehaviorFailure, RunQuantumResult, RuntimeStatus
    from agentnb.dialects.activegraph.parts.tools import Tool, ToolContext, clear_tool_registry, get_tool_registry, tool

_HERE = "agentnb.dialects.activegraph"
_HOMES = {
    name: f"{_HERE}.{module}"
    for module, names in {
        "parts.behaviors": "Behavior RelationBehavior behavior clear_registry get_registry register relation_behavior",
        "parts.budgets": "Budget",
        "parts.caches": "CachedToolResponse LLMCache ToolCache",
        "parts.context": "View",
        "parts.diff": "Diff DivergentObject DivergentRelation",
        "errors": "ActiveGraphError AmbiguousBehaviorError AmbiguousToolError ApprovalNotFoundError "
        "BehaviorNotFoundError ConfigurationError DuplicateEventError EventNotFoundError ExecutionError "
        "InternalEvaluatorError InvalidActivateAfter InvalidArgumentType "
        "InvalidPatchLifecycleState InvalidPatchOperation InvalidRuntimeConfiguration "
        "InvalidToolRegistration LLMBehaviorError MissingProviderError MissingToolError "
        "NonSerializableEventError PackConflictError PackError PackNotFoundError PackPromptLoadError "
        "PackSchemaViolation PackSettingsMissingError PackValidationError PackVersionConflictError "
        "PatternError RegistrationError ReplayDivergenceError ReplayError ReservedFieldError "
        "StorageError ToolError ToolNotFoundError UnknownToolError UnsupportedPatternError",
        "parts.events": "Event",
        "parts.graph": "Graph",
        "parts.graph_stores": "GraphStore InMemoryGraphStore",
        "parts.models": "LLMMessage LLMProvider LLMResponse ToolCall",
        "parts.objects": "Object Patch PendingApproval Relation",
        "parts.log_output": "configure_logging",
        "parts.packs": "DiscoveredPack EmptySettings ObjectType Pack PackPolicy PackPrompt RelationType discover "
        "load_by_name load_prompts_from_dir packs",
        "parts.package_logs": "to_activegraph",
        "parts.run_config": "Frame Policy",
        "parts.recorded": "DirectToolInvoker RecordedLLMProvider RecordedToolProvider RecordingLLMProvider "
        "RecordingToolProvider ToolInvoker",
        "api": "Runtime",
        "parts.status": "BehaviorFailure RunQuantumResult RuntimeStatus",
        "parts.llm_delivery": "LLMBehavior llm_behavior",
        "parts.clocks": "Clock FrozenClock IDGen TickingClock",
        "parts.tools": "Tool ToolContext clear_tool_registry get_tool_registry tool",
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
    "CachedToolResponse",
    "Clock",
    "ConfigurationError",
    "Diff",
    "DirectToolInvoker",
    "DiscoveredPack",
    "DivergentObject",
    "DivergentRelation",
    "DuplicateEventError",
    "EmptySettings",
    "Event",
    "EventNotFoundError",
    "ExecutionError",
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
    "InvalidToolRegistration",
    "LLMBehavior",
    "LLMBehaviorError",
    "LLMCache",
    "LLMMessage",
    "LLMProvider",
    "LLMResponse",
    "MissingProviderError",
    "MissingToolError",
    "NonSerializableEventError",
    "Object",
    "ObjectType",
    "Pack",
    "PackConflictError",
    "PackError",
    "PackNotFoundError",
    "PackPolicy",
    "PackPrompt",
    "PackPromptLoadError",
    "PackSchemaViolation",
    "PackSettingsMissingError",
    "PackValidationError",
    "PackVersionConflictError",
    "Patch",
    "PatternError",
    "PendingApproval",
    "Policy",
    "RecordedLLMProvider",
    "RecordedToolProvider",
    "RecordingLLMProvider",
    "RecordingToolProvider",
    "RegistrationError",
    "Relation",
    "RelationBehavior",
    "RelationType",
    "ReplayDivergenceError",
    "ReplayError",
    "ReservedFieldError",
    "RunQuantumResult",
    "Runtime",
    "RuntimeStatus",
    "StorageError",
    "TickingClock",
    "Tool",
    "ToolCache",
    "ToolCall",
    "ToolContext",
    "ToolError",
    "ToolInvoker",
    "ToolNotFoundError",
    "UnknownToolError",
    "UnsupportedPatternError",
    "View",
    "behavior",
    "clear_registry",
    "clear_tool_registry",
    "configure_logging",
    "discover",
    "get_registry",
    "get_tool_registry",
    "llm_behavior",
    "load_by_name",
    "load_prompts_from_dir",
    "register",
    "relation_behavior",
    "to_activegraph",
    "tool",
]

__getattr__, __dir__ = make_lazy_names(__name__, _HOMES)
