"""Forks: sessions that share earlier steps, and the branches that a session has abandoned."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import takewhile
from threading import RLock
from typing import TYPE_CHECKING, Any

from agentnb.engine.core import time_travel
from agentnb.engine.core.run import Run
from agentnb.engine.persistence.event_log import RunRow
from agentnb.engine.persistence.journal import Journal
from agentnb.errors import ExecutionError, Problem
from agentnb.session import stored_run
from agentnb.session.checks import check_recipe, refuse_step
from agentnb.session.recipe_swap import budget_of, check_shared, plan_to_go_on
from agentnb.session.schedules import HooksAPI
from agentnb.text import safe_repr, safe_str

if TYPE_CHECKING:
    from agentnb.recipe.model import Recipe
    from agentnb.session.core import Core
    from agentnb.session.session import Session


class Branches:
    """The forks of one session: those created by `fork`, and branches abandoned when it continued elsewhere."""

    def __init__(self, session: Core) -> None:
        self._session: Any = session
        self.made: list[Session] = []
        self.old: list[Run] = []
        self._told: dict[Run, int] = {}  # number of a run's abandoned branches that have become sessions
        self._asked = RLock()  # the UI may draw in another thread

    def fork(
        self,
        at: int | str | None,
        name: str | None,
        edit: Mapping[str, Any] | None,
        recipe: Recipe | None,
        llm: Any,
        tools: Mapping[str, Callable[..., Any]] | None,
    ) -> Session:
        """Return a new session that shares the steps up to `at`."""
        session = self._session
        old: Run = session.engine
        step = old.position if at is None else self._step_of(at)
        refuse_step(session, step)
        session._mend()  # noqa: SLF001  (a part of the session)
        if recipe is not None:
            check_recipe(recipe)
            check_shared(old, recipe, step)
        plan = plan_to_go_on(old, recipe, llm, tools)
        run = time_travel.forked(old, plan, step, name)
        found = self._session_of(run, name or f"{session.name}@{step}")
        if session.journal is not None:
            found.keep_in(stored_run.begin_fork(found, session.journal))
        self.made.append(found)
        if edit:
            found.edit(edit)
        return found

    def _session_of(self, run: Run, name: str, run_id: str | None = None) -> Session:
        from agentnb.session.limits import Limits

        session, recipe = self._session, run.plan.recipe
        cls: type[Session] = type(session)
        found = cls.__new__(cls)
        found.inputs = session.inputs
        budget = budget_of(session.limits.budget, session.recipe, recipe)
        found._wire(recipe, run, Limits(budget), name, run_id)  # noqa: SLF001  (a part of the session)
        found.parent, found.locked = session, session.locked
        if isinstance(session.hooks.schedules, HooksAPI):
            # A fork has no listeners, but its nodes get the same resources.
            found.hooks.add_all(session.hooks.schedules.providers() or {})
        return found

    def _step_of(self, at: int | str) -> int:
        if not isinstance(at, str):
            return at
        chain = self._session.engine.chain
        ends = [*(after.base for after in chain[1:]), chain[-1].tip]  # later events of a parent may have the same ids
        for history, end in zip(chain, ends, strict=True):
            for event in history.events:
                if event.id == at and event.at <= end:
                    return int(event.at)
        raise ExecutionError(
            Problem("X111", f"there is no event {safe_repr(at)}", f"session {self._session.name!r}",
                    "no event of this run has that id", "look at trace.frames.events, or name a step number")
        )  # fmt: skip

    def begin_again(self) -> None:
        """Restart the session with a new run from its inputs; the old run stays among the forks."""
        session, old = self._session, self._session.engine
        run = Run(old.plan, old.dispatcher, clock=old.clock, seed=old.seed)
        run.chaos = old.chaos
        run.begin(session.inputs)
        if old.history.tip:
            self.old.append(old)
        session.replace_engine(run)

    def all(self) -> tuple[Session, ...]:
        """Return every fork; an abandoned branch becomes a session on first access."""
        with self._asked:
            self._add_earlier_runs()
            self._left(self._session.engine)
            return tuple(self.made)

    def _add_earlier_runs(self) -> None:
        """Create sessions for the runs from before each reset."""
        for run in self.old:
            journal = run.recorder if isinstance(run.recorder, Journal) else None
            found = self._session_of(run, f"{self._session.name}, before reset", getattr(journal, "run_id", None))
            found.keep_in(journal)
            found.branches._told[run] = self._told.pop(run, 0)  # noqa: SLF001  (what is left to tell is its own)
            self.made.append(found)
        self.old.clear()

    def _left(self, run: Run) -> None:
        for chain, tip in run.left[self._told.get(run, 0) :]:
            reopened = time_travel.reopened(run, chain, tip)
            found = self._session_of(reopened, f"{self._session.name}, left at {chain[-1].base}..{tip}")
            found.keep_beside(self._session.journal)
            self.made.append(found)
        self._told[run] = len(run.left)

    def tree(self) -> str:
        """Return the whole tree of sessions and stored runs, one per line, this one marked."""
        top = self._session
        while top.parent is not None:
            top = top.parent
        kept = {} if top.log is None else {row.run_id: row for row in top.log.runs()}
        here = {session.run_id: session for session in _all(top)}
        first: Any = top
        row = kept.get(top.run_id)
        while row is not None and row.parent in kept:
            first = row = kept[row.parent]
        return "\n".join(self._lines(first, 0, here, kept))

    def _lines(self, item: Any, depth: int, here: Mapping[str, Any], kept: Mapping[str, RunRow]) -> list[str]:
        """Return the lines of a session, or of a run that exists only in the store, and of all its forks."""
        mark, forks = " <- here" if item is self._session else "", []
        if isinstance(item, RunRow):
            begun, stands = item.forked, f"{item.steps} steps, {item.status}"
        else:
            row = kept.get(item.run_id)
            begun = None if row is None else row.forked
            begun = begun if item.parent is None else item.engine.chain[-1].base
            stands, forks = f"{item.position} steps, {item.status}", list(item.forks)
        told = "" if begun is None else f" from step {begun}"
        lines = [f"{'  ' * depth}{safe_str(item.name, 200)}{told}: {stands}{mark}"]
        known = {fork.run_id for fork in forks}
        forks += [here.get(run_id, row) for run_id, row in kept.items()
                  if row.parent == item.run_id and run_id not in known]  # fmt: skip
        for fork in forks:
            lines += self._lines(fork, depth + 1, here, kept)
        return lines


def parting(session: Core, other: Core) -> int | None:
    """Return the last step that two runs share; None if they share no history."""
    here, there = session.engine.chain, other.engine.chain
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] is pair[1], zip(here, there, strict=False)))
    if not shared:
        return None
    ends = [chain[shared].base if shared < len(chain) else chain[-1].tip for chain in (here, there)]
    return min(ends)


def _all(session: Any) -> list[Any]:
    """Return a session and all its forks in this process."""
    return [session, *(each for fork in session.forks for each in _all(fork))]
