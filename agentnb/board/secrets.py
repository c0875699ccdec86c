"""secrets: what may be seen outside. Masks by a key's name and by value, and cuts long values for the screen.

What a recipe or a client brought in as a secret is told to `hide`; from then on its text is masked wherever it stands.
The texts belong to the process, not to one run: a secret of one session must not leave through another one either.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import islice, pairwise
from typing import Any, Final

from agentnb.board.values import ATOMS, FrozenDict, FrozenList, FrozenRecord, FrozenSet, thaw


class Masked(str):
    """What stands in place of a secret that did not leave; a reopened run asks for it before it goes on."""

    __slots__ = ()


MASK: Final = Masked("********")
SHORTEST: Final = 4  # a shorter text would be found everywhere
_HIDDEN: set[str] = set()
# Whole words of a key's name: `api_key`, `x-auth-token`, `apiKey`; `tokens_in` and `keyboard` stay visible.
_WORDS: Final = frozenset(
    {
        "password",
        "passwd",
        "passphrase",
        "secret",
        "secrets",
        "token",
        "authorization",
        "apikey",
        "credential",
        "credentials",
    }
)
_PAIRS: Final = frozenset({("api", "key"), ("access", "key"), ("private", "key"), ("secret", "key"), ("auth", "key")})
_SPLIT: Final = re.compile(r"[^A-Za-z0-9]+|(?<=[a-z0-9])(?=[A-Z])")


def is_secret(key: object) -> bool:
    """Say whether a key's name is that of a secret.

    Example:
        >>> is_secret("api_key"), is_secret("OpenAI-Api-Key"), is_secret("tokens_in")
        (True, True, False)
    """
    return isinstance(key, str) and _names_secret(key)


@lru_cache(maxsize=4096)
def _names_secret(key: str) -> bool:
    words = [word.lower() for word in _SPLIT.split(key) if word]
    return not _WORDS.isdisjoint(words) or not _PAIRS.isdisjoint(pairwise(words))


def hide(*texts: str | None) -> None:
    """Mask these texts wherever they turn up from now on; those of fewer than 4 characters, and None, are not kept."""
    _HIDDEN.update(text for text in texts if text and len(text) >= SHORTEST)


def hide_found(value: Any, key: object = None) -> None:
    """Hide the texts that stand under a secret's name in a frozen value, at any depth.

    A text of letters alone may be any word, so it is masked where it stands under its name and nowhere else.
    """
    if key is not None and is_secret(key):
        _hide_texts(value)
    elif isinstance(value, FrozenRecord):
        hide_found(value.parts)
    elif isinstance(value, dict):
        for name, item in value.items():
            hide_found(item, name)
    elif isinstance(value, list | tuple | FrozenList) and not getattr(value, "flat", False):
        for item in value:
            hide_found(item)


def _hide_texts(value: Any) -> None:
    if isinstance(value, str):
        if not value.isalpha():
            hide(value)
    elif isinstance(value, FrozenRecord):
        _hide_texts(value.parts)
    elif isinstance(value, dict):
        for item in value.values():
            _hide_texts(item)
    elif isinstance(value, list | tuple | FrozenList):
        for item in value:
            _hide_texts(item)


def hides() -> bool:
    """Say whether any text is to be masked by its value."""
    return bool(_HIDDEN)


def how_many() -> int:
    """Return how many texts are masked by their value: where it is another number, what was masked before is old."""
    return len(_HIDDEN)


def settled(text: str) -> int:
    """Return how many characters of a text that still grows may be shown: nothing to come makes them part of a secret.

    Example:
        >>> hide("s3cr3t-4711"); settled("the key is s3cr3")
        11
    """
    end = len(text)
    for secret in _HIDDEN:
        begins = (size for size in range(min(len(secret) - 1, len(text)), 0, -1) if text.endswith(secret[:size]))
        end = min(end, len(text) - next(begins, 0))
    while True:  # no secret may be cut in two by the end
        around = ((max(end - len(secret) + 1, 0), end + len(secret) - 1, secret) for secret in _HIDDEN)
        cut = [at for first, last, secret in around if (at := text.find(secret, first, last)) >= 0]
        if not cut:
            return end
        end = min(cut)


def hidden(text: str) -> str:
    """Return a text without the secrets in it; a text that is one secret as a whole becomes the mask itself.

    Example:
        >>> hide("s3cr3t-4711"); hidden("Bearer s3cr3t-4711")
        'Bearer ********'
    """
    for secret in sorted(_HIDDEN, key=len, reverse=True) if _HIDDEN else ():
        if secret in text:
            text = MASK if text == secret else text.replace(secret, MASK)
    return text


def masked(value: Any, key: object = None) -> Any:
    """Return a value as it may leave: what stands under a secret's name, or is a secret, is masked at any depth.

    Mappings and objects come back as dicts, lists as lists; what holds no other values comes back as it is.
    """
    if key is not None and is_secret(key):
        return None if value is None else MASK
    if isinstance(value, str):
        return hidden(value) if _HIDDEN else value
    if value.__class__ in ATOMS:
        return _bytes(value) if _HIDDEN and isinstance(value, bytes) else value
    if isinstance(value, FrozenRecord):
        return {name: masked(item, name) for name, item in value.parts.items()}
    if isinstance(value, dict):
        return {masked(name): masked(item, name) for name, item in value.items()}
    if isinstance(value, list | FrozenList):
        return [masked(item) for item in value]
    if isinstance(value, tuple):
        parts = [masked(item) for item in value]
        return type(value)._make(parts) if hasattr(value, "_make") else tuple(parts)
    if isinstance(value, set | frozenset) and _HIDDEN:
        return type(value)(masked(item) for item in value)
    return value


def _bytes(value: bytes) -> bytes:
    for secret in _HIDDEN:
        value = value.replace(secret.encode(), MASK.encode())
    return value


def shown(value: Any, key: object = None) -> Any:
    """Return a reader's own copy of a frozen value as it may leave, with its secrets masked.

    It is what it was written as; dataclasses and pydantic objects are the dict of their fields, at any depth.
    """
    if key is not None and is_secret(key):
        return None if value is None else MASK
    cls = value.__class__
    if cls is FrozenDict:
        return {masked(name): shown(item, name) for name, item in value.items()}
    if cls is FrozenList:
        return [shown(item) for item in value]
    if cls is FrozenRecord:
        return _shown_fields(value)
    if cls is tuple:
        return tuple(shown(item) for item in value)
    return masked(set(value) if cls is FrozenSet else thaw(value))


def _shown_fields(value: FrozenRecord) -> Any:
    from agentnb.board.revived import fields_of  # here, because it imports this module

    found = fields_of(value)
    if found is not None:
        return {name: shown(item, name) for name, item in found.items()}
    copied = thaw(value)
    for name, item in value.parts.items():
        object.__setattr__(copied, name, shown(item, name))
    return copied


def short(value: Any, key: object = None, width: int = 60) -> str:
    """Return one line of text for a value, masked and cut to `width`."""
    text = hidden(repr(masked(_head(value), key)))
    return text if len(text) <= width else text[: width - 1] + "…"


class _More:
    def __repr__(self) -> str:
        return "…"


_MORE: Final = _More()


def _head(value: Any) -> Any:
    """Cut what would not be seen anyway, so that a value of any size costs the same to show."""
    if isinstance(value, str):
        return hidden(value[:2000])[:200]
    if isinstance(value, bytes):
        return value[:200]
    if isinstance(value, list | FrozenList):
        return [*map(_head, value[:20]), *([_MORE] if len(value) > 20 else [])]
    if isinstance(value, FrozenRecord):
        return value
    if isinstance(value, dict):
        return {key: _head(item) for key, item in islice(value.items(), 20)} | (
            {_MORE: _MORE} if len(value) > 20 else {}
        )
    return value


def printable(error: BaseException | None) -> BaseException | None:
    """Return an error that may be the cause of another and so is printed: None where it would tell a secret."""
    here = error
    while here is not None:
        if hidden(f"{here}{here!r}") != f"{here}{here!r}":
            return None
        here = here.__cause__ or here.__context__
    return error
