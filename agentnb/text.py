"""Text of values for people: `safe_repr` and `safe_str`, the only ways in which a user's object becomes text.

Both never raise (except KeyboardInterrupt), are bounded in time and size for any value, and mask secrets.
Collections are walked, so that a huge one, or one that contains itself, costs no more than the part that is shown.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from itertools import islice
from typing import Any, Final, NamedTuple

from agentnb.secrets import MASK, get_longest_form, is_secret, mask_text, needs_masking

LONGEST_TEXT: Final = 20_000  # characters of a text that is shown as a whole: a message, a part of a Problem
DEEPEST: Final = 20  # levels of a value that are shown
MOST_PARTS: Final = 2000  # parts that are visited, even if they are so small that more would fit
WIDE: Final = 2**2048  # Python may refuse to write more than 640 decimal digits; ints from here on are hexadecimal


class Fields(NamedTuple):
    """How an object is shown: the name of its class, and the names and values of its fields."""

    name: str
    fields: Iterable[tuple[Any, Any]]


_FORMS: dict[type, Callable[[Any], Any]] = {}


def show_as(cls: type, form: Callable[[Any], Any]) -> None:
    """Show objects of exactly this class as the result of `form`: a list (as an iterator), a dict or Fields."""
    _FORMS[cls] = form


def safe_repr(value: Any, limit: int = 60, *, key: object = None) -> str:
    """Return a value's repr, masked and cut to `limit` characters; use it wherever a user's object becomes text.

    It never raises, whatever the object's methods do, and its duration is bounded by the length of the result.

    Args:
        limit: the maximum number of characters; the last one of a cut text is "…".
        key: the name of the value; the value of a secret's name is shown as the mask.

    Example:
        >>> safe_repr({"user": "ann", "password": "hunter2", "notes": "x" * 1000}, 50)
        "{'user': 'ann', 'password': '********', 'notes': …"
    """
    if type(value) is str and key is None and len(value) < limit and not needs_masking(value):
        text = mask_text(repr(value))  # a short name: of a long recipe, each has several places
    else:
        text = mask_text("".join(_Writer(limit + 1).pieces(value, key)))
    return text if len(text) <= limit else text[: limit - 1] + "…"


def safe_str(value: Any, limit: int = 2000) -> str:
    """Return `str(value)`, masked and cut to `limit` characters; a text that says so if its methods raise.

    Example:
        >>> safe_str(ValueError("no such city"))
        'no such city'
    """
    if type(value) is str and len(value) <= limit and not needs_masking(value):
        return value
    text = mask_head(
        _shorten_text(value, limit) if issubclass(type(value), str) else _call_bounded(str, value, limit), limit + 1
    )
    return text if len(text) <= limit else text[: limit - 1] + "…"


def mask_head(text: str, limit: int) -> str:
    """Return the first `limit` characters of a masked text, without masking the rest."""
    window = limit + get_longest_form()
    return mask_text(str.__getitem__(text, slice(window)))[:limit]


def get_class_name(value: object) -> str:
    """Return the name of a value's class, independent of its metaclass; for a nested class, with the enclosing one."""
    return str(_QUALNAME(type(value))).rpartition("<locals>.")[2]


_QUALNAME: Final = type.__dict__["__qualname__"].__get__
_MRO: Final = type.__dict__["__mro__"].__get__
_NAMESPACE: Final = type.__dict__["__dict__"].__get__


def _shorten_text(value: Any, limit: int) -> str:
    """Return the beginning of a text, also of a subclass of str: enough to show `limit` characters."""
    return str.__getitem__(value, slice(limit + get_longest_form() + 1))


def _call_bounded(function: Callable[[Any], str], value: Any, limit: int) -> str:
    """Return the beginning of the result of an object's own method, or the exception that it raised."""
    try:
        return _shorten_text(function(value), limit)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001  (also SystemExit: showing an object must not end anything)
        return f"<{get_class_name(value)} that cannot be shown: {get_class_name(error)}>"


def replace_surrogates(text: str) -> str:
    r"""Return a text that can be encoded: half of a surrogate pair, which JSON may contain, becomes its escape.

    Example:
        >>> replace_surrogates("caf\u00e9"), replace_surrogates("\ud800!")
        ('café', '\\ud800!')
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace").decode()
    return text


UNREADABLE: Final = object()  # the result if an object's own code raises


def call(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return the result of a function on a user's object; UNREADABLE if the object's code raises anything."""
    try:
        return function(*arguments)
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001  (also SystemExit: reading an object must not end anything)
        return UNREADABLE


class _Writer:
    """Writes one value: tracks the remaining room, and the enclosing collections."""

    def __init__(self, room: int) -> None:
        self.room, self.parts, self.around = room, MOST_PARTS, set[int]()

    def pieces(self, value: Any, key: object = None) -> Iterator[str]:
        """Yield the text in pieces, until the room is used up."""
        for piece in self._write_value(value, key):
            yield piece
            self.room -= len(piece)
            if self.room <= 0:
                return

    def _write_value(self, value: Any, key: object) -> Iterator[str]:
        if key is not None and value is not None and is_secret(key, value):
            yield repr(str(MASK))
            return
        opened = None if type(value) in _LEAVES else _open_collection(value)
        if opened is None:
            yield self._format_leaf(value)
            return
        if id(value) in self.around or len(self.around) >= DEEPEST:
            yield "…"
            return
        self.around.add(id(value))
        try:
            yield from self._write_collection(*opened)
        finally:
            self.around.discard(id(value))

    def _write_collection(self, first: str, last: str, parts: Iterator[tuple[Any, Any]]) -> Iterator[str]:
        yield first
        number = 0
        for number, (name, item) in enumerate(parts, 1):
            if number > 1:
                yield ", "
            self.parts -= 1
            if self.parts < 0:
                yield "…"
                return
            if name is not _NO_NAME:
                yield f"{mask_text(str(name))}=" if last == ")" else f"{self._format_leaf_or_short(name)}: "
            yield from self._write_value(item, None if name is _NO_NAME else name)
        yield ",)" if first == "(" and number == 1 else last

    def _format_leaf_or_short(self, name: Any) -> str:
        return self._format_leaf(name) if type(name) in _LEAVES else "".join(_Writer(self.room).pieces(name))

    def _format_leaf(self, value: Any) -> str:
        kind, room = type(value), max(self.room, 0)
        if issubclass(kind, Enum):
            return mask_head(_call_bounded(repr, value, room), room + 1)
        if issubclass(kind, str):
            return repr(str(mask_head(_shorten_text(value, room), room + 1)))
        if issubclass(kind, bytes | bytearray):
            head = bytes.__getitem__ if issubclass(kind, bytes) else bytearray.__getitem__
            return mask_head(repr(head(value, slice(room + get_longest_form() + 1))), room + 4)
        if issubclass(kind, int) and kind is not bool:
            return _format_integer(value)
        return mask_head(_call_bounded(repr, value, room), room + 1)


def to_json_integer(value: int) -> int | str:
    """Return an int, or its hexadecimal text if Python may refuse to convert it to decimal text.

    Example:
        >>> to_json_integer(3), to_json_integer(2**4000)[:6]
        (3, '0x1000')
    """
    return value if -WIDE < value < WIDE else hex(value)


def _format_integer(value: int) -> str:
    bits = int.bit_length(value)
    if bits < WIDE.bit_length():
        return int.__repr__(value)
    sign, top = ("-" if int.__lt__(value, 0) else ""), int.__rshift__(int.__abs__(value), bits - 32)
    return f"{sign}0x{top:08x}… ({bits} bits)"


_NO_NAME: Final = object()
_LEAVES: Final = frozenset({str, int, float, bool, type(None), bytes, complex})
_BRACKETS: Final[tuple[tuple[type, str, str], ...]] = (
    (list, "[", "]"),
    (tuple, "(", ")"),
    (frozenset, "frozenset({", "})"),
    (set, "{", "}"),
)


def _open_collection(value: Any) -> tuple[str, str, Iterator[tuple[Any, Any]]] | None:
    """Return the brackets of a collection and its parts, without running its own code; None for all else."""
    kind = type(value)
    form = _FORMS.get(kind)
    if form is not None:
        value = form(value)
        kind = type(value)
        if kind is Fields:
            return f"{value.name}(", ")", iter(value.fields)
        if not issubclass(kind, dict):
            return "[", "]", ((_NO_NAME, item) for item in value)
    if issubclass(kind, dict):
        return "{", "}", _iter_items(value)
    for base, first, last in _BRACKETS:
        if issubclass(kind, base):
            names = kind.__dict__.get("_fields") if base is tuple else None
            items = base.__iter__(value)  # type: ignore[attr-defined]  # all of these have one
            if isinstance(names, tuple):
                return f"{get_class_name(value)}(", ")", zip(names, items, strict=False)
            if base in (set, frozenset) and not base.__len__(value):
                return "set(" if base is set else "frozenset(", ")", iter(())
            return first, last, ((_NO_NAME, item) for item in _items_until_changed(items))
    return _list_fields(value, kind)


def _iter_items(value: dict[Any, Any]) -> Iterator[tuple[Any, Any]]:
    yield from _items_until_changed(iter(dict.items(value)))


def _items_until_changed(items: Iterator[Any]) -> Iterator[Any]:
    """Yield the items of a collection; stop if a thread or a part's own repr changes it meanwhile."""
    try:
        yield from islice(items, MOST_PARTS + 1)
    except RuntimeError:
        return


def _list_fields(value: Any, kind: type) -> tuple[str, str, Iterator[tuple[Any, Any]]] | None:
    """Return the fields of a dataclass or a pydantic object that has no custom repr."""
    names: list[str] | None = None
    own, fields = _of_class(kind, "__repr__"), _of_class(kind, "__dataclass_fields__")
    pydantic = sys.modules.get("pydantic")
    if isinstance(fields, dict) and hasattr(own, "__wrapped__"):  # a generated repr is a wrapped one
        names = [name for name, field in fields.items() if field.repr]
    elif pydantic is not None and own is pydantic.BaseModel.__repr__:
        names = [name for name, field in _of_class(kind, "__pydantic_fields__").items() if field.repr]
    if names is None:
        return None
    return (
        f"{get_class_name(value)}(",
        ")",
        ((name, _get_attribute(value, name)) for name in names if _has(value, name)),
    )


def _of_class(kind: type, name: str) -> Any:
    """Return an attribute of a class as it was defined, independent of its metaclass; None if there is none."""
    return next((own[name] for own in map(_NAMESPACE, _MRO(kind)) if name in own), None)


def _has(value: Any, name: str) -> bool:
    return _get_attribute(value, name) is not _NO_NAME


def _get_attribute(value: Any, name: str) -> Any:
    """Return a field without running the object's own code; _NO_NAME if there is none."""
    attribute = call(object.__getattribute__, value, name)  # a field may be a property
    return _NO_NAME if attribute is UNREADABLE else attribute


__all__ = [
    "UNREADABLE",
    "WIDE",
    "Fields",
    "call",
    "get_class_name",
    "mask_head",
    "replace_surrogates",
    "safe_repr",
    "safe_str",
    "show_as",
    "to_json_integer",
]
