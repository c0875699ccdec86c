from __future__ import annotations

import pytest

from agentnb.kinds.call_results import ResultError, check_result, to_answer
from agentnb.world.llm.base import LLMResponse


@pytest.mark.parametrize(
    "value", [None, "text", 0, [], {}, {"error": None}, {"error": ""}, {"error": {}}, {"text": "a"}]
)
def test_a_result_without_error_is_a_success(value):
    check_result(value)
    check_result(LLMResponse(value))


@pytest.mark.parametrize(
    ("error", "message"),
    [
        ("quota", "quota"),
        (True, "True"),
        ({"type": "quota", "message": "later"}, "quota: later"),
        ({"code": 7}, "{'code': 7}"),
        (ValueError("odd"), "ValueError: odd"),
    ],
)
def test_a_truthy_error_is_raised_with_the_whole_answer(error, message):
    for answer in ({"error": error, "text": "half"}, LLMResponse({"error": error, "text": "half"})):
        with pytest.raises(ResultError) as caught:
            check_result(answer)
        assert str(caught.value) == message
        assert caught.value.result == {"error": error, "text": "half"}


def test_a_result_always_has_the_same_keys():
    words = {"status", "text", "json", "items", "result", "error"}
    for content in ("hello", {"text": "a"}, {"a": 1}, ["a"], None, LLMResponse("hello")):
        assert to_answer(content).keys() == words


@pytest.mark.parametrize(
    ("content", "text", "json", "result"),
    [
        ("hello", "hello", None, "hello"),
        ('{"a": 1}', '{"a": 1}', {"a": 1}, '{"a": 1}'),
        ("```json\n[1]\n```", "```json\n[1]\n```", [1], "```json\n[1]\n```"),
        ("{not json", "{not json", None, "{not json"),
        ("1e5", "1e5", None, "1e5"),
        ({"a": 1}, None, {"a": 1}, {"a": 1}),
        ({"text": "hi", "json": {"b": 2}}, "hi", {"b": 2}, "hi"),
        ({"text": "hi", "result": 3, "more": 4}, "hi", None, 3),
        ({"error": None, "items": [1]}, None, None, None),
    ],
)
def test_a_result_can_be_text_json_or_unchanged(content, text, json, result):
    answer = to_answer(content)
    assert (answer["text"], answer["json"], answer["result"]) == (text, json, result)
