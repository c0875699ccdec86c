"""levels: a graph and the graphs inside its nodes, outermost first, with an id for every node.

A node keeps its id, as text. Where the same id stands in more than one graph, the nodes of inner graphs are named
`owner/id`, so that one graph may be used as the inside of several nodes.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Hashable, Iterator, Mapping
from typing import Any, NamedTuple

from agentnb.dialects.networkx.attributes import inside, shown
from agentnb.errors import Place, Problem
from agentnb.recipe.model import ROOT

MAX_DEPTH = 32
MAX_NODES = 100_000
INSIDE = ("loop", "subgraph")


class Level(NamedTuple):
    """One graph: the region that it is, its nodes' ids, and where it stands."""

    graph: Any
    region: str
    ids: Mapping[Any, str]
    place: Place
    around: tuple[Any, ...] = ()

    def at(self, path: str) -> Place:
        """Return the place of a part of this graph."""
        return inside(self.place, path)

    @property
    def title(self) -> str:
        """What the region is called in a drawing."""
        return str(self.graph.graph.get("name") or ("" if self.region == ROOT else self.region))

    @property
    def owner(self) -> str:
        """The node around it; none around the outermost."""
        return "" if self.region == ROOT else self.region

    def id_of(self, node: Any) -> str:
        """Return the id that a node of this graph has, given as it is or as its text; any other as text."""
        if isinstance(node, Hashable) and node in self.ids:
            return self.ids[node]
        return next((name for each, name in self.ids.items() if str(each) == str(node)), str(node))


def is_graph(value: object) -> bool:
    """Return whether this is a networkx graph; networkx is not imported for it."""
    ours = any(cls.__module__.partition(".")[0] == "networkx" for cls in type(value).__mro__)
    return ours and hasattr(value, "adj") and hasattr(value, "is_directed")


def kind_of(attributes: Mapping[str, Any]) -> str:
    """Return a node's kind: what it says, else a subgraph where it has a graph, else a function."""
    kind = attributes.get("kind")
    if kind is None:
        return "subgraph" if is_graph(attributes.get("graph")) else "function"
    return str(kind)


def levels(graph: Any, name: str, problems: list[Problem]) -> list[Level]:
    """Return the graph and all graphs inside it, outermost first."""
    counts = Counter(str(node) for inner in _every(graph) for node in inner)
    found: list[Level] = []
    taken: dict[str, Place] = {}
    waiting = deque([(graph, ROOT, Place(f"<graph {name!r}>"), ())])
    while waiting:
        inner, region, place, around = waiting.popleft()
        level = Level(inner, region, _ids(inner, region, counts), place, (*around, inner))
        problems += _clashes(level, taken)
        if not inner.is_directed():
            problems.append(_no_ways(inner, place))
        found.append(level)
        if len(taken) > MAX_NODES:
            problems.append(_too_many(place))
            break
        for node, attributes in inner.nodes(data=True):
            if (deeper := attributes.get("graph")) is not None and kind_of(attributes) in INSIDE:
                at = level.at(f"nodes[{node!r}].graph")
                fault = _unfit(deeper, level.around, at)
                problems += fault
                if not fault:
                    waiting.append((deeper, level.ids[node], at, level.around))
    return found


def _every(graph: Any) -> Iterator[Any]:
    """Yield each graph as often as it is used, within the limits."""
    waiting: deque[tuple[Any, tuple[Any, ...]]] = deque([(graph, ())])
    count = 0
    while waiting and count <= MAX_NODES:
        inner, around = waiting.popleft()
        count += len(inner)
        yield inner
        for _, attributes in inner.nodes(data=True):
            deeper = attributes.get("graph")
            if kind_of(attributes) in INSIDE and not _unfit(deeper, (*around, inner), Place("")):
                waiting.append((deeper, (*around, inner)))


def _ids(graph: Any, region: str, counts: Counter[str]) -> dict[Any, str]:
    if region == ROOT:
        return {node: str(node) for node in graph}
    return {node: str(node) if counts[str(node)] == 1 else f"{region}/{node}" for node in graph}


def _clashes(level: Level, taken: dict[str, Place]) -> Iterator[Problem]:
    """R106: two nodes have the same id."""
    for node, name in level.ids.items():
        place = level.at(f"nodes[{node!r}]")
        if name in taken:
            yield Problem("R106", f"node id {name!r} is there twice", str(place),
                          f"an id becomes a text, and {taken[name].path} has this one already",
                          "rename one of the two")  # fmt: skip
        taken.setdefault(name, place)


def _unfit(graph: Any, around: tuple[Any, ...], place: Place) -> list[Problem]:
    """R114: what is inside a node is no graph. R108: it holds itself, or is too deep."""
    if not is_graph(graph):
        return [Problem("R114", f"'graph' is {shown(graph)}", str(place), "the inside of a node is a networkx graph",
                        "give it a DiGraph")]  # fmt: skip
    if any(graph is outer for outer in around):
        return [Problem("R108", "a graph holds itself", str(place), "it would be endlessly deep",
                        "give the node a graph of its own")]  # fmt: skip
    if len(around) >= MAX_DEPTH:
        return [Problem("R108", f"graphs are nested more than {MAX_DEPTH} deep", str(place),
                        f"the limit is {MAX_DEPTH}", "flatten it")]  # fmt: skip
    return []


def _no_ways(graph: Any, place: Place) -> Problem:
    """R131: a graph's edges have no direction."""
    return Problem("R131", f"the graph is a {type(graph).__name__}: its edges have no direction", str(place),
                   "a run goes from a node to the next", "use networkx.DiGraph or MultiDiGraph")  # fmt: skip


def _too_many(place: Place) -> Problem:
    """R108: a source is larger, deeper or wider than the limits."""
    return Problem("R108", f"the graphs hold more than {MAX_NODES:,} nodes", str(place),
                   "a graph counts as often as it is used inside another", "split it")  # fmt: skip
