"""symphony: agents with tools: a system prompt, a JSON protocol, a registry of tools, a handler of models.

The front door is `AgentExecutor(AgentConfig(name=..., tools=[...]), llm=..., tools=registry).execute_task(task)`;
`.session(task)` steps it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentnb.dialects.doors import door

if TYPE_CHECKING:
    from agentnb.dialects.symphony.api import AgentExecutor
    from agentnb.dialects.symphony.handler import LLMHandler
    from agentnb.dialects.symphony.llm import LLMMessage, LLMRequest, LLMResponse
    from agentnb.dialects.symphony.prompts import SystemPromptService
    from agentnb.dialects.symphony.results import AgentResult, TaskMetrics, TaskOutcome, ToolExecuted
    from agentnb.dialects.symphony.schema import AgentConfig
    from agentnb.world.tools.configs import ToolConfig
    from agentnb.world.tools.decorated import tool
    from agentnb.world.tools.registry import ContextIntelligenceAPI, ToolRegistry
    from agentnb.world.tools.results import ToolResult

_HERE = "agentnb.dialects.symphony"
_TOOLS = "agentnb.world.tools"
_HOMES = {
    "AgentConfig": f"{_HERE}.schema",
    "AgentExecutor": f"{_HERE}.api",
    "AgentResult": f"{_HERE}.results",
    "ContextIntelligenceAPI": f"{_TOOLS}.registry",
    "LLMHandler": f"{_HERE}.handler",
    "LLMMessage": f"{_HERE}.llm",
    "LLMRequest": f"{_HERE}.llm",
    "LLMResponse": f"{_HERE}.llm",
    "SystemPromptService": f"{_HERE}.prompts",
    "TaskMetrics": f"{_HERE}.results",
    "TaskOutcome": f"{_HERE}.results",
    "ToolConfig": f"{_TOOLS}.configs",
    "ToolExecuted": f"{_HERE}.results",
    "ToolRegistry": f"{_TOOLS}.registry",
    "ToolResult": f"{_TOOLS}.results",
    "tool": f"{_TOOLS}.decorated",
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

__getattr__ = door(__name__, _HOMES)
