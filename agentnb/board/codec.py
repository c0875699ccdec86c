"""JSON codec of board values. Plain JSON is unchanged, everything else is a mapping with a tag under "$".

Decoding imports nothing and runs no code of the values: a class is looked up among those already imported, and must
match its tag (a dataclass, an Enum, ...). Unknown values decode to a Record, and a Record encodes to the same JSON
again. Values that are secret by name or value are masked when encoded.
"""

from __future__ import annotations

import base64
import math
import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from dataclasses import is_dataclass
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import lru_cache
from pathlib import PurePath
from types import NoneType
from typing import Any, Final, NamedTuple
from uuid import UUID

from agentnb.board import external_types
from agentnb.board.attributes import read_attributes, split_attributes
from agentnb.board.decoders import COLLECTIONS, DECODERS, FACTORIES, Record, encode_offset, encode_zone, name_of
from agentnb.board.masking import mask_value
from agentnb.board.values import (
    ABSENT,
    ATOMS,
    Absent,
    FrozenArray,
    FrozenDict,
    FrozenList,
    FrozenRecord,
    FrozenSet,
    Opaque,
    thaw,
)
from agentnb.bounds import find_excess
from agentnb.errors import Problem, StoreError, format_error_line, to_printable, with_article
from agentnb.secrets import (
    MASK,
    Masked,
    has_secret,
    is_secret,
    is_url,
    mask_text,
    needs_masking,
)
from agentnb.text import UNREADABLE, WIDE, call, get_class_name, safe_repr

TAG: Final = "$"
MOST_CODECS: Final = 3  # nesting of users' codecs
_NESTED: Final[ContextVar[int]] = ContextVar("codecs", default=0)
_PAIR: Final = re.compile("[\ud800-\udbff][\udc00-\udfff]")
Json = Any


class Registered(NamedTuple):
    """A codec that a user has registered for a class."""

    type: type
    name: str
    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]


_BY_TYPE: dict[type, Registered] = {}
_BY_NAME: dict[str, Registered] = {}


def register(cls: type, to_data: Callable[[Any], Any], from_data: Callable[[Any], Any], name: str = "") -> None:
    """Register a codec for a class: `to_data` converts an object to a storable value, `from_data` converts it back.

    Objects of subclasses are stored in the same way, and are restored by `from_data`.

    Args:
        name: the name of the class in a file; default: its module and name.

    Example:
        >>> class Point:
        ...     def __init__(self, x, y): self.x, self.y = x, y
        >>> register(Point, lambda point: [point.x, point.y], lambda pair: Point(*pair), name="point")
        >>> encode(Point(1, 2))
        {'$': 'registered', 'type': 'point', 'v': [1, 2]}
    """
    row = Registered(cls, name or name_of(cls), to_data, from_data)
    _BY_TYPE[cls] = _BY_NAME[row.name] = row


def encode(value: Any, key: object = None, *, lenient: bool = False) -> Json:
    """Return a value, frozen or plain, as JSON with type tags; masked by key and by value.

    Args:
        key: the name of the value.
        lenient: write values that no codec accepts as short text, marked as opaque.

    Raises:
        StoreError: L401, no codec accepts this value.
    """
    if key is not None and value is not None and value is not ABSENT and is_secret(key, value):
        return {TAG: "masked"}
    cls = type(value)
    if cls is str:
        text = mask_text(value)
        return encode_atom(text) if text == value and type(text) is str else _mask_text(text)
    if cls is int or cls is bool or cls is NoneType:
        return encode_atom(value)
    if cls is float:
        return value if math.isfinite(value) else {TAG: "float", "v": repr(value)}
    template = value.template if cls is FrozenDict or cls is FrozenList else None
    if template is not None and type(template).__name__ in COLLECTIONS:
        return _encode_collection(template, value, lenient)
    if cls is dict or cls is FrozenDict:
        return _encode_mapping(value, lenient)
    if cls is list or cls is FrozenList:
        return [encode(item, lenient=lenient) for item in value]
    codec = _find_registered(cls) or (cls is Opaque and _find_registered(type(value.value)))
    if codec:
        return _encode_by_codec(codec, value.value if cls is Opaque else value, key, lenient)
    return _ENCODERS.get(cls, _encode_other)(value, key, lenient)


def is_json(value: Any) -> bool:
    """Return True if a value is a string, an int, a bool or None that every JSON reader restores unchanged.

    Two adjacent UTF-16 surrogates are two characters in Python but become one in JSON.
    """
    cls = type(value)
    if cls is str:
        return value.isascii() or _PAIR.search(value) is None
    if cls is int:
        return bool(-WIDE < value < WIDE)
    return cls is bool or value is None


def encode_atom(value: str | int | None) -> Json:
    """Return a string, an int, a bool or None as JSON, not masked; values that JSON cannot represent are tagged."""
    if is_json(value):
        return value
    if isinstance(value, str):
        return {TAG: "text", "v": base64.b64encode(value.encode("utf-8", "surrogatepass")).decode()}
    return {TAG: "int", "v": f"{value:x}"}


def encode_path(path: Iterable[str | int]) -> list[Json]:
    """Return a path on the board as JSON; a part that contains a secret (used as a key by a node) is masked."""
    return [encode_atom(mask_text(part) if isinstance(part, str) else part) for part in path]


def decode(document: Json) -> Any:
    """Return the value of a JSON document, as a plain value; an unknown tag decodes to a Record."""
    if document.__class__ is list:
        return [decode(item) for item in document]
    if document.__class__ is not dict:
        return document
    tag = document.get(TAG)
    if tag is None:
        return {key: decode(item) for key, item in document.items()}
    if tag == "registered" and document.get("type") in _BY_NAME:
        try:
            return _BY_NAME[document["type"]].decode(decode(document["v"]))
        except Exception:  # noqa: BLE001  (user code, perhaps another version of it than wrote the value)
            return Record(tag, document)
    reader = DECODERS.get(tag) if isinstance(tag, str) else None
    if reader is not None:
        try:
            return reader(document, decode)
        except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError, MemoryError):
            pass  # a damaged value, or one of a newer version, is shown as it is
    return Record(str(tag), document)


def is_known(value: Any) -> bool:
    """Return True if a decoded, frozen value is fully known: without masks or objects of unknown classes."""
    if isinstance(value, Masked):
        return False
    if type(value) in ATOMS:
        return True
    if isinstance(value, FrozenRecord):
        return type(value.template) is not Record and is_known(value.parts)
    if isinstance(value, dict):
        return all(map(is_known, value.values()))
    return not isinstance(value, FrozenList | tuple) or getattr(value, "flat", False) or all(map(is_known, value))


def _find_registered(cls: type) -> Registered | None:
    if not _BY_TYPE:
        return None
    return next((_BY_TYPE[base] for base in cls.__mro__ if base in _BY_TYPE), None)


def _encode_by_codec(codec: Registered, value: Any, key: object, lenient: bool) -> Json:
    """Return the JSON that a user's codec produces for an object.

    L437: a codec failed, or returned a value that is nested too deeply.
    """
    nested = _NESTED.set(_NESTED.get() + 1)
    try:
        if _NESTED.get() > MOST_CODECS:
            raise ValueError(f"it returns objects that need a codec themselves, nested more than {MOST_CODECS} deep")
        plain = codec.encode(value)
        if too_much := find_excess(plain):
            raise ValueError(f"its result is invalid: {too_much}")
        return {TAG: "registered", "type": codec.name, "v": encode(plain, lenient=lenient)}
    except StoreError:
        raise
    except Exception as error:  # noqa: BLE001  (user code may raise anything)
        if lenient:
            return {TAG: "opaque", "type": codec.name, "v": safe_repr(value, key=key)}
        raise StoreError(
            Problem("L437", f"the codec of {codec.name} failed",
                    "a value" if key is None else f"board key {safe_repr(key)}",
                    format_error_line(error), "fix the `to_data` function registered for it")
        ) from to_printable(error)  # fmt: skip
    finally:
        _NESTED.reset(nested)


def are_plain_names(names: tuple[Any, ...]) -> bool:
    """Return True if these names of a mapping are stored unchanged, and none of them names or contains a secret."""
    return _are_plain_names(names) and not any(map(has_secret, names))


@lru_cache(maxsize=4096)
def _are_plain_names(names: tuple[Any, ...]) -> bool:
    return TAG not in names and all(_is_name(name) and not is_secret(name) for name in names)


def _is_name(name: Any) -> bool:
    return type(name) is str and is_json(name)


def _encode_mapping(value: Mapping[Any, Any], lenient: bool) -> Json:
    if all(map(is_stored_unchanged, value.values())) and are_plain_names(tuple(value)):
        return {**value}  # the usual case
    if TAG not in value and all(map(_is_name, value)):
        pairs = {mask_text(name): encode(item, name, lenient=lenient) for name, item in value.items()}
        if len(pairs) == len(value):
            return pairs
    return {TAG: "dict", "v": [[encode(name, lenient=lenient), encode(item, name, lenient=lenient)]
                               for name, item in value.items()]}  # fmt: skip


def _encode_collection(template: Any, items: Any, lenient: bool) -> Json:
    """Encode a collection of the standard library by its items; the items of a deque are a list."""
    kind = type(template)
    document: dict[str, Any] = {TAG: "collection", "type": kind.__name__}
    if kind is deque:
        return document | {"maxlen": template.maxlen, "v": [encode(item, lenient=lenient) for item in items]}
    factory: Any = getattr(template, "default_factory", None)
    if factory in FACTORIES.values():
        document["factory"] = factory.__name__
    return document | {"v": _encode_mapping(items, lenient)}


def is_stored_unchanged(value: Any) -> bool:
    """Return True if a value is a string, an int, a bool or None that is stored as it is: not masked, not tagged."""
    if type(value) is str:
        return is_json(value) and not needs_masking(value)
    return is_json(value)


def _mask_text(text: str) -> Json:
    """Return masked text. A secret, or a URL that contains one, is requested again when a run is reopened."""
    if type(text) is Masked:
        return {TAG: "masked"} if text == MASK else {TAG: "masked", "v": str(text)}
    return {TAG: "masked", "v": text} if is_url(text) else encode_atom(text)


def _encode_dict(value: Mapping[str, Any], lenient: bool) -> Json:
    return {name: encode(item, name, lenient=lenient) for name, item in value.items()}


def _make_set_encoder(tag: str) -> Callable[[Any, object, bool], Json]:
    """Return the encoder of a set: ordered by the items' JSON, so that equal sets have equal text."""

    def encode_set(value: Any, _: object, lenient: bool) -> Json:
        items = [encode(item, lenient=lenient) for item in value]
        return {TAG: tag, "v": sorted(items, key=str)}

    return encode_set


def _encode_time(value: datetime | time, _: object = None, __: bool = False) -> Json:
    if external_types.is_scalar_of_pandas(value):
        return {TAG: "pandas", **external_types.dump_scalar(value)}
    document: dict[str, Any] = {TAG: "datetime" if isinstance(value, datetime) else "time", "v": value.isoformat()}
    if value.tzinfo is not None and (zone := encode_zone(value.tzinfo)) is not None:
        document["zone"] = zone
    if value.fold:
        document["fold"] = 1
    return document


def _make_text_encoder(tag: str, to: Callable[[Any], Any] = str) -> Callable[[Any, object, bool], Json]:
    return lambda value, _key, _lenient: {TAG: tag, "v": to(value)}


def _mask_if_secret(document: dict[str, Any]) -> Json:
    """Return the document of a value that is stored as text, or the mask if its text contains a secret."""
    return {TAG: "masked"} if has_secret(document["v"]) else document


def _record(value: FrozenRecord, _: object, lenient: bool) -> Json:
    return _encode_fields(value.template, value.parts, lenient)


def _encode_fields(template: Any, parts: Mapping[str, Any], lenient: bool) -> Json:
    if type(template) is Record:
        document = parts["document"]
        return thaw(document) if isinstance(document, dict) else mask_value(document)
    if isinstance(template, BaseException):  # its `args` and its traceback are no attributes
        return _encode_opaque(template, None, lenient)
    split = split_attributes(type(template), parts)
    document = {"type": name_of(type(template)), "v": _encode_dict(split.declared, lenient)}
    others = {"private": split.private, "extra": split.extra}
    document |= {word: _encode_dict(items, lenient) for word, items in others.items() if items}
    if is_dataclass(template):
        return {TAG: "dataclass", **document}
    return {TAG: "model", **document, "set": sorted(getattr(template, "__pydantic_fields_set__", ()))}


def _encode_other(value: Any, key: object, lenient: bool) -> Json:
    """Encode an object of any other class; an object that cannot be read has no codec."""
    cls: Any = type(value)  # not `isinstance`, which reads `__class__`: this may be code that raises
    if issubclass(cls, Enum):
        return {TAG: "enum", "type": name_of(cls), "name": value.name, "v": encode(value.value, key, lenient=lenient)}
    if external_types.is_scalar(value) or external_types.is_array(value):
        return _encode_array(value, key, lenient)
    if external_types.is_scalar_of_pandas(value):
        return {TAG: "pandas", **external_types.dump_scalar(value)}
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        parts = dict(zip(cls._fields, tuple.__iter__(value), strict=True))
        return {TAG: "namedtuple", "type": name_of(cls), "v": _encode_dict(parts, lenient)}
    for base, encoder in _BASES:
        if issubclass(cls, base):
            return encoder(value, key, lenient)
    if issubclass(cls, Mapping):
        items = call(dict, value)
        return _encode_opaque(value, key, lenient) if items is UNREADABLE else _encode_mapping(items, lenient)
    read = read_attributes(value)
    if read is None or any(item is UNREADABLE for item in read.values()):
        return _encode_opaque(value, key, lenient)
    return _encode_fields(value, read, lenient)


def _encode_array(value: Any, key: object, lenient: bool) -> Json:
    document = external_types.dump_array(value, lambda item, name=None: encode(item, name, lenient=lenient))
    return _encode_opaque(value, key, lenient) if document is None else {TAG: "array", **document}


def _encode_as_plain(plain: Callable[[Any], Any]) -> Callable[[Any, object, bool], Json]:
    """Return the encoder of a subclass of a plain type: the value is stored and restored as the plain type."""
    return lambda value, key, lenient: encode(plain(value), key, lenient=lenient)


def _encode_opaque(value: Any, key: object, lenient: bool) -> Json:
    if type(value) is Opaque:
        return encode(value.value, key, lenient=lenient)
    name = name_of(type(value))
    if lenient:
        return {TAG: "opaque", "type": name, "v": safe_repr(value, key=key)}
    raise StoreError(
        Problem(
            "L401",
            f"{with_article(get_class_name(value))} cannot be stored",
            "a value" if key is None else f"board key {safe_repr(key)}",
            f"no codec accepts objects of {name}, and agentnb never pickles",
            f"write a plain value, or register a codec: "
            f"agentnb.board.codec.register({get_class_name(value)}, to_data, from_data)",
        )
    )


def _encode_base64(value: bytes) -> str:
    return base64.b64encode(mask_value(value)).decode()


_ENCODERS: dict[type, Callable[[Any, object, bool], Json]] = {
    Masked: lambda value, *_: _mask_text(value),
    Absent: lambda *_: {TAG: "absent"},
    tuple: lambda value, _, lenient: {TAG: "tuple", "v": [encode(item, lenient=lenient) for item in value]},
    set: _make_set_encoder("set"),
    FrozenSet: _make_set_encoder("set"),
    frozenset: _make_set_encoder("frozenset"),
    bytes: _make_text_encoder("bytes", _encode_base64),
    complex: _make_text_encoder("complex", repr),
    Decimal: _make_text_encoder("decimal"),
    Fraction: _make_text_encoder(
        "fraction", lambda value: [encode_atom(value.numerator), encode_atom(value.denominator)]
    ),
    UUID: lambda value, *_: _mask_if_secret({TAG: "uuid", "v": str(value)}),
    range: _make_text_encoder("range", lambda value: [*map(encode_atom, (value.start, value.stop, value.step))]),
    datetime: _encode_time,
    time: _encode_time,
    date: _make_text_encoder("date", date.isoformat),
    timedelta: _make_text_encoder("timedelta", lambda value: [value.days, value.seconds, value.microseconds]),
    timezone: _make_text_encoder("timezone", encode_offset),
    FrozenRecord: _record,
    FrozenArray: lambda value, key, lenient: _encode_array(value.array, key, lenient),
    Record: lambda value, *_: value.document,
    Opaque: _encode_opaque,
    **dict.fromkeys(COLLECTIONS.values(), lambda value, _, lenient: _encode_collection(value, value, lenient)),
}
# The encoders by base class; the first match applies.
_BASES: Final[tuple[tuple[type, Callable[[Any, object, bool], Json]], ...]] = (
    (PurePath, lambda value, *_: _mask_if_secret({TAG: "path", "flavour": type(value).__name__, "v": str(value)})),
    (datetime, _encode_time),
    (date, _ENCODERS[date]),
    (time, _encode_time),
    (timedelta, _ENCODERS[timedelta]),
    (str, _encode_as_plain(str.__str__)),
    (int, _encode_as_plain(int.__int__)),
    (float, _encode_as_plain(float.__float__)),
    (bytes, _encode_as_plain(lambda value: bytes(memoryview(value)))),
    (tuple, _encode_as_plain(lambda value: tuple(tuple.__iter__(value)))),
    (frozenset, _encode_as_plain(frozenset)),
    (set, _encode_as_plain(set)),
    (list, _encode_as_plain(lambda value: list(list.__iter__(value)))),
)

__all__ = [
    "TAG",
    "Json",
    "Record",
    "are_plain_names",
    "decode",
    "encode",
    "encode_atom",
    "encode_path",
    "is_json",
    "is_known",
    "is_stored_unchanged",
    "register",
]
