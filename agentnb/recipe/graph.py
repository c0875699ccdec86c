"""Conversion of a recipe to a networkx graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import networkx as nx

    from agentnb.recipe.model import Recipe


def to_graph(recipe: Recipe) -> nx.MultiDiGraph[str]:
    """Return a recipe's graph, in the recipe's order; it is a copy, so changing it does not change the recipe.

    Graph attributes: name, dialect, entry. Node attributes: kind, label, reads, writes, scope, place. Edge attributes:
    kind, condition. Edges between the same nodes have the keys 0, 1, ... in the recipe's order.
    """
    import networkx as nx

    graph: nx.MultiDiGraph[str] = nx.MultiDiGraph(name=recipe.name, dialect=recipe.dialect, entry=recipe.entry)
    for node in recipe.nodes.values():
        graph.add_node(
            node.id,
            kind=node.kind,
            label=node.label or node.id,
            reads=node.reads,
            writes=node.writes,
            scope=node.scope,
            place=node.place,
        )
    for edge in recipe.edges:
        graph.add_edge(edge.source, edge.target, kind=edge.kind, condition=edge.condition)
    return graph
