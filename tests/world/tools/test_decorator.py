from __future__ import annotations

import asyncio
from typing import Annotated

import pytest

from agentnb.errors import RecipeError
from agentnb.world.tools.decorator import tool
from agentnb.world.tools.registry import ToolRegistry
from agentnb.world.tools.tool_config import MARK, ToolConfig


@tool
def greet(name: Annotated[str, "who"], times: int = 1) -> str:
    """Greet somebody.

    Kindly.
    """
    return f"hello {name}" * times


@tool(name="later", description="in its own time", timeout=5, retry_count=2, type="slow", backoff=0.5)
async def agreet(name: str) -> str:
    return f"hello {name}"


def of(function):
    registry = ToolRegistry()
    registry.register_tool("t", function)
    return registry


def test_the_function_is_called_as_before():
    assert greet("Ann") == "hello Ann"
    assert asyncio.run(agreet("Ann")) == "hello Ann"


def test_the_tool_is_described_by_the_function():
    assert of(greet).describe("t") == {
        "name": "t",
        "description": "Greet somebody.",
        "input_schema": {
            "type": "object",
            "properties": {
                "name": {"type": "string", "description": "who"},
                "times": {"type": "integer", "default": 1},
            },
            "required": ["name"],
            "additionalProperties": False,
        },
    }


def test_the_tool_is_called_by_keyword_with_converted_parameters():
    assert of(greet).execute_tool("t", {"name": "Ann", "times": "2"}).result == "hello Annhello Ann"
    assert of(agreet).execute_tool("t", {"name": "Ann"}).result == "hello Ann"
    refused = of(greet).execute_tool("t", {"times": "x", "tone": "loud"})
    assert [each["path"] for each in refused.details] == [f"t.inputParams.{name}" for name in ("name", "times", "tone")]


def test_options_override_the_signature():
    config = getattr(agreet, MARK)
    assert isinstance(config, ToolConfig)
    assert (config.name, config.description, config.type) == ("later", "in its own time", "slow")
    assert (config.timeout, config.retry_count, config.backoff) == (5, 2, 0.5)


def test_an_explicit_schema_is_used_and_hints_still_convert():
    @tool(input_schema={"name": {"type": "string", "required": True, "minLength": 3}})
    def short(name: str, times: int = 1) -> str:
        return name * times

    assert of(short).execute_tool("t", {"name": "abc", "times": "2"}).result == "abcabc"
    assert "Minimum length: 3" in of(short).execute_tool("t", {"name": "a"}).error


def test_a_function_of_one_dict_receives_all_parameters():
    @tool
    def whole(params: dict[str, int]) -> int:
        return sum(params.values())

    assert of(whole).execute_tool("t", {"params": {"a": 1, "b": 2}}).result == 3


class Shop:
    def order(self, item: str) -> str:
        return item


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda: tool(lambda x, /: x), "R191"),
        (lambda: tool(lambda *xs: xs), "R191"),
        (lambda: tool(lambda **words: words), "R191"),
        (lambda: tool(Shop.order), "R191"),
        (lambda: tool(Shop().order), "R191"),
        (lambda: tool(Shop), "R191"),
        (lambda: tool(timeout=-1)(lambda x: x), "R114"),
        (lambda: tool(input_schema=5)(lambda x: x), "R190"),
    ],
)
def test_an_invalid_tool_is_reported_where_it_is_defined(make, code):
    with pytest.raises(RecipeError) as raised:
        make()
    assert [problem.code for problem in raised.value.problems] == [code]
