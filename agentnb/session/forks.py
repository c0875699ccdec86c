"""Forks: sessions that share earlier steps, and the branches that a session has abandoned."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import takewhile
from threading import RLock
from typing import TYPE_CHECKING, Any

from agentnb.engine.core import time_travel
from agentnb.engine.core.run import Run
from agentnb.engine.persistence.event_log import RunQuery, RunRow
from agentnb.engine.persistence.journal import Journal
from agentnb.errors import ExecutionError, Problem, StoreError
from agentnb.expressions.board_queries import compile_question
from agentnb.session import stored_run
from agentnb.session.checks import check_locked, check_not_running, check_recipe, refuse_step
from agentnb.session.limits import Limits
from agentnb.session.recipe_swap import check_shared, convert_budget, make_continued_plan
from agentnb.session.schedules import HooksAPI
from agentnb.session.state import State, get_state
from agentnb.text import safe_repr, safe_str

if TYPE_CHECKING:
    from agentnb.engine.core.interfaces import AnswerSource
    from agentnb.recipe.model import Recipe
    from agentnb.session.background_run import BackgroundRun
    from agentnb.session.callbacks import Callbacks
    from agentnb.session.notifications import Notifications
    from agentnb.session.parts import Parts
    from agentnb.session.persistence import Persistence
    from agentnb.session.rollback import Rollback
    from agentnb.session.session import Session


class Forks:
    """The forks of one session: those created by `fork`, and branches abandoned when it continued elsewhere.

    Args:
        make: makes a session of a run, limits, a name, inputs, a run id and the state of its parent,
            and returns its parts.
    """

    def __init__(
        self, state: State, callbacks: Callbacks, rollback: Rollback, persistence: Persistence,
        background: BackgroundRun, notifications: Notifications, make: Callable[..., Parts],
    ) -> None:  # fmt: skip
        self._state, self._callbacks, self._rollback, self._persistence = state, callbacks, rollback, persistence
        self._background, self._notifications, self._make = background, notifications, make
        self._forks: list[Parts] = []
        self._runs_before_reset: list[Run] = []
        self._known_branches: dict[Run, int] = {}  # number of a run's abandoned branches that have become sessions
        self._lock = RLock()  # the UI may draw in another thread

    def fork(
        self,
        at: int | str | None,
        name: str | None,
        edit: Mapping[str, Any] | None,
        recipe: Recipe | None,
        llm: Any,
        tools: Mapping[str, Callable[..., Any]] | None,
        note: str = "",
        expect: Any = None,
    ) -> Parts:
        """Make a session that shares the steps up to `at`.

        Raises:
            ExecutionError: X111, there is no such step or event; X112, the session is running; X145, `expect` reads a
                key that nothing writes.
            StoreError: L433, the shared steps do not fit the other recipe.
            RecipeError: the other recipe has errors, or a tool is missing.
        """
        state = self._state
        expectation = None if expect is None else compile_question(expect)
        # Collecting the known keys takes time in proportion to their number.
        if expectation and (problems := [*state.check_paths(expectation.reads, "session.fork(expect=...)")]):
            raise ExecutionError(*problems)
        forked = self.trial(at, name, recipe, llm, tools)
        if note or expectation is not None:
            forked.state.note, forked.state.expectation = safe_str(note), expectation
        if state.journal is not None:
            forked.persistence.record_in(stored_run.begin_fork(forked.state, state.journal))
        self._forks.append(forked)
        if edit:
            forked.interventions.edit(edit)
        return forked

    def trial(
        self,
        at: int | str | None,
        name: str | None,
        recipe: Recipe | None,
        llm: Any,
        tools: Mapping[str, Callable[..., Any]] | None,
        answer_source: AnswerSource | None = None,
    ) -> Parts:
        """Make a fork that is neither stored nor listed; errors as of `fork`. `answer_source` answers its calls."""
        state = self._state
        check_not_running(state, "fork()")
        run = state.run
        if at is None:
            step = run.position
        else:
            step = self._step_of(at)
            refuse_step(state, step)
        self._rollback.repair()
        if recipe is not None:
            check_recipe(recipe)
            check_shared(run, recipe, step)
        plan = make_continued_plan(run, recipe, llm, tools)
        forked = time_travel.fork_run(run, plan, step, name)
        forked.answer_source = answer_source
        return self._get_parts(forked, name or f"{state.name}@{step}")

    def _get_parts(self, run: Run, name: str, run_id: str | None = None) -> Parts:
        """Make a session of another run of this one."""
        state, recipe = self._state, run.plan.recipe
        budget = state.limits.budget
        if recipe is not state.recipe:
            budget = convert_budget(budget, state.recipe, recipe)
        fork = self._make(run, Limits(budget), name, state.inputs, run_id, state)
        if state.read_only_reason is not None:
            fork.state.read_only_reason = state.read_only_reason
        if state.warned_in_place:
            fork.state.warned_in_place = True
        if state.replayable_from:
            fork.state.replayable_from = state.replayable_from
        if isinstance(state.hooks.schedules, HooksAPI):
            # A fork has no listeners, but its nodes get the same resources.
            fork.state.hooks.add_all(state.hooks.schedules.providers() or {})
        return fork

    def _step_of(self, at: int | str) -> int:
        if not isinstance(at, str):
            return at
        chain = self._state.run.chain
        ends = [*(after.base for after in chain[1:]), chain[-1].tip]  # later events of a parent may have the same ids
        for history, end in zip(chain, ends, strict=True):
            for event in history.events:
                if event.id == at and event.at <= end:
                    return int(event.at)
        raise ExecutionError(
            Problem("X111", f"there is no event {safe_repr(at)}", f"session {self._state.name!r}",
                    "no event of this run has that id", "see trace.frames.events, or pass a step number")
        )  # fmt: skip

    def reset(self) -> None:
        """Restart the session with a new run from its inputs; the old run stays among the forks."""
        state = self._state
        check_locked(state)
        self._background.stop()
        old = state.run
        run = Run(old.plan, old.dispatcher, clock=old.clock, seed=old.seed)
        run.chaos = old.chaos
        run.begin(state.inputs)
        if old.history.tip:
            self._runs_before_reset.append(old)
        journal = state.journal
        state.replace_run(run)
        if journal is None:
            self._callbacks.install()
        else:
            self._persistence.record_new_run(journal.log, journal.batch or "step")
        self._notifications.save_and_notify()

    def all(self) -> tuple[Parts, ...]:
        """Return every fork; an abandoned branch becomes a session on first access."""
        with self._lock:
            self._add_earlier_runs()
            self._add_abandoned_branches(self._state.run)
            return tuple(self._forks)

    def _add_earlier_runs(self) -> None:
        """Make sessions of the runs from before each reset."""
        for run in self._runs_before_reset:
            journal = run.recorder if isinstance(run.recorder, Journal) else None
            earlier = self._get_parts(run, f"{self._state.name}, before reset", getattr(journal, "run_id", None))
            earlier.persistence.record_in(journal)
            earlier.forks.adopt_branches(run, self._known_branches.pop(run, 0))
            self._forks.append(earlier)
        self._runs_before_reset.clear()

    def adopt_branches(self, run: Run, known: int) -> None:
        """Take over a run, of which this many abandoned branches have become sessions."""
        self._known_branches[run] = known

    def _add_abandoned_branches(self, run: Run) -> None:
        for chain, tip in run.abandoned_branches[self._known_branches.get(run, 0) :]:
            reopened = time_travel.reopen_branch(run, chain, tip)
            original = self._get_parts(reopened, f"{self._state.name}, original")
            original.persistence.record_as_fork_of(self._state.journal)
            self._forks.append(original)
        self._known_branches[run] = len(run.abandoned_branches)

    def tree(self) -> str:
        """Return the whole tree of sessions and stored runs, one per line, this one marked."""
        top = self._state.session
        while top.parent is not None:
            top = top.parent
        sessions = {session.run_id: session for session in _collect_all(top)}
        first: Any = top
        row = self._find_stored(top.run_id)
        seen = {top.run_id}
        while row is not None and row.parent is not None and row.parent not in seen:
            seen.add(row.parent)
            row = self._find_stored(row.parent)
            first = first if row is None else row
        return "\n".join(self._format_lines(first, 0, sessions, set()))

    def _find_stored(self, run_id: str) -> RunRow | None:
        """Return the row of a run in the store; None if it is not there."""
        log = self._state.log
        if log is None:
            return None
        try:
            return log.run(run_id)
        except StoreError as error:
            if error.problems[0].code not in {"L410", "L413"}:
                raise
            return None

    def _format_lines(self, item: Any, depth: int, sessions: Mapping[str, Any], seen: set[str]) -> list[str]:
        """Return the lines of a session, or of a run that exists only in the store, and of all its forks."""
        seen.add(item.run_id)
        mark, forks = " <- here" if item is self._state.session else "", []
        row = item if isinstance(item, RunRow) else self._find_stored(item.run_id)
        if isinstance(item, RunRow):
            origin_step, state = item.forked, f"{_format_steps_count(item.steps)}, {item.status}"
        else:
            origin_step = None if row is None else row.forked
            origin_step = origin_step if item.parent is None else find_parting(item.parent, item)
            state, forks = (
                f"{_format_steps_count(item.position)}, {item.status}{_describe_hypothesis(item)}",
                list(item.forks),
            )
        origin = "" if origin_step is None else f" from step {origin_step}"
        lines = [f"{'  ' * depth}{safe_str(item.name, 200)}{origin}: {state}{mark}"]
        known = {fork.run_id for fork in forks}
        if row is not None and self._state.log is not None:
            stored = reversed(self._state.log.runs(RunQuery(parent=item.run_id)))
            forks += [sessions.get(fork.run_id, fork) for fork in stored if fork.run_id not in known]
        for fork in forks:
            if fork.run_id not in seen:
                lines += self._format_lines(fork, depth + 1, sessions, seen)
        return lines


def _format_steps_count(count: int) -> str:
    return f"{count} step{'' if count == 1 else 's'}"


def _describe_hypothesis(session: Session) -> str:
    """Return why a fork was made and whether it satisfies what was expected, for its line in the tree."""
    state, holds = get_state(session), session.expectation_holds
    text = f"; {state.note}" if state.note else ""
    if state.expectation is not None:
        text += f"; expected {safe_str(state.expectation.text, 200)}: {'holds' if holds else 'does not hold'}"
    return text


def find_parting(session: Session, other: Session) -> int | None:
    """Return the last step that the runs of two sessions share; None if they share no history."""
    history, other_history = get_state(session).run.chain, get_state(other).run.chain
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] is pair[1], zip(history, other_history, strict=False)))
    if not shared:
        return None
    ends = [chain[shared].base if shared < len(chain) else chain[-1].tip for chain in (history, other_history)]
    return min(ends)


def _collect_all(session: Any) -> list[Any]:
    """Return a session and all its forks in this process."""
    return [session, *(each for fork in session.forks for each in _collect_all(fork))]
