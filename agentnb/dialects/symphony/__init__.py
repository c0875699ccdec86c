"""The symphony dialect: agents with tools: a system prompt, a JSON protocol, a tool registry, a model handler.

The entry point is `AgentExecutor(AgentConfig(name=..., tools=[...]), llm=..., tools=registry).execute_task(task)`;
`.session(task)` steps it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentnb.dialects.lazy_names import make_lazy_names

if TYPE_CHECKING:
    from agentnb.dialects.symphony.api import AgentExecutor
    from agentnb.dialects.symphony.parts.llm_handler import LLMHandler
    from agentnb.dialects.symphony.parts.llm_types import LLMMessage, LLMRequest, LLMResponse
    from agentnb.dialects.symphony.parts.results import AgentResult, TaskMetrics, TaskOutcome, ToolExecuted
    from agentnb.dialects.symphony.parts.system_prompt import SystemPromptService
    from agentnb.dialects.symphony.schema import AgentConfig
    from agentnb.world.tools.decorator import tool
    from agentnb.world.tools.registry import ContextIntelligenceAPI, ToolRegistry
    from agentnb.world.tools.tool_config import ToolConfig
    from agentnb.world.tools.tool_result import ToolResult

_HERE = "agentnb.dialects.symphony"
_TOOLS = "agentnb.world.tools"
_HOMES = {
    "AgentConfig": f"{_HERE}.schema",
    "AgentExecutor": f"{_HERE}.api",
    "AgentResult": f"{_HERE}.parts.results",
    "ContextIntelligenceAPI": f"{_TOOLS}.registry",
    "LLMHandler": f"{_HERE}.parts.llm_handler",
    "LLMMessage": f"{_HERE}.parts.llm_types",
    "LLMRequest": f"{_HERE}.parts.llm_types",
    "LLMResponse": f"{_HERE}.parts.llm_types",
    "SystemPromptService": f"{_HERE}.parts.system_prompt",
    "TaskMetrics": f"{_HERE}.parts.results",
    "TaskOutcome": f"{_HERE}.parts.results",
    "ToolConfig": f"{_TOOLS}.tool_config",
    "ToolExecuted": f"{_HERE}.parts.results",
    "ToolRegistry": f"{_TOOLS}.registry",
    "ToolResult": f"{_TOOLS}.tool_result",
    "tool": f"{_TOOLS}.decorator",
}

__all__ = [
    "AgentConfig",
    "AgentExecutor",
    "AgentResult",
    "ContextIntelligenceAPI",
    "LLMHandler",
    "LLMMessage",
    "LLMRequest",
    "LLMResponse",
    "SystemPromptService",
    "TaskMetrics",
    "TaskOutcome",
    "ToolConfig",
    "ToolExecuted",
    "ToolRegistry",
    "ToolResult",
    "tool",
]

__getattr__, __dir__ = make_lazy_names(__name__, _HOMES)
