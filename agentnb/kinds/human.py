"""human: asks a person and writes the answer. Without a script the session waits for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agentnb.board.secrets import hidden
from agentnb.board.values import freeze, thaw
from agentnb.engine.work import Effect, Kind, Outcome, Perform, Work
from agentnb.errors import ExecutionError, Problem
from agentnb.expressions.schemas import Schema
from agentnb.recipe.model import Node
from agentnb.world.calls import options_of


def bind(node: Node, world: Any) -> Perform:
    """Return the function that asks `params["prompt"]` and writes the answer to `params["output"]`.

    Whoever answers is told `options` to choose from, the `schema` (a JSON Schema) that the answer must fit, the `role`
    that is asked for, and the `timeout` in seconds.
    """
    params = node.params
    key = str(params.get("output", "response"))
    arguments: dict[str, Any] = {"prompt": str(params.get("prompt") or node.label or node.id)}
    if options := params.get("options"):
        arguments["options"] = list(options)
    if (schema := params.get("schema")) is not None:
        arguments["schema"] = thaw(freeze(schema))
    if role := params.get("role"):
        arguments["role"] = str(role)
    timeout = options_of(node).get("timeout")
    if timeout is not None:
        arguments["timeout"] = timeout
    check = None if schema is None else _fitting(node.id, Schema(schema))
    effect = Effect("human", node.id, arguments, timeout, check=check)

    async def perform(work: Work) -> Outcome:
        answer = {key: await work.call(effect)}
        return Outcome(answer, observation=answer)

    return perform


def _fitting(node: str, schema: Schema) -> Callable[[Any], None]:
    """Return what refuses an answer that does not fit.

    X144: a person has answered something else than the node asks for.
    """

    def check(answer: Any) -> None:
        fault = next(schema.faults(thaw(answer)), None)
        if fault is not None:
            raise ExecutionError(
                Problem("X144", f"the answer to {node!r} does not fit what it asks for", f"node {node!r}",
                        hidden(fault.rule or fault.message), "retry(), and answer what its `schema` asks for")
            )  # fmt: skip

    return check


KIND = Kind("human", bind, step_type="INTERACTION", shape="house")
