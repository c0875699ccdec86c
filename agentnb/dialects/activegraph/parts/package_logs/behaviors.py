"""The recipe inferred from a log: the behaviors that ran, their event types, and which behavior triggers which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agentnb.dialects.activegraph.parts.emitted_types import find_emitted_events
from agentnb.dialects.activegraph.parts.package_logs.deliveries import Delivery
from agentnb.dialects.activegraph.parts.package_logs.records import PackageLog
from agentnb.recipe.model import Edge, Node, Recipe

_SCHEDULED = "behavior.scheduled"


def assign_names(deliveries: Sequence[Delivery], log: PackageLog) -> dict[tuple[str, str], str]:
    """Return the node id of each behavior; behaviors with the same name but different kinds get different ids."""
    keys = dict.fromkeys(each.key for each in deliveries)
    for event in log.events:
        if event.type == _SCHEDULED:  # it may never have run
            keys.setdefault((str(event.payload.get("behavior") or ""), "behavior"))
    names: dict[tuple[str, str], str] = {}
    for key in keys:
        behavior, kind = key[0] or "?", key[1]
        names[key] = behavior if behavior not in names.values() else f"{behavior} ({kind})"
    return names


def make_recipe(log: PackageLog, deliveries: Sequence[Delivery], owners: Sequence[int | None]) -> Recipe:
    """Return a recipe for drawing the behaviors of a log. They cannot run, because a log contains no code.

    `owners` maps each event to the delivery that emitted it, or to None.
    """
    names = assign_names(deliveries, log)
    numbers = {event.id: at for at, event in enumerate(log.events)}
    thinks = {each.key for each in deliveries for at in each.events if log.events[at].type == "llm.requested"}
    on: dict[str, dict[str, None]] = {name: {} for name in names.values()}
    routes: dict[tuple[str, str], dict[str, None]] = {}
    entry: dict[str, None] = {}
    for each in deliveries:
        name, at = names[each.key], numbers.get(each.trigger)
        if at is None:
            entry[name] = None
            continue
        type, owner = log.events[at].type, owners[at]
        on[name][type] = None
        if owner is None:
            entry[name] = None
        else:
            routes.setdefault((names[deliveries[owner].key], name), {})[type] = None
    nodes = {name: _make_node(name, key, on[name], thinks=key in thinks) for key, name in names.items()}
    edges = tuple(Edge(*pair, "event", condition=", ".join(types)) for pair, types in routes.items())
    title = log.run.label or log.run.goal or log.run.run_id
    meta = {"about": {"activegraph": describe_log(log)}, "events": find_emitted_events(())}
    return Recipe(title, "activegraph", nodes, edges, tuple(entry), meta=meta)


def _make_node(name: str, key: tuple[str, str], on: Mapping[str, None], *, thinks: bool) -> Node:
    return Node(name, "llm_behavior" if thinks else key[1], inputs={}, on=tuple(on))


def describe_log(log: PackageLog) -> dict[str, object]:
    """Return what a store records about a run, for the trace."""
    run = log.run
    return {"store": log.display_name, "run_id": run.run_id, "goal": run.goal, "label": run.label,
            "created": run.created, "parent": run.parent, "forked_at": run.forked_at,
            "archived": run.archived}  # fmt: skip


__all__ = ["assign_names", "describe_log", "make_recipe"]
