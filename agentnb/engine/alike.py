"""alike: where two values differ, a recorded one and the one that a replay came to; and what cannot be said of it.

A mask stands for a value that nobody knows here, and an object that lies on the board by reference is another one in
each run. Those are told apart from a difference: of them it cannot be said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple

from agentnb.board import foreign
from agentnb.board.codec import Record, encode
from agentnb.board.places import Path
from agentnb.board.secrets import MASK, Masked, hidden
from agentnb.board.values import ABSENT, ATOMS, FROZEN, FrozenArray, FrozenList, FrozenRecord, Opaque
from agentnb.errors import StoreError

_ADDRESS: Final = re.compile(r"\b0x[0-9a-fA-F]{4,}\b")


class Unlike(NamedTuple):
    """A place inside a value where two differ; not `sure` where it cannot be said whether they do."""

    path: Path
    recorded: Any
    replayed: Any
    sure: bool = True


def unlike(recorded: Any, replayed: Any, path: Path = ()) -> Iterator[Unlike]:
    """Yield the innermost places where two values differ, in their order; ABSENT is what is not there."""
    one, other = recorded, replayed
    if one is other:
        return
    if one is ABSENT or other is ABSENT:
        yield Unlike(path, one, other)
        return
    if isinstance(one, Masked) or isinstance(other, Masked):
        if one != other:
            yield Unlike(path, one, other, sure=False)
        return
    if isinstance(one, FrozenRecord) and isinstance(other, FrozenRecord) and type(one.template) is type(other.template):
        one, other = one.parts, other.parts
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        for key in {**one, **other}:
            yield from unlike(one.get(key, ABSENT), other.get(key, ABSENT), (*path, key))
    elif (kind := _rows(one)) is not None and kind is _rows(other):
        for at in range(max(len(one), len(other))):
            then, now = (side[at] if at < len(side) else ABSENT for side in (one, other))
            yield from unlike(then, now, (*path, at))
    elif not _same(one, other) and not _kept_alike(one, other):
        yield Unlike(path, recorded, replayed, sure=not _by_reference(one, other))


def says_the_same(recorded: str, replayed: str) -> bool:
    """Say whether two texts of failures say the same: where an object lies in memory is no part of it."""
    one, other = (_ADDRESS.sub("0x", text) for text in (recorded, replayed))
    return _same_text(one, other)


def is_known(value: Any) -> bool:
    """Say whether all of a frozen value is known here: no mask stands in it, and no object of an unknown class."""
    if isinstance(value, Masked):
        return False
    if value.__class__ in ATOMS:
        return True
    if isinstance(value, FrozenRecord):
        return value.template.__class__ is not Record and is_known(value.parts)
    if isinstance(value, dict):
        return all(map(is_known, value.values()))
    return not isinstance(value, FrozenList | tuple) or getattr(value, "flat", False) or all(map(is_known, value))


def _rows(value: Any) -> type | None:
    if isinstance(value, list | FrozenList):
        return list
    return tuple if isinstance(value, tuple) else None


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, str) and isinstance(other, str):
        return _same_text(one, other)
    if isinstance(one, FrozenArray) and isinstance(other, FrozenArray):
        return foreign.same_array(one.held, other.held)
    if isinstance(one, Opaque) and isinstance(other, Opaque):
        return _equal(one.value, other.value)
    if foreign.is_array(one) and foreign.is_array(other):
        return foreign.same_array(one, other)
    if isinstance(one, bool) is not isinstance(other, bool):
        return False
    related = isinstance(one, type(other)) or isinstance(other, type(one))
    return related and _equal(one, other)


def _same_text(one: str, other: str) -> bool:
    """Say whether two texts are equal; one in which a secret is masked equals that with the secret in it."""
    if str.__eq__(one, other) or hidden(one) == other or hidden(other) == one:
        return True
    for masked, plain in ((one, other), (other, one)):
        if MASK in masked and re.fullmatch(".+".join(map(re.escape, masked.split(MASK))), plain, re.DOTALL):
            return True
    return False


def _equal(one: Any, other: Any) -> bool:
    try:
        return bool(one == other) or bool(one != one and other != other)  # noqa: PLR0124  (NaN is what was recorded)
    except Exception:  # noqa: BLE001  (what cannot be compared is not known to be equal)
        return False


def _by_reference(one: Any, other: Any) -> bool:
    """Say whether these are two objects of one class that are known by where they lie alone."""
    if isinstance(one, Opaque) and isinstance(other, Opaque):
        return type(one.value) is type(other.value)
    own: Any = type(one).__eq__
    return type(one) is type(other) and type(one) not in FROZEN and own is object.__eq__


def _kept_alike(one: Any, other: Any) -> bool:
    """Say whether two objects are kept as the same JSON: the class of one may not have been known where it was read."""
    if not any(isinstance(each, FrozenRecord | Opaque) for each in (one, other)):
        return False
    with suppress(StoreError):
        return bool(encode(one) == encode(other))
    return False


__all__ = ["Unlike", "is_known", "says_the_same", "unlike"]
