"""pick: looks at the tool that an agent's model has chosen, and lets it be called: known, allowed, rightly asked."""

from __future__ import annotations

from typing import Any

from agentnb.engine.work import Append, Effect, Kind, Outcome, Perform, Work
from agentnb.errors import ExecutionError, Problem
from agentnb.kinds.agent_parts import leave
from agentnb.recipe.model import Node
from agentnb.world.calls import options_of


class Refused(ExecutionError):
    """A call of a tool that did not go out; its message says why."""


def bind(node: Node, world: Any) -> Perform:
    """Return the function that looks at `decision`: its tool must be one of `params["tools"]`, its parameters valid.

    With `params["approval"]` a person is asked before the tool may be called. What is refused is the step's failure,
    and stands in `tools_executed` as a failed result.
    """
    toolbox, allowed = world.toolbox(node), tuple(node.params.get("tools", ()))
    asks, options = bool(node.params.get("approval")), options_of(node)

    async def perform(work: Work) -> Outcome:
        decision = work.board["decision"]
        name, parameters = decision["tool_name"], decision["parameters"]
        result = toolbox.refused(name, parameters, allowed)
        why = None if result is None else str(result.error)
        # Without its times: they are the step's, and a replay would read others.
        found = None if result is None else {**result.to_dict(), "metrics": None}
        if why is None and asks:
            verdict = await work.call(Effect("approval", name, dict(parameters or {}), **options))
            if not verdict["approved"]:
                why = f"the call of {name!r} was denied" + (f": {verdict['reason']}" if verdict["reason"] else "")
                found = {"success": False, "result": None, "error": why, "details": None, "metrics": None}
            elif "arguments" in verdict:  # a person has changed them, and approved those
                parameters = verdict["arguments"]
                result = toolbox.refused(name, parameters, allowed)
                why = None if result is None else str(result.error)
                found = None if result is None else {**result.to_dict(), "metrics": None}
                work.write("decision", {**decision, "parameters": parameters})
        if why is not None:
            work.write("tools_executed", Append({"name": name, "parameters": parameters, **(found or {})}))
            error = Refused(_refused(node, name, why))
            leave(work, error)
            raise error
        return Outcome({}, observation={"tool": name, "parameters": parameters})

    return perform


def _refused(node: Node, name: str, why: str) -> Problem:
    """X440: an agent's model asked for a tool in a way that cannot be done."""
    return Problem("X440", f"tool {name!r} was not called", f"node {node.id!r}", why,
                   "tell the model better what there is, or let the agent have the tool")  # fmt: skip


KIND = Kind("pick", bind, step_type="SYSTEM_EVENT", shape="diamond", keeps=True)
