"""lazy: a column of pandas whose values are made when they are looked at. A million dicts that nobody reads cost nothing.

Until something is written into it, a LazyArray is a source and row numbers; taking, slicing, copying and joining change
the numbers alone. From then on it is a plain array of objects. Its dtype is called `lazy`; `.astype(object)` ends it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar, Protocol, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.extensions import ExtensionArray, ExtensionDtype, register_extension_dtype, take
from pandas.api.indexers import check_array_indexer

from agentnb.board.secrets import is_secret, shown
from agentnb.trace.columns import Columns, Objects, Values, objects

MANY = 200  # from so many values on, one pass over all rows is the shorter way


class Source(Protocol):
    """Where a lazy column's values come from."""

    def __len__(self) -> int:
        """Return how many rows there are."""
        ...

    def one(self, row: int) -> Any:
        """Return the value of one row."""
        ...

    def every(self) -> Objects:
        """Return the values of all rows."""
        ...


class DictSource:
    """What each step was given (`inputs`) or wrote (`outputs`): a dict a step, masked."""

    def __init__(self, columns: Columns, name: str) -> None:
        self._columns, self._name = columns, name

    def __len__(self) -> int:
        return self._columns.tip

    def one(self, row: int) -> Any:
        """Return the dict of step `row + 1`."""
        return _shown(getattr(self._columns.reading, self._name)(row + 1))

    def every(self) -> Objects:
        """Return the dicts of all steps."""
        return objects([_shown(row) for row in getattr(self._columns, self._name)()])


def _shown(row: Mapping[str, Any]) -> dict[str, Any]:
    return {key: shown(value, _secret(key)) for key, value in row.items()}


@lru_cache(maxsize=4096)
def _secret(key: str) -> str | None:
    """Return the word of a dotted key that names a secret."""
    return next(filter(is_secret, key.split(".")), None)


class ValueSource:
    """The values that writes wrote or replaced: each a reader's own copy, masked; NA where there is nothing."""

    def __init__(self, values: Values, where: NDArray[Any], paths: Sequence[tuple[str | int, ...]]) -> None:
        self._values, self._where = values, where
        self._names = [next(filter(is_secret, path), None) for path in paths]

    def __len__(self) -> int:
        return len(self._where)

    def one(self, row: int) -> Any:
        """Return the value of one write."""
        if self._values.absent[row]:
            return pd.NA
        return shown(self._values.held[row], self._names[self._where[row]])

    def every(self) -> Objects:
        """Return the values of all writes."""
        return objects([self.one(row) for row in range(len(self))])


@register_extension_dtype
class LazyDtype(ExtensionDtype):
    """The dtype of columns whose values are made when they are looked at; they may be anything."""

    name = "lazy"
    type = object
    kind = "O"
    na_value = pd.NA
    _metadata: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def construct_array_type(cls) -> type[LazyArray]:
        """Return the array class of this dtype."""
        return LazyArray


class LazyArray(ExtensionArray):
    """A source and the rows of it that are here (-1: nothing), or a plain array of objects."""

    def __init__(
        self, source: Source | None = None, rows: NDArray[Any] | None = None, made: Objects | None = None
    ) -> None:
        self._source, self._made = source, made
        if source is not None and rows is None:
            rows = np.arange(len(source))
        self._rows: NDArray[Any] = np.zeros(0, dtype=np.int64) if rows is None else rows

    @classmethod
    def _from_sequence(cls, scalars: Any, *, dtype: Any = None, copy: bool = False) -> Self:
        if isinstance(scalars, LazyArray):
            return cls(scalars._source, scalars._rows, scalars._made if not copy else _copied(scalars._made))
        return cls(made=objects(list(scalars)))

    @classmethod
    def _from_factorized(cls, values: Any, original: Any) -> Self:
        return cls(made=objects(list(values)))

    @property
    def dtype(self) -> LazyDtype:
        """The dtype, `lazy`."""
        return LazyDtype()

    @property
    def nbytes(self) -> int:
        """The bytes of what is kept here; the run's own columns are not counted."""
        return int(self._rows.nbytes if self._made is None else self._made.nbytes)

    def __len__(self) -> int:
        return len(self._rows if self._made is None else self._made)

    def values(self) -> Objects:
        """Return all values here, made now if they are not yet."""
        if self._made is not None:
            return self._made
        source = self._source
        assert source is not None  # noqa: S101  (without values there is a source)
        if len(self._rows) > MANY:
            return take(source.every(), self._rows, allow_fill=True, fill_value=pd.NA)
        return objects([pd.NA if row < 0 else source.one(int(row)) for row in self._rows])

    def __getitem__(self, item: Any) -> Any:
        if isinstance(item, tuple):
            item = tuple(part for part in item if part is not Ellipsis)
            item = item[0] if len(item) == 1 else item
        if item is Ellipsis:
            return self.view()
        item = check_array_indexer(self, item)
        if self._made is not None:
            found = self._made[item]
            return found if isinstance(item, int | np.integer) else type(self)(made=found)
        rows = self._rows[item]
        if not isinstance(item, int | np.integer):
            return type(self)(self._source, rows)
        assert self._source is not None  # noqa: S101  (as above)
        return pd.NA if rows < 0 else self._source.one(int(rows))

    def __setitem__(self, key: Any, value: Any) -> None:
        if self._readonly:
            raise ValueError("Cannot modify read-only array")
        key = check_array_indexer(self, key)
        self._made, self._source = self.values(), None
        if isinstance(key, int | np.integer):
            self._made[key] = value
        elif isinstance(value, ExtensionArray | np.ndarray | list | pd.Series):
            self._made[key] = objects(list(value)) if len(value) != 1 else objects(list(value))[0]
        else:
            self._made[key] = objects([value] * len(self._made[key]))

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        made = self.values()
        return made.copy() if dtype is None or dtype == object else made.astype(dtype)

    def isna(self) -> NDArray[np.bool_]:
        """Return where there is no value, by what pandas takes for none: NA, None, NaN, NaT."""
        return pd.isna(self.values()) if len(self) else np.zeros(0, dtype=bool)

    def take(self, indices: Any, *, allow_fill: bool = False, fill_value: Any = None) -> Self:
        """Return the values at these places; -1 is a missing one where `allow_fill` is set."""
        if self._made is None and (not allow_fill or fill_value is None or fill_value is pd.NA):
            return type(self)(
                self._source, take(self._rows, indices, allow_fill=allow_fill, fill_value=-1 if allow_fill else None)
            )
        fill = pd.NA if fill_value is None else fill_value
        return type(self)(made=take(self.values(), indices, allow_fill=allow_fill, fill_value=fill))

    def copy(self) -> Self:
        """Return a copy; what has not been made is shared, for it never changes."""
        return type(self)(self._source, self._rows, _copied(self._made))

    def view(self, dtype: Any = None) -> Any:
        """Return these values under another name."""
        if dtype is not None:
            raise NotImplementedError(dtype)
        return type(self)(self._source, self._rows, self._made)

    @classmethod
    def _concat_same_type(cls, to_concat: Sequence[Self]) -> Self:
        source = to_concat[0]._source
        if source is not None and all(part._source is source for part in to_concat):
            return cls(source, np.concatenate([part._rows for part in to_concat]))
        return cls(made=np.concatenate([part.values() for part in to_concat]))

    def _values_for_factorize(self) -> tuple[Objects, Any]:
        return self.values(), pd.NA

    def _values_for_argsort(self) -> Objects:
        return self.values()

    def _formatter(self, boxed: bool = False) -> Callable[[Any], str]:
        return str if boxed else repr

    def __eq__(self, other: object) -> Any:
        if isinstance(other, pd.Series | pd.Index | pd.DataFrame):
            return NotImplemented
        mine = self.values()
        theirs = list(other) if isinstance(other, ExtensionArray | np.ndarray | list) else [other] * len(mine)
        if len(theirs) != len(mine):
            raise ValueError("lengths must match")
        return np.fromiter(map(_equal, mine, theirs), dtype=bool, count=len(mine))

    def __ne__(self, other: object) -> Any:
        found = self.__eq__(other)
        return found if found is NotImplemented else ~found


def _copied(made: Objects | None) -> Objects | None:
    return None if made is None else made.copy()


def _equal(one: Any, other: Any) -> bool:
    """Compare two values; what is missing equals nothing, and arrays compare as wholes."""
    if one is pd.NA or other is pd.NA:
        return False
    same = one == other
    return bool(same) if isinstance(same, bool | np.bool_) else bool(np.all(same))


__all__ = ["DictSource", "LazyArray", "LazyDtype", "Source", "ValueSource"]
