"""The parts of a session. Only this module knows what each of them needs, and puts them together."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, overload

from agentnb.engine.control.listeners import Hooks
from agentnb.session.async_execution import AsyncExecution
from agentnb.session.background_run import BackgroundRun
from agentnb.session.callbacks import Callbacks
from agentnb.session.execution import Execution
from agentnb.session.explanations import Explanations
from agentnb.session.forks import Forks
from agentnb.session.interventions import Interventions
from agentnb.session.navigation import Navigation
from agentnb.session.notifications import Notifications
from agentnb.session.persistence import Persistence
from agentnb.session.pictures import Pictures
from agentnb.session.rollback import Rollback

if TYPE_CHECKING:
    from agentnb.engine.core.run import Run
    from agentnb.session.session import Session
    from agentnb.session.state import State


Part = TypeVar("Part")


class part(Generic[Part]):  # noqa: N801  (a decorator, as `cached_property` is)
    """A part of a session, made on first access: a `cached_property` that takes no lock in any version of Python."""

    def __init__(self, make: Callable[[Any], Part]) -> None:
        self._make, self._name, self.__doc__ = make, make.__name__, make.__doc__

    @overload
    def __get__(self, parts: None, owner: type) -> Self: ...

    @overload
    def __get__(self, parts: object, owner: type) -> Part: ...

    def __get__(self, parts: object | None, owner: type) -> Self | Part:
        if parts is None:
            return self
        part: Part = vars(parts).setdefault(self._name, self._make(parts))  # of two threads, both receive one
        return part


class Parts:
    """The parts of one session, each made on first access.

    Args:
        make_session: makes another session, a fork of this one, and returns its parts.
    """

    def __init__(self, state: State, make_session: Callable[..., Parts]) -> None:
        self.state, self._make_session = state, make_session
        self.callbacks = Callbacks(state)
        state.hooks = Hooks(self.callbacks.install)
        state.breakpoints_changed = self._handle_breakpoints_changed
        for node, side in state.recipe.meta.get("stops", ()):
            state.breakpoints.add(node=node, side=side)
        self.callbacks.install()

    @property
    def run(self) -> Run:
        """The engine's run."""
        return self.state.run

    def release(self) -> None:
        """Break the reference cycles of a session that is no longer used; it does not work after that.

        Where thousands of sessions are made, the garbage collector would take a tenth of the time.
        """
        self.run.release()
        vars(self.state).clear()
        vars(self).clear()

    def _handle_breakpoints_changed(self) -> None:
        self.persistence.breakpoints_changed()

    def _schedule_timeout(self) -> None:
        self.background.schedule_timeout()

    @part
    def rollback(self) -> Rollback:
        """What keeps a session whole when a move fails."""
        return Rollback(self.state)

    @part
    def persistence(self) -> Persistence:
        """What saves the session."""
        return Persistence(self.state, self.callbacks)

    @part
    def notifications(self) -> Notifications:
        """What follows each change."""
        return Notifications(self.state, self.persistence, self._schedule_timeout)

    @part
    def execution(self) -> Execution:
        """What steps and runs."""
        return Execution(self.state, self.callbacks, self.rollback, self.persistence, self.notifications)

    @part
    def async_execution(self) -> AsyncExecution:
        """What steps and runs for async code."""
        return AsyncExecution(self.state, self.execution, self.rollback, self.notifications)

    @part
    def background(self) -> BackgroundRun:
        """What runs after `start()`."""
        return BackgroundRun(
            self.state, self.execution, self.async_execution, self.rollback, self.persistence, self.notifications
        )

    @part
    def navigation(self) -> Navigation:
        """What moves through the recorded run."""
        return Navigation(self.state, self.rollback, self.execution, self.background, self.notifications)

    @part
    def interventions(self) -> Interventions:
        """What people do to the run."""
        return Interventions(
            self.state, self.callbacks, self.rollback, self.persistence, self.execution, self.async_execution,
            self.navigation, self.background, self.notifications,
        )  # fmt: skip

    @part
    def forks(self) -> Forks:
        """The forks and abandoned branches."""
        return Forks(
            self.state, self.callbacks, self.rollback, self.persistence, self.background, self.notifications,
            self._make_session,
        )  # fmt: skip

    @part
    def explanations(self) -> Explanations:
        """Why the run went where it did."""
        return Explanations(self.state)

    @part
    def pictures(self) -> Pictures:
        """Drawings of the run."""
        return Pictures(self.state)


def get_parts(session: Session) -> Parts:
    """Return the parts of a session, for other packages of agentnb; `state.get_state` returns its state."""
    return session._parts  # noqa: SLF001  (the accessor for other packages)


__all__ = ["Parts", "get_parts"]
