"""With `execution_mode: parallel`, the branches of each fork become the branches of a parallel section.

A fork is a node with two or more ordinary edges to different targets. Its branches meet at the node that all of them
reach; without one, they run to the end. If the branches are separate from each other and from the rest, they become the
bodies of a composite node between the fork and its meeting point. That node is not counted as a step, because it does
not appear in the recipe; `max_steps` therefore counts as in sequential mode (docs/decisions/0012).
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from agentnb.errors import Problem
from agentnb.recipe.control_flow import ORDINARY
from agentnb.recipe.descriptions import CHOOSERS, END, list_choices
from agentnb.recipe.model import ROOT, Edge, Node, Region, Rescue

LABEL: Final = "in parallel"
# The parameter of a choosing node that holds its targets, besides the `routes` of a router.
_ROUTES: Final = frozenset({"default", "pass_route", "fail_route"})
_MEND: Final = "let all branches meet at one node, each through separate nodes; or choose one with a router"


class Sections(NamedTuple):
    """The nodes and edges with their parallel sections, the sections' regions, and the warnings about other forks."""

    nodes: Mapping[str, Node]
    edges: tuple[Edge, ...]
    regions: Mapping[str, Region] = MappingProxyType({})
    notes: tuple[Problem, ...] = ()


def make_sections(nodes: Mapping[str, Node], edges: tuple[Edge, ...], entry: str) -> Sections:
    """Return a recipe's nodes and edges with a composite node for each fork whose branches can run in parallel.

    R137: the branches of a fork are not separate, so its first edge is followed, as in sequential mode.

    Nothing is changed if an edge leads to a missing node: that is reported elsewhere, as an error.
    """
    successors = _Successors(nodes, edges, entry)
    forks = [name for name in successors.walk([entry, *nodes]) if len(successors.targets(name)) > 1]
    if any(end not in nodes for edge in edges for end in (edge.source, edge.target)):
        return Sections(nodes, edges)
    meeting = _find_meeting_points(successors)
    fits: list[_Fork] = []
    notes: list[Problem] = []
    for name in forks:
        fork = _Fork(name, meeting[name], successors)
        fault = next(fork.faults(entry), None)
        if fault is None:
            fits.append(fork)
        else:
            notes.append(_make_section_problem(name, *fault))
    return _SectionBuilder(nodes, edges, fits).sections(notes)


class _Successors:
    """The successors of each node: along edges, routes and fallbacks, in the recipe's order."""

    def __init__(self, nodes: Mapping[str, Node], edges: tuple[Edge, ...], entry: str) -> None:
        self.nodes, self.entry = nodes, entry
        self.out: defaultdict[str, list[Edge]] = defaultdict(list)
        self.into: defaultdict[str, list[Edge]] = defaultdict(list)
        for edge in edges:
            self.out[edge.source].append(edge)
            self.into[edge.target].append(edge)

    def list_ordinary_edges(self, name: str) -> list[Edge]:
        """Return the ordinary edges of a node."""
        return [edge for edge in self.out[name] if edge.kind in ORDINARY]

    def targets(self, name: str) -> dict[str, Edge]:
        """Return the targets of a node's ordinary edges, each with its first edge."""
        targets: dict[str, Edge] = {}
        for edge in self.list_ordinary_edges(name):
            targets.setdefault(edge.target, edge)
        return targets

    def list_successors(self, name: str) -> list[Edge]:
        """Return the successors of a node that completed."""
        return [edge for edge in self.out[name] if edge.kind != "error"]

    def ends(self, name: str) -> bool:
        """Return True if the run may end after a node that completed."""
        node = self.nodes[name]
        if node.kind in CHOOSERS:
            return any(target == END for _, target in list_choices(node))
        return not self.list_ordinary_edges(name)

    def walk(self, starts: Iterable[str], until: str = END) -> list[str]:
        """Return the nodes reachable from the starts without passing `until`, nearest first."""
        waiting, reached = deque(starts), dict[str, None]()
        while waiting:
            name = waiting.popleft()
            if name in reached or name == until or name not in self.nodes:
                continue
            reached[name] = None
            waiting += [edge.target for edge in self.out[name]]
        return list(reached)


def _find_meeting_points(successors: _Successors) -> dict[str, str]:
    """Return for each node the nearest node that every path from it reaches, ignoring fallbacks; END if there is none.

    This is its immediate post-dominator. In a cycle without an exit, the edges back count as its ends.
    """
    import networkx as nx

    flow: nx.DiGraph[Any] = nx.DiGraph()  # its reverse is typed as a graph of any nodes
    flow.add_nodes_from([END, *successors.nodes])
    for name in successors.nodes:
        flow.add_edges_from((name, edge.target) for edge in successors.list_successors(name))
        if successors.ends(name):
            flow.add_edge(name, END)
    endless = set(successors.nodes) - nx.ancestors(flow, END)
    if endless:
        flow.add_edges_from((name, END) for name in _find_back_edges(successors, endless))
    return {name: point for name, point in nx.immediate_dominators(flow.reverse(), END).items() if point is not None}


def _find_back_edges(successors: _Successors, endless: set[str]) -> list[str]:
    """Return the nodes with an edge back to an earlier node, in the parts without an exit."""
    open_, done, back_edges = dict[str, Iterator[Edge]](), set[str](), []
    for start in [successors.entry, *successors.nodes]:
        stack = [start] if start in successors.nodes and start not in done else []
        while stack:
            name = stack[-1]
            edges = open_.setdefault(name, iter(successors.list_successors(name)))
            edge = next(edges, None)
            if edge is None:
                del open_[stack.pop()]
                done.add(name)
            elif edge.target in open_:
                back_edges += [name] if name in endless else []
            elif edge.target not in done:
                stack.append(edge.target)
    return back_edges


Fault = tuple[str, Edge]


@dataclass(slots=True)
class _Branch:
    """One branch of a fork: the edge that opens it, and its nodes, including fallbacks."""

    edge: Edge
    nodes: list[str]


class _Fork:
    """A fork, the point where its branches meet, and the nodes on each branch."""

    def __init__(self, name: str, meets: str, successors: _Successors) -> None:
        self.name, self.meets, self.successors = name, meets, successors
        self.branches = [
            _Branch(edge, successors.walk([target], meets))
            for target, edge in successors.targets(name).items()
            if target != meets
        ]

    def faults(self, entry: str) -> Iterator[Fault]:
        """Yield what prevents the branches from running in parallel: a description, and the edge concerned."""
        homes: dict[str, _Branch] = {}
        for branch in self.branches:
            yield from self._iter_back(branch)
            for name in branch.nodes:
                if homes.setdefault(name, branch) is not branch:
                    yield self._check_shared(name, homes[name], branch)
        for branch in self.branches:
            yield from self._check_entry(branch, entry)
            yield from self._cut_short(branch)

    def _iter_back(self, branch: _Branch) -> Iterator[Fault]:
        if self.name in branch.nodes:
            edge = next(edge for edge in self.successors.into[self.name] if edge.source in branch.nodes)
            yield f"{_describe_edge(edge)} leads back to {self.name!r} before its branches have met", edge

    def _check_shared(self, name: str, first: _Branch, second: _Branch) -> Fault:
        edges = [edge for edge in self.successors.into[name] if edge.source in second.nodes or edge is second.edge]
        # The edge into the second branch is named or, failing that, the edge into the first.
        apart = [edge for edge in edges if edge.source not in first.nodes]
        edge = (apart or edges)[0]
        ends = [each for branch in (first, second) for each in self.successors.walk([branch.edge.target], name)
                if each in branch.nodes and self.successors.ends(each)]  # fmt: skip
        other = f"the run may also end at {ends[0]!r}" if ends else f"not every branch of {self.name!r} does"
        both = f"the branches of {first.edge.target!r} and {second.edge.target!r} both lead to {name!r}"
        return f"{both} ({_describe_edge(edge)}), and {other}", edge

    def _check_entry(self, branch: _Branch, entry: str) -> Iterator[Fault]:
        inside = set(branch.nodes)
        path = f"the path from {branch.edge.target!r}"
        if entry in inside:
            yield f"the run starts at {entry!r}, which is on {path}", branch.edge
        for name in branch.nodes:
            for edge in self.successors.into[name]:
                if edge.source in inside or (edge.source == self.name and edge.kind in ORDINARY):
                    continue
                falls = [each for each in self.successors.into[name] if each.kind == "error" and each.source in inside]
                if falls:
                    yield (
                        f"{_describe_edge(falls[0])} leaves {path} for the same node as {_describe_edge(edge)}",
                        falls[0],
                    )
                yield f"{_describe_edge(edge)} leads into {path} from outside", edge

    def _cut_short(self, branch: _Branch) -> Iterator[Fault]:
        for name in branch.nodes if self.meets != END else ():
            if self.successors.ends(name):
                edge = next(iter(self.successors.into[name]), branch.edge)
                yield (
                    f"{_describe_edge(edge)} leads to {name!r}, which ends the run; the others meet at {self.meets!r}",
                    edge,
                )


def _describe_edge(edge: Edge) -> str:
    word = {"error": "the fallback", "route": "the route"}.get(edge.kind, "the edge")
    return f"{word} {edge.source!r} -> {edge.target!r}"


def _make_section_problem(name: str, why: str, edge: Edge) -> Problem:
    """R137: the branches of a fork are not separate, so its first edge is followed, as in sequential mode."""
    return Problem("R137", f"the branches of {name!r} cannot run in parallel; only its first edge is followed",
                   str(edge.place or f"node {name!r}"), why, _MEND, "warning")  # fmt: skip


class _SectionBuilder:
    """The sections as composite nodes: the current region of each node, and the entry of each section."""

    def __init__(self, nodes: Mapping[str, Node], edges: tuple[Edge, ...], forks: list[_Fork]) -> None:
        self.nodes, self.edges, self.forks = nodes, edges, forks
        self.scopes = {node.id: node.scope for node in nodes.values()}
        self.regions: dict[str, Region] = {}
        self.meets: dict[str, str] = {}
        self.around: dict[str, Node] = {}
        self.fallbacks: defaultdict[str, list[str]] = defaultdict(list)
        for edge in edges:
            if edge.kind == "error":
                self.fallbacks[edge.source].append(edge.target)
        for fork in forks:  # outer ones first, so that a node ends up in its innermost region
            self._open(fork)

    def _open(self, fork: _Fork) -> None:
        name = _make_name(f"{fork.name}.parallel", self.scopes)
        scope = self.scopes[name] = self.scopes[fork.name]
        bodies = []
        for number, branch in enumerate(fork.branches, 1):
            region = _make_name(f"{name}.{branch.edge.target}", {ROOT, *self.regions})
            title = f"branch {number}" + (f": {branch.edge.condition}" if branch.edge.condition else "")
            self.meets[region] = fork.meets
            self.regions[region] = Region(region, (branch.edge.target,), title, name)
            self.scopes |= dict.fromkeys(branch.nodes, region)
            bodies.append(region)
        place = fork.branches[0].edge.place
        self.around[fork.name] = Node(name, "parallel", LABEL, scope, bodies=tuple(bodies), counted=False, place=place)

    def sections(self, notes: list[Problem]) -> Sections:
        """Return the result, with each remaining node and edge in its original order."""
        nodes: dict[str, Node] = {}
        for node in self.nodes.values():
            nodes[node.id] = self._move(node)
            if around := self.around.get(node.id):
                nodes[around.id] = around
        return Sections(MappingProxyType(nodes), tuple(self._iter_edges()), self.regions, tuple(notes))

    def _iter_edges(self) -> Iterator[Edge]:
        forks = {fork.name: fork for fork in self.forks}
        targets: set[str] = set()
        for edge in self.edges:
            if edge.source not in forks or edge.kind not in ORDINARY:
                if not self._is_leaving_branch(edge.source, edge.target):
                    yield edge
            elif edge.source not in targets:
                targets.add(edge.source)
                section, meets = self.around[edge.source], forks[edge.source].meets
                yield Edge(edge.source, section.id, place=edge.place)
                if meets != END and not self._is_leaving_branch(section.id, meets):
                    yield Edge(section.id, meets, place=edge.place)

    def _is_leaving_branch(self, source: str, target: str) -> bool:
        """Return True if an edge leaves a branch for the meeting point, which ends the branch."""
        return self.scopes[source] != self.scopes[target]

    def _move(self, node: Node) -> Node:
        """Return a node moved to its current region; its edges out of the region now end the branch."""
        if self.scopes[node.id] == node.scope:
            return node
        return replace(node, scope=self.scopes[node.id], params=self._make_params(node), rescue=self._make_rescue(node))

    def _make_params(self, node: Node) -> Mapping[str, Any]:
        """Return a node's params; if it can choose to end its branch, `meets` names the node after the section."""
        meets = self.meets[self.scopes[node.id]]
        if node.kind not in CHOOSERS or meets == END:
            return node.params
        params = {key: END if key in _ROUTES and target == meets else target for key, target in node.params.items()}
        if isinstance(routes := params.get("routes"), Mapping):
            params["routes"] = MappingProxyType(
                {value: END if target == meets else target for value, target in routes.items()}
            )
        return MappingProxyType({**params, "meets": meets})

    def _make_rescue(self, node: Node) -> Rescue | None:
        """Return how a node continues after a failure: a fallback to the meeting point ends its branch."""
        targets = [to.node for to in (node.rescue and node.rescue.route) or ()]
        if not any(self._is_leaving_branch(node.id, target) for target in (*targets, *self.fallbacks[node.id])):
            return node.rescue
        return Rescue(node.rescue.writes if node.rescue else MappingProxyType({}), ())


def _make_name(name: str, taken: Iterable[str]) -> str:
    """Return an unused name: the proposed one, or the first with a number appended that is unused."""
    number, unique_name = 1, name
    while unique_name in taken:
        number += 1
        unique_name = f"{name}-{number}"
    return unique_name
