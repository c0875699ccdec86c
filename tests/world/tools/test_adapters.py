from __future__ import annotations

import asyncio
import inspect
from unittest.mock import Mock

import pytest

from agentnb.errors import ExecutionError, RecipeError
from agentnb.world.tools.adapters import describe_answer, to_tool
from tests.world.tools.tool_samples import spec


class Search:
    """Made like a langchain tool: it is invoked with one value."""

    def __init__(self, most=3):
        self.most = most

    def invoke(self, payload):
        return {"output": f"{payload}", "items": list(range(self.most))}


class Runner:
    def run(self, payload):
        return payload


class Both:
    """Can be called, and has a method `run` that means something of its own."""

    def run(self):
        raise AssertionError("not what a tool is called by")

    def __call__(self, a):
        return a


class Later:
    async def ainvoke(self, payload):
        return payload["a"]


class OnlyLater(Later):
    """As langchain makes it of an async function: `invoke` is there, and refuses."""

    func = None

    async def coroutine(self):
        """Stand for the function that it was made of."""

    def invoke(self, payload):
        raise NotImplementedError


def problem(made, found, config=None):
    with pytest.raises(RecipeError) as caught:
        to_tool(made, found, config or {})
    return caught.value.problems[0]


def test_an_object_with_invoke_gets_the_payload_or_a_named_value():
    assert to_tool(spec(), Search(), {"a": 1})(b=2)["text"] == "{'a': 1, 'b': 2}"
    assert to_tool(spec(kind="langchain"), Search(), {"input_key": "q"})(q="cats", k=1, timeout=3)["text"] == "cats"
    assert to_tool(spec(timeout=3), Search(), {})(timeout=2)["text"] == "{}"


def test_a_mock_is_called_directly():
    mock = Mock(return_value={"text": "a"})
    assert to_tool(spec(), mock, {"b": 2})(a=1) == {"text": "a"}
    mock.assert_called_once_with(a=1, b=2)


def test_a_missing_payload_is_reported_with_the_inputs():
    with pytest.raises(ExecutionError) as caught:
        to_tool(spec(), Search(), {"input_key": "query"})(querry="cats")
    assert caught.value.problems[0].code == "X352"
    assert "did you mean 'querry'?" in caught.value.problems[0].do


def test_an_object_with_run_or_call_is_called():
    assert to_tool(spec(), Runner(), {"input_key": "a"})(a="x")["text"] == "x"
    assert to_tool(spec(), Both(), {})(a=5) == 5


@pytest.mark.parametrize("found", [Later(), OnlyLater()])
def test_an_async_object_is_awaited(found):
    call = to_tool(spec(), found, {})
    assert inspect.iscoroutinefunction(call)
    assert asyncio.run(call(a="x"))["text"] == "x"


@pytest.mark.parametrize(
    ("value", "parts"),
    [
        ({"text": "a", "output": "b"}, {"json": {"text": "a", "output": "b"}, "text": "a", "items": None}),
        ({"text": 1, "output": "b", "items": [1]}, {"text": "b", "items": [1]}),
        ([1, 2], {"json": None, "text": None, "items": [1, 2]}),
        ("a", {"json": None, "text": "a", "items": None}),
        (5, {"text": "5"}),
        (None, {"text": None, "json": None, "items": None}),
    ],
)
def test_the_result_of_an_object_has_the_common_keys(value, parts):
    answer = describe_answer(value)
    assert answer | parts == answer
    assert (answer["status"], answer["result"], answer["error"]) == (200, value, None)


def test_a_class_is_constructed_once_with_its_init_settings():
    call = to_tool(spec(mode="class"), Search, {"init": {"most": 2}})
    assert call(a=1)["items"] == [0, 1]
    assert call(a=1)["text"] == "{'a': 1}"
    assert to_tool(spec(kind="langchain"), Search, {})(a=1)["items"] == [0, 1, 2]
    assert to_tool(spec(mode="class"), Both, {"a": 1})() == 1


def test_a_callable_may_have_an_argument_called_init():
    assert to_tool(spec(), lambda init: init, {"init": 5})() == 5
    assert to_tool(spec(), lambda input_key: input_key, {"input_key": 5})() == 5


class Picky:
    def __init__(self, path):
        raise FileNotFoundError(path)


@pytest.mark.parametrize(
    ("made", "found", "config", "said"),
    [
        (spec("m.py#x", mode="class"), len, {}, "is not a class"),
        (spec("m.py#x", mode="class"), Search, {"init": [1]}, "`init` of tool 't' is a list"),
        (spec("m.py#x", mode="class"), Search, {"init": {"least": 1}}, "cannot be made"),
        (spec("m.py#x", mode="class"), Picky, {"init": {"path": "p"}}, "cannot be made"),
        (spec("m.py#x", mode="class"), dict, {}, "cannot be called"),
        (spec("m.py#x"), 5, {}, "is an int, and cannot be called"),
    ],
)
def test_an_invalid_tool_is_reported(made, found, config, said):
    message = problem(made, found, config)
    assert message.code == "R161"
    assert said in message.what
