"""The `Session` class: the public API of one run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Literal, Self

from agentnb.arguments import plain_methods
from agentnb.board.scopes import Board
from agentnb.board.values import ABSENT
from agentnb.display import view
from agentnb.engine.control import interventions
from agentnb.engine.control.budget import Budget
from agentnb.engine.control.cursor import Cursor, Next, OpenFrame, cursor_of, frontier_of, stack_of
from agentnb.engine.control.listeners import Listener
from agentnb.engine.core.run import GO
from agentnb.engine.core.time_travel import open_tip
from agentnb.errors import ExecutionError, StoreError
from agentnb.expressions.paths import parse_path
from agentnb.session import run_queries
from agentnb.session.async_execution import Awaited
from agentnb.session.checks import check_paths, not_running, refuse_step
from agentnb.session.pending import (
    Kind,
    Pending,
    change,
    changed_in,
    check_answer,
    flight_of,
    held,
    held_at,
    leave_of,
    no_answer,
    pending_of,
)
from agentnb.session.pictures import Graphs
from agentnb.session.replay_report import ReplayReport, replayed
from agentnb.session.status import Standing
from agentnb.session.why import Why, why_of
from agentnb.session.why_not import WhyNot, why_not_of
from agentnb.text import safe_repr
from agentnb.world.human_input import verdict

if TYPE_CHECKING:
    from agentnb.engine.core.history import Event
    from agentnb.errors import Problem
    from agentnb.recipe.model import Recipe
    from agentnb.session.last_writers import Writer
    from agentnb.trace.trace import SimulationStep


@plain_methods
class Session(Awaited, Graphs):
    """One run of a recipe: step it, go back, edit, fork; every step stays in its history.

    A failure of a recipe is never raised: the run stops at the failed node, `status` is `failed` and `error` says why.

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

    # -- interventions ------------------------------------------------------------------------------------------------

    def retry(self) -> SimulationStep | None:
        """Run the failed node again as a new step. Also retries a step that the store could not save."""
        if self._unfit is not None:
            with suppress(StoreError):  # its codec may have been registered since
                self.ready_to_keep()
        if self._unfit is not None:
            self.goto(self._unfit - 1)
        return self.step()

    def skip(self, writes: Mapping[str, Any] | None = None) -> SimulationStep | None:
        """Skip the next node and continue as if it had written these values.

        Raises:
            ExecutionError: X108, there is no next node; X121, the recipe's requirements do not hold yet.
        """
        problem = run_queries.problem_of(self.engine)
        if problem is not None and problem.code == "X121":
            raise ExecutionError(problem)
        self._act("skip()")
        self._safely(lambda: interventions.skip(self.engine, writes or {}))
        self.changed()
        return self.trace.steps[self.engine.position - 1]

    def edit(self, changes: Mapping[str, Any]) -> Self:
        """Write values by path at the current position (`ABSENT` deletes); an edit in the past starts a branch.

        Raises:
            BoardError: the board rejects a value or a path; nothing is written then.
        """
        self._act("edit()", lands=False)
        self._safely(lambda: interventions.edit(self.engine, changes))
        self.changed()
        return self

    def set_next(self, node: str) -> Self:
        """Make `node` the next one.

        Raises:
            ExecutionError: X101, there is no such node; X107, its frame is not open.
        """
        self._act("set_next()")
        self._safely(lambda: interventions.set_next(self.engine, node))
        self.changed()
        return self

    def set_budget(self, **limits: Any) -> Self:
        """Set limits of the budget, `set_budget(max_steps=200)`; None removes one. An exhausted run can then continue.

        Raises:
            ExecutionError: X201 to X203, a limit has an unknown name or an invalid value.
        """
        not_running(self, "set_budget()")
        self.limits.change(self.engine, Budget.of(limits, asdict(self.limits.budget)))
        self._arm()
        self.changed()
        return self

    def emit(self, type: str, payload: Any = None, actor: str = "user", **words: Any) -> Self:
        """Emit an event from outside, for the nodes that listen to its type.

        Args:
            words: further fields of the event: id, cause, time, mark; see agentnb.engine.core.history.Event.
        """
        self._act("emit()", lands=False)
        open_tip(self.engine, amend=True)
        interventions.note_held(self.engine)
        event = interventions.emit(self.engine, type, payload, actor, **words)
        self.changed()
        if self.recipe.reactive is not None:
            self.recipe.reactive.accepted(self.engine, event)
        return self

    def answer(self, value: Any, node: str | None = None) -> SimulationStep | None:
        """Answer the waiting node and commit its step; a run started by `start()` then continues.

        If a value was masked when the run was stored, the answer is that value and `node` is its path.

        Raises:
            ExecutionError: X115, no question is pending; X144, X147, the answer does not fit the question, which stays
                pending.
        """
        not_running(self, "answer()")
        if self._fills(value, node):
            self.changed()
            return None
        return self._supply_answer("answer", node, "answer", value)

    def approve(self, id: str | None = None, by: str | None = None) -> SimulationStep | None:
        """Approve a pending request and commit its step; a run started by `start()` then continues.

        A request that is pending on the board is executed at once, as an intervention at the current position, without
        a step to commit.

        Args:
            id: the id of an item in `pending`, or its node; by default the first approval.
            by: who made the decision.

        Raises:
            ExecutionError: X115, no approval is pending.
        """
        return self._decide("approve", id, by)

    def deny(self, id: str | None = None, reason: str = "", by: str | None = None) -> SimulationStep | None:
        """Deny a pending request, as `approve` approves it; the node receives the reason.

        Raises:
            ExecutionError: X115, no approval is pending.
        """
        return self._decide("deny", id, by, reason)

    def _decide(self, act: str, wanted: str | None, by: str | None, reason: str = "") -> SimulationStep | None:
        """Approve or deny a request of a node, or one on the board, which ends no step."""
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
        return self._supply_answer("approval", wanted, act, said, by)

    def _supply_answer(
        self, kind: Kind, wanted: str | None, act: str, value: Any, by: str | None = None
    ) -> SimulationStep | None:
        """Supply the awaited value and finish the pending step, to which the intervention is recorded."""
        not_running(self, f"{act}()")
        self.ready_to_keep()
        self._take_up(kind, wanted)
        flight = held(self.engine, kind, wanted)
        hold = flight.hold
        assert hold is not None
        check_answer(hold, value)
        hold.answer, hold.answered, hold.go, self.stopped_by = value, True, True, None
        before, codes = self.engine.position, list[int]()
        self._safely(lambda: codes.append(self._one(flight)))
        interventions.note(self.engine, act, flight.act.node.id, ABSENT, value, by or "user")
        self.changed()
        step = self._last(before)
        if codes == [GO]:
            self.live.go_on()
        return step

    def change(self, id: str, arguments: Mapping[str, Any] | None = None, answer: Any = ABSENT) -> Self:
        """Change a paused call: its arguments or its answer (before the call is sent, an answer replaces it).

        The arguments of a pending approval may be changed too: `approve` then applies the changed request.

        Raises:
            ExecutionError: X115, there is no such call or approval; X126, X127, this part of an approval cannot be
                changed.
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
        interventions.note(
            self.engine, "change", flight.act.node.id, ABSENT, answer if arguments is None else dict(arguments)
        )
        self.changed()
        return self

    def fork(self, at: int | str | None = None, name: str | None = None, edit: Mapping[str, Any] | None = None, *,
             recipe: Recipe | None = None, llm: Any = None,
             tools: Mapping[str, Callable[..., Any]] | None = None) -> Session:  # fmt: skip
        """Return a new session that shares the steps up to `at` (a step number or an event id; default: here).

        Args:
            recipe: another version of the recipe to continue with; it must have the nodes of the shared steps, in
                place.

        Raises:
            ExecutionError: X111, there is no such step or event.
            StoreError: L433, the shared steps do not fit the other recipe.
            RecipeError: the other recipe has errors, or a tool is missing.
        """
        not_running(self, "fork()")
        return self.branches.fork(at, name, edit, recipe, llm, tools)

    def replay(
        self, from_step: int = 0, *, recipe: Recipe | None = None, strict: Literal["path", "values", "reads"] = "values"
    ) -> ReplayReport:
        """Replay the steps up to here on the recorded answers and report the differences. No effect is performed.

        Functions, conditions and behaviors run again; the answers of tools, models and people, and interventions, come
        from the record. The session does not change.

        Args:
            from_step: begin with the recorded state after this step.
            recipe: another version of the recipe to replay with.
            strict: compare nodes, phases, edges and failures (`path`); also writes, events, the calls sent and failure
                messages (`values`); also reads (`reads`).

        Raises:
            ExecutionError: L431, there is no such level; L432, the run is not past such a step.
            RecipeError: the other recipe has errors.
        """
        return replayed(self, from_step, recipe, strict)

    @property
    def forks(self) -> tuple[Session, ...]:
        """The forks of this session, and the branches it abandoned when it continued elsewhere."""
        return self.branches.all()

    def tree(self) -> str:
        """Return this session and all its forks, one a line."""
        return self.branches.tree()

    # -- queries ------------------------------------------------------------------------------------------------------

    @property
    def position(self) -> int:
        """The number of the last step up to the current position; 0 before the first."""
        return self.engine.position

    @property
    def frontier(self) -> tuple[Next, ...]:
        """The next activations in order, each with the reason why it is next."""
        return frontier_of(self.engine)

    @property
    def stack(self) -> tuple[OpenFrame, ...]:
        """The call stack: the open frames around the next node, outermost first."""
        return stack_of(self.engine)

    @property
    def cursor(self) -> Cursor:
        """The current position of the run, as an immutable value."""
        return cursor_of(self.engine)

    @property
    def status(self) -> Standing:
        """The status of the run, in one word, with the `used` and `left` amounts of its budget."""
        if self.live.moves:
            return Standing("pausing" if self.engine.halt.on else "running", self.engine, self.limits)
        return Standing(run_queries.status_of(self.engine, self.limits), self.engine, self.limits)

    @property
    def error(self) -> Problem | None:
        """The failure at the current position, or the question that cannot be answered here; else None."""
        return run_queries.problem_of(self.engine)

    @property
    def cause(self) -> BaseException | None:
        """The exception that a node raised, if the run is at its failure."""
        found = run_queries.failure_of(self.engine)
        return None if found is None else found[1].error

    @property
    def board(self) -> Board:
        """The blackboard at the current position, read-only: `board["a.b"]` reads a path."""
        return self._view

    @property
    def pending(self) -> tuple[Pending, ...]:
        """The pending interventions: questions, approvals and paused calls."""
        return pending_of(self.engine)

    @property
    def held_at(self) -> str:
        """Where the step in flight is paused inside its node: before or after a call, or at an event; else empty."""
        return held_at(self.engine)

    @property
    def events(self) -> tuple[Event, ...]:
        """The events emitted so far by nodes and people, in order, including those of a step in flight."""
        run = self.engine
        flying = (event for flight in run.flights.values() for event in flight.act.work.emitted)
        return tuple(sorted((*run.events(), *flying), key=lambda event: event.seq))

    def watch(self, expression: Any) -> Self:
        """Watch a path of the board, a condition text, JsonLogic, or a callable; `watches` shows its value here."""
        self.watches.add(expression)
        self.changed()
        return self

    def who_wrote(self, path: str, at: int | None = None) -> int | None:
        """Return the step that wrote the value at a path; 0 for the inputs, None if nothing wrote it.

        Raises:
            ExecutionError: X145, nothing writes a key of this name.
        """
        if problems := [*check_paths(self, [parse_path(path)], "session.who_wrote()")]:
            raise ExecutionError(*problems)
        return run_queries.who_wrote(self.engine, path, self.engine.position if at is None else at)

    def slice(self, path: str, at: int | None = None) -> Any:
        """Return the backward slice of a value: the writes, reads, conditions and calls that led to it, as a Slice.

        Args:
            at: after which step; default: the current position.

        Raises:
            ExecutionError: X145, nothing writes a key of this name; X111, there is no such step.
        """
        return view("slice")(self, path, at)

    def find(self, condition: Any) -> list[int]:
        """Return every step after which a condition holds, later ones included; nothing runs again.

        Args:
            condition: as `when` of a breakpoint; one that cannot be evaluated after a step does not hold there.

        Raises:
            ExecutionError: X145, it reads a key that nothing writes; X314, it can never give an answer.
            RecipeError: the condition is invalid.
        """
        found: list[int] = view("find")(self, condition)
        return found

    def writers(self) -> dict[str, Writer]:
        """Return the last writer of each key: the step and its node; "" for the inputs, None for a person's edit."""
        return self._writers.of(self.engine, self._view)

    def why(self, at: int | None = None) -> Why:
        """Return why a step (default: the last one) led to the next: each condition with the values that it read.

        Raises:
            ExecutionError: X111, there is no such step.
        """
        return why_of(self.engine, at)

    def why_not(self, behavior: str, at: int | str | None = None) -> WhyNot:
        """Return why a node did not run: a missing event, a delivery still in the queue, or edges not taken.

        Args:
            at: a step number or an event id; default: the current position.

        Raises:
            ExecutionError: X101, there is no such node; X111, there is no such step or event.
        """
        if at is not None and not isinstance(at, str):
            refuse_step(self, at)
        return why_not_of(self.engine, behavior, at)

    def subscribe(self, listener: Listener, to: str = "step") -> Callable[[], None]:
        """Call `listener` at a moment (step, error, end, change, token); return a function that unsubscribes it."""
        return self.hooks.add(to, listener)

    def controls(self) -> Any:
        """Return new ipywidgets controls bound to this session: buttons, a slider, an answer box."""
        return view("controls")(self)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Any:
        return view("cockpit")(self)._repr_mimebundle_(include=include, exclude=exclude)

    def __repr__(self) -> str:
        """Return a one-line summary of the current position."""
        following = f", next {safe_repr(self.current, 200)}" if self.current else ""
        following += f", held {self.held_at}" if self.held_at else ""
        return f"<Session {safe_repr(self.name, 200)}: {self.status} after step {self.position}{following}>"
