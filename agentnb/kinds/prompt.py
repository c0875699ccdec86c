"""Composes the system prompt of an agent from its definition and its tools."""

from __future__ import annotations

from typing import Any

from agentnb.engine.core.work import Kind, Outcome, Perform, Work
from agentnb.kinds.agent_parts import clear_attempt, recording_failure
from agentnb.kinds.context import ODD
from agentnb.recipe.model import Node
from agentnb.world.llm.base import ToolDefinition


def bind(node: Node, world: Any) -> Perform:
    """Return the function that calls `params["compose"]` with `params["config"]` and descriptions of the agent's tools.

    The text is written to `system_prompt`. `params["tools"]` are the names of the tools that the agent may call. With
    `params["native"]` they are written to `tools`, in the form of a request.
    """
    native = bool(node.params.get("native"))
    compose, config, names = node.params["compose"], node.params["config"], tuple(node.params.get("tools", ()))

    def perform(work: Work) -> Outcome:
        clear_attempt(work)
        with recording_failure(work):
            described = world.toolbox(node).described(names)
            text = compose(config, described)
        writes: dict[str, Any] = {"system_prompt": text}
        if native:
            writes["tools"] = [_offered(each).to_dict() for each in described]
        return Outcome(writes, thought=_missing_tools_text(names, described), observation=text)

    return perform


def _offered(tool: Any) -> ToolDefinition:
    return ToolDefinition(tool.name, tool.description, *(() if tool.schema is None else (tool.schema,)))


def _missing_tools_text(names: tuple[str, ...], described: Any) -> str | None:
    """Return a warning about unregistered tools: only their names are sent to the model."""
    known = {each.name for each in described if each.known}
    missing = [name for name in names if name not in known]
    return f"{ODD}no tool is registered as {', '.join(map(repr, missing))}" if missing else None


KIND = Kind("prompt", bind, step_type="SYSTEM_EVENT", keeps=True)
