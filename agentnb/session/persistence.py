"""Persistence of a session: its run, breakpoints and watches, saved to a store or a file."""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from agentnb.engine.persistence import masked_values
from agentnb.errors import ExecutionError, Problem, StoreError, did_you_mean, warn_caller
from agentnb.session import stored_run
from agentnb.session.checks import check_not_running
from agentnb.session.logs import log_store_failure
from agentnb.store import open_log

if TYPE_CHECKING:
    from agentnb.engine.core.run import Run
    from agentnb.engine.persistence.event_log import EventLog
    from agentnb.engine.persistence.journal import Journal
    from agentnb.session.callbacks import Callbacks
    from agentnb.session.state import State


def make_closed_problem(run_id: str, do: str) -> Problem:
    """L452: this session was closed.

    `do` explains how to reopen the run.
    """
    why = "close() released the run for other writers"
    return Problem("L452", "this session was closed", f"run {run_id!r}", why, do)


class Persistence:
    """Saves a session to its store. Without a store its methods do nothing.

    `changes` are the differences between the session's recipe and the stored one.
    """

    def __init__(self, state: State, callbacks: Callbacks) -> None:
        self._state, self._callbacks = state, callbacks
        self.changes: tuple[str, ...] = ()
        self._copies: dict[Run, dict[EventLog, Journal]] = {}  # the journals of other places it was saved to
        self._parent: Journal | None = None

    def record_in(self, journal: Journal | None) -> None:
        """Save each step from now on."""
        state = self._state
        if journal is None and state.journal is None:
            return
        state.journal = state.run.recorder = journal
        if journal is not None:
            journal.get_release = weakref.WeakMethod(self.release_run)
            state.log = journal.log
        self._callbacks.install()

    def record_new_run(self, store: Any, durability: Any) -> None:
        """Record the session's run in a store from its first step on; None for no store.

        Raises:
            ExecutionError: X140, the durability is invalid; X143, the run's id is invalid.
            StoreError: this is not a store, it already has a run of this id, or it cannot be written.
        """
        self.record_in(stored_run.begin(self._state, store, durability))

    def record_as_fork_of(self, journal: Journal | None) -> None:
        """Save it as a fork of another run, from its first change on."""
        self._parent = journal

    @property
    def store(self) -> Any:
        """What records the run; None if it is only in memory."""
        return None if self._state.journal is None else self._state.journal.log

    @property
    def unsavable_step(self) -> int | None:
        """The step that cannot be saved because no codec supports a value of it; None if there is none."""
        journal = self._state.journal
        return None if journal is None or journal.failure is None else journal.encoder.unsavable

    def check_ready(self, *, repairs: bool = False) -> None:
        """Check before an action that its result can be saved: claim the run, and save what could not be saved before.

        If no codec supports a value of a step, that step may be abandoned, or repaired by the next action (`repairs`).

        Raises:
            StoreError: another writer holds the run, or the last changes could not be saved, and still cannot.
        """
        state = self._state
        if self._parent is not None:
            self.record_in(stored_run.begin_fork(state, self._parent))
            self._parent = None
        journal = state.journal
        if journal is not None:
            journal.claim()
        if journal is not None and journal.failure is not None:
            try:
                with self._log_failures():
                    journal.flush()
            except StoreError:
                unsavable = self.unsavable_step
                if unsavable is None or not (repairs or state.run.position < unsavable):
                    raise

    def check_intervention(self, verb: str) -> None:
        """Raise for an intervention that this kind of record cannot hold; a store holds all of them."""

    def save_changes(self) -> None:
        """Save all unsaved changes and the status of the run.

        Raises:
            StoreError: it cannot be saved; the run keeps its position here, and continues when it can be saved.
        """
        state = self._state
        if state.journal is not None:
            state.journal.aux = stored_run.make_aux(state)
            with self._log_failures():
                state.journal.save_status("running" if state.moves else state.status)

    @contextmanager
    def _log_failures(self) -> Iterator[None]:
        """Log failures to save."""
        try:
            yield
        except StoreError as error:
            log_store_failure(self._state, error)
            raise

    def breakpoints_changed(self) -> None:
        """Save the breakpoints, and let the run stop at them."""
        self._callbacks.install()
        self.save_changes()

    def save(self, path: str | os.PathLike[str] | EventLog | None = None) -> str:
        """Save the run to a store, by default to its own; return where. A copy of the store's file is then complete.

        Raises:
            StoreError: L451, no place is named and the run has no store; or it cannot be saved there.
        """
        state = self._state
        log = None if path is None else open_log(path)
        journal = state.journal
        if log is None and journal is None:
            raise StoreError(
                Problem("L451", "this run is not stored yet", f"session {state.name!r}",
                        "save() was called without a path",
                        "pass a file name: session.save('run.db')")
            )  # fmt: skip
        if log is not None and (journal is None or journal.log is not log):
            copies = self._copies.setdefault(state.run, {})
            if log not in copies:
                copies[log] = stored_run.begin_journal(state, log, state.run)
            journal = copies[log]
        assert journal is not None
        journal.aux = stored_run.make_aux(state)
        journal.save_status(state.status)
        if journal is not state.journal:
            journal.release()
        journal.log.checkpoint()
        return journal.log.url

    def close(self) -> None:
        """Save all unsaved changes and release the run for other writers; here it becomes read-only.

        A copy of the store's file is then complete. The file is closed unless other sessions of this process write it.

        Raises:
            ExecutionError: X112, it is running.
            StoreError: it cannot be saved.
        """
        state = self._state
        journal = state.journal
        if journal is not None:
            check_not_running(state, "close()")
            try:
                if journal.is_writer or journal.failure is not None or journal.aux != stored_run.make_aux(state):
                    self.save_changes()
                    journal.close()
                else:  # the session has changed nothing, and another one may be the writer of the run
                    journal.release()
            except StoreError as error:
                if error.problems[0].code != "L422" or not journal.is_complete():
                    raise
                with suppress(StoreError):
                    journal.release()
                warn_caller(f"every step is stored, but not the status of the run:\n{error}")
            self.record_in(None)
            state.read_only_reason = make_closed_problem(
                journal.run_id, "open it again: nb.open(WHERE, RUN_ID, recipe=...)"
            )
        if state.log is not None:
            state.log.checkpoint()

    def release_run(self) -> bool:
        """Let another session of this process write the run; return False while this one is running.

        L471: another session of this process has continued the run.

        Raises:
            StoreError: unsaved changes cannot be saved.
        """
        state = self._state
        journal = state.journal
        if journal is None or state.moves:
            return False
        journal.close()
        self.record_in(None)
        state.read_only_reason = Problem("L471", "another session of this process has continued this run",
                               f"run {journal.run_id!r}",
                               "only one session can write a run, and the other session has already written to it",
                               "continue with that session, or load the run again")  # fmt: skip
        return True

    # -- masked values ----------------------------------------------------------------------------------------------

    def list_masked(self) -> list[str]:
        """Return the paths of the values that were masked when the run was saved and must be supplied again."""
        return masked_values.find_masked_paths(self._state.run)

    def fill(self, values: Mapping[str, Any]) -> None:
        """Supply values that were masked when the run was saved: path -> value.

        Raises:
            ExecutionError: X141, the value at one of these paths is not masked.
        """
        state = self._state
        masked = self.list_masked()
        unknown = [path for path in values if path not in masked]
        if unknown:
            raise ExecutionError(*(
                Problem("X141", f"no value is masked at {path!r}", f"session {state.name!r}",
                        f"masked when the run was stored: {', '.join(masked) or 'nothing'}",
                        did_you_mean(path, masked, "use one of them, or use edit()"))
                for path in unknown
            ))  # fmt: skip
        if values:
            masked_values.fill(state.run, values)
            state.inputs = {**state.inputs, **{key: value for key, value in values.items() if key in state.inputs}}


__all__ = ["Persistence", "make_closed_problem"]
