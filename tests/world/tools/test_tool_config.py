from __future__ import annotations

import functools
import math
from typing import Any

import pytest
from pydantic import BaseModel

from agentnb.errors import RecipeError
from agentnb.secrets import mask_text
from agentnb.world.tools.decorator import tool
from agentnb.world.tools.tool_config import ToolConfig, ToolMetrics, ToolResult

SCHEMA = {"type": "object", "required": ["city"], "properties": {"city": {"type": "string"}}}


class City(BaseModel):
    city: str


def handler(params: dict[str, Any]) -> Any:
    """Give it back."""
    return params


@tool(timeout=3)
def weather(city: str) -> str:
    """Say the weather."""
    return f"sunny in {city}"


def problems(given):
    with pytest.raises(RecipeError) as raised:
        ToolConfig.of("t", given)
    return [(problem.code, problem.what) for problem in raised.value.problems]


def test_a_config_has_few_required_fields():
    config = ToolConfig("t")
    assert config.check() == []
    assert (config.handler, config.timeout, config.retry_count, config.repeatable) == (None, None, 0, False)
    assert config.schema == {"type": "object", "properties": {}}
    assert ToolConfig.of("t", config) is config
    assert ToolConfig.of("u", config).name == "u"
    assert ToolConfig.of(None, config) is config


def test_results_and_metrics_can_be_imported_here():
    assert ToolResult.__name__, ToolMetrics.__name__


@pytest.mark.parametrize(
    "given",
    [
        {"description": "d", "handler": handler, "input_schema": SCHEMA, "retry_count": 2, "api_key": "k-123456",
         "max_size": 5},
        {"name": "other", "description": "d", "handler": handler, "inputSchema": SCHEMA, "retryCount": 2,
         "apiKey": "k-123456", "maxSize": 5, "timeout": None},
    ],
)  # fmt: skip
def test_a_mapping_may_use_both_spellings(given):
    config = ToolConfig.of("t", given)
    assert config == ToolConfig("t", "d", handler, SCHEMA, retry_count=2, api_key="k-123456", max_size=5)


def test_a_schema_and_a_handler_may_be_in_its_config():
    inside = {"handler": handler, "inputSchema": SCHEMA, "inputs": ["city"], "unit": "C"}
    for value in ({"config": inside}, ToolConfig("t", config=inside)):
        config = ToolConfig.of("t", value)
        assert (config.handler, config.input_schema, config.inputs) == (handler, SCHEMA, ["city"])
        assert config.config == inside
    assert ToolConfig.of("t", {"inputSchema": {}, "config": inside}).input_schema == {}


def test_the_api_key_is_masked():
    config = ToolConfig.of("t", {"apiKey": "k-99887766", "config": {"password": "p-55443322"}})
    assert mask_text("k-99887766 p-55443322") == "******** ********"
    assert "k-99887766" not in repr(config)
    assert "p-55443322" not in repr(config)


def test_a_handler_is_a_tool():
    config = ToolConfig.of("t", handler)
    assert (config.handler, config.description, config.input_schema) == (handler, "Give it back.", None)


def test_any_typed_function_is_a_tool():
    def add(a: int, b: int = 1) -> int:
        """Add."""
        return a + b

    config = ToolConfig.of("t", add)
    assert config.handler({"a": "2"}) == 3
    assert list(config.schema["properties"]) == ["a", "b"]
    assert ToolConfig.of(None, add).name == "add"
    assert ToolConfig.of("t", lambda **words: words).handler({"x": 1}) == {"x": 1}


def test_a_decorated_function_is_its_tool():
    for value in (weather, {"handler": weather}, ToolConfig("t", handler=weather), {"config": {"handler": weather}}):
        config = ToolConfig.of("t", value)
        assert config.handler({"city": "Oslo"}) == "sunny in Oslo"
        assert (config.name, config.description) == ("t", "Say the weather.")
        assert list(config.schema["properties"]) == ["city"]
    assert ToolConfig.of("t", weather).timeout == 3
    assert ToolConfig.of("t", {"handler": weather, "input_schema": SCHEMA}).schema == SCHEMA
    assert ToolConfig.of(None, weather).name == "weather"


def test_a_wrapper_of_a_decorated_function_is_called():
    @functools.wraps(weather)
    def loud(*args, **words):
        return weather(*args, **words).upper()

    config = ToolConfig.of("t", loud)
    assert config.handler({"city": "Oslo"}) == "SUNNY IN OSLO"
    assert config.timeout == 3


def test_a_handler_with_a_model_has_its_schema():
    def take(city: City) -> str:
        return city.city

    for value in (take, {"handler": take}, ToolConfig("t", handler=take)):
        assert ToolConfig.of("t", value).input_schema is City
    assert ToolConfig.of("t", {"handler": take, "inputSchema": SCHEMA}).schema == SCHEMA


@pytest.mark.parametrize(
    ("given", "code", "what"),
    [
        (5, "R114", "a tool is passed as an int"),
        (None, "R114", "a tool is passed as a NoneType"),
        (City, "R114", "a tool is passed as a ModelMetaclass"),
        ({"handler": "f"}, "R114", "`handler` is 'f'"),
        ({"description": 5}, "R114", "`description` is an int"),
        ({"type": 5}, "R114", "`type` is an int"),
        ({"inputs": "city"}, "R114", "`inputs` is 'city'"),
        ({"outputs": [1]}, "R114", "`outputs` is [1]"),
        ({"capabilities": 5}, "R114", "`capabilities` is 5"),
        ({"timeout": 0}, "R114", "`timeout` is 0"),
        ({"timeout": math.inf}, "R114", "`timeout` is inf"),
        ({"timeout": "5"}, "R114", "`timeout` is '5'"),
        ({"backoff": -1}, "R114", "`backoff` is -1"),
        ({"retryCount": 1.5}, "R114", "`retry_count` is 1.5"),
        ({"retryCount": True}, "R114", "`retry_count` is True"),
        ({"repeatable": 1}, "R114", "`repeatable` is 1"),
        ({"config": []}, "R114", "`config` is a list"),
        ({"retries": 5}, "R112", "'retries' is not a field of a tool"),
        ({"retryCount": 1, "retry_count": 1}, "R114", "`retry_count` is specified twice"),
        ({"inputSchema": 5}, "R190", "an input schema is an int"),
        ({"config": {"inputSchema": {"a": "text"}}}, "R190", "an input schema has only: 'a'"),
    ],
)
def test_a_mistake_is_reported(given, code, what):
    assert problems(given) == [(code, what)]


def test_all_mistakes_are_reported_at_once():
    assert len(problems({"retries": 5, "timeout": -1, "inputSchema": {"a": {}, "b": {}}, "handler": 5})) == 5
    assert [problem.what for problem in ToolConfig("", timeout=-1).check()] == [
        "'' is not a name of a tool",
        "`timeout` is -1",
    ]
    with pytest.raises(RecipeError, match="5 is not a name"):
        ToolConfig.of(None, {"name": 5})
