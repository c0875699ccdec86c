"""sections: with `execution_mode: parallel`, the ways of each fork become the branches of a parallel section.

A fork is a node with two or more ordinary edges to different targets. It meets in the node that all its ways come to;
where there is none, its ways run to the end. Where the ways between lie apart from each other and from the rest, they
become the bodies of a composite node, put between the fork and its meeting point. It is not counted as a step: the
recipe's author has not written it, so `max_steps` counts as in sequential mode (docs/decisions/0012).
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from agentnb.errors import Problem
from agentnb.recipe.flow import ORDINARY
from agentnb.recipe.model import ROOT, Edge, Node, Region, Rescue
from agentnb.recipe.words import CHOOSERS, END, choices

LABEL: Final = "in parallel"
# Where a node that chooses keeps its targets, beside the `routes` of a router.
_ROUTES: Final = frozenset({"default", "pass_route", "fail_route"})
_MEND: Final = "let all its ways meet in one node, each by nodes of its own; or choose by a router"


class Sections(NamedTuple):
    """The nodes and edges with their parallel sections, the sections' regions, and what is told of other forks."""

    nodes: Mapping[str, Node]
    edges: tuple[Edge, ...]
    regions: Mapping[str, Region] = MappingProxyType({})
    notes: tuple[Problem, ...] = ()


def sectioned(nodes: Mapping[str, Node], edges: tuple[Edge, ...], entry: str) -> Sections:
    """Return a recipe's nodes and edges with a composite node for each fork whose ways can run at the same time.

    R137: the ways of a fork do not lie apart, so its first edge is taken, as in sequential mode.

    Nothing is changed where a way leads to no node: that is told elsewhere, as an error.
    """
    ways = _Ways(nodes, edges, entry)
    forks = [name for name in ways.walk([entry, *nodes]) if len(ways.targets(name)) > 1]
    if not forks or any(end not in nodes for edge in edges for end in (edge.source, edge.target)):
        return Sections(nodes, edges)
    meeting = _meeting_points(ways)
    fits: list[_Fork] = []
    notes: list[Problem] = []
    for name in forks:
        fork = _Fork(name, meeting.get(name, END), ways)
        fault = next(fork.faults(entry), None)
        if fault is None:
            fits.append(fork)
        else:
            notes.append(_unfit(name, *fault))
    return _Built(nodes, edges, fits).sections(notes)


class _Ways:
    """Who leads where: along edges, routes and fallbacks, in the recipe's order."""

    def __init__(self, nodes: Mapping[str, Node], edges: tuple[Edge, ...], entry: str) -> None:
        self.nodes, self.entry = nodes, entry
        self.out: defaultdict[str, list[Edge]] = defaultdict(list)
        self.into: defaultdict[str, list[Edge]] = defaultdict(list)
        for edge in (*edges, *_rescues(nodes)):
            self.out[edge.source].append(edge)
            self.into[edge.target].append(edge)

    def ordinary(self, name: str) -> list[Edge]:
        """Return the ordinary edges of a node."""
        return [edge for edge in self.out[name] if edge.kind in ORDINARY]

    def targets(self, name: str) -> dict[str, Edge]:
        """Return where a node's ordinary edges lead, each target with its first edge."""
        found: dict[str, Edge] = {}
        for edge in self.ordinary(name) if self.nodes[name].kind not in CHOOSERS else ():
            found.setdefault(edge.target, edge)
        return found

    def onward(self, name: str) -> list[Edge]:
        """Return the ways that a node takes when it ends well."""
        return [edge for edge in self.out[name] if edge.kind != "error"]

    def ends(self, name: str) -> bool:
        """Say whether the run may end behind a node that has ended well."""
        node = self.nodes[name]
        if node.kind in CHOOSERS:
            return not choices(node) or any(target == END for _, target in choices(node))
        return not self.ordinary(name)

    def walk(self, starts: Iterable[str], until: str = END) -> list[str]:
        """Return what is reached from the starts without passing `until`, the nearest first."""
        waiting, found = deque(starts), dict[str, None]()
        while waiting:
            name = waiting.popleft()
            if name in found or name == until or name not in self.nodes:
                continue
            found[name] = None
            waiting += [edge.target for edge in self.out[name]]
        return list(found)


def _rescues(nodes: Mapping[str, Node]) -> Iterator[Edge]:
    """Yield a fallback for each node that goes on elsewhere after its failure without an edge that says so."""
    for node in nodes.values():
        for target in (node.rescue and node.rescue.route) or ():
            if target != END:
                yield Edge(node.id, target, "error", place=node.place)


def _meeting_points(ways: _Ways) -> dict[str, str]:
    """Return for each node the nearest one that every way from it comes to, fallbacks aside; END where there is none.

    That is its immediate post-dominator. Where a part goes round without an end, the ways back count as its ends.
    """
    import networkx as nx

    onward: nx.DiGraph[Any] = nx.DiGraph()  # its reverse is typed as a graph of any nodes
    onward.add_nodes_from([END, *ways.nodes])
    for name in ways.nodes:
        onward.add_edges_from((name, edge.target) for edge in ways.onward(name))
        if ways.ends(name):
            onward.add_edge(name, END)
    endless = set(ways.nodes) - nx.ancestors(onward, END)
    if endless:
        onward.add_edges_from((name, END) for name in _turning_back(ways, endless))
    return {name: point for name, point in nx.immediate_dominators(onward.reverse(), END).items() if point is not None}


def _turning_back(ways: _Ways, endless: set[str]) -> list[str]:
    """Return the nodes that lead back to where the run has come from, in the parts that have no end."""
    open_, done, found = dict[str, Iterator[Edge]](), set[str](), []
    for start in [ways.entry, *ways.nodes]:
        stack = [start] if start in ways.nodes and start not in done else []
        while stack:
            name = stack[-1]
            edges = open_.setdefault(name, iter(ways.onward(name)))
            edge = next(edges, None)
            if edge is None:
                del open_[stack.pop()]
                done.add(name)
            elif edge.target in open_:
                found += [name] if name in endless else []
            elif edge.target not in done:
                stack.append(edge.target)
    return found


Fault = tuple[str, Edge]


@dataclass(slots=True)
class _Branch:
    """One way of a fork: the edge that opens it, and the nodes on it, fallbacks included."""

    edge: Edge
    nodes: list[str]


class _Fork:
    """A fork, the point where its ways meet, and the nodes on each way."""

    def __init__(self, name: str, meets: str, ways: _Ways) -> None:
        self.name, self.meets, self.ways = name, meets, ways
        self.branches = [
            _Branch(edge, ways.walk([target], meets)) for target, edge in ways.targets(name).items() if target != meets
        ]

    def faults(self, entry: str) -> Iterator[Fault]:
        """Yield what stands against running the ways at the same time: in words, and the edge that it is about."""
        homes: dict[str, _Branch] = {}
        for branch in self.branches:
            yield from self._back(branch)
            for name in branch.nodes:
                if homes.setdefault(name, branch) is not branch:
                    yield self._shared(name, homes[name], branch)
        for branch in self.branches:
            yield from self._entered(branch, entry)
            yield from self._cut_short(branch)

    def _back(self, branch: _Branch) -> Iterator[Fault]:
        if self.name in branch.nodes:
            edge = next(edge for edge in self.ways.into[self.name] if edge.source in branch.nodes)
            yield f"{_told(edge)} leads back to {self.name!r} before its ways have met", edge

    def _shared(self, name: str, first: _Branch, second: _Branch) -> Fault:
        edges = [edge for edge in self.ways.into[name] if edge.source in second.nodes or edge is second.edge]
        # What is named is the way by which the second one comes, else the one by which the first does.
        apart = [edge for edge in edges if edge.source not in first.nodes]
        edge = (apart or edges)[0]
        ends = [each for branch in (first, second) for each in self.ways.walk([branch.edge.target], name)
                if each in branch.nodes and self.ways.ends(each)]  # fmt: skip
        other = f"the run may also end at {ends[0]!r}" if ends else f"not every way from {self.name!r} does"
        both = f"the ways from {first.edge.target!r} and {second.edge.target!r} both come to {name!r}"
        return f"{both} ({_told(edge)}), and {other}", edge

    def _entered(self, branch: _Branch, entry: str) -> Iterator[Fault]:
        inside = set(branch.nodes)
        way = f"the way from {branch.edge.target!r}"
        if entry in inside:
            yield f"the run begins at {entry!r}, which is on {way}", branch.edge
        for name in branch.nodes:
            for edge in self.ways.into[name]:
                if edge.source in inside or (edge.source == self.name and edge.kind in ORDINARY):
                    continue
                falls = [each for each in self.ways.into[name] if each.kind == "error" and each.source in inside]
                if falls:
                    yield f"{_told(falls[0])} leads out of {way}, to where {_told(edge)} leads as well", falls[0]
                yield f"{_told(edge)} leads into {way} from outside", edge

    def _cut_short(self, branch: _Branch) -> Iterator[Fault]:
        for name in branch.nodes if self.meets != END else ():
            if self.ways.ends(name):
                edge = next(iter(self.ways.into[name]), branch.edge)
                yield (
                    f"{_told(edge)} leads to {name!r}, which ends the run; the other ways meet in {self.meets!r}",
                    edge,
                )


def _told(edge: Edge) -> str:
    word = {"error": "the fallback", "route": "the route"}.get(edge.kind, "the edge")
    return f"{word} {edge.source!r} -> {edge.target!r}"


def _unfit(name: str, why: str, edge: Edge) -> Problem:
    """R137: the ways of a fork do not lie apart, so its first edge is taken, as in sequential mode."""
    return Problem("R137", f"the ways from {name!r} cannot run in parallel; its first edge alone is taken",
                   str(edge.place or f"node {name!r}"), why, _MEND, "warning")  # fmt: skip


class _Built:
    """The sections as composite nodes: which region each node stands in now, and what leads there."""

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
        for fork in forks:  # the outer ones come first, so that the innermost region of a node stays
            self._open(fork)

    def _open(self, fork: _Fork) -> None:
        name = _new(f"{fork.name}.parallel", self.scopes)
        scope = self.scopes[name] = self.scopes[fork.name]
        bodies = []
        for number, branch in enumerate(fork.branches, 1):
            region = _new(f"{name}.{branch.edge.target}", {ROOT, *self.regions})
            title = f"branch {number}" + (f": {branch.edge.condition}" if branch.edge.condition else "")
            self.meets[region] = fork.meets
            self.regions[region] = Region(region, (branch.edge.target,), title, name)
            self.scopes |= dict.fromkeys(branch.nodes, region)
            bodies.append(region)
        place = fork.branches[0].edge.place
        self.around[fork.name] = Node(name, "parallel", LABEL, scope, bodies=tuple(bodies), counted=False, place=place)

    def sections(self, notes: list[Problem]) -> Sections:
        """Return it all, with each node and edge where it stood before as far as it is still there."""
        nodes: dict[str, Node] = {}
        for node in self.nodes.values():
            nodes[node.id] = self._moved(node)
            if around := self.around.get(node.id):
                nodes[around.id] = around
        return Sections(MappingProxyType(nodes), tuple(self._edges()), self.regions, tuple(notes))

    def _edges(self) -> Iterator[Edge]:
        forks = {fork.name: fork for fork in self.forks}
        led: set[str] = set()
        for edge in self.edges:
            if edge.source not in forks or edge.kind not in ORDINARY:
                if not self._leaves(edge.source, edge.target):
                    yield edge
            elif edge.source not in led:
                led.add(edge.source)
                section, meets = self.around[edge.source], forks[edge.source].meets
                yield Edge(edge.source, section.id, place=edge.place)
                if meets != END and not self._leaves(section.id, meets):
                    yield Edge(section.id, meets, place=edge.place)

    def _leaves(self, source: str, target: str) -> bool:
        """Say whether a way leads out of a branch: to where it meets the others, which is the branch's end."""
        return target in self.scopes and self.scopes[source] != self.scopes[target]

    def _moved(self, node: Node) -> Node:
        """Return a node in the region that it stands in now; what led it out of there is the end of its branch."""
        if self.scopes[node.id] == node.scope:
            return node
        return replace(node, scope=self.scopes[node.id], params=self._params(node), rescue=self._rescue(node))

    def _params(self, node: Node) -> Mapping[str, Any]:
        """Return a node's params; where it may choose the end of its branch, `meets` names what comes after that."""
        meets = self.meets[self.scopes[node.id]]
        if node.kind not in CHOOSERS or meets == END:
            return node.params
        params = {key: END if key in _ROUTES and target == meets else target for key, target in node.params.items()}
        if isinstance(routes := params.get("routes"), Mapping):
            params["routes"] = MappingProxyType(
                {value: END if target == meets else target for value, target in routes.items()}
            )
        return MappingProxyType({**params, "meets": meets})

    def _rescue(self, node: Node) -> Rescue | None:
        """Return how a node goes on after a failure: what led it to where the ways meet ends its branch."""
        route = (node.rescue and node.rescue.route) or ()
        if not any(self._leaves(node.id, target) for target in (*route, *self.fallbacks[node.id])):
            return node.rescue
        return Rescue(node.rescue.writes if node.rescue else MappingProxyType({}), ())


def _new(name: str, taken: Iterable[str]) -> str:
    """Return a name that is not taken yet: the given one, or with the first number that makes it new."""
    number, found = 1, name
    while found in taken:
        number += 1
        found = f"{name}-{number}"
    return found
