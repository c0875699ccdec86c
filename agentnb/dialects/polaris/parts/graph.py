"""The fluent builder of graphs. Each `add_...` method links a new node to the previous one and returns the graph."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from math import inf
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar, Union

from agentnb.dialects.polaris.parts.systems import is_system, name_of, read_system, to_system
from agentnb.dialects.polaris.schema import (
    ConditionalEdge,
    DecisionNode,
    Edge,
    ErrorEdge,
    GraphEdge,
    HandlerEdge,
    JoinNode,
    LoopBackEdge,
    LoopNode,
    Node,
    ParallelEdge,
    ParallelNode,
    SequentialEdge,
    SwitchNode,
    SystemNode,
    TimeoutEdge,
    rename,
)
from agentnb.errors import Problem, RecipeError, did_you_mean, with_article
from agentnb.recipe.agent_expansion import find_agent, graft_agents
from agentnb.recipe.user_functions import GENERATES, find_unrun, is_async, is_generator
from agentnb.text import safe_repr

if TYPE_CHECKING:
    from agentnb.dialects.polaris.parts.validation import ValidationResult
    from agentnb.draw.drawing import Drawing

Builder = Union["Graph", Callable[..., Any]]  # a callable of a Graph, a system, or a ready-made Graph
E = TypeVar("E", bound=GraphEdge)
MOST_NESTED: Final = 160  # limit of nested builders: one that calls itself endlessly would exhaust Python's stack


class Graph:
    """A graph of systems and control flow, built by chaining.

    The first node added is the entry. A node added after a control node follows all of its branches: each branch that
    ends returns to the control node. Builders are callables that take a Graph and add nodes to it; a system can be
    passed instead of a builder that adds only this system, and a ready-made Graph instead of one that adds a copy of
    its nodes. Node ids are the names of functions and control nodes, with `_2`, `_3` ... for repeated names.

    Example:
        >>> graph = Graph("greeting")
        >>> def greet() -> str:
        ...     return "hello"
        >>> graph.add_system(greet).validate().ok
        True
    """

    def __init__(self, name: str = "graph") -> None:
        self.name = name
        self.nodes: list[Node] = []
        self.edges: list[Edge] = []
        self.entry: str | None = None
        self.last_node: str | None = None
        self.given_types: list[Any] = []
        self._ids: dict[str, int] = {}  # the ids in use, each with the first number that may be free after it
        self._within: tuple[Graph, ...] = ()  # the graphs whose builders are currently running on this one

    # -- contents --------------------------------------------------------------------------------------------------

    @property
    def node_count(self) -> int:
        """The number of nodes, including those of branches and handlers."""
        return len(self.nodes)

    @property
    def edge_count(self) -> int:
        """The number of edges."""
        return len(self.edges)

    @property
    def is_empty(self) -> bool:
        """True if the graph has no nodes."""
        return not self.nodes

    def get_node(self, id: str) -> Node | None:
        """Return the node with this id; None if there is none."""
        return next((node for node in self.nodes if node.id == id), None)

    def get_edge(self, id: str) -> Edge | None:
        """Return the edge with this id; None if there is none."""
        return next((edge for edge in self.edges if edge.id == id), None)

    def __repr__(self) -> str:
        return f"<Graph {safe_repr(self.name, 200)}: {self.node_count} nodes, {self.edge_count} edges>"

    # -- adding ----------------------------------------------------------------------------------------------------

    def given(self, *types: Any) -> Self:
        """Declare the types of outputs with which the run starts: they are available before the first node."""
        self.given_types += types
        return self

    def add_system(self, function: Callable[..., Any]) -> Self:
        """Add a system and an edge to it from the last node.

        An agent (`AgentExecutor`) is also a system: a node to step into.

        Raises:
            RecipeError: R199, the function cannot be called as a system.
        """
        self._add_system(function, sys._getframe(1).f_locals)  # noqa: SLF001  (names of types that are local there)
        return self

    def add_system_node(self, function: Callable[..., Any]) -> str:
        """Add a system like `add_system`, and return its node's id."""
        return self._add_system(function, sys._getframe(1).f_locals)  # noqa: SLF001  (as above)

    def _add_system(self, function: Callable[..., Any], names: Mapping[str, Any]) -> str:
        system = to_system(function, names)
        return self._add(SystemNode(self._make_id(system.name), system))

    def add_conditional_branch(
        self,
        name: str,
        output_type: Any,
        predicate: Callable[[Any], Any],
        when_true: Builder | None,
        when_false: Builder | None = None,
    ) -> Self:
        """Add a decision: `predicate`, applied to the last output of a type, chooses one of two branches.

        Without `when_false`, the run continues after the decision. If a builder adds nothing, the branch is missing,
        which `validate` reports.
        """
        _check_question(predicate, f"decision {name!r}", "predicate")
        node = DecisionNode(self._make_id(name), name, output_type, predicate)
        self._add(node)
        node.true_branch = self._add_branch(node.id, when_true, "true")
        node.false_branch = self._add_branch(node.id, when_false, "false")
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
        """Add a switch: `discriminator`, applied to the last output of a type, returns the key of the case to run.

        If there is no such case, the default runs.
        """
        where, why = f"switch {name!r}", "its cases are a mapping from key to builder, or a list of such pairs"
        pairs = _to_list(cases.items() if isinstance(cases, Mapping) else cases, where, why)
        _check(all(isinstance(pair, tuple | list) and len(pair) == 2 for pair in pairs), f"{cases!r}", where, why)
        _check_question(discriminator, f"switch {name!r}", "discriminator")
        node = SwitchNode(self._make_id(name), name, output_type, discriminator)
        self._add(node)
        for key, builder in pairs:
            if (branch := self._add_branch(node.id, builder, f"case {safe_repr(key)}")) is not None:
                node.cases.append((key, branch))
        node.default = self._add_branch(node.id, default, "default")
        return self

    def add_parallel(self, name: str, branches: Iterable[Builder]) -> Self:
        """Add branches that run in parallel and the join where they meet; the next node follows the join."""
        listed = _to_list(branches, f"parallel {name!r}", "its branches are a list of builders")
        node = ParallelNode(self._make_id(name), name)
        self._add(node)
        node.branches = [entry for builder in listed if (entry := self._build(builder).entry) is not None]
        for entry in node.branches:
            self._add_link(ParallelEdge, node.id, entry)
        join = JoinNode(self._make_id(f"{node.id}_join"), sources=list(node.branches))
        node.join = self.last_node = join.id
        self.nodes.append(join)
        self._add_link(SequentialEdge, node.id, join.id)
        return self

    def add_loop(
        self,
        name: str,
        output_type: Any,
        predicate: Callable[[Any], Any],
        body: Builder,
        max_iterations: int | None = None,
    ) -> Self:
        """Add a loop that ends when `predicate`, applied to the last output of a type, is true.

        It is checked before each round.

        The loop fails if it reaches `max_iterations` (default: the executor's limit of 1,000) without ending.
        """
        _check_question(predicate, f"loop {name!r}", "predicate")
        node = LoopNode(self._make_id(name), name, output_type, predicate, _check_rounds(name, max_iterations))
        return self._add_loop(node, body)

    def add_loop_n(self, name: str, count: int, body: Builder) -> Self:
        """Add a loop whose body runs `count` times."""
        return self._add_loop(LoopNode(self._make_id(name), name, max_iterations=_check_rounds(name, count)), body)

    def _add_loop(self, node: LoopNode, body: Builder) -> Self:
        self._add(node)
        inner = self._build(body)
        node.body_entry = inner.entry
        if inner.last_node is not None:
            self._add_link(LoopBackEdge, inner.last_node, node.id)
        return self

    # -- error and timeout handlers ------------------------------------------------------------------------------------

    def add_error_handler(self, node_id: str, handler: Builder, resume: bool = False) -> Self:
        """Add a handler that runs when a system has failed; only the first handler of a system is used.

        After the handler its level ends or, with `resume`, the run continues after the failed system.
        """
        return self._add_handler_node(ErrorEdge, node_id, handler, resume)

    def add_timeout_handler(self, node_id: str, handler: Builder, resume: bool = False) -> Self:
        """Add a handler that runs when a system exceeds its timeout; otherwise like `add_error_handler`."""
        return self._add_handler_node(TimeoutEdge, node_id, handler, resume)

    def set_timeout(self, node_id: str, timeout: float | timedelta) -> Self:
        """Set the timeout of each attempt of a system, in seconds or as a timedelta.

        Raises:
            RecipeError: R144, there is no such system; R145, it is not a time, or the system is an agent.
        """
        seconds = timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
        fits = _is_number(seconds) and 0 < seconds < inf
        _check(
            fits,
            f"{timeout!r} is not a timeout",
            "set_timeout",
            "a timeout is a positive number of seconds, or a timedelta",
        )
        node = self._system(node_id, "set_timeout")
        why = "an agent takes many steps, each with its own timeout: AgentConfig(timeout=...) sets that of its model"
        _check(find_agent(node.system.function) is None, f"{node_id!r} is an agent", "set_timeout", why)
        node.timeout = float(seconds)
        return self

    def set_retry(self, node_id: str, attempts: int, backoff_seconds: float = 0) -> Self:
        """Set the total number of attempts of a system and the delay between attempts.

        Failures and timeouts are retried.
        """
        is_valid = isinstance(attempts, int) and not isinstance(attempts, bool) and attempts >= 1
        _check(is_valid, f"{attempts!r} attempts", "set_retry", "at least 1 attempt is required")
        fits = _is_number(backoff_seconds) and 0 <= backoff_seconds < inf
        _check(fits, f"a backoff of {backoff_seconds!r} s", "set_retry", "a backoff is at least 0 seconds")
        node = self._system(node_id, "set_retry")
        node.attempts, node.backoff = attempts, float(backoff_seconds)
        return self

    # -- results ---------------------------------------------------------------------------------------------------

    def validate(self) -> ValidationResult:
        """Return every error and warning of this graph; nothing of it runs."""
        from agentnb.dialects.polaris.parts.validation import validate

        return validate(self)

    def draw(self, board: bool = True, direction: str = "TB") -> Drawing:
        """Return this graph's drawing, even if `validate` finds errors."""
        from agentnb.dialects.polaris.loader import make_recipe

        drawing: Drawing = graft_agents(make_recipe(self), {}).draw(board=board, direction=direction)
        return drawing

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        bundle: dict[str, Any] = self.draw()._repr_mimebundle_(include, exclude)
        return bundle | {"text/plain": repr(self)}

    # -- within ----------------------------------------------------------------------------------------------------

    def _make_id(self, name: str) -> str:
        """Return an unused node id derived from a name."""
        id, number = name, self._ids.get(name, 2)
        while id in self._ids or id == "root":
            id, number = f"{name}_{number}", number + 1
        self._ids[name] = number
        self._ids.setdefault(id, 2)
        return id

    def _add(self, node: Node) -> str:
        if self.last_node is not None:
            self._add_link(SequentialEdge, self.last_node, node.id)
        if self.entry is None:
            self.entry = node.id
        self.last_node = node.id
        self.nodes.append(node)
        return node.id

    def _add_link(self, cls: type[E], source: str, target: str) -> E:
        edge = cls(f"{source} -> {target} ({cls.kind})", source, target)
        self.edges.append(edge)
        return edge

    def _build(self, builder: Builder | None) -> Graph:
        """Return the additions of a builder as a separate graph, whose nodes and edges are merged into this one.

        R149: a graph or a builder contains itself.

        Raises:
            RecipeError: R145, it is not a builder; R149, it contains itself.
        """
        inner = Graph(self.name)
        inner._ids, inner._within = self._ids, (*self._within, self)
        if isinstance(builder, Graph):
            inner._copy(builder)
        elif builder is not None:
            _check(callable(builder), f"{builder!r} is not a builder", _BUILDS, _TAKES_A_GRAPH)
            if is_system(builder):
                inner._add_system(builder, {})
            else:
                _check_builder(builder)
                inner._call(builder)
        self.nodes += inner.nodes
        self.edges += inner.edges
        self.given_types += inner.given_types
        return inner

    def _call(self, builder: Callable[[Graph], Any]) -> None:
        endless = RecipeError(
            Problem("R149", f"builder {name_of(builder)!r} contains itself", f"graph {self.name!r}",
                    f"builders are nested more than {MOST_NESTED} deep: it seems to call itself",
                    "use add_loop to repeat nodes")
        )  # fmt: skip
        if len(self._within) > MOST_NESTED:
            raise endless
        try:
            result = builder(self)
        except RecursionError:  # a builder is user code and may need many calls for each level
            raise endless from None
        _check(find_unrun(result) is None, f"a builder returned {find_unrun(result)}, which has not run",
               _BUILDS, "a builder adds its nodes when it is called")  # fmt: skip
        lost = self.is_empty and result is not None and not isinstance(result, Graph)
        what = f"{name_of(builder)!r} added no node and returned {with_article(type(result).__name__)}"
        _check(not lost, what, _BUILDS, _TAKES_A_GRAPH)

    def _copy(self, other: Graph) -> None:
        """Add copies of the nodes of a ready-made graph; each gets an id that is unused here."""
        if other in self._within:
            raise RecipeError(
                Problem("R149", f"graph {other.name!r} contains itself", f"graph {self.name!r}",
                        "a ready-made graph in a branch or a body adds a copy of its nodes",
                        "build the inner graph first, as a separate Graph, or use add_loop")
            )  # fmt: skip
        ids = {node.id: self._make_id(node.id if isinstance(node, JoinNode) else node.name) for node in other.nodes}
        self.nodes, self.edges = rename(other.nodes, other.edges, ids)
        self.given_types = list(other.given_types)
        self.entry, self.last_node = ids.get(other.entry or ""), ids.get(other.last_node or "")

    def _add_branch(self, source: str, builder: Builder | None, case: str) -> str | None:
        """Return the first node of a branch of a decision or a switch; None if its builder adds nothing."""
        entry = self._build(builder).entry
        if entry is not None:
            self._add_link(ConditionalEdge, source, entry).case = case
        return entry

    def _add_handler_node(self, cls: type[HandlerEdge], node_id: str, handler: Builder, resume: bool) -> Self:
        self._system(node_id, f"add_{cls.kind}_handler")
        inner = self._build(handler)
        if inner.entry is not None:
            edge = self._add_link(cls, node_id, inner.entry)
            edge.resume, edge.last = resume, inner.last_node
        return self

    def _system(self, node_id: str, verb: str) -> SystemNode:
        """Return the system with an id.

        R144: a setting of a system names a node that does not exist.

        Raises:
            RecipeError: R144, there is none.
        """
        node = self.get_node(node_id)
        if not isinstance(node, SystemNode):
            systems = [each.id for each in self.nodes if isinstance(each, SystemNode)]
            what = f"there is no node {node_id!r}" if node is None else f"node {node_id!r} is not a system"
            raise RecipeError(
                Problem("R144", what, f"graph {self.name!r}, {verb}({node_id!r})",
                        f"{verb} takes the id of a system; this graph has: {', '.join(systems) or 'none'}",
                        did_you_mean(str(node_id), systems, "use one of them: add_system_node returns its id"))
            )  # fmt: skip
        return node


_BUILDS: Final = "a branch, a body or a handler"
_TAKES_A_GRAPH: Final = (
    "a builder takes a Graph and adds nodes to it (lambda g: g.add_system(...)); a Graph or a function marked with "
    "@system can be used instead"
)


def _check_builder(function: Callable[..., Any]) -> None:
    """Raise R145 for a function that cannot be called with only a Graph, or is a system without the decorator."""
    try:
        inspect.signature(function).bind(None)
    except TypeError:
        fits = False
    except ValueError:  # it has no signature to inspect
        fits = True
    else:
        try:
            fits = not read_system(function, {}).takes
        except RecipeError:
            fits = True
    _check(fits, f"{name_of(function)!r} is not a builder", _BUILDS, _TAKES_A_GRAPH)


def _check_question(function: Any, where: str, word: str) -> None:
    """Raise R145 for a function that returns nothing when called; `validate` reports a missing function."""
    if function is not None:
        _check(
            callable(function),
            f"its {word} is {with_article(type(function).__name__)}",
            where,
            "it must be a function of an output",
        )
        _check(not is_async(function), f"its {word} is async", where, "it must be a plain function")
        _check(not is_generator(function), f"its {word} is a generator function", where, GENERATES)


def _check_rounds(name: str, count: int | None) -> int | None:
    is_valid = count is None or (isinstance(count, int) and not isinstance(count, bool) and count >= 0)
    _check(is_valid, f"{count!r} rounds", f"loop {name!r}", "the number of rounds is an integer, 0 or more")
    return count


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _to_list(value: Any, where: str, why: str) -> list[Any]:
    """Return a builder's list argument as a list."""
    _check(isinstance(value, Iterable) and not isinstance(value, str), f"{safe_repr(value)} is not a list", where, why)
    return list(value)


def _check(holds: bool, what: str, where: str, why: str) -> None:
    """Raise R145 if an argument of a builder is not valid.

    R145: a builder of a graph has an invalid argument.

    Raises:
        RecipeError: R145, it is not valid.
    """
    if not holds:
        raise RecipeError(Problem("R145", what, where, why, "fix this call"))
