"""The edges of a coreason recipe: edges, routes and fallbacks, as written and as run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from agentnb.errors import Place, Problem
from agentnb.recipe.checks import iter_dangling_edges
from agentnb.recipe.control_flow import ORDINARY, check_reachable_edge, make_ignored_edge_problem
from agentnb.recipe.descriptions import CHOOSERS, END, OTHERWISE
from agentnb.recipe.model import Edge, EdgeKind, Node

if TYPE_CHECKING:
    from agentnb.dialects.coreason.parts.schema_errors import RecipeInput


class ExecutableEdges(NamedTuple):
    """The edges that a run can follow; the missing targets of a draft, with their places; and the warnings."""

    edges: tuple[Edge, ...]
    missing: Mapping[str, Place | None]
    notes: tuple[Problem, ...]


def settle(
    edges: list[Edge], nodes: Mapping[str, Node], written: RecipeInput, *, draft: bool, parallel: bool = False
) -> ExecutableEdges:
    """Return the edges as run: the first of a node's ordinary edges, or all of them if they run in parallel."""
    remaining, ignored = _drop_ignored_edges(edges, nodes, written)
    strays = list(iter_dangling_edges(iter_idle_fallbacks(written), nodes, ""))
    if not draft:
        return ExecutableEdges(tuple(remaining), {}, (*ignored, *strays))
    dangling = iter_dangling_edges((edge for edge in remaining if edge.kind != "error"), nodes, "", draft=True)
    remaining, missing, shut = _drop_missing_targets(remaining, nodes, parallel=parallel)
    return ExecutableEdges(tuple(remaining), missing, (*ignored, *strays, *dangling, *shut))


def collect_ids(written: RecipeInput) -> dict[str, Place]:
    """Return the ids of the nodes, in order, with the place of the first node of each id."""
    places: dict[str, Place] = {}
    for number, node in written.list_mappings("nodes"):
        path, name = ("topology", "nodes", number, "id"), node.get("id")
        if name is not None:  # an id that is not a string is reported once, not again by each edge that refers to it
            name = name if isinstance(name, str) else written.source.texts.get(written.to_source_path(path), str(name))
            places.setdefault(name, written.locate(path))
    return places


def check_duplicates(written: RecipeInput) -> Iterator[Problem]:
    """R106: two nodes have the same id."""
    first = collect_ids(written)
    for number, node in written.list_mappings("nodes"):
        name, place = node.get("id"), written.locate(("topology", "nodes", number, "id"))
        if isinstance(name, str) and first[name] != place:
            yield Problem("R106", f"node id {name!r} is used twice", str(place),
                          f"an id names one node, and {first[name]} already has it",
                          "rename one of the two and its edges")  # fmt: skip


def iter_edges(written: RecipeInput) -> Iterator[Edge]:
    """Yield the edges as written, whether or not the rest is well-formed: edges, routes, and fallbacks as error edges.

    Fallbacks of nodes with another recovery strategy are not included.
    """
    for number, edge in written.list_mappings("edges"):
        source, target, label = edge.get("source"), edge.get("target"), edge.get("condition")
        if isinstance(source, str) and isinstance(target, str):
            place = written.locate(("topology", "edges", number))
            yield Edge(source, target, condition=label if isinstance(label, str) else "", place=place)
    for number, node in written.list_mappings("nodes"):
        for path, condition, target in _iter_ways(node):
            yield from _iter_edge(
                node, target, "route", condition, written.locate(("topology", "nodes", number, *path))
            )
        yield from _iter_fallback(node, number, written, idle=False)


def iter_idle_fallbacks(written: RecipeInput) -> Iterator[Edge]:
    """Yield the fallbacks of nodes with another recovery strategy. Their targets must exist all the same."""
    for number, node in written.list_mappings("nodes"):
        yield from _iter_fallback(node, number, written, idle=True)


def _iter_fallback(node: Mapping[str, Any], number: int, written: RecipeInput, *, idle: bool) -> Iterator[Edge]:
    recovery = node.get("recovery")
    if isinstance(recovery, Mapping) and idle == (recovery.get("behavior") != "route_to_fallback"):
        place = written.locate(("topology", "nodes", number, "recovery", "fallback_node_id"))
        yield from _iter_edge(node, recovery.get("fallback_node_id"), "error", "", place)


def _iter_edge(node: Mapping[str, Any], target: Any, kind: EdgeKind, condition: str, place: Place) -> Iterator[Edge]:
    name = node.get("id")
    if isinstance(name, str) and isinstance(target, str) and target != END:
        yield Edge(name, target, kind, condition=condition, place=place)


def _iter_ways(node: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], str, Any]]:
    """Yield (path in the node, condition, target) of each edge that a node may choose."""
    match node.get("type"):
        case "router":
            routes = node.get("routes")
            for value, target in routes.items() if isinstance(routes, Mapping) else ():
                yield ("routes", value), value, target
            yield ("default_route",), OTHERWISE, node.get("default_route")
        case "evaluator":
            yield ("pass_route",), "pass", node.get("pass_route")
            yield ("fail_route",), "fail", node.get("fail_route")


def _drop_ignored_edges(
    edges: list[Edge], nodes: Mapping[str, Node], written: RecipeInput
) -> tuple[list[Edge], list[Problem]]:
    """Remove the edges that a choosing node never follows; those of a short sequence are not reported."""
    remaining, notes = [], []
    for edge in edges:
        source = nodes.get(edge.source)
        if edge.kind not in ORDINARY or source is None or source.kind not in CHOOSERS:
            remaining.append(edge)
        elif written.steps is None:
            notes.append(make_ignored_edge_problem(edge, source.kind, str(edge.place)))
    return remaining, notes


def _drop_missing_targets(
    edges: list[Edge], nodes: Mapping[str, Node], *, parallel: bool
) -> tuple[list[Edge], dict[str, Place | None], list[Problem]]:
    """Return a draft's edges, the targets that it lacks, and warnings about edges after a missing target.

    The target of a fallback must exist in a draft too, so it is not checked here.
    """
    remaining: list[Edge] = []
    missing: dict[str, Place | None] = {}
    notes: list[Problem] = []
    first: dict[str, Edge] = {}
    for edge in edges:
        if edge.kind == "error":
            remaining.append(edge)
            continue
        if edge.source not in nodes:
            continue
        if edge.kind in ORDINARY and not parallel:
            taken = first.setdefault(edge.source, edge)
            if taken is not edge and taken.target not in nodes:
                notes.append(check_reachable_edge(edge, taken, str(edge.place)))
                continue
            if taken is not edge and edge.target not in nodes:
                continue  # never followed, and reported as leading nowhere
        if edge.target not in nodes:
            missing.setdefault(edge.target, edge.place)
        remaining.append(edge)
    return remaining, missing, notes
