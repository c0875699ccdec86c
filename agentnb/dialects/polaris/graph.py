"""graph: the builder. Each add method links a new node to the last one, and returns the graph."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from math import inf
from typing import TYPE_CHECKING, Any, Self

from agentnb.dialects.polaris.systems import as_system, is_system
from agentnb.dialects.polaris.words import (
    DecisionNode,
    EdgeSort,
    GraphEdge,
    GraphNode,
    JoinNode,
    LoopNode,
    ParallelNode,
    SwitchNode,
    SystemNode,
)
from agentnb.errors import Problem, RecipeError, did_you_mean
from agentnb.recipe.grafts import agent_in, grafted

if TYPE_CHECKING:
    from agentnb.dialects.polaris.validate import ValidationResult
    from agentnb.draw.drawing import Drawing

Builder = Callable[..., Any]  # of a Graph; or a marked system


class Graph:
    """A graph of systems and control flow, built by chaining.

    The first node that is added is the entry. What follows a control node follows the whole of it: a branch that ends
    goes back to it. Builders are callables that take a Graph and add to it; a system stands for one that adds only it.
    Node ids are the names of functions and control nodes, with `_2`, `_3` ... where a name comes again.

    Example:
        >>> graph = Graph("greeting")
        >>> def greet() -> str:
        ...     return "hello"
        >>> graph.add_system(greet).validate().ok
        True
    """

    def __init__(self, name: str = "graph") -> None:
        self.name = name
        self.nodes: list[GraphNode] = []
        self.edges: list[GraphEdge] = []
        self.entry: str | None = None
        self.last_node: str | None = None
        self.given_types: list[Any] = []
        self._ids: set[str] = set()

    # -- what there is ---------------------------------------------------------------------------------------------

    @property
    def node_count(self) -> int:
        """How many nodes there are, those of branches and handlers included."""
        return len(self.nodes)

    @property
    def edge_count(self) -> int:
        """How many edges there are."""
        return len(self.edges)

    @property
    def is_empty(self) -> bool:
        """Whether nothing has been added."""
        return not self.nodes

    def get_node(self, id: str) -> GraphNode | None:
        """Return the node with this id; None where there is none."""
        return next((node for node in self.nodes if node.id == id), None)

    def get_edge(self, id: str) -> GraphEdge | None:
        """Return the edge with this id; None where there is none."""
        return next((edge for edge in self.edges if edge.id == id), None)

    def __repr__(self) -> str:
        return f"<Graph {self.name!r}: {self.node_count} nodes, {self.edge_count} edges>"

    # -- adding ----------------------------------------------------------------------------------------------------

    def given(self, *types: Any) -> Self:
        """Say that outputs of these types are there before the first node runs: a run begins with them."""
        self.given_types += types
        return self

    def add_system(self, function: Callable[..., Any]) -> Self:
        """Add a system, and lead there from the last node. An agent (`AgentExecutor`) is one too: a node to step into.

        Raises:
            RecipeError: R199, the function cannot be called as a system.
        """
        self._add_system(function, sys._getframe(1).f_locals)  # noqa: SLF001  (names of types that are local there)
        return self

    def add_system_node(self, function: Callable[..., Any]) -> str:
        """Add a system like `add_system`, and return its node's id."""
        return self._add_system(function, sys._getframe(1).f_locals)  # noqa: SLF001  (as above)

    def _add_system(self, function: Callable[..., Any], names: Mapping[str, Any]) -> str:
        found = as_system(function, names)
        return self._add(SystemNode(self._id(found.name), found))

    def add_conditional_branch(
        self,
        name: str,
        output_type: Any,
        predicate: Callable[[Any], Any],
        when_true: Builder | None,
        when_false: Builder | None = None,
    ) -> Self:
        """Add a decision: `predicate`, of the last output of a type, chooses between two branches.

        Where `when_false` is left out, a run goes on behind the decision; a builder that adds nothing leaves the branch
        missing, which `validate` tells.
        """
        node = DecisionNode(self._id(name), name, output_type, predicate)
        self._place(node)
        node.true_branch = self._inside(when_true)
        node.false_branch = self._inside(when_false)
        node.left_out = frozenset(
            label for label, builder in (("true", when_true), ("false", when_false)) if builder is None
        )
        return self

    def add_switch(
        self,
        name: str,
        output_type: Any,
        discriminator: Callable[[Any], Any],
        cases: Mapping[Any, Builder] | Iterable[tuple[Any, Builder]],
        default: Builder | None = None,
    ) -> Self:
        """Add a switch: `discriminator`, of the last output of a type, gives a key; its case runs, else the default."""
        where, why = f"switch {name!r}", "its cases are a mapping from key to builder, or a list of such pairs"
        pairs = _listed(cases.items() if isinstance(cases, Mapping) else cases, where, why)
        _check(all(isinstance(pair, tuple | list) and len(pair) == 2 for pair in pairs), f"{cases!r}", where, why)
        node = SwitchNode(self._id(name), name, output_type, discriminator)
        self._place(node)
        for key, builder in pairs:
            if (branch := self._inside(builder)) is not None:
                node.cases.append((key, branch))
        node.default = self._inside(default)
        return self

    def add_parallel(self, name: str, branches: Iterable[Builder]) -> Self:
        """Add branches that run at the same time, and the join where they meet; what comes next follows the join."""
        listed = _listed(branches, f"parallel {name!r}", "its branches are a list of builders")
        node = ParallelNode(self._id(name), name)
        self._place(node)
        node.branches = [entry for builder in listed if (entry := self._inside(builder)) is not None]
        join = JoinNode(self._id(f"{node.id}_join"), sources=list(node.branches))
        node.join = self.last_node = join.id
        self.nodes.append(join)
        return self

    def add_loop(
        self,
        name: str,
        output_type: Any,
        predicate: Callable[[Any], Any],
        body: Builder,
        max_iterations: int | None = None,
    ) -> Self:
        """Add a loop that ends when `predicate`, of the last output of a type, is true; it is asked before each round.

        To come to `max_iterations` (the executor's, 1,000, where it is left out) without an end is a failure.
        """
        node = LoopNode(self._id(name), name, output_type, predicate, _rounds(name, max_iterations))
        self._place(node)
        node.body_entry = self._inside(body)
        return self

    def add_loop_n(self, name: str, count: int, body: Builder) -> Self:
        """Add a loop whose body runs `count` times."""
        node = LoopNode(self._id(name), name, max_iterations=_rounds(name, count))
        self._place(node)
        node.body_entry = self._inside(body)
        return self

    # -- what a system's failure leads to ------------------------------------------------------------------------------

    def add_error_handler(self, node_id: str, handler: Builder, resume: bool = False) -> Self:
        """Add what runs when a system has failed; the first handler of a system is the one that counts.

        Behind it that level ends, or, with `resume`, the run goes on after the failed system.
        """
        return self._handled("error", node_id, handler, resume)

    def add_timeout_handler(self, node_id: str, handler: Builder, resume: bool = False) -> Self:
        """Add what runs when a system has taken longer than its time-out; like `add_error_handler`."""
        return self._handled("timeout", node_id, handler, resume)

    def set_timeout(self, node_id: str, timeout: float | timedelta) -> Self:
        """Give a system so many seconds (or a timedelta) for each attempt.

        Raises:
            RecipeError: R144, there is no such system; R145, it is no time, or the system is an agent.
        """
        seconds = timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
        fits = _is_number(seconds) and 0 < seconds < inf
        _check(fits, f"{timeout!r} is no time-out", "set_timeout", "it is a number of seconds above 0, or a timedelta")
        node = self._system(node_id, "set_timeout")
        why = "it is many steps, each with a time of its own: AgentConfig(timeout=...) sets that of its model"
        _check(agent_in(node.system.function) is None, f"{node_id!r} is an agent", "set_timeout", why)
        node.timeout = float(seconds)
        return self

    def set_retry(self, node_id: str, attempts: int, backoff_seconds: float = 0) -> Self:
        """Let a system be tried so often in all, with a pause between two attempts; failures and time-outs count."""
        whole = isinstance(attempts, int) and not isinstance(attempts, bool) and attempts >= 1
        _check(whole, f"{attempts!r} attempts", "set_retry", "1 or more are made")
        fits = _is_number(backoff_seconds) and 0 <= backoff_seconds < inf
        _check(fits, f"a pause of {backoff_seconds!r} s", "set_retry", "a pause is 0 seconds or more")
        node = self._system(node_id, "set_retry")
        node.attempts, node.backoff = attempts, float(backoff_seconds)
        return self

    # -- what it comes to ------------------------------------------------------------------------------------------

    def validate(self) -> ValidationResult:
        """Return every error and warning of this graph; nothing of it runs."""
        from agentnb.dialects.polaris.validate import validate

        return validate(self)

    def draw(self, board: bool = True, direction: str = "TB") -> Drawing:
        """Return this graph's drawing, whatever `validate` says of it."""
        from agentnb.dialects.polaris.loader import recipe_of_graph

        drawing: Drawing = grafted(recipe_of_graph(self), {}).draw(board=board, direction=direction)
        return drawing

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        bundle: dict[str, Any] = self.draw()._repr_mimebundle_(include, exclude)
        return bundle | {"text/plain": repr(self)}

    # -- within ----------------------------------------------------------------------------------------------------

    def _id(self, name: str) -> str:
        """Return a node id that is made of a name, and stands nowhere else."""
        id, number = name, 2
        while id in self._ids or id == "root":
            id, number = f"{name}_{number}", number + 1
        self._ids.add(id)
        return id

    def _add(self, node: GraphNode) -> str:
        if self.last_node is not None:
            self._link("sequential", self.last_node, node.id)
        if self.entry is None:
            self.entry = node.id
        self.last_node = node.id
        self.nodes.append(node)
        return node.id

    _place = _add

    def _link(self, sort: EdgeSort, source: str, target: str) -> GraphEdge:
        edge = GraphEdge(f"{source} -> {target} ({sort})", sort, source, target)
        self.edges.append(edge)
        return edge

    def _built(self, builder: Builder | None) -> Graph:
        """Return what a builder adds, as a graph of its own; nodes and edges come over to this one."""
        inner = Graph(self.name)
        inner._ids = self._ids
        if builder is not None:
            _check(callable(builder), f"{builder!r} builds nothing", "a branch, a body or a handler",
                   "a builder is a callable that takes a Graph: lambda g: g.add_system(...)")  # fmt: skip
            if is_system(builder):
                inner._add_system(builder, {})
            else:
                builder(inner)
        self.nodes += inner.nodes
        self.edges += inner.edges
        self.given_types += inner.given_types
        return inner

    def _inside(self, builder: Builder | None) -> str | None:
        return self._built(builder).entry

    def _handled(self, sort: EdgeSort, node_id: str, handler: Builder, resume: bool) -> Self:
        self._system(node_id, f"add_{sort}_handler")
        inner = self._built(handler)
        if inner.entry is not None:
            edge = self._link(sort, node_id, inner.entry)
            edge.resume, edge.last = resume, inner.last_node
        return self

    def _system(self, node_id: str, verb: str) -> SystemNode:
        """Return the system with an id.

        R144: what is said of a system of a graph names a node that is none.

        Raises:
            RecipeError: R144, there is none.
        """
        node = self.get_node(node_id)
        if not isinstance(node, SystemNode):
            systems = [each.id for each in self.nodes if isinstance(each, SystemNode)]
            what = f"there is no node {node_id!r}" if node is None else f"node {node_id!r} is no system"
            raise RecipeError(
                Problem("R144", what, f"graph {self.name!r}, {verb}({node_id!r})",
                        f"{verb} is about one system; those of this graph are: {', '.join(systems) or 'none'}",
                        did_you_mean(str(node_id), systems, "name one of them: add_system_node returns its id"))
            )  # fmt: skip
        return node


def _rounds(name: str, count: int | None) -> int | None:
    whole = count is None or (isinstance(count, int) and not isinstance(count, bool) and count >= 0)
    _check(whole, f"{count!r} rounds", f"loop {name!r}", "a loop runs a whole number of times, 0 or more")
    return count


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _listed(given: Any, where: str, why: str) -> list[Any]:
    """Return what a builder was given several of."""
    _check(isinstance(given, Iterable) and not isinstance(given, str), f"{given!r} is no list", where, why)
    return list(given)


def _check(holds: bool, what: str, where: str, why: str) -> None:
    """Raise where what a builder was given cannot be meant.

    R145: a builder of a graph was given what it cannot take.

    Raises:
        RecipeError: R145, it does not hold.
    """
    if not holds:
        raise RecipeError(Problem("R145", what, where, why, "mend this call"))
