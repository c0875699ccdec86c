"""Equality of recorded and replayed values, including values whose equality cannot be determined.

A mask replaces an unknown value, and an object held on the board by reference is a different object in each run. Both
cases are distinguished from a difference, because it is unknown whether the values are equal.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple

from agentnb.board import external_types
from agentnb.board.codec import encode
from agentnb.board.paths import Path
from agentnb.board.values import ABSENT, FROZEN, FrozenArray, FrozenList, FrozenRecord, Opaque
from agentnb.errors import StoreError
from agentnb.secrets import Masked, is_same_text

_ADDRESS: Final = re.compile(r"\b0x[0-9a-fA-F]{4,}\b")


class ValueDifference(NamedTuple):
    """A place inside a value where two values differ; `sure` is False if it is unknown whether they do."""

    path: Path
    recorded: Any
    replayed: Any
    sure: bool = True


def iter_innermost_differences(recorded: Any, replayed: Any, path: Path = ()) -> Iterator[ValueDifference]:
    """Yield the innermost places where two values differ, in order; ABSENT stands for a missing part."""
    one, other = recorded, replayed
    if one is other:
        return
    if one is ABSENT or other is ABSENT:
        yield ValueDifference(path, one, other)
        return
    if isinstance(one, Masked) or isinstance(other, Masked):
        if one != other:
            yield ValueDifference(path, one, other, sure=False)
        return
    if isinstance(one, FrozenRecord) and isinstance(other, FrozenRecord) and type(one.template) is type(other.template):
        one, other = one.parts, other.parts
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        for key in {**one, **other}:
            yield from iter_innermost_differences(one.get(key, ABSENT), other.get(key, ABSENT), (*path, key))
    elif (kind := _get_sequence_type(one)) is not None and kind is _get_sequence_type(other):
        for at in range(max(len(one), len(other))):
            then, now = (side[at] if at < len(side) else ABSENT for side in (one, other))
            yield from iter_innermost_differences(then, now, (*path, at))
    elif not _are_parts_equal(one, other) and not _are_equal_as_json(one, other):
        yield ValueDifference(path, recorded, replayed, sure=not _is_by_reference(one, other))


def are_messages_equal(recorded: str, replayed: str) -> bool:
    """Return True if two error messages are equal, apart from memory addresses."""
    one, other = (_ADDRESS.sub("0x", text) for text in (recorded, replayed))
    return is_same_text(one, other)


def _get_sequence_type(value: Any) -> type | None:
    if isinstance(value, list | FrozenList):
        return list
    return tuple if isinstance(value, tuple) else None


def _are_parts_equal(one: Any, other: Any) -> bool:
    if isinstance(one, str) and isinstance(other, str):
        return is_same_text(one, other)
    if isinstance(one, FrozenArray) and isinstance(other, FrozenArray):
        return external_types.are_same_arrays(one.array, other.array)
    if isinstance(one, Opaque) and isinstance(other, Opaque):
        return _are_equal(one.value, other.value)
    if external_types.is_array(one) and external_types.is_array(other):
        return external_types.are_same_arrays(one, other)
    if isinstance(one, bool) is not isinstance(other, bool):
        return False
    related = isinstance(one, type(other)) or isinstance(other, type(one))
    return related and _are_equal(one, other)


def _are_equal(one: Any, other: Any) -> bool:
    try:
        return bool(one == other) or bool(one != one and other != other)  # noqa: PLR0124  (both are NaN)
    except Exception:  # noqa: BLE001  (what cannot be compared is not known to be equal)
        return False


def _is_by_reference(one: Any, other: Any) -> bool:
    """Return True if these are two objects of one class that can be compared only by identity."""
    if isinstance(one, Opaque) and isinstance(other, Opaque):
        return type(one.value) is type(other.value)
    own: Any = type(one).__eq__
    return type(one) is type(other) and type(one) not in FROZEN and own is object.__eq__


def _are_equal_as_json(one: Any, other: Any) -> bool:
    """Return True if two objects are stored as the same JSON, even if the class of one is unknown."""
    if not any(isinstance(each, FrozenRecord | Opaque) for each in (one, other)):
        return False
    with suppress(StoreError):
        return bool(encode(one) == encode(other))
    return False


__all__ = ["ValueDifference", "are_messages_equal", "iter_innermost_differences"]
