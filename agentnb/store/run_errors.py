"""Errors for runs that do not exist or already exist."""

from __future__ import annotations

from collections.abc import Sequence

from agentnb.errors import Problem, StoreError, did_you_mean


def make_missing_run_error(run_id: str, newest: Sequence[str], count: int, where: str) -> StoreError:
    """L413: there is no such run, or the store is empty."""
    names = ", ".join(map(repr, newest[:5]))
    why = f"it has {count} runs; the newest are: {names}" if count > 5 else f"its runs are: {names or 'none'}"
    do = did_you_mean(run_id, newest, "nb.runs(...) lists the ids of its runs")
    return StoreError(Problem("L413", f"there is no run {run_id!r}", where, why, do))


def make_empty_store_error(where: str) -> StoreError:
    """L413: there is no such run, or the store is empty."""
    return StoreError(
        Problem(
            "L413",
            "the store is empty",
            where,
            "without an id, the last run is opened, and this store has no runs",
            "store a run here first with nb.Session(recipe, store=...), or use another store",
        )
    )


def make_duplicate_error(run_id: str, where: str) -> StoreError:
    """L412: a run with this id already exists."""
    return StoreError(
        Problem(
            "L412",
            f"run {run_id!r} already exists",
            where,
            "run ids are unique in a store",
            "pass another run_id, or leave it out; to continue the existing run, open it with nb.open",
        )
    )
