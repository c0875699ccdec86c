"""opening: a session back from a store: with its recipe it goes on, without it is there to be read."""

from __future__ import annotations

import gc
import json
import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from agentnb.board.values import thaw
from agentnb.clock import clock_of
from agentnb.engine.alive import flush_all
from agentnb.engine.joining import Joined, check_version, damaged
from agentnb.engine.journal import Journal
from agentnb.engine.log import EventLog, RunRow
from agentnb.engine.plan import Plan
from agentnb.engine.resuming import Unfinished
from agentnb.engine.revival import check_fit, renumbering, run_of
from agentnb.engine.slices import Slicer
from agentnb.errors import StoreError
from agentnb.kinds import KINDS
from agentnb.recipe.model import Recipe
from agentnb.session.checks import check_answers
from agentnb.session.kept import changes, kinds_to_read, read_only, recipe_of
from agentnb.session.limits import Limits
from agentnb.session.session import Session
from agentnb.session.stored import head_of, options_of
from agentnb.session.wiring import ready, world_of
from agentnb.store import open_log
from agentnb.world.world import World

if TYPE_CHECKING:
    import pandas as pd

MASKED: Final = '"masked"'  # the tag that stands in place of a masked value
AT_ONCE: Final = 256  # so many entries are read as one text: what was read is let go of while it is still in the caches
COLUMNS: Final = {
    "run_id": "object", "name": "object", "recipe": "object", "dialect": "object", "status": "object", "steps": "int64",
    "created": "datetime64[ns, UTC]", "updated": "datetime64[ns, UTC]", "parent": "string", "forked": "Int64",
    "writer": "string", "fingerprint": "object",
}  # fmt: skip


def open(
    where: str | os.PathLike[str] | EventLog,
    run_id: str | None = None,
    *,
    recipe: Recipe | None = None,
    llm: Any = None,
    tools: Mapping[str, Callable[..., Any]] | None = None,
    resources: Mapping[type, Any] | None = None,
    answers: Any = None,
    secrets: Mapping[str, Any] | None = None,
    hooks: Any = None,
) -> Session:
    """Return a session as it is kept in a store; it stands where it stood.

    With the recipe it goes on: the steps that were cut run again with the answers that had come, and what went out and
    never came back stands in `pending`. Without the recipe all can be looked at and nothing can run. Nothing that is
    kept is run or imported by opening it.

    Args:
        where: a path, a URL (sqlite:///runs.db, postgresql://...), or an EventLog.
        run_id: which run; left out, the one that was written last.
        recipe: the recipe that the run goes on with. Where it is another than then, a warning says what has changed.
        llm, tools, resources, answers: as for a Session; they are not kept.
        secrets: the values that were masked when they were kept: path -> value.
        hooks: as for a Session; they are told of what runs from here on.

    Raises:
        StoreError: L404, the run does not fit the recipe; there is no such store or run, or it is damaged.
        RecipeError: the recipe has errors, or a tool is missing.
    """
    log = open_log(where)
    flush_all()
    row = log.run(None if run_id is None else str(run_id))
    with _named(log, row):
        head = head_of(row)
    if recipe is None:
        known = recipe_of(head["recipe"])
        session = reopened(log, row, Plan(known, kinds_to_read(known), World()), goes_on=False)
    else:
        recipe = ready(recipe, tools)
        check_answers(recipe, answers, llm)
        world = world_of(recipe, llm=llm, tools=tools, answers=answers, resources=resources, strict=head["strict"])
        session = reopened(log, row, Plan(recipe, KINDS, world))
        session.fill(secrets or {})
    session.hooks.add_all(hooks or {})
    if session.changes:
        told = "\n  ".join(session.changes)
        warnings.warn(f"run {row.run_id!r} was made with another version of this recipe:\n  {told}", stacklevel=2)
    return session


def reopened(log: EventLog, row: RunRow, plan: Plan, *, goes_on: bool = True) -> Session:
    """Return a session of a kept run over a plan, standing where the run stood.

    Raises:
        StoreError: L404, the run does not fit the plan; or it is damaged.
    """
    head = head_of(row)
    with _uncollected():
        joined, kept, seq = _read(log, row, plan)
        session = _session(plan, row, head, (joined, kept))
    session.log = log
    if not goes_on:
        session.locked = read_only(f"run {row.run_id!r}")
        return session
    session.changes = tuple(changes(head["recipe"], plan.recipe))
    journal = Journal(log, row.run_id, session.engine, _slicer(joined))
    journal.go_on(seq, {name: kept[name] for name in ("random", "ids", "clock")}, kept["aux"], joined.flying())
    session.keep_in(journal)
    return session


@contextmanager
def _uncollected() -> Iterator[None]:
    """Read without the collector of cycles: it would look at each of millions of new lists again and again."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()


def _session(plan: Plan, row: RunRow, head: Mapping[str, Any], found: tuple[Joined, Mapping[str, Any]]) -> Session:
    joined, kept = found
    run = run_of(plan, joined, {**kept, "given": head["given"], "seed": head["seed"]}, clock_of(kept["clock"]))
    budget, run.chaos = options_of(head, kept["aux"])
    unfinished, run.masks = Unfinished(joined), kept["masks"]
    run.recorded = unfinished or None
    session = Session.__new__(Session)
    session.inputs = dict(thaw(run.given))
    session._wire(plan.recipe, run, Limits(budget), row.name, row.run_id)  # noqa: SLF001  (it is made here)
    session.breakpoints.from_rows(kept["aux"].get("breakpoints", ()))
    for source in kept["aux"].get("watches", ()):
        session.watches.add(source)
    return session


def _slicer(joined: Joined) -> Slicer:
    """Return a slicer for which all that was put together is kept."""
    slicer = Slicer.after(joined.tables, joined.histories)
    slicer.told = {key: row for rows in joined.told.values() for key, row in rows.items()}
    slicer.announced = {event.seq for events in joined.announced.values() for event in events}
    return slicer


# -- reading ---------------------------------------------------------------------------------------------------------


def _read(log: EventLog, row: RunRow, plan: Plan) -> tuple[Joined, dict[str, Any], int]:
    """Return a run's histories, where it stands, and the number of its last entry."""
    joined, kept, seq = Joined(), dict[str, Any](aux={}, masks=False), 0
    rows = [(row, None), *_ancestors(log, row)]
    for part, until in reversed(rows):
        joined.drop()
        kept["aux"] = {}
        with _named(log, part):
            seq = _read_one(log, (part, until), plan, joined, kept)
    kept["limit"] = None
    try:
        at = json.loads(row.at) if row.at else {}
        kept["position"] = at["position"] if at.get("seq") == seq else None  # else the run has moved on since
    except (ValueError, KeyError, TypeError) as error:
        with _named(log, row):
            raise damaged(error) from error
    return joined, kept, seq


def _read_one(log: EventLog, which: tuple[RunRow, int | None], plan: Plan, joined: Joined, kept: dict[str, Any]) -> int:
    """Add what is kept of one run, up to an entry; return the number of the last."""
    part, until = which
    head, seq = head_of(part), 0
    check_version(head.get("version"))
    joined.renumber(renumbering(plan, head["nodes"]))
    kept["masks"] = kept["masks"] or MASKED in part.head
    for documents, last, masked in _documents(log, part.run_id, until):
        seq = last
        kept["masks"] = kept["masks"] or masked
        joined.add(documents)
        for document in documents:
            if "run" in document:
                kept.update(document["run"])
            if "aux" in document:
                kept["aux"] = document["aux"]
    check_fit(plan, joined.tables, head["nodes"])
    return seq


@contextmanager
def _named(log: EventLog, row: RunRow) -> Iterator[None]:
    """Say of a run that cannot be read which one it is, and of which store."""
    try:
        yield
    except StoreError as error:
        if error.problems[0].code != "L402":
            raise
        where, do = f"run {row.run_id!r} of {log.url}", "put the store back from a copy, or open another run of it"
        raise StoreError(*(replace(one, where=where, do=do) for one in error.problems)) from error.__cause__


def _ancestors(log: EventLog, row: RunRow) -> Iterator[tuple[RunRow, int]]:
    """Yield the runs that a run shares its beginning with, each with the last entry that they share."""
    while row.parent is not None and row.shared:
        row, shared = log.run(row.parent), row.shared
        yield row, shared


def _documents(log: EventLog, run_id: str, until: int | None) -> Iterator[tuple[list[dict[str, Any]], int, bool]]:
    """Yield what a run's entries say, some at a time, the number of the last, and whether any has a masked value."""
    entries = iter(log.entries(run_id, 0, until))
    while chunk := list(islice(entries, AT_ONCE)):
        text = f"[{','.join([entry.body for entry in chunk])}]"
        try:
            found = json.loads(text)
        except ValueError as error:
            raise damaged(error) from error
        if len(found) != len(chunk):
            raise damaged(ValueError("an entry is no document"))
        yield found, chunk[-1].seq, MASKED in text


def runs(where: str | os.PathLike[str] | EventLog) -> pd.DataFrame:
    """Return the runs in a store, one row a run, the oldest first.

    `status` is the last that was told of it; `interrupted` where it ran and nobody runs it any more. `parent` and
    `forked` are the run and the step that it began from, where it is a fork. `writer` is who writes it now.

    Raises:
        StoreError: there is no such store, or it cannot be read.
    """
    from agentnb.trace.frames import table

    flush_all()
    return table([_row(row) for row in open_log(where).runs()], COLUMNS)


def _row(row: RunRow) -> dict[str, Any]:
    found: dict[str, Any] = {name: getattr(row, name) for name in COLUMNS}
    if row.status == "running" and row.writer is None:
        found["status"] = "interrupted"
    return found


__all__ = ["open", "reopened", "runs"]
