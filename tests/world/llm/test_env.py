from __future__ import annotations

import pytest

from agentnb.board.secrets import hidden
from agentnb.errors import AgentRuntimeError
from agentnb.world.llm.env import env_name, with_env


@pytest.fixture(autouse=True)
def variables(monkeypatch):
    monkeypatch.setenv("OWN_KEY", "k3y-4711")
    monkeypatch.setenv("OWN_EMPTY", "")
    monkeypatch.delenv("OWN_MISSING", raising=False)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("{{env.OWN_KEY}}", "OWN_KEY"),
        (" {{ env.OWN_KEY }} ", "OWN_KEY"),
        ("Bearer {{env.OWN_KEY}}", None),
        ("{{env.OWN_KEY}}{{env.OWN_KEY}}", None),
        ("{{ state.key }}", None),
        ("{{env.}}", None),
        (5, None),
    ],
)
def test_only_a_whole_value_asks_for_a_variable(text, name):
    assert env_name(text) == name


def test_the_text_takes_its_place_at_any_depth_and_nothing_is_changed():
    given = {"api_key": "{{env.OWN_KEY}}", "headers": {"x": ["a", "{{env.OWN_KEY}}"]}, "n": 1, "t": "{{env.X}} y"}
    found = with_env(given)
    assert found == {"api_key": "k3y-4711", "headers": {"x": ["a", "k3y-4711"]}, "n": 1, "t": "{{env.X}} y"}
    assert given["api_key"] == "{{env.OWN_KEY}}"


def test_the_text_is_never_shown_from_then_on():
    assert hidden("it is k3y-4711") == "it is k3y-4711"
    with_env("{{env.OWN_KEY}}")
    assert hidden("it is k3y-4711") == "it is ********"


def test_every_variable_that_is_not_set_is_named_with_its_place():
    with pytest.raises(AgentRuntimeError) as raised:
        with_env({"a": {"b": ["{{env.OWN_MISSING}}"]}, "c": "{{env.OWN_KEYS}}", "d": "{{env.OWN_EMPTY}}"}, "settings")
    first, second, third = raised.value.problems
    assert (first.code, first.where) == ("X333", "settings.a.b[0]")
    assert "'OWN_MISSING' is not set" in first.what
    assert second.do == "did you mean 'OWN_KEY'?"
    assert third.what == "'OWN_EMPTY' is set, but empty"
