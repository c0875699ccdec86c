"""What a model's answer decides, row by row of the protocol's truth table."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentnb.world.llm.decision import NO_TEXT, Decision, UnreadableAnswer, parse_decision

CALL = {"tool_name": "ok", "parameters": {"n": 1}}


@pytest.mark.parametrize("name", ["tool_name", "toolName"])
def test_a_tool_is_called_by_either_name(name: str) -> None:
    decision = parse_decision(json.dumps({name: "ok", "parameters": {"n": 1}}))
    assert decision == Decision("tool", "ok", {"n": 1})


def test_a_byte_order_mark_before_the_answer_is_ignored() -> None:
    assert parse_decision("\ufeff" + json.dumps(CALL)) == parse_decision(json.dumps(CALL))
    with pytest.raises(UnreadableAnswer, match="is empty"):
        parse_decision("\ufeff")


@pytest.mark.parametrize("parameters", [{}, [], [1], "x", 0, False])
def test_existing_parameters_are_used_unchanged(parameters: object) -> None:
    assert parse_decision(json.dumps({"tool_name": "ok", "parameters": parameters})).parameters == parameters


@pytest.mark.parametrize("answer", [{"tool_name": "ok"}, {"tool_name": "ok", "parameters": None}])
def test_a_tool_without_parameters_is_not_called(answer: dict[str, object]) -> None:
    actual = parse_decision(json.dumps(answer))
    assert (actual.kind, actual.response) == ("other", json.dumps(answer))
    assert "'ok'" in actual.why
    assert "parameters" in actual.why


def test_none_is_a_decision() -> None:
    assert parse_decision('{"tool_name": "none", "response": "Hello"}') == Decision("none", "none", response="Hello")


def test_none_may_have_parameters_too() -> None:
    decision = parse_decision('{"tool_name": "none", "response": "Hello", "parameters": {"a": 1}}')
    assert (decision.kind, decision.response) == ("none", "Hello")


def test_none_without_a_response_is_reported() -> None:
    assert parse_decision('{"tool_name": "none"}').response == NO_TEXT


def test_a_response_that_is_json_text_remains_text() -> None:
    inner = json.dumps({"tool_name": "none", "response": "deep"})
    assert parse_decision(json.dumps({"tool_name": "none", "response": inner})).response == inner


def test_a_response_that_is_not_a_string_becomes_json() -> None:
    assert parse_decision('{"tool_name": "none", "response": {"a": [1]}}').response == '{"a": [1]}'


@pytest.mark.parametrize("name", ["None", "NONE", " none"])
def test_none_in_other_letter_case_is_the_name_of_a_tool(name: str) -> None:
    assert parse_decision(json.dumps({"tool_name": name, "parameters": {}})).kind == "tool"
    assert parse_decision(json.dumps({"tool_name": name, "response": "x"})).kind == "other"


@pytest.mark.parametrize(
    "answer",
    ['{"answer": 42}', "[1]", "null", "3", '"text"', '{"tool_name": 3, "parameters": {}}', '{"tool_name": ""}'],
)
def test_json_of_another_form_is_reported_and_kept_unchanged(answer: str) -> None:
    actual = parse_decision(answer)
    assert (actual.kind, actual.response) == ("other", answer)
    assert actual.why


@pytest.mark.parametrize(
    "answer",
    [
        None,
        "",
        "  \n",
        "Sure, I can help.",
        'Here: {"tool_name": "none"}',
        '{"tool_name": "none"',
        '{"a": NaN}',
        "{'tool_name': 'none'}",
        '{"tool_name": "none"} and more',
        "[" * 5000 + "]" * 5000,
    ],
)
def test_text_that_is_not_json_is_unreadable(answer: object) -> None:
    with pytest.raises(UnreadableAnswer):
        parse_decision(answer)


@pytest.mark.parametrize("fence", ["```json\n{}\n```", "```\n{}\n```", "\n```JSON\r\n{}\r\n```\n", "``` json\n{}```"])
def test_a_code_fence_is_tolerated_and_noted(fence: str) -> None:
    decision = parse_decision(fence.replace("{}", json.dumps(CALL)))
    assert decision == Decision("tool", "ok", {"n": 1}, fenced=True)


def test_text_around_a_code_fence_is_not_tolerated() -> None:
    with pytest.raises(UnreadableAnswer):
        parse_decision(f"Here it is:\n```json\n{json.dumps(CALL)}\n```")


def test_a_mapping_is_read_as_its_json_would_be() -> None:
    assert parse_decision(CALL) == parse_decision(json.dumps(CALL))


@given(
    st.text()
    | st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists, max_leaves=5).map(json.dumps)
)
def test_any_text_is_a_decision_or_unreadable(text: str) -> None:
    try:
        decision = parse_decision(text)
    except UnreadableAnswer as error:
        assert str(error)  # noqa: PT017  (either of the two may come)
    else:
        assert decision.kind in {"tool", "none", "other"}
        assert decision.to_dict()["kind"] == decision.kind


def test_the_other_key_is_used_if_the_first_is_null() -> None:
    assert parse_decision('{"tool_name": null, "toolName": "a", "parameters": {}}').tool_name == "a"
