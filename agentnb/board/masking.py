"""Masking of board values for output, by key name and by value, and detection of the secrets in them.

Every walk is bounded: a value that contains itself is shown as "…", and a part that occurs several times is walked
once.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from contextlib import suppress
from enum import Enum
from fractions import Fraction
from operator import eq
from pathlib import PurePath
from typing import Any, Final
from uuid import UUID

from agentnb.board import external_types
from agentnb.board.attributes import read_attributes
from agentnb.board.values import (
    ATOMS,
    FrozenArray,
    FrozenDict,
    FrozenList,
    FrozenRecord,
    FrozenSet,
    Opaque,
    freeze,
    is_named_tuple,
    rebuild_tuple,
    thaw,
)
from agentnb.bounds import DEPTH_LIMIT
from agentnb.secrets import (
    MASK,
    Masked,
    Secrets,
    get_owner,
    has_known_secrets,
    hide,
    is_secret,
    iter_secrets,
    mask_bytes,
    mask_text,
)
from agentnb.text import WIDE, call, safe_repr

INSIDE_ITSELF: Final = "…"


def register_secrets(value: Any, key: object = None, owner: Secrets | None = None) -> None:
    """Register the strings and bytes under names of secrets in a frozen value as secrets, at any depth.

    Includes attributes of objects on the board by reference, and the secrets that the form of a string shows. Numbers
    and truth values are masked under such a name only.

    Args:
        owner: the secrets of the run that has the value; default: of the one for which texts are masked now, or of
            the process.
    """
    owner = owner if owner is not None else get_owner()
    seen, waiting = set[tuple[int, bool]](), [(value, key is not None and is_secret(key, value))]
    while waiting:
        part, secret = waiting.pop()
        if type(part) is Opaque:
            part = part.value
            waiting += ((item, True) for name, item in _list_attributes(part) if secret or is_secret(name, item))
        kind = type(part)
        if secret and issubclass(kind, Enum):
            part = part._value_
            kind = type(part)
        if secret and external_types.is_scalar(part):
            part = part.item()
            kind = type(part)
        if issubclass(kind, str):
            hide(*([part] if secret else iter_secrets(str.__str__(part))), owner=owner)
        elif issubclass(kind, _HIDDEN):
            if secret:
                hide(_to_text(part, kind), owner=owner)
        elif kind not in ATOMS and (id(part), secret) not in seen:
            seen.add((id(part), secret))
            for name, item in _split_parts(part, kind, secret):
                waiting.append((item, secret or is_secret(name, item)))


_HIDDEN: Final = (bytes, bytearray, UUID, PurePath)


def _to_text(part: Any, kind: type) -> str | bytes:
    """Return a secret that is not text as text or bytes, without running code of its class."""
    if issubclass(kind, bytes | bytearray):
        return bytes(memoryview(part))
    return UUID.__str__(part) if issubclass(kind, UUID) else PurePath.__str__(part)


def _split_parts(value: Any, kind: type, secret: bool) -> Iterable[tuple[Any, Any]]:
    """Return the parts of a value with their names (None in a list), without running code of the value.

    Args:
        secret: the value has the name of a secret.
    """
    if kind is FrozenRecord:
        return dict.items(value.parts)
    if issubclass(kind, dict):
        return dict.items(value)
    if kind is FrozenList:
        is_plain = value.flat and not secret and str not in {*map(type, value.items)}
        return () if is_plain else ((None, item) for item in value)
    if kind is FrozenArray or external_types.is_array(value):
        cells = value.array if kind is FrozenArray else value
        if secret:
            return ((None, item) for item in external_types.list_cells(cells))
        return external_types.iter_secret_columns(cells)
    if issubclass(kind, tuple) and is_named_tuple(kind):
        return zip(kind._fields, tuple.__iter__(value), strict=False)  # type: ignore[attr-defined]  # it is one
    for base in (list, tuple, set, frozenset, deque):
        if issubclass(kind, base):
            return ((None, item) for item in base.__iter__(value))
    return ()


def _list_attributes(value: Any) -> list[tuple[Any, Any]]:
    """Return the names and values of an object's attributes, without running code of the object."""
    attributes = call(object.__getattribute__, value, "__dict__")
    return list(dict.items(attributes)) if type(attributes) is dict else []


def find_secret_word(path: Iterable[Any]) -> str | None:
    """Return the first key of a path that is the name of a secret, or None: the `key` argument of `masked`."""
    return next((str(word) for word in path if is_secret(word)), None)


def mask_atoms(values: Any, types: AbstractSet[type]) -> Any:
    """Return a column for output: strings and bytes that are or contain a secret are masked.

    Args:
        values: atoms.
        types: the types of all of them.
    """
    kinds = types & {str, bytes, UUID, int, Fraction}
    if kinds <= {int}:
        integers = (
            values if types == {int} else [value for value in values if type(value) is int] if int in types else ()
        )
        with suppress(OverflowError):  # the fastest way to see that none is large
            array("q", integers)
            return values
    return [mask_value(value) if type(value) in kinds else value for value in values]


def mask_value(value: Any, key: object = None) -> Any:
    """Return a value for output: secrets, by name or by value, are masked at any depth.

    Mappings and frozen objects become dicts, as do dataclasses and pydantic objects that hold a secret, and lists stay
    lists; values without parts are unchanged.
    """
    if key is not None and value is not None and is_secret(key, value):
        return MASK
    kind = type(value)
    if kind is str:
        return mask_text(value)
    return _mask_atom(value, kind) if kind in ATOMS else _Masking().mask_value(value, 0)


def _mask_atom(value: Any, kind: type) -> Any:
    if kind is bytes:
        return mask_bytes(value)
    if kind is UUID:
        return _mask_by_text(value)
    if not _is_wide(value):
        return value
    return WideInteger(value) if kind is int else WideFraction(value)


def _is_wide(value: Any) -> bool:
    """Return True for an int, or a fraction of ints, that Python may refuse to write in decimal."""
    kind = type(value)
    if kind is int:
        return not -WIDE < value < WIDE
    return kind is Fraction and not (-WIDE < value.numerator < WIDE and value.denominator < WIDE)


class WideInteger(int):
    """An integer for display that is so large that Python may refuse to write its digits: it is hexadecimal."""

    def __repr__(self) -> str:
        return hex(self)

    __str__ = __repr__


class WideFraction(Fraction):
    """A fraction for display whose parts are so large that Python may refuse to write their digits."""

    def __repr__(self) -> str:
        return f"Fraction({hex(self.numerator)}, {hex(self.denominator)})"

    def __str__(self) -> str:
        return f"{hex(self.numerator)}/{hex(self.denominator)}"


def _mask_by_text(value: Any) -> Any:
    """Return the mask if a value's text contains a secret, else the value."""
    return MASK if has_known_secrets() and MASK in safe_repr(value, 10_000) else value


class _Masking:
    """One walk over a value; each part is masked once, even if it occurs several times."""

    def __init__(self) -> None:
        self.done: dict[int, tuple[Any, Any]] = {}  # the parts are referenced as well, so that no id is reused

    def mask_value(self, value: Any, depth: int, key: object = None) -> Any:
        if key is not None and value is not None and is_secret(key, value):
            return MASK
        kind = type(value)
        if kind is str:
            return mask_text(value)
        if kind in ATOMS:
            return _mask_atom(value, kind)
        if depth > DEPTH_LIMIT:
            return INSIDE_ITSELF
        masked = self.done.get(id(value))
        if masked is None:
            self.done[id(value)] = (value, INSIDE_ITSELF)
            masked = self.done[id(value)] = (value, self._mask_parts(value, kind, depth + 1))
        return masked[1]

    def _mask_parts(self, value: Any, kind: type, depth: int) -> Any:
        if kind is FrozenRecord:
            value, kind = value.parts, FrozenDict
        if issubclass(kind, dict):
            return {
                self.mask_value(name, depth): self.mask_value(item, depth, name) for name, item in dict.items(value)
            }
        if kind is FrozenList:
            return [self.mask_value(item, depth) for item in value]
        if issubclass(kind, list | deque):
            base: Any = list if issubclass(kind, list) else deque
            return [self.mask_value(item, depth) for item in base.__iter__(value)]
        if issubclass(kind, tuple):
            names = kind._fields if is_named_tuple(kind) else ()  # type: ignore[attr-defined]  # checked by is_named_tuple
            named = (
                zip(names, tuple.__iter__(value), strict=True)
                if names
                else ((None, item) for item in tuple.__iter__(value))
            )
            parts = [self.mask_value(item, depth, name) for name, item in named]
            return rebuild_tuple(kind, parts)
        if issubclass(kind, set | frozenset):
            return self._mask_set(value, kind, depth)
        if issubclass(kind, Enum | PurePath):
            return _mask_by_text(value)
        if issubclass(kind, str):
            return value if issubclass(kind, Masked) else mask_text(str.__str__(value))
        if issubclass(kind, int | float):
            return float.__float__(value) if issubclass(kind, float) else _mask_atom(int.__int__(value), int)
        if external_types.is_scalar(value):
            return value
        if kind is FrozenArray or external_types.is_array(value):
            array = value.array if kind is FrozenArray else value
            return external_types.mask_array(array, lambda item, name=None: self.mask_value(item, depth, name))
        return self._mask_attributes(value, depth)

    def _mask_attributes(self, value: Any, depth: int) -> Any:
        """Return the attributes of a dataclass or pydantic object that holds a secret, masked; else the value."""
        attributes = read_attributes(value) or {}
        masked = {name: self.mask_value(item, depth, name) for name, item in attributes.items()}
        return value if call(eq, masked, attributes) is True else masked

    def _mask_set(self, value: Any, kind: type, depth: int) -> Any:
        base: type[set[Any] | frozenset[Any]] = set if issubclass(kind, set) else frozenset
        items = list(base.__iter__(value))
        parts = [self.mask_value(item, depth) for item in items]
        if all(part is item for part, item in zip(parts, items, strict=True)):
            return value
        return base(part if type(part).__hash__ is not None else item for part, item in zip(parts, items, strict=True))


def to_display(value: Any, key: object = None) -> Any:
    """Return a copy of a frozen value for display, with its secrets masked.

    It has the type it was written with; dataclasses and pydantic objects become dicts of their fields, at any depth.
    """
    if key is not None and value is not None and is_secret(key, value):
        return MASK
    cls = type(value)
    if cls is FrozenDict:
        return {mask_value(name): to_display(item, name) for name, item in value.items()}
    if cls is FrozenList:
        return [to_display(item) for item in value]
    if cls is FrozenRecord:
        return _display_fields(value)
    if cls is tuple:
        return tuple(to_display(item) for item in value)
    if cls is FrozenArray:
        return external_types.mask_array(thaw(value), _display_cell)
    if cls is Opaque:  # as in a reopened run: the object itself could change, or its repr could fail
        return _display_object(value)
    return mask_value(set(value) if cls is FrozenSet else thaw(value))


def _display_cell(value: Any, key: object = None) -> Any:
    return mask_value(value, key) if type(value) in ATOMS else to_display(freeze(value), key)


def _display_object(value: Opaque) -> Any:
    from agentnb.board.codec import decode, encode  # here to avoid an import cycle

    return decode(encode(value, lenient=True))


def _display_fields(value: FrozenRecord) -> Any:
    from agentnb.board.decoders import get_fields  # here to avoid an import cycle

    fields = get_fields(value)
    if fields is not None:
        return {name: to_display(item, name) for name, item in fields.items()}
    copied = thaw(value)
    for name, item in value.parts.items():
        object.__setattr__(copied, name, to_display(item, name))
    return copied
