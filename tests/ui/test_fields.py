from __future__ import annotations

import json
from decimal import Decimal

import pytest

from agentnb.board.values import ABSENT, freeze
from agentnb.errors import AgentNbError
from agentnb.ui.fields import LONGEST, apply_changes, make_field, make_fields, parse, parse_typed_value
from agentnb.world.llm.base import LLMResponse

TALK = {
    "messages": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hi", "name": "Kim"}],
    "n": 2,
}


def shapes(value):
    return [(field["path"], field["label"], field["text"], field["as"]) for field in make_fields(value)]


def code(raised):
    return raised.value.problems[0].code


def test_a_conversation_is_a_field_for_each_message_and_each_setting():
    assert shapes(freeze(TALK)) == [
        (["messages", 0, "content"], "system message", "Be kind.", "text"),
        (["messages", 1, "content"], "user message", "Hi", "text"),
        (["messages", 1], "with this user message", '{\n  "name": "Kim"\n}', "fixed"),
        (["n"], "n", "2", "number"),
    ]


@pytest.mark.parametrize(
    ("value", "text", "kind"),
    [
        ("a\nb", "a\nb", "text"),
        (True, "true", "flag"),
        (None, "null", "none"),
        ([1, {"a": "ü"}], '[\n  1,\n  {\n    "a": "ü"\n  }\n]', "json"),
        (2.5, "2.5", "number"),
        (ABSENT, "", "json"),
        (Decimal("1.5"), "Decimal('1.5')", "fixed"),
        ((1, 2), "(1, 2)", "fixed"),
        (float("nan"), "nan", "fixed"),
        ({1: 2}, "{1: 2}", "fixed"),
    ],
)
def test_each_value_has_a_kind_of_field(value, text, kind):
    field = make_field(value, [], "x")
    assert (field["text"], field["as"]) == (text, kind)
    assert bool(field["note"]) is (kind == "fixed")


def test_a_field_with_a_secret_is_masked_and_read_only():
    fields = make_fields({"api_key": "sk-1", "headers": {"authorization": "Bearer sk-2"}, "q": "all"})
    assert [field["as"] for field in fields] == ["fixed", "fixed", "text"]
    assert "sk-" not in json.dumps(fields)
    with pytest.raises(AgentNbError) as raised:
        apply_changes({"api_key": "sk-1"}, [[["api_key"], "***"]])
    assert code(raised) == "U306"


def test_a_very_long_field_is_truncated_and_read_only():
    (fields,) = make_fields("x" * (LONGEST + 1))
    assert (fields["as"], len(fields["text"])) == ("fixed", LONGEST + 1)
    assert str(LONGEST + 1) in fields["note"]


def test_a_lone_surrogate_does_not_break_the_connection():
    assert make_field("a\ud800", [], "x")["text"] == "a?"


def test_an_edit_keeps_the_other_values():
    changed = apply_changes(freeze(TALK), [[["messages", 1, "content"], "Bye"], [["n"], {"text": "[3]", "as": "json"}]])
    assert changed == {"messages": [TALK["messages"][0], {"role": "user", "content": "Bye", "name": "Kim"}], "n": [3]}
    assert apply_changes("old", [[[], "new"]]) == "new"
    assert apply_changes({"a": 1}, []) == {"a": 1}


def test_an_edited_model_answer_keeps_its_type():
    answer = LLMResponse({"tool_name": "hide", "parameters": {}}, model="m")
    fields = {field["label"]: field for field in make_fields(answer, "answer")}
    assert json.loads(fields["content"]["text"]) == {"tool_name": "hide", "parameters": {}}
    changed = apply_changes(answer, [[["content"], '{"tool_name": "none"}']])
    assert changed == LLMResponse({"tool_name": "none"}, model="m")


@pytest.mark.parametrize("changes", [None, "x", [["a"]], [[3, "x"]], [[[None], "x"]]])
def test_malformed_changes_change_nothing(changes):
    assert apply_changes({"a": 1}, changes) == {"a": 1}


@pytest.mark.parametrize(
    ("typed", "kind", "value"),
    [("3", "number", 3), ("-0.5", "number", -0.5), ("true", "flag", True), ("anything", "none", None),
     ("3", "text", "3"), ("3", "secret", "3"), ("[3]", "json", [3])],
)  # fmt: skip
def test_typed_text_is_parsed_as_the_chosen_kind(typed, kind, value):
    assert parse(typed, kind) == value
    field = make_field("a text", [], "x")
    assert parse_typed_value(field, {"text": typed, "as": kind}) == value
    assert parse_typed_value(field, typed) == typed


@pytest.mark.parametrize(
    ("typed", "kind"), [("three", "number"), ("true", "number"), ("1e999", "number"), ('"3"', "number"), ("1", "flag")]
)
def test_text_of_the_wrong_kind_is_reported(typed, kind):
    with pytest.raises(AgentNbError) as raised:
        parse(typed, kind, "n")
    assert code(raised) == "U305"
    assert "'n'" in raised.value.problems[0].what


def test_a_message_without_text_has_a_field():
    parts = [{"type": "text", "text": "Hi"}]
    (messages,) = make_fields({"messages": [{"role": "user", "content": parts}]})
    assert (messages["role"], messages["as"], json.loads(messages["text"])) == ("user", "json", parts)


@pytest.mark.parametrize("text", ["", "{", "three", "NaN", "[1,]", "[" * 100_000])
def test_invalid_json_is_reported(text):
    with pytest.raises(AgentNbError) as raised:
        parse(text, "json", "n")
    assert code(raised) == "U305"


def test_an_unknown_field_is_reported():
    with pytest.raises(AgentNbError) as raised:
        apply_changes({"a": "x"}, [[["b"], "y"]])
    assert code(raised) == "U306"
