"""Snapshots: a whole run as JSON and back. `dump` saves histories and position; `restore_run` rebuilds the Run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

from agentnb.board.codec import decode, encode
from agentnb.clock import Clock
from agentnb.engine.core.plan import match_edges
from agentnb.engine.effects.dispatch import EffectDispatcher
from agentnb.engine.persistence.delta_loader import DeltaLoader, check_version
from agentnb.engine.persistence.deltas import VERSION, DeltaEncoder, Json, collect_family
from agentnb.engine.persistence.value_deltas import decode_value
from agentnb.errors import Problem, StoreError
from agentnb.text import safe_str

if TYPE_CHECKING:
    from agentnb.engine.core.history import Tables
    from agentnb.engine.core.plan import Plan
    from agentnb.engine.core.run import Run


def dump(run: Run, *, lenient: bool = False) -> Json:
    """Return a run as masked JSON: all its histories, including the branches it has left, and its position.

    A step in flight is not saved; it runs again. With `lenient`, values that no codec accepts are written as short
    text, marked as opaque.

    Raises:
        StoreError: L401, no codec accepts a value on the board.
    """
    encoder = DeltaEncoder(run.tables, lenient=lenient)
    histories = collect_family([run.chain, *(chain for chain, _ in run.abandoned_branches)])
    return {
        "version": VERSION,
        "nodes": [node.id for node in run.plan.nodes],
        "edges": list_edges(run.plan),
        "slices": [encoder.encode_delta([(history, len(history.push_ends)) for history in histories])],
        "run": {"position": run.position, "given": encode(run.inputs, lenient=lenient), **encode_randomness(run),
                **encode_state(run, encoder)},
    }  # fmt: skip


def encode_randomness(run: Run) -> Json:
    """Return the seed of a run, and its salt if it has one, as JSON."""
    return {"seed": encode(run.seed), **({"salt": str(run.salt)} if run.salt.int else {})}


def encode_state(run: Run, encoder: DeltaEncoder) -> Json:
    """Return the state of a run besides its histories, as JSON: chain, branches, random generator, ids, limit."""
    chance = run.rng
    return {
        "chain": [encoder.number_history(history) for history in run.chain],
        "left": [
            [[encoder.number_history(history) for history in chain], tip] for chain, tip in run.abandoned_branches
        ],
        "limit": run.limit,
        "random": chance.get_state() if chance else None,
        "ids": dict(run.ids.counters),
    }


def restore_run(plan: Plan, document: Mapping[str, Any], *, clock: Clock | None = None) -> Run:
    """Return the run saved by `dump`, ready to continue with this plan.

    Raises:
        StoreError: L402, this is not a run; L403, a newer agentnb wrote it; L404, the plan does not fit.
    """
    check_version(document.get("version"))
    joined = DeltaLoader(
        make_renumbering(plan, document.get("nodes", ())), renumber_edges(plan, document.get("edges", ()))
    )
    joined.add(document["slices"])
    check_fit(plan, joined.tables, document["nodes"])
    return run_of(plan, joined, document["run"], clock)


def run_of(plan: Plan, joined: DeltaLoader, state: Mapping[str, Any], clock: Clock | None = None) -> Run:
    """Return a run at the position recorded in `state`, in the rebuilt histories."""
    from agentnb.engine.core.run import Run
    from agentnb.engine.core.time_travel import restore

    edges = [(edge.source, edge.target) for edge in plan.edges]
    tables, histories = joined.finish(edges, plan.index)
    run = Run(plan, EffectDispatcher(), clock=clock, seed=decode(state["seed"]))
    if "salt" in state:
        run.salt = UUID(state["salt"])
    run.tables = tables
    run.chain = [histories[at] for at in state["chain"]]
    run.history = run.current_history = run.chain[-1]
    run.abandoned_branches = tuple((tuple(histories[at] for at in chain), tip) for chain, tip in state["left"])
    run.inputs = decode_value(state["given"])
    if state["limit"] is not None:
        run.limit = state["limit"]
    run.ids.counters.update(state["ids"])
    if state["random"] is not None:
        run.random.advance_to(state["random"])
    position = state.get("position")
    restore(run, run.history.tip if position is None else position)
    run.next_checkpoint = max(run.next_checkpoint, run.position + 1)
    run.set_next_due()
    return run


def make_renumbering(plan: Plan, names: Sequence[str]) -> dict[int, int]:
    """Return the number that this plan assigns to each node of a record; missing nodes get distinct numbers below -1.

    A plan without a node can neither run nor show it; `check_fit` checks whether the run needs it.
    """
    numbers = {-1: -1}
    for old, name in enumerate(names):
        numbers[old] = plan.index.get(name, -2 - old)
    return numbers


def list_edges(plan: Plan) -> list[list[str]]:
    """Return the edges of a plan by number, as `renumber_edges` reads them; their conditions are masked."""
    return [[edge.source, edge.target, edge.kind, safe_str(edge.condition)] for edge in plan.edges]


def renumber_edges(plan: Plan, rows: Sequence[Sequence[Any]]) -> list[int]:
    """Return the number that this plan assigns to each edge of a record; UNKNOWN_EDGE for edges that it lacks."""
    recorded = [(source, target, kind, safe_str(condition)) for source, target, kind, condition, *_ in rows]
    return match_edges(recorded, [(source, target, kind, text) for source, target, kind, text in list_edges(plan)])


def check_fit(plan: Plan, tables: Tables, names: Sequence[str]) -> None:
    """Raise an error if a run was recorded with nodes that the plan lacks or has in another region.

    Raises:
        StoreError: L404, with the names of these nodes.
    """
    missing = sorted({names[-2 - activation.node] for activation in tables.activations if activation.node < -1})
    moved = []
    for activation in tables.activations:
        if activation.node >= 0:
            node, region = plan.nodes[activation.node], tables.frames[activation.frame].region
            if node.node.scope != region:
                moved.append(f"{node.id!r} was in {region!r} and is now in {node.node.scope!r}")
    if missing or moved:
        reasons = [f"{', '.join(map(repr, missing))} missing"] if missing else []
        raise StoreError(
            Problem("L404", "this run was recorded with a different recipe",
                    f"recipe {plan.recipe.name!r}", "; ".join(reasons + sorted(set(moved))),
                    "open it with the recipe it was recorded with, or without a recipe to read it")
        )  # fmt: skip


__all__ = [
    "check_fit",
    "dump",
    "encode_randomness",
    "encode_state",
    "list_edges",
    "make_renumbering",
    "renumber_edges",
    "restore_run",
    "run_of",
]
