"""levels: which nodes of a flat graph stand in which subgraph: what can be walked to from its first node."""

from __future__ import annotations

from dataclasses import dataclass, field

from agentnb.dialects.polaris.graph import Graph
from agentnb.dialects.polaris.words import GraphEdge, GraphNode, ParallelNode, children
from agentnb.recipe.model import ROOT


@dataclass(slots=True)
class Level:
    """A subgraph: its name as a region, its first node, the node it stands inside, and what it is called there."""

    region: str
    entry: str
    owner: str = ""
    label: str = ""


@dataclass(slots=True)
class Handler:
    """What runs after a failure: the edge that leads there, and its nodes, those inside them not among them."""

    edge: GraphEdge
    nodes: list[str] = field(default_factory=list)


class Levels:
    """A graph, sorted: `of` says in which region each node stands, for those that can be reached.

    `levels` are the regions, the outermost first; `handlers` what can be reached by an error or time-out edge;
    `turns` the nodes at which a walk comes back to where it was.
    """

    def __init__(self, graph: Graph) -> None:
        self.nodes: dict[str, GraphNode] = {node.id: node for node in graph.nodes}
        self.next: dict[str, str] = {}
        self.asides: dict[str, list[GraphEdge]] = {}
        for edge in graph.edges:
            if edge.sort == "sequential":
                self.next.setdefault(edge.source, edge.target)
            elif edge.sort in ("error", "timeout"):
                self._aside(edge)
        for node in graph.nodes:
            if isinstance(node, ParallelNode) and node.join is not None:
                self.next[node.id] = node.join
        self.of: dict[str, str] = {}
        self.levels: list[Level] = []
        self.handlers: list[Handler] = []
        self.turns: list[str] = []
        if graph.entry is not None:
            self._level(Level(ROOT, graph.entry))

    def _aside(self, edge: GraphEdge) -> None:
        """Take an edge to a handler: of several from one node, the first of a sort is the one that counts."""
        known = self.asides.setdefault(edge.source, [])
        if all(other.sort != edge.sort for other in known):
            known.append(edge)

    def _level(self, level: Level) -> None:
        """Walk through a subgraph and all that is inside it. A stack, since it may be nested without end."""
        waiting = [level]
        while waiting:
            here = waiting.pop(0)
            self.levels.append(here)
            self._chain(here.entry, here.region, None, waiting)

    def _chain(self, first: str, region: str, handler: Handler | None, waiting: list[Level]) -> None:
        """Walk from a node to the end of its chain, its handlers included."""
        chains: list[tuple[str, Handler | None]] = [(first, handler)]
        while chains:
            id, within = chains.pop()
            mine: set[str] = set()
            step: str | None = id
            while step is not None and step in self.nodes and step not in self.of:
                node = self.nodes[step]
                self.of[step] = region
                mine.add(step)
                if within is not None:
                    within.nodes.append(step)
                names = _unlike([f"{step}.{label}" for label, _ in children(node)])
                inner = zip(names, children(node), strict=True)
                waiting += [Level(name, entry, step, label) for name, (label, entry) in inner]
                for edge in self.asides.get(step, ()):
                    self.handlers.append(Handler(edge))
                    chains.append((edge.target, self.handlers[-1]))
                step = self.next.get(step)
            if step in mine:
                self.turns.append(str(step))

    def chain(self, first: str | None) -> list[GraphNode]:
        """Return the nodes from one to the end of its chain, each once."""
        found: dict[str, GraphNode] = {}
        while first is not None and first in self.nodes and first not in found:
            found[first] = self.nodes[first]
            first = self.next.get(first)
        return list(found.values())


def _unlike(names: list[str]) -> list[str]:
    """Return names of which none is like another: a second one of a name ends in `~2`, a third in `~3`."""
    return [name if name not in names[:at] else f"{name}~{names[:at].count(name) + 1}" for at, name in enumerate(names)]
