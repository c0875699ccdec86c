"""secrets: what may be seen outside. Masks by a key's name, and cuts long values for the screen."""

from __future__ import annotations

import re
from typing import Any, Final

from agentnb.board.values import ATOMS, FrozenDict, FrozenList, FrozenRecord

MASK: Final = "********"
# Whole words of a key's name: `api_key`, `x-auth-token`, `apiKey`; `tokens_in` and `keyboard` stay visible.
_WORDS: Final = frozenset(
    {"password", "passwd", "passphrase", "secret", "secrets", "token", "authorization", "apikey", "credential", "credentials"}
)
_PAIRS: Final = frozenset({("api", "key"), ("access", "key"), ("private", "key"), ("secret", "key"), ("auth", "key")})
_SPLIT: Final = re.compile(r"[^A-Za-z0-9]+|(?<=[a-z0-9])(?=[A-Z])")


def is_secret(key: object) -> bool:
    """Say whether a key's name is that of a secret.

    Example:
        >>> is_secret("api_key"), is_secret("OpenAI-Api-Key"), is_secret("tokens_in")
        (True, True, False)
    """
    if not isinstance(key, str):
        return False
    words = [word.lower() for word in _SPLIT.split(key) if word]
    return not _WORDS.isdisjoint(words) or not _PAIRS.isdisjoint(zip(words, words[1:], strict=False))


def masked(value: Any, key: object = None) -> Any:
    """Return a value as it may leave the process: what stands under a secret's name is masked, at any depth."""
    if key is not None and is_secret(key):
        return None if value is None else MASK
    if value.__class__ in ATOMS:
        return value
    if isinstance(value, FrozenRecord):
        return {name: masked(item, name) for name, item in value.parts.items()}
    if isinstance(value, dict):
        return {name: masked(item, name) for name, item in value.items()}
    if isinstance(value, list | FrozenList):
        return [masked(item) for item in value]
    if isinstance(value, tuple):
        return tuple(masked(item) for item in value)
    return value


def short(value: Any, key: object = None, width: int = 60) -> str:
    """Return one line of text for a value, masked and cut to `width`."""
    text = repr(masked(_head(value), key))
    return text if len(text) <= width else text[: width - 1] + "…"


def _head(value: Any) -> Any:
    """Cut what would not be seen anyway, so that a value of any size costs the same to show."""
    if isinstance(value, str | bytes):
        return value[:200]
    if isinstance(value, list | FrozenList):
        return [_head(item) for item in value[:20]]
    if isinstance(value, FrozenRecord):
        return value
    if isinstance(value, dict):
        return {key: _head(item) for key, item in list(value.items())[:20]}
    return value
