"""Decoders by type tag. Classes are looked up among those already imported, and none of their code runs."""

from __future__ import annotations

import base64
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, is_dataclass
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from enum import Enum, Flag
from fractions import Fraction
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath
from typing import Any, Final
from uuid import UUID
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from agentnb.board import external_types
from agentnb.board.attributes import Attributes, set_attributes, split_attributes
from agentnb.board.values import ABSENT, FrozenRecord, fill_collection, freeze
from agentnb.secrets import MASK, Masked
from agentnb.text import safe_repr

Decode = Callable[[Any], Any]
Reader = Callable[[Mapping[str, Any], Decode], Any]


@dataclass(frozen=True, slots=True)
class Record:
    """A stored value of an unknown class: its tag and its JSON document."""

    tag: str
    document: Any

    def __repr__(self) -> str:
        """Return the tag, the name of the class and the value as text."""
        name, value = self.document.get("type", ""), self.document.get("v")
        return f"<{self.tag} {name}: {safe_repr(value)}>" if name else f"<{self.tag}: {safe_repr(value)}>"


def get_fields(value: FrozenRecord) -> Mapping[str, Any] | None:
    """Return the fields of a dataclass or model, frozen; for an unknown class, the stored fields.

    None for any other value of an unknown class.
    """
    template = value.template
    if type(template) is not Record:
        return value.parts
    document = template.document
    if template.tag not in ("dataclass", "model") or not isinstance(document, Mapping):
        return None
    parts = [document.get("v"), document.get("private", {}), document.get("extra", {})]
    if not all(isinstance(part, Mapping) for part in parts):  # damaged
        return None
    from agentnb.board.codec import decode  # here to avoid an import cycle

    return {name: freeze(decode(item)) for part in parts for name, item in part.items()}


def name_of(cls: type) -> str:
    """Return the name of a class in a file: its module and its qualified name."""
    return f"{cls.__module__}:{cls.__qualname__}"


def find_class(name: str) -> type:
    """Return the class with this name, if its module is already imported.

    Raises:
        KeyError: there is no such class.
    """
    module, _, path = name.partition(":")
    current: Any = sys.modules[module]
    for part in path.split("."):
        current = vars(current)[part]  # not getattr: a module's own __getattr__ could import
    if not isinstance(current, type):
        raise KeyError(name)
    return current


def encode_zone(zone: tzinfo) -> str | list[Any] | None:
    """Return the name of a time zone, or the offset and the name of a named `timezone`; else None."""
    if isinstance(zone, ZoneInfo):
        return zone.key
    if type(zone) is timezone and zone.tzname(None) != timezone(zone.utcoffset(None)).tzname(None):
        return encode_offset(zone)
    return None


def encode_offset(zone: timezone) -> list[Any]:
    """Return the offset of a zone in microseconds, and its name."""
    return [zone.utcoffset(None) // timedelta(microseconds=1), zone.tzname(None)]


def _restore_zone(value: Any, document: Mapping[str, Any]) -> Any:
    zone = document.get("zone")
    if isinstance(zone, list):
        value = value.replace(tzinfo=_decode_timezone({"v": zone}, None))
    elif zone is not None:
        with suppress(ZoneInfoNotFoundError, OSError):  # an unknown zone: the offset is enough for the instant
            value = value.replace(tzinfo=ZoneInfo(zone))
    return value.replace(fold=document.get("fold", 0))


def _decode_enum(document: Mapping[str, Any], decode: Decode) -> Any:
    cls = find_class(document["type"])
    if not issubclass(cls, Enum):
        raise TypeError(cls)
    if document["name"] in cls.__members__:
        return cls.__members__[document["name"]]
    if not issubclass(cls, Flag):
        raise KeyError(document["name"])
    return cls(decode(document["v"]))


def _decode_namedtuple(document: Mapping[str, Any], decode: Decode) -> Any:
    cls, parts = find_class(document["type"]), document["v"]
    if not issubclass(cls, tuple) or getattr(cls, "_fields", None) != tuple(parts):
        raise TypeError(cls)
    return tuple.__new__(cls, [decode(item) for item in parts.values()])


def _decode_dataclass(document: Mapping[str, Any], decode: Decode) -> Any:
    cls = find_class(document["type"])
    if not is_dataclass(cls):
        raise TypeError(cls)
    instance: Any = object.__new__(cls)
    _decode_attributes(instance, document, decode)
    return instance


def _decode_model(document: Mapping[str, Any], decode: Decode) -> Any:
    cls: Any = find_class(document["type"])
    if not external_types.is_model(cls):
        raise TypeError(cls)
    instance = object.__new__(cls)
    object.__setattr__(instance, "__pydantic_fields_set__", set(document["set"]))
    if not cls.__pydantic_root_model__:  # which has these as attributes of its class
        object.__setattr__(instance, "__pydantic_extra__", {} if cls.model_config.get("extra") == "allow" else None)
        object.__setattr__(instance, "__pydantic_private__", {} if cls.__private_attributes__ else None)
    _decode_attributes(instance, document, decode)
    return instance


def _decode_attributes(instance: Any, document: Mapping[str, Any], decode: Decode) -> None:
    """Set the stored attributes, if the class still declares them as it did."""
    stored = Attributes(document["v"], document.get("private", {}), document.get("extra", {}))
    items = {**stored.declared, **stored.private, **stored.extra}
    if split_attributes(type(instance), items) != stored:
        raise TypeError(type(instance))
    set_attributes(instance, {name: decode(item) for name, item in items.items()})


def _decode_fraction(parts: Any, decode: Decode) -> Fraction:
    if isinstance(parts, str):  # an older format, before ints of any size were supported
        numerator, _, denominator = parts.partition("/")
        return Fraction(int(numerator), int(denominator or 1))  # no exponent: "1e99999999" would exhaust the memory
    numerator, denominator = map(decode, parts)
    return Fraction(numerator, denominator)


def _decode_path(document: Mapping[str, Any], _: Decode) -> PurePath:
    match document["flavour"]:
        case "PurePosixPath":
            return PurePosixPath(document["v"])
        case "PureWindowsPath":
            return PureWindowsPath(document["v"])
        case flavour if flavour == type(Path()).__name__:
            return Path(document["v"])
        case "WindowsPath":
            return PureWindowsPath(document["v"])
    return PurePosixPath(document["v"])


def _decode_timezone(document: Mapping[str, Any], _: Decode | None) -> timezone:
    microseconds, name = document["v"]
    offset = timedelta(microseconds=microseconds)
    plain = timezone(offset)
    return plain if plain.tzname(None) == name else timezone(offset, name)


# The collections of the standard library that are restored with their class, and the factories of a `defaultdict`.
COLLECTIONS: Final[Mapping[str, type]] = {cls.__name__: cls for cls in (Counter, OrderedDict, defaultdict, deque)}
FACTORIES: Final[Mapping[str, type]] = {cls.__name__: cls for cls in (bool, dict, float, int, list, set, str, tuple)}


def _decode_collection(document: Mapping[str, Any], decode: Decode) -> Any:
    kind, items = COLLECTIONS[document["type"]], decode(document["v"])
    if kind is deque:
        return deque(items, document["maxlen"])
    if kind is defaultdict:
        factory = document.get("factory")
        return defaultdict(None if factory is None else FACTORIES[factory], items)
    return fill_collection(kind(), items)


DECODERS: dict[str, Reader] = {
    "masked": lambda document, _: Masked(document["v"]) if isinstance(document.get("v"), str) else MASK,
    "absent": lambda *_: ABSENT,
    "float": lambda document, _: float(document["v"]),
    "dict": lambda document, decode: {decode(key): decode(item) for key, item in document["v"]},
    "tuple": lambda document, decode: tuple(decode(item) for item in document["v"]),
    "set": lambda document, decode: {decode(item) for item in document["v"]},
    "frozenset": lambda document, decode: frozenset(decode(item) for item in document["v"]),
    "bytes": lambda document, _: base64.b64decode(document["v"], validate=True),
    "complex": lambda document, _: complex(document["v"]),
    "decimal": lambda document, _: Decimal(document["v"]),
    "text": lambda document, _: base64.b64decode(document["v"], validate=True).decode("utf-8", "surrogatepass"),
    "int": lambda document, _: int(document["v"], 16),
    "fraction": lambda document, decode: _decode_fraction(document["v"], decode),
    "uuid": lambda document, _: UUID(document["v"]),
    "range": lambda document, decode: range(*map(decode, document["v"])),
    "datetime": lambda document, _: _restore_zone(datetime.fromisoformat(document["v"]), document),
    "time": lambda document, _: _restore_zone(time.fromisoformat(document["v"]), document),
    "date": lambda document, _: date.fromisoformat(document["v"]),
    "timedelta": lambda document, _: timedelta(*document["v"]),
    "timezone": _decode_timezone,
    "path": _decode_path,
    "enum": _decode_enum,
    "namedtuple": _decode_namedtuple,
    "dataclass": _decode_dataclass,
    "collection": _decode_collection,
    "model": _decode_model,
    "array": external_types.load_array,
    "pandas": lambda document, _: external_types.load_scalar(document),
}
