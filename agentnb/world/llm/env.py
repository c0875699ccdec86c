"""env: `{{env.NAME}}` in settings. The variable's text takes its place, and is hidden from all that is shown."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any, Final

from agentnb.board.secrets import hide
from agentnb.errors import AgentRuntimeError, Problem, did_you_mean

_ENV: Final = re.compile(r"\s*\{\{\s*env\.([A-Za-z_][A-Za-z0-9_]*)\s*\}\}\s*")


def env_name(value: Any) -> str | None:
    """Return the variable that a value asks for: a text that is `{{env.NAME}}` and nothing else. None for any other.

    Example:
        >>> env_name("{{ env.API_KEY }}"), env_name("key {{env.API_KEY}}")
        ('API_KEY', None)
    """
    match = _ENV.fullmatch(value) if isinstance(value, str) else None
    return match[1] if match else None


def with_env(value: Any, where: str = "settings") -> Any:
    """Return a value with the text of its variable in place of each `{{env.NAME}}`, at any depth of dicts and lists.

    From then on that text is masked wherever it is shown. A value without any comes back equal; none is changed.

    Args:
        where: what the value is, told in the Problem.

    Raises:
        AgentRuntimeError: X333, every variable that is not set, each with its place.
    """
    problems: list[Problem] = []
    found = _filled(value, where, problems)
    if problems:
        raise AgentRuntimeError(*problems)
    return found


def _filled(value: Any, where: str, problems: list[Problem]) -> Any:
    name = env_name(value)
    if name is not None:
        return _of_env(name, where, problems)
    if isinstance(value, Mapping):
        return {key: _filled(item, f"{where}.{key}", problems) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_filled(item, f"{where}[{number}]", problems) for number, item in enumerate(value)]
    return value


def _of_env(name: str, where: str, problems: list[Problem]) -> str | None:
    """Return a variable's text. One that is set to nothing counts as unset: no setting is meant to be empty."""
    text = os.environ.get(name)
    if text:
        hide(text)
        return text
    problems.append(
        Problem(
            "X333",
            f"the environment variable {name!r} is not set" if text is None else f"{name!r} is set, but empty",
            where,
            f"{{{{env.{name}}}}} stands for its text",
            did_you_mean(name, os.environ, f"set {name} before Python starts, or in it: os.environ[{name!r}] = ..."),
        )
    )
    return None
