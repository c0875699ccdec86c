"""The data model of agents: a Recipe consists of frozen nodes and edges, each with its place in the source."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path as FilePath
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol

from agentnb.arguments import plain_arguments
from agentnb.display import get_view
from agentnb.errors import Place, Problem, pluralize
from agentnb.recipe.user_functions import get_own_attribute
from agentnb.secrets import masking_for
from agentnb.text import WIDE, safe_repr

if TYPE_CHECKING:
    import networkx as nx


EdgeKind = Literal["sequential", "conditional", "route", "parallel", "loop_back", "error", "timeout", "event"]
EDGE_KINDS: tuple[EdgeKind, ...] = (
    "sequential",
    "conditional",
    "route",
    "parallel",
    "loop_back",
    "error",
    "timeout",
    "event",
)
Routing = Literal["first", "all", "supersteps"]
Path = tuple[str | int, ...]
ROOT = "root"
NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


class Send(NamedTuple):
    """A target with its own input: the node runs once for each Send, and reads the input as `input` (see `choose`)."""

    node: str
    input: Any


class RouteTarget(NamedTuple):
    """A target, and the condition of the edge of kind `route` by which the source node chose it."""

    node: str
    condition: str


class Condition(Protocol):
    """A condition of an edge or a breakpoint: a callable on the board with a text form and a list of its reads."""

    text: str
    reads: tuple[Path, ...]

    def __call__(self, board: Mapping[str, Any], /) -> Any:
        """Return the condition's value; its truth value decides."""


class Reactive(Protocol):
    """Decides which nodes an event activates, beyond its type.

    A scheduled node is (node id, about); see `ActivationRow.about`. Stateless: all results follow from the run's board
    and events.
    """

    def has_listeners(self, event: Any) -> bool:
        """Return True if an event has its own delivery in the queue; otherwise it activates no node."""
        ...

    def list_triggered(self, run: Any, event: Any) -> Sequence[str] | None:
        """Return the nodes that an event will activate; None if that depends on what runs before its delivery."""
        ...

    def list_deliveries(self, run: Any, event: Any) -> Sequence[tuple[str, int]]:
        """Return the nodes that an event activates, as (node id, about), when its delivery is due."""
        ...

    def list_delayed(self, run: Any, event: Any) -> Sequence[tuple[str, int, int]]:
        """Return what was deferred to the end of an event's delivery: node id, about, number of its own event."""
        ...

    def listens(self, node: str, event: Any) -> bool:
        """Return True if a node listens to events of this type."""
        ...

    def explain_refusal(self, run: Any, node: str, event: Any) -> Iterable[str]:
        """Return why an event does not activate a node, one text per clause."""
        ...

    def find_matches(self, run: Any, node: str) -> Sequence[Mapping[str, str]]:
        """Return the matches of a node's pattern at the current position; empty if the node has none."""
        ...

    def project(self, run: Any, event: Any) -> Sequence[tuple[Path, Any]]:
        """Return the writes to the board of an external event, as (path, value)."""
        ...

    def accept(self, run: Any, event: Any) -> None:
        """Notify the dialect's own listeners of an external event, which is recorded, applied and saved."""
        ...

    def check_value(self, key: str, value: Any) -> None:
        """Raise an error for a value on the board that no node can read: an input, or what an edit would leave."""
        ...


class ApprovalRequest(NamedTuple):
    """A pending approval on a run's board, requested by a node or from elsewhere (`node`).

    `free` are the arguments that a person may change before the decision; `replaces` are the current values that
    arguments would replace, by argument name.
    """

    id: str
    node: str
    name: str
    arguments: Mapping[str, Any]
    free: tuple[str, ...] = ()
    replaces: Mapping[str, Any] = MappingProxyType({})


class Approvals(Protocol):
    """Approvals that are pending on the board although no node waits for them: the run continues.

    Stateless: pending requests follow from the run's board and events, and a decision is an event.
    """

    def waiting(self, run: Any) -> Sequence[ApprovalRequest]:
        """Return the pending requests at the current position, in order."""
        ...

    def decide(self, session: Any, approval: ApprovalRequest, verdict: Mapping[str, Any]) -> None:
        """Execute or reject a request: the verdict contains `approved`, `by` whom, and the `reason`."""
        ...

    def change(self, session: Any, approval: ApprovalRequest, arguments: Mapping[str, Any]) -> None:
        """Replace the arguments of a pending request."""
        ...


@dataclass(frozen=True, slots=True)
class Rescue:
    """How a run continues after a node has finally failed, besides its error edges.

    `writes` are made in the failed step; `route` are the targets, None for the node's ordinary edges.
    """

    writes: Mapping[str, Any] = field(default_factory=dict)
    route: tuple[RouteTarget, ...] | None = None


@dataclass(frozen=True, slots=True)
class Requirement:
    """A condition on the blackboard before the first step, and the message if it is not met.

    If it is not `required`, the message is a warning and the run starts anyway.
    """

    holds: Callable[[Mapping[str, Any]], bool]
    message: str
    required: bool = True
    place: Place | None = None


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool that a recipe names: its implementation (`impl`) and its type.

    `config` is passed with the arguments of each call; `timeout`, in seconds, is passed to tools that accept one. The
    number of attempts is set by the nodes that call the tool.
    """

    id: str
    kind: str
    impl: str
    mode: str = "callable"
    config: Mapping[str, Any] = field(default_factory=dict)
    timeout: float | None = None
    place: Place | None = None


@dataclass(frozen=True, slots=True)
class Scenario:
    """A test case of a recipe: the inputs, the expected result, and how to compare them (`compare`).

    `expected` maps board keys to values; None only requires that the run succeeds.
    """

    id: str
    inputs: Mapping[str, Any]
    expected: Mapping[str, Any] | None = None
    compare: str = "exact_match"
    about: str = ""
    place: Place | None = None


@dataclass(frozen=True, slots=True)
class Node:
    """One node: its kind determines what it does, `params` hold the parameters of the kind.

    `inputs` maps an argument's name to a path on the board; None passes the board itself to a callable. `reads` and
    `writes` are the declared keys (dotted text), for the drawing and for checks. `scope` is the region around the node;
    `bodies` are the regions inside it (for a composite node). `counted` is True if its steps count towards max_steps.
    `on` are the event types that it listens to. `rescue` defines how the run continues after a failure; None leaves
    that to its error edges.
    """

    id: str
    kind: str
    label: str = ""
    scope: str = ROOT
    inputs: Mapping[str, Path] | None = None
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    params: Mapping[str, Any] = field(default_factory=lambda: NOTHING)
    bodies: tuple[str, ...] = ()
    on: tuple[str, ...] = ()
    counted: bool = True
    rescue: Rescue | None = None
    place: Place | None = None


@dataclass(frozen=True, slots=True)
class Edge:
    """An edge from one node to another.

    Edges of kind `error` and `timeout` are followed only on that failure, `route` if the source node chooses them, all
    others if `when` holds (None: always). `condition` is the text of `when`, for display. An `inner` edge shows where
    the inside of a composite node begins, or that the end of a loop's body leads back; the node itself decides. In
    supersteps, edges into a node with the same `join` name activate it when all of them have been followed.
    """

    source: str
    target: str
    kind: EdgeKind = "sequential"
    when: Condition | None = None
    condition: str = ""
    place: Place | None = None
    inner: bool = False
    join: str = ""


@dataclass(frozen=True, slots=True)
class Region:
    """A part that runs in a separate frame: a loop's body, a branch, a subgraph. `root` is the whole recipe.

    `isolated` is True if its nodes have a separate blackboard, without access to the outer one. In supersteps,
    `transient` keys last for one superstep, unless they are written again; `untracked` keys are lost when the run waits
    for a person.
    """

    id: str
    entry: tuple[str, ...]
    title: str = ""
    owner: str = ""
    isolated: bool = False
    transient: tuple[str, ...] = ()
    untracked: tuple[str, ...] = ()


@dataclass(frozen=True)
class Recipe:
    """An agent as the engine runs it, in any dialect.

    `routing` selects which of a node's ordinary edges are followed: the `first` whose condition holds, or `all` of
    them; `supersteps` also follows all, and nodes scheduled at the same time do not see each other's writes. `tools`
    are the tools that its nodes call, loaded when a session starts. `begin` creates the first board from the inputs;
    None merges them over `init`. `read_inputs` turns inputs that are not a mapping into one; None: there are no others.
    `finish` is called once, with inputs and board, at the end of a run. `timeouts`
    selects the edges for a timeout: those of kind `timeout` only ("own"), or those of kind `error` if a node has none
    of them ("error"). `limits` are the recipe's own budget (`max_steps`, ...). `reactive` decides which nodes an event
    activates; None: by the event types they listen to. `approvals` finds pending approvals on the board; None if only
    nodes request approval. `requires` must hold before the first step; `scenarios` are the recipe's own tests. `notes`
    are the warnings from loading; `check()` returns them with all other problems. `random_ids`: the ids that its nodes
    draw (`work.make_uuid`) differ from run to run, whatever the seed.
    """

    name: str
    dialect: str
    nodes: Mapping[str, Node]
    edges: tuple[Edge, ...]
    entry: tuple[str, ...]
    inputs: Mapping[str, Any] = field(default_factory=lambda: NOTHING)
    outputs: tuple[str, ...] = ()
    regions: Mapping[str, Region] = field(default_factory=lambda: NOTHING)
    tools: Mapping[str, ToolSpec] = field(default_factory=lambda: NOTHING)
    begin: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None
    read_inputs: Callable[[Any], Mapping[str, Any]] | None = None
    finish: Callable[[Mapping[str, Any], Mapping[str, Any]], None] | None = None
    routing: Routing = "first"
    timeouts: Literal["own", "error"] = "own"
    init: Mapping[str, Any] = field(default_factory=lambda: NOTHING)
    limits: Mapping[str, Any] = field(default_factory=lambda: NOTHING)
    reactive: Reactive | None = None
    approvals: Approvals | None = None
    requires: tuple[Requirement, ...] = ()
    scenarios: tuple[Scenario, ...] = ()
    meta: Mapping[str, Any] = field(default_factory=lambda: NOTHING)
    notes: tuple[Problem, ...] = ()
    random_ids: bool = False
    text: str | None = None
    file: str | None = None

    def __post_init__(self) -> None:
        """Add the inner edges, which follow from the nodes and their regions, in every dialect."""
        edges = tuple(edge for edge in self.edges if not edge.inner)
        object.__setattr__(self, "edges", (*edges, *iter_inner_edges(self.nodes, self.regions, edges)))

    @cached_property
    def outgoing_edges(self) -> tuple[Edge, ...]:
        """The edges that a run follows: all but the inner ones."""
        return tuple(edge for edge in self.edges if not edge.inner)

    @property
    def folder(self) -> FilePath | None:
        """The folder of the recipe's file; None for a recipe without a file."""
        folder: FilePath | None = self.meta.get("folder")
        return FilePath(self.file).resolve().parent if folder is None and self.file is not None else folder

    @property
    def derived(self) -> dict[Hashable, Any]:
        """Values computed from this recipe alone, such as its problems and its plan, by key.

        A new dict each time if a part of the recipe can be changed in place, so that everything is computed again.
        """
        return self._derived if self._is_read_only else {}

    @cached_property
    def _derived(self) -> dict[Hashable, Any]:
        return {}

    @cached_property
    def _is_read_only(self) -> bool:
        """True if the mappings of the recipe and its nodes cannot be changed, which every loader ensures."""
        mappings = (self.nodes, self.inputs, self.regions, self.tools, self.init, self.limits)
        return set(map(type, mappings)) == {MappingProxyType} and all(
            type(node.params) is MappingProxyType and (node.inputs is None or type(node.inputs) is MappingProxyType)
            for node in self.nodes.values()
        )

    @cached_property
    def graph(self) -> nx.MultiDiGraph[str]:
        """The recipe as a new networkx MultiDiGraph; changing it does not change the recipe."""
        return to_graph(self)

    def check(self) -> list[Problem]:
        """Return all problems of this recipe, errors first; nothing of it runs."""
        problems: list[Problem] = get_view("problems")(self)
        return problems

    @cached_property
    def fingerprint(self) -> str:
        """The SHA-256 of everything that affects how this recipe runs: nodes, edges, limits, code, call settings."""
        from agentnb.recipe.call_settings import get_call_settings  # it describes the Recipe of this module

        settings = get_call_settings(self)
        parts = [
            [
                [
                    node.id,
                    node.kind,
                    node.scope,
                    *map(to_plain, (node.inputs, node.params, node.bodies, node.on)),
                    node.rescue and [to_plain(node.rescue.writes), node.rescue.route],
                ]
                for node in self.nodes.values()
            ],
            [
                [edge.source, edge.target, edge.kind, edge.condition, to_plain(edge.when), *filter(None, [edge.join])]
                for edge in self.outgoing_edges
            ],
            [
                [region.id, region.entry, region.owner, *filter(None, [region.transient, region.untracked])]
                for region in self.regions.values()
            ],
            [
                self.name,
                self.dialect,
                self.entry,
                self.routing,
                self.timeouts,
                to_plain(self.init),
                to_plain(self.limits),
                *([to_plain(settings)] if settings else []),
            ],
        ]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    @plain_arguments
    def draw(self, board: bool = True, direction: str = "TB", collapsed: Collection[str] = ()) -> Any:
        """Return the Drawing of this recipe; `board` adds the table of the blackboard.

        Args:
            direction: the layout direction: TB, LR, BT or RL.
            collapsed: ids of regions that are drawn as one box each, with a summary of their contents.

        Raises:
            AgentNbError: U205, there is no such direction; U206, there is no such region.
        """
        with masking_for():
            return get_view("drawing")(self, board=board, direction=direction, collapsed=collapsed)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        bundle: dict[str, Any] = self.draw()._repr_mimebundle_(include, exclude)
        return bundle | {"text/plain": repr(self)}

    def __repr__(self) -> str:
        """Return one line: name, dialect and size."""
        size = f"{pluralize(len(self.nodes), 'node')}, {pluralize(len(self.edges), 'edge')}"
        with masking_for():
            return f"<Recipe {safe_repr(self.name, 200)} ({self.dialect}): {size}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the recipe, to send it to another process; its functions are pickled by their names.

        Raises:
            RecipeError: L480, a node, an edge or an option cannot be pickled: it holds a lambda, for example.
        """
        from agentnb.recipe.pickling import restore, to_bytes

        return restore, (to_bytes(self),)


def freeze_mapping(mapping: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a read-only copy of a mapping; its values are not copied."""
    return MappingProxyType(dict(mapping))


def to_plain(value: Any) -> Any:
    """Return `value` as JSON for the fingerprint: a callable becomes its name and a digest of its code."""
    match value:
        case int() if not -WIDE < value < WIDE:
            return f"{value:#x}"
        case None | bool() | int() | float() | str():
            return value
        case Mapping():
            return {str(to_plain(key) if isinstance(key, int) else key): to_plain(item) for key, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return [to_plain(item) for item in value]
    if all(get_own_attribute(value, name) is not None for name in ("source", "reads")):  # a condition
        return [value.text, to_plain(value.source)]
    return _get_code(value) if callable(value) else f"{type(value).__qualname__}:{value!r}"


def _get_code(function: Callable[..., Any]) -> str:
    code, type_name = get_own_attribute(function, "__code__"), type(function).__qualname__
    name = f"{get_own_attribute(function, '__module__', '')}:{get_own_attribute(function, '__qualname__', type_name)}"
    if code is None:
        return name
    constants = [
        to_plain(item) if isinstance(item, int) else item for item in code.co_consts if not hasattr(item, "co_code")
    ]
    return f"{name}:{hashlib.sha256(code.co_code + repr(constants).encode()).hexdigest()[:16]}"


def to_graph(recipe: Recipe) -> nx.MultiDiGraph[str]:
    """Return a recipe's graph, in the recipe's order; it is a copy, so changing it does not change the recipe.

    Graph attributes: name, dialect, entry. Node attributes: kind, label, reads, writes, scope, place. Edge attributes:
    kind, condition. Edges between the same nodes have the keys 0, 1, ... in the recipe's order.
    """
    import networkx as nx

    graph: nx.MultiDiGraph[str] = nx.MultiDiGraph(name=recipe.name, dialect=recipe.dialect, entry=recipe.entry)
    for node in recipe.nodes.values():
        graph.add_node(
            node.id,
            kind=node.kind,
            label=node.label or node.id,
            reads=node.reads,
            writes=node.writes,
            scope=node.scope,
            place=node.place,
        )
    for edge in recipe.edges:
        graph.add_edge(edge.source, edge.target, kind=edge.kind, condition=edge.condition)
    return graph


# The kind of the edges into a composite node's regions, by the node's kind.
_INTO: Final[Mapping[str, EdgeKind]] = {"decision": "conditional", "switch": "conditional", "parallel": "parallel"}
_GOES_ON: Final = frozenset({"sequential", "conditional", "loop_back", "route", "parallel"})


def iter_inner_edges(nodes: Mapping[str, Node], regions: Mapping[str, Region], edges: Iterable[Edge]) -> Iterator[Edge]:
    """Yield the edges from composite nodes to their regions' entries, and from the ends of loop bodies back.

    An edge of a decision or a switch has the name of its branch as its condition. Nodes that a region names but `nodes`
    lacks are omitted: the checks report them.
    """
    owners = [node for node in nodes.values() if node.bodies]
    if not owners:
        return
    going_on = {edge.source for edge in edges if edge.kind in _GOES_ON}
    ends: dict[str, list[Node]] = {}
    for node in nodes.values():
        if node.id not in going_on:
            ends.setdefault(node.scope, []).append(node)
    for node in owners:
        for region in (regions[body] for body in node.bodies if body in regions):
            kind = _INTO.get(node.kind, "sequential")
            condition = region.title if kind == "conditional" else ""
            for entry in region.entry:
                if entry in nodes:
                    yield Edge(node.id, entry, kind, condition=condition, place=node.place, inner=True)
            for end in ends.get(region.id, ()) if node.kind == "loop" else ():
                yield Edge(end.id, node.id, "loop_back", place=end.place, inner=True)
