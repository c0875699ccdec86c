"""Control dependence: which choice of the recipe decides whether a node runs.

A node depends on a choice if one outcome certainly leads to the node and another may not (Ferrante, Ottenstein and
Warren, "The program dependence graph and its use in optimization", 1987). It is computed from post-dominators.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from agentnb.trace.row_index import EdgeRow, NodeRow

END: Final = -1  # the virtual node at which every run ends
_FAILURE: Final = frozenset({"error", "timeout"})
# Composite nodes that choose whether to run their regions, or which; all others always open theirs.
CHOOSERS: Final = frozenset({"decision", "switch", "loop"})


class ControlDependence:
    """The choices on which each node depends, by node number, within one region; computed when first used."""

    def __init__(self, nodes: Sequence[NodeRow], edges: Iterable[EdgeRow]) -> None:
        number = {row.id: at for at, row in enumerate(nodes)}
        self._targets: dict[int, list[int]] = {}
        self._chooses: set[int] = set()
        self.conditions: dict[int, list[EdgeRow]] = {}
        ends = set(range(len(nodes)))
        for edge in edges:
            source, target = number.get(edge.source), number.get(edge.target)
            if source is None or target is None or edge.kind == "event":
                continue
            self._targets.setdefault(source, []).append(target)
            if edge.asks:
                self.conditions.setdefault(source, []).append(edge)
            if edge.asks or edge.kind == "route" or edge.kind in _FAILURE:
                self._chooses.add(source)
            if edge.kind == "route" or (not edge.asks and edge.kind not in _FAILURE):
                ends.discard(source)
        for source in ends:
            self._targets.setdefault(source, []).append(END)
        self._choices: dict[int, tuple[int, ...]] | None = None

    def choices_for(self, node: int) -> tuple[int, ...]:
        """Return the numbers of the nodes whose choice decides whether this one runs."""
        if self._choices is None:
            self._choices = self._compute()
        return self._choices.get(node, ())

    def _compute(self) -> dict[int, tuple[int, ...]]:
        if not self._chooses:
            return {}
        above = self._compute_post_dominators()
        dependences: dict[int, list[int]] = {}
        for source in sorted(self._chooses):
            stop = above.get(source, END)
            for target in dict.fromkeys(self._targets[source]):
                node = target
                while node not in (stop, END):
                    if source not in dependences.setdefault(node, []):
                        dependences[node].append(source)
                    node = above.get(node, END)
        return {node: tuple(sources) for node, sources in dependences.items()}

    def _compute_post_dominators(self) -> dict[int, int]:
        """Return for each node the nearest node through which every path to the end leads."""
        import networkx as nx

        backward: nx.DiGraph[int] = nx.DiGraph()
        backward.add_node(END)
        for source, targets in self._targets.items():
            backward.add_edges_from((target, source) for target in targets)
        reached = {END, *nx.descendants(backward, END)}
        for node in sorted(set(backward) - reached):  # it lies on an endless cycle, which a limit ends
            if node not in reached:
                backward.add_edge(END, node)
                reached |= {node, *nx.descendants(backward, node)}
        dominators: dict[int, int] = dict(nx.immediate_dominators(backward, END))
        return dominators


__all__ = ["CHOOSERS", "END", "ControlDependence"]
