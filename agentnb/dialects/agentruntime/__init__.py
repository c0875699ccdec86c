"""The agentruntime dialect: agents in YAML with prompts, tools, routers, loops and subgraphs.

The entry point is `build_agent_from_path(path).run(inputs)`, which returns the state; `.session(inputs)` steps it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentnb.dialects.lazy_names import make_lazy_names

if TYPE_CHECKING:
    from agentnb.dialects.agentruntime.api import (
        AgentRuntime,
        LLMClient,
        RetryPolicy,
        build_agent_from_path,
        build_agent_from_yaml,
    )
    from agentnb.dialects.agentruntime.schema import AgentDefinition
    from agentnb.errors import AgentRuntimeError, NodeExecutionError

_HOMES = {
    "AgentDefinition": "agentnb.dialects.agentruntime.schema",
    "AgentRuntime": "agentnb.dialects.agentruntime.api",
    "AgentRuntimeError": "agentnb.errors",
    "LLMClient": "agentnb.dialects.agentruntime.api",
    "NodeExecutionError": "agentnb.errors",
    "RetryPolicy": "agentnb.dialects.agentruntime.api",
    "build_agent_from_path": "agentnb.dialects.agentruntime.api",
    "build_agent_from_yaml": "agentnb.dialects.agentruntime.api",
}

__all__ = [
    "AgentDefinition",
    "AgentRuntime",
    "AgentRuntimeError",
    "LLMClient",
    "NodeExecutionError",
    "RetryPolicy",
    "build_agent_from_path",
    "build_agent_from_yaml",
]

__getattr__, __dir__ = make_lazy_names(__name__, _HOMES)
