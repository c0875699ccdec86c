"""The `Session` class: the public API of one run. Each method delegates to one of the parts in `parts.py`."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self

from agentnb.arguments import plain_methods
from agentnb.board.scopes import Board
from agentnb.board.values import ABSENT
from agentnb.display import get_view
from agentnb.engine.control.breakpoints import Breakpoint
from agentnb.engine.control.cursor import Cursor, FrontierEntry, OpenFrame, get_cursor, get_frontier, get_stack
from agentnb.engine.control.listeners import Listener
from agentnb.errors import set_known, warn_caller
from agentnb.recipe.model import Recipe
from agentnb.secrets import masking_for, masks_by
from agentnb.session import run_queries
from agentnb.session.breakpoints import SessionBreakpoints
from agentnb.session.parts import Parts
from agentnb.session.pending import Pending, find_pause, get_pending
from agentnb.session.replay_report import ReplayReport, replay
from agentnb.session.schedules import build_hooks
from agentnb.session.setup import make_run
from agentnb.session.state import State
from agentnb.session.status import Status
from agentnb.session.watches import Watches
from agentnb.text import safe_repr

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

    from agentnb.clock import Clock
    from agentnb.draw.drawing import Drawing
    from agentnb.engine.core.history import Event
    from agentnb.engine.core.run import Run
    from agentnb.engine.persistence.event_log import EventLog
    from agentnb.errors import Problem
    from agentnb.session.causal_chain import Chain
    from agentnb.session.limits import Limits
    from agentnb.session.why import Why
    from agentnb.session.why_not import WhyNot
    from agentnb.trace.trace import SimulationStep, SimulationTrace


@masks_by(lambda session: session._parts.run.tables.secrets)  # noqa: SLF001  (its own)
@plain_methods
class Session:
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

    __slots__ = ("__weakref__", "_parts")

    _parts: Parts

    def __init__(
        self,
        recipe: Recipe,
        inputs: Mapping[str, Any] | object | None = None,
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
            inputs: the first values on the board; for a LangGraph program, anything that its `invoke` takes.
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
        run, limits, initial, warned = make_run(
            recipe, inputs, llm=llm, tools=tools, resources=resources, answers=answers, budget=budget, clock=clock,
            seed=seed, validate_inputs=validate_inputs, strict_expressions=strict_expressions, chaos=chaos,
        )  # fmt: skip
        if warned:
            warn_caller(warned)
        with masking_for(run.tables.secrets):
            state = State(self, run, limits, name or run.plan.recipe.name, initial, run_id)
            self._parts = Parts(state, Session._from_run)
            if hooks is not None:
                state.hooks.add_all(build_hooks(hooks) or {})
            self._parts.persistence.record_new_run(store, durability)

    @classmethod
    def _from_run(cls, *run_and_names: Any) -> Parts:
        """Make a session of a run that exists, and return its parts; the arguments are those of `State`."""
        session = cls.__new__(cls)
        parts = Parts(State(session, *run_and_names), Session._from_run)
        object.__setattr__(session, "_parts", parts)
        return parts

    def __setattr__(self, name: str, value: Any) -> None:
        """Set `speed`.

        Raises:
            AttributeError: the session has no attribute of this name, or it can only be read.
        """
        set_known(self, name, value)

    # -- what it is -------------------------------------------------------------------------------------------------

    @property
    def recipe(self) -> Recipe:
        """The recipe that it runs, with agents that were passed as tools expanded."""
        return self._parts.state.recipe

    @property
    def name(self) -> str:
        """The name of this run: the `name` argument, else the recipe's."""
        return self._parts.state.name

    @property
    def inputs(self) -> dict[str, Any]:
        """The inputs, as a copy that the session has made for itself."""
        return self._parts.state.inputs

    @property
    def run_id(self) -> str:
        """The id of this run: the `run_id` argument, else one that sorts by time, generated on first access."""
        return self._parts.state.run_id

    @property
    def simulated(self) -> tuple[str, ...]:
        """The nodes with simulated answers: they have no implementation, and no model was passed."""
        return self._parts.state.simulated

    # -- forwards -----------------------------------------------------------------------------------------------

    def step(self, n: int = 1) -> SimulationStep | None:
        """Run the next `n` activations; return the last step, or None if the run cannot continue (see `status`).

        A failure ends the call; each further call retries the failed node.
        """
        return self._parts.execution.step(n)

    def step_over(self) -> SimulationStep | None:
        """Run until the next activation has left its frame: one step for a leaf, up to its end for a composite node.

        In a reactive run, until its event is delivered to all listeners. It stops where `run` does.
        """
        return self._parts.execution.step_over()

    def step_out(self) -> SimulationStep | None:
        """Run until the frame around the next node is left; from the root, to the end. It stops where `run` does."""
        return self._parts.execution.step_out()

    def step_into(self) -> SimulationStep | None:
        """Like `step`, but stop inside the node as well: at events, and before and after each call.

        The status is then `in_flight`, and `held_at` says where. The next `step_into` continues to the next stop;
        `step` and `run` finish the node.
        """
        return self._parts.execution.step_into()

    def run(self, until: Any = None, max_steps: int | None = None) -> SimulationTrace:
        """Step until a breakpoint, the end, a question, a limit, `until` or `max_steps`; return the trace.

        Args:
            until: a node id, a step number, a condition text, JsonLogic, or a callable of the board.
        """
        return self._parts.execution.run(until, max_steps)

    async def astep(self, n: int = 1) -> SimulationStep | None:
        """Like `step`, for async code: the event loop keeps running while it is awaited.

        `pause()` ends it before its next step; `back`, `goto` and `stop` end it at once. Sync tools, systems and models
        are called in a thread, with the context variables of the caller, and so are functions that have been slow
        before.
        """
        return await self._parts.async_execution.step(n)

    async def astep_over(self) -> SimulationStep | None:
        """Like `step_over`, for async code; see `astep`."""
        return await self._parts.async_execution.step_over()

    async def astep_out(self) -> SimulationStep | None:
        """Like `step_out`, for async code; see `astep`."""
        return await self._parts.async_execution.step_out()

    async def astep_into(self) -> SimulationStep | None:
        """Like `step_into`, for async code; see `astep`. Coroutines of the node run on a separate loop."""
        return await self._parts.async_execution.step_into()

    async def arun(self, until: Any = None, max_steps: int | None = None) -> SimulationTrace:
        """Like `run`, for async code; see `astep`."""
        return await self._parts.async_execution.run(until, max_steps)

    # -- in the background ------------------------------------------------------------------------------------------

    def start(self, until: Any = None) -> Self:
        """Run on the kernel's loop while other cells and buttons work; see `pause()` and `await wait()`.

        No effect if the run is already running, after a person's answer.

        Args:
            until: as in `run`; if the run asks a person, it continues to the same stop after the answer.
        """
        self._parts.background.start(until)
        return self

    async def wait(self, timeout: float | None = None) -> SimulationTrace:  # noqa: ASYNC109  (a public name)
        """Wait until the run started by `start()` has stopped; return the trace.

        Raises:
            TimeoutError: it still runs after `timeout` seconds; it is not stopped.
        """
        await self._parts.background.wait(timeout)
        return self.trace

    def pause(self) -> Self:
        """Begin no further step; steps in flight end and are committed."""
        self._parts.background.pause()
        return self

    def stop(self) -> Self:
        """Pause, and cancel the steps in flight, which run again when stepped."""
        self._parts.background.stop()
        return self

    @property
    def speed(self) -> float | None:
        """The most steps per second that a run started by `start()` makes; None: no limit.

        May be set during the run. With a speed set, branches alternate, one step at a time.

        Raises:
            ExecutionError: X128, it is not a number above 0.
        """
        return self._parts.background.speed

    @speed.setter
    def speed(self, steps: float | None) -> None:
        self._parts.background.set_speed(steps)

    # -- backwards ----------------------------------------------------------------------------------------------

    def back(self, n: int = 1) -> Self:
        """Go back `n` steps, at most to the start; nothing runs, and no step is lost."""
        self._parts.navigation.back(n)
        return self

    def goto(self, k: int) -> Self:
        """Go to the position after step `k` (0: before the first).

        Raises:
            ExecutionError: X111, there is no such step.
        """
        self._parts.navigation.goto(k)
        return self

    def run_back(self, until: Any = None) -> SimulationTrace:
        """Go back until a breakpoint, a next node, a step number or a condition is met, else to the start.

        Breakpoints count no hits, because nothing runs.
        """
        return self._parts.navigation.run_back(until)

    async def arun_back(self, until: Any = None) -> SimulationTrace:
        """Like `run_back`, for async code: `pause()` ends it at the position reached by then."""
        return await self._parts.navigation.arun_back(until)

    def reset(self) -> Self:
        """Restart from the inputs; the run so far stays in `forks`."""
        self._parts.forks.reset()
        return self

    # -- position and status ------------------------------------------------------------------------------------------

    @property
    def position(self) -> int:
        """The number of the last step up to the current position; 0 before the first."""
        return self._parts.state.run.position

    @property
    def current(self) -> str | None:
        """The id of the next node; None at the end."""
        return run_queries.get_next_node(self._parts.state.run)

    @property
    def frontier(self) -> tuple[FrontierEntry, ...]:
        """The next activations in order, each with the reason why it is next."""
        return get_frontier(self._parts.state.run)

    @property
    def stack(self) -> tuple[OpenFrame, ...]:
        """The call stack: the open frames around the next node, outermost first."""
        return get_stack(self._parts.state.run)

    @property
    def cursor(self) -> Cursor:
        """The current position of the run, as an immutable value."""
        return get_cursor(self._parts.state.run)

    @property
    def status(self) -> Status:
        """The status of the run, in one word, with the `used` and `left` amounts of its budget."""
        state = self._parts.state
        return Status(state.status, state.run, state.limits)

    @property
    def stopped_by(self) -> Breakpoint | None:
        """The breakpoint that stopped the run here; None if none did."""
        return self._parts.state.stopped_by

    @property
    def error(self) -> Problem | None:
        """The failure at the current position, or the question that cannot be answered here; else None."""
        return run_queries.get_problem(self._parts.state.run)

    @property
    def cause(self) -> BaseException | None:
        """The exception that a node raised, if the run is at its failure."""
        failure = run_queries.get_failure(self._parts.state.run)
        return None if failure is None else failure[1].error

    @property
    def held_at(self) -> str:
        """Where the step in flight is paused inside its node: before or after a call, or at an event; else empty."""
        return find_pause(self._parts.state.run)

    @property
    def board(self) -> Board:
        """The blackboard at the current position, read-only: `board["a.b"]` reads a path."""
        return self._parts.state.board

    @property
    def events(self) -> tuple[Event, ...]:
        """The events emitted so far by nodes and people, in order, including those of a step in flight."""
        return run_queries.get_events(self._parts.state.run)

    @property
    def trace(self) -> SimulationTrace:
        """The live trace of this run: it grows with the run."""
        return self._parts.state.trace

    # -- interventions ----------------------------------------------------------------------------------------------

    def edit(self, changes: Mapping[str, Any]) -> Self:
        """Write values by path at the current position (`ABSENT` deletes); an edit in the past starts a branch.

        Raises:
            BoardError: the board rejects a value or a path; nothing is written then.
        """
        self._parts.interventions.edit(changes)
        return self

    def set_next(self, node: str) -> Self:
        """Make `node` the next one.

        Raises:
            ExecutionError: X101, there is no such node; X107, its frame is not open.
        """
        self._parts.interventions.set_next(node)
        return self

    def retry(self) -> SimulationStep | None:
        """Run the failed node again as a new step, or a step that the store could not save.

        A node that waits for an answer or an approval runs again without one; what it was told before stays.
        """
        return self._parts.interventions.retry()

    def skip(self, writes: Mapping[str, Any] | None = None) -> SimulationStep | None:
        """Skip the next node and continue as if it had written these values.

        Raises:
            ExecutionError: X108, there is no next node; X121, the recipe's requirements do not hold yet.
        """
        return self._parts.interventions.skip(writes)

    def emit(self, type: str, payload: Any = None, actor: str = "user", **options: Any) -> Self:
        """Emit an event from outside, for the nodes that listen to its type.

        Args:
            payload: what the event carries, a value that a board can hold.
            actor: who emits it.
            options: further fields of the event: id, cause, time, mark; see agentnb.engine.core.history.Event.
        """
        self._parts.interventions.emit(type, payload, actor, options)
        return self

    def set_budget(self, **limits: Any) -> Self:
        """Set limits of the budget, `set_budget(max_steps=200)`; None removes one. An exhausted run can then continue.

        Raises:
            ExecutionError: X201 to X203, a limit has an unknown name or an invalid value.
        """
        self._parts.interventions.set_budget(limits)
        return self

    # -- people -------------------------------------------------------------------------------------------------

    @property
    def pending(self) -> tuple[Pending, ...]:
        """The pending interventions: questions, approvals and paused calls."""
        return get_pending(self._parts.state.run)

    def answer(self, value: Any, node: str | None = None) -> SimulationStep | None:
        """Answer the waiting node and commit its step; a run started by `start()` then continues.

        Args:
            value: the answer.
            node: the node that asks; by default that of the first question. A value that was masked when the run was
                stored is supplied by its path, in place of a node.

        Raises:
            ExecutionError: X115, no question is pending; X142, only masked values are pending, and no path is given;
                X144, X147, the answer does not fit the question, which stays pending.
        """
        return self._parts.interventions.answer(value, node)

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
        return self._parts.interventions.decide("approve", id, by)

    def deny(self, id: str | None = None, reason: str = "", by: str | None = None) -> SimulationStep | None:
        """Deny a pending request; the node receives the reason. `id` and `by` are those of `approve`.

        Raises:
            ExecutionError: X115, no approval is pending.
        """
        return self._parts.interventions.decide("deny", id, by, reason)

    def change(self, id: str, arguments: Mapping[str, Any] | None = None, answer: Any = ABSENT) -> Self:
        """Change a paused call: its arguments or its answer (before the call is sent, an answer replaces it).

        `id` is that of the call in `pending`. The arguments of a pending approval may be changed too: `approve` then
        applies the changed request.

        Raises:
            ExecutionError: X115, there is no such call or approval; X126, X127, this part of an approval cannot be
                changed.
        """
        self._parts.interventions.change(id, arguments, answer)
        return self

    # -- breakpoints, watches, listeners -------------------------------------------------------------------------------

    @property
    def breakpoints(self) -> SessionBreakpoints:
        """The breakpoints: `add`, `remove`, `clear`, `save`, `load`, `to_frame`."""
        return self._parts.state.breakpoints

    def watch(self, expression: Any) -> Self:
        """Watch a path of the board, a condition text, JsonLogic, or a callable; `watches` shows its value here."""
        self.watches.add(expression)
        self._parts.notifications.save_and_notify()
        return self

    @property
    def watches(self) -> Watches:
        """The watched conditions, each with its value at the current position."""
        return self._parts.state.watches

    def subscribe(
        self, listener: Listener, to: Literal["step", "error", "end", "change", "token"] = "step"
    ) -> Callable[[], None]:
        """Call `listener` at each moment of the sort that `to` names; return a function that unsubscribes it."""
        return self._parts.state.hooks.add(to, listener)

    # -- forks --------------------------------------------------------------------------------------------------

    def fork(self, at: int | str | None = None, name: str | None = None, edit: Mapping[str, Any] | None = None, *,
             recipe: Recipe | None = None, llm: Any = None, tools: Mapping[str, Callable[..., Any]] | None = None,
             note: str = "", expect: Any = None) -> Session:  # fmt: skip
        """Return a new session that shares the steps up to `at` (a step number or an event id; default: here).

        Args:
            name: shown by `tree()` and `nb.runs`.
            edit: path -> value, changes to the fork's board before its first step.
            recipe: another version of the recipe to continue with; it must have the nodes of the shared steps, in
                place.
            llm: another model, as for a Session.
            tools: name -> callable, in place of tools of the session.
            note: why the fork is made; `tree()` shows it.
            expect: a condition, as `when` of a breakpoint, that the fork should satisfy; `tree()` and `nb.compare`
                state whether it does. Neither is stored with the run.

        Raises:
            ExecutionError: X111, there is no such step or event; X145, `expect` reads a key that nothing writes.
            StoreError: L433, the shared steps do not fit the other recipe.
            RecipeError: the other recipe has errors, or a tool is missing.
        """
        return self._parts.forks.fork(at, name, edit, recipe, llm, tools, note, expect).state.session

    @property
    def note(self) -> str:
        """Why this fork was made: the `note` argument of `fork`."""
        return self._parts.state.note

    @property
    def expectation_holds(self) -> bool | None:
        """Whether the condition `expect` of this fork holds at the current position; None if it has none."""
        state = self._parts.state
        return None if state.expectation is None else state.is_true(state.expectation)

    @property
    def parent(self) -> Session | None:
        """The session that this one was forked from; None if it is not a fork."""
        return self._parts.state.parent

    @property
    def forks(self) -> tuple[Session, ...]:
        """The forks of this session, and the branches it abandoned when it continued elsewhere."""
        return tuple(parts.state.session for parts in self._parts.forks.all())

    def tree(self) -> str:
        """Return this session and all its forks, one a line."""
        return self._parts.forks.tree()

    def replay(
        self, from_step: int = 0, *, recipe: Recipe | None = None, strict: Literal["path", "values", "reads"] = "values"
    ) -> ReplayReport:
        """Replay the steps up to here on the recorded answers and report the differences.

        The answers of tools, models and people, and interventions, come from the record; none of them is called.
        Functions, conditions and behaviors run again, with what they do to the world by themselves: a request or a
        payment in the code of a function is made again. The session does not change.

        Args:
            from_step: begin with the recorded state after this step.
            recipe: another version of the recipe to replay with.
            strict: compare nodes, phases, edges and failures (`path`); also writes, events, the calls sent and failure
                messages (`values`); also reads (`reads`).

        Raises:
            ExecutionError: L431, there is no such level; L432, the run is not past such a step.
            RecipeError: the other recipe has errors.
        """
        return replay(self._parts.state, self._parts.rollback, from_step, recipe, strict)

    # -- explanations -----------------------------------------------------------------------------------------------

    def who_wrote(self, path: str, at: int | None = None) -> int | None:
        """Return the step that last *changed* the value at a path; 0 for the inputs, None if nothing wrote it.

        Paths name keys, fields and positions: `user.name`, `messages.3.content`, `messages[3].content`. A step that
        wrote `messages` but left `messages[3]` equal did not change `messages[3]`.

        Raises:
            ExecutionError: X145, nothing writes a key of this name; X111, there is no such step.
        """
        return self._parts.explanations.who_wrote(path, at)

    def blame(self, path: str, at: int | None = None) -> pd.DataFrame:
        """Return every change of the value at a path, in order, as a DataFrame: step, node, actor, old, new.

        Args:
            path: as for `who_wrote`.
            at: changes up to this step; default: the current position.

        Returns:
            One row per change. `actor` is `node`, `person` or `input`; `node` is NA for the last two. `old` and `new`
            are the values at the path; NA where there was none.

        Raises:
            ExecutionError: X145, nothing writes a key of this name; X111, there is no such step.
        """
        return self._parts.explanations.blame(path, at)

    def slice(self, path: str, at: int | None = None) -> Any:
        """Return the backward slice of a value: the writes, reads, conditions and calls that led to it, as a Slice.

        Args:
            path: a key of the board, or a path to a value in it.
            at: after which step; default: the current position.

        Raises:
            ExecutionError: X145, nothing writes a key of this name; X111, there is no such step.
        """
        return get_view("slice")(self, path, at)

    def counterfactuals(
        self,
        ok: Callable[[Session], Any],
        at: int | None = None,
        candidates: Mapping[str, Iterable[Any]] | None = None,
        max_forks: int = 100,
        effects: bool = False,
        *,
        samples: int | None = None,
        budget: Mapping[str, Any] | None = None,
        progress: bool = True,
    ) -> Any:
        """Return which single changes of the past make `ok(fork)` true, as a DataFrame, the most telling first.

        Each change of a recorded answer (`call`), a written value (`write`), a route or an input is made in a fork that
        then runs. No tool, model or person is called: a call of the same node with the same name and arguments gets
        its recorded answer, and a fork ends at the first call that is not in the record. Functions, conditions and
        behaviors run again in each fork, with what they do to the world by themselves. The session and its store do not
        change.

        The columns are step, node, kind, change, outcome, steps_after, would_call. `would_call` has the calls at which
        the fork ended, as text. `outcome` is whether `ok` held at the end; it is NA, unknown, if the fork ended at a
        call, except that it is True if `ok` held there and after no step of the recorded run.

        Args:
            ok: called with each fork, at its end: whether it is right. If it raises, the fork is wrong.
            at: changes of later steps are not tried; default: the current position.
            candidates: key -> the values to try for it; only these are changed then. Default: values near the
                recorded ones, and those that the key had elsewhere.
            max_forks: how many changes are tried.
            effects: call tools and models for real where a call is not in the record. People are not asked.
            samples: with effects, repeat each fork that called something this many times. More columns: right (the
                share of right samples), low and high (its 95 % interval), samples, and missing (samples that the budget
                did not allow); outcome: more than half were right.
            budget: with effects, limits of what models are asked for in all forks together: max_llm_calls, max_tokens,
                max_cost_usd; max_seconds limits the whole call.
            progress: with samples, show a progress bar, in a notebook or on a terminal.

        Raises:
            ExecutionError: A116, samples or the budget are invalid, or passed without effects; A118, `ok` raised for
                every fork; L450, the run is read-only; X111, there is no such step; X145, nothing writes a candidate's
                key.
        """
        return get_view("counterfactuals")(self, ok, at, candidates, max_forks, effects, samples, budget, progress)

    def find(self, condition: Any) -> list[int]:
        """Return every step after which a condition holds, later ones included; nothing runs again.

        Args:
            condition: as `when` of a breakpoint; one that cannot be evaluated after a step does not hold there.

        Raises:
            ExecutionError: X145, it reads a key that nothing writes; X314, it can never give an answer.
            RecipeError: the condition is invalid.
        """
        steps: list[int] = get_view("find")(self, condition)
        return steps

    def why(self, at: int | None = None) -> Why:
        """Return why a step (default: the last one) led to the next: each condition with the values that it read.

        Raises:
            ExecutionError: X111, there is no such step.
        """
        return self._parts.explanations.why(at)

    def why_not(self, behavior: str, at: int | str | None = None) -> WhyNot:
        """Return why a node or behavior did not run: a missing event, a delivery still in the queue, edges not taken.

        Args:
            at: a step number or an event id; default: the current position.

        Raises:
            ExecutionError: X101, there is no such node; X111, there is no such step or event.
        """
        return self._parts.explanations.why_not(behavior, at)

    def chain(self, id: str) -> Chain:
        """Return the causes and effects of an event, an object, a relation, a patch or an approval.

        An object's chain has its creation, all its patches, the creation and removal of its relations, and its own
        removal, each with its causes.

        Raises:
            ExecutionError: X161, no event so far concerns it.
        """
        return self._parts.explanations.chain(id)

    # -- pictures -----------------------------------------------------------------------------------------------

    def draw(self, board: bool = True, direction: str = "TB", collapsed: Collection[str] = ()) -> Drawing:
        """Return the recipe's drawing with the state of the run.

        `board`, `direction` and `collapsed` are those of `Recipe.draw`.
        """
        return self._parts.pictures.draw(board, direction, collapsed)

    def draw_objects(self, at: int | None = None) -> Drawing:
        """Return the drawing of the object graph, with the changes of the last step highlighted.

        Args:
            at: after which step; default: the current position, including the work of a step in flight.

        Raises:
            ExecutionError: X160, this is not a run of behaviors; X111, there is no such step.
        """
        return self._parts.pictures.draw_objects(at)

    def to_html(self, path: str | Path | None = None, *, quiz: Sequence[Any] = ()) -> str | None:
        """Write the run as one HTML page that needs no kernel; `path` and `quiz` as in `SimulationTrace.to_html`.

        The page also has what only the recipe knows, such as the source of functions.
        """
        text: str | None = get_view("page")(self, path, quiz=quiz)
        return text

    def controls(self) -> Any:
        """Return new ipywidgets controls bound to this session: buttons, a slider, an answer box."""
        return get_view("controls")(self)

    def serve_mcp(self, *, changes: bool = False, name: str | None = None, port: int = 0) -> Any:
        """Serve this session to a coding assistant on localhost, by MCP; return the server: `url`, `calls`, `close()`.

        The assistant sees what the cockpit shows, and people see in the cockpit what the assistant does. Its calls are
        made between cells, on the kernel's loop.

        Args:
            changes: whether it may move the run, edit, answer and fork; else it only reads. What it changes is recorded
                under its own name (`actor` in the frame of interventions).
            name: that name; by default the one that the assistant's program gives itself.
            port: a port of 127.0.0.1; 0: any that is free.

        Raises:
            ExecutionError: X530, the extra `mcp` is not installed; X531, no event loop runs here; X532, the port cannot
                be used.
        """
        return get_view("mcp")(self, changes=changes, name=name, port=port)

    # -- store --------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str] | EventLog | None = None) -> str:
        """Save the run: to a file or store of its own, else to its current store; return where.

        Later steps are included when it is saved again. The file then holds everything: a copy of it alone is whole.

        Raises:
            StoreError: L451, no place is named and the run has no store; or it cannot be saved there.
        """
        return self._parts.persistence.save(path)

    def close(self) -> None:
        """Save all unsaved changes and release the run for other writers; here it becomes read-only.

        The file then holds everything: a copy of it alone is whole. It is closed unless another session of this process
        writes to it.

        Raises:
            ExecutionError: X112, it is running.
            StoreError: it cannot be saved.
        """
        self._parts.persistence.close()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Any:
        return get_view("cockpit")(self)._repr_mimebundle_(include=include, exclude=exclude)

    def _ipython_display_(self) -> None:
        get_view("cockpit")(self)._ipython_display_()

    def _display_(self) -> Any:
        """Return the cockpit, for marimo."""
        return get_view("cockpit")(self)

    def __repr__(self) -> str:
        """Return a one-line summary of the current position."""
        following = f", next {safe_repr(self.current, 200)}" if self.current else ""
        following += f", held {self.held_at}" if self.held_at else ""
        return f"<Session {safe_repr(self.name, 200)}: {self.status} after step {self.position}{following}>"


def make_session(run: Run, limits: Limits, name: str, inputs: dict[str, Any], run_id: str | None = None) -> Session:
    """Return a session of a run that exists: read from a store, or from the recording of another system."""
    return Session._from_run(run, limits, name, inputs, run_id).state.session  # noqa: SLF001  (its own)


__all__ = ["Session", "make_session"]
