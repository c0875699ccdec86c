"""Environment variables: `{{env.NAME}}` in settings, and which variables a recipe may read and set.

Replaced text is masked wherever it is shown. Settings that the user writes in Python may name any variable. A recipe
may not read variables that belong to something else on this machine (`is_owned`), and may set only harmless ones for
the servers that it starts (`is_settable`); the user can permit both with `allow=["env:NAME"]`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from agentnb.errors import AgentRuntimeError, Problem, did_you_mean
from agentnb.recipe.descriptions import describe_how_to_allow
from agentnb.secrets import hide

ALLOW: Final = "env:"  # the prefix of `allow` entries that name a variable
_SETTABLE: Final = re.compile(
    r"LANG|LANGUAGE|LC_[A-Z]+|TZ|LOG_LEVEL|NO_COLOR|KEY|TOKEN|SECRET|PASSWORD|"
    r"[A-Z][A-Z0-9_]*_(KEY|KEY_ID|TOKEN|SECRET|PASSWORD|USER|USERNAME|EMAIL|ID|REGION|LOCALE|LANGUAGE|LOG_LEVEL)"
)
# Accounts of clouds, model vendors, code hosts, package registries, containers, databases, shells and notebooks.
_OWNED: Final = re.compile(
    r"(AWS|AZURE|ARM|GCP|GCLOUD|GOOGLE|CLOUDSDK|CLOUDFLARE|CF|HEROKU|DIGITALOCEAN|OCI|ALIBABA|ALICLOUD|VERCEL|NETLIFY|"
    r"OPENAI|ANTHROPIC|CLAUDE|GEMINI|MISTRAL|COHERE|GROQ|XAI|OPENROUTER|TOGETHER|DEEPSEEK|HF|HUGGINGFACE|LANGCHAIN|"
    r"LANGSMITH|WANDB|GH|GITHUB|GITLAB|BITBUCKET|GIT|CI|CIRCLE|TRAVIS|BUILDKITE|JENKINS|NPM|NODE|YARN|PYPI|TWINE|PIP|"
    r"UV|POETRY|CARGO|CONDA|ANACONDA|DOCKER|KUBE|KUBERNETES|HELM|VAULT|TERRAFORM|TF|ANSIBLE|SSH|GPG|SUDO|PG|POSTGRES|"
    r"POSTGRESQL|MYSQL|MARIADB|MONGO|MONGODB|REDIS|DATABASE|DB|SENTRY|STRIPE|JUPYTER|JUPYTERHUB|JPY|COLAB|KAGGLE)_.*|"
    r"PG[A-Z]+|KUBECONFIG|NETRC|(?:HTTPS?|ALL|FTP)_PROXY|(?i:https?|all|ftp)_proxy|npm_config_.*"
)
_ENV: Final = re.compile(r"\s*\{\{\s*env\.([A-Za-z_][A-Za-z0-9_]*)\s*\}\}\s*")


def parse_env_name(value: Any) -> str | None:
    """Return the variable that a value refers to: a string of exactly `{{env.NAME}}`. None for any other value.

    Example:
        >>> parse_env_name("{{ env.API_KEY }}"), parse_env_name("key {{env.API_KEY}}")
        ('API_KEY', None)
    """
    match = _ENV.fullmatch(value) if isinstance(value, str) else None
    return match[1] if match else None


def is_settable(name: str) -> bool:
    """Return True if a recipe may set this variable for a server that it starts: credentials, a locale, a log level.

    Variables read by loaders, interpreters, package managers and proxies change what a program runs or connects to.
    There are too many to list, so only names that are known to be harmless are accepted.

    Example:
        >>> is_settable("GITHUB_TOKEN"), is_settable("PYTHONPATH"), is_settable("PIP_INDEX_URL")
        (True, False, False)
    """
    return _SETTABLE.fullmatch(name) is not None


def is_owned(name: str) -> bool:
    """Return True if a variable belongs to something else on this machine: a recipe needs permission to read it.

    Example:
        >>> is_owned("AWS_SECRET_ACCESS_KEY"), is_owned("OPENAI_API_KEY"), is_owned("WEATHER_KEY")
        (True, True, False)
    """
    return _OWNED.fullmatch(name) is not None


class Environment(Mapping[str, str]):
    """The environment variables that a recipe may read, by name; a value is masked as soon as it has been read.

    Args:
        allowed: names that the user allows although they belong to something else.
    """

    def __init__(self, allowed: Collection[str] = frozenset()) -> None:
        self.allowed = frozenset(allowed)

    def __getitem__(self, name: str) -> str:
        return str(substitute_env(f"{{{{env.{name}}}}}", f"env.{name}", allowed=self.allowed))

    def __iter__(self) -> Iterator[str]:
        return iter(())  # variables are never listed

    def __len__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return repr(dict(self))


def list_allowed_variables(allow: Collection[str]) -> frozenset[str]:
    """Return the variables that the entries of `allow` name.

    Example:
        >>> sorted(list_allowed_variables(["mytools", "env:GITHUB_TOKEN"]))
        ['GITHUB_TOKEN']
    """
    return frozenset(entry.removeprefix(ALLOW) for entry in allow if entry.startswith(ALLOW))


def substitute_env(value: Any, where: str = "settings", *, allowed: Collection[str] | None = None) -> Any:
    """Return a value with each `{{env.NAME}}` replaced by its variable, at any depth of dicts and lists.

    From then on, the text is masked wherever it is shown. The argument is not changed.

    Args:
        where: what the value is, for the Problem.
        allowed: for a recipe's text, the variables that the user allows; None for what the user wrote in Python.

    Raises:
        AgentRuntimeError: every problem at once, each with its place: X333, a variable is not set; X361, a recipe may
            not read a variable.
    """
    problems: list[Problem] = []
    filled = _fill(value, where, problems, allowed)
    if problems:
        raise AgentRuntimeError(*problems)
    return filled


def _fill(value: Any, where: str, problems: list[Problem], allowed: Collection[str] | None) -> Any:
    name = parse_env_name(value)
    if name is not None:
        if allowed is not None and name not in allowed and is_owned(name):
            problems.append(_make_env_problem(name, where))
            return None
        return _read_env(name, where, problems)
    if isinstance(value, Mapping):
        return {key: _fill(item, f"{where}.{key}", problems, allowed) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_fill(item, f"{where}[{number}]", problems, allowed) for number, item in enumerate(value)]
    return value


def _read_env(name: str, where: str, problems: list[Problem]) -> str | None:
    """Return a variable's text. An empty one counts as unset: no setting is meant to be empty."""
    text = os.environ.get(name)
    if text:
        hide(text)
        return text
    problems.append(
        Problem(
            "X333",
            f"the environment variable {name!r} is not set" if text is None else f"{name!r} is set, but empty",
            where,
            f"{{{{env.{name}}}}} is replaced by its value",
            did_you_mean(name, os.environ, f"set {name} before Python starts, or in it: os.environ[{name!r}] = ..."),
        )
    )
    return None


def _make_env_problem(name: str, where: str) -> Problem:
    return Problem(
        "X361",
        f"the recipe reads the environment variable {name!r}, which is not allowed",
        where,
        "variables of cloud accounts, model vendors, code hosts, databases and similar services are not sent anywhere "
        "only because a recipe names them",
        f"if you trust the recipe, allow it: {describe_how_to_allow(ALLOW + name)}",
    )
