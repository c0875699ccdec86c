"""JSON traces and goldens as read-only sessions; with a recipe, what has changed in it since is reported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from agentnb.board.codec import decode, encode
from agentnb.board.values import thaw
from agentnb.clock import FrozenClock
from agentnb.engine.core.plan import Plan
from agentnb.engine.core.run import Run
from agentnb.engine.effects.crash_recovery import InterruptedSteps
from agentnb.engine.persistence.delta_loader import DeltaLoader, reading_document
from agentnb.engine.persistence.snapshot import check_fit, make_renumbering, renumber_edges, run_of
from agentnb.errors import Problem, warn_caller
from agentnb.recipe.call_settings import RECORDED
from agentnb.recipe.model import ROOT, Edge, Node, Recipe, Region
from agentnb.recordings.formats import read_text
from agentnb.session.parts import get_parts
from agentnb.session.pending import list_approvals, list_waiting, to_pending
from agentnb.session.recording import Recording
from agentnb.trace.export import parse_document, parse_trace
from agentnb.trace.recipe_snapshot import describe_changes, make_readable_kinds, rebuild_recipe
from agentnb.trace.trace import SimulationTrace
from agentnb.world.world import World

ENDS: Final = {"failed", "exhausted", "waiting", "idle", "finished"}  # at the end of a record; others are cut short


def open_trace(where: str, recipe: Recipe | None = None) -> Recording:
    """Return the recording in a JSON trace; see `make_recording`.

    Raises:
        StoreError: L402, it is not a trace or is damaged; L403, a newer agentnb wrote it; L404, the recipe does not
            fit.
    """
    return make_recording(parse_document(read_text(where), where), where, recipe)


def make_recording(document: dict[str, Any], where: str, recipe: Recipe | None = None) -> Recording:
    """Return the recording in the document of a trace, at its end. Nothing of it is executed.

    Args:
        recipe: drawn and listed in place of the recorded one. If it differs, a warning lists the changes.

    Raises:
        StoreError: L402, the document is damaged; L404, the recipe lacks nodes of the run, or has them elsewhere.
    """
    trace = parse_trace(document, where)
    snapshot = document.get("recipe")
    with reading_document():
        known = rebuild_recipe(snapshot) if snapshot is not None else _build_recipe(trace, document)
        run, interrupted = _run_of(known if recipe is None else recipe, document)
        waiting = list_waiting(run, interrupted.iter_unanswered())
        inputs = dict(thaw(decode(document["given"]))) if "given" in document else {}
    session = Recording.of_run(
        run, trace.agent_id, trace.run_id, _read_only(where), _describe_end(trace), trace.metadata, trace.outcome,
        inputs=inputs, pending=[*map(to_pending, list_approvals(run)), *(each for _, each in waiting)],
        unanswered=[call for call, _ in waiting],
    )  # fmt: skip
    if recipe is not None:
        changed = get_parts(session).persistence.changes = tuple(_compare_recipes(snapshot, recipe, trace))
        if changed:
            differences = "\n  ".join(changed)
            warn_caller(f"{where} is the trace of another recipe, or of another version:\n  {differences}")
    return session


def _compare_recipes(snapshot: Mapping[str, Any] | None, recipe: Recipe, trace: SimulationTrace) -> Sequence[str]:
    """Return the differences between the recorded recipe and a given one."""
    if snapshot is not None:
        changes = describe_changes(snapshot, recipe)
        # agentnb 0.2 did not record settings, and its fingerprint did not depend on them.
        is_same = snapshot["fingerprint"] == recipe.fingerprint or RECORDED not in snapshot
        return changes or ([] if is_same else ["its fingerprint is another one"])
    names = {node.id for node in trace.reading().nodes}
    return [f"node {name!r} is {'new' if name in recipe.nodes else 'gone'}" for name in names ^ set(recipe.nodes)]


def _run_of(recipe: Recipe, document: Mapping[str, Any]) -> tuple[Run, InterruptedSteps]:
    plan = Plan(recipe, make_readable_kinds(recipe), World())
    names = [row[0] for row in document["nodes"]]
    loader = DeltaLoader(make_renumbering(plan, names), renumber_edges(plan, document["edges"]))
    loader.add(document["slices"])
    check_fit(plan, loader.tables, names)
    state = {
        "seed": encode(0),
        "given": encode({}),
        **{name: document[name] for name in ("seed", "salt", "given") if name in document},
        "chain": range(len(loader.histories)),
        "left": [],
        "limit": None,
        "random": None,
        "ids": {},
    }
    return run_of(plan, loader, state, FrozenClock()), loader.collect_interrupted()


def _build_recipe(trace: SimulationTrace, document: Mapping[str, Any]) -> Recipe:
    """Return a recipe that can be drawn, from the nodes and edges of a trace without the recipe itself."""
    reading = trace.reading()
    names = [node.id for node in reading.nodes]
    scopes, owners = dict[int, str](), dict[str, str]()
    for activation in reading.tables.activations:
        if activation.node >= 0:
            scopes[activation.node] = reading.tables.frames[activation.frame].region
    for frame in reading.tables.frames[1:]:
        owners[frame.region] = names[frame.owner]
    nodes = {
        row.id: Node(row.id, row.kind, scope=scopes.get(at, ROOT), inputs=dict(row.inputs) or None,
                     bodies=tuple(region for region, owner in owners.items() if owner == row.id))
        for at, row in enumerate(reading.nodes)
    }  # fmt: skip
    edges = tuple(Edge(row.source, row.target, row.kind, condition=row.condition) for row in reading.edges)  # type: ignore[arg-type]  # checked when it is drawn
    targets = {edge.target for edge in edges}
    regions = {
        id: Region(id, tuple(name for name, node in nodes.items() if node.scope == id and name not in targets)[:1],
                   owner=owner)
        for id, owner in owners.items()
    }  # fmt: skip
    entry = tuple(name for name, node in nodes.items() if node.scope == ROOT and name not in targets)
    dialect = str((decode(document["metadata"]) or {}).get("dialect", ""))
    return Recipe(trace.agent_id, dialect, nodes, edges, entry, regions=regions)


def _describe_end(trace: SimulationTrace) -> str:
    status = str((trace.outcome or {}).get("status", "finished"))
    if not len(trace) and status not in {"waiting", "failed", "exhausted"}:
        return "ready"
    return status if status in ENDS else "paused"


def _read_only(where: str) -> Problem:
    """L450: this run can only be read."""
    return Problem(
        "L450",
        "this run is read-only: it is a trace",
        where,
        "a trace records what happened; it contains neither the code of the nodes nor the masked values",
        "go through it with step(), back() and goto(); to run the recipe, start a new session: nb.Session(recipe, ...)",
    )


__all__ = ["make_recording", "open_trace"]
