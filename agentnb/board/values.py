"""values: what may lie on the blackboard. Atoms as they are, all else frozen, so that past and present both hold.

`freeze` turns a value into a form that cannot change and shares its unchanged parts with the value before it;
`thaw` gives a reader a copy of its own; `same` finds out whether that copy was changed.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from operator import is_
from pathlib import PurePath
from types import NoneType
from typing import Any, Final, Self
from uuid import UUID

from agentnb.board import foreign
from agentnb.errors import BoardError, Problem

DEPTH_LIMIT: Final = 200


class Absent:
    """The type of ABSENT, the one value that means "no such key"; None is a value like any other."""

    def __new__(cls) -> Self:
        """Return the one there is."""
        there: Self | None = globals().get("ABSENT")
        return super().__new__(cls) if there is None else there

    def __repr__(self) -> str:
        return "ABSENT"

    def __bool__(self) -> bool:
        return False

    def __reduce__(self) -> str:
        return "ABSENT"


ABSENT: Final = Absent()

ATOMS: Final[frozenset[type]] = frozenset(
    {str, int, float, bool, NoneType, bytes, complex, Decimal, Fraction, UUID, range, Absent}
    | {datetime, date, time, timedelta, timezone}
)
_TEXTS: Final = frozenset({str, NoneType, bytes})
_ATOM_BASES: Final = (Enum, PurePath, datetime, date, time, timedelta, str, int, float, bytes)


class FrozenDict(dict[Any, Any]):
    """A mapping that cannot change. `flat`: 0 has parts to thaw, 1 atoms only, 2 texts only (equal means the same)."""

    __slots__ = ("flat",)
    flat: int

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise BoardError(
            Problem(
                "B101",
                "this value lies on the blackboard and cannot be changed in place",
                "a mapping read from the board",
                "the board keeps every past state, so its values never change",
                "return the new value from the node, or use session.edit({path: value})",
            )
        )

    __setitem__ = __delitem__ = clear = pop = popitem = setdefault = update = __ior__ = _refuse


class FrozenList(Sequence[Any]):
    """The first `size` items of a list that may be shared: growing it by an item at the tip copies nothing."""

    __slots__ = ("flat", "items", "size")

    def __init__(self, items: list[Any], size: int, flat: bool) -> None:
        self.items, self.size, self.flat = items, size, flat

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self.items[: self.size][index]
        place = index + self.size if index < 0 else index
        if not 0 <= place < self.size:
            raise IndexError(index)
        return self.items[place]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.items[: self.size])

    def __eq__(self, other: object) -> bool:
        if isinstance(other, FrozenList | list):
            return list(self) == list(other)
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]  # as a list

    def __repr__(self) -> str:
        return f"FrozenList({self.items[: self.size]!r})"

    def grown(self, item: Any) -> FrozenList:
        """Return this list with one more frozen item: in place at the tip, else as a copy."""
        items, size = self.items, self.size
        flat = self.flat and item.__class__ in ATOMS
        if len(items) > size and items[size] is item:
            return FrozenList(items, size + 1, flat)
        if len(items) != size:
            items = items[:size]
        items.append(item)
        return FrozenList(items, size + 1, flat)


class FrozenSet(frozenset[Any]):
    """What a set becomes on the board; it is thawed to a set again."""

    __slots__ = ()


class FrozenRecord:
    """A dataclass or pydantic object, kept as its fields; `template` is a private shallow copy to thaw from."""

    __slots__ = ("parts", "template")

    def __init__(self, template: Any, parts: FrozenDict) -> None:
        self.template, self.parts = template, parts

    def __repr__(self) -> str:
        return f"{type(self.template).__qualname__}({', '.join(f'{k}={v!r}' for k, v in self.parts.items())})"


class FrozenArray:
    """A numpy array or a pandas object, kept as a private copy."""

    __slots__ = ("held",)

    def __init__(self, held: Any) -> None:
        self.held = held

    def __repr__(self) -> str:
        return f"FrozenArray({type(self.held).__name__}, shape={self.held.shape})"


class Opaque:
    """Anything else, by reference: shown as opaque, and no store takes it."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __repr__(self) -> str:
        return f"<opaque {type(self.value).__qualname__}>"


FROZEN: Final[frozenset[type]] = frozenset({FrozenDict, FrozenList, FrozenSet, FrozenRecord, FrozenArray, Opaque})


def freeze(value: Any, like: Any = ABSENT, depth: int = 0) -> Any:
    """Return a form of `value` that cannot change; parts that equal those of `like` (what stood there) are shared.

    Raises:
        BoardError: B102, the value contains itself or is nested deeper than 200.
    """
    cls = value.__class__
    if cls in ATOMS or cls in FROZEN:
        return value
    if cls is dict and like is ABSENT:  # most of what nodes write and tools answer is a small record of atoms
        if not value:
            return _EMPTY
        flat = frozen_dict(value)
        if flat.flat:
            return flat
    if depth > DEPTH_LIMIT:
        raise BoardError(
            Problem(
                "B102",
                "a value is nested too deep to lie on the blackboard",
                f"a {cls.__name__}",
                f"it has more than {DEPTH_LIMIT} levels, or it contains itself",
                "write a flatter value, or one without a cycle",
            )
        )
    return _FREEZERS.get(cls, _freeze_other)(value, like, depth + 1)


def frozen_dict(parts: Mapping[Any, Any]) -> FrozenDict:
    """Return a FrozenDict of parts that are frozen already."""
    result = FrozenDict(parts)
    classes = {*map(type, parts.values())}
    result.flat = 2 if classes <= _TEXTS else int(classes <= ATOMS)
    return result


_EMPTY: FrozenDict = frozen_dict({})


def frozen_list(items: list[Any]) -> FrozenList:
    """Return a FrozenList that owns `items`, which are frozen already."""
    return FrozenList(items, len(items), ATOMS.issuperset(map(type, items)))


def _freeze_dict(value: Mapping[Any, Any], like: Any, depth: int) -> FrozenDict:
    if like.__class__ is not FrozenDict:
        return frozen_dict({key: freeze(item, ABSENT, depth) for key, item in value.items()})
    before = like.get
    parts = {key: freeze(item, before(key, ABSENT), depth) for key, item in value.items()}
    if len(parts) == len(like) and all(map(is_, parts.values(), like.values())) and list(parts) == list(like):
        return like
    return frozen_dict(parts)


def _freeze_list(value: list[Any], like: Any, depth: int) -> FrozenList:
    if like.__class__ is not FrozenList:
        return frozen_list([freeze(item, ABSENT, depth) for item in value])
    old, size = like.items, like.size
    items = [
        was if was.__class__ is FrozenDict and was.flat == 2 and item == was and item.__class__ is dict
        else freeze(item, was, depth)
        for item, was in zip(value, old[:size])  # noqa: B905  (the shorter one ends it)
    ]  # fmt: skip
    shared = len(items) == size and all(map(is_, items, old))
    if shared:
        grown = like
        for item in value[size:]:
            grown = grown.grown(freeze(item, ABSENT, depth))
        return grown
    items.extend(freeze(item, ABSENT, depth) for item in value[len(items) :])
    return frozen_list(items)


def _freeze_tuple(value: tuple[Any, ...], like: Any, depth: int) -> tuple[Any, ...]:
    if ATOMS.issuperset(map(type, value)):
        return value
    before: Sequence[Any] = like if isinstance(like, tuple) and len(like) == len(value) else (ABSENT,) * len(value)
    parts = tuple(freeze(item, was, depth) for item, was in zip(value, before, strict=True))
    if like.__class__ is tuple and all(map(is_, parts, before)) and len(parts) == len(like):
        return like
    return type(value)._make(parts) if hasattr(value, "_make") else parts


def _freeze_set(value: set[Any], like: Any, _depth: int) -> FrozenSet:
    frozen = FrozenSet(value)
    return like if like.__class__ is FrozenSet and like == frozen else frozen


def _freeze_record(value: Any, names: Sequence[str], like: Any, depth: int) -> FrozenRecord:
    before = like.parts if like.__class__ is FrozenRecord and type(like.template) is type(value) else ABSENT
    parts = _freeze_dict({name: getattr(value, name) for name in names if hasattr(value, name)}, before, depth)
    return like if parts is before else FrozenRecord(copy.copy(value), parts)


def _freeze_other(value: Any, like: Any, depth: int) -> Any:
    if isinstance(value, _ATOM_BASES) or foreign.is_scalar(value):
        return value
    if isinstance(value, Mapping):
        return _freeze_dict(value, like, depth)
    if isinstance(value, list):
        return _freeze_list(value, like, depth)
    if isinstance(value, tuple):
        return _freeze_tuple(value, like, depth)
    if isinstance(value, frozenset):
        return value
    if isinstance(value, set):
        return _freeze_set(value, like, depth)
    if is_dataclass(value) and not isinstance(value, type):
        return _freeze_record(value, [field.name for field in fields(value)], like, depth)
    names = foreign.model_fields(value)
    if names is not None:
        return _freeze_record(value, names, like, depth)
    if foreign.is_array(value):
        return (
            like
            if like.__class__ is FrozenArray and foreign.same_array(value, like.held)
            else FrozenArray(foreign.copied(value))
        )
    if like.__class__ is Opaque and like.value is value:
        return like
    _warn_opaque(type(value))
    return Opaque(value)


_FREEZERS: dict[type, Callable[[Any, Any, int], Any]] = {
    dict: _freeze_dict,
    list: _freeze_list,
    tuple: _freeze_tuple,
    set: _freeze_set,
}
_WARNED: set[type] = set()


def _warn_opaque(cls: type) -> None:
    if cls in _WARNED:
        return
    _WARNED.add(cls)
    warnings.warn(
        f"a {cls.__module__}.{cls.__qualname__} lies on the board by reference (opaque): "
        "going back does not undo changes made inside it, and it cannot be stored",
        stacklevel=4,
    )


def thaw(value: Any) -> Any:
    """Return a copy that its reader may change: dict, list, set and objects as they were written."""
    cls = value.__class__
    if cls in ATOMS:
        return value
    if cls is FrozenDict:
        return {**value} if value.flat else {key: thaw(item) for key, item in value.items()}
    if cls is FrozenList:
        items = value.items[: value.size]
        if value.flat:
            return items
        # `{**item}` copies twice as fast as `dict(item)`, and a list of messages is read in every step.
        return [{**item} if item.__class__ is FrozenDict and item.flat else thaw(item) for item in items]
    if cls is FrozenSet:
        return set(value)
    if cls is FrozenRecord:
        thawed = copy.copy(value.template)
        for name, item in value.parts.items():
            object.__setattr__(thawed, name, thaw(item))
        return thawed
    if cls is FrozenArray:
        return foreign.copied(value.held)
    if cls is Opaque:
        return value.value
    if isinstance(value, tuple) and not ATOMS.issuperset(map(type, value)):
        parts = map(thaw, value)
        return type(value)._make(parts) if hasattr(value, "_make") else tuple(parts)
    return value


def same(copied: Any, frozen: Any) -> bool:
    """Say whether a thawed copy still is what was frozen: by identity of atoms, so that 1 and True differ."""
    cls = frozen.__class__
    if copied is frozen or cls is Opaque:
        return True
    if cls is FrozenDict:
        if copied.__class__ is not dict or len(copied) != len(frozen):
            return False
        if frozen.flat == 2:
            return bool(copied == frozen)
        get = frozen.get
        return all(same(item, get(key, ABSENT)) for key, item in copied.items())
    if cls is FrozenList:
        if copied.__class__ is not list or len(copied) != frozen.size:
            return False
        return all(map(is_ if frozen.flat else same, copied, frozen.items))
    return _same_rarely(copied, frozen, cls)


def _same_rarely(copied: Any, frozen: Any, cls: type[Any]) -> bool:
    if cls is FrozenRecord:
        return type(copied) is type(frozen.template) and all(
            same(getattr(copied, name, ABSENT), item) for name, item in frozen.parts.items()
        )
    if cls is FrozenArray:
        return type(copied) is type(frozen.held) and foreign.same_array(copied, frozen.held)
    if cls is FrozenSet:
        return isinstance(copied, set) and copied == frozen
    if isinstance(frozen, tuple):
        return isinstance(copied, cls) and len(copied) == len(frozen) and all(map(same, copied, frozen))
    return type(copied) is cls and bool(copied == frozen)
