"""lasting: what of a session outlives its process: its run, its breakpoints and watches, kept in a store or a file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from agentnb.engine import masks
from agentnb.engine.resuming import Unfinished
from agentnb.errors import ExecutionError, Problem, StoreError, did_you_mean
from agentnb.session import stored
from agentnb.session.checks import not_running
from agentnb.session.logs import store_failed
from agentnb.session.pending import Kind, waiting_since
from agentnb.session.reading import status_of

if TYPE_CHECKING:
    from agentnb.engine.journal import Journal
    from agentnb.engine.log import EventLog
    from agentnb.engine.run import Run
    from agentnb.session.core import Core


class Lasting:
    """The part of a session that keeps it. Without a store it does nothing.

    `journal` keeps the run, `log` is where; `copies` are the journals of places that it was saved to besides. `locked`
    says why it can only be looked at, where it can; `recorded` that its steps go through what is recorded and run none.
    `changes` are what is other in its recipe than when it was kept.
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
        """Have each step kept from now on."""
        self.journal = self._core.engine.keeping = journal
        if journal is not None:
            self.log = journal.log
        self._core._arm()  # noqa: SLF001  (a part of it)

    def keep_beside(self, journal: Journal | None) -> None:
        """Have it kept as a fork of another run, from the first thing that it does."""
        self._origin = journal

    @property
    def _unfit(self) -> int | None:
        """The step that cannot be kept, since no codec takes a value of it; None where there is none."""
        journal = self.journal
        return None if journal is None or journal.trouble is None else journal.slicer.unfit

    def ready_to_keep(self, *, mends: bool = False) -> None:
        """Make sure that what comes next can be kept, before it is done.

        Where no codec takes a value of a step, that step may be left behind, or mended by what comes next.

        Raises:
            StoreError: what was done before could not be kept, and still cannot.
        """
        if self._origin is not None:
            self.keep_in(stored.begin_fork(self._core, self._origin))
            self._origin = None
        if self.journal is not None and self.journal.trouble is not None:
            try:
                with self._logged():
                    self.journal.flush()
            except StoreError:
                if self._unfit is None or not (mends or self._core.engine.position < self._unfit):
                    raise

    def keep(self) -> None:
        """Keep whatever is not kept yet, and how the run stands.

        Raises:
            StoreError: it cannot be kept; the run stands as it does here, and goes on when it can be.
        """
        core = self._core
        if self.journal is not None:
            self.journal.aux = stored.aux_of(core)
            with self._logged():
                self.journal.tell("running" if core.live.moves else str(status_of(core.engine, core.limits)))

    @contextmanager
    def _logged(self) -> Iterator[None]:
        """Log what cannot be kept."""
        try:
            yield
        except StoreError as error:
            store_failed(self._core, error)
            raise

    def _marked(self) -> None:
        """Take note of other breakpoints."""
        self._core._arm()  # noqa: SLF001  (a part of it)
        self.keep()

    def save(self, path: str | os.PathLike[str] | EventLog | None = None) -> str:
        """Keep the run as it stands: in a file or a store of its own, else where it is kept anyway; return where.

        Steps that follow are in it when it is saved again.

        Raises:
            StoreError: L451, no place is named and it is kept nowhere; or it cannot be kept there.
        """
        return stored.save(self._core, path)

    def close(self) -> None:
        """Keep what is not kept yet, and let others go on with this run; here it can still be looked at.

        Raises:
            ExecutionError: X112, it runs.
            StoreError: it cannot be kept.
        """
        journal = self.journal
        if journal is not None:
            not_running(self._core, "close()")
            self.keep()
            journal.close()
            self.keep_in(None)
            self.locked = Problem("L452", "this session was closed", f"run {journal.run_id!r}",
                                  "close() has let others go on with the run",
                                  "open it again: nb.open(WHERE, RUN_ID, recipe=...)")  # fmt: skip

    # -- what was masked, and what was in flight -----------------------------------------------------------------

    def masked(self) -> list[str]:
        """Return the paths of the values that were masked when they were kept, and are to be given again."""
        return masks.unknown(self._core.engine)

    def fill(self, values: Mapping[str, Any]) -> None:
        """Give values again that were masked when the run was kept: path -> value.

        Raises:
            ExecutionError: X141, nothing is masked at one of these paths.
        """
        asked = self.masked()
        unknown = [path for path in values if path not in asked]
        if unknown:
            raise ExecutionError(*(
                Problem("X141", f"nothing is masked at {path!r}", f"session {self._core.name!r}",
                        f"what was masked when the run was kept: {', '.join(asked) or 'nothing'}",
                        did_you_mean(path, asked, "name one of them, or use edit()"))
                for path in unknown
            ))  # fmt: skip
        if values:
            core = self._core
            masks.fill(core.engine, values)
            core.inputs = {**core.inputs, **{key: value for key, value in values.items() if key in core.inputs}}

    def _fills(self, value: Any, path: str | None) -> bool:
        """Take a person's answer as a value that was masked, where that is what is asked; say whether it was."""
        asked = self.masked()
        if not asked or (path is not None and path not in asked):
            return False
        self.fill({path or asked[0]: value})
        return True

    def _take_up(self, kind: Kind, wanted: str | None) -> None:
        """Bring a step of another process to where it waits, where a person wants to answer what it waits for."""
        core: Any = self
        run: Run = core.engine
        for call, known in waiting_since(run):
            if known.kind == kind and (wanted is None or wanted in (known.node, known.id)):
                core._safely(partial(core._bring, run.activation(call.act)))  # noqa: SLF001  (parts of it)
                return

    def _forget_recorded(self) -> None:
        """Forget what steps of another process had done: it holds for the very next steps alone."""
        run = self._core.engine
        if isinstance(run.recorded, Unfinished):
            for act in run.recorded.acts():
                if self.journal is not None:
                    self.journal.drop(act)
            run.recorded = None


__all__ = ["Lasting"]
