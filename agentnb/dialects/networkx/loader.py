"""Load a networkx graph as a Recipe. Translation only: no function of the graph is called.

Graph attributes: name, entry, inputs, outputs, init, limits. Node attributes: kind, label, inputs, reads, writes, and
those of its kind. Edge attributes: when, kind, value (of a route), label.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

from agentnb.dialects.networkx import schema as words
from agentnb.dialects.networkx.parts.levels import Level, infer_kind, is_graph, list_levels
from agentnb.dialects.networkx.parts.routes import Routes
from agentnb.errors import Place, Problem
from agentnb.expressions.paths import format_path
from agentnb.recipe.descriptions import CHOOSERS
from agentnb.recipe.model import ROOT, Edge, Node, Recipe, Region
from agentnb.sources import Source
from agentnb.text import safe_repr

recognize = is_graph
# Kinds whose answer is written under one key if it is not a mapping.
_WRITING = frozenset({"function", "tool", "agent", "human", "llm"})
_CALLED = frozenset({"function", "tool", "agent"})
# Attributes that become part of the graph.
_PLACED = frozenset({"graph", "routes", "default", "pass_route", "fail_route"})
_NOTHING: Mapping[str, Any] = MappingProxyType({})


def load(source: Source) -> tuple[Recipe | None, list[Problem]]:
    """Return the recipe, and the problems beyond those that the checks will find."""
    return _Translation(source.content).recipe()


class _Translation:
    """A graph being translated to a recipe: its parts, and the problems so far."""

    def __init__(self, graph: Any) -> None:
        self.graph, self.problems = graph, list[Problem]()
        self.name = str(graph.graph.get("name") or "graph")
        self.nodes: dict[str, Node] = {}
        self.edges: list[Edge] = []
        self.regions: dict[str, Region] = {}
        self.stops: list[tuple[str, str]] = []  # breakpoints that the graph declares: node, side
        self.inside: set[str] = set()  # the nodes that have a graph inside

    def recipe(self) -> tuple[Recipe, list[Problem]]:
        outermost, *_ = attributes = list_levels(self.graph, self.name, self.problems)
        self.inside = {level.region for level in attributes} - {ROOT}
        for level in attributes:
            self._read(level)
        top = words.read(self.graph.graph, words.GRAPH, outermost.place, self.problems)
        inputs: Mapping[str, Any] = top.get("inputs", _NOTHING)
        defaults = {
            key: each["default"] for key, each in inputs.items() if isinstance(each, Mapping) and "default" in each
        }
        if "reducers" in top:  # the node's own reducers take precedence
            for id, node in self.nodes.items():
                reducers = {**top["reducers"], **node.params.get("reducers", {})}
                self.nodes[id] = replace(node, params=MappingProxyType({**node.params, "reducers": reducers}))
        lifetimes = {name: top[name] for name in ("transient", "untracked") if name in top}
        if lifetimes:
            self.regions = {id: replace(region, **lifetimes) for id, region in self.regions.items()}
        recipe = Recipe(
            name=self.name,
            dialect="networkx",
            routing="supersteps" if top.get("supersteps") else "first",
            nodes=MappingProxyType(self.nodes),
            edges=tuple(self.edges),
            entry=self.regions[ROOT].entry,
            inputs=inputs,
            outputs=top.get("outputs", ()),
            regions=MappingProxyType(self.regions),
            init=MappingProxyType({**top.get("init", {}), **defaults}),
            limits=top.get("limits", _NOTHING),
            meta=MappingProxyType(
                {
                    "stops": tuple(self.stops),
                    "entry_place": outermost.at("entry"),
                    "required": tuple(inputs),  # inputs with a default or an initial value are always available
                }
            ),
        )
        return recipe, self.problems

    def _read(self, level: Level) -> None:
        """Read one graph's nodes and edges, and its region."""
        routes: dict[str, Routes] = {}
        shown = {node: safe_repr(node) for node in level.graph}
        for node, attributes in level.graph.nodes(data=True):
            result = self._make_node(level, node, attributes, level.at(f"nodes[{shown[node]}]"))
            self.nodes.setdefault(result.id, result)
            if result.kind in CHOOSERS:
                routes[result.id] = Routes(result, level, attributes, self.problems)
        edges: list[Edge] = []
        for source, target, attributes in level.graph.edges(data=True):
            place = level.at(f"edges[{shown[source]}, {shown[target]}]")
            edge = self._make_edge(level.ids[source], level.ids[target], attributes, place)
            own_routes = routes.get(edge.source)
            kept = edge if own_routes is None else own_routes.add(edge, self.problems)
            if kept is not None:
                edges.append(kept)
        for name, chosen in routes.items():
            edges += chosen.iter_undrawn_edges()
            self.nodes[name] = replace(self.nodes[name], params=chosen.params())
        self.edges += edges
        around = self.nodes.get(level.owner)
        isolated = (
            around is not None and around.kind == "subgraph" and bool(around.params.keys() & {"inputs", "outputs"})
        )
        self.regions[level.region] = Region(level.region, _find_entry(level, edges), level.title, level.owner, isolated)

    def _make_edge(self, source: str, target: str, attributes: Mapping[str, Any], place: Place) -> Edge:
        if not attributes:
            return Edge(source, target, place=place)
        values = words.read(attributes, words.EDGE, place, self.problems)
        when = values.get("when")
        ordinary = "route" if "value" in values else "conditional" if when is not None else "sequential"
        label = str(values["value"]) if "value" in values else getattr(when, "text", values.get("label", ""))
        return Edge(source, target, values.get("kind", ordinary), when, label, place, join=values.get("join", ""))

    def _make_node(self, level: Level, node: Any, attributes: Mapping[str, Any], place: Place) -> Node:
        kind, name, own = infer_kind(attributes), level.ids[node], str(node)
        known = words.BY_KIND.get(kind)
        values = words.read(attributes, words.list_words(kind), place, self.problems)
        params = {key: values[key] for key in _list_own_words(kind) if key in values}
        if known is None:  # a kind that the checks may know
            params = {key: value for key, value in attributes.items() if key not in words.COMMON}
        if kind in _WRITING:
            if "output" in params and kind in {"function", "tool"}:
                params["whole"] = True
            if "map" not in params:
                params.setdefault("output", own)
        if kind == "llm":
            params["prompt"] = _parse_messages(params.pop("system", None), params.get("prompt", ()))
        for word in ("reducers", "choose", "defer"):
            if word in values:
                params[word] = values[word]
        if "breakpoint" in values:
            self.stops.append((name, values["breakpoint"]))
        if kind in _CALLED or kind == "evaluator":
            self._bind_by_name(kind, params, own)
        if kind == "subgraph" and "inputs" in values:
            params["inputs"] = values["inputs"]
        self._check_required(kind, attributes, place)
        return Node(
            id=name,
            kind=kind,
            label=values.get("label", "" if name == own else own),
            scope=level.region,
            inputs=values.get("inputs") if kind in _CALLED else None,
            reads=values.get("reads", _reads(values)),
            writes=values.get("writes", _writes(kind, params)),
            params=MappingProxyType(params),
            bodies=(name,) if name in self.inside else (),
            place=place,
        )

    def _bind_by_name(self, kind: str, params: dict[str, Any], node_id: str) -> None:
        """Bind a node without a callable to its own name."""
        if kind in {"agent", "evaluator"}:
            params["ref"] = params.get("ref", params.pop("agent_ref", node_id))
        else:
            params.setdefault("function", node_id)

    def _check_required(self, kind: str, attributes: Mapping[str, Any], place: Place) -> None:
        """R113: a required key is missing."""
        for word, why in words.NEEDED.get(kind, {}).items():
            if attributes.get(word) is None:
                order = (
                    f"add {word}='...', the value's path"
                    if words.BY_KIND[kind][word] is words.convert_path
                    else f"add {word!r}"
                )
                self.problems.append(Problem("R113", f"attribute {word!r} is missing", str(place), why, order))
        if kind == "loop" and all(attributes.get(word) is None for word in ("times", "while", "until")):
            self.problems.append(
                Problem("R113", "attribute 'until' is missing", str(place),
                        "a loop requires 'times', 'while' or 'until'",
                        "add one of the three")
            )  # fmt: skip


@lru_cache(maxsize=64)
def _list_own_words(kind: str) -> tuple[str, ...]:
    """Return the attributes of a kind that become parameters of its nodes."""
    return tuple(word for word in words.BY_KIND.get(kind, ()) if word not in _PLACED)


def _parse_messages(system: Any, prompt: Any) -> tuple[tuple[str, Any], ...]:
    """Return the prompt of a model as pairs of a role and a template."""
    from agentnb.expressions.templates import compile_template

    pairs = [*([] if system is None else [("system", system)])]
    pairs += prompt if isinstance(prompt, tuple) else [("user", prompt)]
    return tuple((role, compile_template(text) if isinstance(text, str) else text) for role, text in pairs)


_READING: Final = ("while", "until", "prompt", "system", "goal")


def _reads(attributes: Mapping[str, Any]) -> tuple[str, ...]:
    paths = [*attributes["inputs"].values()] if "inputs" in attributes else []
    paths += [attributes[word] for word in ("input_key", "target") if word in attributes]
    for word in _READING:
        if word in attributes:
            value = attributes[word]
            for part in (text for _, text in value) if isinstance(value, tuple) else (value,):
                paths += getattr(part, "reads", ())
    return tuple(dict.fromkeys(map(format_path, paths))) if paths else ()


def _writes(kind: str, params: Mapping[str, Any]) -> tuple[str, ...]:
    if "output" in params and (kind in {"human", "llm"} or params.get("whole")):
        return (params["output"],)
    if kind == "evaluator":
        return (params.get("feedback", "feedback"),)
    if kind == "generative":
        return tuple(params.get("schema", {}).get("properties", ()))
    return tuple(params.get("outputs", ())) if kind == "subgraph" else ()


def _find_entry(level: Level, edges: list[Edge]) -> tuple[str, ...]:
    """Return the entry of a graph: the nodes that it names or, without these, the nodes without incoming edges."""
    entry = level.graph.graph.get("entry")
    if entry is None:
        # An edge that a router ignores still counts as incoming: its target is not meant to be an entry.
        targets = {edge.target for edge in edges} | {level.ids[target] for _, target in level.graph.edges()}
        return tuple(name for name in level.ids.values() if name not in targets)
    several = isinstance(entry, list) or (isinstance(entry, tuple) and entry not in level.ids)
    return tuple(dict.fromkeys(map(level.id_of, entry if several else [entry])))
