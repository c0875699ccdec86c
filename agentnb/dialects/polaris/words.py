"""words: what a polaris graph is made of: its six sorts of nodes, and its edges. Data only, and free to be changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from agentnb.dialects.polaris.systems import System

EdgeSort = Literal["sequential", "conditional", "parallel", "loop_back", "error", "timeout"]


@dataclass(slots=True)
class SystemNode:
    """One function. `timeout` is in seconds; `attempts` are all of them, with `backoff` seconds between two."""

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
    """Two branches and the predicate that chooses.

    A branch is the id of its first node; `left_out` are those that were left out on purpose, and so are no mistake.
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
    """Cases by key, in their order, and perhaps a default; each is the id of its first node."""

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
    """A body, by the id of its first node, and what ends it: a predicate (`termination`), a number of rounds, or both.

    With a predicate, `max_iterations` is a limit that it is a failure to come to; alone, it is how often the body runs.
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


GraphNode = SystemNode | DecisionNode | SwitchNode | ParallelNode | LoopNode | JoinNode


@dataclass(slots=True)
class GraphEdge:
    """A way from one node to another.

    The builder makes those of sort `sequential`, `error` and `timeout`. With `resume` the run goes on after the failed
    node when the handler has ended, at its node `last`.
    """

    id: str
    sort: EdgeSort
    source: str
    target: str
    resume: bool = False
    last: str | None = None


def children(node: GraphNode) -> list[tuple[str, str]]:
    """Return the subgraphs of a node: (what each is called, the id of its first node)."""
    match node:
        case DecisionNode():
            both = (("true", node.true_branch), ("false", node.false_branch))
            return [(label, branch) for label, branch in both if branch is not None]
        case SwitchNode():
            cases = [(f"case {key!r}", branch) for key, branch in node.cases]
            return cases if node.default is None else [*cases, ("default", node.default)]
        case ParallelNode():
            return [(f"branch {number}", branch) for number, branch in enumerate(node.branches, 1)]
        case LoopNode():
            return [] if node.body_entry is None else [("body", node.body_entry)]
    return []
