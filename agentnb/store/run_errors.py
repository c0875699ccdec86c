"""Errors for runs that do not exist, or exist already."""

from __future__ import annotations

from collections.abc import Sequence

from agentnb.errors import Problem, StoreError, did_you_mean


def make_missing_run_error(run_id: str, newest: Sequence[str], count: int, where: str) -> StoreError:
    """L413: there is no such run, or the store is empty."""
    names = ", ".join(map(repr, newest[:5]))
    why = f"it keeps {count} runs, the newest: {names}" if count > 5 else f"the runs that it keeps: {names or 'none'}"
    do = did_you_mean(run_id, newest, "look at nb.runs(...) for the ids of its runs")
    return StoreError(Problem("L413", f"there is no run {run_id!r}", where, why, do))


def make_empty_store_error(where: str) -> StoreError:
    """L413: there is no such run, or the store is empty."""
    return StoreError(
        Problem(
            "L413",
            "there is no run yet",
            where,
            "without an id the last run is opened, and this store has none",
            "store a run here first with nb.Session(recipe, store=...), or use another store",
        )
    )


def make_duplicate_error(run_id: str, where: str) -> StoreError:
    """L412: a run of this id exists already."""
    return StoreError(
        Problem(
            "L412",
            f"run {run_id!r} already exists",
            where,
            "run ids are unique in a store",
            "give this run another run_id, or leave it out; to continue the existing run, open it with nb.open",
        )
    )
