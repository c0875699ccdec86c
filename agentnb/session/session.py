"""session: the Session: one run of one recipe, for people. Here is what they do to it, and what they ask it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Literal, Self

from agentnb.board.scopes import Board
from agentnb.board.values import ABSENT
from agentnb.engine import people
from agentnb.engine.budget import Budget
from agentnb.engine.cursor import Cursor, Next, OpenFrame, cursor_of, frontier_of, stack_of
from agentnb.engine.hooks import Listener
from agentnb.engine.run import GO
from agentnb.engine.travel import open_tip
from agentnb.errors import ExecutionError, StoreError
from agentnb.session import reading
from agentnb.session.awaited import Awaited
from agentnb.session.checks import not_running, refuse_step
from agentnb.session.graphs import Graphs
from agentnb.session.pending import (
    Kind,
    Pending,
    change,
    changed_in,
    flight_of,
    held,
    held_at,
    leave_of,
    no_answer,
    pending_of,
)
from agentnb.session.replaying import ReplayReport, replayed
from agentnb.session.standing import Standing
from agentnb.session.why import Why, why_of
from agentnb.session.why_not import WhyNot, why_not_of
from agentnb.world.people import verdict

if TYPE_CHECKING:
    from agentnb.engine.history import Event
    from agentnb.errors import Problem
    from agentnb.recipe.model import Recipe
    from agentnb.session.writers import Writer
    from agentnb.trace.trace import SimulationStep


class Session(Awaited, Graphs):
    """One run of a recipe: step it, go back, edit, fork; every step stays in its history.

    A failure of a recipe is never raised: the run stands at the failed node, `status` is `failed` and `error` says why.

    Example:
        >>> import networkx as nx
        >>> import agentnb as nb
        >>> graph = nx.DiGraph(name="count")
        >>> graph.add_node("add", function=lambda n: {"n": n + 1}, inputs={"n": "n"})
        >>> session = nb.Session(nb.load(graph), {"n": 1})
        >>> session.step().outputs
        {'n': 2}
        >>> session.back().board["n"]
        1
    """

    # -- acts of a person --------------------------------------------------------------------------------------------

    def retry(self) -> SimulationStep | None:
        """Run the failed node again, as a new step; so too one whose step no store can keep."""
        if self._unfit is not None:
            with suppress(StoreError):  # a codec may take it by now
                self.ready_to_keep()
        if self._unfit is not None:
            self.goto(self._unfit - 1)
        return self.step()

    def skip(self, writes: Mapping[str, Any] | None = None) -> SimulationStep | None:
        """Go on as if the next node had written this.

        Raises:
            ExecutionError: X108, there is no next node; X121, the recipe's requirements do not hold yet.
        """
        problem = reading.problem_of(self.engine)
        if problem is not None and problem.code == "X121":
            raise ExecutionError(problem)
        self._act("skip()")
        self._safely(lambda: people.skip(self.engine, writes or {}))
        self.changed()
        return self.trace.steps[self.engine.position - 1]

    def edit(self, changes: Mapping[str, Any]) -> Self:
        """Write values by path where the run stands (`ABSENT` deletes); made in the past, this starts a branch.

        Raises:
            BoardError: a value or a path that the board cannot take; then nothing is written.
        """
        self._act("edit()", lands=False)
        self._safely(lambda: people.edit(self.engine, changes))
        self.changed()
        return self

    def set_next(self, node: str) -> Self:
        """Make `node` the next one.

        Raises:
            ExecutionError: X101, there is no such node; X107, its frame is not open.
        """
        self._act("set_next()")
        self._safely(lambda: people.set_next(self.engine, node))
        self.changed()
        return self

    def set_budget(self, **limits: Any) -> Self:
        """Set limits of the budget, `set_budget(max_steps=200)`; None lifts one. An exhausted run can then go on.

        Raises:
            ExecutionError: X201 to X203, a limit has an unknown name, or its value is none.
        """
        not_running(self, "set_budget()")
        self.limits.change(self.engine, Budget.of(limits, asdict(self.limits.budget)))
        self._arm()
        self.changed()
        return self

    def emit(self, type: str, payload: Any = None, actor: str = "user", **words: Any) -> Self:
        """Emit an event from outside, for the nodes that listen to its type.

        Args:
            words: what is said of it beside its actor: id, cause, time, mark; see agentnb.engine.history.Event.
        """
        self._act("emit()", lands=False)
        open_tip(self.engine, amend=True)
        people.note_held(self.engine)
        people.emit(self.engine, type, payload, actor, **words)
        self.changed()
        return self

    def answer(self, value: Any, node: str | None = None) -> SimulationStep | None:
        """Give a person's answer to the node that waits, and commit its step; a run that `start()` began then goes on.

        Where a value was masked when the run was kept, the answer is that value, and `node` its path.

        Raises:
            ExecutionError: X115, nobody is asked.
        """
        not_running(self, "answer()")
        if self._fills(value, node):
            self.changed()
            return None
        return self._give("answer", node, "answer", value)

    def approve(self, id: str | None = None, by: str | None = None) -> SimulationStep | None:
        """Approve what a node asks leave for, and commit its step; a run that `start()` began then goes on.

        What waits on the board is done at once, as an act where the run stands; there is no step to commit then.

        Args:
            id: of what is in `pending`, or its node; the first approval where it is left out.
            by: who has decided it.

        Raises:
            ExecutionError: X115, nothing waits for an approval.
        """
        return self._decide("approve", id, by)

    def deny(self, id: str | None = None, reason: str = "", by: str | None = None) -> SimulationStep | None:
        """Deny what a node asks leave for, as `approve` grants it; the node is told the reason.

        Raises:
            ExecutionError: X115, nothing waits for an approval.
        """
        return self._decide("deny", id, by, reason)

    def _decide(self, act: str, wanted: str | None, by: str | None, reason: str = "") -> SimulationStep | None:
        """Grant or deny what a node waits for, or what waits on the board: there no step ends by it."""
        not_running(self, f"{act}()")
        self._take_up("approval", wanted)
        approved = act == "approve"
        flight, leave = flight_of(self.engine, "approval", wanted), leave_of(self.engine, wanted)
        if flight is None and leave is not None and self.recipe.approvals is not None:
            self.recipe.approvals.decide(self, leave, verdict(approved=approved, by=by, reason=reason))
            self.live.go_on()
            self.changed()
            return None
        changed = None if flight is None or not approved else changed_in(flight)
        said = verdict(approved=approved, by=by, reason=reason, arguments=changed)
        return self._give("approval", wanted, act, said, by)

    def _give(
        self, kind: Kind, wanted: str | None, act: str, value: Any, by: str | None = None
    ) -> SimulationStep | None:
        """Give what a node waits for, and let it come to its end; it is an act of the step that it ends."""
        not_running(self, f"{act}()")
        self.ready_to_keep()
        self._take_up(kind, wanted)
        flight = held(self.engine, kind, wanted)
        hold = flight.hold
        assert hold is not None
        hold.answer, hold.answered, hold.go = value, True, True
        before, codes = self.engine.position, list[int]()
        self._safely(lambda: codes.append(self._one(flight)))
        people.note(self.engine, act, flight.act.node.id, ABSENT, value, by or "user")
        self.changed()
        step = self._last(before)
        if codes == [GO]:
            self.live.go_on()
        return step

    def change(self, id: str, arguments: Mapping[str, Any] | None = None, answer: Any = ABSENT) -> Self:
        """Change a held call: what it sends, or what it answers (before it goes out, the answer replaces it).

        Of an approval, what leave is asked for may be changed: then `approve` lets it be done so.

        Raises:
            ExecutionError: X115, there is no such call or approval; X126, X127, of an approval something is changed
                that cannot be.
        """
        not_running(self, "change()")
        self._take_up("call", id)
        self._take_up("approval", id)
        leave, flight = leave_of(self.engine, id), flight_of(self.engine, "approval", id)
        if leave is not None and flight is None and self.recipe.approvals is not None:
            if answer is not ABSENT:
                raise no_answer(leave.name)
            self.recipe.approvals.change(self, leave, {**leave.arguments, **(arguments or {})})
            self.changed()
            return self
        flight = flight or held(self.engine, "call", id)
        change(flight, arguments, answer)
        people.note(self.engine, "change", flight.act.node.id, ABSENT, answer if arguments is None else dict(arguments))
        self.changed()
        return self

    def fork(self, at: int | str | None = None, name: str | None = None, edit: Mapping[str, Any] | None = None, *,
             recipe: Recipe | None = None, llm: Any = None,
             tools: Mapping[str, Callable[..., Any]] | None = None) -> Session:  # fmt: skip
        """Return a new session that shares the steps up to `at` (a step number or an event id; left out: here).

        Args:
            recipe: another version of the recipe to go on with; it has the nodes of the steps before, where they were.

        Raises:
            ExecutionError: X111, there is no such step or event.
            StoreError: L433, the steps before do not fit the other recipe.
            RecipeError: the other recipe has errors, or a tool is missing.
        """
        not_running(self, "fork()")
        return self.branches.fork(at, name, edit, recipe, llm, tools)

    def replay(
        self, from_step: int = 0, *, recipe: Recipe | None = None, strict: Literal["path", "values", "reads"] = "values"
    ) -> ReplayReport:
        """Run the steps up to here once more on the recorded answers, and say where they differ. No effect is run.

        Functions, conditions and behaviours run again; what tools, models and people answered is taken from the record,
        and so is what people did. The session stays as it is.

        Args:
            from_step: begin with the recorded state after this step.
            recipe: another version of the recipe to replay with.
            strict: compare nodes, phases, edges and failures (`path`); also writes, events, what calls were sent, and
                what failures say (`values`); also what was read (`reads`).

        Raises:
            ExecutionError: L431, there is no such level; L432, it does not stand behind such a step.
            RecipeError: the other recipe has errors.
        """
        return replayed(self, from_step, recipe, strict)

    @property
    def forks(self) -> tuple[Session, ...]:
        """The sessions that began here, and the branches that this one has left."""
        return self.branches.all()

    def tree(self) -> str:
        """Return this session and all its forks, one a line."""
        return self.branches.tree()

    # -- what can be asked --------------------------------------------------------------------------------------------

    @property
    def position(self) -> int:
        """The number of the step after which the run stands; 0 before the first."""
        return self.engine.position

    @property
    def frontier(self) -> tuple[Next, ...]:
        """The next activations, front first, each with the reason why it is next."""
        return frontier_of(self.engine)

    @property
    def frames(self) -> tuple[OpenFrame, ...]:
        """The frames around the next node, the outermost first."""
        return stack_of(self.engine)

    @property
    def cursor(self) -> Cursor:
        """Where the run stands, as an immutable value."""
        return cursor_of(self.engine)

    @property
    def status(self) -> Standing:
        """Where the run stands, in one word; it also knows what is `used` and `left` of the budget."""
        if self.live.moves:
            return Standing("pausing" if self.engine.halt.on else "running", self.engine, self.limits)
        return Standing(reading.status_of(self.engine, self.limits), self.engine, self.limits)

    @property
    def error(self) -> Problem | None:
        """What failed where the run stands, or who is asked where nobody can answer; else None."""
        return reading.problem_of(self.engine)

    @property
    def cause(self) -> BaseException | None:
        """The exception that a node raised, where the run stands at its failure."""
        found = reading.failure_of(self.engine)
        return None if found is None else found[1].error

    @property
    def board(self) -> Board:
        """The blackboard where the run stands, read-only: `board["a.b"]` reads a path."""
        return self._view

    @property
    def pending(self) -> tuple[Pending, ...]:
        """What waits for a person."""
        return pending_of(self.engine)

    @property
    def held_at(self) -> str:
        """Where inside its node the step in flight is held: before or after a call, or at an event; else empty."""
        return held_at(self.engine)

    @property
    def events(self) -> tuple[Event, ...]:
        """What nodes and people have emitted up to here, by their numbers: those of a step in flight are among them."""
        run = self.engine
        flying = (event for flight in run.flights.values() for event in flight.act.work.emitted)
        return tuple(sorted((*run.events(), *flying), key=lambda event: event.seq))

    def watch(self, expression: Any) -> Self:
        """Watch a path of the board, a condition text, JsonLogic, or a callable; `watches` shows its value here."""
        self.watches.add(expression)
        self.changed()
        return self

    def who_wrote(self, path: str, at: int | None = None) -> int | None:
        """Return the step that wrote what stands at a path; 0 for the inputs, None where nobody did."""
        return reading.who_wrote(self.engine, path, self.engine.position if at is None else at)

    def writers(self) -> dict[str, Writer]:
        """Return who last wrote each key of the board: the step and its node; "" the inputs, None a person's edit."""
        return self._writers.of(self.engine, self._view)

    def why(self, at: int | None = None) -> Why:
        """Return why a step (left out: the last one) led where it did: each condition with the values that it read.

        Raises:
            ExecutionError: X111, there is no such step.
        """
        return why_of(self.engine, at)

    def why_not(self, behavior: str, at: int | str | None = None) -> WhyNot:
        """Return what kept a node from firing: an event that has not come, a delivery that waits, ways not taken.

        Args:
            at: a step number or an event id; left out, where the run stands.

        Raises:
            ExecutionError: X101, there is no such node; X111, there is no such step or event.
        """
        if at is not None and not isinstance(at, str):
            refuse_step(self, at)
        return why_not_of(self.engine, behavior, at)

    def subscribe(self, listener: Listener, to: str = "step") -> Callable[[], None]:
        """Call `listener` at a moment (step, error, end, change, token); return the function that ends it."""
        return self.hooks.add(to, listener)

    def controls(self) -> Any:
        """Return new ipywidgets controls bound to this session: buttons, a slider, the box for an answer."""
        from agentnb.display import session_controls

        return session_controls(self)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Any:
        from agentnb.display import session_bundle

        return session_bundle(self, include, exclude)

    def __repr__(self) -> str:
        """Return one line: where it stands."""
        following = f", next {self.current!r}" if self.current else ""
        following += f", held {self.held_at}" if self.held_at else ""
        return f"<Session {self.name!r}: {self.status} after step {self.position}{following}>"
