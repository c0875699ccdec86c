"""core: what a session is made of, and what all its verbs share: who is told, where it stops, how it stays whole."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from agentnb.board.scopes import Board
from agentnb.board.values import freeze, thaw
from agentnb.engine import into, people, travel
from agentnb.engine.breakpoints import Breakpoint, last_step
from agentnb.engine.budget import Budget
from agentnb.engine.hooks import Hooks, Token
from agentnb.engine.inside import given_at
from agentnb.engine.plan import Plan
from agentnb.engine.run import BREAK, ENDING, EXHAUSTED, GO, LANES, PAUSED, SUSPENDED, Run
from agentnb.errors import StoreError
from agentnb.ids import new_run_id
from agentnb.kinds import KINDS
from agentnb.kinds.agent import is_simulated
from agentnb.kinds.context import NOBODY, Context
from agentnb.recipe.model import Recipe
from agentnb.session import stored, telling
from agentnb.session.checks import check_answers, check_inputs, inputs_of, not_running
from agentnb.session.lasting import Lasting
from agentnb.session.limits import Limits
from agentnb.session.live import Live
from agentnb.session.marks import Marks
from agentnb.session.reading import outcome_of, score_of, status_of
from agentnb.session.reporter import Reporter, attend
from agentnb.session.seen import Seen
from agentnb.session.tree import Branches
from agentnb.session.until import Until
from agentnb.session.watches import Watches
from agentnb.session.wiring import ready, world_of
from agentnb.session.writers import Writers
from agentnb.world.chaos import Chaos

if TYPE_CHECKING:
    from agentnb.clock import Clock
    from agentnb.engine.frames import Activation
    from agentnb.engine.work import Effect, Work
    from agentnb.session.session import Session
    from agentnb.trace.trace import SimulationTrace

TELL_SECONDS = 0.05  # how often, at most, `change` is told while a run goes


class Core(Lasting):
    """The parts of a session. `engine` is the run itself; nothing above touches what is inside it."""

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
        """Make a session that stands before the first step.

        Args:
            inputs: the first values on the board.
            llm: what speaks for the model: a client, a text "provider:model", a callable of the request, a list (in the
                order in which calls begin), or a mapping node -> list (for parallel branches); see agentnb.world.llm.
            tools: name (of a tool, a function, an agent) -> callable.
            answers: what people answer: a list, or a mapping from node to a list or one value.
            budget: limits in place of the recipe's own (max_steps, max_seconds ...), see agentnb.engine.budget.Budget.
            store: where the run is kept: a path, a URL (sqlite:///runs.db, postgresql://...), or an EventLog.
            hooks: moment (step, error, end, change, token) -> listener or listeners; or a HooksAPI of schedules.
            durability: "step" keeps each step before the next one begins; "batch" may lose the last few when the
                process dies, at most as many as a Batch (or {"steps": 1000, "ms": 200}) says.
            strict_expressions: whether templates and rules refuse what is missing; else it is None.
            chaos: what makes calls slow or fail on purpose: a Chaos, or a mapping of its words (latency_ms, ...).

        Raises:
            RecipeError: the recipe has errors, a tool is missing, or inputs are missing or of a wrong type.
            ExecutionError: a limit, a hook, the durability or the chaos is wrong.
            StoreError: the run cannot be kept there.
        """
        recipe = ready(recipe, tools)
        check_answers(recipe, answers, llm)
        self.inputs = {key: thaw(freeze(value)) for key, value in inputs_of(inputs).items()}  # what is ours stays so
        if validate_inputs:
            check_inputs(recipe, self.inputs)
        world = world_of(recipe, llm=llm, tools=tools, answers=answers, resources=resources, strict=strict_expressions)
        limits = Limits(Budget.of(budget, recipe.limits))
        run = Run(Plan(recipe, KINDS, world), clock=clock, seed=seed)
        run.chaos = Chaos.of(chaos, seed)
        run.begin(self.inputs)
        self._wire(recipe, run, limits, name or recipe.name, run_id)
        self.hooks.add_all(hooks or {})
        self.keep_in(stored.begin(self, store, durability))

    def _wire(self, recipe: Recipe, run: Run, limits: Limits, name: str, run_id: str | None = None) -> None:
        self.recipe, self.engine, self.name, self._run_id = recipe, run, name, run_id
        self._given_id, self._begun = run_id, 1
        self.limits = limits
        limits.apply(run)
        self.parent: Session | None = None
        self.reporter: Reporter | None = None
        self._lasts()
        self.branches = Branches(self)
        self.breakpoints = Marks(lambda: self.recipe.nodes, self._marked, lambda: self.recipe.edges)
        self.watches = Watches(lambda: self._names)
        self.hooks = Hooks(self._arm)
        self.crash: BaseException | None = None
        self.stopped_by: Breakpoint | None = None
        self._until: Until | None = None
        self._into = False
        self._view = Board(lambda: people.here(self.engine))
        self._seen, self._writers = Seen(), Writers()
        self.live = Live(self)  # type: ignore[arg-type]  # every Core is a Session
        self._unsure = False
        self._kept: Run | None = None
        self._told = 0.0
        self._trace: SimulationTrace | None = None
        self._arm()

    @property
    def run_id(self) -> str:
        """The id of this run: the one that was given, else one that sorts by time, drawn when it is first asked for."""
        if self._run_id is None:
            self._run_id = new_run_id()
        return self._run_id

    def _arm(self) -> None:
        """Make the engine ask us after each step, only where somebody listens, breaks or counts."""
        run, rows = self.engine, self.hooks.rows if hasattr(self, "hooks") else {}
        calls = [row for row in self.breakpoints if row.call is not None]
        listens = any(rows.get(moment) for moment in ("step", "error")) or bool(rows and self.hooks.schedules)
        run.armed = bool(
            listens
            or run.spending is not None
            or self.limits.asked
            or len(self.breakpoints) > len(calls)
            or self._until is not None
            or self.journal is not None
            or run.recorded is not None
        )
        run.after, run.run_id = telling.attached(self, self._after), lambda: self.run_id
        asked = self._until is not None and self._until.turn is not None
        run.before = self._before if asked or any(row.node is not None for row in self.breakpoints) else None
        run.hold = self._holds_call if calls or self._into else None
        run.at_emit = into.stop if self._into else None
        run.tell = self._heard if rows.get("token") else None

    def _heard(self, *said: Any) -> None:
        self.hooks.tell("token", Token(*said))

    def _after(self, act: Activation, code: int) -> int:
        """After a step, where somebody listens: tell, then say whether the run stops here."""
        run, hooks = self.engine, self.hooks
        if code == SUSPENDED:  # it has begun, and is no step yet
            return code
        if self.limits.asked:
            self.limits.committed(act.work)
        if run.recorded is not None:
            run.recorded.over(act.id)
        kept = self.journal is None or self.journal.keep()
        if hooks.rows["step"] or hooks.rows["error"]:
            self._tell_steps()
        stops = run.lanes != ENDING and self._stops(act)  # what stopped the branches is told, not what ends after it
        if code not in (GO, LANES):
            return code
        if self.limits.asked and self.limits.reached(run):
            return EXHAUSTED
        if run.halt.on or not kept:
            return PAUSED
        return BREAK if stops else code

    def _tell_steps(self) -> None:
        """Tell who listens of the last step, and of those that its failure has cancelled."""
        run, hooks = self.engine, self.hooks
        history, row = last_step(run)
        for number in range(history.base + row, run.position + 1):
            step = self.trace.steps[number - 1]
            hooks.tell("step", step)
            if number in history.errors:
                hooks.tell("error", step)

    def _stops(self, act: Activation | None) -> bool:
        """Say whether a breakpoint or the end of `run(until=...)` is met where the run stands."""
        met = self._until is not None and self._until.met()
        return self._breaks(act) or met

    def _holds_call(self, work: Work, effect: Effect, moment: str) -> bool:
        """Say whether a call is held: by a breakpoint, or since its node is stepped into."""
        met = self.breakpoints.at_call(work, effect, moment)
        return met or (self._into and into.stops_at(work))

    def _breaks(self, act: Activation | None) -> bool:
        """Say whether a breakpoint is met where the run stands; it is recorded."""
        run = self.engine
        self.stopped_by = self.breakpoints.after_step(run, act, self._names) if self.breakpoints.rows else None
        if self.stopped_by is not None:
            people.note(run, "breakpoint", str(self.stopped_by))
        return self.stopped_by is not None

    def _before(self, act: Activation) -> bool:
        """Say whether the run stops before a turn of a branch, while others run beside it."""
        run = self.engine
        if self._until is not None and self._until.turn is not None and self._until.turn(act):
            return True
        self.stopped_by = self.breakpoints.before_turn(run, act)
        if self.stopped_by is not None:
            people.note(run, "breakpoint", str(self.stopped_by))
        return self.stopped_by is not None

    @property
    def _names(self) -> Mapping[str, Any]:
        """What people's conditions know where the run stands: the board, and what the recipe's own rules know."""
        if not self.recipe.meta.get("context"):
            return self._view
        head = people.current(self.engine)
        frame = 0 if head is None else head.frame.id
        return Context(self._view, lambda: given_at(self.engine, frame), None, NOBODY)

    def _holds(self, asked: Callable[[Mapping[str, Any]], Any]) -> bool:
        """Say whether a condition holds where the run stands; one that cannot be worked out (yet) does not."""
        try:
            return bool(asked(self._names))
        except Exception:  # noqa: BLE001  (as a breakpoint's)
            return False

    @property
    def simulated(self) -> tuple[str, ...]:
        """The nodes whose answers are made up: nothing is bound to them, and no model was given."""
        nodes, world = self.recipe.nodes.values(), self.engine.world
        return tuple(node.id for node in nodes if is_simulated(node, world))

    @property
    def trace(self) -> SimulationTrace:
        """The trace of this run, live: it grows as the run goes on."""
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
        """Go on with another run of the same recipe: it has another id, and a trace of its own."""
        self._begun += 1
        self._run_id = None if self._given_id is None else f"{self._given_id}-{self._begun}"
        self.engine = run
        self.limits.apply(run)
        self._seen, self._writers, self._trace, self.stopped_by = Seen(), Writers(), None, None
        self._arm()
        if self.journal is not None:
            self.keep_in(stored.begin(self, self.journal.log, self.journal.batch or "step"))

    # -- staying whole ---------------------------------------------------------------------------------------------

    def _safely(self, work: Callable[[], Any]) -> None:
        """Do something that moves the run; whatever cuts it short, the run stands after its last finished step."""
        self._mend()
        self._unsure = True
        self.live.here += 1
        try:
            work()
        except StoreError:  # what is done cannot be kept: so nothing else has begun, and what waits goes on waiting
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
        """Undo what an interrupt has left of a step."""
        run = self.engine
        if self._unsure or run.dirty:
            travel.repair(run)
            for act in run.live.values():
                if act.id not in run.flights:
                    act.work.reset()
            self._unsure = False

    def _travel(self, way: Callable[..., None], *words: Any) -> None:
        """Stand elsewhere; an interrupt leaves the run where it stood, or where it was to stand."""
        self._unsure = True
        try:
            way(*words)
        except BaseException:
            self._mend()
            raise
        self._unsure = False

    def _land(self, why: str = "cancelled") -> None:
        """Cancel the steps in flight; they are recorded, and run again when they are stepped."""
        run = self.engine
        for flight in list(run.flights.values()):
            del run.flights[flight.act.id]
            flight.cancel()
            people.note(run, why, flight.act.node.id)
        if self.journal is not None:
            self.journal.drop_all()
        self._forget_recorded()

    def open_tip(self) -> None:
        """Get ready to go on: where later steps stand, they become a branch of their own."""
        run = self.engine
        if run.past or run.at is not run.history:
            travel.open_tip(run)
        attend(self)

    def _act(self, verb: str, *, lands: bool = True) -> None:
        """Get ready for an act of a person; where it `lands`, what waits or is in flight is cancelled."""
        not_running(self, verb)
        self.ready_to_keep(mends=True)
        self._mend()
        if lands:
            self._land()

    # -- telling -----------------------------------------------------------------------------------------------------

    def changed(self) -> None:
        """Keep what has changed, and tell who listens.

        Raises:
            StoreError: it cannot be kept.
        """
        try:
            self.keep()
        finally:
            self._tell_changed()

    def moved(self) -> None:
        """Tell who listens that the run stands elsewhere; what cannot be kept of that is kept before it goes on."""
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
        """Do what the recipe does at the end of a run, once; a fork is a trial, and leaves nothing behind."""
        run = self.engine
        if self._kept is not run and self.parent is None and status_of(run, self.limits) == "finished":
            self._kept = run
            finish(self.inputs, {key: thaw(value) for key, value in run.root.scope.seen().items()})

    def tick(self) -> None:
        """Tell the same while a run goes, a few times a second."""
        if self.hooks.rows["change"] and time.monotonic() - self._told > TELL_SECONDS:
            self._tell_changed()
