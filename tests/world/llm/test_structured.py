from __future__ import annotations

import pytest

from agentnb.world.llm.base import LLMResponse
from agentnb.world.llm.structured import DEEPEST, LONGEST, find_json


@pytest.mark.parametrize("value", [{"a": [1, None, True]}, [1], (1, 2), 3, 2.5, False, {}])
def test_a_value_is_returned_unchanged(value):
    assert find_json(value) is value
    assert find_json(LLMResponse(value)) is value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        ("\n [1, 2] \n", [1, 2]),
        ("42", 42),
        ('"word"', "word"),
        ("null", None),
        ("{}", {}),
        ('```json\n{"a": 1}\n```', {"a": 1}),
        ("Sure:\n```\n42\n```\nAnything else?", 42),
        ('```text\nno\n```\n```json\n{"a": 1}\n```\n```json\n{"a": 2}\n```', {"a": 1}),
        ('```json\n{"a": 1}', {"a": 1}),
        ('Here it is: {"a": {"b": [1]}}. Good luck!', {"a": {"b": [1]}}),
        ('As [1] says: {"a": 1}', {"a": 1}),
        ('For [your eyes]: {"a": 1}', {"a": 1}),
        ('```json {"a": 1}```', {"a": 1}),
        ('{"code": "```python\\nx\\n```"}', {"code": "```python\nx\n```"}),
        ('```json\n{"code": "```"}\n```', {"code": "```"}),
    ],
)
def test_json_is_extracted_from_a_text(text, value):
    assert find_json(text) == value
    assert find_json(LLMResponse(text)) == value


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("", "is empty"),
        ("  \n", "is empty"),
        (None, "is empty"),
        (LLMResponse(None), "is empty"),
        ("I cannot do that.", "not JSON"),
        ("see [below]", "not JSON"),
        ("True", "not JSON"),
        ("{'a': 1}", "mistake at character 2: Expecting property name"),
        ('{"a": 1, "b"', "breaks off"),
        ('Here: {"a": {"b": 1}, "c": "tex', "breaks off"),
        ('Here: {"a": {"b": 1}, }', "mistake at character 2[13]"),  # Python 3.13 points at the comma
        ("NaN", "NaN is not a JSON number"),
        ('So: {"a": -Infinity}', "-Infinity is not a JSON number"),
        ("1e999", "inf is not a JSON number"),
        ({"a": [float("nan")]}, "nan is not a JSON number"),
        ("9" * 5000, "too long"),
        ({1: 2}, "key 1 is not a string"),
        ({"a": {1, 2}}, "a set is not a JSON value"),
        (b"{}", "a bytes is not a JSON value"),
        ('"\\ud800"', "surrogate"),
        ({"a\udc00": 1}, "surrogate"),
    ],
)
def test_an_invalid_answer_is_rejected_with_a_short_reason(answer, why):
    with pytest.raises(ValueError, match=why) as caught:
        find_json(answer)
    assert type(caught.value) is ValueError
    assert len(str(caught.value)) < 120


def test_nothing_is_extracted_from_broken_json():
    with pytest.raises(ValueError, match="breaks off"):
        find_json('{"result": {"ok": true}, "rest": [')


def nested(levels):
    value = []
    for _ in range(levels - 1):
        value = [value]
    return value


def test_the_nesting_is_limited():
    assert find_json("[" * DEEPEST + "]" * DEEPEST) == find_json(nested(DEEPEST))
    for answer in (nested(DEEPEST + 1), "[" * (DEEPEST + 1) + "]" * (DEEPEST + 1), "x " + '{"a":' * 100_000):
        with pytest.raises(ValueError, match="nested deeper"):
            find_json(answer)


def test_a_value_that_contains_itself_is_refused():
    value = {}
    value["again"] = [value, value]
    with pytest.raises(ValueError, match="the answer"):
        find_json(value)


def test_the_length_is_limited():
    assert find_json(f'"{"x" * (LONGEST - 2)}"') == "x" * (LONGEST - 2)
    with pytest.raises(ValueError, match="longer than 1,000,000"):
        find_json(f'"{"x" * (LONGEST - 1)}"')
    with pytest.raises(ValueError, match="more than 1,000,000 values"):
        find_json([0] * LONGEST)


@pytest.mark.parametrize("part", ["[1 ", '["', "```a\n", "```\n[1 \n"])
def test_a_long_text_of_broken_json_is_abandoned(part):
    with pytest.raises(ValueError, match="JSON"):
        find_json(part * (900_000 // len(part)))


def test_a_byte_order_mark_before_the_json_is_ignored():
    assert find_json('\ufeff{"a": 1}') == {"a": 1}
