"""Stored runs: how recording begins, what is saved of a session besides its run, how a run is copied."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from agentnb.board.codec import decode, encode
from agentnb.engine.control.budget import Budget
from agentnb.engine.effects.crash_recovery import encode_changes
from agentnb.engine.persistence.deltas import VERSION, DeltaEncoder
from agentnb.engine.persistence.event_log import Entry, EventLog, RunRow
from agentnb.engine.persistence.journal import Batch, Journal, to_json_text
from agentnb.engine.persistence.snapshot import encode_randomness, list_edges
from agentnb.errors import ExecutionError, Problem, StoreError, did_you_mean
from agentnb.secrets import get_version
from agentnb.store import MemoryLog, open_log
from agentnb.text import safe_repr, safe_str
from agentnb.trace.recipe_snapshot import to_snapshot
from agentnb.world.fault_injection import Chaos

if TYPE_CHECKING:
    from agentnb.engine.core.run import Run
    from agentnb.recipe.model import Recipe
    from agentnb.session.state import State

WORDS: Final = ("step", "batch")


def to_batch(durability: Any) -> Batch | None:
    """Return the batch size: None ("step"), a Batch of the default size ("batch"), or a custom one.

    Raises:
        ExecutionError: X140, this is not a durability setting.
    """
    if durability == "step":
        return None
    if durability == "batch":
        return Batch()
    names = [field.name for field in fields(Batch)]
    settings = asdict(durability) if isinstance(durability, Batch) else durability
    sizes = settings if isinstance(settings, Mapping) else {"": 0}
    if sizes.keys() <= set(names) and all(type(size) is int and size > 0 for size in sizes.values()):
        return Batch(**sizes)
    raise ExecutionError(
        Problem("X140", f"{safe_repr(durability)} is not a durability setting", "durability=...",
                "'step' stores each step before the next; 'batch' may lose the last few; a mapping sets how many",
                did_you_mean(str(durability), WORDS, "write 'step', 'batch', or {'steps': 1000, 'ms': 200}"))
    )  # fmt: skip


def begin(state: State, store: Any, durability: Any) -> Journal | None:
    """Return the journal of a new session; None without a store.

    Raises:
        ExecutionError: X140, the durability is invalid; X143, the run's id is invalid.
        StoreError: this is not a store, it already has a run of this id, or it cannot be written.
    """
    batch = to_batch(durability)
    check_id(state.requested_id)
    if store is None:
        return None
    return begin_journal(state, open_log(store), state.run, batch)


def check_id(run_id: Any) -> None:
    """Raise for an invalid run id.

    Raises:
        ExecutionError: X143, it is empty, or not a string.
    """
    if run_id is not None and not (isinstance(run_id, str) and run_id.strip()):
        raise ExecutionError(
            Problem("X143", f"{safe_repr(run_id)} is not a run id", "run_id=...",
                    "run ids are non-empty strings",
                    "pass another id, or leave it out to get a generated one")
        )  # fmt: skip


def begin_journal(state: State, log: EventLog, run: Run, batch: Batch | None = None) -> Journal:
    """Return the journal of a run that is not stored yet, with its row written.

    Raises:
        StoreError: it cannot be saved.
    """
    journal = Journal(log, state.run_id, run, DeltaEncoder(run.tables), batch)
    journal.aux = make_aux(state)
    journal.begin(make_row(state, run))
    return journal


def copy_of(state: State, status: str) -> tuple[RunRow, Entry]:
    """Return a run that is not stored, as a store would hold it: its row, of no writer, and its only entry.

    Raises:
        StoreError: no codec supports one of its values.
    """
    journal = Journal(_make_null_log(), state.run_id, state.run, DeltaEncoder(state.run.tables))
    journal.aux = make_aux(state)
    entry = journal.first_entry()
    journal.seq = entry.seq
    return make_row(state, state.run, status=status, at=journal.position_text() or None), entry


@cache
def _make_null_log() -> EventLog:
    """Return the log of journals that save nothing."""
    return MemoryLog()


def begin_fork(state: State, parent: Journal) -> Journal:
    """Return the journal of a session forked from a stored one: the shared part is stored once.

    Raises:
        StoreError: it cannot be saved.
    """
    parent.flush()
    run = state.run
    row = make_row(state, run, parent=parent.run_id, shared=parent.seq, forked=run.position)
    return parent.fork(run, row)


def make_row(state: State, run: Run, **lineage: Any) -> RunRow:
    """Return the store's row for a session's run."""
    recipe = state.recipe
    return RunRow(
        run_id=state.run_id,
        name=safe_str(state.name),
        recipe=safe_str(recipe.name),
        dialect=recipe.dialect,
        fingerprint=recipe.fingerprint,
        created=datetime.now(UTC),
        head=_make_head(state, run),
        steps=run.position,
        **lineage,
    ).seal()


def _make_head(state: State, run: Run) -> str:
    rest = {
        "given": encode(run.inputs, lenient=True),
        **encode_randomness(run),
        "chaos": None if run.chaos is None else asdict(run.chaos),
        "strict": run.world.strict,
    }
    return f"{_make_shared_head(state.recipe, run)},{to_json_text(rest)[1:]}"


def _make_shared_head(recipe: Recipe, run: Run) -> str:
    """Return the JSON text that the heads of all runs of a plan begin with: its masked recipe, its nodes and edges.

    It is made once, unless there are other secrets now.
    """
    known, plan, secrets = recipe.derived, run.plan, get_version()
    if "head" not in known or known["head"][0] is not plan.nodes or known["head"][1] != secrets:
        same = {"recipe": to_snapshot(recipe), "version": VERSION, "nodes": [node.id for node in plan.nodes],
                "edges": list_edges(plan)}  # fmt: skip
        known["head"] = plan.nodes, secrets, to_json_text(same)[:-1]
    head: str = known["head"][2]
    return head


def parse_options(head: Mapping[str, Any], aux: Mapping[str, Any]) -> tuple[Budget, Chaos | None]:
    """Return the current budget of a run, and the fault injection with which it was started."""
    return Budget(**decode(aux.get("budget", {}))), None if head["chaos"] is None else Chaos(**head["chaos"])


def make_aux(state: State) -> dict[str, Any]:
    """Return what is saved of a session besides its run's history.

    These are its budget, the breakpoints and watches that can be saved, and what people have changed of paused calls.
    """
    limits = state.limits.budget
    caps = {name: getattr(limits, name) for name in Budget.__slots__}
    budget = {name: encode(value) for name, value in caps.items() if value is not None}
    fields = {
        "breakpoints": state.breakpoints.to_rows() if state.breakpoint_rows else [],
        "watches": state.watch_sources,
        "budget": budget,
        "changes": encode_changes(state.run),
    }
    return {name: rows for name, rows in fields.items() if rows}


def parse_head(row: RunRow) -> dict[str, Any]:
    """Return the start parameters of a run, from its row.

    L402: the row is damaged.

    Raises:
        StoreError: L402, it cannot be read.
    """
    try:
        if not row.is_sound():
            raise ValueError("its checksum does not match")
        head = json.loads(row.head)
        head["recipe"]["nodes"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:  # RecursionError: the parser's depth limit
        raise StoreError(
            Problem("L402", f"the header of run {row.run_id!r} cannot be read", f"run {row.run_id!r}",
                    f"{type(error).__name__}: {error}", "open another run of it")
        ) from error  # fmt: skip
    return dict(head)


__all__ = [
    "begin",
    "begin_fork",
    "begin_journal",
    "check_id",
    "copy_of",
    "make_aux",
    "make_row",
    "parse_head",
    "parse_options",
    "to_batch",
]
