"""The breakpoints of a session as rows: saved to a file or a store, loaded, shown as a table."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agentnb.arguments import plain_methods
from agentnb.board.masking import mask_value
from agentnb.bounds import find_excess
from agentnb.engine.control.breakpoints import CLAUSES, Breakpoint, Breakpoints
from agentnb.errors import AgentNbError, ExecutionError, Problem
from agentnb.text import safe_str

if TYPE_CHECKING:
    import pandas as pd

VERSION: Final = 1
WORDS: Final = (*CLAUSES, "side", "on_hit", "once", "enabled", "log")  # the fields of a breakpoint that are saved
_TYPES: Final = {
    "id": "int64", "node": "string", "edge": "object", "key": "string", "when": "string", "error": "object",
    "step": "Int64", "event": "string", "call": "string", "in_place": "bool",
    "no_progress": "bool", "budget": "float64", "side": "string", "on_hit": "int64", "once": "bool",
    "enabled": "bool", "hits": "int64", "failed": "string",
}  # fmt: skip


@plain_methods
class SessionBreakpoints(Breakpoints):
    """The breakpoints of a session, which can be saved if their conditions are text or JsonLogic."""

    __slots__ = ()

    def to_rows(self) -> list[dict[str, Any]]:
        """Return them as plain JSON, with their ids and hits; omit those whose condition cannot be saved."""
        return [
            {"id": row.id, "hits": row.hits, **_get_fields(row)}
            for row in self
            if next(_iter_unsavable(row), None) is None
        ]

    def from_rows(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Add rows that `to_rows` returned, with their ids and hits; skip those that do not fit the recipe."""
        for fields in rows:
            try:
                row = self.make({name: fields[name] for name in WORDS if name in fields})
            except AgentNbError:
                continue
            row.id, row.hits = int(fields.get("id", self.last_id + 1)), int(fields.get("hits", 0))
            self.rows[row.id] = row
            self.last_id = max(self.last_id, row.id)
        self.on_change()

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write them to a JSON file, for `load`; return its path.

        Raises:
            ExecutionError: X131, a condition is a function or is not JSON; X132, it contains a secret; X133, the file
                cannot be written. Then nothing is written.
        """
        problems = [problem for row in self for problem in _iter_unsavable(row)]
        if problems:
            raise ExecutionError(*problems)
        file, document = Path(path), {"agentnb": "breakpoints", "version": VERSION, "rows": [*map(_get_fields, self)]}
        try:
            file.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
        except OSError as error:
            raise ExecutionError(_make_file_problem(file, "written", error)) from error
        return file

    def load(self, path: str | os.PathLike[str]) -> tuple[Breakpoint, ...]:
        """Add the breakpoints of a file that `save` wrote, with their hits reset, and return them; all or none.

        Raises:
            ExecutionError: X133, the file cannot be read; X134, it holds something else; or the errors that `add`
                raises for each of its breakpoints.
        """
        file = Path(path)
        loaded: list[Breakpoint] = []
        problems: list[Problem] = []
        for number, fields in enumerate(_read(file), 1):
            try:
                loaded.append(self.make(fields))
            except AgentNbError as error:
                problems += (replace(problem, where=f"{file}, breakpoint {number}") for problem in error.problems)
        if problems:
            raise ExecutionError(*problems)
        for row in loaded:
            self._insert(row)
        self.on_change()
        return tuple(loaded)

    def to_frame(self) -> pd.DataFrame:
        """Return them as a DataFrame, one row per breakpoint."""
        from agentnb.trace.frames import make_table

        rows = [
            {**{name: getattr(row, name) for name in _TYPES}, "when": safe_str(row.text) or None,
             "in_place": bool(row.in_place), "no_progress": bool(row.no_progress),
             "failed": safe_str(row.failed) or None}
            for row in self
        ]  # fmt: skip
        return make_table(rows, _TYPES)


def _get_fields(row: Breakpoint) -> dict[str, Any]:
    """Return the fields with which a breakpoint was added, without defaults."""
    fields = {name: getattr(row, name) for name in WORDS}
    fields["when"] = getattr(row.when, "source", None)
    fields["edge"] = None if row.edge is None else list(row.edge)
    return {name: value for name, value in fields.items() if value is not None}


def _iter_unsavable(row: Breakpoint) -> Iterator[Problem]:
    """Yield why a breakpoint cannot be saved.

    X131: the condition of a breakpoint is a function of the board, or not JSON.
    X132: the condition of a breakpoint contains a secret.
    """
    where, source = f"breakpoint {row.id} ({row})", getattr(row.when, "source", None)
    if row.when is not None and not _is_json(source):
        yield Problem("X131", f"the condition of breakpoint {row.id} cannot be saved: {row.text}", where,
                      "a function has no text to save",
                      "write it as a string ('n > 3') or as JsonLogic, or remove this breakpoint")  # fmt: skip
    elif mask_value(_get_fields(row)) != _get_fields(row):
        yield Problem("X132", f"breakpoint {row.id} contains a secret", where, "no secret leaves this process",
                      "compare with a key of the board instead, or remove this breakpoint")  # fmt: skip


def _is_json(source: Any) -> bool:
    if not isinstance(source, str | Mapping | bool) or find_excess(source):
        return False
    try:
        return bool(json.loads(json.dumps(source)) == source)
    except (TypeError, ValueError):
        return False


def _read(file: Path) -> list[Mapping[str, Any]]:
    """Return the rows of a file of breakpoints."""
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ExecutionError(_make_file_problem(file, "read", error)) from error
    except (ValueError, RecursionError):  # RecursionError: the parser's depth limit
        document = None
    rows = document.get("rows") if isinstance(document, dict) and document.get("agentnb") == "breakpoints" else None
    if not isinstance(rows, list) or not all(isinstance(row, dict) and row.keys() <= set(WORDS) for row in rows):
        raise ExecutionError(
            Problem("X134", f"{file.name!r} contains no breakpoints", str(file),
                    "it was not written by session.breakpoints.save() of this version",
                    "name such a file")
        )  # fmt: skip
    return rows


def _make_file_problem(file: Path, done: str, error: OSError) -> Problem:
    """X133: a file of breakpoints cannot be read or written."""
    return Problem("X133", f"{file.name!r} cannot be {done}", str(file), error.strerror or type(error).__name__,
                   "name another file")  # fmt: skip


__all__ = ["SessionBreakpoints"]
