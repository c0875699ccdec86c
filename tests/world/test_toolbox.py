from __future__ import annotations

import asyncio
import inspect
from time import time_ns as NOW  # noqa: N812  (a clock)
from typing import Any

import pytest

from agentnb.world.toolbox import Toolbox, ToolDescription
from agentnb.world.tools.registry import ToolRegistry


def registry() -> ToolRegistry:
    registry = ToolRegistry()
    registry.register_tool("own", {"handler": lambda given: given["n"] + 1, "description": "adds one"})
    return registry


def test_given_tools_take_precedence() -> None:
    def own(n: int) -> int:
        """Add ten."""
        return n + 10

    box = Toolbox.of(registry(), {"own": own, "other": lambda n: n})
    assert box.attempt("own", NOW)(n=1)["result"] == 11
    assert box.attempt("other", NOW)(n=1)["result"] == 1
    assert [each.description for each in box.describe(["own"])] == ["Add ten."]


def test_the_registry_is_not_changed() -> None:
    own_registry = registry()
    Toolbox.of(own_registry, {"other": lambda n: n})
    assert own_registry.get_available_tools() == ["own"]
    assert Toolbox.of(own_registry, {}).registry is own_registry


def test_an_unregistered_tool_is_described_by_its_name_alone() -> None:
    assert Toolbox(registry()).describe(["nobody"]) == [ToolDescription("nobody", known=False)]


def test_an_attempt_raises_what_the_tool_raises() -> None:
    with pytest.raises(KeyError):
        Toolbox(registry()).attempt("own", NOW)()


def test_a_learning_callback_receives_the_result_of_a_tool() -> None:
    results: list[Any] = []

    class Context:
        def update_learning_context(self, tool_name: str, success: bool, **_: Any) -> None:
            results.append((tool_name, success))

    own_registry = registry()
    assert not Toolbox(own_registry).has_learning_context
    own_registry.context = Context()
    asyncio.run(Toolbox(own_registry).learn("own", {"n": 1}, {"success": True, "result": 2}))
    assert results == [("own", True)]


def test_an_async_tool_is_an_async_attempt() -> None:
    async def later(given: dict[str, Any]) -> str:
        return str(given["n"])

    own_registry = registry()
    own_registry.register_tool("later", {"handler": later})
    attempt = Toolbox(own_registry).attempt("later", NOW)
    assert inspect.iscoroutinefunction(attempt)
    assert asyncio.run(attempt(n=3))["result"] == "3"
