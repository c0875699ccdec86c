"""Notifications: after each change of a session it is saved, and the listeners of `change` are called."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from agentnb.board.values import thaw
from agentnb.errors import StoreError, warn_caller
from agentnb.expressions.paths import format_path
from agentnb.session.run_queries import get_status
from agentnb.text import safe_repr

if TYPE_CHECKING:
    from agentnb.engine.core.run import Run
    from agentnb.session.persistence import Persistence
    from agentnb.session.state import State

TELL_SECONDS = 0.05  # the shortest interval between `change` notifications during a run


class Notifications:
    """Saves what has changed, and notifies listeners.

    Args:
        schedule_timeout: called while steps are pending, whose questions may have a timeout.
    """

    def __init__(self, state: State, persistence: Persistence, schedule_timeout: Callable[[], None]) -> None:
        self._state, self._persistence, self._schedule_timeout = state, persistence, schedule_timeout
        self._last_report = 0.0
        self._finished_run: Run | None = None
        history = state.run.history  # of a reopened run: its changes were announced when it made them
        changed = history.peek("in_place")
        self._last_in_place_write = history, max(changed) if changed else -1

    def save_and_notify(self) -> None:
        """Save what has changed and notify the listeners.

        Raises:
            StoreError: it cannot be saved.
        """
        try:
            self._persistence.save_changes()
        finally:
            self._notify()

    def notify_move(self) -> None:
        """Notify the listeners that the position changed; a failed save is retried before the next step."""
        with suppress(StoreError):
            self._persistence.save_changes()
        self._notify()

    def tick(self) -> None:
        """Notify `change` listeners during a run, a few times a second."""
        if self._state.hooks.rows["change"] and time.monotonic() - self._last_report > TELL_SECONDS:
            self._notify()

    def end(self) -> None:
        """Notify the `end` listeners: a run call has ended."""
        if self._state.hooks.rows["end"]:
            self._state.hooks.notify("end", self._state.session)

    def _notify(self) -> None:
        state = self._state
        if state.hooks.rows["change"]:
            self._last_report = time.monotonic()
        if state.run.pending_steps:
            self._schedule_timeout()
        if state.recipe.finish is not None:
            self._finish(state.recipe.finish)
        if state.hooks.rows["change"]:
            state.hooks.notify("change", state.session)
        if state.run.history.peek("in_place") and not state.warned_in_place:
            self._warn_of_change_in_place()

    def _warn_of_change_in_place(self) -> None:
        """Warn once per session that a node changed a value that it had read, without assigning it."""
        history = self._state.run.history
        known = self._last_in_place_write[1] if history is self._last_in_place_write[0] else -1
        row = min((row for row in history.in_place if row > known), default=None)
        if row is None or row >= history.write_ends[-1]:  # not of a committed step
            return
        self._state.warned_in_place = True
        step = history.base + bisect_right(history.write_ends, row)
        node = self._state.run.get_node_id(history.step_activations[step - history.base])
        key = format_path(history.tables.codes[history.write_codes[row] >> 2][1])
        warn_caller(
            f"step {step}, {safe_repr(node, 200)}, changed {safe_repr(key, 200)} in place. The change is recorded like "
            "a write; better return the changed value. To stop at such changes: "
            "session.breakpoints.add(in_place=True). Later ones in this session are not reported; see "
            "trace.frames.writes, column in_place"
        )

    def _finish(self, finish: Callable[[Mapping[str, Any], Mapping[str, Any]], None]) -> None:
        """Call the recipe's finish function once, at the end of a run; not for a fork, which is a trial."""
        state = self._state
        run = state.run
        if self._finished_run is not run and state.parent is None and get_status(run, state.limits) == "finished":
            self._finished_run = run
            finish(state.inputs, {key: thaw(value) for key, value in run.root.scope.visible_items().items()})


__all__ = ["TELL_SECONDS", "Notifications"]
