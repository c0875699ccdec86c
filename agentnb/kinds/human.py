"""human: asks a person and writes the answer. Without a script the session waits for it."""

from __future__ import annotations

from typing import Any

from agentnb.engine.work import Effect, Kind, Outcome, Perform, Work
from agentnb.recipe.model import Node
from agentnb.world.calls import options_of


def bind(node: Node, world: Any) -> Perform:
    """Return the function that asks `params["prompt"]` and writes the answer to `params["output"]`.

    Whoever answers is told `options` to choose from, the `role` that is asked for, and the `timeout` in seconds.
    """
    params = node.params
    key = str(params.get("output", "response"))
    arguments: dict[str, Any] = {"prompt": str(params.get("prompt") or node.label or node.id)}
    if options := params.get("options"):
        arguments["options"] = list(options)
    if role := params.get("role"):
        arguments["role"] = str(role)
    timeout = options_of(node).get("timeout")
    if timeout is not None:
        arguments["timeout"] = timeout
    effect = Effect("human", node.id, arguments, timeout)

    async def perform(work: Work) -> Outcome:
        answer = {key: await work.call(effect)}
        return Outcome(answer, observation=answer)

    return perform


KIND = Kind("human", bind, step_type="INTERACTION", shape="house")
