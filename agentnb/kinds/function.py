"""A callable that is part of the recipe: declared pure, so it runs again on replay."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from agentnb.engine.core.waits import hide_untracked
from agentnb.engine.core.work import Kind, Perform, Work
from agentnb.recipe.model import Node
from agentnb.world.call_arguments import (
    Arguments,
    add_rng,
    check_signature,
    compile_arguments,
    takes_board,
    to_writes,
)
from agentnb.world.effect import Effect
from agentnb.world.questions import QuestionPending, call_with_answers


def bind(node: Node, world: Any) -> Perform:
    """Return the function that calls the node's callable as its signature and `inputs` require.

    Raises:
        RecipeError: the callable is missing or cannot be called with these inputs.
    """
    function, name, as_value = (
        find_callable(node, world),
        str(node.params.get("output", node.id)),
        bool(node.params.get("whole")),
    )
    if node.params.get("asks"):
        return _wrap_asking(node, make_caller(node, function), name, as_value=as_value)
    if inspect.iscoroutinefunction(function):
        return _defer(make_caller(node, function), name, as_value=as_value)
    if as_value or add_rng(node, function) is not None:
        return _wrap_other(make_caller(node, function), name, as_value=as_value)
    if node.inputs:
        return _wrap_with_inputs(function, compile_arguments(node.inputs), name)
    if takes_board(function):
        return _wrap_with_board(function, name)
    return _wrap_alone(function, name)


# One call per step: each case is written out, since a step costs little more than the calls that it makes.


def _wrap_with_inputs(function: Callable[..., Any], arguments: Arguments, name: str) -> Perform:
    def perform(work: Work) -> Any:
        result = function(**arguments(work))
        return result if type(result) is dict else _convert_result(result, work, name)

    return perform


def _wrap_with_board(function: Callable[..., Any], name: str) -> Perform:
    def perform(work: Work) -> Any:
        result = function(work.board)
        return result if type(result) is dict else _convert_result(result, work, name)

    return perform


def _wrap_alone(function: Callable[..., Any], name: str) -> Perform:
    def perform(work: Work) -> Any:
        result = function()
        return result if type(result) is dict else _convert_result(result, work, name)

    return perform


def _wrap_other(call: Callable[[Work], Any], name: str, *, as_value: bool) -> Perform:
    return lambda work: _convert_result(call(work), work, name, as_value=as_value)


def _convert_result(result: Any, work: Work, name: str, *, as_value: bool = False) -> Any:
    if isinstance(result, Awaitable):
        return _await_result(result, work, name, as_value=as_value)
    return to_writes(name, result, as_value=as_value)


def find_callable(node: Node, world: Any) -> Callable[..., Any]:
    """Return a node's callable: the recipe's, or the session's callable of that name.

    Raises:
        RecipeError: the session has no callable of that name, or its signature does not match.
    """
    function_name = node.params.get("function", node.id)
    function: Callable[..., Any] = function_name if callable(function_name) else world.tool(str(function_name), node)
    check_signature(node, function)
    return function


def make_caller(node: Node, function: Callable[..., Any]) -> Callable[[Work], Any]:
    """Return how a node's callable is called: with its inputs by keyword, otherwise with the board if it accepts one.

    A parameter `rng` receives the step's random generator.
    """
    drawing = add_rng(node, function)
    bound: Callable[[Work], Callable[..., Any]] = (lambda _work: function) if drawing is None else drawing
    if node.inputs:
        arguments = compile_arguments(node.inputs)
        return lambda work: bound(work)(**arguments(work))
    if takes_board(function):
        return lambda work: bound(work)(work.board)
    return lambda work: bound(work)()


def _wrap_asking(node: Node, call: Callable[[Work], Any], name: str, *, as_value: bool) -> Perform:
    """Return the function of a node that may ask: it runs again with the answers until all are given."""

    def perform(work: Work) -> Any:
        try:
            return _convert_result(call_with_answers(lambda: call(work), ()), work, name, as_value=as_value)
        except QuestionPending as question:
            return ask_and_repeat(work, question)

    async def ask_and_repeat(work: Work, question: QuestionPending) -> Any:
        answers: list[Any] = []
        while True:
            answers.append(await work.call(Effect("human", node.id, {"prompt": question.prompt})))
            work.copies.clear()
            hide_untracked(work)
            try:
                return to_writes(name, call_with_answers(lambda: call(work), answers), as_value=as_value)
            except QuestionPending as next_question:
                question = next_question

    return perform


def _defer(call: Callable[[Work], Any], name: str, *, as_value: bool) -> Perform:
    async def perform(work: Work) -> Any:
        await work.loop()
        return to_writes(name, await call(work), as_value=as_value)

    return perform


async def _await_result(result: Awaitable[Any], work: Work, name: str, *, as_value: bool) -> Any:
    await work.loop()
    return to_writes(name, await result, as_value=as_value)


KIND = Kind(
    "function", bind, step_type="TOOL_EXECUTION", ignores_world=lambda node: callable(node.params.get("function"))
)
