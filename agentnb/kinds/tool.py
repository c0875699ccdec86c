"""tool: a callable that touches the world: an effect, recorded, and not run again on replay."""

from __future__ import annotations

from typing import Any

from agentnb.engine.work import Effect, Kind, Outcome, Perform, Work
from agentnb.kinds.context import context_of, odd, strictly
from agentnb.kinds.directives import Directives
from agentnb.kinds.function import found
from agentnb.kinds.results import check_result
from agentnb.recipe.model import Node
from agentnb.world.calls import arguments_of, as_writes, options_of, positional
from agentnb.world.tools.calling import as_result, takes_timeout


def bind(node: Node, world: Any) -> Perform:
    """Return the function that calls the node's tool through the effect door.

    With `params["given"]` (a structure of templates) the arguments are rendered, and the result, a mapping whose truthy
    `error` is a failure, is mapped onto the board by `params["map"]`; with `tells_timeout` a function that takes a
    `timeout` is given the call's. Else `inputs` name what is read, and what comes back is merged into the board.

    Raises:
        RecipeError: the tool is not there, or could never be called so.
    """
    if "given" in node.params:
        return _rendered(node, world)
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


def _rendered(node: Node, world: Any) -> Perform:
    name = str(node.params.get("function", node.id))
    function, given = world.tool(name, node), strictly(node.params["given"], world.strict)
    places, options = Directives(node, world), options_of(node)
    tells = node.params.get("tells_timeout") and "timeout" in options and takes_timeout(function)
    beside = {"timeout": options["timeout"]} if tells else {}

    async def perform(work: Work) -> Outcome:
        arguments = given.render(context_of(work))
        effect = Effect("tool", name, {**beside, **arguments}, target=function, check=check_result, **options)
        result = as_result(await work.call(effect))
        writes = places(work, result)
        thought = odd(given, places)
        return Outcome(places=writes, thought=thought, inputs=arguments, observation=result, result=result)

    return perform


KIND = Kind("tool", bind, step_type="TOOL_EXECUTION", shape="component")
