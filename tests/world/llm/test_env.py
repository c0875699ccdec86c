from __future__ import annotations

import pytest

from agentnb.errors import AgentRuntimeError
from agentnb.secrets import mask_text
from agentnb.world.llm.env import Environment, parse_env_name, substitute_env


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
def test_only_a_complete_value_references_a_variable(text, name):
    assert parse_env_name(text) == name


def test_variables_are_replaced_at_any_depth_in_a_copy():
    settings = {"api_key": "{{env.OWN_KEY}}", "headers": {"x": ["a", "{{env.OWN_KEY}}"]}, "n": 1, "t": "{{env.X}} y"}
    actual = substitute_env(settings)
    assert actual == {"api_key": "k3y-4711", "headers": {"x": ["a", "k3y-4711"]}, "n": 1, "t": "{{env.X}} y"}
    assert settings["api_key"] == "{{env.OWN_KEY}}"


def test_the_text_is_masked_from_then_on():
    assert mask_text("it is k3y-4711") == "it is k3y-4711"
    substitute_env("{{env.OWN_KEY}}")
    assert mask_text("it is k3y-4711") == "it is ********"


def test_every_unset_variable_is_named_with_its_place():
    with pytest.raises(AgentRuntimeError) as raised:
        substitute_env(
            {"a": {"b": ["{{env.OWN_MISSING}}"]}, "c": "{{env.OWN_KEYS}}", "d": "{{env.OWN_EMPTY}}"}, "settings"
        )
    first, second, third = raised.value.problems
    assert (first.code, first.where) == ("X333", "settings.a.b[0]")
    assert "'OWN_MISSING' is not set" in first.what
    assert second.do == "did you mean 'OWN_KEY'?"
    assert third.what == "'OWN_EMPTY' is set, but empty"


OWNED = [
    *("AWS_SECRET_ACCESS_KEY", "AZURE_CLIENT_SECRET", "GOOGLE_APPLICATION_CREDENTIALS", "OPENAI_API_KEY", "GH_TOKEN"),
    *("ANTHROPIC_API_KEY", "GITHUB_TOKEN", "GITLAB_TOKEN", "NPM_TOKEN", "PYPI_TOKEN", "DATABASE_URL", "PGPASSWORD"),
    *("SSH_AUTH_SOCK", "JUPYTER_TOKEN", "JPY_API_TOKEN", "KUBECONFIG", "VAULT_TOKEN", "HF_TOKEN", "HTTPS_PROXY"),
]


@pytest.mark.parametrize("name", OWNED)
def test_a_recipe_does_not_read_foreign_variables(monkeypatch, name):
    monkeypatch.setenv(name, "own3d-4711")
    with pytest.raises(AgentRuntimeError, match=f"X361.*{name}") as caught:
        substitute_env({"a": [f"{{{{env.{name}}}}}"]}, "config", allowed=())
    assert "own3d-4711" not in str(caught.value)
    with pytest.raises(AgentRuntimeError, match="X361"):
        Environment()[name]
    assert substitute_env(f"{{{{env.{name}}}}}", allowed=[name]) == "own3d-4711"
    assert Environment([name])[name] == "own3d-4711"
    assert substitute_env(f"{{{{env.{name}}}}}") == "own3d-4711"  # what the user writes in Python


def test_a_recipe_reads_variables_set_for_it():
    assert substitute_env("{{env.OWN_KEY}}", allowed=()) == "k3y-4711"
    assert Environment()["OWN_KEY"] == "k3y-4711"
    assert list(Environment()) == []
