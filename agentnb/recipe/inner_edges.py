"""The edges between a composite node and its inside, derived from the node's regions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from agentnb.recipe.model import Edge, EdgeKind, Node, Region

# The kind of the edges into the regions of a composite node, by the node's kind.
_INTO: Final[Mapping[str, EdgeKind]] = {"decision": "conditional", "switch": "conditional", "parallel": "parallel"}
_GOES_ON: Final = frozenset({"sequential", "conditional", "loop_back", "route", "parallel"})


def inner_edges(nodes: Mapping[str, Node], regions: Mapping[str, Region], edges: Iterable[Edge]) -> Iterator[Edge]:
    """Yield the edges from composite nodes to their regions' entries, and from the ends of loop bodies back.

    An edge of a decision or a switch has the name of its branch as its condition. Nodes that a region names but `nodes`
    lacks are omitted: the checks report them.
    """
    going_on = {edge.source for edge in edges if edge.kind in _GOES_ON}
    ends: dict[str, list[Node]] = {}
    for node in nodes.values():
        if node.id not in going_on:
            ends.setdefault(node.scope, []).append(node)
    for node in nodes.values():
        for region in (regions[body] for body in node.bodies if body in regions):
            kind = _INTO.get(node.kind, "sequential")
            condition = region.title if kind == "conditional" else ""
            for entry in region.entry:
                if entry in nodes:
                    yield Edge(node.id, entry, kind, condition=condition, place=node.place, inner=True)
            for end in ends.get(region.id, ()) if node.kind == "loop" else ():
                yield Edge(end.id, node.id, "loop_back", place=end.place, inner=True)
