"""What counts as a run: a session, a trace, or a debugger's session; with its rows, recipe and name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from agentnb.errors import ExecutionError, Problem, with_article
from agentnb.recipe.model import Edge, EdgeKind, Node, Recipe
from agentnb.secrets import Masking, masking_for
from agentnb.session import Session
from agentnb.text import get_class_name, safe_str
from agentnb.trace.recipe_snapshot import rebuild_recipe as snapshot_recipe
from agentnb.trace.trace import SimulationTrace


def get_trace(run: Any, where: str = "nb.compare()") -> SimulationTrace:
    """Return the trace of a run.

    A101: a value is not a run.

    Raises:
        ExecutionError: A101, it is something else.
    """
    if isinstance(run, SimulationTrace):
        return run
    for trace in (getattr(run, "trace", None), getattr(getattr(run, "session", None), "trace", None)):
        if isinstance(trace, SimulationTrace):
            return trace
    raise ExecutionError(
        Problem("A101", f"{with_article(get_class_name(run))} is not a run", where,
                "a run is a Session, a SimulationTrace, or a run that nb.open() has opened",
                "pass one of them; nb.Session(recipe, inputs) makes a session of a recipe")
    )  # fmt: skip


def masking_for_runs(*runs: Any) -> Masking:
    """Return a context in which texts are masked by the secrets of these runs."""
    owners = dict.fromkeys(get_trace(run).reading().tables.secrets for run in runs)
    return masking_for(*(owner for owner in owners if owner.values))


def get_session(run: Any) -> Session | None:
    """Return the session of a run; None if only its trace is known."""
    if isinstance(run, Session):
        return run
    session = getattr(run, "session", None)
    return session if isinstance(session, Session) else None


def get_recipe(run: Any) -> Recipe:
    """Return the recipe of a run.

    For a trace alone, a recipe with its nodes and edges that can be drawn but not run.
    """
    session = get_session(run)
    if session is not None:
        return session.recipe
    trace = get_trace(run)
    snapshot = trace.origin().get("recipe")
    if snapshot is not None:
        return snapshot_recipe(snapshot)
    reading = trace.reading()
    nodes = {row.id: Node(row.id, row.kind, inputs=dict(row.inputs) or None) for row in reading.nodes}
    edges = [Edge(row.source, row.target, cast("EdgeKind", row.kind), condition=row.condition) for row in reading.edges]
    targets = {edge.target for edge in edges}
    entry = tuple(name for name in nodes if name not in targets)[:1] or tuple(nodes)[:1]
    return Recipe(safe_str(trace.agent_id, 200), "trace", nodes, tuple(edges), entry)


def get_runs(runs: Any, where: str) -> list[Any]:
    """Return several runs as a list: from an iterable of runs, one run, a Sweep, or the location of a store.

    Raises:
        ExecutionError: A101, one of them is not a run.
        StoreError: there is no such store, or it cannot be read.
    """
    if isinstance(runs, SimulationTrace | Session):
        return [runs]
    if isinstance(runs, Mapping):
        runs = runs.values()
    if hasattr(runs, "iter_runs"):
        return list(runs.iter_runs())
    if isinstance(runs, Iterable) and not isinstance(runs, str | bytes):
        run_list = list(runs)
        for run in run_list:
            get_trace(run, where)
        return run_list
    return list(iter_stored_runs(runs))


def iter_stored_runs(store: Any) -> Iterator[Session]:
    """Yield the runs of a store, oldest first, each opened read-only."""
    from agentnb.session.reopen import open_stored
    from agentnb.session.run_list import runs

    for run_id in reversed(runs(store)["run_id"].tolist()):
        yield open_stored(store, run_id)


__all__ = ["get_recipe", "get_runs", "get_session", "get_trace", "iter_stored_runs", "masking_for_runs"]
