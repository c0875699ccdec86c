"""The known settings of a model provider, and their validation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from agentnb.errors import AgentRuntimeError, Problem, did_you_mean, find_misspelling, warn_caller
from agentnb.text import safe_repr

SAMPLING: Final = frozenset({"temperature", "max_tokens", "top_p", "top_k", "stop", "seed"})
# The settings that a node may set for its own requests.
OF_REQUESTS: Final = SAMPLING | {"kwargs", "schema", "json_object", "request_timeout"}
_TEXT: Final = {"type", "model", "base_url", "api_key"}
_NUMBERS: Final = {"temperature", "top_p", "top_k", "max_tokens", "seed", "request_timeout"}
_MAPPINGS: Final = {"headers", "kwargs", "client_kwargs", "prices"}
WORDS: Final = SAMPLING | _TEXT | _NUMBERS | _MAPPINGS | {"schema", "json_object"}


def check_settings(settings: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return settings without None values; an unknown setting is reported in a warning.

    Args:
        where: what the settings are, for the Problems.

    Raises:
        AgentRuntimeError: X334, all problems of the settings.
    """
    present = {str(word): value for word, value in settings.items() if value is not None}
    for word in present:
        if word not in WORDS:
            order = did_you_mean(word, WORDS, "pass further fields of the protocol in `kwargs`")
            warn_caller(f"{where}: {word!r} is unknown and has no effect; {order}")
    problems = [
        Problem("X334", f"{word!r} is {safe_repr(value, key=word)}", where, f"it must be {rule}", "fix the setting")
        for word, value in present.items()
        if (rule := _find_broken_rule(word, value))
    ]
    if problems:
        raise AgentRuntimeError(*problems)
    return present


def iter_misspelled_settings(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield each name that is probably a misspelled setting of a request, with the right one.

    Other unknown names may be those of a client of the user.

    Example:
        >>> list(iter_misspelled_settings(["model", "tempratur", "tone"]))
        [('tempratur', 'temperature')]
    """
    for name in names:
        similar = find_misspelling(name, OF_REQUESTS)
        if similar is not None:
            yield name, similar


def _find_broken_rule(word: str, value: Any) -> str | None:
    """Return the rule that a setting's value violates; None if it is valid."""
    if word in _TEXT and not isinstance(value, str):
        return "a text"
    if word in _NUMBERS and (isinstance(value, bool) or not isinstance(value, int | float)):
        return "a number"
    if word == "request_timeout" and value <= 0:
        return "a number of seconds above 0"
    if word in _MAPPINGS and not isinstance(value, Mapping):
        return "a mapping"
    if word == "schema" and not isinstance(value, Mapping):
        return "a JSON Schema, as a mapping"
    if word == "json_object" and not isinstance(value, bool):
        return "true or false"
    if word == "stop" and not isinstance(value, str) and not _are_texts(value):
        return "a string or a list of strings"
    if word == "prices" and not _are_prices(value):
        return "{input: USD, output: USD} for a million tokens each"
    return None


def _are_texts(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)


def _are_prices(value: Mapping[str, Any]) -> bool:
    """Return True if prices are numbers of 0 or more, or strings of such numbers."""
    if not {"input", "output"} >= set(value):
        return False
    try:
        return all(not isinstance(price, bool) and 0 <= float(price) < float("inf") for price in value.values())
    except (TypeError, ValueError):
        return False
