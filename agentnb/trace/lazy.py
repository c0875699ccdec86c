"""lazy: a column of pandas whose values are made when they are looked at; a million that nobody reads cost nothing.

Until something is written into it, a LazyArray is a source and row numbers; taking, slicing, copying and joining change
the numbers alone. From then on it is a plain array of objects. Its dtype is called `lazy`; `.astype(object)` ends it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

import numpy as np
import pandas as pd
from pandas.api.extensions import ExtensionArray, ExtensionDtype, register_extension_dtype, take
from pandas.api.indexers import check_array_indexer

from agentnb.board.secrets import is_secret, shown
from agentnb.trace.columns import Columns, Objects, Values, objects

if TYPE_CHECKING:
    from numpy.typing import NDArray

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
    type: ClassVar[Any] = object
    kind = "O"
    na_value = pd.NA
    _metadata: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def construct_array_type(cls) -> Any:
        """Return the array class of this dtype."""
        return LazyArray


class Held:
    """What a LazyArray and its views share: a source and rows of it (-1: nothing), and the values once made."""

    __slots__ = ("made", "rows", "source")

    def __init__(self, source: Source | None, rows: NDArray[Any], made: Objects | None) -> None:
        self.source, self.rows, self.made = source, rows, made


class LazyArray(ExtensionArray):
    """A source and the rows of it that are here, or, once something was written into it, a plain array of objects."""

    _readonly = False

    def __init__(
        self, source: Source | None = None, rows: NDArray[Any] | None = None, made: Objects | None = None
    ) -> None:
        if rows is None:
            rows = np.arange(0 if source is None else len(source))
        self._held = Held(source, rows, objects([]) if source is None and made is None else made)

    @classmethod
    def _from_sequence(cls, scalars: Any, *, dtype: Any = None, copy: bool = False) -> Any:  # noqa: ARG003  (its name)
        if isinstance(scalars, LazyArray):
            return scalars.copy() if copy else scalars.view()
        return cls(made=objects(list(scalars)))

    @classmethod
    def _from_factorized(cls, values: Any, original: Any) -> Self:  # noqa: ARG003  (pandas gives it)
        return cls(made=objects(list(values)))

    @property
    def dtype(self) -> LazyDtype:
        """The dtype, `lazy`."""
        return LazyDtype()

    @property
    def nbytes(self) -> int:
        """The bytes of what is kept here; the run's own columns are not counted."""
        held = self._held
        return int(held.rows.nbytes if held.made is None else held.made.nbytes)

    def __len__(self) -> int:
        held = self._held
        return len(held.rows if held.made is None else held.made)

    def __contains__(self, item: object) -> bool:
        if item is pd.NA or item is None or item is self.dtype.na_value:
            return any(value is item for value in self)
        return any(_equal(value, item) for value in self)

    def held(self) -> Held:
        """Return what is kept: the source and the rows, or the values."""
        return self._held

    def made(self) -> Objects:
        """Return all values here; they are made at the first time and kept."""
        held = self._held
        if held.made is not None:
            return held.made
        source = held.source
        assert source is not None  # without values there is a source
        if len(held.rows) > MANY:
            held.made = _taken(source.every(), held.rows, allow_fill=True, fill_value=pd.NA)
        else:
            held.made = objects([pd.NA if row < 0 else source.one(int(row)) for row in held.rows])
        return held.made

    def __getitem__(self, item: Any) -> Any:
        if isinstance(item, tuple):
            item = tuple(part for part in item if part is not Ellipsis)
            item = item[0] if len(item) == 1 else item
        if item is Ellipsis or (isinstance(item, slice) and item == slice(None)):
            return self.view()
        item, held = check_array_indexer(self, item), self._held
        found = (held.rows if held.made is None else held.made)[item]
        if not isinstance(item, int | np.integer):
            part = type(self)(held.source, found) if held.made is None else type(self)(made=found)
            part._readonly = self._readonly and isinstance(item, slice)  # noqa: SLF001  (another of this class)
            return part
        if held.made is not None:
            return found
        assert held.source is not None  # without values there is a source
        return pd.NA if found < 0 else held.source.one(int(found))

    def __setitem__(self, key: Any, value: Any) -> None:
        if self._readonly:
            raise ValueError("Cannot modify read-only array")
        key = check_array_indexer(self, key[0] if isinstance(key, tuple) and len(key) == 1 else key)
        if not isinstance(key, slice) and np.ndim(key) == 0:
            if isinstance(value, ExtensionArray | np.ndarray | pd.Series):
                raise ValueError("setting an array element with a sequence.")
            self.made()[key] = value
            return
        made = self.made()
        many = isinstance(value, ExtensionArray | np.ndarray | list | pd.Series)
        made[key] = objects(
            list(value) * (len(made[key]) if len(value) == 1 else 1) if many else [value] * len(made[key])
        )

    def __iter__(self) -> Iterator[Any]:
        return iter(self.made())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        made: NDArray[Any] = self.made()
        if dtype is not None and np.dtype(dtype) != made.dtype:
            return made.astype(dtype)
        if copy:
            return made.copy()
        if self._readonly and self._held.made is not None:
            made = made.view()
            made.flags.writeable = False
        return made

    def isna(self) -> NDArray[np.bool_]:
        """Return where there is no value, by what pandas takes for none: NA, None, NaN, NaT."""
        return pd.isna(self.made()) if len(self) else np.zeros(0, dtype=bool)

    def take(self, indices: Any, *, allow_fill: bool = False, fill_value: Any = None) -> Self:
        """Return the values at these places; -1 is a missing one where `allow_fill` is set."""
        held = self._held
        if held.made is None and (not allow_fill or fill_value is None or fill_value is pd.NA):
            rows = _taken(held.rows, indices, allow_fill=allow_fill, fill_value=-1 if allow_fill else None)
            return type(self)(held.source, rows)
        fill = pd.NA if fill_value is None else fill_value
        return type(self)(made=_taken(self.made(), indices, allow_fill=allow_fill, fill_value=fill))

    def copy(self) -> Self:
        """Return a copy; what has not been made is shared, for it never changes."""
        held = self._held
        return type(self)(held.source, held.rows, None if held.made is None else held.made.copy())

    def view(self, dtype: Any = None) -> Any:
        """Return another array of the same values: what is written into one is seen in the other."""
        if dtype is not None:
            raise NotImplementedError(dtype)  # as pandas asks of an array that has no other form
        seen = type(self)()
        seen._held, seen._readonly = self._held, self._readonly  # noqa: SLF001  (another of this class)
        return seen

    @classmethod
    def _concat_same_type(cls, to_concat: Sequence[Self]) -> Self:
        kept = [part.held() for part in to_concat]
        source = kept[0].source
        if all(held.made is None and held.source is source for held in kept):
            return cls(source, np.concatenate([held.rows for held in kept]))
        return cls(made=np.concatenate([part.made() for part in to_concat]))

    def _cast_pointwise_result(self, values: Any) -> Any:
        """Return what a function of each value gave: numbers as numbers, anything else as it is."""
        made = objects(list(values))
        fitting = pd.Series(made, dtype=object).infer_objects()
        return (
            fitting.array
            if isinstance(fitting.dtype, np.dtype) and fitting.dtype.kind in "biuf"
            else type(self)(made=made)
        )

    def _values_for_factorize(self) -> tuple[Objects, Any]:
        return self.made(), pd.NA

    def _values_for_argsort(self) -> Objects:
        return self.made()

    def _formatter(self, boxed: bool = False) -> Callable[[Any], str]:
        return str if boxed else repr

    def __eq__(self, other: object) -> Any:
        if isinstance(other, pd.Series | pd.Index | pd.DataFrame):
            return NotImplemented
        mine = self.made()
        theirs = list(other) if isinstance(other, ExtensionArray | np.ndarray | list) else [other] * len(mine)
        if len(theirs) != len(mine):
            raise ValueError("lengths must match")
        return np.fromiter(map(_equal, mine, theirs), dtype=bool, count=len(mine))

    __hash__ = None  # type: ignore[assignment]  # as every array

    def __ne__(self, other: object) -> Any:
        found = self.__eq__(other)
        return found if found is NotImplemented else ~found


def _taken(values: Any, indices: Any, **words: Any) -> NDArray[Any]:
    found: NDArray[Any] = take(values, indices, **words)  # type: ignore[assignment]  # an array of numpy gives one
    return found


def _equal(one: Any, other: Any) -> bool:
    """Compare two values; what is missing equals nothing, and arrays compare as wholes."""
    if one is pd.NA or other is pd.NA:
        return False
    same = one == other
    return bool(same) if isinstance(same, bool | np.bool_) else bool(np.all(same))


__all__ = ["DictSource", "LazyArray", "LazyDtype", "Source", "ValueSource"]
