"""toolbox: the tools that an agent may call in one session: its own registry's, and those that the session got."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agentnb.world.tools.configs import MARK, from_function
from agentnb.world.tools.registry import ToolRegistry
from agentnb.world.tools.results import ToolMetrics, ToolResult

if TYPE_CHECKING:
    from agentnb.world.tools.configs import ToolConfig


@dataclass(frozen=True, slots=True)
class Described:
    """A tool as a model is told of it; one that is not `known` is registered nowhere, and has no more than a name."""

    name: str
    description: str = ""
    schema: Mapping[str, Any] | None = None
    known: bool = True


class Toolbox:
    """The tools of one agent: looked up by name, described for its model, called one attempt at a time."""

    def __init__(self, registry: ToolRegistry) -> None:
        self.registry = registry

    @classmethod
    def of(cls, own: ToolRegistry | None, given: Mapping[str, Callable[..., Any]]) -> Toolbox:
        """Return the tools of a registry, with those of these names that were given in their place.

        A function is called by keyword, as everything that a session is given.
        """
        if own is not None and not given:
            return cls(own)
        registry = ToolRegistry()
        if own is not None:
            registry.context = own.context
            for name in own.get_available_tools():
                registry.register_tool(name, own.get_tool_info(name))
        for name, tool in given.items():
            plain = inspect.isroutine(tool) and not hasattr(tool, MARK)
            registry.register_tool(name, from_function(tool, hints=True, name=name) if plain else tool)
        return cls(registry)

    def described(self, names: Sequence[str]) -> list[Described]:
        """Return what a model is told of these tools, in this order."""
        found = []
        for name in names:
            told = self.registry.describe(name)
            found.append(Described(name, known=False) if told is None
                         else Described(name, told["description"], told["input_schema"]))  # fmt: skip
        return found

    def config(self, name: str) -> ToolConfig | None:
        """Return a tool's config; None where there is none of that name."""
        return self.registry.get_tool_info(name)

    def refused(self, name: str, parameters: Any, allowed: Sequence[str]) -> ToolResult | None:
        """Return the failed result of a call that may not go out: of no tool of the agent's, or with wrong parameters.

        None where it may.
        """
        return self.registry.check(name, parameters, allowed=allowed)

    def attempt(self, name: str) -> Callable[..., Any]:
        """Return the callable that makes one attempt; it takes the parameters by keyword, and answers a result as dict.

        It is async exactly where the handler is.
        """
        call, registry, now = self.registry.attempt(name), self.registry, self.registry.clock.ns

        def ended(answer: Any, began: int) -> dict[str, Any]:
            return registry.result_of(answer, name, ToolMetrics.of_ns(began, now())).to_dict()

        async def settled(awaitable: Any, began: int) -> dict[str, Any]:
            return ended(await awaitable, began)

        if inspect.iscoroutinefunction(call):

            async def awaited(**parameters: Any) -> dict[str, Any]:
                return await settled(call(parameters), now())

            return awaited

        def target(**parameters: Any) -> Any:
            began = now()
            answer = call(parameters)
            return settled(answer, began) if inspect.isawaitable(answer) else ended(answer, began)

        return target

    @property
    def learns(self) -> bool:
        """Whether somebody wants to be told of each run of a tool."""
        return self.registry.context is not None

    async def learn(self, name: str, parameters: Mapping[str, Any], result: Mapping[str, Any]) -> None:
        """Tell who learns from the runs of tools; what goes wrong there is logged and changes nothing."""
        await self.registry.alearn(name, parameters, self.registry.result_of(result, name))

    def came(self, name: str, answer: Any) -> dict[str, Any]:
        """Return the result that an answer is, or that a person has put in its place: any value is one of a success."""
        return self.registry.result_of(answer, name).to_dict()

    def failed(self, name: str, error: BaseException) -> ToolResult:
        """Return the result of a call whose last attempt has raised."""
        return self.registry.result_of(error, name, None)
