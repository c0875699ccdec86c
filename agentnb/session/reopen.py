"""Reopen a session from a store: with its recipe it can continue, without it is read-only."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from typing import Any, Final

from agentnb.board.values import thaw
from agentnb.clock import restore_clock
from agentnb.engine.core.plan import Plan
from agentnb.engine.persistence.checksums import has_checksum, is_intact
from agentnb.engine.persistence.delta_loader import DeltaLoader, check_version, make_damage_error, reading_document
from agentnb.engine.persistence.deltas import DeltaEncoder
from agentnb.engine.persistence.event_log import Entry, EventLog, RunRow
from agentnb.engine.persistence.journal import Journal
from agentnb.engine.persistence.open_journals import flush_all
from agentnb.engine.persistence.snapshot import check_fit, make_renumbering, renumber_edges, run_of
from agentnb.errors import Problem, StoreError, warn_caller
from agentnb.garbage_collection import pause_collection
from agentnb.kinds import KINDS
from agentnb.recipe.model import Recipe
from agentnb.session.checks import check_answers, check_tools
from agentnb.session.damaged_run import SoundEntries
from agentnb.session.limits import Limits
from agentnb.session.parts import get_parts
from agentnb.session.schedules import build_hooks
from agentnb.session.session import Session, make_session
from agentnb.session.setup import make_world, prepare_recipe
from agentnb.session.state import get_state
from agentnb.session.stored_run import parse_head, parse_options
from agentnb.store import open_log
from agentnb.trace.recipe_snapshot import describe_changes, make_readable_kinds, read_only, rebuild_recipe
from agentnb.world.world import World

MASKED: Final = '"masked"'  # the tag of a masked value
AT_ONCE: Final = 32  # number of entries parsed as one text: small enough to be freed while still in the CPU caches


def open_stored(
    where: str | os.PathLike[str] | EventLog,
    run_id: str | None = None,
    *,
    recipe: Recipe | None = None,
    secrets: Mapping[str, Any] | None = None,
    hooks: Any = None,
    take_over: bool = False,
    **world: Any,
) -> Session:
    """Return a session as saved in a store, at its saved position; `nb.open` documents the arguments.

    `world` is the session's: `llm`, `tools`, `resources`, `answers`.

    Raises:
        StoreError: L404, the run does not fit the recipe; L411, it cannot be taken over; there is no such store or run,
            or it is damaged.
        RecipeError: the recipe has errors, or a tool is missing.
    """
    log = open_log(where)
    flush_all()
    row = log.run(None if run_id is None else str(run_id))
    with _name_run_in_errors(log, row):
        head = parse_head(row)
    if recipe is None:
        known = rebuild_recipe(head["recipe"])
        session = reopen_run(log, row, Plan(known, make_readable_kinds(known), World()), can_continue=False)
    else:
        recipe = prepare_recipe(recipe, world.get("tools"))
        check_answers(recipe, world.get("answers"), world.get("llm"))
        plan = Plan(recipe, KINDS, make_world(recipe, **world, strict=head["strict"]))
        check_tools(recipe, world.get("tools"))
        if take_over:  # before the run is read: the other writer can add nothing afterwards
            log.claim(row.run_id, take_over=True)
            row = log.run(row.run_id)
        session = reopen_run(log, row, plan)
        get_parts(session).persistence.fill(secrets or {})
    get_state(session).hooks.add_all(build_hooks(hooks) or {})
    if changed := get_parts(session).persistence.changes:
        lines = "\n  ".join(changed)
        warn_caller(f"run {row.run_id!r} was made with another version of this recipe:\n  {lines}")
    return session


def reopen_run(log: EventLog, row: RunRow, plan: Plan, *, can_continue: bool = True) -> Session:
    """Return a session of a stored run with a plan, at the saved position.

    Raises:
        StoreError: L404, the run does not fit the plan; or it is damaged.
    """
    head = parse_head(row)
    with pause_collection():
        joined, saved, seq, lost = _read(log, row, plan)
        with _name_run_in_errors(log, row), reading_document():
            session = _make_session(plan, row, head, (joined, saved))
    state, persistence = get_parts(session).state, get_parts(session).persistence
    state.log = log
    if row.parent is not None and row.shared:
        state.get_origin = lambda: [*_iter_ancestors(log, row)][-1][0].run_id
    if lost is not None:
        warn_caller(str(lost))
    if not can_continue:
        state.read_only_reason = read_only(f"run {row.run_id!r}")
        return session
    persistence.changes = tuple(describe_changes(head["recipe"], plan.recipe))
    if lost is not None:
        return session
    journal = Journal(log, row.run_id, state.run, _make_encoder(joined))
    journal.continue_run(
        seq, {name: saved[name] for name in ("random", "ids", "clock")}, saved["aux"], joined.list_in_flight()
    )
    persistence.record_in(journal)
    return session


def _make_session(
    plan: Plan, row: RunRow, head: Mapping[str, Any], loaded: tuple[DeltaLoader, Mapping[str, Any]]
) -> Session:
    joined, state = loaded
    start = {name: head[name] for name in ("given", "seed", "salt") if name in head}
    run = run_of(plan, joined, {**state, **start}, restore_clock(state["clock"]))
    budget, run.chaos = parse_options(head, state["aux"])
    unfinished, run.has_masked_values = joined.collect_interrupted(), state["masks"]
    unfinished.load_changes(run, state["aux"].get("changes", ()))
    run.recorded, run.history.uncommitted_calls = unfinished or None, unfinished.rows()
    session = make_session(run, Limits(budget), row.name, dict(thaw(run.inputs)), row.run_id)
    session.breakpoints.from_rows(state["aux"].get("breakpoints", ()))
    for source in state["aux"].get("watches", ()):
        session.watches.add(source)
    return session


def _make_encoder(joined: DeltaLoader) -> DeltaEncoder:
    """Return a delta encoder for which everything loaded is already saved."""
    encoder = DeltaEncoder.for_histories(joined.tables, joined.histories)
    encoder.recorded_calls = {key: row for rows in joined.recorded_calls.values() for key, row in rows.items()}
    encoder.recorded_events = {event.seq for events in joined.recorded_events.values() for event in events}
    return encoder


# -- reading --------------------------------------------------------------------------------------------------------


def _read(log: EventLog, row: RunRow, plan: Plan) -> tuple[DeltaLoader, dict[str, Any], int, Problem | None]:
    """Return a run's histories, its position, the number of its last entry, and what was lost of it."""
    joined, state, seq, lost = DeltaLoader(), dict[str, Any](aux={}, masks=False), 0, None
    with _name_run_in_errors(log, row):
        rows = [(row, None), *_iter_ancestors(log, row)]
    for part, until in reversed(rows):
        joined.drop_all()
        state["aux"] = {}
        with _name_run_in_errors(log, part), reading_document():
            entries = SoundEntries(log, part, until)
            seq = _read_one(entries, part, plan, joined, state)
        if entries.damage is not None:
            if not seq and part is rows[-1][0]:
                with _name_run_in_errors(log, row):
                    raise make_damage_error(entries.damage)
            lost = entries.problem(row)
            break
    state["limit"] = state["position"] = None
    if row.at and lost is None:
        try:
            if has_checksum(row.at) and not is_intact(row.at, row.run_id):
                raise ValueError("its checksum does not match")
            at = json.loads(row.at)
            state["position"] = at["position"] if at["seq"] == seq else None  # else the run has moved since
        except (ValueError, KeyError, TypeError, RecursionError) as error:  # RecursionError: the parser's depth limit
            lost = Problem(
                "L436",
                f"the position of run {row.run_id!r} cannot be read",
                log.url,
                f"its row is damaged: {error}",
                "the session is at the last step; move it with back() and goto()",
                "warning",
            )
    return joined, state, seq, lost


def _read_one(entries: SoundEntries, part: RunRow, plan: Plan, joined: DeltaLoader, state: dict[str, Any]) -> int:
    """Add the stored entries of one run, up to a limit; return the number of the last."""
    head, seq = parse_head(part), 0
    check_version(head.get("version"))
    joined.renumber(make_renumbering(plan, head["nodes"]), renumber_edges(plan, head.get("edges", ())))
    state["masks"] = state["masks"] or MASKED in part.head
    for documents, last, masked in _parse_documents(entries):
        seq = last
        state["masks"] = state["masks"] or masked
        joined.add(documents)
        for document in documents:
            if "run" in document:
                state.update(document["run"])
            if "aux" in document:
                state["aux"] = document["aux"]
    check_fit(plan, joined.tables, head["nodes"])
    return seq


@contextmanager
def _name_run_in_errors(log: EventLog, row: RunRow) -> Iterator[None]:
    """Add the run and its store to the error if a run cannot be read."""
    try:
        yield
    except StoreError as error:
        if error.problems[0].code != "L402":
            raise
        where, do = f"run {row.run_id!r} of {log.url}", "restore the store from a backup, or open another run of it"
        raise StoreError(*(replace(problem, where=where, do=do) for problem in error.problems)) from error.__cause__


def _iter_ancestors(log: EventLog, row: RunRow) -> Iterator[tuple[RunRow, int]]:
    """Yield the runs whose beginning a run shares, each with the last shared entry."""
    while row.parent is not None and row.shared:
        row, shared = log.run(row.parent), row.shared
        yield row, shared


def _parse_documents(entries: Iterable[Entry]) -> Iterator[tuple[list[dict[str, Any]], int, bool]]:
    """Yield parsed entries in chunks: the documents, the number of the last, and whether any has a masked value."""
    rest = iter(entries)
    while chunk := list(islice(rest, AT_ONCE)):
        text = f"[{','.join([entry.body for entry in chunk])}]"
        parsed = json.loads(text)
        if len(parsed) != len(chunk):
            raise make_damage_error(ValueError("an entry is not a document"))
        yield parsed, chunk[-1].seq, MASKED in text


__all__ = ["open_stored", "reopen_run"]
