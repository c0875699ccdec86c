"""The entry point of polaris: `await GraphExecutor().execute(graph)`. It runs a Session."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from agentnb.board.values import ABSENT, thaw
from agentnb.dialects.polaris.loader import MAX_ITERATIONS, make_initial_board, make_recipe
from agentnb.dialects.polaris.parts.devtools import DevToolsPlugin
from agentnb.dialects.polaris.parts.graph import Graph
from agentnb.dialects.polaris.parts.systems import SystemContext
from agentnb.dialects.polaris.parts.validation import validate
from agentnb.engine.core.run import MAX_FRAMES
from agentnb.errors import ExecutionError as AgentNbExecutionError
from agentnb.errors import Problem, RecipeError, to_printable, with_article
from agentnb.kinds.typed_values import get_key
from agentnb.session import Session
from agentnb.session.state import get_state

if TYPE_CHECKING:
    from agentnb.session.schedules import HooksAPI
    from agentnb.trace import SimulationTrace

# The code of a Problem -> the kind of the error.
KINDS: Final = {
    "X450": "PredicateError",
    "X454": "PredicateError",
    "X452": "NoMatchingCase",
    "X453": "MissingBranch",
    "X401": "MaxIterationsExceeded",
    "X103": "RecursionLimitExceeded",
}


class ExecutionError(AgentNbExecutionError):
    """A run of a graph has failed.

    `kind` is the reason in one word (SystemError, Timeout, PredicateError, NoMatchingCase, MissingBranch,
    MaxIterationsExceeded, RecursionLimitExceeded, EmptyGraph, and the errors of `validate` that prevent a run),
    `node_id` the node. The cause is the exception of the system; `trace` has the steps so far.
    """

    def __init__(
        self, *problems: Problem | str, kind: str = "", node_id: str | None = None, trace: SimulationTrace | None = None
    ) -> None:
        super().__init__(*problems)
        self.kind, self.node_id, self.trace = kind, node_id, trace


@dataclass(frozen=True, slots=True)
class ExecutionResult:
    """A completed run: how many nodes it started, how many seconds it took, and its trace.

    Control nodes count each time they are entered; joins, handlers and failed systems count as well.
    """

    nodes_executed: int
    duration: float
    session: Session

    @property
    def trace(self) -> SimulationTrace:
        """The trace of the run."""
        return self.session.trace

    @property
    def run_id(self) -> str:
        """The id of the run."""
        return self.session.run_id

    def output(self, kind: Any) -> Any:
        """Return the last stored output of a type; None if there is none."""
        value = _collect_stored(self.session).get(kind, ABSENT)
        return None if value is ABSENT else value

    def has_output(self, kind: Any) -> bool:
        """Return True if an output of a type is stored."""
        return kind in _collect_stored(self.session)


class GraphExecutor:
    """Runs graphs; every run is a Session.

    A loop with a predicate but no limit may run `default_max_iterations` times (None: no limit), and subgraphs may be
    nested up to `max_recursion_depth` deep.

    Example:
        >>> import asyncio
        >>> from agentnb.dialects.polaris import Graph
        >>> def greet() -> str:
        ...     return "hello"
        >>> result = asyncio.run(GraphExecutor().execute(Graph().add_system(greet)))
        >>> result.nodes_executed, result.output(str)
        (1, 'hello')
    """

    def __init__(
        self, default_max_iterations: int | None = MAX_ITERATIONS, max_recursion_depth: int = MAX_FRAMES
    ) -> None:
        self.default_max_iterations, self.max_recursion_depth = default_max_iterations, max_recursion_depth

    def session(
        self, graph: Graph, ctx: SystemContext | None = None, hooks: HooksAPI | DevToolsPlugin | None = None
    ) -> Session:
        """Return a session of a graph before its first step, without calling `validate`.

        Raises:
            ExecutionError: X456, it has nothing to run, or its parts are inconsistent.
        """
        if not isinstance(graph, Graph):
            raise _make_no_graph_error(f"{with_article(type(graph).__name__)} is not a graph", "NotAGraph")
        if graph.is_empty:
            raise _make_no_graph_error("the graph is empty", "EmptyGraph")
        ctx = SystemContext() if ctx is None else ctx
        try:
            session = Session(
                make_recipe(graph, self.default_max_iterations),
                make_initial_board(graph, ctx.outputs),
                resources=ctx.resources,
                hooks=hooks,
            )
        except RecipeError as error:
            errors = validate(graph).errors
            raise ExecutionError(
                *(errors or error.problems), kind=errors[0].kind if errors else "InvalidGraph",
                node_id=errors[0].node if errors else None,
            ) from None  # fmt: skip
        get_state(session).run.max_frames = self.max_recursion_depth
        return session

    async def execute(
        self, graph: Graph, ctx: SystemContext | None = None, hooks: HooksAPI | DevToolsPlugin | None = None
    ) -> ExecutionResult:
        """Run a graph from its entry to its end.

        `ctx` has the resources, and optionally initial outputs; after the run it has the outputs of the run.

        Raises:
            ExecutionError: it could not be run to its end; `kind` and `node_id` state why and where.
        """
        session = self.session(graph, ctx, hooks)
        await session.arun()
        if ctx is not None:
            ctx.outputs |= _collect_stored(session)
        problem = session.error
        if problem is not None or session.status != "finished":
            raise _make_error(session, problem)
        run = get_state(session).run
        return ExecutionResult(run.counted_steps, (run.history.end_times[-1] - run.history.end_times[0]) / 1e9, session)


def _collect_stored(session: Session) -> dict[Any, Any]:
    """Return the outputs stored at the top level, by type."""
    keys = session.recipe.meta["keys"]
    board = {key: thaw(value) for key, value in get_state(session).run.root.scope.visible_items().items()}
    outputs = {kind: board[key] for kind, key in keys.items() if key in board}
    for key, value in board.items():
        if key not in keys.values() and key == get_key(type(value)):
            outputs[type(value)] = value
    return outputs


def _make_no_graph_error(what: str, kind: str) -> ExecutionError:
    """X456: a graph cannot be run at all."""
    why = "a run starts at the first node of a Graph"
    return ExecutionError(Problem("X456", what, "GraphExecutor.execute(graph)", why, "add a system to it"), kind=kind)


def _make_error(session: Session, problem: Problem | None) -> ExecutionError:
    """Return the error of a stopped run, with the system's exception as the cause."""
    node = session.current
    if problem is None:
        return ExecutionError(
            f"the status of the run is: {session.status}", kind="Stopped", node_id=node, trace=session.trace
        )
    error = ExecutionError(problem, kind=_get_kind(session, problem), node_id=node, trace=session.trace)
    error.__cause__ = to_printable(session.cause)
    return error


def _get_kind(session: Session, problem: Problem) -> str:
    node = session.recipe.nodes.get(session.current or "")
    if node is not None and node.kind in ("system", "task"):  # a task is an agent that is used as a system
        return "Timeout" if isinstance(session.cause, TimeoutError) else "SystemError"
    function = None if node is None else node.params.get("predicate") or node.params.get("discriminator")
    if node is not None and function is not None and function.function is None:
        return "MissingPredicate" if node.kind == "decision" else "MissingDiscriminator"
    return KINDS.get(problem.code, "SystemError")


__all__ = ["ExecutionError", "ExecutionResult", "GraphExecutor"]
