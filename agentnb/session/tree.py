"""tree: forks: sessions that share the steps before, and the branches that a session has left behind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from agentnb.engine import travel
from agentnb.engine.plan import Plan
from agentnb.engine.run import Run
from agentnb.errors import ExecutionError, Problem
from agentnb.session.checks import refuse_step
from agentnb.session.wiring import rebound
from agentnb.world.world import World

if TYPE_CHECKING:
    from agentnb.session.core import Core
    from agentnb.session.session import Session


class Branches:
    """The forks of one session: those that were asked for, and those that stayed when it went on elsewhere."""

    def __init__(self, session: Core) -> None:
        self._session: Any = session
        self.made: list[Session] = []
        self.old: list[Run] = []
        self._told: dict[Run, int] = {}  # how many of a run's left branches have become sessions

    def fork(
        self,
        at: int | str | None,
        name: str | None,
        edit: Mapping[str, Any] | None,
        llm: Any,
        tools: Mapping[str, Callable[..., Any]] | None,
    ) -> Session:
        """Return a new session that shares the steps up to `at`."""
        session = self._session
        old: Run = session.engine
        step = old.position if at is None else self._step_of(at)
        refuse_step(session, step)
        session._mend()  # noqa: SLF001  (a part of the session)
        plan = old.plan
        if llm is not None or tools is not None:
            world = old.world
            both = {**world.tools, **rebound(plan.recipe, tools or {})}
            made = World(
                tools=both,
                llm=world.llm if llm is None else llm,
                answers=world.answers,
                resources=world.resources,
                strict=world.strict,
            )
            plan = Plan(plan.recipe, plan.kinds, made)
        run = travel.forked(old, plan, step, name)
        found = self._session_of(run, name or f"{session.name}@{step}")
        self.made.append(found)
        if edit:
            found.edit(edit)
        return found

    def _session_of(self, run: Run, name: str) -> Session:
        from agentnb.session.limits import Limits

        session = self._session
        cls: type[Session] = type(session)
        found = cls.__new__(cls)
        found.inputs = session.inputs
        found._wire(session.recipe, run, Limits(session.limits.budget), name)  # noqa: SLF001  (the same)
        found.parent = session
        return found

    def _step_of(self, at: int | str) -> int:
        if not isinstance(at, str):
            return at
        for history in self._session.engine.chain:
            for event in history.events:
                if event.id == at:
                    return int(event.at)
        raise ExecutionError(
            Problem("X111", f"there is no event {at!r}", f"session {self._session.name!r}",
                    "no event of this run has that id", "look at trace.frames.events, or name a step number")
        )  # fmt: skip

    def begin_again(self) -> None:
        """Give the session a new run from its inputs; the old one stays among the forks."""
        session, old = self._session, self._session.engine
        run = Run(old.plan, clock=old.clock, seed=old.seed)
        run.chaos = old.chaos
        run.begin(session.inputs)
        if old.history.tip:
            self.old.append(old)
        session.replace_engine(run)

    def all(self) -> tuple[Session, ...]:
        """Return every fork; a branch that was left becomes a session when it is first asked for."""
        session = self._session
        for run in self.old:
            self.made.append(self._session_of(run, f"{session.name}, before reset"))
            self._left(run)
        self.old.clear()
        self._left(session.engine)
        return tuple(self.made)

    def _left(self, run: Run) -> None:
        for chain, tip in run.left[self._told.get(run, 0) :]:
            reopened = travel.reopened(run, chain, tip)
            self.made.append(self._session_of(reopened, f"{self._session.name}, left at {chain[-1].base}..{tip}"))
        self._told[run] = len(run.left)

    def tree(self) -> str:
        """Return the whole tree of sessions, one a line, this one marked."""
        top = self._session
        while top.parent is not None:
            top = top.parent
        return "\n".join(self._lines(top, 0))

    def _lines(self, session: Any, depth: int) -> list[str]:
        mark = " <- here" if session is self._session else ""
        begun = "" if session.parent is None else f" from step {session.engine.chain[-1].base}"
        lines = [f"{'  ' * depth}{session.name}{begun}: {session.position} steps, {session.status}{mark}"]
        for fork in session.forks:
            lines += self._lines(fork, depth + 1)
        return lines
