from __future__ import annotations

import copy
import pickle
from dataclasses import dataclass, replace
from decimal import Decimal
from types import SimpleNamespace

import pydantic
import pytest

from agentnb.dialects.symphony.parts.llm_types import (
    LLMMessage,
    LLMRequest,
    LLMResponse,
    TokenUsage,
    request_of,
    to_response,
    to_settings,
)
from agentnb.errors import AgentRuntimeError
from agentnb.secrets import mask_text
from agentnb.world.llm import base

HI = [LLMMessage("user", "Hi")]
KEY = "sk-9-s3cr3t-4711"

# ------------------------------------------------------------------------------------------------------------- requests


def test_a_request_converts_to_an_llm_request():
    config = {"model": "m-1", "temperature": 0.2, "maxTokens": 9, "timeout": 5, "provider": "mine"}
    request = LLMRequest(HI, config, True)  # noqa: FBT003
    assert isinstance(request, base.LLMRequest)
    assert (request.messages, request.model, request.prompt) == (tuple(HI), "m-1", "Hi")
    assert request.settings == {
        "temperature": 0.2, "max_tokens": 9, "request_timeout": 5, "provider": "mine", "json_object": True,
    }  # fmt: skip
    assert (request.provider, request.temperature, request.max_tokens) == ("mine", 0.2, 9)
    assert request.expects_json_response


def test_explicit_fields_take_precedence():
    request = LLMRequest(HI, {"model": "a", "temperature": 1, "provider": "x"}, temperature=0, model="b", provider="y")
    assert (request.model, request.temperature, request.provider) == ("b", 0, "y")


@dataclass
class Plain:
    model: str = "m"
    maxTokens: int = 7  # noqa: N815  (as the original writes it)
    timeout: float | None = None


class Typed(pydantic.BaseModel):
    model: str = "m"
    max_tokens: int = 7
    api_key: pydantic.SecretStr = pydantic.SecretStr(KEY)


@pytest.mark.parametrize(
    "config", [{"model": "m", "max_tokens": 7}, Plain(), Typed(), SimpleNamespace(model="m", maxTokens=7)], ids=repr
)
def test_a_configuration_is_a_mapping_or_an_object_in_either_spelling(config):
    request = LLMRequest(HI, config)
    assert (request.model, request.settings) == ("m", {"max_tokens": 7})
    assert request.llm_config == {"model": "m", "max_tokens": 7}


@pytest.mark.parametrize(
    ("text", "model", "provider"),
    [("gpt-4o", "gpt-4o", None), ("openai:gpt-4o", "gpt-4o", "openai"), ("llama3.2:8b", "llama3.2:8b", None)],
)
def test_a_configuration_that_is_a_text_is_the_model(text, model, provider):
    request = LLMRequest(HI, text)
    assert (request.model, request.provider) == (model, provider)


def test_the_original_field_names_are_accepted_too():
    request = LLMRequest(HI, llmConfig={"model": "m"}, expectsJsonResponse=True, maxTokens=3, topP=0.5)
    assert (request.model, request.settings) == ("m", {"json_object": True, "max_tokens": 3, "top_p": 0.5})
    assert LLMRequest(HI, response_format={"type": "json_object"}).expects_json_response


def test_a_key_never_appears_in_a_request():
    request = LLMRequest(HI, {"model": "m", "apiKey": KEY, "base_url": "http://127.0.0.1", "headers": {"x": "y"}})
    assert request.settings == {}
    assert KEY not in repr(request) + str(request.arguments) + str(request.llm_config)
    assert mask_text(f"it was {KEY}") == "it was ********"


def test_a_copy_with_other_messages_keeps_the_rest():
    request = LLMRequest(HI, {"model": "m", "temperature": 0.2}, expects_json_response=True, node="n", number=3)
    other = replace(request, temperature=0.9, of_node=2)
    assert (type(other), other.temperature, other.node, other.number) == (LLMRequest, 0.9, "n", 3)
    assert (other.model, other.expects_json_response, request.temperature) == ("m", True, 0.2)
    assert not replace(request, expects_json_response=False).expects_json_response
    assert pickle.loads(pickle.dumps(request)) == copy.copy(request) == request


def test_the_arguments_of_an_effect_convert_back_to_the_request():
    request = LLMRequest([*HI, {"role": "assistant", "content": "Yes?"}], {"model": "m", "timeout": 5}, provider="p")
    assert request.arguments == {
        "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes?"}],
        "model": "m", "request_timeout": 5, "provider": "p",
    }  # fmt: skip
    assert request_of(request.arguments) == request
    assert request_of(base.LLMRequest.of(request.arguments)) == request
    assert request_of(request) is request


def test_an_llm_request_keeps_its_node_and_its_listener():
    request = base.LLMRequest(
        (), node="n", model="m", number=2, of_node=1, timeout=3, on_token=print, settings={"x": 1}
    )
    converted = request_of(request)
    assert (converted.node, converted.number, converted.of_node, converted.timeout, converted.on_token) == (
        "n",
        2,
        1,
        3,
        print,
    )
    assert (converted.model, converted.settings, converted.prompt) == ("m", {"x": 1}, "")


# ------------------------------------------------------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("messages", "why"),
    [([], "they are empty"), ((), "they are empty"), (None, "a NoneType was passed"), ("Hi", "a str was passed"),
     ({"role": "user", "content": "Hi"}, "a dict was passed"), (5, "an int was passed")],
    ids=repr,
)  # fmt: skip
def test_a_request_without_messages_is_reported(messages, why):
    with pytest.raises(AgentRuntimeError) as raised:
        LLMRequest(messages)
    assert [(problem.code, problem.why) for problem in raised.value.problems] == [("X461", why)]


def test_all_invalid_messages_are_reported_at_once():
    rows = ["Hi", {"role": "usr", "content": "x"}, {"content": "x"}, {"role": "user", "content": 5}, *HI, None]
    with pytest.raises(AgentRuntimeError) as raised:
        LLMRequest(rows)
    problems = raised.value.problems
    assert {problem.code for problem in problems} == {"X462"}
    assert [problem.where for problem in problems] == [f"messages[{n}]" for n in (0, 1, 2, 3, 5)]
    assert [problem.why for problem in problems] == [
        "it is a str", "the roles are: system, user, assistant, tool, function", "it is a dict",
        "expected a string, got an int", "it is a NoneType",
    ]  # fmt: skip
    assert "did you mean 'user'" in problems[1].do


@pytest.mark.parametrize("role", ["system", "user", "assistant", "tool", "function"])
def test_a_message_without_a_text_is_an_empty_one(role):
    for message in ({"role": role, "content": None}, LLMMessage(role, None), SimpleNamespace(role=role, content=None)):
        assert LLMRequest([message]).messages == (LLMMessage(role, ""),)


@pytest.mark.parametrize(
    "message", [SimpleNamespace(role="user"), SimpleNamespace(content="Hi"), {"content": "Hi"}, []]
)
def test_a_message_has_a_role_and_a_content(message):
    with pytest.raises(AgentRuntimeError, match=r"X462: .* is not a message"):
        LLMRequest([message])


CALLS = [{"id": "1", "name": "search", "arguments": {"q": "rain"}}]


@pytest.mark.parametrize(
    ("message", "read"),
    [
        ({"role": "assistant", "tool_calls": CALLS}, LLMMessage("assistant", "", (base.ToolCall(**CALLS[0]),))),
        (
            {"role": "assistant", "content": "Look", "tool_calls": CALLS},
            LLMMessage("assistant", "Look", (base.ToolCall(**CALLS[0]),)),
        ),
        ({"role": "tool", "content": "wet", "tool_call_id": "1"}, LLMMessage("tool", "wet", tool_call_id="1")),
        ({"role": "tool", "content": "wet", "tool_call_id": "", "tool_calls": []}, LLMMessage("tool", "wet")),
        (LLMMessage("tool", "wet", tool_call_id="1"), LLMMessage("tool", "wet", tool_call_id="1")),
        (SimpleNamespace(role="user", content="Hi"), LLMMessage("user", "Hi")),
    ],
)
def test_a_message_keeps_its_tool_calls(message, read):
    assert LLMRequest([message]).messages == (read,)


@pytest.mark.parametrize("config", [5, ["m"], True, dict, print], ids=repr)
def test_an_invalid_configuration_is_reported(config):
    with pytest.raises(AgentRuntimeError, match="X463"):
        LLMRequest(HI, config)


def test_an_invalid_setting_is_reported():
    with pytest.raises(AgentRuntimeError, match=r"X334: 'temperature' is 'hot'(.|\n)*X334: 'request_timeout'"):
        LLMRequest(HI, {"temperature": "hot", "timeout": -1})


def test_an_invalid_request_is_reported():
    with pytest.raises(AgentRuntimeError, match="X461"):
        request_of("Hello")


def test_a_configuration_contains_the_set_fields():
    assert to_settings({"model": "m", "maxTokens": None, "baseURL": "u", "timeout": 3}) == {
        "model": "m", "base_url": "u", "request_timeout": 3,
    }  # fmt: skip
    assert to_settings(None) == {}


# ------------------------------------------------------------------------------------------------------------ responses


@pytest.mark.parametrize(
    ("content", "text"), [("Hello", "Hello"), (None, ""), ("", ""), ({"a": 1}, '{"a": 1}')], ids=repr
)
def test_a_response_as_a_text_is_its_content(content, text):
    response = LLMResponse(content, "m", {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10})
    assert (str(response), response.content, response.role) == (text, content, "assistant")
    assert isinstance(response, base.LLMResponse)


@pytest.mark.parametrize(
    "usage",
    [
        {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
        {"promptTokens": 7, "completionTokens": 3},
        base.Usage(7, 3),
        TokenUsage(7, 3),
        SimpleNamespace(prompt_tokens=7, completion_tokens=3),
    ],
    ids=repr,
)
def test_usage_is_read_under_both_naming_schemes(usage):
    actual = LLMResponse("x", "m", usage).usage
    assert (actual.tokens_in, actual.tokens_out) == (actual.prompt_tokens, actual.completion_tokens) == (7, 3)
    assert actual == {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10} == dict(actual)
    assert actual == base.Usage(7, 3)
    assert actual != base.Usage(7, 4)


def test_a_misspelled_setting_of_a_request_is_reported():
    with pytest.warns(UserWarning, match="'tempratur' is unknown; did you mean 'temperature'"):
        request = LLMRequest([LLMMessage("user", "Hi")], {"tempratur": 0.5, "tone": "calm"})
    assert request.llm_config == {"tempratur": 0.5, "tone": "calm"}


def test_unknown_usage_is_none():
    for usage in (None, {}, {"prompt_tokens": "many", "completion_tokens": -1, "total_tokens": True}):
        assert [*LLMResponse("x", "m", usage).usage.values()] == [None, None, None]
    assert LLMResponse("x", "m", {"total_tokens": 5}).usage.total_tokens == 5
    with pytest.raises(KeyError):
        LLMResponse("x").usage["tokens_in"]


def test_the_cost_stays_with_the_usage():
    usage = LLMResponse("x", "m", base.Usage(1, 2, Decimal("0.5"))).usage
    assert usage.cost_usd == Decimal("0.5")
    assert usage == base.Usage(1, 2, Decimal("0.5")) != base.Usage(1, 2)
    assert len({usage, TokenUsage(1, 2, Decimal("0.5"))}) == 1


@pytest.mark.parametrize(
    ("answer", "content", "model"),
    [
        ("Hello", "Hello", ""),
        (None, None, ""),
        (LLMResponse("Hello", "m"), "Hello", "m"),
        (base.LLMResponse("Hello", "m"), "Hello", "m"),
        ({"content": "Hello", "model": "m", "usage": {"prompt_tokens": 1}}, "Hello", "m"),
        ({"content": None}, None, ""),
        ({"tool_name": "none", "response": "Hi"}, '{"tool_name": "none", "response": "Hi"}', ""),
        ({"content": "x", "more": 1}, '{"content": "x", "more": 1}', ""),
        (base.LLMResponse({"a": 1}, "m"), '{"a": 1}', "m"),
        (base.LLMResponse({"content": "Hello"}, "scripted"), "Hello", "scripted"),
        (base.LLMResponse({"content": "Hello", "model": "own"}, "scripted"), "Hello", "own"),
        (["a"], '["a"]', ""),
    ],
    ids=repr,
)
def test_any_answer_of_a_model_is_a_response_with_text(answer, content, model):
    response = to_response(answer)
    assert (type(response), response.content, response.model) == (LLMResponse, content, model)


def test_a_value_may_be_kept_unchanged():
    assert to_response({"a": 1}, text=False).content == {"a": 1}
    assert to_response({"content": "x", "usage": {"prompt_tokens": 4}}, text=False).usage.tokens_in == 4
