"""A graph and the graphs inside its nodes, outermost first, with an id for every node.

The id of a node is its string form. If an id occurs in more than one graph, the nodes of inner graphs are named
`owner/id`, so that one graph may be used inside several nodes.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from agentnb.dialects.networkx.schema import make_inner_place, shorten_value
from agentnb.errors import Place, Problem, with_article
from agentnb.recipe.model import ROOT
from agentnb.text import get_class_name, safe_repr

MAX_DEPTH = 32
MAX_NODES = 100_000
INSIDE = ("loop", "subgraph")


@dataclass(frozen=True)
class Level:
    """One graph: its region, the ids of its nodes, and its place."""

    graph: Any
    region: str
    ids: dict[Any, str]
    place: Place
    around: tuple[Any, ...] = ()

    def at(self, path: str) -> Place:
        """Return the place of a part of this graph."""
        return make_inner_place(self.place, path)

    def get_place(self, node: Any) -> Place:
        """Return the place of a node of this graph."""
        return self.at(f"nodes[{safe_repr(node)}]")

    @property
    def title(self) -> str:
        """The title of the region in a drawing."""
        return str(self.graph.graph.get("name") or ("" if self.region == ROOT else self.region))

    @property
    def owner(self) -> str:
        """The node around it; empty for the outermost graph."""
        return "" if self.region == ROOT else self.region

    def id_of(self, node: Any) -> str:
        """Return the id of a node of this graph, passed as it is or as its string form; anything else as a string."""
        if isinstance(node, Hashable) and node in self.ids:
            return self.ids[node]
        return self._by_text.get(str(node), str(node))

    @cached_property
    def _by_text(self) -> Mapping[str, str]:
        """The ids by the nodes' string forms; of several nodes with the same string, the first."""
        return {str(node): name for node, name in reversed(self.ids.items())}


def is_graph(value: object) -> bool:
    """Return True for a networkx graph, without importing networkx."""
    if value is None:
        return False
    is_networkx = any(cls.__module__.partition(".")[0] == "networkx" for cls in type(value).__mro__)
    return is_networkx and hasattr(value, "adj") and hasattr(value, "is_directed")


def infer_kind(attributes: Mapping[str, Any]) -> str:
    """Return a node's kind: the explicit kind, or else a subgraph if it has a graph, or else a function."""
    kind = attributes.get("kind")
    if kind is None:
        return "subgraph" if is_graph(attributes.get("graph")) else "function"
    return str(kind)


def list_levels(graph: Any, name: str, problems: list[Problem]) -> list[Level]:
    """Return the graph and all graphs inside it, outermost first."""
    graphs = list(_iter_graphs(graph))
    counts = Counter(str(node) for inner in graphs for node in inner) if len(graphs) > 1 else Counter[str]()
    levels: list[Level] = []
    taken: dict[str, tuple[Level, Any]] = {}
    waiting = deque([(graph, ROOT, Place(f"<graph {name!r}>"), ())])
    while waiting:
        inner, region, place, around = waiting.popleft()
        level = Level(inner, region, _make_ids(inner, region, counts), place, (*around, inner))
        problems += _iter_clashes(level, taken)
        if not inner.is_directed():
            problems.append(_make_undirected_problem(inner, place))
        levels.append(level)
        if len(taken) > MAX_NODES:
            problems.append(_make_too_many_problem(place))
            break
        for node, attributes in inner.nodes(data=True):
            if (deeper := attributes.get("graph")) is not None and infer_kind(attributes) in INSIDE:
                at = level.at(f"nodes[{safe_repr(node)}].graph")
                fault = _check_inner_graphs(deeper, level.around, at)
                problems += fault
                if not fault:
                    waiting.append((deeper, level.ids[node], at, level.around))
    return levels


def _iter_graphs(graph: Any) -> Iterator[Any]:
    """Yield each graph once per use, within the limits."""
    waiting: deque[tuple[Any, tuple[Any, ...]]] = deque([(graph, ())])
    count = 0
    while waiting and count <= MAX_NODES:
        inner, around = waiting.popleft()
        count += len(inner)
        yield inner
        for _, attributes in inner.nodes(data=True):
            deeper = attributes.get("graph")
            if deeper is None or infer_kind(attributes) not in INSIDE:
                continue
            if not _check_inner_graphs(deeper, (*around, inner), Place("")):
                waiting.append((deeper, (*around, inner)))


def _make_ids(graph: Any, region: str, counts: Counter[str]) -> dict[Any, str]:
    if region == ROOT:
        return {node: str(node) for node in graph}
    return {node: str(node) if counts[str(node)] == 1 else f"{region}/{node}" for node in graph}


def _iter_clashes(level: Level, taken: dict[str, tuple[Level, Any]]) -> Iterator[Problem]:
    """R106: two nodes have the same id. `taken` has the first node of each id with its graph."""
    for node, name in level.ids.items():
        if name in taken:
            other, first = taken[name]
            yield Problem("R106", f"node id {name!r} is used twice", str(level.get_place(node)),
                          f"ids are converted to text, and {other.get_place(first).path} has the same text",
                          "rename one of the two")  # fmt: skip
        else:
            taken[name] = level, node


def _check_inner_graphs(graph: Any, around: tuple[Any, ...], place: Place) -> list[Problem]:
    """R114: the inside of a node is not a graph. R108: it contains itself, or is nested too deeply."""
    if not is_graph(graph):
        return [Problem("R114", f"'graph' is {shorten_value(graph)}", str(place), "an inner graph is a networkx graph",
                        "pass a DiGraph")]  # fmt: skip
    if any(graph is outer for outer in around):
        return [Problem("R108", "a graph contains itself", str(place), "the nesting would be infinite",
                        "use a separate graph for the node")]  # fmt: skip
    if len(around) >= MAX_DEPTH:
        return [Problem("R108", f"graphs are nested more than {MAX_DEPTH} deep", str(place),
                        f"the limit is {MAX_DEPTH}", "flatten it")]  # fmt: skip
    return []


def _make_undirected_problem(graph: Any, place: Place) -> Problem:
    """R131: a graph is undirected."""
    return Problem("R131", f"the graph is {with_article(get_class_name(graph))}: its edges are undirected", str(place),
                   "a run follows directed edges", "use networkx.DiGraph or MultiDiGraph")  # fmt: skip


def _make_too_many_problem(place: Place) -> Problem:
    """R108: a source exceeds the limits of size, depth or width."""
    return Problem("R108", f"the graphs contain more than {MAX_NODES:,} nodes", str(place),
                   "a nested graph counts once per use", "split it")  # fmt: skip
