from __future__ import annotations

import pytest

from agentnb.errors import AgentRuntimeError, ExecutionError
from agentnb.world.llm.anthropic import AnthropicClient
from agentnb.world.llm.base import to_client
from agentnb.world.llm.gemini import GeminiClient
from agentnb.world.llm.openai import LMStudioClient, OpenAIClient, OpenAICompatibleClient
from agentnb.world.llm.providers import PROVIDERS, client_of, client_of_recipe
from agentnb.world.llm.simulated import SimulatedClient

KEY = {"api_key": "a-key-0815"}


@pytest.mark.parametrize(
    ("text", "cls"),
    [
        ("openai:m", OpenAIClient),
        (":m", OpenAIClient),
        ("openai_compatible:m", OpenAICompatibleClient),
        ("lmstudio:m", LMStudioClient),
        ("anthropic:m", AnthropicClient),
        ("claude:m", AnthropicClient),
        ("gemini:m", GeminiClient),
        (" gemini : m ", GeminiClient),
    ],
)
def test_the_prefix_before_the_colon_is_the_provider(text, cls):
    llm = client_of(text, KEY)
    assert (type(llm), llm.model) == (cls, "m")


def test_a_model_may_have_colons_or_come_from_the_settings():
    assert client_of("lmstudio:qwen:8b").model == "qwen:8b"
    assert client_of("lmstudio").model is None
    assert client_of("lmstudio:hint", {"model": "own"}).model == "own"


def test_a_custom_provider_declares_its_type():
    llm = client_of("ours:m", {"type": "claude", **KEY})
    assert (type(llm), repr(llm)) == (AnthropicClient, "<AnthropicClient ours:m>")


def test_the_temperature_of_the_settings_overrides_the_given_one():
    assert client_of("lmstudio:m", temperature=0.3)._settings["temperature"] == 0.3
    assert client_of("lmstudio:m", {"temperature": 0}, 0.3)._settings["temperature"] == 0


def test_settings_read_variables_from_the_environment(monkeypatch):
    monkeypatch.setenv("OWN_URL", "http://127.0.0.1:9/v1")
    assert client_of("lmstudio:m", {"base_url": "{{env.OWN_URL}}"}).base_url == "http://127.0.0.1:9/v1"
    with pytest.raises(AgentRuntimeError, match=r"X333: .*'OWN_NONE' is not set(.|\n)*settings of 'lmstudio'.api_key"):
        client_of("lmstudio:m", {"api_key": "{{env.OWN_NONE}}"})


@pytest.mark.parametrize("text", ["open_ai:m", "opnai", "gpt-4o", "nobody:m"])
def test_an_unknown_provider_is_reported_with_the_available_ones(text):
    with pytest.raises(AgentRuntimeError, match=r"X330: .* is not a provider(.|\n)*openai_compatible, lmstudio"):
        client_of(text)


def test_a_misspelled_provider_has_a_suggestion():
    with pytest.raises(ExecutionError, match="did you mean 'openai'"):
        to_client("opnai:m")


def test_a_text_becomes_a_client_wherever_a_model_is_given():
    assert isinstance(to_client("lmstudio:m"), OpenAICompatibleClient)
    assert isinstance(to_client("simulated"), SimulatedClient)


def test_the_url_of_a_compatible_server_may_come_from_the_environment(monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    assert client_of("openai_compatible:m").base_url == "http://127.0.0.1:9/v1"
    assert client_of("ours:m", {"type": "openai_compatible"}).base_url == "http://127.0.0.1:9/v1"
    settings = {"base_url": "http://127.0.0.1:8/v1"}
    assert client_of("openai_compatible:m", settings).base_url == "http://127.0.0.1:8/v1"
    assert client_of("lmstudio:m").base_url == "http://127.0.0.1:1234/v1"
    monkeypatch.delenv("OPENAI_BASE_URL")
    assert client_of("openai_compatible:m").base_url == "http://127.0.0.1:1234/v1"


VENDORS = [kind for kind, cls in PROVIDERS.items() if cls.needs_key]
ELSEWHERE = "http://127.0.0.1:9/v1"


@pytest.fixture
def vendor_keys(monkeypatch):
    for cls in PROVIDERS.values():
        for name in cls.variables:
            monkeypatch.setenv(name, "v3ndor-4711")


@pytest.mark.parametrize("kind", VENDORS)
@pytest.mark.parametrize(
    "settings",
    [
        {"base_url": ELSEWHERE},
        {"base_url": ELSEWHERE, "api_key": ""},
        {"client_kwargs": {"base_url": ELSEWHERE}},
        {"client_kwargs": {"http_options": {"base_url": ELSEWHERE}}},
        {"kwargs": {"http_options": {"base_url": ELSEWHERE}}},
    ],
)
@pytest.mark.usefixtures("vendor_keys")
def test_a_key_that_a_recipe_does_not_name_goes_only_to_its_vendor(kind, settings):
    with pytest.raises(AgentRuntimeError, match=r"X368(.|\n)*api_key: '\{\{env\."):
        client_of_recipe("ours:m", {"type": kind, **settings})
    name = PROVIDERS[kind].variables[0]
    named = client_of_recipe("ours:m", {"type": kind, **settings, "api_key": f"{{{{env.{name}}}}}"})
    assert named.key == client_of_recipe(f"{kind}:m", {}).key == "v3ndor-4711"


@pytest.mark.parametrize(
    "arguments",
    [
        {"config": {"authentication": {"identity_token": {"source": "file", "path": "/etc/passwd"}}}},
        {"profile": "default"},
        {"workload_identity": {}},
        {"admin_api_key": None},
        {"api_key": None},  # the SDK would look for another one
        {"vertexai": True},
        {"enterprise": True},
        {"debug_config": {"client_mode": "record", "replays_directory": "/tmp"}},
        {"http_options": {"client_args": {"cert": "/etc/passwd"}}},
    ],
)
@pytest.mark.usefixtures("vendor_keys")
def test_a_recipe_sets_only_harmless_arguments_of_a_client(arguments):
    for kind in VENDORS:
        with pytest.raises(AgentRuntimeError, match="X367: the recipe sets 'client_kwargs"):
            client_of_recipe(f"{kind}:m", {**KEY, "client_kwargs": {"timeout": 3, **arguments}})
        assert client_of_recipe(f"{kind}:m", {**KEY, "client_kwargs": {"timeout": 3}}).key == KEY["api_key"]
        assert (
            client_of(f"{kind}:m", {**KEY, "client_kwargs": arguments}).model == "m"
        )  # what the user writes in Python
