"""The subgraph of each node of a flat graph: the nodes reachable from the subgraph's first node."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from agentnb.dialects.polaris.parts.graph import Graph
from agentnb.dialects.polaris.schema import HandlerEdge, Node, ParallelNode, SequentialEdge, list_children
from agentnb.recipe.model import ROOT


@dataclass(slots=True)
class Level:
    """A subgraph: its name as a region, its first node, the node that contains it, and its name there."""

    region: str
    entry: str
    owner: str = ""
    label: str = ""


@dataclass(slots=True)
class Handler:
    """An error or timeout handler: the edge to it, and its nodes, without the nodes nested inside them."""

    edge: HandlerEdge
    nodes: list[str] = field(default_factory=list)


class Levels:
    """The levels of a graph: `of` maps each reachable node to its region.

    `levels` are the regions, the outermost first; `handlers` the parts reachable by an error or timeout edge;
    `repeated_steps` the nodes at which a cycle closes.
    """

    def __init__(self, graph: Graph) -> None:
        self.nodes: dict[str, Node] = {node.id: node for node in graph.nodes}
        self.next: dict[str, str] = {}
        self.asides: dict[str, list[HandlerEdge]] = {}
        for edge in graph.edges:
            if isinstance(edge, SequentialEdge):
                self.next.setdefault(edge.source, edge.target)
            elif isinstance(edge, HandlerEdge):
                self._add_aside(edge)
        for node in graph.nodes:
            if isinstance(node, ParallelNode) and node.join is not None:
                self.next[node.id] = node.join
        self.of: dict[str, str] = {}
        self.levels: list[Level] = []
        self.handlers: list[Handler] = []
        self.repeated_steps: list[str] = []
        if graph.entry is not None:
            self._add_level(Level(ROOT, graph.entry))

    def _add_aside(self, edge: HandlerEdge) -> None:
        """Add an edge to a handler; of several edges from one node, only the first of each kind is used."""
        known = self.asides.setdefault(edge.source, [])
        if all(other.kind != edge.kind for other in known):
            known.append(edge)

    def _add_level(self, level: Level) -> None:
        """Walk a subgraph and everything nested in it, using a stack, because the depth is not limited."""
        waiting = [level]
        while waiting:
            current = waiting.pop(0)
            self.levels.append(current)
            self._add_chain(current.entry, current.region, None, waiting)

    def _add_chain(self, first: str, region: str, handler: Handler | None, waiting: list[Level]) -> None:
        """Walk from a node to the end of its chain, including handlers."""
        chains: list[tuple[str, Handler | None]] = [(first, handler)]
        while chains:
            id, within = chains.pop()
            members: set[str] = set()
            step: str | None = id
            while step is not None and step in self.nodes and step not in self.of:
                node = self.nodes[step]
                self.of[step] = region
                members.add(step)
                if within is not None:
                    within.nodes.append(step)
                names = _make_distinct_names([f"{step}.{label}" for label, _ in list_children(node)])
                inner = zip(names, list_children(node), strict=True)
                waiting += [Level(name, entry, step, label) for name, (label, entry) in inner]
                for edge in self.asides.get(step, ()):
                    self.handlers.append(Handler(edge))
                    chains.append((edge.target, self.handlers[-1]))
                step = self.next.get(step)
            if step in members:
                self.repeated_steps.append(str(step))

    def chain(self, first: str | None) -> list[Node]:
        """Return the nodes from one to the end of its chain, each once."""
        nodes: dict[str, Node] = {}
        while first is not None and first in self.nodes and first not in nodes:
            nodes[first] = self.nodes[first]
            first = self.next.get(first)
        return list(nodes.values())


def _make_distinct_names(names: list[str]) -> list[str]:
    """Return distinct names: a second occurrence ends in `~2`, a third in `~3`."""
    counts: Counter[str] = Counter()
    distinct = []
    for name in names:
        counts[name] += 1
        distinct.append(name if counts[name] == 1 else f"{name}~{counts[name]}")
    return distinct
