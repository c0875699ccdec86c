"""Translation of a compiled graph, with its nodes, edges and state, to a Recipe."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from agentnb.dialects.langgraph.errors import (
    make_compile_problem,
    make_context_problem,
    make_inner_breakpoints_problem,
    make_unsupported_problem,
)
from agentnb.dialects.langgraph.parts import package as lg
from agentnb.dialects.langgraph.parts.cached_call import CachedCall
from agentnb.dialects.langgraph.parts.channels import Channels
from agentnb.dialects.langgraph.parts.entrypoint_call import EntrypointCall
from agentnb.dialects.langgraph.parts.functions import is_only_async, is_only_sync, make_callers, unwrap_function
from agentnb.dialects.langgraph.parts.inner_calls import install
from agentnb.dialects.langgraph.parts.node_call import Branch, HandlerCall, NodeCall, NodePlan
from agentnb.dialects.langgraph.parts.retries import to_policies
from agentnb.dialects.langgraph.parts.runtime import Settings
from agentnb.dialects.langgraph.parts.start_call import StartCall
from agentnb.dialects.langgraph.parts.subgraph_call import SubgraphCall
from agentnb.dialects.langgraph.parts.task_calls import TaskRules
from agentnb.dialects.langgraph.parts.time_limit import to_plain_limits
from agentnb.dialects.langgraph.schema import (
    END,
    PREVIOUS,
    START,
    is_builder,
    is_compiled,
    is_entrypoint,
    is_remote,
    is_state_graph,
)
from agentnb.errors import Place, Problem
from agentnb.recipe.model import ROOT, Edge, Node, Recipe, Region

Start = StartCall | EntrypointCall
# Code of the engine's problem -> the exception that LangGraph raises when a superstep fails for this reason.
_ERROR_CLASSES = MappingProxyType({"L530": lg.InvalidUpdateError, "L533": lg.GraphRecursionError})


def translate(
    graph: Any,
    config: dict[str, Any] | None = None,
    context: Any = None,
    store: Any = None,
    state: Mapping[str, Any] | None = None,
) -> tuple[Recipe | None, list[Problem]]:
    """Return the recipe of a graph (None if there are errors), and the problems."""
    install()
    problems: list[Problem] = []
    compiled = _compile(graph, problems)
    if compiled is None:
        return None, problems
    names = (compiled.name, *compiled.nodes) if is_entrypoint(compiled) else (compiled.name, "graph")
    name = next(name for name in names if name not in {None, "LangGraph"})
    config = lg.ensure_config(compiled.config, config)
    limit = int(config["recursion_limit"])
    try:
        context = lg.coerce_context(compiled.context_schema, context)
    except Exception as error:  # noqa: BLE001  (whatever the schema raises)
        return None, [make_context_problem(error, Place(f"<graph {name!r}>"))]
    store = store if store is not None else compiled.store
    only_async = is_only_async(compiled)
    only_sync = not only_async and is_only_sync(compiled)
    has_saver = bool(compiled.checkpointer)
    settings = Settings(config, context, store, has_saver=has_saver, only_async=only_async, only_sync=only_sync)
    translation = _Translation(limit, has_saver, problems)
    translation.read(compiled, settings, ROOT, "", Place(f"<graph {name!r}>"))
    if any(problem.severity == "error" for problem in problems):
        return None, problems
    channels = translation.channels[ROOT]
    channels.earlier = dict(state or {})
    start, only = translation.starts[ROOT], str(compiled.output_channels)
    recipe = Recipe(
        name=name,
        dialect="langgraph",
        nodes=MappingProxyType(translation.nodes),
        edges=tuple(translation.edges),
        entry=translation.regions[ROOT].entry,
        inputs=MappingProxyType({key: {} for key in start.keys if key != "__root__"}),
        outputs=tuple(compiled.output_channels) if isinstance(compiled.output_channels, list) else (only,),
        regions=MappingProxyType(translation.regions),
        begin=start.begin,
        read_inputs=start.read_inputs,
        routing="supersteps",
        timeouts="error",
        init=MappingProxyType({}),
        limits=MappingProxyType({}),
        meta=MappingProxyType({"required": (), "stops": tuple(translation.stops)}),
        random_ids=True,
    )
    return recipe, problems


def _compile(graph: Any, problems: list[Problem]) -> Any:
    place = Place(f"<{type(graph).__name__}>")
    if is_builder(graph):
        blueprint = copy(graph)  # compile() changes a graph: it sets a flag and fills in defaults of the nodes
        blueprint.nodes = {name: copy(spec) for name, spec in graph.nodes.items()}
        try:
            return blueprint.compile()
        except (ValueError, TypeError) as error:
            problems.append(make_compile_problem(error, place))
            return None
    if is_remote(graph):
        problems.append(
            make_unsupported_problem("a RemoteGraph, which runs on a server,", place, "load the graph itself")
        )
        return None
    if not is_state_graph(graph) and not is_entrypoint(graph):
        problems.append(make_unsupported_problem("a hand-built Pregel graph", place, "write it as a StateGraph"))
        return None
    return graph


class _Translation:
    """The translation of a graph and its subgraphs, with the problems so far.

    `has_saver`: the graph has a checkpointer, so subgraphs may have a persistent state.
    """

    def __init__(self, limit: int, has_saver: bool, problems: list[Problem]) -> None:
        self.limit, self.has_saver, self.problems = limit, has_saver, problems
        self.nodes: dict[str, Node] = {}
        self.edges: list[Edge] = []
        self.regions: dict[str, Region] = {}
        self.channels: dict[str, Channels] = {}
        self.starts: dict[str, Start] = {}
        self.begins_early = set[str]()  # the regions whose START is a separate node
        self.stops: list[tuple[str, str]] = []

    def read(self, graph: Any, settings: Settings, region: str, prefix: str, place: Place) -> None:
        """Read one graph as a region; the ids of its nodes begin with `prefix`."""
        self._check_graph(graph, place)
        if is_entrypoint(graph):
            self._translate_entrypoint(graph, settings, region, prefix, place)
        else:
            self._translate_state_graph(graph, settings, region, prefix, place)

    def _translate_entrypoint(self, graph: Any, settings: Settings, region: str, prefix: str, place: Place) -> None:
        own = {key: graph.channels[key] for key in (START, END, PREVIOUS)}
        channels = self.channels[region] = Channels(own, {}, place, self.problems)
        call = EntrypointCall(graph, prefix, channels, settings)
        self.nodes[call.id] = Node(
            id=call.id,
            kind="runnable",
            label="" if not prefix else call.plan.name,
            scope=region,
            reads=(START,),
            params=MappingProxyType({
                "perform": _add_cache(call, graph, call.plan.name, graph.cache_policy),
                "function": call.function,
                "reducers": MappingProxyType({}),
                "max_supersteps": self.limit,
                "supersteps_after_wait": self.limit + 1,
                "error_classes": _ERROR_CLASSES,
            }),
            place=place,
        )  # fmt: skip
        self._translate_region(graph, region, prefix, call, (call.id,), [call.plan.name])

    def _translate_state_graph(self, graph: Any, settings: Settings, region: str, prefix: str, place: Place) -> None:
        builder = graph.builder
        self.channels[region] = Channels(builder.channels, builder.managed, place, self.problems)
        if begins_early(builder):
            self.begins_early.add(region)
        for name, spec in builder.nodes.items():
            if not spec.is_error_handler:  # handlers are translated with the nodes whose errors they handle
                self._translate_node(
                    graph, settings, name, spec, region, prefix, place._replace(path=f"nodes[{name!r}]")
                )
        self._add_edges(builder, prefix, place)
        start = self._translate_start(graph, settings, region, prefix, place)
        targets = sorted(prefix + end for begin, end in builder.edges if begin == START and end != END)
        entry = (start.id,) if start.id in self.nodes else tuple(targets)
        self._translate_region(graph, region, prefix, start, entry, builder.nodes)

    def _translate_region(
        self, graph: Any, region: str, prefix: str, start: Start, entry: tuple[str, ...], names: Iterable[str]
    ) -> None:
        for side, stops in (("before", graph.interrupt_before_nodes), ("after", graph.interrupt_after_nodes)):
            self.stops += [(prefix + name, side) for name in (names if stops == "*" else stops)]
        self.starts[region] = start
        owner = "" if region == ROOT else region
        title, channels = "" if region == ROOT else region, self.channels[region]
        lifetimes = tuple(channels.transient), tuple(channels.untracked)
        self.regions[region] = Region(region, entry, title, owner, region != ROOT, *lifetimes)

    def _check_graph(self, graph: Any, place: Place) -> None:
        if graph.step_timeout is not None:
            self.problems.append(make_unsupported_problem("step_timeout", place, "remove it"))

    def _translate_node(
        self, graph: Any, settings: Settings, name: str, spec: Any, region: str, prefix: str, place: Place
    ) -> None:
        channels, process = self.channels[region], graph.nodes[name]
        self._check_node(spec, process, place)
        entries = process.writers[0].writes
        plan = NodePlan(
            name=name,
            prefix=prefix,
            channels=channels,
            keys=process.channels,
            mapper=process.mapper,
            updates=entries[0].mapper,
            control=entries[1].mapper,
            settings=settings,
            names=graph.builder.nodes,
            branches=self._translate_branches(graph, name),
            retries=to_policies(spec.retry_policy),
            timeout=to_plain_limits(spec.timeout),
            handled=spec.error_handler_node is not None,
            static=_list_static_writes(graph.builder, name),
            begins_early=region in self.begins_early,
            tasks=TaskRules(cache=graph.cache),
            metadata=process.metadata or {},
        )
        own = prefix + name
        inner = spec.runnable if is_compiled(spec.runnable) else None
        keys = (process.channels,) if isinstance(process.channels, str) else tuple(process.channels)
        if inner is None:
            perform: Any = NodeCall(plan, spec.runnable)
        elif is_state_graph(inner) or is_entrypoint(inner):
            self.read(inner, settings.make_inner_settings(inner), own, f"{own}/", place)
            stays = self.has_saver and inner.checkpointer is True
            state_keys = self.channels[own].channels if stays else ()
            perform = SubgraphCall(
                plan,
                self.starts[own].begin,
                inner.output_channels,
                begins_early=own in self.begins_early,
                keys=state_keys,
            )
        else:
            self.problems.append(
                make_unsupported_problem("a hand-built Pregel graph", place, "call it inside a function")
            )
            return
        perform = _add_cache(perform, graph, name, spec.cache_policy)
        if spec.error_handler_node is not None:
            self._translate_error_handler(graph, spec.error_handler_node, plan, own, region, place)
        self.nodes[own] = Node(
            id=own,
            kind="runnable",
            label="" if not prefix else name,
            scope=region,
            reads=tuple(key for key in keys if key in channels.channels),
            writes=(),
            params=MappingProxyType({
                "perform": perform,
                "function": unwrap_function(spec.runnable),
                "reducers": MappingProxyType(channels.reducers),
                "defer": bool(spec.defer),
                "max_supersteps": self.limit + (region in self.begins_early),
                "supersteps_after_wait": self.limit + 1,
                "error_classes": _ERROR_CLASSES,
            }),
            bodies=() if inner is None else (own,),
            place=place,
        )  # fmt: skip
        self.edges += self._draw_choices(graph.builder, name, spec, prefix, place)

    def _translate_error_handler(
        self, graph: Any, handler: str, failing: NodePlan, source: str, region: str, place: Place
    ) -> None:
        """Add the node that handles the errors of another. A handler for all nodes becomes one node for each."""
        spec, process = graph.builder.nodes[handler], graph.nodes[handler]
        entries = process.writers[0].writes
        plan = replace(
            failing,
            name=handler,
            updates=entries[0].mapper,
            control=entries[1].mapper,
            branches=[],
            retries=to_policies(spec.retry_policy),
            timeout=None,
            handled=False,
            static=(),
            metadata=process.metadata or {},
        )
        own = failing.prefix + (handler if handler.endswith(failing.name) else f"{handler}:{failing.name}")
        self.nodes[own] = Node(
            id=own,
            kind="runnable",
            label=f"if {failing.name} fails",
            scope=region,
            params=MappingProxyType({
                "perform": HandlerCall(plan, spec.runnable, source, failing.name),
                "function": unwrap_function(spec.runnable),
                "reducers": MappingProxyType(failing.channels.reducers),
                "max_supersteps": self.limit + failing.begins_early,
                "supersteps_after_wait": self.limit + 1,
                "error_classes": _ERROR_CLASSES,
            }),
            place=place,
        )  # fmt: skip
        self.edges.append(Edge(source, own, "error", place=place))

    def _check_node(self, spec: Any, process: Any, place: Place) -> None:
        if spec.retry_policy and is_compiled(spec.runnable):
            self.problems.append(
                make_unsupported_problem("a retry policy of a subgraph", place, "set it on the nodes inside")
            )
        if spec.timeout is not None and is_compiled(spec.runnable):
            self.problems.append(
                make_unsupported_problem("a timeout of a subgraph", place, "set it on the nodes inside")
            )
        if not is_compiled(spec.runnable):
            for inner in process.subgraphs or ():  # graphs that the node's function refers to
                self._check_invoked(inner, place)

    def _check_invoked(self, inner: Any, place: Place) -> None:
        """Check a graph that a function invokes itself, and the graphs inside it."""
        graphs = [inner, *(graph for _, graph in inner.get_subgraphs(recurse=True))]
        if self.has_saver and any(graph.checkpointer is True for graph in graphs):
            self.problems.append(
                make_unsupported_problem(
                    "a graph with checkpointer=True that a function invokes", place, "compile it without a checkpointer"
                )
            )
        if any(graph.interrupt_before_nodes or graph.interrupt_after_nodes for graph in graphs):
            self.problems.append(make_inner_breakpoints_problem(place))

    def _translate_branches(self, graph: Any, name: str) -> list[Branch]:
        builder, branches = graph.builder, []
        for spec in builder.branches.get(name, {}).values():
            schema = spec.input_schema
            if schema is None:
                schema = builder.nodes[name].input_schema if name in builder.nodes else builder.state_schema
            keys = list(builder.schemas[schema])
            mapper = graph.schema_to_mapper.get(schema)
            callers = make_callers(spec.path)
            conditions = {value: str(value) for value in spec.ends or ()}
            branches.append(Branch(spec, callers, "__root__" if keys == ["__root__"] else keys, mapper, conditions))
        return branches

    def _add_edges(self, builder: Any, prefix: str, place: Place) -> None:
        for source, target in sorted(builder.edges):
            if source != START and target != END:
                at = place._replace(path=f"edges[{source!r}, {target!r}]")
                self.edges.append(Edge(prefix + source, prefix + target, place=at))
        for sources, target in sorted(builder.waiting_edges):
            if target == END:
                continue
            name = "+".join(sources)
            for source in sources:
                at = place._replace(path=f"edges[{list(sources)!r}, {target!r}]")
                self.edges.append(Edge(prefix + source, prefix + target, place=at, join=name))

    def _draw_choices(self, builder: Any, name: str, spec: Any, prefix: str, place: Place) -> list[Edge]:
        """Return the edges that the node may choose, for the drawing."""
        edges = []
        known = [target for target, each in builder.nodes.items() if target != name and not each.is_error_handler]
        for branch in builder.branches.get(name, {}).values():
            ends = branch.ends or {target: target for target in known}
            edges += [Edge(prefix + name, prefix + end, "route", condition=str(value), place=place)
                      for value, end in ends.items() if end != END]  # fmt: skip
        ends = spec.ends or ()
        edges += [Edge(prefix + name, prefix + end, "route", place=place) for end in ends if end != END]
        return list({(edge.target, edge.condition): edge for edge in edges}.values())

    def _translate_start(self, graph: Any, settings: Settings, region: str, prefix: str, place: Place) -> StartCall:
        builder, process, channels = graph.builder, graph.nodes[START], self.channels[region]
        entries = process.writers[0].writes
        keys = [key for key in builder.schemas[builder.input_schema] if key in channels.channels]
        plan = NodePlan(
            name=START, prefix=prefix, channels=channels, keys=keys, mapper=None, updates=entries[0].mapper,
            control=entries[1].mapper, settings=settings, names=builder.nodes,
            branches=self._translate_branches(graph, START),
            begins_early=region in self.begins_early,
        )  # fmt: skip
        start = StartCall(plan, prefix + START)
        targets = sorted(end for begin, end in builder.edges if begin == START and end != END)
        if region in self.begins_early:
            self.nodes[start.id] = Node(
                id=start.id, kind="runnable", label="start", scope=region,
                params=MappingProxyType({
                    "perform": start,
                    "reducers": MappingProxyType(channels.reducers),
                    "max_supersteps": self.limit + 1,
                    "supersteps_after_wait": self.limit + 1,
                    "error_classes": _ERROR_CLASSES,
                }),
                counted=False, place=place._replace(path="edges from START"),
            )  # fmt: skip
            for target in targets:
                self.edges.append(Edge(start.id, prefix + target, place=place))
            self.edges += self._draw_choices(builder, START, _NO_ENDS, prefix, place)
        return start


def _add_cache(call: NodeCall, graph: Any, name: str, policy: Any) -> NodeCall | CachedCall:
    """Return a node's function, which checks the cache first if the node has a cache policy and the graph a cache."""
    if graph.cache is None or not policy:
        return call
    namespace = (lg.keys.CACHE_NS_WRITES, lg.identifier(graph.nodes[name]) or "__dynamic__", name)
    return CachedCall(call, graph.cache, namespace, policy)


def begins_early(builder: Any) -> bool:
    """Return True if START is a separate node, which runs in a superstep before the first one that is counted."""
    targets = [end for begin, end in builder.edges if begin == START and end != END]
    return bool(builder.branches.get(START)) or any(builder.nodes[target].defer for target in targets)


def _list_static_writes(builder: Any, name: str) -> list[tuple[str, Any]]:
    """Return LangGraph's writes for the unconditional edges of a node, in LangGraph's order."""
    writes: list[tuple[str, Any]] = []
    writes += [(f"branch:to:{end}", None) for begin, end in builder.edges if begin == name and end != END]
    writes += [(f"join:{'+'.join(begins)}:{end}", name) for begins, end in builder.waiting_edges
               if name in begins and end != END]  # fmt: skip
    return writes


class _NoBranches:
    ends: Sequence[str] = ()


_NO_ENDS = _NoBranches()
__all__ = ["translate"]
