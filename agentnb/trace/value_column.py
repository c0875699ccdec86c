"""A pandas extension array for blackboard values: Python values of any type, created on first access.

Until something is written into it, a ValueArray is a source and row numbers; take, slice, copy and concat change only
the numbers, so that a million values that are never read cost nothing. After a write it is an array of objects.

Its dtype is `value`, whatever the values are, so that the schema of a table does not depend on its rows. A cell is the
Python value; `.astype(object)` returns a column of objects. In Arrow, Parquet and Feather each value is its JSON text,
and a database receives collections as JSON text too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol, Self

import numpy as np
import pandas as pd
from pandas.api.extensions import ExtensionArray, ExtensionDtype, register_extension_dtype, take
from pandas.api.indexers import check_array_indexer

from agentnb.board.codec import is_stored_unchanged
from agentnb.board.masking import find_secret_word, to_display
from agentnb.board.values import ABSENT, freeze
from agentnb.secrets import mask_text, masking_for, remember_masking
from agentnb.text import replace_surrogates, safe_repr, safe_str
from agentnb.trace.columns import Columns, Objects, Values, to_objects

if TYPE_CHECKING:
    from numpy.typing import NDArray

MANY = 200  # the number of values from which one pass over all rows is faster


class Source(Protocol):
    """The source of a column's values."""

    def __len__(self) -> int:
        """Return how many rows there are."""
        ...

    def get_value(self, row: int) -> Any:
        """Return the value of one row."""
        ...

    def get_values(self) -> Objects:
        """Return the values of all rows."""
        ...


class DictSource:
    """The inputs (`inputs`) or writes (`outputs`) of each step: one masked dict per step."""

    def __init__(self, columns: Columns, name: str) -> None:
        self._columns, self._name, self._masking = columns, name, remember_masking()

    def __len__(self) -> int:
        return self._columns.tip

    def get_value(self, row: int) -> Any:
        """Return the dict of step `row + 1`."""
        with self._masking():
            return _mask_row(getattr(self._columns.reading, self._name)(row + 1))

    def get_values(self) -> Objects:
        """Return the dicts of all steps."""
        with self._masking():
            return to_objects([_mask_row(row) for row in getattr(self._columns, self._name)()])


def _mask_row(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        mask_text(key): value
        if _find_secret(key) is None and is_stored_unchanged(value)
        else to_display(value, _find_secret(key))
        for key, value in row.items()
    }


@lru_cache(maxsize=4096)
def _find_secret(key: str) -> str | None:
    """Return the part of a dotted key that names a secret; None if none does."""
    return find_secret_word(key.split("."))


class ValueSource:
    """The values that writes wrote or replaced: each an independent masked copy; NA if absent."""

    def __init__(self, values: Values, where: NDArray[Any], paths: Sequence[tuple[str | int, ...]]) -> None:
        self._values, self._where, self._masking = values, where, remember_masking()
        self._names = [find_secret_word(path) for path in paths]

    def __len__(self) -> int:
        return len(self._where)

    def get_value(self, row: int) -> Any:
        """Return the value of one write."""
        if self._values.absent[row]:
            return pd.NA
        with self._masking():
            return to_display(self._values.frozen[row], self._names[self._where[row]])

    def get_values(self) -> Objects:
        """Return the values of all writes."""
        return to_objects([self.get_value(row) for row in range(len(self))])


class ItemSource:
    """Values, each with the part of its key that names a secret (or None): an independent masked copy; NA stays NA."""

    def __init__(self, values: Objects, keys: Sequence[str | None] | None = None) -> None:
        self._values, self._keys, self._masking = values, keys, remember_masking()

    def __len__(self) -> int:
        return len(self._values)

    def get_value(self, row: int) -> Any:
        """Return the value of one row."""
        value = self._values[row]
        if value is pd.NA or value is ABSENT:
            return pd.NA
        with self._masking():
            return to_display(freeze(value), None if self._keys is None else self._keys[row])

    def get_values(self) -> Objects:
        """Return the values of all rows."""
        return to_objects([self.get_value(row) for row in range(len(self))])


@register_extension_dtype
class ValueDtype(ExtensionDtype):
    """The dtype of columns of Python values, which may be of any type."""

    name = "value"
    type: ClassVar[Any] = object
    kind = "O"
    na_value = pd.NA
    _metadata: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def construct_array_type(cls) -> Any:
        """Return the array class of this dtype."""
        return ValueArray


class ValueStorage:
    """The storage of a ValueArray and its views: a source and its rows (-1: missing), and the values once created."""

    __slots__ = ("objects", "rows", "source")

    def __init__(self, source: Source | None, rows: NDArray[Any], objects: Objects | None) -> None:
        self.source, self.rows, self.objects = source, rows, objects


class ValueArray(ExtensionArray):
    """A source and row numbers, or, after a write, an array of objects."""

    _readonly = False

    def __init__(
        self, source: Source | None = None, rows: NDArray[Any] | None = None, objects: Objects | None = None
    ) -> None:
        if rows is None:
            rows = np.arange(0 if source is None else len(source))
        self._storage = ValueStorage(source, rows, to_objects([]) if source is None and objects is None else objects)

    @classmethod
    def _from_sequence(cls, scalars: Any, *, dtype: Any = None, copy: bool = False) -> Any:  # noqa: ARG003  (its name)
        if isinstance(scalars, ValueArray):
            return scalars.copy() if copy else scalars.view()
        return cls(objects=to_objects(list(scalars)))

    @classmethod
    def _from_factorized(cls, values: Any, original: Any) -> Self:  # noqa: ARG003  (pandas gives it)
        return cls(objects=to_objects(list(values)))

    @property
    def dtype(self) -> ValueDtype:
        """The dtype, `value`."""
        return ValueDtype()

    @property
    def nbytes(self) -> int:
        """The bytes of this array; the run's own columns are not counted."""
        storage = self._storage
        return int(storage.rows.nbytes if storage.objects is None else storage.objects.nbytes)

    def __len__(self) -> int:
        storage = self._storage
        return len(storage.rows if storage.objects is None else storage.objects)

    def __contains__(self, item: object) -> bool:
        if item is pd.NA or item is None or item is self.dtype.na_value:
            return any(value is item for value in self)
        return any(_are_equal(value, item) for value in self)

    def get_storage(self) -> ValueStorage:
        """Return the storage: the source and the rows, or the values."""
        return self._storage

    def get_values(self) -> Objects:
        """Return all values; they are created on first access and cached."""
        storage = self._storage
        if storage.objects is not None:
            return storage.objects
        source = storage.source
        assert source is not None  # without values there is a source
        if len(storage.rows) > MANY:
            objects = _take_values(source.get_values(), storage.rows, allow_fill=True, fill_value=pd.NA)
        else:
            objects = to_objects([pd.NA if row < 0 else source.get_value(int(row)) for row in storage.rows])
        for at, item in enumerate(objects):
            if type(item) is Decimal and item.is_snan():  # pandas compares it, and each comparison raises
                objects[at] = Decimal("NaN")
        storage.objects = objects
        return objects

    def __getitem__(self, item: Any) -> Any:
        if isinstance(item, tuple):
            item = tuple(part for part in item if part is not Ellipsis)
            item = item[0] if len(item) == 1 else item
        if item is Ellipsis or (isinstance(item, slice) and item == slice(None)):
            return self.view()
        item, storage = check_array_indexer(self, item), self._storage
        values = (storage.rows if storage.objects is None else storage.objects)[item]
        if not isinstance(item, int | np.integer):
            part = type(self)(storage.source, values) if storage.objects is None else type(self)(objects=values)
            part._readonly = self._readonly and isinstance(item, slice)  # noqa: SLF001  (another of this class)
            return part
        if storage.objects is not None:
            return values
        assert storage.source is not None  # without values there is a source
        return pd.NA if values < 0 else storage.source.get_value(int(values))

    def __setitem__(self, key: Any, value: Any) -> None:
        if self._readonly:
            raise ValueError("Cannot modify read-only array")
        key = check_array_indexer(self, key[0] if isinstance(key, tuple) and len(key) == 1 else key)
        if not isinstance(key, slice) and np.ndim(key) == 0:
            if isinstance(value, ExtensionArray | np.ndarray | pd.Series):
                raise ValueError("setting an array element with a sequence.")
            self.get_values()[key] = value
            return
        objects = self.get_values()
        many = isinstance(value, ExtensionArray | np.ndarray | list | pd.Series)
        objects[key] = to_objects(
            list(value) * (len(objects[key]) if len(value) == 1 else 1) if many else [value] * len(objects[key])
        )

    def __iter__(self) -> Iterator[Any]:
        return iter(self.get_values())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        objects: NDArray[Any] = self.get_values()
        if dtype is not None and np.dtype(dtype) != objects.dtype:
            return objects.astype(dtype)
        if copy:
            return objects.copy()
        if self._readonly and self._storage.objects is not None:
            objects = objects.view()
            objects.flags.writeable = False
        return objects

    def astype(self, dtype: Any, copy: bool = True) -> Any:
        """Return the values as another type; a list in a cell becomes its text, because numpy alone refuses it."""
        if dtype is object or dtype == np.dtype(object):
            return to_objects([_to_bindable(item) for item in self.get_values()])
        if dtype is str or (isinstance(dtype, np.dtype) and dtype.kind == "U"):
            return np.array([str(item) for item in self.get_values()], dtype=object)
        return super().astype(dtype, copy)

    def __arrow_array__(self, type: Any = None) -> Any:
        """Return the values for Arrow, each as its JSON text; a missing one is null, None is the text `null`."""
        import pyarrow as pa

        missing = pd.NA
        texts = [None if item is missing else to_json_text(item) for item in self.get_values()]
        return pa.array(texts, type=pa.string() if type is None else type)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the values, without the run that they come from."""
        return (_from_values, (list(self.get_values()),))

    def isna(self) -> NDArray[np.bool_]:
        """Return a mask of the missing values, as pandas defines them: NA, None, NaN, NaT."""
        return np.fromiter(map(_is_missing, self.get_values()), dtype=bool, count=len(self))

    def take(self, indices: Any, *, allow_fill: bool = False, fill_value: Any = None) -> Self:
        """Return the values at these indices; -1 is missing if `allow_fill` is set."""
        storage = self._storage
        if storage.objects is None and (not allow_fill or fill_value is None or fill_value is pd.NA):
            rows = _take_values(storage.rows, indices, allow_fill=allow_fill, fill_value=-1 if allow_fill else None)
            return type(self)(storage.source, rows)
        fill = pd.NA if fill_value is None else fill_value
        return type(self)(objects=_take_values(self.get_values(), indices, allow_fill=allow_fill, fill_value=fill))

    def copy(self) -> Self:
        """Return a copy; values not yet created are shared, as they never change."""
        storage = self._storage
        return type(self)(storage.source, storage.rows, None if storage.objects is None else storage.objects.copy())

    def view(self, dtype: Any = None) -> Any:
        """Return another array of the same values: writes into one are visible in the other."""
        if dtype is not None:
            raise NotImplementedError(dtype)  # required by pandas of an array without other views
        seen = type(self)()
        seen._storage, seen._readonly = self._storage, self._readonly  # noqa: SLF001  (another of this class)
        return seen

    @classmethod
    def _concat_same_type(cls, to_concat: Sequence[Self]) -> Self:
        storages = [part.get_storage() for part in to_concat]
        source = storages[0].source
        if all(held.objects is None and held.source is source for held in storages):
            return cls(source, np.concatenate([held.rows for held in storages]))
        return cls(objects=np.concatenate([part.get_values() for part in to_concat]))

    def _cast_pointwise_result(self, values: Any) -> Any:
        """Return the results of a function applied to each value: numbers as numbers, all others unchanged."""
        objects = to_objects(list(values))
        numbers = infer_numbers(objects)
        return type(self)(objects=objects) if numbers is None else numbers.array

    def _values_for_factorize(self) -> tuple[Objects, Any]:
        return self.get_values(), pd.NA

    def _values_for_argsort(self) -> Objects:
        return self.get_values()

    def _formatter(self, boxed: bool = False) -> Callable[[Any], str]:
        return _format_cell if boxed else _format_alone

    def __eq__(self, other: object) -> Any:
        if isinstance(other, pd.Series | pd.Index | pd.DataFrame):
            return NotImplemented
        own = self.get_values()
        others = list(other) if isinstance(other, ExtensionArray | np.ndarray | list) else [other] * len(own)
        if len(others) != len(own):
            raise ValueError("lengths must match")
        return np.fromiter(map(_are_equal, own, others), dtype=bool, count=len(own))

    __hash__ = None  # type: ignore[assignment]  # as every array

    def __ne__(self, other: object) -> Any:
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else ~equal


def _from_values(values: list[Any]) -> ValueArray:
    return ValueArray(objects=to_objects(values))


def infer_numbers(values: Objects) -> pd.Series[Any] | None:
    """Return a column of numbers or bools; None if the values are others, or too large for a numpy type."""
    try:
        column = pd.Series(values, dtype=object, copy=False).infer_objects()
    except OverflowError:  # before pandas 3
        return None
    return column if isinstance(column.dtype, np.dtype) and column.dtype.kind in "biuf" else None


def to_json_text(value: Any) -> str:
    """Return a value as JSON text; parts that JSON cannot represent become strings."""
    try:
        return replace_surrogates(json.dumps(value, ensure_ascii=False, default=safe_str))
    except (TypeError, ValueError):  # keys that are not strings, a value that contains itself
        return replace_surrogates(json.dumps(_format_alone(value), ensure_ascii=False))


class _Bindable:
    """A value that SQLite binds as a parameter: by the protocol of the `sqlite3` module it becomes its JSON text."""

    def __conform__(self, protocol: object) -> str:
        return to_json_text(self)


class _BindableDict(_Bindable, dict[Any, Any]):
    pass


class _BindableList(_Bindable, list[Any]):
    pass


class _BindableTuple(_Bindable, tuple[Any, ...]):
    __slots__ = ()


class _BindableDecimal(Decimal):
    def __conform__(self, protocol: object) -> str:
        return str(self)


_BINDABLE: Final[Mapping[type, Callable[[Any], Any]]] = {
    dict: _BindableDict,
    list: _BindableList,
    tuple: _BindableTuple,
    Decimal: _BindableDecimal,
}


def _to_bindable(value: Any) -> Any:
    """Return an equal value that a database driver accepts as a parameter, if there is one."""
    wrap = _BINDABLE.get(type(value))
    return value if wrap is None else wrap(value)


def _take_values(values: Any, indices: Any, **options: Any) -> NDArray[Any]:
    taken: NDArray[Any] = take(values, indices, **options)  # type: ignore[assignment]  # an array of numpy gives one
    return taken


def _format_cell(value: Any) -> str:
    """Return the text of a cell, for a value of any size or class; strings without quotes."""
    with masking_for():  # it is masked already, by the secrets of its run
        return safe_str(value) if isinstance(value, str) else safe_repr(value, 2000)


def _format_alone(value: Any) -> str:
    with masking_for():
        return safe_repr(value)


def _is_missing(value: Any) -> bool:
    if value is None or value is pd.NA or value is pd.NaT:
        return True
    if isinstance(value, float | complex | np.floating | np.datetime64 | np.timedelta64):
        return bool(value != value)  # noqa: PLR0124  (what NaN is known by)
    return isinstance(value, Decimal) and value.is_nan()


def _are_equal(left: Any, right: Any) -> bool:
    """Compare two values; a missing value equals nothing, and arrays compare as wholes."""
    if left is pd.NA or right is pd.NA:
        return False
    same = left == right
    return bool(same) if isinstance(same, bool | np.bool_) else bool(np.all(same))


__all__ = [
    "DictSource",
    "ItemSource",
    "Source",
    "ValueArray",
    "ValueDtype",
    "ValueSource",
    "infer_numbers",
    "to_json_text",
]
