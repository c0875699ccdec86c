"""The runs of a sweep: a sequence of jobs that are created on demand, so that a long list takes little memory."""

from __future__ import annotations

import hashlib
import json
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, overload

from agentnb.analysis.sweep_workers import Job, SweepSettings
from agentnb.board.codec import encode
from agentnb.board.values import freeze
from agentnb.errors import ExecutionError, Problem
from agentnb.text import safe_str

if TYPE_CHECKING:
    import pandas as pd

_KEY_TEXT: Final = json.JSONEncoder(sort_keys=True).encode
_TABLE_ROWS: Final = 64  # rows of a DataFrame that are converted at a time

Inputs = Sequence[Mapping[str, Any]]


class TableInputs(Sequence[Mapping[str, Any]]):
    """The rows of a DataFrame as the inputs of runs; a few of them are converted at a time."""

    def __init__(self, table: pd.DataFrame) -> None:
        self._table = table.copy()
        self._begin, self._rows = 0, list[dict[str, Any]]()

    @overload
    def __getitem__(self, at: int) -> Mapping[str, Any]: ...
    @overload
    def __getitem__(self, at: slice) -> list[Mapping[str, Any]]: ...
    def __getitem__(self, at: int | slice) -> Any:
        if isinstance(at, slice):
            return [self[number] for number in range(*at.indices(len(self)))]
        begin, rows = self._begin, self._rows
        if not begin <= at < begin + len(rows):
            begin = at - at % _TABLE_ROWS
            records = self._table.iloc[begin : begin + _TABLE_ROWS].to_dict("records")
            rows = [{str(key): value for key, value in row.items()} for row in records]
            self._begin, self._rows = begin, rows
        return rows[at - begin]

    def __len__(self) -> int:
        return len(self._table)


def to_inputs(inputs: Any) -> Inputs:
    """Return the inputs of the runs as a sequence of mappings.

    Raises:
        ExecutionError: A110, they are neither mappings nor a table.
    """
    if hasattr(inputs, "to_dict") and hasattr(inputs, "columns"):
        return TableInputs(inputs)
    rows = [inputs] if isinstance(inputs, Mapping) else inputs
    if isinstance(rows, Iterable) and not isinstance(rows, str | bytes):
        row_list = list(rows)
        if all(isinstance(row, Mapping) for row in row_list):
            return row_list
    raise ExecutionError(
        Problem("A110", "the inputs of a sweep are not a list of mappings", "nb.sweep(inputs=...)",
                f"got a {type(inputs).__name__}", "pass a list of dicts, one per run, or a DataFrame")
    )  # fmt: skip


class Jobs(Sequence[Job]):
    """The jobs of a sweep: every recipe with all inputs, seeds and models, in this order.

    Each has an id derived from its recipe, inputs, seed and model; the second of two equal jobs ends in `-1`. A job is
    created on demand: memory holds only the original inputs, and 24 bytes.
    """

    def __init__(self, work: SweepSettings, inputs: Inputs, seeds: Sequence[int]) -> None:
        self._inputs, self._seeds, self._models = inputs, seeds, list(work.models) or [""]
        self._recipes = list(work.recipes)
        self._prefixes = [safe_str(work.options.get("name") or name or recipe.name, 60)
                          for name, recipe in work.recipes.items()]  # fmt: skip
        self._digests = array("Q", self._iter_digests(work))
        size = len(self._digests)
        self._sorted = array("Q", sorted(range(size), key=self._digests.__getitem__))
        self._repeats = array("Q", bytes(8 * size))  # how many equal jobs precede each job
        for previous, at in pairwise(self._sorted):
            if self._digests[previous] == self._digests[at]:
                self._repeats[at] = self._repeats[previous] + 1

    def _iter_digests(self, work: SweepSettings) -> Iterator[int]:
        ends = [f", {seed!r}{f', {_KEY_TEXT(model)}' if model else ''}]".encode()
                for seed in self._seeds for model in self._models]  # fmt: skip
        for recipe in work.recipes.values():
            begin = hashlib.sha256(f"[{_KEY_TEXT(recipe.fingerprint)}, ".encode())
            for inputs in self._inputs:
                encoded = _KEY_TEXT(encode(freeze(dict(inputs)), lenient=True)).encode()
                for end in ends:
                    digest = begin.copy()
                    digest.update(encoded + end)
                    yield int.from_bytes(digest.digest()[:8], "big")

    @overload
    def __getitem__(self, at: int) -> Job: ...
    @overload
    def __getitem__(self, at: slice) -> list[Job]: ...
    def __getitem__(self, at: int | slice) -> Any:
        if isinstance(at, slice):
            return [self[number] for number in range(*at.indices(len(self)))]
        number = range(len(self))[at]
        rest, model = divmod(number, len(self._models))
        rest, seed = divmod(rest, len(self._seeds))
        recipe, index = divmod(rest, len(self._inputs))
        return Job(number, self._make_id(number), dict(self._inputs[index]), self._seeds[seed], self._recipes[recipe],
                   self._models[model])  # fmt: skip

    def _make_id(self, number: int) -> str:
        repeats = self._repeats[number]
        prefix = self._prefixes[number // (len(self._models) * len(self._seeds) * len(self._inputs))]
        return f"{prefix}-{self._digests[number]:016x}{f'-{repeats}' if repeats else ''}"

    def find(self, run_id: str) -> Job | None:
        """Return the job with an id; None if there is none."""
        for text in run_id.rsplit("-", 2)[1:]:
            try:
                digest = int(text, 16)
            except ValueError:
                continue
            for index in range(bisect_left(self._sorted, digest, key=self._digests.__getitem__), len(self)):
                number = self._sorted[index]
                if self._digests[number] != digest:
                    break
                if self._make_id(number) == run_id:
                    return self[number]
        return None

    def iter_ids(self) -> Iterator[str]:
        """Yield the ids of all jobs, in order."""
        return map(self._make_id, range(len(self)))

    def __len__(self) -> int:
        return len(self._digests)


class SelectedJobs(Sequence[Job]):
    """Some jobs of a sequence, selected by index."""

    def __init__(self, jobs: Sequence[Job], indices: Iterable[int]) -> None:
        self._jobs, self._places = jobs, array("Q", indices)

    @overload
    def __getitem__(self, at: int) -> Job: ...
    @overload
    def __getitem__(self, at: slice) -> list[Job]: ...
    def __getitem__(self, at: int | slice) -> Any:
        if isinstance(at, slice):
            return [self._jobs[index] for index in self._places[at]]
        return self._jobs[self._places[at]]

    def __len__(self) -> int:
        return len(self._places)


__all__ = ["Inputs", "Jobs", "SelectedJobs", "TableInputs", "to_inputs"]
