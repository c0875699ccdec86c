"""Load a polaris graph as a Recipe. Translation only: no system and no predicate is called."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from agentnb.dialects.polaris import schema
from agentnb.dialects.polaris.parts.graph import Graph
from agentnb.dialects.polaris.parts.levels import Levels
from agentnb.dialects.polaris.parts.validation import validate
from agentnb.dialects.polaris.schema import (
    DecisionNode,
    JoinNode,
    LoopNode,
    ParallelNode,
    SwitchNode,
    SystemNode,
)
from agentnb.errors import Place, Problem
from agentnb.kinds.typed_values import TypedCondition, get_key, get_keys
from agentnb.recipe.agent_expansion import find_agent
from agentnb.recipe.model import ROOT, Edge, Node, Recipe, Region
from agentnb.sources import Source

MAX_ITERATIONS: Final = 1000
_WORDS: Final = {  # of the failure of a loop without end
    "unmet": "its predicate is still false",
    "limit": "max_iterations",
    "cure": "let the body change what the predicate reads, or raise max_iterations of add_loop, or "
    "GraphExecutor(default_max_iterations=...)",
}
# Findings that the checks of every recipe report as well.
_TOLD_AGAIN: Final = frozenset({"Unreachable", "Cycle"})
_NAMES: Final = {
    SystemNode: "system",
    DecisionNode: "decision",
    SwitchNode: "switch",
    ParallelNode: "parallel",
    LoopNode: "loop",
    JoinNode: "join",
}


def recognize(content: object) -> bool:
    """Return True for a polaris graph."""
    return isinstance(content, Graph)


def load(source: Source) -> tuple[Recipe | None, list[Problem]]:
    """Return the recipe, and the graph's problems; no recipe if there are errors."""
    result = validate(source.content)
    warnings: list[Problem] = [warning for warning in result.warnings if warning.kind not in _TOLD_AGAIN]
    if result.errors:
        return None, [*result.errors, *warnings]
    return make_recipe(source.content), warnings


def make_recipe(graph: Graph, max_iterations: int | None = MAX_ITERATIONS) -> Recipe:
    """Return a graph as a recipe, whatever `validate` finds.

    Args:
        graph: the graph to translate.
        max_iterations: the limit of iterations for loops with a predicate but no own limit; None for no limit.
    """
    return _Translation(graph, max_iterations).recipe()


class _Translation:
    """A graph being translated to a recipe."""

    def __init__(self, graph: Graph, max_iterations: int | None) -> None:
        self.graph, self.levels = graph, Levels(graph)
        self.max_iterations = sys.maxsize if max_iterations is None else max_iterations
        self.keys = MappingProxyType(get_keys(_iter_types(graph)))
        self.regions = {level.entry: level.region for level in self.levels.levels if level.region != ROOT}

    def recipe(self) -> Recipe:
        graph, levels = self.graph, self.levels
        nodes = {node.id: self._make_node(node) for node in graph.nodes}
        entry = () if graph.entry is None else (graph.entry,)
        regions = {ROOT: Region(ROOT, entry, graph.name)} | {
            level.region: Region(level.region, (level.entry,), level.label, level.owner)
            for level in levels.levels if level.region != ROOT
        }  # fmt: skip
        areas, area_of = self._make_areas()
        return Recipe(
            name=graph.name,
            dialect="polaris",
            nodes=MappingProxyType(nodes),
            edges=tuple(edge for edge in self._iter_edges() if edge.source in nodes and edge.target in nodes),
            entry=entry,
            inputs=MappingProxyType({self.keys[kind]: MappingProxyType({}) for kind in graph.given_types}),
            regions=MappingProxyType(regions),
            init=MappingProxyType({}),
            limits=MappingProxyType({}),
            meta=MappingProxyType(
                {
                    "required": tuple(self.keys[kind] for kind in graph.given_types),
                    "areas": MappingProxyType(areas),
                    "area_of": MappingProxyType(area_of),
                    "keys": self.keys,
                    "context": True,  # conditions written by people may use state['the.Key'], because keys contain dots
                }
            ),
        )

    def _find_place(self, path: str) -> Place:
        return Place(f"<graph {self.graph.name!r}>", path=path)

    # -- nodes -----------------------------------------------------------------------------------------------------

    def _make_node(self, node: schema.Node) -> Node:
        reads, writes, params, bodies = self._make_parts(node)
        return Node(
            id=node.id,
            kind=_NAMES[type(node)],
            label="" if node.name == node.id else node.name,
            scope=self.levels.of.get(node.id, ROOT),
            reads=tuple(reads),
            writes=tuple(writes),
            params=MappingProxyType(params),
            bodies=tuple(bodies),
            place=self._find_place(f"nodes[{node.id!r}]"),
        )

    def _make_parts(self, node: schema.Node) -> tuple[list[str], list[str], dict[str, Any], list[str]]:
        """Return what a node reads and writes, its params and its regions."""
        match node:
            case SystemNode():
                return self._make_system(node)
            case DecisionNode():
                condition = self._make_asked(node.name, node.output_type, node.predicate)
                branches = {"true": self._make_region(node.true_branch), "false": self._make_region(node.false_branch)}
                config = {
                    label: region for label, region in branches.items() if region is not None or label in node.left_out
                }
                bodies = [region for region in config.values() if region is not None]
                return [condition.key], [], {"predicate": condition, "branches": MappingProxyType(config)}, bodies
            case SwitchNode():
                condition = self._make_asked(node.name, node.output_type, node.discriminator)
                cases = tuple(
                    (key, region) for key, entry in node.cases if (region := self._make_region(entry)) is not None
                )
                default = self._make_region(node.default)
                params = {"discriminator": condition, "cases": cases} | (
                    {} if default is None else {"default": default}
                )
                return [condition.key], [], params, [*(r for _, r in cases), *([] if default is None else [default])]
            case ParallelNode():
                regions = [region for entry in node.branches if (region := self._make_region(entry)) is not None]
                return [], [], {} if regions else {"hollow": True}, regions
            case LoopNode():
                return self._make_loop(node)
        return [], [], {}, []

    def _make_region(self, entry: str | None) -> str | None:
        return None if entry is None else self.regions.get(entry)

    def _make_system(self, node: SystemNode) -> tuple[list[str], list[str], dict[str, Any], list[str]]:
        system = node.system
        options: dict[str, Any] = {"timeout": node.timeout}
        if node.attempts > 1:
            options |= {"attempts": node.attempts, "backoff": node.backoff}
        reads = [self.keys[take.kind] for take in system.takes if take.role == "out"]
        writes = [self.keys[kind] for kind in system.gives or ()]
        params = {
            "function": system.function,
            "takes": system.takes,
            "gives": system.gives,
            "keys": self.keys,
            **({} if find_agent(system.function) is None else {"output": writes[0]}),
            **options,
        }
        return reads, writes, params, []

    def _make_loop(self, node: LoopNode) -> tuple[list[str], list[str], dict[str, Any], list[str]]:
        region = self._make_region(node.body_entry)
        bodies = [] if region is None else [region]
        hollow = {} if bodies else {"hollow": True}
        limit = self.max_iterations if node.max_iterations is None else node.max_iterations
        if node.termination is None:
            return [], [], {"times": limit, **hollow}, bodies
        condition = self._make_asked(node.name, node.output_type, node.termination, until=True)
        return [condition.key], [], {"while": condition, "max": limit, **_WORDS, **hollow}, bodies

    def _make_asked(self, name: str, kind: Any, function: Any, *, until: bool = False) -> TypedCondition:
        return TypedCondition(name, kind, self.keys[kind], function, until=until)

    # -- edges -----------------------------------------------------------------------------------------------------

    def _iter_edges(self) -> Iterator[Edge]:
        """Yield the edges that a run can take, in the order of their nodes."""
        levels = self.levels
        successors = dict(levels.next)
        for handler in levels.handlers:  # outer handlers first: nodes inside them may continue at the same target
            edge = handler.edge
            if edge.resume and edge.last is not None and (successor := successors.get(edge.source)) is not None:
                successors[edge.last] = successor
        for node in self.graph.nodes:
            if (target := successors.get(node.id)) is not None:
                yield self._make_edge(node.id, target, "sequential")
            for aside in levels.asides.get(node.id, ()):
                seconds = f"{node.timeout:g} s" if isinstance(node, SystemNode) and node.timeout else ""
                yield self._make_edge(
                    aside.source, aside.target, aside.kind, seconds if aside.kind == "timeout" else ""
                )

    def _make_edge(self, source: str, target: str, kind: Any, condition: str = "") -> Edge:
        place = self._find_place(f"edges[{source!r}, {target!r}]")
        return Edge(source, target, kind, condition=condition, place=place)

    def _make_areas(self) -> tuple[dict[str, Region], dict[str, str]]:
        """Return the areas of handlers, for the drawing, and the nodes in each."""
        areas, area_of = dict[str, Region](), dict[str, str]()
        for handler in self.levels.handlers:
            edge = handler.edge
            name = f"{edge.source}.{edge.kind}"
            title = f"{edge.kind} of {edge.source}"
            areas[name] = Region(name, (edge.target,), title, edge.source)
            area_of |= dict.fromkeys(handler.nodes, name)
        return areas, area_of


def _iter_types(graph: Graph) -> Iterator[Any]:
    """Yield the types used in a graph, in its order."""
    yield from graph.given_types
    for node in graph.nodes:
        if isinstance(node, SystemNode):
            yield from (take.kind for take in node.system.takes if take.role == "out")
            yield from node.system.gives or ()
        elif isinstance(node, DecisionNode | SwitchNode) or (isinstance(node, LoopNode) and node.termination):
            yield node.output_type


def make_initial_board(graph: Graph, outputs: Mapping[Any, Any]) -> dict[str, Any]:
    """Return outputs by type as a run's initial board, under the graph's keys."""
    keys = get_keys(_iter_types(graph))
    return {keys.get(kind) or get_key(kind): value for kind, value in outputs.items()}


__all__ = ["MAX_ITERATIONS", "load", "make_initial_board", "make_recipe", "recognize"]
