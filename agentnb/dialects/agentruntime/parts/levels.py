"""The graphs of an agentruntime file as levels: the names of their nodes and their regions."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentnb.errors import Problem, did_you_mean
from agentnb.recipe.descriptions import list_names
from agentnb.recipe.model import ROOT

if TYPE_CHECKING:
    from agentnb.dialects.agentruntime.schema import AgentDefinition, GraphConfig, LoopNode, NodeConfig
    from agentnb.sources import Path, Source


@dataclass(frozen=True, slots=True)
class Level:
    """One graph: its path in the file, its region in the recipe, and the names of its nodes there.

    `inside` maps a node to the loop that contains it as its body; `copied` are the loops whose body can also be reached
    in another way, so that they run a copy of it.
    """

    name: str
    config: GraphConfig
    path: Path
    region: str
    ids: Mapping[str, str]
    inside: Mapping[str, str]
    copied: frozenset[str]

    def scope(self, node: str) -> str:
        """Return the region of a node: its loop's, or the graph's."""
        loop = self.inside.get(node)
        return self.region if loop is None else self.ids[loop]

    def nodes(self) -> dict[str, tuple[int, NodeConfig]]:
        """Return the nodes by their own id, each with its index; for equal ids, the first."""
        nodes: dict[str, tuple[int, NodeConfig]] = {}
        for number, node in enumerate(self.config.nodes):
            nodes.setdefault(node.id, (number, node))
        return nodes

    def loops(self) -> Iterator[LoopNode]:
        """Yield the loops."""
        yield from (node for node in self.config.nodes if node.type == "loop")

    def entries(self) -> tuple[str, ...]:
        """Return the nodes without incoming edges, in order.

        A node that is reached only after a failure is not included.
        """
        targets: set[str] = {edge.target for edge in self.config.edges}
        for node in self.config.nodes:
            targets.update(list_targets(node))
            if node.on_error is not None and node.on_error.to:
                targets.add(node.on_error.to)
            if node.type == "loop":
                targets.add(node.body)
        return tuple(self.ids[node.id] for node in self.config.nodes if node.id not in targets)


def list_targets(node: NodeConfig) -> list[str]:
    """Return the possible targets of a router."""
    if node.type != "router":
        return []
    return [*(case.to for case in node.cases), *([node.default] if node.default else [])]


def list_levels(definition: AgentDefinition) -> list[Level]:
    """Return the graphs that a run can enter, the root first."""
    graphs: dict[str, GraphConfig] = {"": definition.graph}
    border = [definition.graph]
    while border:
        for name in find_called(border.pop(), definition):
            if name in definition.subgraphs and name not in graphs:
                graphs[name] = definition.subgraphs[name]
                border.append(graphs[name])
    counts = Counter(id for config in graphs.values() for id in {node.id for node in config.nodes})
    taken = {*counts, ROOT}
    levels = []
    for name, config in graphs.items():
        ids = {node.id: node.id if not name or counts[node.id] == 1 else f"{name}/{node.id}" for node in config.nodes}
        region = ROOT if not name else name if name not in taken else f"{name} (graph)"
        path: Path = ("subgraphs", name) if name else ("graph",)
        inside, copied = _find_bodies(config)
        levels.append(Level(name, config, path, region, ids, inside, copied))
    return levels


def find_called(config: GraphConfig, definition: AgentDefinition) -> list[str]:
    """Return the subgraphs that a graph's nodes run, through a node of their own or as a tool."""
    tools = {tool.id: tool for tool in definition.tools if tool.kind == "subgraph"}
    called = [node.graph for node in config.nodes if node.type == "subgraph"]
    called += [tools[node.uses].impl for node in config.nodes if node.type == "tool" and node.uses in tools]
    return list(dict.fromkeys(called))


def _find_bodies(config: GraphConfig) -> tuple[dict[str, str], frozenset[str]]:
    """Return the loop around each body, and the loops that run a copy of a node that is elsewhere."""
    loops: defaultdict[str, list[str]] = defaultdict(list)
    others = {edge.target for edge in config.edges}
    for node in config.nodes:
        others.update(list_targets(node))
        if node.on_error is not None and node.on_error.to:
            others.add(node.on_error.to)
        if node.type == "loop":
            loops[node.body].append(node.id)
    known = {node.id for node in config.nodes}
    inside = {body: owners[0] for body, owners in loops.items() if body in known and body not in others}
    copied = [owner for body, owners in loops.items() if body in known for owner in owners if inside.get(body) != owner]
    return inside, frozenset(copied)


# ---------------------------------------------------------------------------------------------- structural faults ---


def check_graphs(definition: AgentDefinition, source: Source) -> Iterator[Problem]:
    """Yield the faults in the structure of the graphs; targets of edges are checked with the recipe."""
    graphs = [("", definition.graph), *definition.subgraphs.items()]
    for name, config in graphs:
        path: Path = ("subgraphs", name) if name else ("graph",)
        yield from _check_duplicates(config, path, source)
        yield from _check_references(config, path, source, definition)
        yield from _check_cycles(config, path, source)
    yield from _check_nesting(definition, source)


def _check_duplicates(config: GraphConfig, path: Path, source: Source) -> Iterator[Problem]:
    """R106: two nodes have the same id."""
    first: dict[str, int] = {}
    for number, node in enumerate(config.nodes):
        if first.setdefault(node.id, number) != number:
            place = source.locate((*path, "nodes", number, "id"))
            yield Problem("R106", f"node id {node.id!r} is used twice", str(place),
                          "an id names one node of its graph",
                          "rename one of the two and its edges")  # fmt: skip


def _check_references(
    config: GraphConfig, path: Path, source: Source, definition: AgentDefinition
) -> Iterator[Problem]:
    """R182: a node refers to a tool, a subgraph, a prompt or a body that the file does not have."""
    names: dict[str, tuple[str, str, Collection[str]]] = {
        "tool": ("uses", "tool", dict.fromkeys(tool.id for tool in definition.tools)),
        "subgraph": ("graph", "subgraph", definition.subgraphs),
        "llm": ("prompt", "prompt template", definition.prompts.templates),
        "loop": ("body", "node", dict.fromkeys(node.id for node in config.nodes)),
    }
    for number, node in enumerate(config.nodes):
        if node.type not in names:
            continue
        word, sort, known = names[node.type]
        name = getattr(node, word)
        if name not in known:
            what = f"{node.type} {node.id!r} names the {sort} {name!r}, which does not exist"
            yield Problem("R182", what, str(source.locate((*path, "nodes", number, word))),
                          f"there are: {list_names(known)}",
                          did_you_mean(name, known, f"add it, or name another {sort}"))  # fmt: skip


def _check_cycles(config: GraphConfig, path: Path, source: Source) -> Iterator[Problem]:
    """R180: edges and bodies of loops form a cycle; only routers may lead back."""
    successors: defaultdict[str, list[str]] = defaultdict(list)
    for edge in config.edges:
        successors[edge.source].append(edge.target)
    for node in config.nodes:
        if node.type == "loop":
            successors[node.id].append(node.body)
    cycle = _find_cycle(successors)
    if cycle:
        yield Problem("R180", f"the graph has a cycle: {' -> '.join(cycle)}", str(source.locate((*path, "edges"))),
                      "edges and loop bodies must lead forward; to go back, use a router or a loop",
                      "go back through a router's case")  # fmt: skip


def _check_nesting(definition: AgentDefinition, source: Source) -> Iterator[Problem]:
    """R181: subgraphs contain one another in a cycle."""
    called = {name: find_called(config, definition) for name, config in definition.subgraphs.items()}
    cycle = _find_cycle(called)
    if cycle:
        yield Problem("R181", f"the subgraphs form a cycle: {' -> '.join(cycle)}",
                      str(source.locate(("subgraphs", cycle[0]), key=True)),
                      "a subgraph that contains itself would never end", "remove one of them")  # fmt: skip


def _find_cycle(graph: Mapping[str, list[str]]) -> list[str]:
    """Return the nodes of one cycle, with the first repeated at the end; empty if there is none."""
    done: set[str] = set()
    for start in list(graph):
        path: list[str] = []
        work = [(start, iter(graph.get(start, ())))] if start not in done else []
        path += [start] if work else []
        while work:
            name, successors = work[-1]
            following = next(successors, None)
            if following is None:
                done.add(name)
                work.pop()
                path.pop()
            elif following in path:
                return [*path[path.index(following) :], following]
            elif following not in done:
                work.append((following, iter(graph.get(following, ()))))
                path.append(following)
    return []
