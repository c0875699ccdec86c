"""Data flow: the outputs that may be available before each node of a graph, and those that a subgraph may produce."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from agentnb.dialects.polaris.parts.graph import Graph
from agentnb.dialects.polaris.parts.levels import Levels
from agentnb.dialects.polaris.schema import DecisionNode, LoopNode, Node, SwitchNode, SystemNode, list_children


class Outputs(NamedTuple):
    """Types of outputs.

    `more` is true if some system does not declare its return type, so that any type is possible.
    """

    kinds: frozenset[Any] = frozenset()
    more: bool = False

    def holds(self, kind: Any) -> bool:
        """Return True if an output of a type is possible."""
        return self.more or kind in self.kinds

    def with_(self, other: Outputs) -> Outputs:
        """Return the union of both."""
        return Outputs(self.kinds | other.kinds, self.more or other.more)


class Flow:
    """The outputs that may be stored; `available` maps each reachable node to those before it."""

    def __init__(self, graph: Graph, levels: Levels) -> None:
        self.levels = levels
        self.available: dict[str, Outputs] = {}
        self._inside: dict[str, Outputs] = {}
        if graph.entry is not None:
            self._walk(graph.entry, Outputs(frozenset(graph.given_types)))

    def inside(self, first: str | None) -> Outputs:
        """Return the outputs that a subgraph may produce, including everything nested in it and its handlers."""
        if first is None:
            return Outputs()
        if first not in self._inside:
            outputs, seen, waiting = Outputs(), set[str](), [first]
            while waiting:
                id = waiting.pop()
                node = self.levels.nodes.get(id)
                if node is None or id in seen:
                    continue
                seen.add(id)
                outputs = outputs.with_(_find_outputs(node))
                waiting += [entry for _, entry in list_children(node)]
                waiting += [edge.target for edge in self.levels.asides.get(id, ())]
                waiting += [self.levels.next[id]] if id in self.levels.next else []
            self._inside[first] = outputs
        return self._inside[first]

    def _walk(self, first: str, inputs: Outputs) -> None:
        """Walk a subgraph with the outputs available before it, using a stack, because the depth is not limited."""
        waiting = [(first, inputs)]
        while waiting:
            entry, outputs = waiting.pop()
            for node in self.levels.chain(entry):
                if node.id in self.available:
                    break
                self.available[node.id] = outputs
                round_ = self.inside(node.body_entry) if isinstance(node, LoopNode) else Outputs()
                for _, inner in list_children(node):
                    waiting.append((inner, self.available[node.id].with_(round_)))
                    outputs = outputs.with_(self.inside(inner))
                for edge in self.levels.asides.get(node.id, ()):
                    waiting.append((edge.target, self.available[node.id]))
                    outputs = outputs.with_(self.inside(edge.target)) if edge.resume else outputs
                outputs = outputs.with_(_find_outputs(node))

    def required_outputs(self) -> Iterator[tuple[str, Any, str]]:
        """Yield the required outputs: (the node, the type, the description of the requirement)."""
        for id, node in self.levels.nodes.items():
            if isinstance(node, SystemNode):
                for take in node.system.takes:
                    if take.role == "out" and take.needed:
                        yield id, take.kind, f"parameter {take.name!r} of system {id!r}"
            elif isinstance(node, DecisionNode | SwitchNode):
                yield id, node.output_type, f"{'decision' if isinstance(node, DecisionNode) else 'switch'} {id!r}"


def _find_outputs(node: Node) -> Outputs:
    if not isinstance(node, SystemNode):
        return Outputs()
    return Outputs(more=True) if node.system.gives is None else Outputs(frozenset(node.system.gives))
