"""system: a function that is given stored outputs and resources by their types; what it returns is stored by its own.

It is an effect: recorded, and not run again on replay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from inspect import iscoroutinefunction
from typing import Any

from agentnb.board.values import ABSENT, freeze, thaw
from agentnb.engine.work import Effect, Kind, Perform, Work
from agentnb.errors import AgentRuntimeError
from agentnb.kinds.typed import (
    SystemContext,
    Take,
    missing_resource,
    outputs_taken,
    place_of,
    stored_under,
    type_name,
)
from agentnb.recipe.model import Node
from agentnb.world.calls import options_of


def bind(node: Node, world: Any) -> Perform:
    """Return the function that calls the node's function with what its parameters `takes` ask for.

    Each `out` is a copy of the last stored output of its type. What comes back is stored under the key of the type in
    `gives` that it is of, else of its own type; None stores nothing.
    """
    params, options = node.params, options_of(node)
    function, keys, gives = params["function"], params["keys"], params["gives"]
    function = function if callable(function) else world.tool(str(function), node)
    outs = [take for take in params["takes"] if take.sort == "out"]
    around = [take for take in params["takes"] if take.sort != "out"]
    name = getattr(function, "__name__", node.id)
    again = options.get("attempts", 1) > 1
    later = iscoroutinefunction(function) or iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004  (asked what it is, not whether it is)

    async def perform(work: Work) -> Any:
        arguments = outputs_taken(work, outs, keys, name)
        beside = Beside(around, work, keys, copies=again)
        target = (_awaited if later else _called)(function, beside)
        try:
            answer = await work.call(Effect("system", name, arguments, target=target, **options))
        finally:
            beside.close()
        if answer is None:
            return {}
        kept = work.calls[-1].result  # the frozen form that the call's row has: the board shares it
        return {stored_under(answer, gives, keys): kept}

    return perform


class Beside:
    """What a call is given besides stored outputs: resources, and a context of its own for each attempt.

    Both are looked for when an attempt begins: a replay makes none, and needs no resources. Once an attempt is over, or
    given up, its context takes nothing more.
    """

    def __init__(self, around: list[Take], work: Work, keys: Mapping[Any, str], *, copies: bool) -> None:
        self.work, self.keys, self.resources = work, keys, work.run.world.resources
        self.copies = copies  # whether what one attempt changes in its arguments could be seen by the next
        self.wanted = [take for take in around if take.sort != "context"]
        self.contexts: dict[str, SystemContext] = {}
        self.names = [take.name for take in around if take.sort == "context"]

    def _found(self) -> Iterator[tuple[str, Any]]:
        """Yield each resource by the name of its parameter."""
        for take in self.wanted:
            value = self.resources.find(take.kind, self.work.scope)
            if value is not ABSENT:
                yield take.name, value
            elif take.needed:
                who = f"node {self.work.node.id!r}: parameter {take.name!r} takes {type_name(take.kind)!r}, and "
                raise AgentRuntimeError(missing_resource(take.kind, place_of(self.work), self.resources, who))
            elif take.none:
                yield take.name, None

    def attempt(self, outs: dict[str, Any]) -> dict[str, Any]:
        """Return what one attempt is given.

        Raises:
            AgentRuntimeError: X451, there is no such resource; another attempt would not find it either.
        """
        given = {name: thaw(freeze(value)) for name, value in outs.items()} if self.copies else outs
        given |= self._found()
        if not self.names:
            return given
        self.close()
        work = self.work
        self.contexts = {name: SystemContext.at(self.resources, work.scope, self.keys, work) for name in self.names}
        return given | self.contexts

    def close(self) -> None:
        """End the last attempt."""
        for context in self.contexts.values():
            context.close()


def _called(function: Callable[..., Any], beside: Beside) -> Callable[..., Any]:
    def target(**outs: Any) -> Any:
        try:
            return function(**beside.attempt(outs))
        except TimeoutError as error:
            raise _its_own(error) from error

    return target


def _awaited(function: Callable[..., Any], beside: Beside) -> Callable[..., Any]:
    async def target(**outs: Any) -> Any:
        try:
            return await function(**beside.attempt(outs))
        except TimeoutError as error:
            raise _its_own(error) from error

    return target


def _its_own(error: TimeoutError) -> RuntimeError:
    """Return a failure for a TimeoutError that a function has raised: the node's own time was not up."""
    return RuntimeError(f"it raised {type(error).__name__}: {error}")


KIND = Kind("system", bind, step_type="TOOL_EXECUTION", shape="box")
