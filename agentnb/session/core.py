"""Session internals: construction, listeners, stop conditions and rollback."""

from __future__ import annotations

import time
import warnings
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from agentnb.board.scopes import Board
from agentnb.board.values import freeze, thaw
from agentnb.engine.control import interventions
from agentnb.engine.control.breakpoints import Breakpoint, last_step
from agentnb.engine.control.budget import Budget
from agentnb.engine.control.listeners import Hooks, Token
from agentnb.engine.core import time_travel
from agentnb.engine.core.frames import given_at
from agentnb.engine.core.pending_step import cancel
from agentnb.engine.core.plan import Plan
from agentnb.engine.core.rng import take_back
from agentnb.engine.core.run import BREAK, ENDING, EXHAUSTED, GO, LANES, PAUSED, SUSPENDED, Run
from agentnb.engine.effects import step_into
from agentnb.engine.effects.crash_recovery import InterruptedSteps, cut_by_interrupt
from agentnb.engine.effects.dispatch import EffectDispatcher
from agentnb.errors import StoreError, no_attribute
from agentnb.ids import new_run_id
from agentnb.kinds import KINDS
from agentnb.kinds.agent import has_only_simulated_model
from agentnb.kinds.context import NOBODY, Context
from agentnb.recipe.model import Recipe
from agentnb.session import event_dispatch, stored_run
from agentnb.session.background_run import Live
from agentnb.session.breakpoints import Marks
from agentnb.session.checks import (
    check_answers,
    check_inputs,
    check_paths,
    check_tools,
    inputs_of,
    not_running,
    unknown_inputs,
)
from agentnb.session.forks import Branches
from agentnb.session.last_writers import Writers
from agentnb.session.limits import Limits
from agentnb.session.logging_listener import Reporter, attend
from agentnb.session.node_coverage import Seen
from agentnb.session.persistence import Lasting
from agentnb.session.run_queries import outcome_of, score_of, status_of
from agentnb.session.schedules import built
from agentnb.session.setup import ready, world_of
from agentnb.session.stop_condition import Until
from agentnb.session.watches import Watches
from agentnb.world.fault_injection import Chaos

if TYPE_CHECKING:
    from agentnb.clock import Clock
    from agentnb.engine.core.frames import Activation
    from agentnb.engine.core.work import Work
    from agentnb.session.session import Session
    from agentnb.trace.trace import SimulationTrace
    from agentnb.world.effect import Effect

_PARTS: Final = frozenset(
    {"branches", "breakpoints", "changes", "copies", "crash", "engine", "hooks", "inputs", "journal", "limits", "live",
     "locked", "log", "name", "parent", "recipe", "reporter", "stopped_by", "watches"}
)  # fmt: skip
TELL_SECONDS = 0.05  # the shortest interval between `change` notifications during a run


class Core(Lasting):
    """The parts of a session. `engine` is the run itself; nothing above this class accesses its internals."""

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an existing attribute of a session.

        Raises:
            AttributeError: the session has no attribute of this name.
        """
        if name[:1] != "_" and name not in _PARTS and not hasattr(type(self), name):
            raise no_attribute(self, name)
        object.__setattr__(self, name, value)

    def __init__(
        self,
        recipe: Recipe,
        inputs: Mapping[str, Any] | None = None,
        *,
        llm: Any = None,
        tools: Mapping[str, Callable[..., Any]] | None = None,
        resources: Mapping[type, Any] | None = None,
        answers: Any = None,
        budget: Mapping[str, Any] | None = None,
        clock: Clock | None = None,
        seed: int = 0,
        store: Any = None,
        run_id: str | None = None,
        name: str | None = None,
        hooks: Any = None,
        durability: Any = "step",
        validate_inputs: bool = True,
        strict_expressions: bool = True,
        chaos: Any = None,
    ) -> None:
        """Create a session positioned before the first step.

        Args:
            inputs: the first values on the board.
            llm: the model: a client, a text "provider:model", a callable of the request, a list (in the order in which
                calls begin), or a mapping node -> list (for parallel branches); see agentnb.world.llm.
            tools: name (of a tool, a function, an agent) -> callable.
            answers: the answers of people: a list, or a mapping from node to a list or one value.
            budget: limits that override those of the recipe (max_steps, max_seconds ...), see
                `agentnb.engine.control.budget.Budget`.
            store: where the run is recorded: a path, a URL (sqlite:///runs.db, postgresql://...), or an EventLog.
            hooks: moment (step, error, end, change, token) -> listener or listeners; or a HooksAPI of schedules.
            durability: "step" saves each step before the next one begins; "batch" may lose the last few when the
                process dies, at most as many as a Batch (or {"steps": 1000, "ms": 200}) allows.
            strict_expressions: raise for missing values in templates and rules; if false, they are None.
            chaos: fault injection: calls are delayed or fail. A Chaos, or a mapping of its fields (latency_ms, ...).

        Raises:
            RecipeError: the recipe has errors, a tool is missing, or inputs are missing or of a wrong type.
            ExecutionError: a limit, a hook, the durability or the chaos is invalid.
            StoreError: the run cannot be stored there.
        """
        recipe = ready(recipe, tools)
        check_answers(recipe, answers, llm)
        self.inputs = {key: thaw(freeze(value)) for key, value in inputs_of(inputs).items()}  # a private copy
        if validate_inputs:
            check_inputs(recipe, self.inputs)
            if strangers := unknown_inputs(recipe, self.inputs):
                warnings.warn("\n".join(map(str, strangers)), stacklevel=2)
        world = world_of(recipe, llm=llm, tools=tools, answers=answers, resources=resources, strict=strict_expressions)
        limits = Limits(Budget.of(budget, recipe.limits))
        run = Run(Plan(recipe, KINDS, world), EffectDispatcher(), clock=clock, seed=seed)
        check_tools(recipe, tools)  # after binding, whose errors for a missing tool say more
        run.chaos = Chaos.of(chaos, seed)
        run.begin(self.inputs)
        self._wire(recipe, run, limits, name or recipe.name, run_id)
        self.hooks.add_all(built(hooks) or {})
        self.keep_in(stored_run.begin(self, store, durability))

    def _wire(self, recipe: Recipe, run: Run, limits: Limits, name: str, run_id: str | None = None) -> None:
        self.recipe, self.engine, self.name, self._run_id = recipe, run, name, run_id
        self._given_id, self._begun = run_id, 1
        self.limits = limits
        limits.apply(run)
        self.parent: Session | None = None
        self.reporter: Reporter | None = None
        self._lasts()
        self.branches = Branches(self)
        self.breakpoints = Marks(
            lambda: self.recipe.nodes, self._marked, lambda: self.recipe.edges, partial(check_paths, self)
        )
        self.watches = Watches(lambda: self._names, partial(check_paths, self))
        self.hooks = Hooks(self._arm)
        self.crash: BaseException | None = None
        self.stopped_by: Breakpoint | None = None
        self._until: Until | None = None
        self._into = False
        self._view = Board(lambda: interventions.here(self.engine))
        self._seen, self._writers = Seen(), Writers()
        self.live = Live(self)  # type: ignore[arg-type]  # every Core is a Session
        self._unsure = False
        self._kept: Run | None = None
        self._told = 0.0
        self._trace: SimulationTrace | None = None
        self._arm()

    @property
    def run_id(self) -> str:
        """The id of this run: the `run_id` argument, else one that sorts by time, generated on first access."""
        if self._run_id is None:
            self._run_id = new_run_id()
        return self._run_id

    def _arm(self) -> None:
        """Install the callback after each step only if there are listeners, breakpoints or stop conditions."""
        run, rows = self.engine, self.hooks.rows if hasattr(self, "hooks") else {}
        calls = [row for row in self.breakpoints if row.call is not None]
        listens = any(rows.get(moment) for moment in ("step", "error")) or bool(rows and self.hooks.schedules)
        run.armed = bool(
            listens
            or run.limiter is not None
            or self.limits.asked
            or len(self.breakpoints) > len(calls)
            or self._until is not None
            or self.journal is not None
            or run.recorded is not None
        )
        run.after, run.run_id = event_dispatch.attached(self, self._after), lambda: self.run_id
        asked = self._until is not None and self._until.turn is not None
        run.before = self._before if asked or any(row.node is not None for row in self.breakpoints) else None
        run.hold = self._holds_call if calls or self._into else None
        run.at_emit = step_into.stop if self._into else None
        run.tell = self._heard if rows.get("token") else None

    def _heard(self, *said: Any) -> None:
        self.hooks.tell("token", Token(*said))

    def _after(self, act: Activation, code: int) -> int:
        """Notify the listeners after a step, then return whether the run stops here."""
        run, hooks = self.engine, self.hooks
        if code == SUSPENDED:  # the step has begun and is not committed yet
            return code
        if self.limits.asked:
            self.limits.committed(act.work)
        if run.recorded is not None:
            run.recorded.over(run, act.id)
        kept = self.journal is None or self.journal.keep()
        if hooks.rows["step"] or hooks.rows["error"]:
            self._tell_steps()
        stops = run.lanes != ENDING and self._stops(act)  # when branches end, only the cause is reported
        if code not in (GO, LANES):
            return code
        if self.limits.asked and self.limits.reached(run):
            return EXHAUSTED
        if run.halt.on or not kept:
            return PAUSED
        return BREAK if stops else code

    def _tell_steps(self) -> None:
        """Notify the listeners of the last step, and of the steps cancelled by its failure."""
        run, hooks = self.engine, self.hooks
        history, row = last_step(run)
        for number in range(history.base + row, run.position + 1):
            step = self.trace.steps[number - 1]
            hooks.tell("step", step)
            if number in history.errors:
                hooks.tell("error", step)

    def _stops(self, act: Activation | None) -> bool:
        """Return True if a breakpoint or the `until` of a run is met at the current position."""
        met = self._until is not None and self._until.met()
        return self._breaks(act) or met

    def _holds_call(self, work: Work, effect: Effect, moment: str) -> bool:
        """Return True if a call is to be paused: by a breakpoint, or because its node is stepped into."""
        met = self.breakpoints.at_call(work, effect, moment)
        self.stopped_by = met or self.stopped_by
        return met is not None or (self._into and step_into.stops_at(work))

    def _breaks(self, act: Activation | None) -> bool:
        """Return True if a breakpoint is met at the current position, and record it."""
        run = self.engine
        return bool(self.breakpoints.rows) and self._stopped(self.breakpoints.after_step(run, act, self._names))

    def _stopped(self, met: Breakpoint | None) -> bool:
        """Record the breakpoint that stops the run here; return False if there is none."""
        if met is None:
            return False
        self.stopped_by = met
        interventions.note(self.engine, "breakpoint", str(met))
        return True

    def _before(self, act: Activation) -> bool:
        """Return True if the run stops before an activation of a branch while others are in flight."""
        run = self.engine
        if self._until is not None and self._until.turn is not None and self._until.turn(act):
            return True
        return self._stopped(self.breakpoints.before_turn(run, act))

    @property
    def _names(self) -> Mapping[str, Any]:
        """Return the names that conditions can use here: the board, and the names of the recipe's own rules."""
        if not self.recipe.meta.get("context"):
            return self._view
        head = interventions.current(self.engine)
        frame = 0 if head is None else head.frame.id
        return Context(self._view, lambda: given_at(self.engine, frame), None, NOBODY)

    def _holds(self, asked: Callable[[Mapping[str, Any]], Any]) -> bool:
        """Return True if a condition holds here; a condition that cannot be evaluated (yet) does not hold."""
        try:
            return bool(asked(self._names))
        except Exception:  # noqa: BLE001  (as a breakpoint's)
            return False

    @property
    def simulated(self) -> tuple[str, ...]:
        """The nodes with simulated answers: they have no implementation, and no model was passed."""
        nodes, world = self.recipe.nodes.values(), self.engine.world
        return tuple(node.id for node in nodes if has_only_simulated_model(node, world))

    @property
    def trace(self) -> SimulationTrace:
        """The live trace of this run: it grows with the run."""
        if self._trace is None:
            from agentnb.trace import SimulationTrace

            run, limits = self.engine, self.limits
            self._trace = SimulationTrace.of(
                run,
                run_id=self.run_id,
                outcome=lambda: outcome_of(run, limits),
                score=lambda: score_of(run),
                metadata={
                    "recipe_kind": "Recipe",
                    "dialect": self.recipe.dialect,
                    "session": self.name,
                    "simulated": list(self.simulated),
                    **self.recipe.meta.get("about", {}),
                },
            )
        return self._trace

    def replace_engine(self, run: Run) -> None:
        """Continue with another run of the same recipe, which has its own id and trace."""
        self._begun += 1
        self._run_id = None if self._given_id is None else f"{self._given_id}-{self._begun}"
        self.engine = run
        self.limits.apply(run)
        self._seen, self._writers, self._trace, self.stopped_by = Seen(), Writers(), None, None
        self._arm()
        if self.journal is not None:
            self.keep_in(stored_run.begin(self, self.journal.log, self.journal.batch or "step"))

    # -- rollback ------------------------------------------------------------------------------------------------------

    def _safely(self, work: Callable[[], Any]) -> None:
        """Execute work that advances the run; on any exception, roll back to the last committed step."""
        self._mend()
        self._unsure = True
        self.live.here += 1
        try:
            work()
        except StoreError:  # the step could not be saved: no other has begun, and pending steps stay pending
            self._mend()
            raise
        except BaseException:
            self._land(why="interrupted")
            self._mend()
            raise
        finally:
            self.live.here -= 1
        self._unsure = False

    async def _asafely(self, work: Awaitable[Any]) -> None:
        """Like `_safely`, for async code."""
        self._mend()
        self._unsure = True
        self.live.awaited += 1
        try:
            await work
        except BaseException:
            self._land(why="interrupted")
            self._mend()
            raise
        finally:
            self.live.awaited -= 1
        self._unsure = False

    def _mend(self) -> None:
        """Roll back what an interrupted step has left."""
        run = self.engine
        if self._unsure or run.dirty:
            if cut_by_interrupt(run) and not run.flights:
                take_back(run)
            if self.journal is not None:
                self.journal.tell_anew()
            self._unsure = False

    def _travel(self, way: Callable[..., None], *words: Any) -> None:
        """Move to another step; atomic under KeyboardInterrupt."""
        self._unsure = True
        try:
            way(*words)
        except BaseException:
            self._mend()
            raise
        self._unsure = False

    def _land(self, why: str = "cancelled") -> None:
        """Cancel the steps in flight; they run again when stepped, without repeating calls that were answered."""
        run = self.engine
        flights = list(run.flights.values())
        for flight in flights:
            del run.flights[flight.act.id]
            cancel(run, flight)
            interventions.note(run, why, flight.act.node.id)
        if len(flights) == 1 and not flights[0].noted:
            take_back(run)
        if isinstance(run.recorded, InterruptedSteps):
            run.recorded.end_calls(run)

    def open_tip(self) -> None:
        """Prepare to continue: later steps, if any, become a branch."""
        run = self.engine
        if run.past or run.at is not run.history:
            time_travel.open_tip(run)
        attend(self)

    def _act(self, verb: str, *, lands: bool = True) -> None:
        """Prepare an intervention; `lands` also cancels pending steps and steps in flight."""
        not_running(self, verb)
        self.ready_to_keep(fixes=True)
        self._mend()
        if lands:
            self._land()
            self.stopped_by = None

    # -- notifications -------------------------------------------------------------------------------------------------

    def changed(self) -> None:
        """Save what has changed and notify the listeners.

        Raises:
            StoreError: it cannot be saved.
        """
        try:
            self.keep()
        finally:
            self._tell_changed()

    def moved(self) -> None:
        """Notify listeners that the position changed; a failed save is retried before the next step."""
        with suppress(StoreError):
            self.keep()
        self._tell_changed()

    def _tell_changed(self) -> None:
        self._told = time.monotonic()
        if self.engine.flights:
            self.live.attend()
        if self.recipe.finish is not None:
            self._finish(self.recipe.finish)
        if self.hooks.rows["change"]:
            self.hooks.tell("change", self)

    def _finish(self, finish: Callable[[Mapping[str, Any], Mapping[str, Any]], None]) -> None:
        """Call the recipe's finish function once, at the end of a run; not for a fork, which is a trial."""
        run = self.engine
        if self._kept is not run and self.parent is None and status_of(run, self.limits) == "finished":
            self._kept = run
            finish(self.inputs, {key: thaw(value) for key, value in run.root.scope.seen().items()})

    def tick(self) -> None:
        """Notify `change` listeners during a run, a few times a second."""
        if self.hooks.rows["change"] and time.monotonic() - self._told > TELL_SECONDS:
            self._tell_changed()
