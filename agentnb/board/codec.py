"""codec: board values to JSON and back. Plain JSON stays as it is, all else is a mapping with a tag under "$".

No tag imports anything and no value's own code runs while it is read: a class is looked up among those that are
imported already, and must be what the tag says (a dataclass, an Enum, ...). What is not known opens as a Record, and a
Record becomes the same JSON again. What a secret's name or value hides is masked on the way out.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import lru_cache
from pathlib import PurePath
from types import NoneType
from typing import Any, Final, NamedTuple
from uuid import UUID

from agentnb.board import foreign
from agentnb.board.revived import DECODERS, Record, name_of, zone_of
from agentnb.board.secrets import MASK, Masked, hidden, hides, is_secret, masked, short
from agentnb.board.values import ABSENT, Absent, FrozenArray, FrozenDict, FrozenList, FrozenRecord, FrozenSet, Opaque
from agentnb.errors import Problem, StoreError

TAG: Final = "$"
_AS_THEY_ARE: Final = frozenset({str, int, bool, NoneType})
Json = Any


class Registered(NamedTuple):
    """A codec that a user has registered for a class."""

    type: type
    name: str
    to: Callable[[Any], Any]
    back: Callable[[Any], Any]


_BY_TYPE: dict[type, Registered] = {}
_BY_NAME: dict[str, Registered] = {}


def register(cls: type, to: Callable[[Any], Any], back: Callable[[Any], Any], name: str = "") -> None:
    """Say how objects of a class are stored: `to` turns one into a value that can be, `back` makes one of that again.

    Objects of its subclasses are stored so too, and come back as `back` makes them.

    Args:
        name: what the class is called in a file, if not by its module and name.

    Example:
        >>> class Point:
        ...     def __init__(self, x, y): self.x, self.y = x, y
        >>> register(Point, lambda point: [point.x, point.y], lambda pair: Point(*pair), name="point")
        >>> encode(Point(1, 2))
        {'$': 'registered', 'type': 'point', 'v': [1, 2]}
    """
    row = Registered(cls, name or name_of(cls), to, back)
    _BY_TYPE[cls] = _BY_NAME[row.name] = row


def encode(value: Any, key: object = None, *, lenient: bool = False) -> Json:
    """Return a value, frozen or plain, as JSON with type tags; masked by key and by value.

    Args:
        key: the name that the value stands under.
        lenient: write what no codec takes as its short text, marked as opaque.

    Raises:
        StoreError: L401, no codec takes this value.
    """
    if key is not None and is_secret(key) and value is not None and value is not ABSENT:
        return {TAG: "masked"}
    cls = value.__class__
    if cls is str:
        text = hidden(value)
        return text if text.__class__ is str else {TAG: "masked"}
    if cls is int or cls is bool or cls is NoneType:
        return value
    if cls is float:
        return value if math.isfinite(value) else {TAG: "float", "v": repr(value)}
    if cls is dict or cls is FrozenDict:
        return _mapping(value, lenient)
    if cls is list or cls is FrozenList:
        return [encode(item, lenient=lenient) for item in value]
    found = _registered(cls) or (cls is Opaque and _registered(value.value.__class__))
    if found:
        plain = found.to(value.value if cls is Opaque else value)
        return {TAG: "registered", "type": found.name, "v": encode(plain, lenient=lenient)}
    return _ENCODERS.get(cls, _other)(value, key, lenient)


def decode(document: Json) -> Any:
    """Return the value that a JSON document stands for, as a plain value; an unknown tag opens as a Record."""
    if document.__class__ is list:
        return [decode(item) for item in document]
    if document.__class__ is not dict:
        return document
    tag = document.get(TAG)
    if tag is None:
        return {key: decode(item) for key, item in document.items()}
    if tag == "registered" and document.get("type") in _BY_NAME:
        return _BY_NAME[document["type"]].back(decode(document["v"]))
    reader = DECODERS.get(tag) if isinstance(tag, str) else None
    if reader is not None:
        try:
            return reader(document, decode)
        except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError):
            pass  # a damaged value, or one of a newer version, is shown as it stands
    return Record(str(tag), document)


def _registered(cls: type) -> Registered | None:
    if not _BY_TYPE:
        return None
    return next((_BY_TYPE[base] for base in cls.__mro__ if base in _BY_TYPE), None)


@lru_cache(maxsize=4096)
def _plain(names: tuple[Any, ...]) -> bool:
    """Say whether these names of a mapping are kept as they are, and what stands under them too."""
    return TAG not in names and all(name.__class__ is str and not is_secret(name) for name in names)


def _mapping(value: Mapping[Any, Any], lenient: bool) -> Json:
    if not hides() and _AS_THEY_ARE.issuperset(map(type, value.values())) and _plain(tuple(value)):
        return {**value}  # nearly always: what a step tells
    if TAG not in value and all(name.__class__ is str for name in value):
        pairs = {hidden(name): encode(item, name, lenient=lenient) for name, item in value.items()}
        if len(pairs) == len(value):
            return pairs
    return {TAG: "dict", "v": [[encode(name, lenient=lenient), encode(item, name, lenient=lenient)]
                               for name, item in value.items()]}  # fmt: skip


def _named(value: Mapping[str, Any], lenient: bool) -> Json:
    return {name: encode(item, name, lenient=lenient) for name, item in value.items()}


def _sorted(tag: str) -> Callable[[Any, object, bool], Json]:
    """Return the encoder of a set: in the order of the items' JSON, so that equal sets are equal texts."""

    def encode_set(value: Any, _: object, lenient: bool) -> Json:
        items = [encode(item, lenient=lenient) for item in value]
        return {TAG: tag, "v": sorted(items, key=str)}

    return encode_set


def _moment(value: datetime | time, _: object = None, __: bool = False) -> Json:
    if value.__class__ is datetime and value.tzinfo is UTC and not value.fold:  # nearly always: each event has one
        return {TAG: "datetime", "v": value.isoformat()}
    if foreign.is_scalar_of_pandas(value):
        return {TAG: "pandas", **foreign.dump_scalar(value)}
    document: dict[str, Any] = {TAG: "datetime" if isinstance(value, datetime) else "time", "v": value.isoformat()}
    zone = zone_of(value.tzinfo)
    if zone:
        document["zone"] = zone
    if value.fold:
        document["fold"] = 1
    return document


def _text(tag: str, to: Callable[[Any], Any] = str) -> Callable[[Any, object, bool], Json]:
    return lambda value, _key, _lenient: {TAG: tag, "v": to(value)}


def _record(value: FrozenRecord, _: object, lenient: bool) -> Json:
    return _fields(value.template, value.parts, lenient)


def _fields(template: Any, parts: Mapping[str, Any], lenient: bool) -> Json:
    if template.__class__ is Record:
        return parts["document"] if isinstance(parts["document"], dict) else masked(parts["document"])
    document = {"type": name_of(type(template)), "v": _named(parts, lenient)}
    if is_dataclass(template):
        return {TAG: "dataclass", **document}
    extra = getattr(template, "__pydantic_extra__", None)
    chosen = getattr(template, "__pydantic_fields_set__", ())
    model = {TAG: "model", **document, "set": sorted(chosen)}
    return model | {"extra": _named(extra, lenient)} if extra else model


def _other(value: Any, key: object, lenient: bool) -> Json:
    """Encode what has a class of its own, by what it is."""
    cls = type(value)
    if isinstance(value, Enum):
        return {TAG: "enum", "type": name_of(cls), "name": value.name, "v": encode(value.value, key, lenient=lenient)}
    if foreign.is_scalar(value) or foreign.is_array(value):
        return _array(value, key, lenient)
    if foreign.is_scalar_of_pandas(value):
        return {TAG: "pandas", **foreign.dump_scalar(value)}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        parts = dict(zip(value._fields, value, strict=True))
        return {TAG: "namedtuple", "type": name_of(cls), "v": _named(parts, lenient)}
    for base, encoder in _BASES:
        if isinstance(value, base):
            return encoder(value, key, lenient)
    names = foreign.model_fields(value)
    if is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in fields(value) if hasattr(value, field.name)]
    if names is not None:
        return _fields(value, {name: getattr(value, name) for name in names}, lenient)
    return _opaque(value, key, lenient)


def _array(value: Any, key: object, lenient: bool) -> Json:
    document = foreign.dump_array(value, lambda item, name=None: encode(item, name, lenient=lenient))
    return _opaque(value, key, lenient) if document is None else {TAG: "array", **document}


def _based(plain: Callable[[Any], Any]) -> Callable[[Any, object, bool], Json]:
    """Return the encoder of a subclass of a plain type: it keeps its value and comes back as the plain type."""
    return lambda value, key, lenient: encode(plain(value), key, lenient=lenient)


def _opaque(value: Any, key: object, lenient: bool) -> Json:
    if isinstance(value, Opaque):
        return encode(value.value, key, lenient=lenient)
    name = name_of(type(value))
    if lenient:
        return {TAG: "opaque", "type": name, "v": short(value, key)}
    raise StoreError(
        Problem(
            "L401",
            f"a {type(value).__qualname__} cannot be stored",
            "a value" if key is None else f"board key {key!r}",
            f"no codec takes objects of {name}, and agentnb never pickles",
            f"register one: agentnb.board.codec.register({type(value).__qualname__}, to, back), or write a plain value",
        )
    )


def _base64(value: bytes) -> str:
    return base64.b64encode(masked(value)).decode()


_ENCODERS: dict[type, Callable[[Any, object, bool], Json]] = {
    Masked: lambda *_: {TAG: "masked"},
    Absent: lambda *_: {TAG: "absent"},
    tuple: lambda value, _, lenient: {TAG: "tuple", "v": [encode(item, lenient=lenient) for item in value]},
    set: _sorted("set"),
    FrozenSet: _sorted("set"),
    frozenset: _sorted("frozenset"),
    bytes: _text("bytes", _base64),
    complex: _text("complex", repr),
    Decimal: _text("decimal"),
    Fraction: _text("fraction"),
    UUID: _text("uuid"),
    range: _text("range", lambda value: [value.start, value.stop, value.step]),
    datetime: _moment,
    time: _moment,
    date: _text("date", date.isoformat),
    timedelta: _text("timedelta", lambda value: [value.days, value.seconds, value.microseconds]),
    timezone: _text("timezone", lambda value: [value.utcoffset(None) / timedelta(microseconds=1), value.tzname(None)]),
    FrozenRecord: _record,
    FrozenArray: lambda value, key, lenient: _array(value.held, key, lenient),
    Record: lambda value, *_: value.document,
    Opaque: _opaque,
}
# What an object of another class is at heart; the first that fits.
_BASES: Final[tuple[tuple[type, Callable[[Any, object, bool], Json]], ...]] = (
    (PurePath, lambda value, *_: {TAG: "path", "flavour": type(value).__name__, "v": hidden(str(value))}),
    (datetime, _moment),
    (date, _ENCODERS[date]),
    (time, _moment),
    (timedelta, _ENCODERS[timedelta]),
    (str, _based(str.__str__)),
    (int, _based(int.__int__)),
    (float, _based(float.__float__)),
    (bytes, _based(lambda value: bytes(memoryview(value)))),
    (tuple, _based(lambda value: tuple(tuple.__iter__(value)))),
    (frozenset, _based(frozenset)),
    (set, _based(set)),
    (list, _based(lambda value: list(list.__iter__(value)))),
    (Mapping, lambda value, _, lenient: _mapping(dict(value), lenient)),
)

__all__ = ["MASK", "TAG", "Json", "Record", "decode", "encode", "register"]
