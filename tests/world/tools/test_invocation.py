from __future__ import annotations

import asyncio
import inspect
from functools import partial

import pytest

from agentnb.secrets import hide
from agentnb.world.tools.invocation import bind_tool, find_failure, find_items, takes_timeout, to_result
from tests.world.tools.tool_samples import spec


class Sync:
    def __call__(self, **words):
        return words


class Async:
    async def __call__(self, **words):
        return words

    async def method(self, **words):
        return words


async def later(**words):
    return words


@pytest.mark.parametrize("function", [lambda **words: words, Sync(), partial(Sync(), b=0)])
def test_a_sync_callable_is_called_with_config_and_inputs_by_keyword(function):
    call = bind_tool(spec(), function, {"a": 1, "b": 2})
    assert call(b=3, c=4) == {"a": 1, "b": 3, "c": 4}
    assert not inspect.iscoroutinefunction(call)


@pytest.mark.parametrize("function", [later, Async(), Async().method, partial(later, b=0)])
def test_an_async_callable_stays_async(function):
    call = bind_tool(spec(), function, {"a": 1, "b": 2})
    assert inspect.iscoroutinefunction(call)
    assert asyncio.run(call(b=3)) == {"a": 1, "b": 3}


def test_a_tool_that_changes_what_it_is_given_does_not_change_the_config():
    def spoil(names):
        names.append("x")
        return len(names)

    call = bind_tool(spec(), spoil, {"names": ["a"]})
    assert [call(), call()] == [2, 2]


@pytest.mark.parametrize(
    ("function", "takes"),
    [
        (lambda timeout: timeout, True),
        (lambda *, timeout=None: timeout, True),
        (lambda **words: words, True),
        (lambda timeout, /: timeout, False),
        (lambda *timeout: timeout, False),
        (lambda a: a, False),
        (partial(lambda a, timeout: a, 1), True),
        (dict.fromkeys, False),
        (iter, False),  # a builtin that does not tell its signature
    ],
)
def test_callables_with_a_timeout_parameter_are_recognized(function, takes):
    assert takes_timeout(function) is takes
    assert takes_timeout(bind_tool(spec(), function, {})) is takes


def test_a_function_is_given_a_timeout_only_if_it_takes_one():
    timed = spec(timeout=4.0)
    assert bind_tool(timed, lambda timeout: timeout, {})() == 4.0
    assert bind_tool(timed, lambda timeout: timeout, {"timeout": 3})() == 3
    assert bind_tool(timed, lambda timeout: timeout, {})(timeout=2) == 2
    assert bind_tool(timed, lambda a: a, {"timeout": 3})(a=1, timeout=2) == 1
    assert bind_tool(spec(), lambda **words: words, {})() == {}


def test_a_mapping_is_a_result_and_other_values_are_wrapped():
    mapping = {"text": "a"}
    assert to_result(mapping) is mapping
    assert to_result("a") == {"result": "a", "text": "a"}
    assert to_result([1]) == {"result": [1], "text": None}
    assert to_result(None) == {"result": None, "text": None}


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ({"error": "gone"}, "gone"),
        ({"error": {"type": "quota", "message": "later"}}, "quota: later"),
        ({"error": {"message": "later"}}, "later"),
        ({"error": {"code": 7}}, "{'code': 7}"),
        ({"error": ValueError("no")}, "ValueError: no"),
        ({"error": True}, "True"),
        ({"error": ["a"]}, "['a']"),
        ({"error": None}, None),
        ({"error": ""}, None),
        ({"error": {}}, None),
        ({"status": 500}, None),
        ("error", None),
        (None, None),
    ],
)
def test_the_error_key_alone_decides_failure(result, message):
    assert find_failure(result) == message


def test_a_failure_contains_no_secret():
    hide("s3cr3t-4711")
    assert find_failure({"error": "no such key: s3cr3t-4711"}) == "no such key: ********"


def test_the_items_are_the_answer_or_its_first_list():
    assert find_items([1]) == [1]
    assert find_items({"data": [1], "results": [2]}) == [2]
    assert find_items({"items": "no list", "data": [1]}) == [1]
    assert find_items({"other": [1]}) is None
    assert find_items("text") is None
