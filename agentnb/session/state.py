"""The state that the parts of a session share: its recipe, its run, who moves it, and where it stops."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from agentnb.board.scopes import Board
from agentnb.engine.control.breakpoints import Breakpoint
from agentnb.engine.control.interventions import get_current_activation, get_current_scope
from agentnb.engine.core.frames import get_frame_inputs
from agentnb.event_loops import get_running_loop
from agentnb.ids import make_run_id
from agentnb.kinds.agent import MODEL_KINDS, has_only_simulated_model
from agentnb.kinds.context import NO_NODE, Context
from agentnb.secrets import masking_for
from agentnb.session.breakpoints import SessionBreakpoints
from agentnb.session.checks import check_paths, collect_call_names, collect_event_types
from agentnb.session.run_queries import find_last_score, get_outcome, get_status
from agentnb.session.watches import Watches
from agentnb.world.llm.base import SIMULATED

if TYPE_CHECKING:
    from agentnb.engine.control.breakpoints import Side
    from agentnb.engine.control.listeners import Hooks
    from agentnb.engine.core.frames import Activation
    from agentnb.engine.core.run import Run
    from agentnb.engine.persistence.event_log import EventLog
    from agentnb.engine.persistence.journal import Journal
    from agentnb.errors import Problem
    from agentnb.expressions.conditions import Condition
    from agentnb.recipe.model import Recipe
    from agentnb.session.limits import Limits
    from agentnb.session.logging_listener import LoggingListener
    from agentnb.session.progress import Progress
    from agentnb.session.session import Session
    from agentnb.trace.trace import SimulationTrace
    from agentnb.world.world import World

_NO_ROWS: Final[Mapping[int, Breakpoint]] = {}


@dataclass(frozen=True, slots=True)
class Until:
    """`is_met` is called after each step and returns True if the run stops.

    `is_met_before` is called before each activation of a branch while others are in flight; None if the next node is
    irrelevant.
    """

    is_met: Callable[[], bool]
    is_met_before: Callable[[Activation], bool] | None = None


class State:
    """What the parts of one session share. Each part changes its own attributes and reads the others.

    `session` is the Session that listeners receive. `run` is the engine's run; `reset` replaces it.
    """

    hooks: Hooks
    breakpoints_changed: Callable[[], None]  # called after a change of the breakpoints

    # Defaults are class attributes: a fork, which takes microseconds, sets only what differs.
    parent: Session | None = None
    get_origin: Callable[[], str] | None = None  # of a fork: the id of the run from which it was forked in the end
    note: str = ""  # why the fork was made
    expectation: Condition | None = None  # what the fork should satisfy
    journal: Journal | None = None  # records the run
    log: EventLog | None = None  # the store of `journal`, or the one that the run was read from
    read_only_reason: Problem | None = None  # why the run is read-only, if it is
    reporter: LoggingListener | None = None
    stopped_by: Breakpoint | None = None
    until: Until | None = None  # the stop condition of the run call in progress
    steps_into: bool = False  # whether calls and events of the node are stops too
    background_error: BaseException | None = None  # what ended a background run; `wait` raises it
    needs_repair: bool = False  # whether an interrupt may have left something to roll back
    warned_in_place: bool = False  # whether there was a warning of a change in place
    recorded: bool = False  # whether steps go through a recording and run no node
    # Who moves the session:
    runs_in_background: bool = False  # a background run
    async_calls: int = 0  # number of `astep` and `arun` calls of other tasks in progress
    sync_calls: int = 0  # number of synchronous calls in progress; the functions they call may not move the session
    # Whether start() began the run that asks a person, so that it continues after the answer.
    resumes_after_answer: bool = False
    # Steps up to this one were made by another system; the record lacks what a replay of them needs.
    replayable_from: int = 0
    _run_count: int = 1  # number of runs, with those before each reset
    _board: Board | None = None
    _breakpoints: SessionBreakpoints | None = None
    _progress: Progress | None = None
    _watches: Watches | None = None
    _trace: SimulationTrace | None = None
    _simulated: tuple[str, ...] | None = None  # of a run that can only be read

    def __init__(
        self,
        session: Session,
        run: Run,
        limits: Limits,
        name: str,
        inputs: dict[str, Any],
        run_id: str | None = None,
        parent: State | None = None,
    ) -> None:
        self.session, self.name, self.inputs, self.limits = session, name, inputs, limits
        self.requested_id = self._run_id = run_id
        self.run = run
        limits.apply(run)
        if parent is not None:
            self.parent = parent.session
            self.get_origin = lambda: parent.origin_id
        # The event loop for `start()`: that of the thread that makes the session, or of its parent.
        self.loop: asyncio.AbstractEventLoop | None = get_running_loop() if parent is None else parent.loop

    def replace_run(self, run: Run) -> None:
        """Continue with another run of the same recipe, which has its own id and trace."""
        if self._trace is not None:
            self._trace.run_id = self.run_id  # it may not have been asked for yet
        self._run_count += 1
        self._run_id = None if self.requested_id is None else f"{self.requested_id}-{self._run_count}"
        self.run = run
        self.limits.apply(run)
        self._trace = self.stopped_by = None

    @property
    def recipe(self) -> Recipe:
        """The recipe that the run follows."""
        return self.run.plan.recipe

    @property
    def run_id(self) -> str:
        """The id of this run: the `run_id` argument, else one that sorts by time, generated on first access."""
        if self._run_id is None:
            self._run_id = make_run_id()
        return self._run_id

    @property
    def origin_id(self) -> str:
        """The id of the run from which this one was forked, directly or not; its own id if it is not a fork."""
        return self.run_id if self.get_origin is None else self.get_origin()

    @property
    def moves(self) -> bool:
        """Whether the session is being advanced, by its own task or by a caller."""
        return self.runs_in_background or self.async_calls > 0 or self.sync_calls > 0

    @property
    def status(self) -> str:
        """The status of the run, in one word."""
        if self.moves:
            return "pausing" if self.run.halt.is_requested else "running"
        return get_status(self.run, self.limits)

    @property
    def board(self) -> Board:
        """The blackboard at the current position."""
        if self._board is None:
            self._board = Board(lambda: get_current_scope(self.run), lambda: masking_for(self.run.tables.secrets))
        return self._board

    @property
    def breakpoints(self) -> SessionBreakpoints:
        """The breakpoints; made when first asked for."""
        if self._breakpoints is None:
            self._breakpoints = SessionBreakpoints(
                lambda: self.recipe.nodes, self.breakpoints_changed, lambda: self.recipe.edges, self.check_paths,
                self._is_repeating, self._has_spent, self._list_names,
            )  # fmt: skip
        return self._breakpoints

    def _list_names(self, clause: str) -> Collection[str]:
        """Return the known names of this run's calls or events."""
        return (collect_call_names if clause == "call" else collect_event_types)(self.run)

    def _is_repeating(self, run: Run, side: Side) -> bool:
        """Return True if the board equals that of an earlier visit; its data are collected from the first call on."""
        if self._progress is None:
            from agentnb.session.progress import Progress

            self._progress = Progress()
        return self._progress.is_repeated(run, side)

    def _has_spent(self, run: Run, share: float) -> bool:
        """Return True if the last step brought the use of a limit to a share of it."""
        return self.limits.has_reached_share(run, share)

    @property
    def breakpoint_rows(self) -> Mapping[int, Breakpoint]:
        """The breakpoints by number, for what asks at each step."""
        return _NO_ROWS if self._breakpoints is None else self._breakpoints.rows

    @property
    def watches(self) -> Watches:
        """The watched conditions."""
        if self._watches is None:
            self._watches = Watches(lambda: self.names, self.check_paths)
        return self._watches

    def check_paths(self, paths: Iterable[Sequence[str | int]], where: str) -> Iterator[Problem]:
        """Yield a problem for each board path whose first key nothing writes: X145."""
        return check_paths(self.recipe, self.run, paths, where)

    @property
    def watch_sources(self) -> list[Any]:
        """The watches that can be saved: texts and JsonLogic, not functions."""
        return [] if self._watches is None else self._watches.sources()

    @property
    def names(self) -> Mapping[str, Any]:
        """The names that conditions can use here: the board, and the names of the recipe's own rules."""
        if not self.recipe.meta.get("context"):
            return self.board
        head = get_current_activation(self.run)
        frame = 0 if head is None else head.frame.id
        return Context(self.board, lambda: get_frame_inputs(self.run, frame), None, NO_NODE)

    def is_true(self, condition: Callable[[Mapping[str, Any]], Any]) -> bool:
        """Return True if a condition holds here; a condition that cannot be evaluated (yet) does not hold."""
        try:
            return bool(condition(self.names))
        except Exception:  # noqa: BLE001  (as a breakpoint's)
            return False

    @property
    def simulated(self) -> tuple[str, ...]:
        """The nodes with simulated answers: they have no implementation, and no model was passed.

        A read-only run has no model; its record states which answers were simulated.
        """
        if self.read_only_reason is None:
            return list_simulated_nodes(self.recipe, self.run.world)
        if self._simulated is None:
            self._simulated = list_recorded_as_simulated(self.run)
        return self._simulated

    @property
    def trace(self) -> SimulationTrace:
        """The live trace of the run."""
        if self._trace is None:
            from agentnb.trace.trace import SimulationTrace

            run, limits, recipe = self.run, self.limits, self.recipe
            self._trace = SimulationTrace.of(
                run,
                run_id=lambda: self.run_id,
                outcome=lambda: get_outcome(run, limits),
                score=lambda: find_last_score(run),
                metadata=lambda: {
                    "recipe_kind": "Recipe",
                    "dialect": recipe.dialect,
                    "session": self.name,
                    "simulated": list(self.simulated),
                    **recipe.meta.get("about", {}),
                },
            )
        return self._trace

    @trace.setter
    def trace(self, trace: SimulationTrace | None) -> None:
        self._trace = trace


def list_simulated_nodes(recipe: Recipe, world: World) -> tuple[str, ...]:
    """Return the nodes whose answers are simulated in a world."""
    nodes = [node for node in recipe.nodes.values() if node.kind in MODEL_KINDS]
    return tuple(node.id for node in nodes if has_only_simulated_model(node, world))


def list_recorded_as_simulated(run: Run) -> tuple[str, ...]:
    """Return the nodes of a record with answers that were simulated, in the recipe's order."""
    calls = (call for history in run.chain for call in history.calls if call.provider == SIMULATED)
    node_ids = {run.get_node_id(call.activation) for call in calls if call.activation >= 0}
    return tuple(node.id for node in run.plan.nodes if node.id in node_ids)


def get_state(session: Session) -> State:
    """Return the state of a session, for other packages of agentnb; `parts.get_parts` returns its parts."""
    return session._parts.state  # noqa: SLF001  (the accessor for other packages)


__all__ = ["State", "get_state"]
