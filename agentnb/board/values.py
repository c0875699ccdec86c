"""Values of the blackboard: atoms as they are, everything else frozen, so that past states never change.

`freeze` converts a value to an immutable form that shares its unchanged parts with the previous value; `thaw` returns a
mutable copy for a reader; `is_unchanged` detects whether that copy was changed.
"""

from __future__ import annotations

import copy
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from itertools import islice
from operator import eq, is_
from pathlib import PurePath
from types import NoneType
from typing import Any, Final, Self, SupportsIndex, TypeAlias, TypeVar
from uuid import UUID

from agentnb.board import external_types
from agentnb.board.attributes import drop_cached, read_attributes, set_attributes
from agentnb.bounds import SIZE_LIMIT, Walk
from agentnb.errors import BoardError, Problem, warn_caller, with_article
from agentnb.recipe.user_functions import describe_how_to_run, find_unrun
from agentnb.text import UNREADABLE, Fields, call, get_class_name, safe_repr, show_as


class Absent:
    """The type of ABSENT, the value that means "no such key"; None is an ordinary value."""

    def __new__(cls) -> Self:
        """Return the only instance."""
        instance: Self | None = globals().get("ABSENT")
        return super().__new__(cls) if instance is None else instance

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
_EXPOSED: Final = 256  # items; longer lists that grow keep their items where only their own methods find them
_ATOM_BASES: Final = (Enum, PurePath, datetime, date, time, timedelta, str, int, float, bytes)


# The measures of a frozen value, known without walking over it: its maximum nesting depth; the number of lists,
# mappings and objects in it; this number plus the number of atoms; and whether it contains only lists, mappings and
# atoms whose items can be found by code in C that reads their memory. All include the value itself. A tuple, because it
# is the fastest type to create.
Extent: TypeAlias = tuple[int, int, int, bool]
_ATOM: Final[Extent] = (0, 0, 0, True)


def _refuse(*_: Any, **__: Any) -> Any:
    raise BoardError(
        Problem(
            "B101",
            "this value is on the blackboard and cannot be changed in place",
            "a part of a value read from the board",
            "the board keeps every past state, so its values never change; code in C, such as pydantic's for a field "
            "of type Any, uses the parts of a large value without copying them",
            "pass copy.deepcopy(value) to such code, or return the new value from the node",
        )
    )


class BuiltinLike(type):
    """The metaclass of classes that code reading their MRO takes for the built-in class they derive from.

    PyYAML does this: it represents lists and dicts, and rejects classes derived from them.
    """

    @property
    def __mro__(cls) -> tuple[type, ...]:
        """The method resolution order of the built-in class."""
        return (dict if issubclass(cls, dict) else list).__mro__


class FrozenDict(dict[Any, Any], metaclass=BuiltinLike):
    """An immutable mapping. `flat`: it is thawed to a dict, and has atoms only, none of which has to be thawed.

    `template` is an empty mapping of the class that it is thawed to, such as a `defaultdict`; None for a dict.
    """

    __slots__ = ("extent", "flat", "template")
    flat: bool
    template: Any
    extent: Extent

    __setitem__ = __delitem__ = clear = pop = popitem = setdefault = update = __ior__ = _refuse

    def __reduce_ex__(self, _protocol: SupportsIndex) -> Any:
        return dict, (), None, None, iter(self.items())

    def __copy__(self) -> dict[Any, Any]:
        return {**self}


class FrozenList(list[Any], metaclass=BuiltinLike):
    """The first `size` of `items`, a list that may be shared: appending an item at the tip copies nothing.

    It is a list so that code in C accepts it. Its own memory has the items only once it is part of another value (see
    `expose`); all methods read `items`. `shared`: it has grown out of another list. `loan` has the copies of the items
    that were handed out to readers. `template` is an empty deque if it is thawed to one; None for a list.
    """

    __slots__ = ("extent", "flat", "items", "loan", "shared", "size", "template")

    def __init__(self, items: list[Any], size: int, flat: bool, extent: Extent) -> None:
        self.items, self.size, self.flat, self.extent = items, size, flat, extent
        self.loan: Any = None
        self.template: Any = None
        self.shared = False

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self.items[: self.size][index]
        position = index + self.size if index < 0 else index
        if not 0 <= position < self.size:
            raise IndexError(index)
        return self.items[position]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.items[: self.size])

    def __repr__(self) -> str:
        return repr([*self])  # formatted like the list that it is thawed to, because a reader's copy may contain it

    def __reduce_ex__(self, _protocol: SupportsIndex) -> Any:
        return list, (), None, iter(self)

    __hash__ = None
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = extend = insert = pop = remove = clear = sort = reverse = _refuse

    def expose(self) -> bool:
        """Put the items where code in C looks for them; return False if that code must not see this list.

        The versions of a long, growing list share their items, so none of them has a copy.
        """
        if not self.extent[3] or (self.shared and self.size > _EXPOSED):
            return False
        if self.size and not list.__len__(self):
            list.__setitem__(self, slice(None), self.items[: self.size])
        return True

    def with_item(self, item: Any) -> FrozenList:
        """Return this list with one more frozen item: in place at the tip, otherwise as a copy."""
        items, size, loan = self.items, self.size, self.loan
        flat = self.flat and type(item) in ATOMS
        levels, total, weight, plain = self.extent
        inner, within, more, seen = measure_extent(item)
        extent = max(levels, inner + 1), total + within, weight + 1 + more, plain and seen
        if len(items) <= size or items[size] is not item:
            if len(items) != size:
                items, loan = items[:size], None
            items.append(item)
        grown = FrozenList(items, size + 1, flat, extent)
        grown.loan, grown.shared = loan, True
        return grown if self.template is None else with_template(grown, self.template)

    def replace_items(self, parts: Mapping[int, Any]) -> FrozenList:
        """Return this list with other frozen items at some indexes."""
        items = self.items[: self.size]
        levels, total, weight, plain = self.extent
        for index, part in parts.items():
            old_extent, new_extent = measure_extent(items[index]), measure_extent(part)
            levels, total = max(levels, new_extent[0] + 1), total + new_extent[1] - old_extent[1]
            weight, plain = weight + new_extent[2] - old_extent[2], plain and new_extent[3]
            items[index] = part
        result = FrozenList(items, self.size, ATOMS.issuperset(map(type, items)), (levels, total, weight, plain))
        return result if self.template is None else with_template(result, self.template)


def _wrap_items(name: str) -> Callable[..., Any]:
    method = getattr(list, name)

    def read(self: FrozenList, *args: Any) -> Any:
        return method(self.items[: self.size], *([*right] if type(right) is FrozenList else right for right in args))

    return read


for _name in ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__add__", "__mul__", "__rmul__",
              "__contains__", "__reversed__", "index", "count", "copy", "__copy__"):  # fmt: skip
    setattr(FrozenList, _name, _wrap_items("copy" if _name == "__copy__" else _name))


class FrozenSet(frozenset[Any]):
    """The frozen form of a set; it is thawed to a set."""

    __slots__ = ()

    def __repr__(self) -> str:
        return repr(set(self))


class FrozenRecord:
    """A dataclass or pydantic object: its attributes, and `template`, a private shallow copy used for thawing."""

    __slots__ = ("parts", "template")

    def __init__(self, template: Any, parts: FrozenDict) -> None:
        self.template, self.parts = template, parts

    def __repr__(self) -> str:
        return safe_repr(self, 2000)


class FrozenArray:
    """A numpy array or a pandas object, stored as a private copy."""

    __slots__ = ("array",)

    def __init__(self, held: Any) -> None:
        self.array = held

    def __repr__(self) -> str:
        return f"FrozenArray({get_class_name(self.array)}, shape={self.array.shape})"


class Opaque:
    """Any other object, held by reference: shown as opaque, and not storable."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __repr__(self) -> str:
        return f"<opaque {get_class_name(self.value)}>"


show_as(FrozenList, lambda value: islice(value.items, value.size))
show_as(FrozenRecord, lambda value: Fields(get_class_name(value.template), value.parts.items()))

COPIES: Final[set[type]] = set()  # the classes of readers' copies; `copies` adds them
FROZEN: Final[frozenset[type]] = frozenset({FrozenDict, FrozenList, FrozenSet, FrozenRecord, FrozenArray, Opaque})


def freeze(value: Any, like: Any = ABSENT, walk: Walk | None = None) -> Any:
    """Return an immutable form of `value`; parts equal to those of `like` (the previous value) are shared.

    Objects whose methods or attributes raise when they are read are held by reference like any other object.

    Args:
        walk: the walk over the value that contains this one.

    Raises:
        BoardError: B102, the value contains itself, is nested deeper than 200 or has more than a million lists,
            mappings and objects in it; X468, it is a generator, a coroutine or similar, which has not run.
    """
    cls = type(value)
    if cls in ATOMS:
        return value if like is ABSENT or not is_unchanged(value, like) else like
    if cls in FROZEN:
        if walk is not None:
            include(walk, value)
        return value
    if walk is not None and cls in COPIES:  # an unchanged part
        pristine = getattr(value, "pristine", None)
        if pristine is not None and len(value) == len(pristine):
            include(walk, pristine)
            return pristine
    if cls is dict and like is ABSENT:  # most values that nodes write and tools return are small records of atoms
        flat = make_frozen_dict(value)
        if flat.flat and ATOMS.issuperset(map(type, value)):
            if walk is not None:
                include(walk, flat)
            return flat
    walk = Walk(value) if walk is None else walk
    enter(walk, value)
    freezer = FREEZERS.get(cls)
    if freezer is not None:
        frozen = freezer(value, like, walk)
    else:  # an object of another class counts as two levels: walks over it make that many calls
        walk.depth += 1
        frozen = _freeze_other(value, like, walk)
        walk.depth -= 1
    walk.depth -= 1
    return frozen


def enter(walk: Walk, value: Any) -> None:
    """Count a part of a value that is entered; the caller decrements `walk.depth` when it leaves the part.

    Raises:
        BoardError: B102, the value is too deep or too large.
    """
    why = walk.enter()
    if why:
        raise _make_bounds_error(value, why)


def include(walk: Walk, frozen: Any) -> None:
    """Count a frozen value that becomes part of another one, without walking over it.

    Raises:
        BoardError: B102, the containing value becomes too deep or too large.
    """
    cls = type(frozen)
    extent = frozen.extent if cls is FrozenList or cls is FrozenDict else measure_extent(frozen)
    include_extent(walk, extent[0], extent[1])


def include_extent(walk: Walk, levels: int, total: int) -> None:
    """Count parts of a frozen value: how many levels they have, and how many lists, mappings and objects they are.

    Raises:
        BoardError: B102, the containing value becomes too deep or too large.
    """
    why = walk.include(levels, total)
    if why:
        raise _make_bounds_error(walk.value, why)


def measure_extent(frozen: Any) -> Extent:
    """Return how deep and how large a frozen value is, and whether code in C may see it."""
    cls = type(frozen)
    if cls in ATOMS:
        return _ATOM
    if cls is FrozenDict or cls is FrozenList:
        own: Extent = frozen.extent
        return own if cls is FrozenDict or frozen.expose() else _hide(own)
    if cls is FrozenRecord:
        return _hide(frozen.parts.extent, 1)
    if issubclass(cls, tuple):
        extent = _measure_around(frozen)
        return extent if extent[0] == 1 else _hide(extent)
    if cls is FrozenArray:
        # Code in C finds the wrapper. Copying each array together with the value that contains it would cost too much.
        size = getattr(frozen.array, "size", SIZE_LIMIT)
        return 1, 1, size if type(size) is int else SIZE_LIMIT, True
    return 1, 1, len(frozen) if cls is FrozenSet else 1, cls not in FROZEN


def _hide(extent: Extent, levels: int = 0) -> Extent:
    """Return the extent of a part that code in C must not see, and the levels around it."""
    return extent[0] + levels, extent[1], extent[2], False


def _measure_around(parts: Collection[Any]) -> Extent:
    """Return the extent of a collection of frozen parts."""
    levels, total, weight, plain = 0, 1, 1 + len(parts), True
    for part in parts:
        cls = type(part)
        if cls not in ATOMS:
            inner, within, more, seen = part.extent if cls is FrozenDict else measure_extent(part)
            levels, total, weight, plain = max(levels, inner), total + within, weight + more, plain and seen
    return levels + 1, total, weight, plain


def _make_bounds_error(value: Any, why: str) -> BoardError:
    return BoardError(
        Problem(
            "B102",
            "a value is nested too deeply, or is too large, for the blackboard",
            with_article(get_class_name(value)),
            why,
            "write a flatter or smaller value without cycles",
        )
    )


def make_frozen_dict(parts: Mapping[Any, Any]) -> FrozenDict:
    """Return a FrozenDict of parts that are already frozen."""
    result = FrozenDict(parts)
    result.template = None
    result.flat = ATOMS.issuperset(map(type, parts.values()))
    result.extent = (1, 1, 1 + len(parts), True) if result.flat else _measure_around(parts.values())
    return result


def get_class(value: Any) -> type:
    """Return the class that a frozen value had when it was written."""
    cls = type(value)
    if cls is FrozenDict or cls is FrozenList:
        return type(value.template) if value.template is not None else dict if cls is FrozenDict else list
    if cls is FrozenSet:
        return set
    source = {FrozenRecord: "template", FrozenArray: "array", Opaque: "value"}.get(cls)
    return cls if source is None else type(getattr(value, source))


FrozenCollection = TypeVar("FrozenCollection", FrozenDict, FrozenList)


def with_template(frozen: FrozenCollection, template: Any) -> FrozenCollection:
    """Make a new frozen collection one that is thawed to the class of an empty `template`; return it."""
    frozen.template, frozen.flat, frozen.extent = template, False, _hide(frozen.extent)
    return frozen


def make_frozen_pairs(names: Iterable[str], values: Sequence[Any], frozen: Callable[[Any], Any]) -> FrozenDict:
    """Return a FrozenDict of names and their values; `frozen` freezes the values that are not atoms."""
    parts = [value if type(value) in ATOMS else frozen(value) for value in values]
    return make_frozen_dict(dict(zip(names, parts, strict=True)))


def make_frozen_list(items: list[Any]) -> FrozenList:
    """Return a FrozenList that owns `items`, which are already frozen."""
    flat = ATOMS.issuperset(map(type, items))
    return FrozenList(items, len(items), flat, (1, 1, 1 + len(items), True) if flat else _measure_around(items))


def freeze_dict(value: Mapping[Any, Any], like: Any, walk: Walk) -> FrozenDict:
    """Freeze a mapping part by part; see `freeze`."""
    if not ATOMS.issuperset(map(type, value)):
        _check_members((key for key in value if issubclass(type(key), tuple | frozenset)), walk)
    if type(like) is not FrozenDict or like.template is not None:
        return make_frozen_dict({key: freeze(item, ABSENT, walk) for key, item in value.items()})
    get_old = like.get
    parts = {key: freeze(item, get_old(key, ABSENT), walk) for key, item in value.items()}
    if len(parts) == len(like) and all(map(is_, parts.values(), like.values())) and _are_same_keys(parts, like):
        return like
    return make_frozen_dict(parts)


def freeze_list(value: list[Any], like: Any, walk: Walk) -> FrozenList:
    """Freeze a list item by item; see `freeze`."""
    if type(like) is not FrozenList or like.template is not None:
        if ATOMS.issuperset(map(type, value)):
            return make_frozen_list(value[:])
        return make_frozen_list([freeze(item, ABSENT, walk) for item in value])
    same = _count_shared_prefix(value, like)
    tail = like.items[same : like.size]
    if tail and ATOMS.issuperset(map(type, value)):
        return like if is_unchanged(value, like) else make_frozen_list(value[:])
    levels, total, weight, plain = like.extent
    removed = _measure_around(tail)
    total, weight = total - removed[1] + 1, weight - removed[2] + 1  # of the items that are kept
    if not same:
        levels, plain = 1, True
    include_extent(walk, levels - 1, total - 1)
    rest = [freeze(item, was, walk) for item, was in zip(value[same:], tail, strict=False)]
    if len(rest) == len(tail) and all(map(is_, rest, tail)):
        grown = like
        for item in value[like.size :]:
            grown = grown.with_item(freeze(item, ABSENT, walk))
        return grown
    rest.extend(freeze(item, ABSENT, walk) for item in value[same + len(rest) :])
    around = _measure_around(rest)
    items = [*like.items[:same], *rest]
    flat = ATOMS.issuperset(map(type, items))
    extent = max(levels, around[0]), total + around[1] - 1, weight + around[2] - 1, plain and around[3]
    return FrozenList(items, len(items), flat, extent)


def _count_shared_prefix(value: list[Any], like: FrozenList) -> int:
    """Return how many of the first items are those of `like` or, by a quick check, unchanged copies of them."""
    same = 0 if like.loan is None else like.loan.shared_prefix(value, like.size)
    return same or find_first_difference(value, like.items, like.size)


def find_first_difference(left: list[Any], right: list[Any], size: int) -> int:
    """Return how many of the first items of two lists, at most `size`, are the same objects."""
    return min([*map(is_, left, right), False].index(False), size)


def _freeze_tuple(value: tuple[Any, ...], like: Any, walk: Walk) -> tuple[Any, ...]:
    """Freeze a tuple of any class item by item, without calling its own methods."""
    items = tuple(tuple.__iter__(value))
    if ATOMS.issuperset(map(type, items)):
        return like if is_unchanged(value, like) else value
    old_parts = tuple(tuple.__iter__(like)) if issubclass(type(like), tuple) else ()
    if len(old_parts) != len(items):
        old_parts = (ABSENT,) * len(items)
    parts = [freeze(item, was, walk) for item, was in zip(items, old_parts, strict=True)]
    frozen = rebuild_tuple(type(value), parts)
    return like if type(like) is type(frozen) and all(map(is_, parts, old_parts)) else frozen


def _freeze_set(value: Iterable[Any], like: Any, walk: Walk) -> FrozenSet:
    frozen = FrozenSet(value)
    _check_members(frozenset.__iter__(frozen), walk)
    return like if type(like) is FrozenSet and _are_same_sets(like, frozen) else frozen


def _freeze_frozenset(value: frozenset[Any], like: Any, walk: Walk) -> frozenset[Any]:
    _check_members(frozenset.__iter__(value), walk)
    return like if is_unchanged(value, like) else value


def _check_members(value: Iterable[Any], walk: Walk) -> None:
    """Check that keys or members of a set, which are immutable, are within the same bounds as other values."""
    for member in value:
        if type(member) not in ATOMS:
            freeze(member, ABSENT, walk)


def _are_equal(left: Any, right: Any) -> bool:
    return are_equal(eq, left, right)


def _are_same_keys(left: Collection[Any], right: Collection[Any]) -> bool:
    """Return True if two mappings have the same keys in the same order; 1 and True differ."""
    if len(left) != len(right):
        return False
    if all(map(is_, left, right)):
        return True
    return _are_equal([*left], [*right]) and all(map(is_, map(type, left), map(type, right)))


def _are_same_sets(left: Collection[Any], right: Collection[Any]) -> bool:
    """Return True if two sets have the same members; 1 and True differ."""
    if not _are_equal(left, right):
        return False
    types = {*map(type, left)}
    if len(types) > 1:
        return _are_equal({(type(member), member) for member in left}, {(type(member), member) for member in right})
    return types == {*map(type, right)}


def are_equal(compare: Callable[[Any, Any], Any], left: Any, right: Any) -> bool:
    """Return True if two collections are equal by `compare`; False if comparing their parts raises."""
    try:
        return bool(compare(left, right))
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001  (user code)
        return False


def _freeze_record(value: Any, attributes: dict[str, Any], like: Any, walk: Walk) -> Any:
    template = call(copy.copy, value)
    if template is UNREADABLE or any(item is UNREADABLE for item in attributes.values()):
        return _freeze_by_reference(value, like)
    if template is not value:  # a copy shares the objects in cached properties
        drop_cached(template, attributes)
    old_parts = like.parts if type(like) is FrozenRecord and type(like.template) is type(value) else ABSENT
    parts = freeze_dict(attributes, old_parts, walk)
    return like if parts is old_parts else FrozenRecord(template, parts)


def _freeze_mapping(value: Mapping[Any, Any], like: Any, walk: Walk) -> Any:
    items = to_items(value)
    if items is UNREADABLE:
        return _freeze_by_reference(value, like)
    if issubclass(type(value), dict):
        return _freeze_with_template(value, items, like, walk)
    return freeze_dict(items, like, walk)


def _freeze_with_template(value: Any, items: Any, like: Any, walk: Walk) -> Any:
    """Freeze a collection of another class than dict and list, which it is thawed to."""
    is_dict = type(items) is dict
    same: Any = ABSENT
    if type(like) is (FrozenDict if is_dict else FrozenList) and type(like.template) is type(value):
        if is_unchanged(value, like):
            return like
        same = make_frozen_dict(like) if type(like) is FrozenDict else make_frozen_list([*like])
    frozen: Any = freeze_dict(items, same, walk) if is_dict else freeze_list(items, same, walk)
    template = call(_make_empty, value)
    return frozen if template is UNREADABLE else with_template(frozen, template)


def _make_empty(value: Any) -> Any:
    """Return an empty collection of the class of another one, with its attributes."""
    empty = copy.copy(value)
    (OrderedDict if isinstance(empty, OrderedDict) else dict if isinstance(empty, dict) else deque).clear(empty)
    return empty


def fill_collection(template: Any, items: Any) -> Any:
    """Return a copy of an empty collection with these items; its own methods are not called."""
    filled = copy.copy(template)
    if isinstance(filled, deque):
        deque.extend(filled, items)
    else:
        (OrderedDict if isinstance(filled, OrderedDict) else dict).update(filled, items)
    return filled


def to_items(value: Mapping[Any, Any]) -> Any:
    """Return the items of a mapping of any class as a dict; UNREADABLE if its methods raise.

    Raises:
        BoardError: B102, it has more than a million keys, or is infinite.
    """
    pairs = call(lambda: list(islice(value.items(), SIZE_LIMIT + 1)))
    if pairs is not UNREADABLE and len(pairs) > SIZE_LIMIT:
        raise _make_bounds_error(value, f"it has more than {SIZE_LIMIT:,} keys")
    return pairs if pairs is UNREADABLE else call(dict, pairs)


def _freeze_other(value: Any, like: Any, walk: Walk) -> Any:
    # The type is checked with `type`: `isinstance` reads `__class__`, which may be code that raises.
    cls = type(value)
    if issubclass(cls, _ATOM_BASES) or external_types.is_scalar(value) or external_types.is_scalar_of_pandas(value):
        return like if is_unchanged(value, like) else value
    if issubclass(cls, Mapping):
        return _freeze_mapping(value, like, walk)
    if issubclass(cls, list | tuple | set | frozenset):
        return _freeze_collection(value, cls, like, walk)
    if issubclass(cls, deque):
        return _freeze_with_template(value, [*deque.__iter__(value)], like, walk)
    attributes = read_attributes(value)
    if attributes is not None:
        return _freeze_record(value, attributes, like, walk)
    if external_types.is_array(value):
        if type(like) is FrozenArray and external_types.are_same_arrays(value, like.array):
            return like
        return FrozenArray(external_types.copy_array(value, lambda cell: thaw(freeze(cell, ABSENT, walk))))
    return _freeze_by_reference(value, like)


def _freeze_collection(value: Any, cls: Any, like: Any, walk: Walk) -> Any:
    """Freeze a collection of a user's class by its contents, without calling its own methods."""
    if issubclass(cls, list):
        return freeze_list(list(list.__iter__(value)), like, walk)
    if issubclass(cls, set):
        return _freeze_set(set.__iter__(value), like, walk)
    if issubclass(cls, frozenset):
        return _freeze_frozenset(value, like, walk)
    return _freeze_tuple(value, like, walk)


def rebuild_tuple(cls: type, parts: Iterable[Any]) -> tuple[Any, ...]:
    """Return a tuple with other parts: a named tuple keeps its class (none of its code runs), any other becomes plain.

    Args:
        cls: the class of the original tuple.
    """
    return tuple.__new__(cls, parts) if is_named_tuple(cls) else tuple(parts)


def is_named_tuple(cls: type) -> bool:
    """Return True for a class made by `collections.namedtuple` or `typing.NamedTuple`, or derived from one."""
    return issubclass(cls, tuple) and any(type(vars(base).get("_fields")) is tuple for base in cls.__mro__)


def _freeze_by_reference(value: Any, like: Any) -> Opaque:
    if type(like) is Opaque and like.value is value:
        return like
    if (what := find_unrun(value)) is not None:
        raise BoardError(
            Problem(
                "X468",
                f"{what} was returned, which has not run",
                "a value for the blackboard",
                "the board keeps values, and each reader would find this one in another state",
                describe_how_to_run(value),
            )
        )
    _warn_opaque(type(value))
    return Opaque(value)


FREEZERS: Final[dict[type, Callable[[Any, Any, Walk], Any]]] = {
    dict: freeze_dict,
    list: freeze_list,
    tuple: _freeze_tuple,
    set: _freeze_set,
    frozenset: _freeze_frozenset,
}
_WARNED: set[type] = set()


def _warn_opaque(cls: type) -> None:
    if cls in _WARNED:
        return
    _WARNED.add(cls)
    warn_caller(
        f"a {cls.__module__}.{cls.__qualname__} is on the board by reference (opaque): "
        "going back does not undo changes made inside it, and it cannot be stored"
    )


def thaw(value: Any) -> Any:
    """Return a copy that its reader may change: dict, list, set and objects as they were written."""
    cls = type(value)
    if cls in ATOMS:
        return value
    if cls is FrozenDict:
        if value.flat:
            return {**value}
        parts = {key: thaw(item) for key, item in value.items()}
        return parts if value.template is None else fill_collection(value.template, parts)
    if cls is FrozenList:
        items = value.items[: value.size]
        if value.flat:
            return items
        # `{**item}` copies twice as fast as `dict(item)`, and a list of messages is read in every step.
        items = [{**item} if type(item) is FrozenDict and item.flat else thaw(item) for item in items]
        return items if value.template is None else fill_collection(value.template, items)
    if cls is FrozenSet:
        return set(value)
    if cls is FrozenRecord:
        thawed = copy.copy(value.template)
        set_attributes(thawed, {name: thaw(item) for name, item in value.parts.items()})
        return thawed
    if cls is FrozenArray:
        return external_types.copy_array(value.array, lambda cell: thaw(freeze(cell)))
    if cls is Opaque:
        return value.value
    if issubclass(cls, tuple) and not ATOMS.issuperset(map(type, tuple.__iter__(value))):
        return rebuild_tuple(cls, map(thaw, tuple.__iter__(value)))
    return value


def is_unchanged(copied: Any, frozen: Any) -> bool:
    """Return True if a thawed or loaned copy is unchanged.

    Atoms are compared with their types, because 1 and True differ.
    """
    cls = type(frozen)
    if copied is frozen:
        return True
    if cls is Opaque:
        return copied is frozen.value
    if type(copied) in COPIES:
        return freeze(copied, frozen) is frozen
    if cls in ATOMS:  # they may be equal and still differ: 0.0 and -0.0, Decimal("1.0") and Decimal("1.00")
        return type(copied) is cls and bool(copied == frozen) and (cls is str or repr(copied) == repr(frozen))
    if cls is FrozenDict:
        kind = dict if frozen.template is None else type(frozen.template)
        if type(copied) is not kind or len(copied) != len(frozen):
            return False
        return _are_same_keys(copied, frozen) and all(map(is_unchanged, copied.values(), frozen.values()))
    if cls is FrozenList:
        if (
            type(copied) is not (list if frozen.template is None else type(frozen.template))
            or len(copied) != frozen.size
        ):
            return False
        return all(map(is_, copied, frozen.items)) or all(map(is_unchanged, copied, frozen.items))
    return _is_other_unchanged(copied, frozen, cls)


def are_alike(left: Any, right: Any) -> bool:
    """Return True if two frozen values are equal; 1 and True differ, and so do mappings in another order.

    Parts that two versions of a value share are the same objects, which are not compared.
    """
    if left is right:
        return True
    cls = type(left)
    if cls is not type(right):
        return False
    if cls in (FrozenDict, FrozenList) and type(left.template) is not type(right.template):
        return False
    if cls is FrozenDict:
        return _are_same_keys(left, right) and all(map(are_alike, left.values(), right.values()))
    if cls is FrozenList:
        size = left.size
        return size == right.size and all(map(are_alike, left.items[:size], right.items[:size]))
    if cls is FrozenRecord:
        return type(left.template) is type(right.template) and are_alike(left.parts, right.parts)
    return is_unchanged(thaw(left), right)


def is_truthy(value: Any) -> bool:
    """Return True if a value of unknown origin is truthy, or if that cannot be determined, as for an array.

    Example:
        >>> is_truthy(""), is_truthy(0), is_truthy("no")
        (False, False, True)
    """
    try:
        return bool(value)
    except Exception:  # noqa: BLE001  (an array of several items, or user code: there is a value)
        return True


def _is_other_unchanged(copied: Any, frozen: Any, cls: type[Any]) -> bool:
    if cls is FrozenRecord:
        current = read_attributes(copied) if type(copied) is type(frozen.template) else None
        return (
            current is not None
            and current.keys() == frozen.parts.keys()
            and all(is_unchanged(current[name], item) for name, item in frozen.parts.items())
        )
    if cls is FrozenArray:
        return type(copied) is type(frozen.array) and external_types.are_same_arrays(copied, frozen.array)
    if cls is FrozenSet:
        return issubclass(type(copied), set) and _are_same_sets(copied, frozen)
    if cls is frozenset:
        return type(copied) is cls and _are_same_sets(copied, frozen)
    if issubclass(cls, tuple):
        if type(copied) is not cls or tuple.__len__(copied) != tuple.__len__(frozen):
            return False
        return all(map(is_unchanged, tuple.__iter__(copied), tuple.__iter__(frozen)))
    return type(copied) is cls and _are_equal(copied, frozen) and call(repr, copied) == call(repr, frozen)
