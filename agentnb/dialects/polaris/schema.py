"""The parts of a polaris graph: six kinds of nodes, and edges. Mutable data only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

from agentnb.dialects.polaris.parts.systems import System
from agentnb.text import safe_repr

GraphEdgeKind = Literal["sequential", "conditional", "parallel", "loop_back", "error", "timeout"]


@dataclass(slots=True)
class SystemNode:
    """One function.

    `timeout` is in seconds; `attempts` is the total number, with `backoff` seconds between two attempts.
    """

    id: str
    system: System
    timeout: float | None = None
    attempts: int = 1
    backoff: float = 0.0

    @property
    def name(self) -> str:
        """The function's name."""
        return self.system.name


@dataclass(slots=True)
class DecisionNode:
    """Two branches and the predicate that chooses between them.

    A branch is the id of its first node; `left_out` are branches that were omitted intentionally, which is not an
    error.
    """

    id: str
    name: str
    output_type: Any
    predicate: Callable[[Any], Any] | None = None
    true_branch: str | None = None
    false_branch: str | None = None
    left_out: frozenset[str] = frozenset()


@dataclass(slots=True)
class SwitchNode:
    """Cases by key, in order, and optionally a default; each is the id of its first node."""

    id: str
    name: str
    output_type: Any
    discriminator: Callable[[Any], Any] | None = None
    cases: list[tuple[Any, str]] = field(default_factory=list)
    default: str | None = None


@dataclass(slots=True)
class ParallelNode:
    """Branches that run at the same time, by the ids of their first nodes, and the join where they meet."""

    id: str
    name: str
    branches: list[str] = field(default_factory=list)
    join: str | None = None


@dataclass(slots=True)
class LoopNode:
    """A body, by the id of its first node, and its end: a predicate (`termination`), a number of iterations, or both.

    With a predicate, reaching `max_iterations` is a failure; without one, it is the number of iterations.
    """

    id: str
    name: str
    output_type: Any = None
    termination: Callable[[Any], Any] | None = None
    max_iterations: int | None = None
    body_entry: str | None = None


@dataclass(slots=True)
class JoinNode:
    """Where the branches of a parallel node meet; `sources` are their first nodes."""

    id: str
    name: str = "join"
    sources: list[str] = field(default_factory=list)


Node = SystemNode | DecisionNode | SwitchNode | ParallelNode | LoopNode | JoinNode


@dataclass(slots=True)
class GraphEdge:
    """An edge between two nodes; `kind` is one of the six kinds.

    A run follows edges of kind `sequential`, `error` and `timeout`. The others show fields of their nodes: the start of
    the branches of a decision, a switch or a parallel node, and the return from the end of a loop's body.
    """

    id: str
    source: str
    target: str
    kind: ClassVar[GraphEdgeKind]


@dataclass(slots=True)
class SequentialEdge(GraphEdge):
    """From a node to the one that follows it."""

    kind = "sequential"


@dataclass(slots=True)
class ConditionalEdge(GraphEdge):
    """From a decision or a switch to the first node of a branch; `case` is the value that selects it."""

    kind = "conditional"
    case: str = ""


@dataclass(slots=True)
class ParallelEdge(GraphEdge):
    """From a parallel node to the first node of a branch."""

    kind = "parallel"


@dataclass(slots=True)
class LoopBackEdge(GraphEdge):
    """From the end of a loop's body to the loop."""

    kind = "loop_back"


@dataclass(slots=True)
class HandlerEdge(GraphEdge):
    """From a system to the first node of a handler.

    With `resume`, the run continues after the failed node when the handler has ended at its node `last`.
    """

    resume: bool = False
    last: str | None = None


@dataclass(slots=True)
class ErrorEdge(HandlerEdge):
    """An edge to a handler, followed if the system has failed."""

    kind = "error"


@dataclass(slots=True)
class TimeoutEdge(HandlerEdge):
    """An edge to a handler, followed if the system has exceeded its timeout."""

    kind = "timeout"


Edge = GraphEdge


def rename(nodes: Iterable[Node], edges: Iterable[Edge], ids: Mapping[str, str]) -> tuple[list[Node], list[Edge]]:
    """Return copies of nodes and edges with other ids; ids that are not in `ids` stay the same."""

    def new(id: str | None) -> Any:
        return None if id is None else ids.get(id, id)

    renamed: list[Node] = []
    for node in nodes:
        match node:
            case DecisionNode():
                rest = {"true_branch": new(node.true_branch), "false_branch": new(node.false_branch)}
            case SwitchNode():
                rest = {"cases": [(key, new(branch)) for key, branch in node.cases], "default": new(node.default)}
            case ParallelNode():
                rest = {"branches": [*map(new, node.branches)], "join": new(node.join)}
            case LoopNode():
                rest = {"body_entry": new(node.body_entry)}
            case JoinNode():
                rest = {"sources": [*map(new, node.sources)]}
            case _:
                rest = {}
        renamed.append(replace(node, id=new(node.id), **rest))
    links: list[Edge] = []
    for edge in edges:
        rest = {"last": new(edge.last)} if isinstance(edge, HandlerEdge) else {}
        source, target = new(edge.source), new(edge.target)
        links.append(replace(edge, id=f"{source} -> {target} ({edge.kind})", source=source, target=target, **rest))
    return renamed, links


def list_children(node: Node) -> list[tuple[str, str]]:
    """Return the subgraphs of a node: (name, id of its first node)."""
    match node:
        case DecisionNode():
            both = (("true", node.true_branch), ("false", node.false_branch))
            return [(label, branch) for label, branch in both if branch is not None]
        case SwitchNode():
            cases = [(f"case {safe_repr(key)}", branch) for key, branch in node.cases]
            return cases if node.default is None else [*cases, ("default", node.default)]
        case ParallelNode():
            return [(f"branch {number}", branch) for number, branch in enumerate(node.branches, 1)]
        case LoopNode():
            return [] if node.body_entry is None else [("body", node.body_entry)]
    return []
