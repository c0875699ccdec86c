"""The routes of a node that chooses: from its attributes, and from its edges with a `value`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

from agentnb.dialects.networkx.parts.levels import Level
from agentnb.dialects.networkx.schema import make_inner_place, shorten_value
from agentnb.errors import Problem
from agentnb.recipe.control_flow import ORDINARY, make_ignored_edge_problem
from agentnb.recipe.descriptions import END, OTHERWISE
from agentnb.recipe.model import Edge, Node

_VERDICTS: Final = ("pass", "fail")


class Routes:
    """One router's routes: the text of a value -> the target's id, and a default; an evaluator's are pass and fail.

    A plain edge to a target of the routes only draws that route; a plain edge to any other node is ignored, with a
    warning.
    """

    def __init__(self, node: Node, level: Level, attributes: Mapping[str, Any], problems: list[Problem]) -> None:
        self.node, self.level, self.drawn = node, level, set[tuple[str, str]]()
        routes, default = attributes.get("routes"), attributes.get("default")
        if node.kind == "evaluator":
            verdict_routes = {word: attributes.get(f"{word}_route") for word in _VERDICTS}
            routes, default = {word: target for word, target in verdict_routes.items() if target is not None}, None
        if routes is not None and not isinstance(routes, Mapping):
            place = make_inner_place(node.place, "routes") if node.place else node.id
            problems.append(Problem("R114", f"'routes' is {shorten_value(routes)}", str(place),
                                    "routes map values to nodes", "write it as {'value': 'node'}"))  # fmt: skip
            routes = None
        self.routes = {str(value): self._find_target(target) for value, target in (routes or {}).items()}
        self.default = None if default is None else self._find_target(default)

    def _find_target(self, node: Any) -> str:
        return END if node is None or (isinstance(node, str) and node == END) else self.level.id_of(node)

    def add(self, edge: Edge, problems: list[Problem]) -> Edge | None:
        """Add an edge from this router; return it as it is in the recipe, None if it is not."""
        if edge.kind == "route":
            if not edge.condition:
                self.default, edge = edge.target, replace(edge, condition=OTHERWISE)
            else:
                self.routes.setdefault(edge.condition, edge.target)
            self.drawn.add((edge.condition, edge.target))
            return edge
        if edge.kind not in ORDINARY:
            return edge
        if edge.target != self.default and edge.target not in self.routes.values():
            problems.append(make_ignored_edge_problem(edge, self.node.kind, str(edge.place)))
        return None

    def iter_undrawn_edges(self) -> Iterator[Edge]:
        """Yield an edge for each route without an edge in the graph."""
        routes = [*self.routes.items(), *([] if self.default is None else [(OTHERWISE, self.default)])]
        for value, target in routes:
            if target != END and (value, target) not in self.drawn:
                yield Edge(self.node.id, target, "route", condition=value, place=self.node.place)

    def params(self) -> Mapping[str, Any]:
        """Return the node's params with its routes."""
        if self.node.kind == "evaluator":
            routes = {f"{word}_route": self.routes.get(word, END) for word in _VERDICTS}
            return MappingProxyType({**self.node.params, **routes})
        return MappingProxyType({
            **self.node.params,
            "routes": MappingProxyType(self.routes),
            **({} if self.default is None else {"default": self.default}),
        })  # fmt: skip
