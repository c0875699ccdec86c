"""Rules about control flow. Violations are warnings: the recipe can still run."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from difflib import get_close_matches

from agentnb.errors import MOST_NAMES, MOST_SUGGESTIONS, Problem
from agentnb.recipe.descriptions import CHOOSERS, END, format_place, list_choices, list_names
from agentnb.recipe.model import Edge, Node, Recipe

# Edges followed after a node that succeeded and did not choose a route itself.
ORDINARY = frozenset({"sequential", "conditional", "loop_back"})
# Edges followed on conditions other than the success of a node.
ASIDE = frozenset({"error", "timeout", "event"})


def make_ignored_edge_problem(edge: Edge, kind: str, where: str) -> Problem:
    """R119: an ordinary edge from a node that chooses its route is never followed."""
    return Problem("R119", f"edge {edge.source!r} -> {edge.target!r} is ignored", where,
                   f"{edge.source!r} is of kind {kind!r}, which chooses by its routes; its edges are not evaluated",
                   "turn the edge into a route, or remove it", "warning")  # fmt: skip


def _split_edges(recipe: Recipe) -> tuple[list[Edge], list[tuple[Edge, Edge]]]:
    """Return the edges that can be followed, and those that cannot, each with the edge that prevents this."""
    derived = recipe.derived
    if (known := derived.get("edges taken")) is not None:
        split: tuple[list[Edge], list[tuple[Edge, Edge]]] = known
        return split
    taken: list[Edge] = []
    shut: list[tuple[Edge, Edge]] = []
    always: dict[str, Edge] = {}
    for edge in recipe.outgoing_edges:
        if recipe.routing == "first" and edge.kind in ORDINARY:
            if edge.source in always:
                shut.append((edge, always[edge.source]))
                continue
            if edge.when is None:
                always[edge.source] = edge
        taken.append(edge)
    derived["edges taken"] = taken, shut
    return taken, shut


def check_taken(recipe: Recipe) -> Iterator[Problem]:
    """R118: an edge after one that always matches is never followed."""
    for edge, first in _split_edges(recipe)[1]:
        yield check_reachable_edge(edge, first, format_place(recipe, edge.place))


def check_reachable_edge(edge: Edge, first: Edge, where: str) -> Problem:
    """R118: an edge after one that always matches is never followed."""
    earlier = f"{first.source!r} -> {first.target!r}"
    why = f"the first edge whose condition holds is followed, and that of {earlier} before it always holds"
    if first.condition or edge.condition:
        why += "; its condition is a label that nothing evaluates"
    return Problem("R118", f"edge {edge.source!r} -> {edge.target!r} is never followed", where, why,
                   "use a router, add a condition to the first edge, or remove this one", "warning")  # fmt: skip


def _find_reachable(recipe: Recipe) -> set[str]:
    """Return the nodes that a run can reach."""
    derived = recipe.derived
    if (known := derived.get("reachable")) is not None:
        reachable: set[str] = known
        return reachable
    edges = _split_edges(recipe)[0]
    successors: defaultdict[str, list[str]] = defaultdict(list)
    starts = [*recipe.entry, *(node.id for node in recipe.nodes.values() if node.on)]
    for edge in edges:
        successors[edge.source].append(edge.target)
        starts += [edge.target] if edge.kind == "event" else []
    for node in recipe.nodes.values():
        for body in node.bodies:
            successors[node.id] += recipe.regions[body].entry
    reached = derived["reachable"] = _compute_closure(starts, successors)
    return reached


def _compute_closure(starts: Iterable[str], successors: defaultdict[str, list[str]]) -> set[str]:
    border, reached = list(starts), set[str]()
    while border:
        name = border.pop()
        if name not in reached:
            reached.add(name)
            border += successors[name]
    return reached


def measure_nesting(recipe: Recipe) -> int:
    """Return the maximum nesting depth of regions in the recipe."""
    inside: defaultdict[str, set[str]] = defaultdict(set)
    around: Counter[str] = Counter()
    for node in recipe.nodes.values():
        for body in {*node.bodies} - inside[node.scope]:
            inside[node.scope].add(body)
            around[body] += 1
    border = [(region, 0) for region in inside if not around[region]]
    depth: defaultdict[str, int] = defaultdict(int)
    while border:
        region, level = border.pop()
        for body in inside.get(region, ()):
            depth[body] = max(depth[body], level + 1)
            around[body] -= 1
            if not around[body]:  # all incoming edges are known
                border.append((body, depth[body]))
    return max(depth.values(), default=0)


def check_reached(recipe: Recipe) -> Iterator[Problem]:
    """R115: a node cannot be reached from the entry."""
    reached = _find_reachable(recipe)
    for node in recipe.nodes.values():
        if node.id not in reached and node.kind != "missing":  # missing nodes are reported elsewhere
            yield Problem("R115", f"node {node.id!r} is never reached", format_place(recipe, node.place),
                          f"no path from the entry leads to it ({list_names(recipe.entry)})",
                          f"add an edge or a route to {node.id!r}, or remove it", "warning")  # fmt: skip


def check_ends(recipe: Recipe) -> Iterator[Problem]:
    """R125: no path from a reachable node leads to an end."""
    edges = _split_edges(recipe)[0]
    out: defaultdict[str, list[Edge]] = defaultdict(list)
    back: defaultdict[str, list[str]] = defaultdict(list)
    for edge in edges:
        if edge.kind not in ASIDE:
            out[edge.source].append(edge)
            back[edge.target].append(edge.source)
    ending = _compute_closure([node.id for node in recipe.nodes.values() if _may_end(node, out[node.id])], back)
    reached = _find_reachable(recipe)
    stuck = [node for node in recipe.nodes.values() if node.id in reached and node.id not in ending]
    if stuck:
        limit = recipe.limits.get("max_steps")
        until = f"until max_steps ({limit})" if limit else "endlessly"
        yield Problem(
            "R125",
            f"no path from node {stuck[0].id!r} leads to an end",
            format_place(recipe, stuck[0].place),
            f"a run cycles {until} through: {list_names(node.id for node in stuck)}",
            "add a route, a condition or an edge that leads out of the cycle",
            "warning",
        )


def _may_end(node: Node, out: list[Edge]) -> bool:
    if node.on or not out or node.kind == "evaluator":  # its number of rounds is limited
        return True
    if choices := list_choices(node):
        without_default = node.kind == "router" and node.params.get("default") is None
        return without_default or any(target == END for _, target in choices)
    if node.kind not in CHOOSERS and "route" in [edge.kind for edge in out]:
        return True  # a Python function chooses, and may choose no target
    return None not in [edge.when for edge in out]


def check_reads(recipe: Recipe) -> Iterator[Problem]:
    """R126: a key that a node reads is probably a misspelling of one that is written."""
    if not recipe.inputs:
        return  # run inputs are not declared, so any key may be one of them
    known = {*recipe.inputs, *recipe.init}
    known.update(key.split(".")[0] for node in recipe.nodes.values() for key in node.writes)
    names = sorted(known)
    listed, guesses = list_names(names), MOST_SUGGESTIONS
    for node in recipe.nodes.values():
        for key in node.reads:
            if key in known or key.split(".")[0] in known or guesses == 0:
                continue
            guesses -= 1
            if similar := get_close_matches(key, names[:MOST_NAMES], n=1, cutoff=0.8):
                yield Problem("R126", f"node {node.id!r} reads {key!r}, which no node is known to write",
                              format_place(recipe, node.place), f"the inputs and declared writes are: {listed}",
                              f"did you mean {similar[0]!r}?", "warning")  # fmt: skip


RULES = (check_taken, check_reached, check_ends, check_reads)
