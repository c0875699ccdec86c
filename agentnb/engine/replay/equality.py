"""Equality of recorded and replayed values, including values whose equality cannot be determined.

A mask replaces an unknown value, and an object held on the board by reference is a different object in each run. Both
cases are distinguished from a difference, because it is unknown whether the values are equal.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from decimal import Decimal
from numbers import Number
from typing import Any, Final, NamedTuple

from agentnb.board import external_types
from agentnb.board.codec import encode
from agentnb.board.paths import Path
from agentnb.board.values import ABSENT, ATOMS, FROZEN, FrozenArray, FrozenList, FrozenRecord, Opaque
from agentnb.errors import StoreError
from agentnb.secrets import MASK, Masked, is_same_text

_NANS: Final[dict[type, Any]] = {}
_ADDRESS: Final = re.compile(r"\b0x[0-9a-fA-F]{4,}\b")


class ValueDifference(NamedTuple):
    """A place inside a value where two values differ; `sure` is False if it is unknown whether they do."""

    path: Path
    recorded: Any
    replayed: Any
    sure: bool = True


def iter_innermost_differences(recorded: Any, replayed: Any, path: Path = ()) -> Iterator[ValueDifference]:
    """Yield the innermost parts in which two values differ, in order; ABSENT means a missing part."""
    left, right = recorded, replayed
    if left is right:
        return
    if left is ABSENT or right is ABSENT:
        yield ValueDifference(path, left, right)
        return
    if isinstance(left, Masked) or isinstance(right, Masked):
        if left != right:
            yield ValueDifference(path, left, right, sure=False)
        return
    if (
        isinstance(left, FrozenRecord)
        and isinstance(right, FrozenRecord)
        and type(left.template) is type(right.template)
    ):
        left, right = left.parts, right.parts
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        left, right = _unify_keys(left), _unify_keys(right)
        for key in {**left, **right}:
            yield from iter_innermost_differences(left.get(key, ABSENT), right.get(key, ABSENT), (*path, key))
    elif (kind := _get_sequence_type(left)) is not None and kind is _get_sequence_type(right):
        for at in range(max(len(left), len(right))):
            recorded_part, replayed_part = (side[at] if at < len(side) else ABSENT for side in (left, right))
            yield from iter_innermost_differences(recorded_part, replayed_part, (*path, at))
    elif not _are_parts_equal(left, right) and not _are_equal_as_json(left, right):
        yield ValueDifference(path, recorded, replayed, sure=not _is_by_reference(left, right))


def are_equal(recorded: Any, replayed: Any) -> bool:
    """Return True if two frozen values are known to be equal and have the same types; a mask is equal to nothing."""
    if recorded is replayed and type(recorded) in ATOMS:
        return True
    return next(iter_innermost_differences(recorded, replayed), None) is None and not _has_mask(recorded)


def _has_mask(value: Any) -> bool:
    if isinstance(value, str):
        return MASK in value
    if isinstance(value, FrozenRecord):
        value = value.parts
    if isinstance(value, Mapping):
        return any(map(_has_mask, value)) or any(map(_has_mask, value.values()))
    return _get_sequence_type(value) is not None and any(map(_has_mask, value))


def _unify_keys(mapping: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """Return a mapping in which equal keys are found, although NaN is not equal to itself."""
    if all(type(key) is str for key in mapping):
        return mapping
    return {_unify_nan(key): value for key, value in mapping.items()}


def _unify_nan(key: Any) -> Any:
    """Return a key, or a member of a set, with one object for all NaN of a type."""
    if isinstance(key, tuple | AbstractSet):
        return (tuple if isinstance(key, tuple) else frozenset)(map(_unify_nan, key))
    is_nan = isinstance(key, Number) and key != key  # noqa: PLR0124  (NaN)
    return _NANS.setdefault(type(key), key) if is_nan else key


def are_messages_equal(recorded: str, replayed: str) -> bool:
    """Return True if two error messages are equal, apart from memory addresses."""
    left, right = (_ADDRESS.sub("0x", text) for text in (recorded, replayed))
    return is_same_text(left, right)


def _get_sequence_type(value: Any) -> type | None:
    if isinstance(value, list | FrozenList):
        return list
    return tuple if isinstance(value, tuple) else None


def _are_parts_equal(left: Any, right: Any) -> bool:
    if isinstance(left, str) and isinstance(right, str):
        return is_same_text(left, right)
    if isinstance(left, FrozenArray) and isinstance(right, FrozenArray):
        return external_types.are_same_arrays(left.array, right.array)
    if isinstance(left, Opaque) and isinstance(right, Opaque):
        return _are_equal(left.value, right.value)
    if external_types.is_array(left) and external_types.is_array(right):
        return external_types.are_same_arrays(left, right)
    if isinstance(left, AbstractSet) and isinstance(right, AbstractSet):
        return bool(_unify_nan(left) == _unify_nan(right))
    if isinstance(left, bool) is not isinstance(right, bool):
        return False
    related = isinstance(left, type(right)) or isinstance(right, type(left))
    return related and _are_equal(left, right)


def _are_equal(left: Any, right: Any) -> bool:
    try:
        return bool(left == right) or bool(left != left and right != right)  # noqa: PLR0124  (both are NaN)
    except Exception:  # noqa: BLE001  (what cannot be compared is not known to be equal)
        # A signaling NaN can be compared only in this way.
        return type(left) is type(right) is Decimal and left.compare_total(right) == 0


def _is_by_reference(left: Any, right: Any) -> bool:
    """Return True if these are two objects of one class that can be compared only by identity."""
    if isinstance(left, Opaque) and isinstance(right, Opaque):
        return type(left.value) is type(right.value)
    own: Any = type(left).__eq__
    return type(left) is type(right) and type(left) not in FROZEN and own is object.__eq__


def _are_equal_as_json(left: Any, right: Any) -> bool:
    """Return True if two objects are stored as the same JSON, even if the class of one is unknown."""
    if not any(isinstance(each, FrozenRecord | Opaque) for each in (left, right)):
        return False
    with suppress(StoreError):
        return bool(encode(left) == encode(right))
    return False


__all__ = ["ValueDifference", "are_equal", "are_messages_equal", "iter_innermost_differences"]
