"""`nb.open`, and the table of the formats that it reads."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from agentnb.arguments import plain_arguments
from agentnb.engine.persistence.event_log import EventLog
from agentnb.errors import ExecutionError, Problem, StoreError, did_you_mean
from agentnb.recipe.model import Recipe
from agentnb.session.reopen import open_stored
from agentnb.session.session import Session
from agentnb.store.other_tables import read_database
from agentnb.text import safe_str

LARGEST: Final = 512 * 2**20  # bytes of a text file
_HEAD: Final = 65_536  # bytes read to recognize a file
_SQLITE: Final = b"SQLite format 3\x00"


@dataclass(frozen=True, slots=True)
class Content:
    """What is known of a source before it is opened: the tables of a database, or the first bytes of a file."""

    tables: frozenset[str] = frozenset()
    head: bytes = b""


@dataclass(frozen=True, slots=True)
class Format:
    """A row: the name of a format, how it is recognized, and the function that opens it.

    That function receives the path or URL, the id of the run, and the recipe.
    """

    name: str
    description: str
    recognize: Callable[[Content], bool]
    open: Callable[[str, str | None, Recipe | None], Session]


def _open_trace(where: str, _run_id: str | None, recipe: Recipe | None) -> Session:
    from agentnb.recordings.trace_files import open_trace

    return open_trace(where, recipe)


def _open_golden(where: str, _run_id: str | None, recipe: Recipe | None) -> Session:
    from agentnb.recordings.golden_files import open_golden

    return open_golden(where, recipe)


def _open_activegraph(where: str, run_id: str | None, _recipe: Recipe | None) -> Session:
    from agentnb.dialects.activegraph.parts.package_logs.session import open_activegraph

    return open_activegraph(where, run_id)


def _open_langgraph(where: str, run_id: str | None, _recipe: Recipe | None) -> Session:
    from agentnb.recordings.langgraph import open_langgraph

    return open_langgraph(where, run_id)


def _open_otel(where: str, run_id: str | None, _recipe: Recipe | None) -> Session:
    from agentnb.recordings.otel import open_otel

    return open_otel(where, run_id)


# In the order in which they are tried; a source that none of them recognizes is a store of agentnb.
FORMATS: Final[Mapping[str, Format]] = MappingProxyType({
    row.name: row
    for row in (
        Format("trace", "a JSON trace that trace.to_json wrote",
               lambda content: b'"agentnb.trace"' in content.head, _open_trace),
        Format("golden", "a run recorded for tests",
               lambda content: b'"agentnb.golden"' in content.head, _open_golden),
        Format("activegraph", "a log of the activegraph package, in SQLite or PostgreSQL",
               lambda content: content.tables >= {"events", "runs", "meta"}, _open_activegraph),
        Format("langgraph", "a checkpoint database of LangGraph, in SQLite or PostgreSQL",
               lambda content: "checkpoints" in content.tables and bool({"writes", "checkpoint_writes"}
                                                                         & content.tables), _open_langgraph),
        Format("otel", "spans of OpenTelemetry as OTLP JSON",
               lambda content: b'"resourceSpans"' in content.head, _open_otel),
    )
})  # fmt: skip
STORE: Final = "store"


@plain_arguments
def open(
    where: str | os.PathLike[str] | EventLog,
    run_id: str | None = None,
    *,
    format: str | None = None,
    recipe: Recipe | None = None,
    llm: Any = None,
    tools: Mapping[str, Callable[..., Any]] | None = None,
    resources: Mapping[type, Any] | None = None,
    answers: Any = None,
    secrets: Mapping[str, Any] | None = None,
    hooks: Any = None,
    take_over: bool = False,
) -> Session:
    """Return the session of a recorded run: of a store, of a trace file, or of another system.

    A stored run can continue if its recipe is passed; interrupted steps run again with the recorded answers, and calls
    without a response are in `pending`. Without the recipe, and in every other format, the run can be inspected and
    nothing can run. Opening a run executes and imports nothing from the record.

    Args:
        where: a path, a URL (sqlite:///runs.db, postgresql://...), or an EventLog.
        run_id: which run of the store; by default the one that was written last.
        format: "store", or one of `agentnb.recordings.formats.FORMATS`; by default it is recognized from the content.
        recipe: the recipe to continue with, or to show a trace with. If it differs from the recorded one, a warning
            lists the changes.
        llm, tools, resources, answers: as for a Session; they are not stored.
        secrets: the values that were masked when the run was saved: path -> value.
        hooks: as for a Session; they are notified of steps from here on.
        take_over: also continue a run that a session on another host or in another container has claimed. Whether that
            session still exists cannot be checked from here; if it does, it can write nothing more to this run.

    Raises:
        StoreError: there is no such source or run, it is damaged, or it does not fit the recipe; L571, the file is in
            no known format; L572, it is too large.
        RecipeError: the recipe has errors, or a tool is missing.
        ExecutionError: L570, there is no such format.
    """
    if format is not None and format != STORE and format not in FORMATS:
        names = [STORE, *FORMATS]
        raise ExecutionError(
            Problem("L570", f"there is no format {format!r}", f"nb.open(format={format!r})",
                    f"the formats are: {', '.join(names)}", did_you_mean(format, names, "leave it out"))
        )  # fmt: skip
    if isinstance(where, str | os.PathLike) and format != STORE:
        file_format = FORMATS[format] if format is not None else _recognize(os.fspath(where))
        if file_format is not None:
            return file_format.open(os.fspath(where), run_id, recipe)
    return open_stored(where, run_id, recipe=recipe, llm=llm, tools=tools, resources=resources, answers=answers,
                       secrets=secrets, hooks=hooks, take_over=take_over)  # fmt: skip


def format_of(where: str) -> str:
    """Return the name of a source's format: "store", or one of FORMATS.

    Raises:
        StoreError: L571, the file is in no format that can be opened.
    """
    file_format = _recognize(where)
    return STORE if file_format is None else file_format.name


def _recognize(where: str) -> Format | None:
    """Return the format of a source.

    None for a store of agentnb, or if opening the source as a store gives the best error.

    L571: a file is in no format that nb.open reads.

    Raises:
        StoreError: L571.
    """
    path = _find_file(where)
    if path is None and "://" not in where:
        return None
    content = Content(head=_read_head(path)) if path is not None else Content()
    if path is None or content.head.startswith(_SQLITE):
        content = Content(_list_tables(where))
        if not content.tables or "agentnb_meta" in content.tables:
            return None
    for row in FORMATS.values():
        if row.recognize(content):
            return row
    if content.head.lstrip()[:1] == b"{":
        raise StoreError(
            Problem("L571", "this file is in no format that can be opened", where,
                    f"tried were: {', '.join(f'{row.name} ({row.description})' for row in FORMATS.values())}",
                    "name the format with nb.open(..., format=...); a recipe is loaded with nb.load")
        )  # fmt: skip
    return None


def _find_file(where: str) -> Path | None:
    """Return the file that a path or an SQLite URL names, if it exists."""
    name = where.removeprefix("sqlite:///") if where.startswith("sqlite:///") else where
    try:
        path = Path(name).expanduser()
        return path if path.is_file() else None
    except (OSError, ValueError, RuntimeError):
        return None


def _read_head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_HEAD)


def _list_tables(where: str) -> frozenset[str]:
    """Return the tables of a database; empty if it cannot be read, which its store reports better."""
    try:
        return frozenset(read_database(where, lambda reader: reader.tables()))
    except StoreError:
        return frozenset()


def read_text(where: str) -> bytes:
    """Return the bytes of a file of a recording.

    L572: a file of a recording is larger than 512 MiB.
    R340: a file of a recording cannot be read.

    Raises:
        StoreError: L572, R340.
    """
    try:
        path = Path(where)
        size = path.stat().st_size
        if size <= LARGEST:
            return path.read_bytes()
    except (OSError, ValueError) as error:  # ValueError: the path has a null byte
        raise StoreError(
            Problem(
                "R340",
                "this file cannot be read",
                safe_str(where),
                safe_str(error),
                "check the path and its permissions",
            )
        ) from None
    raise StoreError(
        Problem("L572", "this file is too large to open", where, f"it has {size} bytes, and the limit is "
                f"{LARGEST}", "record the run in a store instead, or export fewer runs to a file")
    )  # fmt: skip


__all__ = ["FORMATS", "STORE", "Content", "Format", "format_of", "open", "read_text"]
