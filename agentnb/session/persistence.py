"""Persistence of a session: its run, breakpoints and watches, saved to a store or a file."""

from __future__ import annotations

import os
import warnings
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from agentnb.engine.persistence import masked_values
from agentnb.errors import ExecutionError, Problem, StoreError, did_you_mean
from agentnb.session import stored_run
from agentnb.session.checks import not_running
from agentnb.session.logs import store_failed
from agentnb.session.pending import Kind, waiting_since
from agentnb.session.run_queries import status_of

if TYPE_CHECKING:
    from agentnb.engine.core.run import Run
    from agentnb.engine.persistence.event_log import EventLog
    from agentnb.engine.persistence.journal import Journal
    from agentnb.session.core import Core


def closed(run_id: str, do: str) -> Problem:
    """L452: this session was closed.

    `do` explains how to reopen the run.
    """
    why = "close() has let others go on with the run"
    return Problem("L452", "this session was closed", f"run {run_id!r}", why, do)


class Lasting:
    """The persistence of a session. Without a store its methods do nothing.

    `journal` records the run, `log` is its store; `copies` are the journals of other places to which it was saved.
    `locked` is the reason why the run is read-only, if it is; `recorded` is true if steps use recorded results and run
    no node. `changes` are the differences between its recipe and the stored one.
    """

    recorded: bool = False

    journal: Journal | None
    log: EventLog | None
    copies: dict[Run, dict[EventLog, Journal]]
    locked: Problem | None
    changes: tuple[str, ...]

    def _lasts(self) -> None:
        self.journal, self.log, self.copies, self.locked, self.changes = None, None, {}, None, ()
        self._origin: Journal | None = None

    @property
    def _core(self) -> Core:
        return self  # type: ignore[return-value]  # every one is a Core

    def keep_in(self, journal: Journal | None) -> None:
        """Save each step from now on."""
        self.journal = self._core.engine.recorder = journal
        if journal is not None:
            journal.hand_over = weakref.WeakMethod(self.hand_over)
        if journal is not None:
            self.log = journal.log
        self._core._arm()  # noqa: SLF001  (a part of it)

    def keep_beside(self, journal: Journal | None) -> None:
        """Save it as a fork of another run, from its first change on."""
        self._origin = journal

    @property
    def _unfit(self) -> int | None:
        """The step that cannot be saved because no codec supports a value of it; None if there is none."""
        journal = self.journal
        return None if journal is None or journal.trouble is None else journal.encoder.unfit

    def ready_to_keep(self, *, fixes: bool = False) -> None:
        """Check before an action that its result can be saved.

        If no codec supports a value of a step, that step may be abandoned, or repaired by the next action (`fixes`).

        Raises:
            StoreError: the last changes could not be saved, and still cannot.
        """
        if self._origin is not None:
            self.keep_in(stored_run.begin_fork(self._core, self._origin))
            self._origin = None
        if self.journal is not None and self.journal.trouble is not None:
            try:
                with self._logged():
                    self.journal.flush()
            except StoreError:
                if self._unfit is None or not (fixes or self._core.engine.position < self._unfit):
                    raise

    def keep(self) -> None:
        """Save all unsaved changes and the status of the run.

        Raises:
            StoreError: it cannot be saved; the run keeps its position here, and continues when it can be saved.
        """
        core = self._core
        if self.journal is not None:
            self.journal.aux = stored_run.aux_of(core)
            with self._logged():
                self.journal.tell("running" if core.live.moves else str(status_of(core.engine, core.limits)))

    @contextmanager
    def _logged(self) -> Iterator[None]:
        """Log failures to save."""
        try:
            yield
        except StoreError as error:
            store_failed(self._core, error)
            raise

    def _marked(self) -> None:
        """Mark the breakpoints as changed."""
        self._core._arm()  # noqa: SLF001  (a part of it)
        self.keep()

    def save(self, path: str | os.PathLike[str] | EventLog | None = None) -> str:
        """Save the run: to a file or store of its own, else to its current store; return where.

        Later steps are included when it is saved again.

        Raises:
            StoreError: L451, no place is named and the run has no store; or it cannot be saved there.
        """
        return stored_run.save(self._core, path)

    def close(self) -> None:
        """Save all unsaved changes and release the run for other writers; here it becomes read-only.

        Raises:
            ExecutionError: X112, it is running.
            StoreError: it cannot be saved.
        """
        journal = self.journal
        if journal is not None:
            not_running(self._core, "close()")
            try:
                self.keep()
                journal.close()
            except StoreError as error:
                if error.problems[0].code != "L422" or not journal.is_complete():
                    raise
                with suppress(StoreError):
                    journal.rest()
                warnings.warn(f"every step is stored, but not how the run stands:\n{error}", stacklevel=2)
            self.keep_in(None)
            self.locked = closed(journal.run_id, "open it again: nb.open(WHERE, RUN_ID, recipe=...)")

    def hand_over(self) -> bool:
        """Let another session of this process write the run; return False while this one is running.

        L471: another session of this process has continued the run.

        Raises:
            StoreError: unsaved changes cannot be saved.
        """
        journal = self.journal
        if journal is None or self._core.live.moves:
            return False
        journal.close()
        self.keep_in(None)
        self.locked = Problem("L471", "another session of this process has continued this run",
                              f"run {journal.run_id!r}", "only one session may write a run, and the other one has",
                              "continue with that session, or load the run again")  # fmt: skip
        return True

    # -- masked values and steps in flight ------------------------------------------------------------------------

    def masked(self) -> list[str]:
        """Return the paths of the values that were masked when the run was saved and must be supplied again."""
        return masked_values.unknown(self._core.engine)

    def fill(self, values: Mapping[str, Any]) -> None:
        """Supply values that were masked when the run was saved: path -> value.

        Raises:
            ExecutionError: X141, the value at one of these paths is not masked.
        """
        asked = self.masked()
        unknown = [path for path in values if path not in asked]
        if unknown:
            raise ExecutionError(*(
                Problem("X141", f"nothing is masked at {path!r}", f"session {self._core.name!r}",
                        f"masked when the run was stored: {', '.join(asked) or 'nothing'}",
                        did_you_mean(path, asked, "use one of them, or use edit()"))
                for path in unknown
            ))  # fmt: skip
        if values:
            core = self._core
            masked_values.fill(core.engine, values)
            core.inputs = {**core.inputs, **{key: value for key, value in values.items() if key in core.inputs}}

    def _fills(self, value: Any, path: str | None) -> bool:
        """Return True if a person's answer supplied a masked value that was asked for."""
        asked = self.masked()
        if not asked or (path is not None and path not in asked):
            return False
        self.fill({path or asked[0]: value})
        return True

    def _take_up(self, kind: Kind, wanted: str | None) -> None:
        """Run a step of another process up to where it waits, so that a person can respond."""
        core: Any = self
        run: Run = core.engine
        for call, known in waiting_since(run):
            if known.kind == kind and (wanted is None or wanted in (known.node, known.id)):
                core._safely(partial(core._bring, run.activation(call.act)))  # noqa: SLF001  (parts of it)
                return


__all__ = ["Lasting"]
