"""human: asks a person and writes the answer. Without a script the session waits for it."""

from __future__ import annotations

from typing import Any

from agentnb.engine.work import Effect, Kind, Outcome, Perform, Work
from agentnb.recipe.model import Node


def bind(node: Node, world: Any) -> Perform:
    """Return the function that asks `params["prompt"]` and writes the answer to `params["output"]`."""
    key = str(node.params.get("output", "response"))
    prompt = str(node.params.get("prompt") or node.label or node.id)
    arguments = {"prompt": prompt, **({"options": list(options)} if (options := node.params.get("options")) else {})}
    effect = Effect("human", node.id, arguments)

    async def perform(work: Work) -> Outcome:
        answer = {key: await work.call(effect)}
        return Outcome(answer, observation=answer)

    return perform


KIND = Kind("human", bind, step_type="INTERACTION", shape="house")
