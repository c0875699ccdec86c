"""model: what an agent is, as data. A Recipe is nodes and edges, frozen, and each part knows its place."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from agentnb.errors import Place, Problem

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
Routing = Literal["first", "all"]
Path = tuple[str | int, ...]
ROOT = "root"


class Condition(Protocol):
    """What an edge or a breakpoint asks of the board: a callable that can be shown and says what it reads."""

    text: str
    reads: tuple[Path, ...]

    def __call__(self, board: Mapping[str, Any], /) -> Any:
        """Return the condition's value; its truth decides."""


class Reactive(Protocol):
    """How events set nodes off, where more than their type decides it. A turn is (node id, about), see `ActRow.about`.

    It keeps nothing of a run: all that it says follows from the run's board and events.
    """

    def waits(self, event: Any) -> bool:
        """Say whether an event has a turn of its own in the queue; else it sets nobody off."""
        ...

    def at_once(self, run: Any, event: Any) -> Sequence[str] | None:
        """Return the nodes that an event will set off; None where that depends on what comes before its turn."""
        ...

    def turns(self, run: Any, event: Any) -> Sequence[tuple[str, int]]:
        """Return the turns that an event sets off, now that its own turn has come."""
        ...

    def late(self, run: Any, event: Any) -> Sequence[tuple[str, int, int]]:
        """Return what was put off until the turn of an event is over: node id, about, number of its own event."""
        ...

    def listens(self, node: str, event: Any) -> bool:
        """Say whether a node listens to events of this type at all."""
        ...

    def refusals(self, run: Any, node: str, event: Any) -> Iterable[str]:
        """Return what keeps a node from being set off by an event, each clause in words."""
        ...

    def projected(self, run: Any, event: Any) -> Sequence[tuple[Path, Any]]:
        """Return what an event from outside writes on the board: path, value."""
        ...

    def edited(self, key: str, value: Any) -> None:
        """Raise where a person would leave a value on the board that nothing here can read."""
        ...


class Leave(NamedTuple):
    """What lies on a run's board and waits for a person's leave: asked for by a node, or by somebody else (`node`).

    `free` are the arguments that a person may change before it is decided.
    """

    id: str
    node: str
    name: str
    arguments: Mapping[str, Any]
    free: tuple[str, ...] = ()


class Approvals(Protocol):
    """What waits for a person's leave while no node waits for it: the run goes on beside it.

    It keeps nothing of a run: all that waits follows from the run's board and events, and a decision is an event.
    """

    def waiting(self, run: Any) -> Sequence[Leave]:
        """Return what waits where the run stands, in the order in which it was asked for."""
        ...

    def decide(self, session: Any, leave: Leave, verdict: Mapping[str, Any]) -> None:
        """Do what was asked for, or refuse it: the verdict is `approved`, `by` whom, and the `reason`."""
        ...

    def change(self, session: Any, leave: Leave, arguments: Mapping[str, Any]) -> None:
        """Put other arguments in place of those that leave was asked for."""
        ...


@dataclass(frozen=True, slots=True)
class Rescue:
    """How a run goes on after a node has failed for good, besides its error edges.

    `writes` are put on the board in the failed step; `route` are the targets, None for the node's ordinary edges.
    """

    writes: Mapping[str, Any] = field(default_factory=dict)
    route: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Requirement:
    """What must hold of the blackboard before the first step, and what is said when it does not.

    One that is not `required` is told as a warning, and the run begins all the same.
    """

    holds: Callable[[Mapping[str, Any]], bool]
    message: str
    required: bool = True
    place: Place | None = None


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool that a recipe names: where it comes from (`impl`), and what sort of thing it is.

    `config` goes beside the arguments of each call; `timeout`, in seconds, is told to a tool that takes one. How often
    it is tried, the nodes that call it say.
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
    """A trial of a recipe: what goes in, what should come out, and how the two are compared (`compare`).

    `expected` maps board keys to values; None asks only that the run ends well.
    """

    id: str
    inputs: Mapping[str, Any]
    expected: Mapping[str, Any] | None = None
    compare: str = "exact_match"
    about: str = ""
    place: Place | None = None


@dataclass(frozen=True, slots=True)
class Node:
    """One node: its kind says what it does, `params` hold what the kind needs for it.

    `inputs` maps an argument's name to a path on the board; None means that a callable is given the board itself.
    `reads` and `writes` are the declared keys (dotted text), for the drawing and for checks.
    `scope` is the region that the node stands in; `bodies` are the regions inside it (a composite node has some).
    `counted` says whether a step of it counts towards max_steps. `on` are the event types that it listens to.
    `rescue` says how the run goes on when it fails; None leaves that to its error edges.
    """

    id: str
    kind: str
    label: str = ""
    scope: str = ROOT
    inputs: Mapping[str, Path] | None = None
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    params: Mapping[str, Any] = field(default_factory=dict)
    bodies: tuple[str, ...] = ()
    on: tuple[str, ...] = ()
    counted: bool = True
    rescue: Rescue | None = None
    place: Place | None = None


@dataclass(frozen=True, slots=True)
class Edge:
    """A way from one node to another.

    Edges of kind `error` and `timeout` are taken on that failure only, `route` when the source node chooses them,
    all others when `when` holds (none: always). `condition` is the text of `when`, for people.
    """

    source: str
    target: str
    kind: EdgeKind = "sequential"
    when: Condition | None = None
    condition: str = ""
    place: Place | None = None


@dataclass(frozen=True, slots=True)
class Region:
    """A part that runs in a frame of its own: a loop's body, a branch, a subgraph. `root` is the whole.

    `isolated` says that what is inside sees a blackboard of its own, and nothing of the one around it.
    """

    id: str
    entry: tuple[str, ...]
    title: str = ""
    owner: str = ""
    isolated: bool = False


@dataclass(frozen=True)
class Recipe:
    """An agent as the engine runs it, whatever dialect it was written in.

    `routing` says which of a node's ordinary edges are taken: the `first` whose condition holds, or `all` of them.
    `tools` are what its nodes call, loaded when a session starts. `begin` makes the first board from the inputs; None
    puts them over `init`. `finish` is called once, with inputs and board, when a run has come to its end.
    `timeouts` says what a time-out takes: edges of kind `timeout` only ("own"), or where a node has none of them those
    of kind `error` ("error"). `limits` are the recipe's own budget (`max_steps`, ...).
    `reactive` says which nodes an event sets off; None leaves that to the types that they listen to. `approvals` knows
    what waits on the board for a person's leave; None where only nodes ask for it.
    `requires` must hold before the first step; `scenarios` are the recipe's own tests.
    `notes` are the warnings found while loading; `check()` gives them with every problem of the whole.
    """

    name: str
    dialect: str
    nodes: Mapping[str, Node]
    edges: tuple[Edge, ...]
    entry: tuple[str, ...]
    inputs: Mapping[str, Any] = field(default_factory=dict)
    outputs: tuple[str, ...] = ()
    regions: Mapping[str, Region] = field(default_factory=dict)
    tools: Mapping[str, ToolSpec] = field(default_factory=dict)
    begin: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None
    finish: Callable[[Mapping[str, Any], Mapping[str, Any]], None] | None = None
    routing: Routing = "first"
    timeouts: Literal["own", "error"] = "own"
    init: Mapping[str, Any] = field(default_factory=dict)
    limits: Mapping[str, Any] = field(default_factory=dict)
    reactive: Reactive | None = None
    approvals: Approvals | None = None
    requires: tuple[Requirement, ...] = ()
    scenarios: tuple[Scenario, ...] = ()
    meta: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[Problem, ...] = ()
    text: str | None = None
    file: str | None = None

    @cached_property
    def graph(self) -> nx.MultiDiGraph[str]:
        """The recipe as networkx sees it: a MultiDiGraph of its own, changing it does not change the recipe."""
        from agentnb.recipe.graph import to_graph

        return to_graph(self)

    def check(self) -> list[Problem]:
        """Return every problem of this recipe, errors first; nothing of it runs."""
        from agentnb.recipe.checks import check_recipe

        return check_recipe(self)

    @cached_property
    def fingerprint(self) -> str:
        """The SHA-256 of what decides how this recipe runs: nodes, edges, limits and the code of its functions."""
        parts = [
            [[node.id, node.kind, node.scope, *map(plain, (node.inputs, node.params, node.bodies, node.on)),
              node.rescue and [plain(node.rescue.writes), node.rescue.route]] for node in self.nodes.values()],
            [[edge.source, edge.target, edge.kind, edge.condition, plain(edge.when)] for edge in self.edges],
            [[region.id, region.entry, region.owner] for region in self.regions.values()],
            [self.name, self.dialect, self.entry, self.routing, self.timeouts, plain(self.init), plain(self.limits)],
        ]  # fmt: skip
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def draw(self, board: bool = True, direction: str = "TB", collapsed: Collection[str] = ()) -> Any:
        """Return the Drawing of this recipe; `board` puts the blackboard's table beside it.

        Args:
            direction: which way it grows: TB, LR, BT or RL.
            collapsed: regions, by id, that are drawn as one box each, which sums up what is inside.

        Raises:
            AgentNbError: U205, there is no such direction; U206, there is no such region.
        """
        from agentnb.draw.dot import draw_recipe

        return draw_recipe(self, board=board, direction=direction, collapsed=collapsed)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        bundle: dict[str, Any] = self.draw()._repr_mimebundle_(include, exclude)
        return bundle | {"text/plain": repr(self)}

    def __repr__(self) -> str:
        """Return one line: name, dialect and size."""
        return f"<Recipe {self.name!r} ({self.dialect}): {len(self.nodes)} nodes, {len(self.edges)} edges>"


def frozen(mapping: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a copy of a mapping that cannot be changed; what is in it is not copied."""
    return MappingProxyType(dict(mapping))


def plain(value: Any) -> Any:
    """Return `value` as JSON, as the fingerprint takes it: a callable becomes its name and a digest of its code."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case Mapping():
            return {str(key): plain(item) for key, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return [plain(item) for item in value]
    if hasattr(value, "source") and hasattr(value, "reads"):  # a condition is what it was written as
        return [value.text, plain(value.source)]
    return _code_of(value) if callable(value) else f"{type(value).__qualname__}:{value!r}"


def _code_of(function: Callable[..., Any]) -> str:
    code = getattr(function, "__code__", None)
    name = f"{getattr(function, '__module__', '')}:{getattr(function, '__qualname__', type(function).__qualname__)}"
    if code is None:
        return name
    constants = [item for item in code.co_consts if not hasattr(item, "co_code")]
    return f"{name}:{hashlib.sha256(code.co_code + repr(constants).encode()).hexdigest()[:16]}"
