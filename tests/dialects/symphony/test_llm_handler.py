from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from agentnb.dialects.symphony.parts.llm_handler import ENVIRONMENT, LLMHandler, Provider
from agentnb.dialects.symphony.parts.llm_types import LLMRequest, LLMResponse
from agentnb.errors import AgentRuntimeError
from agentnb.secrets import mask_text
from agentnb.world.llm import base
from agentnb.world.llm.base import LLMError
from tests.dialects.symphony.providers import HI, Own, no_keys, serve, served
from tests.world.llm.model_server import KEY
from tests.world.llm.protocols import PROTOCOLS, OpenAI

__all__ = ["no_keys", "serve"]  # fixtures

each = pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda protocol: protocol.name)

# --------------------------------------------------------------------------------------------------------- registration


@pytest.mark.parametrize("name", ["openai", "OpenAI", " OPENAI "])
def test_names_of_providers_are_case_insensitive(name, serve):
    handler, _ = served(serve, OpenAI.whole(), provider="OpenAI")
    assert handler.get_provider(name) is handler.get_provider()


@each
def test_a_provider_from_settings_uses_its_own_protocol(protocol, serve):
    server, handler = serve(protocol.whole("Hello")), LLMHandler()
    config = {"provider": protocol.name, "model": "m-1", "apiKey": KEY, "baseURL": server.url + protocol.prefix}
    handler.register_provider(config)
    response = handler.complete(LLMRequest(HI))
    assert (response.content, response.usage.total_tokens) == ("Hello", 10)
    assert protocol.said(server.asked[0].body) == [("user", "Hi")]
    assert type(response) is LLMResponse
    assert not handler.is_simulated


def test_a_provider_may_have_another_name_than_its_type(serve):
    server, handler = serve(OpenAI.whole("Hello")), LLMHandler()
    words = SimpleNamespace(name="Ours", provider="openai_compatible", model="small", base_url=server.url)
    assert handler.register_provider(words).name == "Ours"
    handler.register_provider("theirs", {"type": "openai_compatible", "model": "big", "base_url": server.url})
    for name in ("ours", "THEIRS"):
        handler.complete(LLMRequest(HI, provider=name))
    assert [received.body["model"] for received in server.asked] == ["small", "big"]


@pytest.mark.parametrize(("name", "in_problems"), [("Ours", "Ours"), ("Openai_Compatible", "openai_compatible")])
def test_a_problem_names_a_provider_as_it_is_called(name, in_problems, serve):
    handler = LLMHandler()
    handler.register_provider({"name": name, "type": "openai_compatible", "base_url": serve(OpenAI.whole()).url})
    with pytest.raises(AgentRuntimeError, match=f"no model of '{in_problems}' was specified"):
        handler.complete(LLMRequest(HI))


class OwnLater:
    async def complete(self, request):
        return base.LLMResponse(request.prompt, "later", base.Usage(1, 2))


@pytest.mark.parametrize(
    ("given", "content"),
    [
        (lambda request: "Hello", "Hello"),
        (lambda request: LLMResponse("Hello", "m", {"prompt_tokens": 1, "completion_tokens": 2}), "Hello"),
        (lambda request: base.LLMResponse("Hello"), "Hello"),
        (lambda request: {"content": "Hello"}, "Hello"),
        (lambda request: {"answer": 42}, '{"answer": 42}'),
        (lambda request: None, None),
        (lambda request: request.llm_config["model"], "m-2"),
        (["Hello"], "Hello"),
        (Own(), "x: Hi"),
        (OwnLater(), "Hi"),
        ("simulated", "Mocked output from "),
    ],
)
def test_any_client_can_be_a_provider(given, content):
    handler = LLMHandler()
    handler.register_provider("x", given)
    message_request = LLMRequest(HI, {"model": "m-2"}, provider="x")
    assert handler.complete(message_request).content == content
    assert handler.is_simulated == (given in (["Hello"], "simulated"))
    if not isinstance(given, list):
        assert asyncio.run(handler.acomplete(message_request)).content == content
    else:
        with pytest.raises(Exception, match="X304"):
            asyncio.run(handler.acomplete(message_request))  # a script goes on from call to call


def test_a_named_provider_needs_no_other_name():
    handler = LLMHandler()
    handler.register_provider(Own())
    assert handler.complete({"messages": [{"role": "user", "content": "Hi"}]}).content == "None: Hi"


@pytest.mark.parametrize(
    ("given", "name", "model"),
    [
        (("openai",), "openai", "gpt-4o-mini"),
        (("openai:gpt-9",), "openai", "gpt-9"),
        (("claude",), "claude", "claude-sonnet-4-5"),
        (("anthropic:big:one",), "anthropic", "big:one"),
        (("simulated",), "simulated", None),
        (("mine", "openai:gpt-9"), "mine", "gpt-9"),
        (("mine", {"provider": "gemini"}), "mine", "gemini-2.5-flash"),
        (({"provider": "gemini"},), "gemini", "gemini-2.5-flash"),
        (({"provider": " Gemini ", "model": "m"},), "Gemini", "m"),
        (({"name": "mine", "provider": "openai"},), "mine", "gpt-4o-mini"),
        (({"name": "mine", "type": "OpenAI"},), "mine", "gpt-4o-mini"),
        (({"name": "openai", "type": "openai_compatible", "model": "m"},), "openai", "m"),
        (("lmstudio",), "lmstudio", None),
    ],
)
def test_a_provider_is_named_with_its_model(given, name, model, monkeypatch):
    for variable in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(variable, KEY)
    provider = LLMHandler().register_provider(*given)
    assert (provider.name, provider.model) == (name, model)


@pytest.mark.parametrize("name", [None, "", "  "])
def test_without_a_name_the_default_provider_is_used(name, monkeypatch):
    handler = LLMHandler()
    with pytest.raises(AgentRuntimeError, match="X465"):
        handler.get_provider(name)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    assert handler.get_provider(name).name == "anthropic"
    handler.register_provider("mine", ["x"])
    handler.register_provider("other", ["x"])
    assert handler.get_provider(name).name == "mine"


def test_providers_without_a_key_are_available_by_name():
    assert LLMHandler().get_provider("simulated").is_simulated
    assert not LLMHandler().get_provider("lmstudio").is_simulated
    for name in ("openai", "gemini", "gone"):
        with pytest.raises(AgentRuntimeError, match="X465"):
            LLMHandler().get_provider(name)


def test_the_last_provider_of_a_name_is_used_and_the_first_one_is_the_default():
    handler = LLMHandler()
    for name, answer in (("a", "1"), ("b", "2"), ("A", "3")):
        handler.register_provider(name, [answer])
    assert handler.known == ["A", "b"]
    assert handler.complete(LLMRequest(HI)).content == "3"


def test_handlers_are_objects_and_one_is_shared():
    shared = LLMHandler.get_instance()
    assert shared is LLMHandler.get_instance()
    assert LLMHandler() is not shared
    assert LLMHandler.of(None) is shared
    assert LLMHandler.of(shared) is shared


def test_a_single_model_answers_for_every_provider():
    handler = LLMHandler.of(lambda request: f"I, for {request.provider}")
    assert handler.complete(LLMRequest(HI, provider="openai")).content == "I, for openai"
    assert LLMHandler.of(Provider("p", Own())).complete(LLMRequest(HI)).content == "None: Hi"


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ((None,), "X464"),
        (({"model": "m"},), "X464"),
        (("", lambda request: ""), "X464"),
        (("x", 5), "X464"),
        (("x", Own), "X464"),
        ((5,), "X463"),
        (({"provider": "opnai", "api_key": KEY},), "X330"),
        (("opnai",), "X330"),
        (({"provider": "openai"},), "X332"),
        (({"provider": "openai", "api_key": "{{env.NOT_THERE}}"},), "X333"),
        (({"provider": "openai", "api_key": KEY, "temperature": "hot"},), "X334"),
    ],
)
def test_an_invalid_provider_is_reported(given, code):
    handler = LLMHandler()
    with pytest.raises(AgentRuntimeError, match=code) as raised:
        handler.register_provider(*given)
    assert KEY not in str(raised.value)
    assert handler.known == []


# --------------------------------------------------------------------------------------------------------- environment


@pytest.mark.parametrize(
    ("variable", "name", "model"),
    [
        ("OPENAI_API_KEY", "openai", "gpt-4o-mini"),
        ("ANTHROPIC_API_KEY", "anthropic", "claude-sonnet-4-5"),
        ("GOOGLE_API_KEY", "gemini", "gemini-2.5-flash"),
    ],
)
def test_a_key_in_the_environment_is_enough(variable, name, model, monkeypatch):
    handler = LLMHandler()
    monkeypatch.setenv(variable, KEY)
    provider = handler.get_provider()
    assert (provider.name, provider.model, handler.known) == (name, model, [name])
    assert handler.get_provider(name.upper()) is provider


def test_environment_keys_are_searched_in_order_and_after_registered_providers(monkeypatch):
    handler = LLMHandler()
    for variable, name in (
        ("GEMINI_API_KEY", "gemini"),
        ("ANTHROPIC_API_KEY", "anthropic"),
        ("OPENAI_API_KEY", "openai"),
    ):
        monkeypatch.setenv(variable, KEY)
        assert handler.get_provider().name == name
    assert handler.known == [*ENVIRONMENT]
    handler.register_provider("mine", ["x"])
    assert handler.get_provider().name == "mine"
    assert handler.known == ["mine", *ENVIRONMENT]


def test_a_changed_key_is_used(monkeypatch, serve):
    handler, first = LLMHandler(), KEY
    monkeypatch.setenv("OPENAI_API_KEY", first)
    before = handler.get_provider()
    monkeypatch.setenv("OPENAI_API_KEY", "another-key-4711")
    assert handler.get_provider() is not before
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(AgentRuntimeError, match="X465"):
        handler.get_provider()


def test_a_provider_from_the_environment_has_its_settings(monkeypatch, serve):
    server = serve(OpenAI.whole())
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", server.url + "/v1")
    assert LLMHandler().complete(LLMRequest(HI)).content == "Hello"
    body = server.asked[0].body
    assert (body["model"], body["temperature"], body["max_tokens"]) == ("gpt-4o-mini", 0.7, 2048)


def test_an_unknown_provider_is_reported_with_the_available_ones():
    handler = LLMHandler()
    handler.register_provider("local", ["x"])
    with pytest.raises(AgentRuntimeError, match=r"X465: there is no provider 'lokal'(.|\n)*local(.|\n)*mean 'local'"):
        handler.get_provider("lokal")
    with pytest.raises(AgentRuntimeError, match=r"X465(.|\n)*OPENAI_API_KEY is not set; the known ones are: local"):
        handler.complete(LLMRequest(HI, provider="openai"))


def test_a_missing_provider_is_reported_with_the_remedy():
    with pytest.raises(AgentRuntimeError, match=r"X465: there is no model provider(.|\n)*OPENAI_API_KEY"):
        LLMHandler().complete(LLMRequest(HI))


# -------------------------------------------------------------------------------------------------------------- secrets


def test_a_key_is_never_shown(serve):
    handler, _ = served(serve, OpenAI.failed(401, f"the key {KEY} is wrong"))
    provider = handler.get_provider()
    with pytest.raises(LLMError) as raised:
        handler.complete(LLMRequest(HI))
    shown = [repr(handler), repr(handler.client()), repr(provider), repr(provider.client), str(raised.value)]
    assert all(KEY not in text for text in shown)
    assert mask_text(KEY) == "********"
    assert repr(handler) == "<LLMHandler of 'openai'>"
    assert KEY not in repr(LLMHandler.of(SimpleNamespace(complete=print, note=KEY)).get_provider().client)
