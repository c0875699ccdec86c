"""A function that receives stored outputs and resources by type; its result is stored by type.

It is an effect: recorded, and not run again on replay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from agentnb.board.decoders import Record
from agentnb.board.values import ABSENT, freeze, thaw
from agentnb.engine.core.work import Kind, Perform, Work
from agentnb.errors import AgentRuntimeError, ExecutionError
from agentnb.kinds.typed_values import (
    SystemContext,
    SystemParameter,
    find_key,
    format_position,
    get_inputs,
    get_type_name,
    is_of,
    make_missing_resource_problem,
    make_type_problem,
)
from agentnb.recipe.model import Node
from agentnb.recipe.user_functions import is_async
from agentnb.world.call_arguments import get_options
from agentnb.world.effect import Effect


def bind(node: Node, world: Any) -> Perform:
    """Return the function that calls the node's function with the parameters that `takes` declares.

    Each `out` is a copy of the last stored output of its type. The result is stored under the key of its matching type
    in `gives`; if the function declares none (None), under that of its own type. None stores nothing.

    X472: a system has returned a value of another type than the function declares
    """
    params, options = node.params, get_options(node)
    function, keys, gives = params["function"], params["keys"], params["gives"]
    function = function if callable(function) else world.tool(str(function), node)
    outs = [take for take in params["takes"] if take.role == "out"]
    around = [take for take in params["takes"] if take.role != "out"]
    name = getattr(function, "__name__", node.id)
    is_retried = options.get("attempts", 1) > 1

    async def perform(work: Work) -> Any:
        arguments = get_inputs(work, outs, keys, name)
        injected = InjectedArguments(around, work, keys, copies=is_retried)
        target = (_make_async_target if is_async(function) else _make_target)(function, injected)
        try:
            answer = await work.call(
                Effect("system", name, arguments, target=target, reads_board=bool(around), **options)
            )
        finally:
            injected.close()
        if answer is None:
            return {}
        if gives is not None and not isinstance(answer, Record) and not any(is_of(answer, kind) for kind in gives):
            raise ExecutionError(make_type_problem(work, answer, gives, name))
        frozen = work.calls[-1].result  # the frozen form in the call's row, shared with the board
        return {find_key(answer, gives or (), keys): frozen}

    return perform


class InjectedArguments:
    """The arguments of a call besides stored outputs: resources, and a new context for each attempt.

    Both are resolved when an attempt begins: a replay makes no attempts and needs no resources. After an attempt has
    ended or was cancelled, its context accepts nothing more.
    """

    def __init__(self, around: list[SystemParameter], work: Work, keys: Mapping[Any, str], *, copies: bool) -> None:
        self.work, self.keys, self.resources = work, keys, work.run.world.resources
        self.copies = copies  # whether the next attempt could see changes that one makes to its arguments
        self.wanted = [take for take in around if take.role != "context"]
        self.contexts: dict[str, SystemContext] = {}
        self.names = [take.name for take in around if take.role == "context"]

    def _iter_resources(self) -> Iterator[tuple[str, Any]]:
        """Yield each resource with the name of its parameter."""
        for take in self.wanted:
            value = self.resources.find(take.kind, self.work.scope)
            if value is not ABSENT:
                yield take.name, value
            elif take.needed:
                consumer = (
                    f"node {self.work.node.id!r}: parameter {take.name!r} requires {get_type_name(take.kind)!r}, and "
                )
                raise AgentRuntimeError(
                    make_missing_resource_problem(take.kind, format_position(self.work), self.resources, consumer)
                )
            elif take.none:
                yield take.name, None

    def attempt(self, outs: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments of one attempt.

        Raises:
            AgentRuntimeError: X451, a resource does not exist; another attempt would not find it either.
        """
        outputs = {name: thaw(freeze(value)) for name, value in outs.items()} if self.copies else outs
        outputs |= self._iter_resources()
        if not self.names:
            return outputs
        self.close()
        work = self.work
        self.contexts = {name: SystemContext.at(self.resources, work.scope, self.keys, work) for name in self.names}
        return outputs | self.contexts

    def close(self) -> None:
        """Close the context of the last attempt."""
        for context in self.contexts.values():
            context.close()


def _make_target(function: Callable[..., Any], injected: InjectedArguments) -> Callable[..., Any]:
    def target(**outs: Any) -> Any:
        try:
            return function(**injected.attempt(outs))
        except TimeoutError as error:
            raise _make_own_timeout_error(error) from error

    return target


def _make_async_target(function: Callable[..., Any], injected: InjectedArguments) -> Callable[..., Any]:
    async def target(**outs: Any) -> Any:
        try:
            return await function(**injected.attempt(outs))
        except TimeoutError as error:
            raise _make_own_timeout_error(error) from error

    return target


def _make_own_timeout_error(error: TimeoutError) -> RuntimeError:
    """Return an error for a TimeoutError raised by a function itself, not by the node's own time limit."""
    return RuntimeError(f"it raised {type(error).__name__}: {error}")


KIND = Kind("system", bind, step_type="TOOL_EXECUTION")
