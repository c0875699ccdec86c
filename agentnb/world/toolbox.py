"""Toolbox: the tools that an agent may call in one session: its own registry's, and those passed to the session."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agentnb.recipe.user_functions import is_function
from agentnb.world.tools.registry import ToolRegistry
from agentnb.world.tools.tool_config import MARK, from_function
from agentnb.world.tools.tool_result import ToolMetrics, ToolResult

if TYPE_CHECKING:
    from agentnb.world.tools.tool_config import ToolConfig


@dataclass(frozen=True, slots=True)
class ToolDescription:
    """The description of a tool for a model; a tool that is not `known` is not registered, and has only a name."""

    name: str
    description: str = ""
    schema: Mapping[str, Any] | None = None
    known: bool = True


class Toolbox:
    """The tools of one agent: looked up by name, described for its model, called one attempt at a time."""

    def __init__(self, registry: ToolRegistry) -> None:
        self.registry = registry

    @classmethod
    def of(cls, registered: ToolRegistry | None, tools: Mapping[str, Callable[..., Any]]) -> Toolbox:
        """Return the tools of a registry, with those of these names replaced.

        A function is called with keyword arguments, like every tool of a session.
        """
        if registered is not None and not tools:
            return cls(registered)
        registry = ToolRegistry()
        if registered is not None:
            registry.context = registered.context
            for name in registered.get_available_tools():
                registry.register_tool(name, registered.get_tool_info(name))
        for name, tool in tools.items():
            plain = is_function(tool) and not hasattr(tool, MARK)
            registry.register_tool(name, from_function(tool, hints=True, name=name) if plain else tool)
        return cls(registry)

    def describe(self, names: Sequence[str]) -> list[ToolDescription]:
        """Return the descriptions of these tools for a model, in this order."""
        descriptions = []
        for name in names:
            description = self.registry.describe(name)
            if description is None:
                descriptions.append(ToolDescription(name, known=False))
            else:
                descriptions.append(ToolDescription(name, description["description"], description["input_schema"]))
        return descriptions

    def config(self, name: str) -> ToolConfig | None:
        """Return a tool's config; None if there is none with that name."""
        return self.registry.get_tool_info(name)

    def find_refusal(self, name: str, parameters: Any, allowed: Sequence[str]) -> ToolResult | None:
        """Return the failed result of a call that is not allowed: of an unknown tool, or with invalid parameters.

        None if the call is allowed.
        """
        return self.registry.check(name, parameters, allowed=allowed)

    def attempt(self, name: str, now: Callable[[], int]) -> Callable[..., Any]:
        """Return a callable that makes one attempt.

        It takes the parameters as keywords, and returns a result as a dict.

        It is async if and only if the handler is. `now` is the session's clock, in nanoseconds, so that equal runs have
        equal results.
        """
        call, registry = self.registry.attempt(name), self.registry

        def end(answer: Any, start: int) -> dict[str, Any]:
            return registry.result_of(answer, name, ToolMetrics.of_ns(start, now())).to_dict()

        async def settle(awaitable: Any, start: int) -> dict[str, Any]:
            return end(await awaitable, start)

        if inspect.iscoroutinefunction(call):

            async def run_async(**parameters: Any) -> dict[str, Any]:
                return await settle(call(parameters), now())

            return run_async

        def target(**parameters: Any) -> Any:
            start = now()
            answer = call(parameters)
            return settle(answer, start) if inspect.isawaitable(answer) else end(answer, start)

        return target

    @property
    def has_learning_context(self) -> bool:
        """True if there is a learning context."""
        return self.registry.context is not None

    async def learn(self, name: str, parameters: Mapping[str, Any], result: Mapping[str, Any]) -> None:
        """Update the learning context with a call; errors are logged and otherwise ignored."""
        await self.registry.alearn(name, parameters, self.registry.result_of(result, name))

    def to_result(self, name: str, answer: Any) -> dict[str, Any]:
        """Return an answer, or a person's substitute for it, as a result; any value is a success."""
        return self.registry.result_of(answer, name).to_dict()

    def make_failure(self, name: str, error: BaseException) -> ToolResult:
        """Return the result of a call whose last attempt failed."""
        return self.registry.result_of(error, name, None)
