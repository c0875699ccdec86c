"""Validates the tool call chosen by an agent's model: the tool exists, is allowed, and its parameters are valid."""

from __future__ import annotations

from typing import Any

from agentnb.engine.core.work import Kind, Outcome, Perform, Work
from agentnb.errors import ExecutionError, Problem
from agentnb.kinds.agent_parts import leave, note_tool
from agentnb.recipe.model import Node
from agentnb.world.call_arguments import options_of
from agentnb.world.effect import Effect


class Refused(ExecutionError):
    """A tool call was refused; the message explains why."""


def bind(node: Node, world: Any) -> Perform:
    """Return the function that checks `decision`: its tool must be one of `params["tools"]`, its parameters valid.

    With `params["approval"]` the call requires a person's approval. A refusal is the step's failure, and is listed in
    `tools_executed` as a failed result.
    """
    toolbox, allowed = world.toolbox(node), tuple(node.params.get("tools", ()))
    asks, options = bool(node.params.get("approval")), options_of(node)

    async def perform(work: Work) -> Outcome:
        decision = work.board["decision"]
        name, parameters = decision["tool_name"], decision["parameters"]
        result = toolbox.refused(name, parameters, allowed)
        why = None if result is None else str(result.error)
        # Without its times: they belong to the step, and a replay would read others.
        found = None if result is None else {**result.to_dict(), "metrics": None}
        if why is None and asks:
            verdict = await work.call(Effect("approval", name, dict(parameters or {}), **options))
            if not verdict["approved"]:
                why = f"the call of {name!r} was denied" + (f": {verdict['reason']}" if verdict["reason"] else "")
                found = {"success": False, "result": None, "error": why, "details": None, "metrics": None}
            elif "arguments" in verdict:  # a person has edited and approved these
                parameters = verdict["arguments"]
                result = toolbox.refused(name, parameters, allowed)
                why = None if result is None else str(result.error)
                found = None if result is None else {**result.to_dict(), "metrics": None}
                work.write("decision", {**decision, "parameters": parameters})
        if why is not None:
            note_tool(work, decision, parameters, found or {})
            error = Refused(_refused(node, name, why))
            leave(work, error)
            raise error
        return Outcome({}, observation={"tool": name, "parameters": parameters})

    return perform


def _refused(node: Node, name: str, why: str) -> Problem:
    """X440: an agent's model requested a tool call that cannot be made."""
    return Problem("X440", f"tool {name!r} was not called", f"node {node.id!r}", why,
                   "describe the tools better to the model, or give the agent the tool")  # fmt: skip


KIND = Kind("pick", bind, step_type="SYSTEM_EVENT", keeps=True)
