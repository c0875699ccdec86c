"""function: a callable that is part of the recipe: pure by promise, run again on replay."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from agentnb.engine.work import Kind, Perform, Work
from agentnb.recipe.model import Node
from agentnb.world.calls import Arguments, arguments_of, as_writes, check_signature, positional


def bind(node: Node, world: Any) -> Perform:
    """Return the function that calls the node's callable as its signature and `inputs` ask.

    Raises:
        RecipeError: the callable is not there, or could never be called so.
    """
    function, name = found(node, world), str(node.params.get("output", node.id))
    if inspect.iscoroutinefunction(function):
        return _later(caller(node, function), name)
    if node.inputs:
        return _with_inputs(function, arguments_of(node.inputs), name)
    if positional(function):
        return _with_board(function, name)
    return _alone(function, name)


# One call a step: each shape is written out, for a step costs little more than the calls that it makes.


def _with_inputs(function: Callable[..., Any], arguments: Arguments, name: str) -> Perform:
    def perform(work: Work) -> Any:
        result = function(**arguments(work))
        return result if result.__class__ is dict else _returned(result, work, name)

    return perform


def _with_board(function: Callable[..., Any], name: str) -> Perform:
    def perform(work: Work) -> Any:
        result = function(work.board)
        return result if result.__class__ is dict else _returned(result, work, name)

    return perform


def _alone(function: Callable[..., Any], name: str) -> Perform:
    def perform(work: Work) -> Any:
        result = function()
        return result if result.__class__ is dict else _returned(result, work, name)

    return perform


def _returned(result: Any, work: Work, name: str) -> Any:
    return _awaited(result, work, name) if isinstance(result, Awaitable) else as_writes(name, result)


def found(node: Node, world: Any) -> Callable[..., Any]:
    """Return a node's callable: the one in the recipe, or the one that the session was given by that name.

    Raises:
        RecipeError: the session was given none of that name, or its signature does not fit.
    """
    wanted = node.params.get("function", node.id)
    function: Callable[..., Any] = wanted if callable(wanted) else world.tool(str(wanted), node)
    check_signature(node, function)
    return function


def caller(node: Node, function: Callable[..., Any]) -> Callable[[Work], Any]:
    """Return how a node's callable is called: with its inputs by keyword, else with the board where it takes one."""
    if node.inputs:
        arguments = arguments_of(node.inputs)
        return lambda work: function(**arguments(work))
    if positional(function):
        return lambda work: function(work.board)
    return lambda _work: function()


def _later(call: Callable[[Work], Any], name: str) -> Perform:
    async def perform(work: Work) -> Any:
        await work.loop()
        return as_writes(name, await call(work))

    return perform


async def _awaited(result: Awaitable[Any], work: Work, name: str) -> Any:
    await work.loop()
    return as_writes(name, await result)


KIND = Kind("function", bind, step_type="TOOL_EXECUTION", shape="box")
