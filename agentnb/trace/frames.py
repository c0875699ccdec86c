"""DataFrames of a run, built from its columns, with secrets masked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final, Self, overload

import numpy as np
import pandas as pd

from agentnb.board.key_checks import UnknownKey
from agentnb.board.masking import find_secret_word, mask_atoms, mask_value, to_display
from agentnb.board.values import ABSENT, ATOMS
from agentnb.engine.core.history import OUTSIDE, PHASES, STATUSES
from agentnb.errors import did_you_mean
from agentnb.expressions.paths import parse_path
from agentnb.secrets import mask_text, masking_for, masks_by
from agentnb.text import replace_surrogates, safe_repr, safe_str
from agentnb.trace.columns import SIMPLE, Columns, Objects, Values, choose_int_type, to_objects
from agentnb.trace.edge_rows import find_deliveries, find_taken_edges
from agentnb.trace.row_index import OPS, TYPES, StepIndex
from agentnb.trace.value_column import DictSource, ItemSource, ValueArray, ValueDtype, ValueSource, infer_numbers

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from agentnb.trace.causality import LinkedEvent

TEXT = pd.StringDtype()  # dtype of every text column
NAMES = ("steps", "writes", "reads", "edges", "calls", "interventions", "events")
# With copy-on-write (pandas 3 and later), a shallow copy is an independent frame.
_WHOLE_COPIES = int(pd.__version__.split(".", maxsplit=1)[0]) < 3


def make_table(rows: Sequence[Mapping[str, Any]], types: Mapping[str, Any] | None = None) -> pd.DataFrame:
    """Return rows of named values as a DataFrame; `types` maps its columns to dtypes, also if there are no rows."""
    if types is None:
        return pd.DataFrame([{name: _to_printable(cell) for name, cell in row.items()} for row in rows])
    # Column by column: type inference over whole rows converts missing values to numbers.
    columns = {name: pd.Series([_to_printable(row[name]) for row in rows], dtype=object) for name in types}
    return pd.DataFrame(columns).astype(types)


_EMPTY: Final[dict[str, pd.DataFrame]] = {}  # tables without rows, which most short runs have and all of them share


class CachedTable:
    """A table created once; each access returns an independent frame, so that changes do not affect the original."""

    def __init__(self, make: Callable[[Frames], pd.DataFrame]) -> None:
        self.make, self.name, self.__doc__ = make, make.__name__, make.__doc__

    @overload
    def __get__(self, frames: None, owner: type) -> Self: ...
    @overload
    def __get__(self, frames: Frames, owner: type) -> pd.DataFrame: ...
    def __get__(self, frames: Frames | None, owner: type) -> Self | pd.DataFrame:
        """Return the table, or this descriptor itself if accessed on the class."""
        if frames is None:
            return self
        if self.name not in frames.cached_tables:
            frames.cached_tables[self.name] = frames.build(self.name, self.make)
        table = frames.cached_tables[self.name].copy(deep=_WHOLE_COPIES)
        if len(table):
            for at, dtype in enumerate(table.dtypes):
                if isinstance(dtype, ValueDtype):  # a shallow copy would share the values once they are materialized
                    table.isetitem(at, table.iloc[:, at].array.copy())
        return table


@masks_by(lambda frames: frames._masking())  # noqa: SLF001  (its own)
class Frames(Mapping[str, pd.DataFrame]):
    """The tables of a run at the time of access.

    They are steps, writes, reads, edges, calls, interventions and events.

    `frames.steps` and `frames["steps"]` are the same; each table is created on first access.
    Each access returns an independent frame: columns and cells written into it do not appear in the next one.
    """

    def __init__(self, reading: StepIndex) -> None:
        self._reading = reading
        self._masking = partial(masking_for, reading.tables.secrets)
        self._columns = Columns(reading)
        self.cached_tables: dict[str, pd.DataFrame] = {}

    def build(self, name: str, make: Callable[[Self], pd.DataFrame]) -> pd.DataFrame:
        """Return a new table: what the property of this name makes."""
        table = make(self)
        if name in ("calls", "interventions", "events") and not len(table):
            _EMPTY[name] = table
        return table

    def __getitem__(self, name: str) -> pd.DataFrame:
        if type(name) is not str or name not in NAMES:
            raise KeyError(UnknownKey(name if type(name) is str else safe_repr(name), NAMES))
        table: pd.DataFrame = getattr(self, name)
        return table

    if not TYPE_CHECKING:  # hidden from type checkers, which know the tables

        def __getattr__(self, name: str) -> Any:
            order = did_you_mean(name, NAMES, f"there are: {', '.join(NAMES)}")
            raise AttributeError(f"there is no table {name!r}; {order}", name=name, obj=self)

    def __iter__(self) -> Iterator[str]:
        return iter(NAMES)

    def __len__(self) -> int:
        return len(NAMES)

    def __repr__(self) -> str:
        """Return the names, without creating a table."""
        return f"<frames of {self._columns.tip} steps: {', '.join(NAMES)}>"

    @CachedTable
    def steps(self) -> pd.DataFrame:
        """One row per step: step, node, kind, phase, frame, depth, branch, type, status, timestamp, seconds, ..."""
        columns, reading = self._columns, self._reading
        frames, indices = np.unique(columns.frame, return_inverse=True) if columns.nested else (np.array([0]), None)
        status = columns.flag >> 2 & 3
        kinds = sorted({node.kind for node in reading.nodes})
        kind_of = np.array([kinds.index(node.kind) for node in reading.nodes], dtype=choose_int_type(len(kinds)))
        type_of = np.array([TYPES.index(node.type.lower()) for node in reading.nodes], dtype=np.int8)
        types = type_of[columns.node] if len(type_of) else np.zeros(0, np.int8)
        types[status == STATUSES.index("error")] = TYPES.index("error")
        branches = [reading.branch(int(frame)) for frame in frames]
        return _make_frame(
            step=np.arange(1, columns.tip + 1),
            node=self._make_node_column(columns.node),
            kind=_make_categorical(kind_of[columns.node] if len(kind_of) else types, kinds),
            phase=_make_categorical(columns.flag & 3, PHASES),
            frame=self._make_frame_column(columns.frame) if columns.nested else self._make_root_column(columns.frame),
            depth=_spread(
                np.array([reading.depth(int(frame)) for frame in frames], dtype=np.int64), indices, columns.tip
            ),
            branch=_to_nullable(
                _spread(
                    np.array([-1 if branch is None else branch for branch in branches], dtype=np.int64),
                    indices,
                    columns.tip,
                )
            ),
            type=_make_categorical(types, TYPES),
            status=_make_categorical(status, STATUSES),
            timestamp=_to_times(columns.started),
            seconds=columns.seconds,
            inputs=ValueArray(DictSource(columns, "inputs"), columns.rows),
            outputs=ValueArray(DictSource(columns, "outputs"), columns.rows),
            error=self._make_error_column(),
        )

    @CachedTable
    def writes(self) -> pd.DataFrame:
        """One row per write: step, node, frame, scope, key, op, old, new, in_place, changed, paths."""
        columns = self._columns
        path_numbers, op = columns.write_paths, columns.write_codes & 3
        old, new = columns.write_values
        return _make_frame(
            step=columns.write_steps,
            node=self._make_node_column(np.where(columns.written_by_node, columns.node_at(columns.write_steps), -1)),
            frame=self._make_root_column(path_numbers)
            if not columns.nested
            else self._make_frame_column(columns.frame_at(columns.write_steps)),
            scope=self._make_scope_column(path_numbers),
            key=self._make_key_column(path_numbers),
            op=_make_categorical(op.astype(np.int8), OPS),
            old=self._make_value_column(old, path_numbers),
            new=self._make_value_column(new, path_numbers),
            in_place=columns.written_in_place,
            changed=columns.changed,
            paths=_to_value_column([[*map(safe_str, paths)] for paths in columns.changed_parts]),
        )

    @CachedTable
    def reads(self) -> pd.DataFrame:
        """One row per key that a step read: step, node, scope, key."""
        steps, path_numbers = self._columns.reads
        return _make_frame(
            step=steps,
            node=self._make_node_column(self._columns.node_at(steps)),
            scope=self._make_scope_column(path_numbers),
            key=self._make_key_column(path_numbers),
        )

    @CachedTable
    def edges(self) -> pd.DataFrame:
        """One row per edge taken: step, source, target, kind, condition, value.

        For an event delivery: the step in which the event reached the node, the node that emitted it (NA if from
        outside), kind `event`, its type and its id.
        """
        rows, taken = self._reading.edges, find_taken_edges(self._columns)
        deliveries = find_deliveries(self._columns, taken)
        kinds = sorted({row.kind for row in rows} | ({"event"} if len(deliveries.steps) else set()))
        texts = sorted({row.condition for row in rows if row.condition})
        # The last entry represents an edge that the recipe does not have, or that is not known.
        kind = np.array([*(kinds.index(row.kind) for row in rows), -1], dtype=choose_int_type(len(kinds)))
        code_by_text = {text: at for at, text in enumerate(texts)}
        text = np.array([*(code_by_text.get(row.condition, -1) for row in rows), -1], dtype=choose_int_type(len(texts)))
        asks = np.array([*(row.asks or row.kind == "route" for row in rows), True], dtype=bool)
        event = np.full(len(deliveries.steps), kinds.index("event") if len(deliveries.steps) else 0, dtype=kind.dtype)
        joined = deliveries.join
        return _make_frame(
            step=joined(taken.steps, deliveries.steps),
            source=self._make_node_column(joined(taken.source, deliveries.source)),
            target=self._make_node_column(joined(taken.target, deliveries.target)),
            kind=_make_categorical(joined(kind[taken.edge], event), kinds),
            condition=_repeat_texts(
                [*map(mask_text, texts), *deliveries.types],
                joined(text[taken.edge], len(texts) + np.arange(len(deliveries.types))),
            ),
            value=_to_value_column(joined(_select(taken.values, asks[taken.edge]), deliveries.ids)),
        )

    @CachedTable
    def calls(self) -> pd.DataFrame:
        """One row per attempt of a call: step, node, call, kind, name, provider, model, attempt, ...

        `cost_usd` is a float for computing and plotting; `cost_usd_exact` holds the Decimal. `provider` and `model`
        name the source of a model's answer: `simulated` if no model was configured, `scripted` for a script. Attempts
        of an interrupted step have no step and no call until the step runs again and requests them.
        """
        last = {id(part): part.base + end for part, end in self._columns.parts}
        rows = [call for part, _ in self._columns.parts for call in part.calls if call.step <= last[id(part)]]
        loose = self._columns.parts[-1][0].uncommitted_calls
        inside = np.array([call.call != OUTSIDE for call in rows] + [False] * len(loose), dtype=bool)
        rows += loose
        if not rows and "calls" in _EMPTY:
            return _EMPTY["calls"]
        activations = self._columns.tables.activations
        kinds = sorted({row.kind for row in rows})
        return _make_frame(
            step=pd.arrays.IntegerArray(_to_ints(row.step for row in rows), ~inside),
            node=self._make_node_column(_to_ints(activations[row.activation].node for row in rows)),
            call=pd.arrays.IntegerArray(_to_ints(row.call for row in rows), ~inside),
            kind=_make_categorical(_to_ints(kinds.index(row.kind) for row in rows), kinds),
            name=_to_text_column(row.name for row in rows),
            provider=_to_text_column(pd.NA if row.provider is None else row.provider for row in rows),
            model=_to_text_column(pd.NA if row.model is None else row.model for row in rows),
            attempt=_to_ints(row.attempt for row in rows),
            backoff_seconds=np.array([row.wait for row in rows], dtype=float),
            arguments=_to_value_column([row.arguments for row in rows]),
            result=_to_value_column([row.result for row in rows]),
            finish_reason=_to_text_column(pd.NA if row.finish_reason is None else row.finish_reason for row in rows),
            error=_to_text_column(pd.NA if row.error is None else mask_text(row.error) for row in rows),
            seconds=np.array([row.seconds for row in rows], dtype=float),
            tokens_in=pd.array([row.tokens_in for row in rows], dtype="Int64"),
            tokens_out=pd.array([row.tokens_out for row in rows], dtype="Int64"),
            cost_usd=np.array([np.nan if row.cost_usd is None else row.cost_usd for row in rows], dtype=float),
            cost_usd_exact=_to_value_column(
                [pd.NA if row.cost_usd is None else Decimal(str(row.cost_usd)) for row in rows]
            ),
        )

    @CachedTable
    def interventions(self) -> pd.DataFrame:
        """One row per intervention of a person: step, action, target, old, new, actor, time."""
        rows = self._reading.interventions()
        if not rows and "interventions" in _EMPTY:
            return _EMPTY["interventions"]
        return _make_frame(
            step=_to_ints(row.step for row in rows),
            action=_to_text_column(row.action for row in rows),
            target=_to_text_column(mask_text(row.target) for row in rows),
            old=_to_value_column([row.old for row in rows], [row.target for row in rows]),
            new=_to_value_column([row.new for row in rows], [row.target for row in rows]),
            actor=_to_text_column(row.actor for row in rows),
            time=_to_moments(row.time for row in rows),
        )

    @CachedTable
    def events(self) -> pd.DataFrame:
        """One row per event: seq, step (NA if a person emitted it), id, type, actor, cause, time, payload."""
        rows = self._reading.events()
        if not rows and "events" in _EMPTY:
            return _EMPTY["events"]
        return _make_frame(
            seq=_to_ints(row.seq for row in rows),
            step=pd.array([row.step for row in rows], dtype="Int64"),
            id=_to_text_column(row.id for row in rows),
            type=_to_text_column(row.type for row in rows),
            actor=_to_text_column(row.actor for row in rows),
            cause=_to_text_column(pd.NA if row.cause is None else row.cause for row in rows),
            time=_to_moments(row.time for row in rows),
            payload=_to_value_column([row.payload for row in rows]),
        )

    # -- columns that several tables share ---------------------------------------------------------------------

    def _make_node_column(self, codes: NDArray[Any]) -> pd.Categorical:
        return _make_categorical(codes, [node.id for node in self._reading.nodes])

    def _make_root_column(self, rows: NDArray[Any]) -> pd.Categorical:
        return _make_categorical(np.zeros(len(rows), np.int8), ["root"])

    def _make_scope_column(self, where: NDArray[Any]) -> pd.Categorical:
        scopes = self._columns.scopes
        return self._make_frame_column(scopes[where]) if scopes.any() else self._make_root_column(where)

    def _make_frame_column(self, numbers: NDArray[Any]) -> pd.Categorical:
        frames, indices = np.unique(numbers, return_inverse=True)
        names = {self._reading.frame_name(int(frame)): None for frame in frames}
        code = {name: at for at, name in enumerate(names)}
        codes = np.array(
            [code[self._reading.frame_name(int(frame))] for frame in frames], dtype=choose_int_type(len(names))
        )
        return _make_categorical(codes[indices] if len(codes) else indices, list(names))

    def _make_key_column(self, where: NDArray[Any]) -> pd.Categorical:
        names = list(dict.fromkeys(self._columns.keys))
        number = {name: at for at, name in enumerate(names)}
        codes = np.array([number[name] for name in self._columns.keys], dtype=choose_int_type(len(names)))
        return _make_categorical(codes[where] if len(codes) else where, list(map(mask_text, names)))

    def _make_value_column(self, values: Values, where: NDArray[Any]) -> Any:
        if not values.plain:
            keys = [self._columns.codes[number][1] for number in range(len(self._columns.codes))]
            return ValueArray(ValueSource(values, where, keys))
        column = values.frozen
        column[values.absent] = pd.NA
        if values.hide is not None:
            for row in np.flatnonzero(values.hide).tolist():
                if column[row] is not pd.NA:
                    column[row] = mask_value(column[row], find_secret_word(self._columns.codes[where[row]][1]))
        return ValueArray(objects=column)

    def _make_error_column(self) -> Any:
        texts: list[str] = []
        rows = np.full(self._columns.tip, -1)
        for part, last in self._columns.parts:
            for step, failure in part.errors.items() if part.peek("errors") else ():
                if part.base < step <= part.base + last:
                    rows[step - 1] = len(texts)
                    texts.append(str(failure))
        return _repeat_texts(texts, rows)


# -- wide ----------------------------------------------------------------------------------------------------------


def make_wide_table(reading: StepIndex, keys: Sequence[str], scope: int) -> pd.DataFrame:
    """Return one row per step and one column per key: its value after the step, NA if absent."""
    columns = Columns(reading)
    numbers = np.arange(1, columns.tip + 1)
    data: dict[str, Any] = {
        "step": numbers,
        "node": _make_categorical(columns.node, [node.id for node in reading.nodes]),
    }
    for key in keys:
        steps, written = columns.values_after(scope, key)
        values = np.append(np.array([pd.NA], dtype=object), _mask_leaving(written, key))
        indices = np.searchsorted(steps, numbers, side="right")
        cells = values[indices]
        types = set(map(type, cells))
        simple = types - {type(pd.NA)} <= SIMPLE
        column = infer_numbers(cells) if len(types) == 1 and types <= {int, float, bool} else None
        if column is None:
            column = pd.Series(cells, dtype=object, copy=False) if simple else pd.Series(ValueArray(objects=cells))
        data[replace_surrogates(key)] = column
    return pd.DataFrame(data, copy=False)


def make_chain_table(rows: Sequence[tuple[LinkedEvent, str]]) -> pd.DataFrame:
    """Return a causal chain as a table; each row is an event with the node in whose step it was emitted."""
    records = [
        {
            "seq": link.event.seq, "step": link.event.step, "id": link.event.id, "type": mask_text(link.event.type),
            "actor": pd.NA if link.event.actor is None else mask_text(link.event.actor),
            "cause": pd.NA if link.event.cause is None else link.event.cause, "node": node or None,
            "relation": link.part, "distance": link.distance, "objects": list(link.objects),
        }
        for link, node in rows
    ]  # fmt: skip
    types = dict.fromkeys(("id", "type", "actor", "cause"), "object") | {"seq": "int64", "step": "Int64"}
    types |= {"node": "category", "relation": "category", "distance": "int64", "objects": "object"}
    names = ("seq", "step", "id", "type", "actor", "cause", "node", "relation", "distance", "objects")
    return make_table(records, {name: types[name] for name in names})


def render_head(frame: pd.DataFrame, rows: int) -> str:
    """Return the first rows of a table as HTML, with every cell escaped and truncated."""
    with pd.option_context("display.max_colwidth", 60):
        return frame.head(rows).to_html(index=False, escape=True, border=0)


# -- building columns ------------------------------------------------------------------------------------------


def _make_frame(**columns: Any) -> pd.DataFrame:
    return pd.DataFrame(columns, copy=False)


def _make_categorical(codes: NDArray[Any], names: Sequence[str]) -> pd.Categorical:
    dtype, merged = _make_category_type(tuple(names))
    small = codes.astype(choose_int_type(len(names)), copy=False)
    return pd.Categorical.from_codes(small if merged is None else merged[small], dtype=dtype, validate=False)


@lru_cache(maxsize=64)
def _make_category_type(names: tuple[str, ...]) -> tuple[pd.CategoricalDtype, NDArray[Any] | None]:
    """Return the dtype of a column of these names, and the category of each name where several share one.

    Masked secrets all have the same text. A dtype costs more than its column, so all runs of a recipe share it.
    """
    texts = list(map(replace_surrogates, names))
    categories = {text: at for at, text in enumerate(dict.fromkeys(texts))}
    dtype = pd.CategoricalDtype(pd.Index(list(categories), dtype="str"))
    if len(categories) == len(texts):
        return dtype, None
    missing = -1  # the code of a missing value, which is also the last index
    return dtype, np.array([*map(categories.__getitem__, texts), missing], dtype=choose_int_type(len(texts)))


def _spread(values: NDArray[Any], indices: NDArray[Any] | None, size: int) -> NDArray[Any]:
    if indices is not None:
        spread: NDArray[Any] = values[indices]
        return spread
    return np.full(size, values[0]) if values[0] else np.zeros(size, dtype=values.dtype)


def _to_nullable(values: NDArray[Any]) -> Any:
    return pd.arrays.IntegerArray(values.astype(np.int64, copy=False), values < 0)


def _to_times(nanoseconds: NDArray[Any]) -> pd.DatetimeIndex:
    return pd.DatetimeIndex(nanoseconds.view("M8[ns]"), tz="UTC")


def _to_moments(times: Iterator[datetime] | Any) -> pd.DatetimeIndex:
    aware = [time if time.tzinfo else time.replace(tzinfo=UTC) for time in times]
    return pd.DatetimeIndex(pd.to_datetime(aware, utc=True)).as_unit("ns")


def _to_ints(values: Any) -> NDArray[np.int64]:
    return np.array(list(values), dtype=np.int64)


def _to_text_column(values: Iterable[Any]) -> Any:
    """Return a text column, NA for missing texts."""
    return pd.array(to_objects([_to_printable(cell) for cell in values]), dtype=TEXT)


def _to_printable(cell: Any) -> Any:
    """Return a cell that pandas can encode."""
    return replace_surrogates(cell) if type(cell) is str else cell


def _repeat_texts(texts: Sequence[Any], rows: NDArray[Any]) -> Any:
    """Return a text column of the texts at these places, NA for -1: each is encoded once, however many rows it has."""
    return _to_text_column(texts).take(rows, allow_fill=True)


def _select(values: Objects | None, rows: NDArray[Any]) -> Objects:
    selected = np.full(len(rows), pd.NA, dtype=object)
    if rows.any():
        selected[rows] = None if values is None else values[rows]
    return selected


def _to_value_column(values: Sequence[Any] | Objects, targets: Sequence[str] | None = None) -> Any:
    """Return a column of frozen values: each cell is a copy, masked by the dotted key in `targets`."""
    keys = None if targets is None else [find_secret_word(parse_path(target)) for target in targets]
    return ValueArray(ItemSource(to_objects(list(values)), keys))


def _mask_leaving(values: Objects, target: str) -> Objects:
    types = set(map(type, values))
    if types <= ATOMS - {type(ABSENT)} and find_secret_word(parse_path(target)) is None:
        return to_objects(mask_atoms(values, types))
    return to_objects([_mask_value(value, target) for value in values])


def to_cell(value: Any, path: str) -> Any:
    """Return a frozen value as a table cell: NA if absent, else a masked copy."""
    return _mask_value(value, path)


def _mask_value(value: Any, target: str) -> Any:
    """Return a value for output: masked if any part of its path names a secret."""
    return pd.NA if value is ABSENT else to_display(value, find_secret_word(parse_path(target)))


__all__ = [
    "NAMES",
    "CachedTable",
    "Frames",
    "make_chain_table",
    "make_table",
    "make_wide_table",
    "render_head",
    "to_cell",
]
