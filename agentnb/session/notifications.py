"""Notifications: after each change of a session it is saved, and the listeners of `change` are called."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from agentnb.board.values import thaw
from agentnb.errors import StoreError
from agentnb.session.run_queries import get_status

if TYPE_CHECKING:
    from agentnb.engine.core.run import Run
    from agentnb.session.persistence import Persistence
    from agentnb.session.state import State

TELL_SECONDS = 0.05  # the shortest interval between `change` notifications during a run


class Notifications:
    """Saves what has changed, and notifies who listens.

    Args:
        schedule_timeout: called while steps are pending, whose questions may have a timeout.
    """

    def __init__(self, state: State, persistence: Persistence, schedule_timeout: Callable[[], None]) -> None:
        self._state, self._persistence, self._schedule_timeout = state, persistence, schedule_timeout
        self._told = 0.0
        self._finished: Run | None = None

    def save_and_notify(self) -> None:
        """Save what has changed and notify the listeners.

        Raises:
            StoreError: it cannot be saved.
        """
        try:
            self._persistence.save_changes()
        finally:
            self._tell()

    def notify_move(self) -> None:
        """Notify the listeners that the position changed; a failed save is retried before the next step."""
        with suppress(StoreError):
            self._persistence.save_changes()
        self._tell()

    def tick(self) -> None:
        """Notify `change` listeners during a run, a few times a second."""
        if self._state.hooks.rows["change"] and time.monotonic() - self._told > TELL_SECONDS:
            self._tell()

    def end(self) -> None:
        """Notify the `end` listeners: a run call has ended."""
        if self._state.hooks.rows["end"]:
            self._state.hooks.tell("end", self._state.session)

    def _tell(self) -> None:
        state = self._state
        if state.hooks.rows["change"]:
            self._told = time.monotonic()
        if state.run.pending_steps:
            self._schedule_timeout()
        if state.recipe.finish is not None:
            self._finish(state.recipe.finish)
        if state.hooks.rows["change"]:
            state.hooks.tell("change", state.session)

    def _finish(self, finish: Callable[[Mapping[str, Any], Mapping[str, Any]], None]) -> None:
        """Call the recipe's finish function once, at the end of a run; not for a fork, which is a trial."""
        state = self._state
        run = state.run
        if self._finished is not run and state.parent is None and get_status(run, state.limits) == "finished":
            self._finished = run
            finish(state.inputs, {key: thaw(value) for key, value in run.root.scope.visible_items().items()})


__all__ = ["TELL_SECONDS", "Notifications"]
