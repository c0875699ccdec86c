"""Lazy copies of board values: lists and dicts that copy a part when it is read, and record whether they were changed.

A node may change what it reads, so it receives a copy. The copies are real lists and dicts whose parts remain frozen
until they are accessed. Reading therefore costs only what is accessed, and `freeze` returns the original frozen value
of an unchanged copy without a comparison.

Iterating over a list of mappings copies all of them. These copies are cached (see `ItemCopies`) and reused for the next
reader, except those that were changed or are still referenced; references are counted with `sys.getrefcount`.
"""

from __future__ import annotations

import platform
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from threading import RLock
from typing import Any, ClassVar, Final, SupportsIndex
from weakref import ref

from agentnb.board.values import (
    ABSENT,
    ATOMS,
    COPIES,
    FREEZERS,
    FROZEN,
    BuiltinLike,
    FrozenDict,
    FrozenList,
    are_equal,
    find_first_difference,
    freeze,
    freeze_dict,
    freeze_list,
    include_extent,
    is_unchanged,
    make_frozen_dict,
    measure_extent,
    thaw,
)
from agentnb.bounds import Walk

_CACHED_LOANS: Final = 16  # lists whose copies are cached, in the whole process
SMALL = 64  # lists, mappings and atoms in a value; values up to this size are copied eagerly
_lock: Final = RLock()  # the threads of a node may read a copy concurrently


def make_reader_copy(value: Any) -> Any:
    """Return a copy of a frozen value that its reader may change.

    A small value is copied at once, to plain lists and dicts; parts of a large one are copied when they are read.
    """
    cls = type(value)
    if (cls is FrozenDict or cls is FrozenList) and value.template is None and value.extent[2] > SMALL:
        return _copy_of(value)
    return thaw(value)


def _copy_of(value: Any) -> Any:
    """Return a copy of a frozen value that copies its parts when they are read."""
    cls = type(value)
    if (cls is not FrozenDict and cls is not FrozenList) or value.template is not None:
        return thaw(value)
    return _make_dict(value) if cls is FrozenDict else _list_of(value)


def _make_dict(frozen: FrozenDict, changes: Changes | None = None) -> Any:
    copied = _new_dict(CopiedDict if frozen.flat else LazyDict)
    _fill_dict(copied, frozen)
    if not frozen.flat:
        copied.opened = None
    copied.source = copied.pristine = frozen
    copied.changes = changes
    if not frozen.extent[3]:
        copied.open_hidden(frozen.items())
    return copied


def _list_of(frozen: FrozenList) -> Any:
    copied = _new_list(CopiedList if frozen.flat else LazyList)
    if not frozen.flat:
        copied.opened = copied.changes = copied.mark = None
        copied.is_fully_copied = False
    copied.source = frozen
    if frozen.loan is not None and frozen.loan.expected and _take_cached_copies(copied, frozen):
        frozen.loan.expected = False
        copied.is_fully_copied = True
        return copied
    _fill_list(copied, frozen.items if len(frozen.items) == frozen.size else frozen.items[: frozen.size])
    if not frozen.extent[3]:
        copied.open_hidden(enumerate(frozen))
    return copied


def _is_cold(part: Any) -> bool:
    """Return True for a part of a copy that may still be the frozen one."""
    cls = type(part)
    return cls in FROZEN or (issubclass(cls, tuple) and not ATOMS.issuperset(map(type, tuple.__iter__(part))))


class Changes:
    """Detects changes in a group of copies: `mark` is replaced by a new object at the first change of each copy.

    A mapping counts as changed once one of its mutable parts was returned.
    """

    __slots__ = ("mark",)

    def __init__(self) -> None:
        self.mark = object()


class CopiedDict(dict[Any, Any], metaclass=BuiltinLike):
    """A reader's copy of a mapping of atoms.

    `source` is the frozen value it was copied from; None once the reader has set or removed a key. `pristine` is the
    same, but also None once a mutable part was returned. `comparison` is replaced by a new object whenever a copy is
    compared.
    """

    __slots__ = ("changes", "pristine", "source")
    comparison: ClassVar[object] = None
    source: FrozenDict | None
    pristine: FrozenDict | None
    changes: Changes | None

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Return a plain dict: code that calls the type of a copy gets a plain dict."""
        return dict(*args, **kwargs)

    def __reduce_ex__(self, _protocol: SupportsIndex) -> Any:
        return dict, (), None, None, iter(self.items())

    def __eq__(self, other: object) -> bool:
        CopiedDict.comparison = object()
        return dict.__eq__(self, other)

    __hash__ = None

    def _touch(self) -> None:
        if self.pristine is not None:
            self.pristine = None
            if self.changes is not None:
                self.changes.mark = object()

    def _note_change(self) -> None:
        self._touch()
        self.source = None

    def pop(self, key: Any, *default: Any) -> Any:
        """Remove a key and return its value, as a dict does."""
        if key not in self:
            return dict.pop(self, key, *default)
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[Any, Any]:
        """Remove the last key and return it with its value, as a dict does."""
        if not self:
            return dict.popitem(self)
        key = next(reversed(self))
        return key, self.pop(key)

    def setdefault(self, key: Any, default: Any = None) -> Any:
        """Return the value of a key, set to the default if it is missing, as a dict does."""
        if key not in self:
            self[key] = default
        return self[key]

    def copy(self) -> dict[Any, Any]:
        """Return a plain dict of the same values."""
        return {**self}


class LazyDict(CopiedDict):
    """A reader's copy of a mapping that contains lists, mappings or objects, which are copied when read.

    `opened` holds the copied parts by key: the copy and the frozen part.
    """

    __slots__ = ("opened",)
    opened: dict[Any, tuple[Any, Any]] | None

    def _open(self, key: Any) -> Any:
        """Return the copy of a part, creating it at the first access."""
        with _lock:
            part = dict.__getitem__(self, key)
            opened = self.opened
            if opened is None:
                opened = self.opened = {}
            if not _is_cold(part) or (key in opened and opened[key][0] is part):
                return part
            copied = _copy_of(part)
            opened[key] = copied, part
            self._touch()
            dict.__setitem__(self, key, copied)
            return copied

    def open_hidden(self, parts: Iterable[tuple[Any, Any]]) -> None:
        """Copy the parts whose frozen form must not be visible to code in C."""
        for key, part in parts:
            if not measure_extent(part)[3]:
                self._open(key)

    def _open_all(self) -> None:
        for key, part in [*dict.items(self)]:
            if type(part) not in ATOMS and _is_cold(part):
                self._open(key)

    def __getitem__(self, key: Any) -> Any:
        part = dict.__getitem__(self, key)
        return part if type(part) in ATOMS or not _is_cold(part) else self._open(key)

    def get(self, key: Any, default: Any = None) -> Any:
        """Return the value of a key, or the default, as a dict does."""
        part = dict.get(self, key, default)
        return part if type(part) in ATOMS or key not in self else self[key]

    def __iter__(self) -> Iterator[Any]:  # so that `{**copied}` and `dict(copied)` read the parts one by one
        return dict.__iter__(self)

    def values(self) -> Any:
        """Return the view of the values, all of them copies."""
        self._open_all()
        return dict.values(self)

    def items(self) -> Any:
        """Return the view of the keys and values, all of them copies."""
        self._open_all()
        return dict.items(self)

    def __eq__(self, other: object) -> bool:
        self._open_all()
        return CopiedDict.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        self._open_all()
        return dict.__ne__(self, other)

    def __or__(self, other: Any) -> Any:
        return {**self} | other if isinstance(other, dict) else NotImplemented

    def __ror__(self, other: Any) -> Any:
        return other | {**self} if isinstance(other, dict) else NotImplemented

    __hash__ = None


class CopiedList(list[Any], metaclass=BuiltinLike):
    """A reader's copy of a list of atoms.

    `source` is the frozen value it was copied from; None once items were replaced, moved or removed. Items added at the
    end do not count: the list is then longer than its source.
    """

    __slots__ = ("source",)
    source: FrozenList | None

    def __new__(cls, *args: Any) -> Any:
        """Return a plain list: code that calls the type of a copy gets a plain list."""
        return list(*args)

    def __reduce_ex__(self, _protocol: SupportsIndex) -> Any:
        return list, (), None, iter(self)

    def _note_change(self) -> None:
        self.source = None

    def copy(self) -> list[Any]:
        """Return a plain list of the same items."""
        return [*self]


class LazyList(CopiedList):
    """A reader's copy of a list that contains lists, mappings or objects, which are copied when read.

    `opened` maps the index of each item that was copied or set individually to the copy and the frozen item. Once
    `is_fully_copied`, all items are copies; if they come from a loan, `changes` tells whether one was changed since
    `mark`.
    """

    __slots__ = ("changes", "is_fully_copied", "mark", "opened")
    opened: dict[int, tuple[Any, Any]] | None
    changes: Changes | None
    mark: object | None
    is_fully_copied: bool

    def _open(self, index: int) -> Any:
        """Return the copy of an item, creating it at the first access."""
        with _lock:
            part = list.__getitem__(self, index)
            opened = self.opened
            if opened is None:
                opened = self.opened = {}
            if self.is_fully_copied or not _is_cold(part) or (index in opened and opened[index][0] is part):
                return part
            copied = _copy_of(part)
            opened[index] = copied, part
            list.__setitem__(self, index, copied)
            return copied

    open_hidden = LazyDict.open_hidden

    def _open_all(self) -> None:
        source = self.source
        if source is None:
            return
        if self.is_fully_copied:
            if source.loan is not None:
                source.loan.expected = True
            return
        with _lock:
            if self.is_fully_copied:
                return
            if not _take_cached_copies(self, source):
                for index, part in enumerate(list.__iter__(self)):
                    if type(part) not in ATOMS and _is_cold(part):
                        self._open(index)
            self.is_fully_copied = True

    def _note_change(self) -> None:
        self._open_all()
        self.source = None

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            self._open_all()
            return list.__getitem__(self, index)
        part = list.__getitem__(self, index)
        if self.is_fully_copied or type(part) in ATOMS or not _is_cold(part):
            return part
        position: int = index.__index__()
        return self._open(position if position >= 0 else position + len(self))

    def __setitem__(self, index: Any, value: Any) -> None:
        source = self.source
        if source is None or isinstance(index, slice):
            CopiedList.__setitem__(self, index, value)
            return
        list.__setitem__(self, index, value)
        position: int = index.__index__()
        position = position if position >= 0 else position + len(self)
        if position < source.size:
            if self.opened is None:
                self.opened = {}
            self.opened[position] = value, source.items[position]

    def extend(self, items: Iterable[Any]) -> None:
        """Add items at the end, as a list does."""
        if items is self:
            self._open_all()
        list.extend(self, items)

    def __add__(self, other: Any) -> Any:
        self._open_all()
        return (
            list.__add__(self, other if type(other) is list else [*other])
            if isinstance(other, list)
            else NotImplemented
        )

    def __radd__(self, other: Any) -> Any:
        return [*other, *self] if isinstance(other, list) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # as a list


def _wrap_reading(method: Callable[..., Any]) -> Callable[..., Any]:
    def read(self: LazyList, *args: Any, **kwargs: Any) -> Any:
        self._open_all()
        return method(self, *args, **kwargs)

    return read


def _wrap_changing(method: Callable[..., Any]) -> Callable[..., Any]:
    def change(self: Any, *args: Any, **kwargs: Any) -> Any:
        self._note_change()
        return method(self, *args, **kwargs)

    return change


def _add_in_place(self: CopiedList, items: Iterable[Any]) -> CopiedList:
    self.extend(items)
    return self


_READ: Final = ("__iter__", "__reversed__", "__contains__", "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__",
                "__mul__", "__rmul__", "index", "count")  # fmt: skip
_CHANGE: Final = ("__setitem__", "__delitem__", "__imul__", "insert", "pop", "remove", "sort", "reverse", "clear")
for _name in _READ:
    setattr(LazyList, _name, _wrap_reading(getattr(list, _name)))
for _name, _method in (*((name, _wrap_changing(getattr(list, name))) for name in _CHANGE), ("__iadd__", _add_in_place)):
    setattr(CopiedList, _name, _method)
for _name in ("__setitem__", "__delitem__", "__ior__", "update", "clear"):
    setattr(CopiedDict, _name, _wrap_changing(getattr(dict, _name)))

_new_dict: Final[Callable[[Any], Any]] = dict.__new__
_new_list: Final[Callable[[Any], Any]] = list.__new__
_fill_dict: Final = dict.update
_fill_list: Final = list.extend


# -- reused copies -------------------------------------------------------------------------------------------------


class ItemCopies:
    """The cached copies of a list's items: `copies[n]` is the copy of item n.

    Versions of a list that share their items share their loan. All copies were pristine at `mark`, a mark of `changes`.
    `usable` is False if an item is not a mapping. `expected` is True if the last reader read all items, so the next one
    probably will, too.
    """

    __slots__ = ("__weakref__", "changes", "copies", "expected", "mark", "usable")

    def __init__(self) -> None:
        self.copies: list[Any] = []
        self.changes = Changes()
        self.mark = self.changes.mark
        self.usable = True
        self.expected = False

    def shared_prefix(self, value: list[Any], size: int) -> int:
        """Return how many of the first `size` items of a list are copies of this loan; 0 if one was changed."""
        if self.mark is not self.changes.mark:
            return 0
        copies = self.copies
        if len(copies) == size <= len(value):
            with _lock:
                # `==` of lists compares only items that are not identical: if it has compared none, all are. The lists
                # must have the same length; this is faster than copying two, or than a search for a difference.
                old_comparison = CopiedDict.comparison
                copies.extend(value[size:])
                try:
                    same = are_equal(list.__eq__, copies, value) and CopiedDict.comparison is old_comparison
                finally:
                    del copies[size:]
            if same:
                return size
        return find_first_difference(value, copies, size)


_loans: Final[deque[ref[ItemCopies]]] = deque()


def _count_of_one() -> int:
    """Return the `sys.getrefcount` of a copy that is referenced only by its loan and by one reader's list.

    0 on interpreters without exact reference counts; each reader then receives new copies.
    """
    if platform.python_implementation() != "CPython" or not getattr(sys, "_is_gil_enabled", lambda: True)():
        return 0
    copies: list[Any] = [{}]
    return sum(map(sys.getrefcount, copies[:]))


_HELD_ONCE: Final = _count_of_one()


def _take_cached_copies(reader: LazyList, source: FrozenList) -> bool:
    """Fill a reader's copy with unreferenced cached copies; return False if an item is not a mapping."""
    loan: ItemCopies | None = source.loan
    if loan is None:
        loan = source.loan = ItemCopies()
        _remember(loan)
    loan.expected = True
    copies, items, size = loan.copies, source.items, source.size
    if loan.usable and len(copies) < size:
        added = items[len(copies) : size]
        loan.usable = {*map(type, added)} == {FrozenDict} and all(item.template is None for item in added)
        if loan.usable:
            copies.extend([_make_dict(item, loan.changes) for item in added])
    if not loan.usable:
        copies.clear()
        return False
    mark = loan.changes.mark
    list.__setitem__(reader, slice(size), copies if len(copies) == size else copies[:size])
    if loan.mark is not mark or sum(map(sys.getrefcount, _iter_items(reader, size))) != _HELD_ONCE * size:
        counts = [*map(sys.getrefcount, _iter_items(reader, size))]
        for index, (count, item) in enumerate(zip(counts, items, strict=False)):
            if count > _HELD_ONCE or copies[index].pristine is not item:
                copies[index] = copied = _make_dict(item, loan.changes)
                list.__setitem__(reader, index, copied)
        if size == len(copies):
            loan.mark = mark
    for index, (copied, _) in (reader.opened or {}).items():
        list.__setitem__(reader, index, copied)
    reader.changes, reader.mark = loan.changes, mark
    return True


def _iter_items(reader: list[Any], size: int) -> Iterator[Any]:
    items = list.__iter__(reader)
    return items if list.__len__(reader) == size else islice(items, size)


def _remember(loan: ItemCopies) -> None:
    """Add a loan to the cache; if the cache is full, drop the copies of the oldest loan."""
    _loans.append(ref(loan))
    while len(_loans) > _CACHED_LOANS:
        oldest = _loans.popleft()()
        if oldest is not None:
            oldest.copies = []


def seems_unchanged(copied: Any, frozen: Any) -> bool:
    """Return True if a copy is unchanged, without checking the objects of a long list that was read as a whole.

    Comparing them would cost as much as reading them.
    """
    if type(copied) is LazyList and copied.is_fully_copied and copied.changes is None:
        return copied.source is not None and copied.source is frozen and list.__len__(copied) == copied.source.size
    return is_unchanged(copied, frozen)


# -- freezing a copy -------------------------------------------------------------------------------------------------


def _freeze_dict_copy(value: CopiedDict, like: Any, walk: Walk) -> FrozenDict:
    source = value.source
    if source is None or dict.__len__(value) != len(source):
        return freeze_dict(dict.copy(value), like, walk)
    opened = value.opened if isinstance(value, LazyDict) else None
    changed = _freeze_opened_parts(source, opened or {}, walk)
    return make_frozen_dict({**source, **changed}) if changed else source


def _freeze_list_copy(value: CopiedList, like: Any, walk: Walk) -> FrozenList:
    source = value.source
    if source is None or not _begins_with(value, source):
        return freeze_list(list.copy(value), like, walk)
    opened: dict[int, tuple[Any, Any]] = {}
    if isinstance(value, LazyList):
        opened |= value.opened or {}
        if value.changes is not None and value.changes.mark is not value.mark:
            for index, (copied, was) in enumerate(
                zip(list.__getitem__(value, slice(source.size)), source.items, strict=False)
            ):
                if index not in opened and copied.pristine is not was:
                    opened[index] = copied, was
    changed = _freeze_opened_parts(source, opened, walk)
    frozen = source.replace_items(changed) if changed else source
    for item in list.__getitem__(value, slice(source.size, None)):
        frozen = frozen.with_item(freeze(item, ABSENT, walk))
    return frozen


def _freeze_opened_parts(
    source: FrozenDict | FrozenList, opened: Mapping[Any, tuple[Any, Any]], walk: Walk
) -> dict[Any, Any]:
    """Return, by key or index, the frozen forms of the opened parts that have changed; count all parts of the value."""
    levels, total, *_ = source.extent
    changed = {}
    for key, (copied, was) in opened.items():
        total -= measure_extent(was)[1]
        frozen = freeze(copied, was, walk)
        if frozen is not was:
            changed[key] = frozen
    include_extent(walk, levels - 1, total - 1)
    return changed


def _begins_with(value: CopiedList, source: FrozenList) -> bool:
    """Return True if the first items are unchanged; code in C, such as `heapq`, does not call the list's methods."""
    size = source.size
    if list.__len__(value) < size:
        return False
    if isinstance(value, LazyList) and value.changes is not None:
        return True  # mappings cannot be ordered, so code in C cannot sort them
    expected = source.items
    if isinstance(value, LazyList) and value.opened:
        expected = expected[:size]
        for index, (copied, _) in value.opened.items():
            expected[index] = copied
    elif len(expected) != size:
        expected = expected[:size]
    prefix = value if list.__len__(value) == size else list.__getitem__(value, slice(size))
    return are_equal(list.__eq__, prefix, expected)


for _cls in (CopiedDict, LazyDict):
    FREEZERS[_cls] = _freeze_dict_copy
for _cls in (CopiedList, LazyList):
    FREEZERS[_cls] = _freeze_list_copy
COPIES.update((CopiedDict, LazyDict, CopiedList, LazyList))
