"""Load an agentruntime file as a Recipe: its graphs, its tools, and its initial state. Translation only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path as FilePath
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from agentnb.errors import Problem, did_you_mean
from agentnb.kinds.directives import merge
from agentnb.recipe.descriptions import list_names
from agentnb.recipe.model import Edge, EdgeKind, Node, Recipe, Region, ToolSpec
from agentnb.sources import Path, Source
from agentnb.world.tools.allow_list import Allowed

if TYPE_CHECKING:
    from agentnb.dialects.agentruntime.parts.levels import Level
    from agentnb.dialects.agentruntime.parts.memory import Memory
    from agentnb.dialects.agentruntime.parts.nodes import Nodes
    from agentnb.dialects.agentruntime.schema import AgentDefinition, StateConfig, ToolConfig


MAX_SUBGRAPH_DEPTH: Final = 8


def recognize(content: object) -> bool:
    """Return True if this looks like an agentruntime file: by its keys, or by its class."""
    if isinstance(content, Mapping):
        return "graph" in content and bool({"meta", "state", "prompts", "tools"} & content.keys())
    return any(cls.__name__ == "AgentRuntime" for cls in type(content).__mro__) and hasattr(content, "recipe")


def load(source: Source) -> tuple[Recipe | None, list[Problem]]:
    """Return the recipe, if one can be made, and the problems beyond those that the checks will find."""
    if not isinstance(source.content, Mapping):
        return source.content.recipe, []
    from agentnb.dialects.agentruntime.parts.levels import check_graphs, list_levels
    from agentnb.dialects.agentruntime.parts.nodes import Nodes
    from agentnb.dialects.agentruntime.parts.prompts import compile_prompts
    from agentnb.dialects.agentruntime.schema import read

    definition, problems = read(source)
    problems = [*source.problems, *problems]
    if definition is None:
        return None, problems
    broken = list(check_graphs(definition, source))
    prompts, prompt_problems = compile_prompts(definition.prompts, source)
    problems += [*broken, *prompt_problems, *_check_tools(definition, source), *_check_memory(definition, source)]
    graphs = list_levels(definition)
    nodes = Nodes(definition, source, prompts, {level.name: level.region for level in graphs})
    if any(problem.code in {"R106", "R180", "R181"} for problem in broken):  # it cannot be translated to nodes
        return None, problems
    recipe, warnings = _make_recipe(definition, source, graphs, nodes)
    return recipe, [*problems, *nodes.problems, *warnings]


def _make_recipe(
    definition: AgentDefinition, source: Source, graphs: list[Level], nodes: Nodes
) -> tuple[Recipe, list[Problem]]:

    folder = _find_folder(source)
    memory = _make_memory(definition, Allowed.of(folder, source.allow))
    nodes_by_id: dict[str, Node] = {}
    edges: list[Edge] = []
    problems: list[Problem] = [*_check_unused(definition, source, graphs)]
    for level in graphs:
        for node in _iter_nodes(level, nodes):
            nodes_by_id.setdefault(node.id, node)
        edges += _iter_edges(level, nodes, nodes_by_id, problems)
    root, name = definition.graph, definition.meta.name
    recipe = Recipe(
        name=name,
        dialect="agentruntime",
        nodes=MappingProxyType(nodes_by_id),
        edges=tuple(edges),
        entry=graphs[0].entries(),
        inputs=MappingProxyType({name: {} for name in root.inputs}),
        outputs=tuple(root.outputs),
        regions=MappingProxyType(_make_regions(graphs, nodes_by_id, name)),
        tools=MappingProxyType({tool.id: _make_tool(tool, source, n) for n, tool in enumerate(definition.tools)}),
        begin=InitialState(definition.state, tuple(root.inputs), memory),
        finish=None if memory is None else memory.keep,
        init=MappingProxyType(definition.state.init),
        routing="all",
        timeouts="error",
        limits=MappingProxyType(_make_limits(definition)),
        meta=MappingProxyType({
            "definition": definition, "context": True,
            "required": tuple(name for name in root.inputs if definition.state.init.get(name) is None),
            "entry_place": source.locate(("graph",), key=True),
            "provider": _choose_provider(definition, source),
            "folder": folder,
        }),
    )  # fmt: skip
    return recipe, problems


def _make_memory(definition: AgentDefinition, allowed: Allowed) -> Memory | None:
    from agentnb.dialects.agentruntime.parts.memory import Memory

    config = definition.memory
    return Memory(config, allowed) if config is not None and config.enabled else None


def _make_limits(definition: AgentDefinition) -> dict[str, Any]:
    """Return the budget of a run; a timeout of the graph limits the whole run."""
    root = definition.graph
    timed = {} if root.timeout is None else {"max_seconds": root.timeout.seconds}
    return {"max_steps": root.max_steps, "max_subgraph_depth": MAX_SUBGRAPH_DEPTH, **timed}


def _iter_nodes(level: Level, nodes: Nodes) -> Iterator[Node]:
    """Yield the nodes of a graph; a loop whose body can also be reached in another way contains a copy of it."""
    known = level.nodes()
    for number, node in known.values():
        yield nodes.node_of(level, number, node, loop=level.inside.get(node.id))
    for loop in level.loops():
        if loop.id in level.copied:
            number, body = known[loop.body]
            yield nodes.node_of(level, number, body, loop=loop.id)


def _iter_edges(level: Level, nodes: Nodes, nodes_by_id: Mapping[str, Node], problems: list[Problem]) -> Iterator[Edge]:
    """Yield all edges of a graph: its edges, the cases of routers, and the targets of failures."""
    locate, ids = nodes.source.locate, level.ids
    for number, edge in enumerate(level.config.edges):
        path = (*level.path, "edges", number)
        if edge.source in level.inside:
            problems.append(
                _make_ignored_edge_problem(f"edge {edge.source!r} -> {edge.target!r}", edge.source, str(locate(path)))
            )
            continue
        when = None if edge.when in (None, {}) else nodes.condition(edge.when, (*path, "when"))
        kind: EdgeKind = "sequential" if when is None else "conditional"
        text = "" if when is None else when.text
        yield Edge(ids.get(edge.source, edge.source), ids.get(edge.target, edge.target), kind, when, text, locate(path))
    for number, node in enumerate(level.config.nodes):
        path, id = (*level.path, "nodes", number), ids[node.id]
        if node.type == "router" and node.id not in level.inside:
            for condition, target in nodes_by_id[id].params.get("cases", ()):
                yield Edge(id, target, "route", condition=condition.text, place=locate((*path, "cases")))
            if default := nodes_by_id[id].params.get("default"):
                yield Edge(id, default, "route", condition="otherwise", place=locate((*path, "default")))
        to = node.on_error.to if node.on_error is not None else None
        if to and node.id in level.inside:
            problems.append(
                _make_ignored_edge_problem(f"on_error.to of {node.id!r}", node.id, str(locate((*path, "on_error"))))
            )
        elif to:
            yield Edge(id, ids.get(to, to), "error", place=locate((*path, "on_error", "to")))


def _make_ignored_edge_problem(what: str, node: str, where: str) -> Problem:
    """R119: an edge out of a loop's body is not followed."""
    return Problem("R119", f"{what} is not followed", where,
    f"{node!r} is the body of a loop; the loop continues after it",
                   "add the edge to the loop instead", "warning")  # fmt: skip


def _make_regions(graphs: list[Level], nodes: Mapping[str, Node], name: str) -> dict[str, Region]:
    owners = {body: node.id for node in reversed(list(nodes.values())) for body in node.bodies}
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


def _check_unused(definition: AgentDefinition, source: Source, graphs: list[Level]) -> Iterator[Problem]:
    """R183: a subgraph is not used by any node."""
    used = {level.name for level in graphs}
    for name in definition.subgraphs:
        if name not in used:
            yield Problem("R183", f"subgraph {name!r} is never run", str(source.locate(("subgraphs", name), key=True)),
                          "no reachable node refers to it", "run it by a node of type subgraph, or remove it",
                          "warning")  # fmt: skip


def _check_tools(definition: AgentDefinition, source: Source) -> Iterator[Problem]:
    """R185: a tool runs a subgraph that the file does not have.

    R240: two tools have the same id.
    """
    graphs = definition.subgraphs
    last = {tool.id: number for number, tool in enumerate(definition.tools)}
    for number, tool in enumerate(definition.tools):
        if last[tool.id] != number:
            yield Problem("R240", f"tool {tool.id!r} is defined twice; the last definition is used",
                          str(source.locate(("tools", number, "id"))),
                          f"the other definition is at {source.locate(('tools', last[tool.id], 'id'))}",
                          "remove one of them, or change its id", "warning")  # fmt: skip
    for number, tool in enumerate(definition.tools):
        if tool.kind == "subgraph" and tool.impl not in graphs:
            yield Problem("R185", f"tool {tool.id!r} runs the subgraph {tool.impl!r}, which does not exist",
                          str(source.locate(("tools", number, "impl"))), f"there are: {list_names(graphs)}",
                          did_you_mean(tool.impl, graphs, "add it under subgraphs"))  # fmt: skip


def _make_tool(tool: ToolConfig, source: Source, number: int) -> ToolSpec:
    return ToolSpec(
        tool.id,
        tool.kind,
        tool.impl,
        tool.mode,
        MappingProxyType(dict(tool.config)),
        place=source.locate(("tools", number)),
        timeout=tool.timeout.seconds if tool.timeout else None,
    )


def _find_folder(source: Source) -> FilePath | None:
    """Return the base folder of a file's tools and memory; None for a string or a dict."""
    file = FilePath(source.file)
    return None if source.file.startswith("<") else file.expanduser().resolve().parent


def _check_memory(definition: AgentDefinition, source: Source) -> Iterator[Problem]:
    """R186: a kind of memory is not supported here."""
    yield from _check_providers(definition, source)
    memory = definition.memory
    if memory is not None and memory.enabled and memory.kind not in ("inmemory", "file", "sqlite"):
        what, place = f"memory kind {memory.kind!r} is not supported", source.locate(("memory", "kind"))
        yield Problem("R186", what, str(place), "the supported kinds are: inmemory, file, sqlite",
        "use one of them")  # fmt: skip


def _check_providers(definition: AgentDefinition, source: Source) -> Iterator[Problem]:
    """Yield warnings about model providers. They are not errors, because a run may be passed another model.

    R241: the default model's provider is not listed.
    R242: a kind of provider is not known.
    R243: a setting of a provider is not known.
    """
    listed_ones, provider = definition.meta.providers, definition.meta.defaults.provider
    if provider is not None and provider[0] not in listed_ones:
        yield Problem("R241", f"meta.defaults.llm names the provider {provider[0]!r}, which is not listed",
                      str(source.locate(("meta", "defaults", "llm"))),
                      f"the providers under meta.providers are: {list_names(listed_ones)}",
                      did_you_mean(provider[0], listed_ones, f"add {provider[0]!r} under meta.providers"),
                      "warning")  # fmt: skip
    if not listed_ones:
        return
    from agentnb.world.llm.providers import PROVIDERS, SIMULATED
    from agentnb.world.llm.settings import WORDS

    kinds = [*PROVIDERS, SIMULATED]
    for name, settings in listed_ones.items():
        path: Path = ("meta", "providers", name)
        kind = settings.get("type") or name
        if kind not in kinds:
            key = "type" in settings
            yield Problem("R242", f"provider {name!r} has the unknown kind {kind!r}",
                          str(source.locate((*path, "type") if key else path, key=not key)),
                          f"the kinds are: {', '.join(kinds)}",
                          did_you_mean(kind, kinds, "write one of them as its 'type'"), "warning")  # fmt: skip
        for word in settings:
            if word not in WORDS:
                yield Problem("R243", f"setting {word!r} of provider {name!r} is unknown and has no effect",
                              str(source.locate((*path, word), key=True)),
                              f"the settings are: {', '.join(sorted(WORDS))}",
                              did_you_mean(word, WORDS, "pass further fields of the protocol in `kwargs`"),
                              "warning")  # fmt: skip


def _choose_provider(definition: AgentDefinition, source: Source) -> tuple[str, Mapping[str, Any], float, str] | None:
    """Return the provider for the model used if a session passes none, in a form that `client_of` accepts."""
    defaults = definition.meta.defaults
    requested = defaults.provider
    if requested is None or requested[0] not in definition.meta.providers:
        return None
    settings = MappingProxyType(definition.meta.providers[requested[0]])
    place = source.locate(("meta", "providers", requested[0]), key=True)
    return f"{requested[0]}:{requested[1] or ''}", settings, defaults.temp, str(place)


@dataclass(frozen=True, slots=True)
class InitialState:
    """Creates the first board: `state.init`, every other key of the shape as None, then the declared inputs.

    An input is merged into an existing value (lists are concatenated, mappings merged key by key, None changes
    nothing), or replaces it if the reducer is `replace`. Undeclared inputs never enter the board. With a memory, the
    messages of earlier runs precede its own.
    """

    state: StateConfig
    inputs: tuple[str, ...]
    memory: Memory | None = None

    def __call__(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the board for these inputs."""
        board = dict.fromkeys([*self.state.init, *self.state.shape]) | deepcopy(dict(self.state.init))
        for name in self.inputs:
            if name in values:
                board[name] = values[name] if self.state.reducer == "replace" else merge(board.get(name), values[name])
        return board if self.memory is None else self.memory.recall(values, board)


__all__ = ["load", "recognize"]
