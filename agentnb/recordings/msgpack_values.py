"""Values in the msgpack encoding of LangGraph's serializer, decoded without constructing objects of other packages.

The serializer writes an object as an extension: its module, its class, and its fields. Values of the standard library
become what they were; of everything else the fields are kept, as a mapping, a list or one value. Nothing is imported.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Final, NamedTuple
from uuid import UUID

from agentnb.errors import Problem, StoreError

LARGEST: Final = 64 * 2**20  # bytes of one value
DEEPEST: Final = 40  # extensions inside each other
_POSITIONAL, _KEYWORDS, _METHOD, _ARRAY, _SNAPSHOT = 1, 2, 3, 6, 7
_KNOWN: Final = frozenset(range(8))
OVERWRITE: Final = "__overwrite__"  # the key of an Overwrite as a mapping, in which LangGraph accepts it, too


class Send(NamedTuple):
    """A task that a node schedules: the node's name and its input."""

    node: str
    arg: Any


class Opaque(NamedTuple):
    """A value that was not decoded, and why."""

    why: str


_PLAIN: Final[Mapping[tuple[str, str], Callable[[Any], Any]]] = MappingProxyType({
    ("uuid", "UUID"): lambda text: UUID(hex=text),
    ("decimal", "Decimal"): Decimal,
    ("builtins", "set"): set,
    ("builtins", "frozenset"): frozenset,
    ("collections", "deque"): list,
    ("datetime", "datetime"): datetime.fromisoformat,
    ("datetime", "date"): lambda parts: date(*parts),
    ("datetime", "timedelta"): lambda parts: timedelta(*parts),
    ("datetime", "time"): lambda fields: time(**fields),
})  # fmt: skip


def decode_typed(type: str | None, data: Any) -> Any:
    """Return a stored value by its type: msgpack, json, bytes, bytearray or null; others (pickle) stay closed.

    Raises:
        ValueError: it is damaged or exceeds a limit.
        StoreError: L579, the package msgpack is missing.
    """
    blob = bytes(data) if data is not None else b""
    if len(blob) > LARGEST:
        raise ValueError(f"a value has {len(blob)} bytes, and the limit is {LARGEST}")
    match type:
        case None | "null" | "empty":
            return None
        case "bytes" | "bytearray":
            return blob
        case "json":
            return json.loads(blob)
        case "msgpack":
            return decode(blob)
    return Opaque(f"a value of type {type!r} is not opened: it may contain code or need a key")


def decode(data: bytes, depth: int = 0) -> Any:
    """Return a value in msgpack.

    L579: a format needs a package that is not installed.

    Raises:
        ValueError: it is damaged or nested too deeply.
        StoreError: L579.
    """
    try:
        import msgpack
    except ImportError:
        raise StoreError(
            Problem("L579", "LangGraph checkpoints need the package msgpack", "nb.open", "it is not installed",
                    'run: pip install "agentnb-kit[recordings]"')
        ) from None  # fmt: skip
    if depth > DEEPEST:
        raise ValueError("its objects are nested too deeply")
    try:
        return msgpack.unpackb(
            data, strict_map_key=False, ext_hook=lambda code, inner: _decode_extension(code, inner, depth), timestamp=3
        )
    except (TypeError, ArithmeticError, SyntaxError, RecursionError, UnicodeDecodeError,
            msgpack.UnpackException) as error:  # fmt: skip  # numpy parses the type of an array as Python does
        raise ValueError(f"{error.__class__.__name__}: {error}") from None


def _decode_extension(code: int, data: bytes, depth: int) -> Any:
    if code not in _KNOWN:
        return Opaque(f"an extension {code} is not known")
    inner = decode(data, depth + 1)
    if code == _SNAPSHOT:
        return inner
    if not isinstance(inner, list) or len(inner) < 3:
        raise ValueError("an object lacks its class or its fields")
    if code == _ARRAY:
        return _decode_array(inner)
    module, name, value = inner[:3]
    if (module, name) == ("langgraph.types", "Send") and isinstance(value, list) and len(value) >= 2:
        return Send(str(value[0]), value[1])
    if (module, name) == ("langgraph.types", "Overwrite") and isinstance(value, dict):
        return {OVERWRITE: value.get("value")}
    make = _PLAIN.get((str(module), str(name)))
    try:
        return value if make is None else make(value)
    except (ArithmeticError, AttributeError) as error:  # Decimal and UUID raise these for texts that are none
        raise ValueError(f"{name}: {error}") from None


def _decode_array(parts: list[Any]) -> Any:
    """Return a numpy array as nested lists; arrays of Python objects are refused."""
    import numpy as np

    kind, shape, order, data = (*parts, None)[:4]
    with warnings.catch_warnings():  # of spellings that numpy no longer wants
        warnings.simplefilter("ignore")
        dtype = np.dtype(str(kind))
    if dtype.hasobject:
        raise ValueError("an array of objects is not opened")
    return np.frombuffer(data, dtype=dtype).reshape(shape, order="F" if order == "F" else "C").tolist()


__all__ = ["OVERWRITE", "Opaque", "Send", "decode", "decode_typed"]
