"""Checks that apply to recipes of every dialect, one function per rule. Nothing runs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator

from agentnb.errors import Problem, did_you_mean, limit_suggestions
from agentnb.recipe import control_flow
from agentnb.recipe.descriptions import END, format_place, list_choices, list_names
from agentnb.recipe.model import EDGE_KINDS, ROOT, Edge, Node, Recipe
from agentnb.secrets import masking_for

Rule = Callable[[Recipe], Iterator[Problem]]

# Composite kinds: frames around other nodes.
COMPOSITES = frozenset({"loop", "parallel", "subgraph", "task"})


# ------------------------------------------------------------------------------------------------ structure


def check_edges(recipe: Recipe) -> Iterator[Problem]:
    """R104: an edge does not begin or end at a node of the recipe."""
    yield from iter_dangling_edges(recipe.outgoing_edges, recipe.nodes, recipe.name)


def iter_dangling_edges(
    edges: Iterable[Edge], nodes: Collection[str], name: str, *, draft: bool = False
) -> Iterator[Problem]:
    """R104: an edge does not begin or end at a node of the recipe. In a draft that is a warning."""
    why = f"this recipe's nodes are: {list_names(nodes)}"
    why += "; this is a draft, and a run that gets here fails" if draft else ""
    for edge in edges:
        word = "route" if edge.kind == "route" else "edge"
        says = f" ({edge.condition})" if edge.kind == "route" and edge.condition else ""
        for end, verb in ((edge.source, "begins at"), (edge.target, "leads to")):
            if end not in nodes:
                yield Problem(
                    "R104",
                    f"{word} {edge.source!r} -> {edge.target!r}{says} {verb} a node that does not exist",
                    str(edge.place or f"recipe {name!r}"),
                    why,
                    did_you_mean(end, nodes, f"add a node {end!r}, or remove the {word}"),
                    "warning" if draft else "error",
                )


def check_routes(recipe: Recipe) -> Iterator[Problem]:
    """R120: a route of a node leads neither to a node nor to the end."""
    drawn = {(edge.source, edge.target) for edge in recipe.outgoing_edges}
    nodes, known = recipe.nodes, list_names(recipe.nodes)
    for node in nodes.values():
        choices, where = list_choices(node), format_place(recipe, node.place)
        if node.kind == "router" and not choices:
            yield Problem("R120", f"router {node.id!r} has no routes", where,
                          "a router chooses a route by value; without routes, the run ends there",
                          "add routes or a default", "warning")  # fmt: skip
        for value, target in choices:
            if target == END or target in recipe.nodes or (node.id, target) in drawn or recipe.meta.get("draft"):
                continue  # a draft's missing targets, and those drawn as edges, are reported as edges
            yield Problem("R120", f"route {value!r} of {node.id!r} leads to {target!r}, which does not exist", where,
                          f"this recipe's nodes are: {known}",
                          did_you_mean(target, nodes, f"add a node {target!r}, or remove the route"))  # fmt: skip


def check_entry(recipe: Recipe) -> Iterator[Problem]:
    """R105: a recipe has no entry node, or its entry is not one of its nodes."""
    if recipe.meta.get("draft"):
        return  # reported by the loader of the draft
    where = format_place(recipe, recipe.meta.get("entry_place"))
    if recipe.reactive is not None:  # events activate the nodes that listen to them
        return
    if not recipe.entry and not any(node.on for node in recipe.nodes.values()):  # the same
        what = f"recipe {recipe.name!r} has no entry node" if recipe.nodes else f"recipe {recipe.name!r} has no nodes"
        why = f"the recipe's nodes are: {list_names(recipe.nodes)}" if recipe.nodes else "a run starts at a node"
        order = (
            "set `entry` to the node to start at, or remove the edges that lead to it" if recipe.nodes else "add a node"
        )
        yield Problem("R105", what, where, why, order)
    for name in recipe.entry:
        if name not in recipe.nodes:
            yield make_entry_problem(name, recipe.nodes, where)
        elif (scope := recipe.nodes[name].scope) != ROOT:
            yield Problem("R105", f"the entry {name!r} of recipe {recipe.name!r} is not at the top level", where,
                          f"{name!r} is inside {scope!r}", "use the enclosing node as the entry")  # fmt: skip


def make_entry_problem(name: str, nodes: Collection[str], where: str, *, draft: bool = False) -> Problem:
    """R105: a recipe has no entry node, or its entry is not one of its nodes. In a draft that is a warning."""
    what = f"the entry {name!r} does not exist" if nodes else "the recipe has no nodes"
    why = f"this recipe's nodes are: {list_names(nodes)}" if nodes else "the entry is one of its nodes"
    order = f"add a node {name!r}, or name another one" if nodes else "add a node"
    return Problem("R105", what, where, why, did_you_mean(name, nodes, order), "warning" if draft else "error")


def check_regions(recipe: Recipe) -> Iterator[Problem]:
    """R116: a region has no owner, or does not begin at nodes of its own."""
    inside: defaultdict[str, dict[str, None]] = defaultdict(dict)  # an ordered set of nodes for each region
    for node in recipe.nodes.values():
        inside[node.scope][node.id] = None
    for region in recipe.regions.values():
        if region.id == ROOT:
            continue
        where = format_place(recipe, recipe.nodes[region.owner].place if region.owner in recipe.nodes else None)
        own = inside[region.id]
        if region.owner not in recipe.nodes:
            yield Problem("R116", f"region {region.id!r} belongs to {region.owner!r}, which does not exist", where,
                          "a region belongs to a node", "use the id of the enclosing node")  # fmt: skip
        if not region.entry:
            yield Problem("R116", f"region {region.id!r} has no entry", where,
                          f"the nodes inside it are: {list_names(own)}", "set its entry")  # fmt: skip
        for name in region.entry:
            if name not in own:
                yield Problem("R116", f"the entry {name!r} of region {region.id!r} is not inside it", where,
                              f"the nodes inside it are: {list_names(own)}",
                              did_you_mean(name, own, "use one of them"))  # fmt: skip
    for node in recipe.nodes.values():
        for name in (node.scope, *node.bodies):
            if name != ROOT and name not in recipe.regions:
                yield Problem("R116", f"node {node.id!r} refers to region {name!r}, which does not exist",
                              format_place(recipe, node.place), f"the regions are: {list_names(recipe.regions)}",
                              did_you_mean(name, recipe.regions, "use one of them"))  # fmt: skip


def check_bodies(recipe: Recipe) -> Iterator[Problem]:
    """R121: a loop, a subgraph or a parallel section is empty."""
    for node in recipe.nodes.values():
        if node.kind in COMPOSITES and not node.bodies and not node.params.get("hollow"):
            yield Problem("R121", f"{node.kind} {node.id!r} is empty", format_place(recipe, node.place),
                          f"a {node.kind} runs the nodes of its body", "add a body, or use another kind")  # fmt: skip


def check_scopes(recipe: Recipe) -> Iterator[Problem]:
    """R122: an edge connects nodes of different regions."""
    for edge in recipe.outgoing_edges:
        source, target = recipe.nodes.get(edge.source), recipe.nodes.get(edge.target)
        if source and target and source.scope != target.scope:
            why = f"{edge.source!r} is in {source.scope!r}, {edge.target!r} is in {target.scope!r}"
            yield Problem(
                "R122",
                f"edge {edge.source!r} -> {edge.target!r} connects nodes of different regions",
                format_place(recipe, edge.place),
                why,
                "connect it to the node that owns the region",
            )


def check_edge_kinds(recipe: Recipe) -> Iterator[Problem]:
    """R123: an edge's kind is unknown."""
    for edge in recipe.edges:
        if edge.kind not in EDGE_KINDS:
            yield Problem("R123", f"edge {edge.source!r} -> {edge.target!r} has the unknown kind {edge.kind!r}",
                          format_place(recipe, edge.place), f"the kinds of edges are: {', '.join(EDGE_KINDS)}",
                          did_you_mean(edge.kind, EDGE_KINDS, "use one of them, or leave it out"))  # fmt: skip


def check_kinds(recipe: Recipe, kinds: Collection[str], public: Collection[str] = ()) -> Iterator[Problem]:
    """R117: a node's kind is unknown."""
    offered = public or kinds
    for node in recipe.nodes.values():
        if node.kind not in kinds:
            yield Problem("R117", f"node {node.id!r} is of the unknown kind {node.kind!r}",
                          format_place(recipe, node.place), f"the kinds are: {list_names(offered, 30)}",
                          did_you_mean(node.kind, offered, "use one of them"))  # fmt: skip


def check_evaluators(recipe: Recipe) -> Iterator[Problem]:
    """R136: a number of an evaluator is invalid, or its threshold is out of the range of scores."""
    for node in recipe.nodes.values():
        if node.kind == "evaluator":
            yield from _check_evaluator(node, format_place(recipe, node.place))


def _check_evaluator(node: Node, where: str) -> Iterator[Problem]:
    values = {word: node.params.get(word, 0) for word in ("threshold", "max_refinements")}
    for word, number in values.items():
        if isinstance(number, bool) or not isinstance(number, int | float):
            yield Problem("R136", f"the {word} of evaluator {node.id!r} is {number!r}", where,
                          "it must be a number", "write a number")  # fmt: skip
        elif word == "threshold" and not 0 <= number <= 1:
            end = "every result passes" if number < 0 else "no result passes"
            yield Problem("R136", f"the threshold of evaluator {node.id!r} is {number:g}", where,
                          f"a judge scores from 0 to 1, so {end}", "write a number from 0 to 1", "warning")  # fmt: skip
        elif word == "max_refinements" and number < 0:
            yield Problem("R136", f"evaluator {node.id!r} has {number:g} refinements", where,
                          "a negative number counts as 0: a failed evaluation ends the run",
                          "write 0 or more", "warning")  # fmt: skip


PARTS: tuple[Rule, ...] = (
    check_entry,
    check_edges,
    check_routes,
    check_regions,
    check_bodies,
    check_scopes,
    check_edge_kinds,
    check_evaluators,
)


@limit_suggestions()
def check_recipe(recipe: Recipe, kinds: Collection[str], public: Collection[str] = ()) -> list[Problem]:
    """Return all problems of a recipe whose nodes may be of `kinds`, errors first; messages name the `public` kinds.

    The control flow rules are checked only if the structure is valid; otherwise they would repeat the same errors.
    """
    with masking_for():
        problems = [problem for rule in PARTS for problem in rule(recipe)]
        problems += check_kinds(recipe, kinds, public)
        if not any(problem.severity == "error" for problem in problems):
            problems += [problem for rule in control_flow.RULES for problem in rule(recipe)]
    unique = dict.fromkeys([*recipe.notes, *problems])
    return sorted(unique, key=lambda problem: problem.severity != "error")
