"""Agents for the tests: a registry with one tool that works and one that does not, and scripted models."""

from __future__ import annotations

import json
from typing import Any

from agentnb.dialects.symphony import AgentConfig, AgentExecutor, ToolConfig, ToolRegistry, ToolResult


def registry() -> ToolRegistry:
    """Return a registry: `ok` doubles a number, `bad` fails, `throws` raises, `other` is nobody's."""
    registry = ToolRegistry()
    registry.register_tool(
        "ok",
        ToolConfig(
            "ok",
            "doubles a number",
            lambda given: {"twice": 2 * given.get("n", 0)},
            {"type": "object", "properties": {"n": {"type": "integer"}}},
        ),
    )
    registry.register_tool(
        "bad", ToolConfig("bad", "always fails", lambda _: ToolResult(success=False, error="sold out"))
    )
    registry.register_tool("throws", ToolConfig("throws", "raises", _throws))
    registry.register_tool("other", ToolConfig("other", "of another agent", lambda _: "reached"))
    return registry


def _throws(_given: dict[str, Any]) -> Any:
    raise LookupError("no such thing")


def executor(*answers: Any, tools: Any = ("ok", "bad", "throws"), **fields: Any) -> AgentExecutor:
    """Return an agent whose model gives these answers in turn; a dict is given as JSON."""
    answer = [json.dumps(each) if isinstance(each, dict) else each for each in answers]
    config = AgentConfig(
        **{"name": "Helper", "description": "helps", "task": "Help people", "tools": list(tools), **fields}
    )
    return AgentExecutor(config, llm=answer, tools=registry())


def call(tool: str, **parameters: Any) -> dict[str, Any]:
    """Return the answer that calls a tool."""
    return {"tool_name": tool, "parameters": parameters}
