from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from agentnb.dialects.symphony import AgentConfig, AgentExecutor
from agentnb.dialects.symphony.schema import ModelConfig, to_config
from agentnb.errors import RecipeError
from agentnb.secrets import mask_text


def test_the_original_field_names_are_accepted() -> None:
    one = to_config({"name": "A", "systemPrompt": "s", "maxCalls": 3, "requireApproval": True, "enableCache": True})
    assert (one.system_prompt, one.max_calls, one.require_approval) == ("s", 3, True)
    assert one == AgentConfig(name="A", system_prompt="s", max_calls=3, require_approval=True, enable_cache=True)


@pytest.mark.parametrize(
    "make",
    [
        lambda fields: AgentConfig(**fields),
        to_config,
        lambda fields: AgentExecutor(fields, llm=["x"]).config,
        AgentConfig.model_validate,
    ],
    ids=["class", "mapping", "executor", "validated"],
)
def test_unknown_fields_are_reported_in_one_warning_each(make: Callable[[Any], AgentConfig]) -> None:
    fields = {"name": "A", "tols": ["x"], "llm": {"model": "m", "tempratur": 1, "other": 2}}
    with pytest.warns(UserWarning, match="R112") as caught:
        config = make(fields)
    remedies = [str(warning.message).partition("do:")[2].strip() for warning in caught]
    assert sorted(remedies) == ["did you mean 'temperature'?", "did you mean 'tools'?", "remove 'other'"]
    assert config == AgentConfig(name="A", llm={"model": "m"})


def test_fields_may_be_positional() -> None:
    assert AgentConfig("A", "d", "t", ["x"]) == AgentConfig(name="A", description="d", task="t", tools=["x"])


@pytest.mark.parametrize(
    ("llm", "provider", "model"),
    [(None, None, None), ("gpt", None, "gpt"), ("openai:gpt", "openai", "gpt"), ("a:b", None, "a:b"),
     ({"model": "m", "provider": "p"}, "p", "m")],
)  # fmt: skip
def test_a_model_can_be_given_in_every_form(llm: object, provider: str | None, model: str | None) -> None:
    actual = AgentConfig(name="A", llm=llm).model
    assert (actual.provider, actual.model) == (provider, model)


INF, NAN = float("inf"), float("nan")


@pytest.mark.parametrize(
    ("make", "valid", "invalid"),
    [
        (lambda value: AgentConfig(name="A", timeout=value).timeout, [0.5, 3, None], [0, -1, INF, NAN]),
        (lambda value: ModelConfig(timeout=value).timeout, [0.5, 3, None], [0, -1, INF, NAN]),
        (lambda value: ModelConfig(temperature=value).temperature, [0, 0.5, 2, None], [-0.1, INF, NAN]),
        (lambda value: ModelConfig(max_tokens=value).max_tokens, [1, 2, None], [0, -1, 1.5]),
    ],
    ids=["timeout", "timeout of the model", "temperature", "max_tokens"],
)
def test_numbers_have_limits(make: Callable[[Any], Any], valid: list[Any], invalid: list[Any]) -> None:
    assert [make(value) for value in valid] == valid
    for value in invalid:
        with pytest.raises(ValueError, match=r"greater|finite|integer"):
            make(value)


def test_missing_and_null_tools_mean_none() -> None:
    assert AgentConfig(name="A", tools=None).tools == []
    assert AgentConfig(name="A", directives=["a", "b"]).directives == "a\nb"
    assert AgentConfig(name="A", directives=["a", 2]).directives == "a\n2"
    with pytest.raises(RecipeError, match="R114"):
        AgentConfig(name="A", directives=["a", ["b"]])


def test_every_mistake_is_reported_at_once() -> None:
    with pytest.raises(RecipeError) as caught:
        AgentConfig(name="", tools=[3], max_calls=-1, timeout="soon", llm={"temperature": -3})
    assert len(caught.value.problems) == 5


def test_an_invalid_config_is_a_problem() -> None:
    with pytest.raises(RecipeError, match="AgentConfig"):
        to_config("Helper")


def test_a_key_is_not_shown() -> None:
    assert "sk-secret" not in repr(AgentConfig(name="A", llm={"model": "m", "apiKey": "sk-secret"}))


def test_a_tool_named_none_is_rejected_and_each_is_reported_once() -> None:
    assert AgentConfig(name="A", tools=["b", "a", "b"]).tools == ["b", "a"]
    with pytest.raises(RecipeError, match="none"):
        AgentConfig(name="A", tools=["none"])


def test_a_key_is_masked_in_the_dump_of_a_config_and_everywhere_else():
    llm = {"model": "m-1", "api_key": "k3y-of-ours-4711"}
    config = AgentConfig(name="Support", llm=llm, stream_options={"headers": {"Authorization": "Bearer of-a-str3am"}})
    dumps = [config.model_dump(), config.model_dump_json(), config.model.model_dump(), config.model_dump(mode="json")]
    assert not [dump for dump in dumps if "4711" in str(dump) or "str3am" in str(dump)]
    assert config.model_dump()["llm"]["model"] == "m-1"
    assert (config.model.api_key, config.stream_options["headers"]["Authorization"]) == (
        "k3y-of-ours-4711", "Bearer of-a-str3am"
    )  # fmt: skip
    assert mask_text("it is k3y-of-ours-4711") == "it is ********"
    assert AgentConfig(**dict(config)) == config


def test_missing_fields_have_their_defaults() -> None:
    assert AgentConfig(name="A").model_dump() == {
        "name": "A", "description": "", "task": "", "tools": [], "llm": None, "directives": None,
        "system_prompt": None, "max_calls": 1, "timeout": None, "require_approval": False, "capabilities": [],
        "enable_cache": False, "enable_streaming": False, "stream_options": None, "log": None,
    }  # fmt: skip
    assert ModelConfig().model_dump() == {
        "model": None, "provider": None, "api_key": None, "temperature": None, "max_tokens": None, "timeout": None,
        "native_tools": False,
    }  # fmt: skip
    assert (ModelConfig().settings, AgentConfig(name="A", tools=["x"]).native) == ({}, False)


VALUES = {
    **dict.fromkeys(["max_calls", "max_tokens"], 7),
    **dict.fromkeys(["require_approval", "enable_cache", "enable_streaming", "native_tools"], True),
    "system_prompt": "s",
    "stream_options": {"a": 1},
    "api_key": "k",
}
IN_MODEL = ("api_key", "max_tokens", "native_tools")


@pytest.mark.parametrize("name", VALUES)
def test_every_field_has_two_spellings(name: str) -> None:
    first, *rest = name.split("_")
    for word in (name, first + "".join(map(str.title, rest))):
        values = {"llm": {word: VALUES[name]}} if name in IN_MODEL else {word: VALUES[name]}
        config = AgentConfig(name="A", **values)
        assert getattr(config.model if name in IN_MODEL else config, name) == VALUES[name]
        assert to_config({"name": "A", **values}) == config


def test_the_first_eight_fields_may_be_positional() -> None:
    given = ("A", "d", "t", ["x"], "m", "r", "s", 2)
    names = ("name", "description", "task", "tools", "llm", "directives", "system_prompt", "max_calls")
    config = AgentConfig(*given)
    assert tuple(getattr(config, name) for name in names) == given
    assert AgentConfig("A", "d", description="e").description == "e"


@pytest.mark.parametrize("empty", ["description", "task", "tools", "capabilities"])
def test_a_field_may_be_left_empty(empty: str) -> None:
    config = to_config({"name": "A", "llm": "m", empty: None})
    assert config == to_config({"name": "A", "llm": "m"})
    assert getattr(config, empty) in ("", [])


@pytest.mark.parametrize("tools", [["a", "b", "a"], ("a", "b"), {"a"}, frozenset({"a"})])
def test_tools_are_a_list_without_duplicates(tools: Any) -> None:
    assert AgentConfig(name="A", tools=tools).tools == list(dict.fromkeys(tools))


def test_settings_of_a_model_are_those_that_are_set() -> None:
    model = ModelConfig(model="m", provider="p", api_key="k", temperature=0, max_tokens=1, timeout=2, native_tools=True)
    assert model.settings == {
        "model": "m", "provider": "p", "api_key": "k", "temperature": 0, "max_tokens": 1, "timeout": 2,
    }  # fmt: skip


def test_native_tools_need_tools_and_a_model_that_has_them() -> None:
    native = {"native_tools": True}
    assert AgentConfig(name="A", tools=["x"], llm=native).native
    assert not AgentConfig(name="A", llm=native).native
    assert not AgentConfig(name="A", tools=["x"], llm={"native_tools": False}).native
    assert not AgentConfig(name="A", tools=["x"], llm="m").native
