from __future__ import annotations

import pytest

from agentnb.errors import AgentRuntimeError
from agentnb.world.llm.settings import check_settings


def test_settings_omit_none_values():
    settings = {"temperature": 0, "top_p": None, "stop": ["a"], "prices": {"input": "1.5"}, "schema": {}}
    assert check_settings(settings, "here") == {name: value for name, value in settings.items() if value is not None}


@pytest.mark.parametrize(
    ("word", "value", "asked"),
    [
        ("temperature", "hot", "a number"),
        ("max_tokens", True, "a number"),
        ("request_timeout", 0, "seconds above 0"),
        ("base_url", 5, "a text"),
        ("headers", ["x"], "a mapping"),
        ("kwargs", "x", "a mapping"),
        ("schema", "object", "JSON Schema"),
        ("json_object", "yes", "true or false"),
        ("stop", [1], "a list of strings"),
        ("prices", {"in": 1}, "input: USD"),
        ("prices", {"input": -1}, "input: USD"),
        ("prices", {"input": "dear"}, "input: USD"),
        ("prices", {"input": float("nan")}, "input: USD"),
        ("prices", {"input": None}, "input: USD"),
    ],
)
def test_the_expected_type_of_a_setting_is_reported(word, value, asked):
    with pytest.raises(AgentRuntimeError, match=rf"X334: {word!r} is (.|\n)*where: here(.|\n)*{asked}"):
        check_settings({word: value}, "here")


def test_all_errors_are_reported_at_once_without_secrets():
    with pytest.raises(AgentRuntimeError) as raised:
        check_settings({"api_key": 12345678, "temperature": "x", "headers": 1}, "here")
    assert len(raised.value.problems) == 3
    assert "12345678" not in str(raised.value)


def test_an_unknown_setting_is_a_warning():
    with pytest.warns(UserWarning, match="'temprature' is unknown and has no effect; did you mean 'temperature'"):
        assert check_settings({"temprature": 1}, "here") == {"temprature": 1}
