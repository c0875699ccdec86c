"""A callable with effects on the outside world: recorded, and not run again on replay."""

from __future__ import annotations

from typing import Any

from agentnb.engine.core.work import Kind, Outcome, Perform, Work
from agentnb.kinds.call_results import check_result
from agentnb.kinds.context import find_oddity, make_context, make_strict
from agentnb.kinds.directives import Directives
from agentnb.kinds.function import find_callable
from agentnb.recipe.model import Node
from agentnb.recipe.user_functions import get_own_attribute
from agentnb.world.call_arguments import add_rng, compile_arguments, get_options, takes_board, to_writes
from agentnb.world.effect import Effect
from agentnb.world.tools.invocation import takes_timeout, to_result


def bind(node: Node, world: Any) -> Perform:
    """Return the function that calls the node's tool as an effect.

    With `params["given"]` (a structure of templates) the arguments are rendered, and the result, a mapping whose truthy
    `error` is a failure, is mapped onto the board by `params["map"]`; with `tells_timeout` a function that accepts a
    `timeout` receives the call's. Otherwise `inputs` name what is read, and the result is merged into the board; with
    `params["whole"]`, it is written unchanged under `params["output"]`.

    Raises:
        RecipeError: the tool is missing or cannot be called with these inputs.
    """
    if "given" in node.params:
        return _bind_rendering(node, world)
    function, params = find_callable(node, world), node.params
    key = str(params.get("output", node.id))
    function_name = params.get("function", node.id)
    name = function_name if isinstance(function_name, str) else get_own_attribute(function, "__name__", node.id)
    name = node.id if name == "<lambda>" else name  # an unnamed function uses the name of its node
    arguments = compile_arguments(node.inputs) if node.inputs else None
    board, drawing = arguments is None and takes_board(function), add_rng(node, function)
    as_value = bool(params.get("whole"))

    alone = Effect("tool", name, {}, target=function, **get_options(node))
    # in the order of the fields
    options = (alone.timeout, alone.attempts, alone.backoff, alone.blocking, alone.repeatable)

    async def perform(work: Work) -> Any:
        called = function if drawing is None else drawing(work)
        if arguments is not None:
            effect = Effect("tool", name, arguments(work), *options, called)
        elif board:
            effect = Effect("tool", name, {}, *options, lambda: called(work.board), reads_board=True)
        else:
            effect = alone if drawing is None else Effect("tool", name, {}, *options, called)
        return to_writes(key, await work.call(effect), as_value=as_value)

    return perform


def _bind_rendering(node: Node, world: Any) -> Perform:
    name = str(node.params.get("function", node.id))
    function, inputs = world.tool(name, node), make_strict(node.params["given"], world.strict)
    directives, options = Directives(node, world), get_options(node)
    tells = node.params.get("tells_timeout") and "timeout" in options and takes_timeout(function)
    extra = {"timeout": options["timeout"]} if tells else {}

    async def perform(work: Work) -> Outcome:
        arguments = inputs.render(make_context(work))
        effect = Effect("tool", name, {**extra, **arguments}, target=function, check=check_result, **options)
        result = to_result(await work.call(effect))
        writes = directives(work, result)
        thought = find_oddity(inputs, directives)
        return Outcome(nested_writes=writes, thought=thought, inputs=arguments, observation=result, result=result)

    return perform


KIND = Kind("tool", bind, step_type="TOOL_EXECUTION")
