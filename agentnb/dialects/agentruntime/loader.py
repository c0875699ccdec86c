"""loader: an agentruntime file becomes a Recipe: its graphs, its tools, and how a run begins. Translation only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from agentnb.errors import Problem, did_you_mean
from agentnb.recipe.model import Edge, EdgeKind, Node, Recipe, Region, ToolSpec
from agentnb.recipe.words import listed
from agentnb.sources import Source

if TYPE_CHECKING:
    from agentnb.dialects.agentruntime.graphs import Level
    from agentnb.dialects.agentruntime.memory import Memory
    from agentnb.dialects.agentruntime.nodes import Nodes
    from agentnb.dialects.agentruntime.schema import AgentDefinition, ToolConfig


MAX_SUBGRAPH_DEPTH: Final = 8


def recognise(content: object) -> bool:
    """Return whether this looks like an agentruntime file: by its words, or by its class."""
    if isinstance(content, Mapping):
        return "graph" in content and bool({"meta", "state", "prompts", "tools"} & content.keys())
    return any(cls.__name__ == "AgentRuntime" for cls in type(content).__mro__) and hasattr(content, "recipe")


def load(source: Source) -> tuple[Recipe | None, list[Problem]]:
    """Return the recipe, where one can be made, and what is wrong with it beyond what the checks will find."""
    if not isinstance(source.content, Mapping):
        return (source.content.recipe, []) if recognise(source.content) else (None, list(source.problems))
    from agentnb.dialects.agentruntime.graphs import graph_problems, levels
    from agentnb.dialects.agentruntime.nodes import Nodes
    from agentnb.dialects.agentruntime.prompts import compile_prompts
    from agentnb.dialects.agentruntime.schema import read

    definition, problems = read(source)
    problems = [*source.problems, *problems]
    if definition is None:
        return None, problems
    broken = list(graph_problems(definition, source))
    prompts, found = compile_prompts(definition.prompts, source)
    problems += [*broken, *found, *_tool_problems(definition, source), *_notes(definition, source)]
    graphs = levels(definition)
    nodes = Nodes(definition, source, prompts, {level.name: level.region for level in graphs})
    if any(problem.code in {"R106", "R180", "R181"} for problem in broken):  # it cannot be laid out as nodes
        return None, problems
    recipe, told = _recipe(definition, source, graphs, nodes)
    return recipe, [*problems, *nodes.problems, *told]


def _recipe(
    definition: AgentDefinition, source: Source, graphs: list[Level], nodes: Nodes
) -> tuple[Recipe, list[Problem]]:
    from agentnb.dialects.agentruntime.begin import Beginning

    folder = _folder(source)
    memory = _memory(definition, folder)
    found: dict[str, Node] = {}
    edges: list[Edge] = []
    told: list[Problem] = [*_unused(definition, source, graphs)]
    for level in graphs:
        for node in _nodes(level, nodes):
            found.setdefault(node.id, node)
        edges += _edges(level, nodes, found, told)
    root, name = definition.graph, definition.meta.name
    recipe = Recipe(
        name=name,
        dialect="agentruntime",
        nodes=MappingProxyType(found),
        edges=tuple(edges),
        entry=graphs[0].entries(),
        inputs=MappingProxyType({name: {} for name in root.inputs}),
        outputs=tuple(root.outputs),
        regions=MappingProxyType(_regions(graphs, found, name)),
        tools=MappingProxyType({tool.id: _tool(tool, source, n) for n, tool in enumerate(definition.tools)}),
        begin=Beginning(definition.state, tuple(root.inputs), memory),
        finish=None if memory is None else memory.keep,
        init=MappingProxyType(definition.state.init),
        routing="all",
        timeouts="error",
        limits=MappingProxyType(_limits(definition)),
        meta=MappingProxyType({
            "definition": definition, "context": True,
            "required": tuple(name for name in root.inputs if definition.state.init.get(name) is None),
            "entry_place": source.place(("graph",), key=True),
            "provider": _provider(definition),
            "folder": folder,
        }),
    )  # fmt: skip
    return recipe, told


def _memory(definition: AgentDefinition, folder: Path | None) -> Memory | None:
    from agentnb.dialects.agentruntime.memory import Memory

    config = definition.memory
    return Memory(config, folder) if config is not None and config.enabled else None


def _limits(definition: AgentDefinition) -> dict[str, Any]:
    """Return the budget of a run; a time-out of the graph is the time that the whole of it may take."""
    root = definition.graph
    timed = {} if root.timeout is None else {"max_seconds": root.timeout.seconds}
    return {"max_steps": root.max_steps, "max_subgraph_depth": MAX_SUBGRAPH_DEPTH, **timed}


def _nodes(level: Level, nodes: Nodes) -> Iterator[Node]:
    """Yield the nodes of a graph; a loop whose body is reached otherwise too has a copy of it inside."""
    known = level.nodes()
    for number, node in known.values():
        yield nodes.node_of(level, number, node, loop=level.inside.get(node.id))
    for loop in level.loops():
        if loop.id in level.copied:
            number, body = known[loop.body]
            yield nodes.node_of(level, number, body, loop=loop.id)


def _edges(level: Level, nodes: Nodes, found: Mapping[str, Node], told: list[Problem]) -> Iterator[Edge]:
    """Yield the ways of a graph: its edges, the cases of routers, and where failures lead."""
    place, ids = nodes.source.place, level.ids
    for number, edge in enumerate(level.config.edges):
        path = (*level.path, "edges", number)
        if edge.source in level.inside:
            told.append(_not_followed(f"edge {edge.source!r} -> {edge.target!r}", edge.source, str(place(path))))
            continue
        when = None if edge.when in (None, {}) else nodes.condition(edge.when, (*path, "when"))
        kind: EdgeKind = "sequential" if when is None else "conditional"
        text = "" if when is None else when.text
        yield Edge(ids.get(edge.source, edge.source), ids.get(edge.target, edge.target), kind, when, text, place(path))
    for number, node in enumerate(level.config.nodes):
        path, id = (*level.path, "nodes", number), ids[node.id]
        if node.type == "router" and node.id not in level.inside:
            for condition, target in found[id].params.get("cases", ()):
                yield Edge(id, target, "route", condition=condition.text, place=place((*path, "cases")))
            if default := found[id].params.get("default"):
                yield Edge(id, default, "route", condition="otherwise", place=place((*path, "default")))
        to = node.on_error.to if node.on_error is not None else None
        if to and node.id in level.inside:
            told.append(_not_followed(f"on_error.to of {node.id!r}", node.id, str(place((*path, "on_error")))))
        elif to:
            yield Edge(id, ids.get(to, to), "error", place=place((*path, "on_error", "to")))


def _not_followed(what: str, node: str, where: str) -> Problem:
    """R119: a way out of a loop's body is not followed."""
    return Problem("R119", f"{what} is not followed", where, f"{node!r} is the body of a loop: after it comes the loop",
                   "lead the way from the loop", "warning")  # fmt: skip


def _regions(graphs: list[Level], found: Mapping[str, Node], name: str) -> dict[str, Region]:
    owners = {body: node.id for node in reversed(list(found.values())) for body in node.bodies}
    regions = {
        level.region: Region(level.region, level.entries(), level.name or name, owners.get(level.region, ""))
        for level in graphs
    }
    for level in graphs:
        for loop in level.loops():
            id = level.ids[loop.id]
            body = f"{id}/{loop.body}" if loop.id in level.copied else level.ids.get(loop.body, loop.body)
            regions[id] = Region(id, (body,), "", id)
    return regions


def _unused(definition: AgentDefinition, source: Source, graphs: list[Level]) -> Iterator[Problem]:
    """R183: a subgraph that no node runs."""
    used = {level.name for level in graphs}
    for name in definition.subgraphs:
        if name not in used:
            yield Problem("R183", f"subgraph {name!r} is never run", str(source.place(("subgraphs", name), key=True)),
                          "no node that a run can come to names it", "run it by a node of type subgraph, or remove it",
                          "warning")  # fmt: skip


def _tool_problems(definition: AgentDefinition, source: Source) -> Iterator[Problem]:
    """R185: a tool runs a subgraph that the file does not have."""
    graphs = definition.subgraphs
    for number, tool in enumerate(definition.tools):
        if tool.kind == "subgraph" and tool.impl not in graphs:
            yield Problem("R185", f"tool {tool.id!r} runs the subgraph {tool.impl!r}, which does not exist",
                          str(source.place(("tools", number, "impl"))), f"there are: {listed(graphs)}",
                          did_you_mean(tool.impl, graphs, "add it under subgraphs"))  # fmt: skip


def _tool(tool: ToolConfig, source: Source, number: int) -> ToolSpec:
    return ToolSpec(
        tool.id,
        tool.kind,
        tool.impl,
        tool.mode,
        MappingProxyType(dict(tool.config)),
        place=source.place(("tools", number)),
        timeout=tool.timeout.seconds if tool.timeout else None,
    )


def _folder(source: Source) -> Path | None:
    """Return the folder that a file's tools and memory are looked for in; a text or a dict has none of its own."""
    file = Path(source.file)
    return None if source.file.startswith("<") else file.expanduser().resolve().parent


def _notes(definition: AgentDefinition, source: Source) -> Iterator[Problem]:
    """R186: a memory is of a kind that is not kept here."""
    memory = definition.memory
    if memory is not None and memory.enabled and memory.kind not in ("inmemory", "file", "sqlite"):
        what, place = f"a memory of kind {memory.kind!r} is not kept here", source.place(("memory", "kind"))
        yield Problem("R186", what, str(place), "the kinds are: inmemory, file, sqlite", "use one of them")  # fmt: skip


def _provider(definition: AgentDefinition) -> tuple[str, Mapping[str, Any], float] | None:
    """Return who answers for the model where a session names nobody: `provider:model`, settings and temperature."""
    defaults = definition.meta.defaults
    asked = defaults.provider
    if asked is None or asked[0] not in definition.meta.providers:
        return None
    return f"{asked[0]}:{asked[1] or ''}", MappingProxyType(definition.meta.providers[asked[0]]), defaults.temp


__all__ = ["load", "recognise"]
