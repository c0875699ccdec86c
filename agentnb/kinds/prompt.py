"""prompt: puts together what an agent's model is told first, from what the agent is and the tools that it has."""

from __future__ import annotations

from typing import Any

from agentnb.engine.work import Kind, Outcome, Perform, Work
from agentnb.kinds.agent_parts import begin_anew, told_why
from agentnb.kinds.context import ODD
from agentnb.recipe.model import Node


def bind(node: Node, world: Any) -> Perform:
    """Return the function that calls `params["compose"]` with `params["config"]` and the agent's tools, described.

    The text is written to `system_prompt`. `params["tools"]` are the names of the tools that the agent may call.
    """
    compose, config, names = node.params["compose"], node.params["config"], tuple(node.params.get("tools", ()))

    def perform(work: Work) -> Outcome:
        begin_anew(work)
        with told_why(work):
            described = world.toolbox(node).described(names)
            text = compose(config, described)
        return Outcome({"system_prompt": text}, thought=_of_missing(names, described), observation=text)

    return perform


def _of_missing(names: tuple[str, ...], described: Any) -> str | None:
    """Say which tools nobody has registered: the model is told their names alone."""
    known = {each.name for each in described if each.known}
    missing = [name for name in names if name not in known]
    return f"{ODD}no tool is registered as {', '.join(map(repr, missing))}" if missing else None


KIND = Kind("prompt", bind, step_type="SYSTEM_EVENT", shape="note", keeps=True)
