"""The seven tables over many runs, each with a leading column `run_id`, built from merged columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from agentnb.analysis.merged_rows import MergedColumns, MergedRows
from agentnb.analysis.runs import get_runs, get_trace, masking_for_runs
from agentnb.arguments import plain_arguments
from agentnb.engine.core.history import History, Tables
from agentnb.errors import ExecutionError, Problem, pluralize
from agentnb.trace.columns import choose_int_type
from agentnb.trace.frames import NAMES, Frames
from agentnb.trace.row_index import StepIndex

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from agentnb.trace.trace import SimulationTrace


class _RecipeFrames(Frames):
    """The tables of runs with the same nodes and edges; steps are those of the merged history."""

    def __init__(self, traces: Iterable[SimulationTrace]) -> None:
        trace_list = list(traces)
        self.rows = MergedRows([trace.reading() for trace in trace_list])
        super().__init__(self.rows)
        self._masking = partial(masking_for_runs, *trace_list)
        self._columns = MergedColumns(self.rows)
        self.ids = [trace.run_id for trace in trace_list]

    def table(self, name: str) -> tuple[pd.DataFrame, NDArray[np.int64]]:
        """Return a table with each run's own step numbers, and the index of each row's run."""
        frame, merged = self[name], self.rows
        match name:
            case "calls":
                rows = [call.step for call in self._columns.parts[0].history.calls]
                runs = np.concatenate([merged.runs_of(np.array(rows, dtype=np.int64)), merged.loose_runs])
            case "events":
                events = merged.events()
                runs = merged.runs_of(np.array([event.at for event in events], dtype=np.int64))
                frame["seq"] = frame["seq"].to_numpy() - np.array(merged.event_offsets, dtype=np.int64)[runs]
            case _:
                runs = merged.runs_of(frame["step"].to_numpy(dtype=np.int64))
        runs = runs.astype(np.int64)
        begins = np.array(merged.starts, dtype=np.int64)[runs]
        frame["step"] = frame["step"] - (begins if name not in ("calls", "events") else pd.array(begins, dtype="Int64"))
        if name == "steps":
            selected = frame["step"].to_numpy() > 0
            frame, runs = frame[selected].reset_index(drop=True), runs[selected]
        return frame, runs


class ManyFrames(Frames):
    """The seven tables over many runs: those of `trace.frames`, each with a leading column `run_id`.

    Rows are in the order of the runs. Each table is created on first access; each access returns an independent frame.
    """

    def __init__(self, runs: Iterable[Any]) -> None:
        self.cached_tables = {}
        traces = [get_trace(run, "nb.frames()") for run in runs]
        _check_ids(traces)
        groups: dict[Any, list[int]] = {}
        readings: list[StepIndex] = []
        for index, trace in enumerate(traces):
            reading = trace.reading()
            readings.append(reading)
            groups.setdefault((reading.nodes, reading.edges), []).append(index)
        self._groups = [(indices, _RecipeFrames(traces[index] for index in indices)) for indices in groups.values()]
        self._ids = [trace.run_id for trace in traces]
        self._size = sum(reading.tip for reading in readings)
        self._masking = partial(masking_for_runs, *traces)

    def __repr__(self) -> str:
        """Return the names, without creating a table."""
        return f"<frames of {len(self._ids)} runs, {self._size} steps: {', '.join(NAMES)}>"

    def build(self, name: str, make: Any) -> pd.DataFrame:
        """Return a new table over all runs."""
        with self._masking():
            return self._build(name)

    def _build(self, name: str) -> pd.DataFrame:
        tables = []
        for indices, group in self._groups:
            table, runs = group.table(name)
            tables.append((table, np.array(indices, dtype=np.int64)[runs]))
        if not tables:
            table = Frames(_make_empty_index())[name]
            tables = [(table, np.zeros(0, dtype=np.int64))]
        frame, runs = _concatenate(tables)
        ids = pd.Index(self._ids, dtype="str")
        column = pd.Categorical.from_codes(runs.astype(choose_int_type(len(ids))), categories=ids)
        frame.insert(0, "run_id", pd.Series(column))
        return frame


@plain_arguments
def frames(runs: Any) -> ManyFrames:
    """Return the seven tables over many runs, each with a leading column `run_id`.

    Args:
        runs: an iterable of runs (sessions, traces), one run, a Sweep, or a store: a path, a URL, an EventLog.

    Raises:
        ExecutionError: A101, one of them is not a run; A102, two of them have the same id.
        StoreError: there is no such store, or it cannot be read.

    Example:
        >>> import agentnb as nb
        >>> sessions = [nb.Session(nb.samples("refine"), {"number": n}, run_id=f"run {n}") for n in (2.0, 9.0)]
        >>> for session in sessions:
        ...     _ = session.run()
        >>> list(nb.frames(sessions).steps.groupby("run_id", observed=True).size())
        [27, 33]
    """
    return ManyFrames(get_runs(runs, "nb.frames()"))


def _check_ids(traces: list[SimulationTrace]) -> None:
    """Check that all runs have different ids.

    Raises:
        ExecutionError: A102, two of them have the same id.
    """
    ids = Counter(trace.run_id for trace in traces)
    twice = [run_id for run_id, times in ids.items() if times > 1]
    if twice:
        raise ExecutionError(
            Problem("A102", f"{pluralize(len(twice), 'run id')} passed more than once, such as {twice[0]!r}",
                    "nb.frames()", "the column run_id distinguishes the runs",
                    "pass each run once, or use a different run_id for each")
        )  # fmt: skip


def _make_empty_index() -> StepIndex:
    history = History(Tables())
    history.set_first_row([], 0)
    return StepIndex([history], ())


def _concatenate(tables: list[tuple[pd.DataFrame, NDArray[np.int64]]]) -> tuple[pd.DataFrame, NDArray[np.int64]]:
    """Return the tables of several recipes as one, in the order of the runs."""
    if len(tables) == 1:
        return tables[0]
    names = [name for name, dtype in tables[0][0].dtypes.items() if isinstance(dtype, pd.CategoricalDtype)]
    for name in names:
        values = dict.fromkeys(value for table, _ in tables for value in table[name].cat.categories)
        for table, _ in tables:
            table[name] = table[name].cat.set_categories(list(values))
    runs = np.concatenate([indexes for _, indexes in tables])
    order = np.argsort(runs, kind="stable")
    frame = pd.concat([table for table, _ in tables], ignore_index=True)
    return frame.take(order).reset_index(drop=True), runs[order]


__all__ = ["ManyFrames", "frames"]
