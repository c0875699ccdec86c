"""tool: a callable that touches the world: an effect, recorded, and not run again on replay."""

from __future__ import annotations

from typing import Any

from agentnb.engine.work import Effect, Kind, Perform, Work
from agentnb.kinds.function import found
from agentnb.recipe.model import Node
from agentnb.world.calls import arguments_of, as_writes, options_of, positional


def bind(node: Node, world: Any) -> Perform:
    """Return the function that calls the node's tool through the effect door.

    Raises:
        RecipeError: the tool is not there, or could never be called so.
    """
    function, params = found(node, world), node.params
    key = str(params.get("output", node.id))
    wanted = params.get("function", node.id)
    name = wanted if isinstance(wanted, str) else getattr(function, "__name__", node.id)
    arguments = arguments_of(node.inputs) if node.inputs else None
    whole = arguments is None and bool(positional(function))

    alone = Effect("tool", name, {}, target=function, **options_of(node))
    options = (alone.timeout, alone.attempts, alone.backoff, alone.blocking, alone.repeatable)  # in the fields' order

    async def perform(work: Work) -> Any:
        if arguments is not None:
            effect = Effect("tool", name, arguments(work), *options, function)
        else:
            effect = Effect("tool", name, {}, *options, lambda: function(work.board)) if whole else alone
        return as_writes(key, await work.call(effect))

    return perform


KIND = Kind("tool", bind, step_type="TOOL_EXECUTION", shape="component")
