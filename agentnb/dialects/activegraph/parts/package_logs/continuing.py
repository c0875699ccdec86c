"""Continuation of a run of the activegraph package: its log is read into a run, and new events are added to the log."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from agentnb.board.masking import mask_value
from agentnb.clock import Clock
from agentnb.dialects.activegraph.parts.events import Event, is_lifecycle
from agentnb.dialects.activegraph.parts.graph import Graph
from agentnb.dialects.activegraph.parts.late_registration import attach, get_first_step
from agentnb.dialects.activegraph.parts.package_logs.building import run_of
from agentnb.dialects.activegraph.parts.package_logs.reading import read_log
from agentnb.dialects.activegraph.parts.package_logs.records import LogEvent, PackageLog
from agentnb.dialects.activegraph.parts.package_logs.writing import append_events
from agentnb.engine.control.budget import Budget
from agentnb.engine.core.event_queue import append
from agentnb.errors import ExecutionError, Problem, StoreError
from agentnb.secrets import masking_for, remember_masking
from agentnb.session.checks import check_not_running
from agentnb.session.limits import Limits
from agentnb.session.parts import get_parts
from agentnb.session.persistence import Persistence, make_closed_problem
from agentnb.session.session import make_session
from agentnb.store import open_log
from agentnb.store.other_tables import write_for
from agentnb.store.urls import parse

if TYPE_CHECKING:
    from agentnb.session.callbacks import Callbacks
    from agentnb.session.state import State


class LogWriter:
    """Adds the events of a run to the log of the package that it was read from, as soon as they are emitted.

    An event that cannot be written waits for the next attempt; `flush` raises the error.
    """

    def __init__(self, where: str | os.PathLike[str], log: PackageLog) -> None:
        self.where, self.run_id = where, log.run.run_id
        self.url = log.display_name
        self._known = {event.id: (event.type, event.payload) for event in log.events}
        self._last = log.events[-1].id if log.events else None
        self._waiting: list[LogEvent] = []
        self.masking = remember_masking()  # replaced when the run is known

    def add(self, event: Event) -> None:
        """Write an event, unless a repeated step has emitted it again: then it is already in the log.

        L468: a step that was interrupted and repeated emits something different from the log.

        Raises:
            StoreError: L468.
        """
        with self.masking():
            payload, actor = mask_value(event.payload), mask_value(event.actor)
        known = self._known.setdefault(event.id, (event.type, payload))
        if known[1] is not payload:
            if known != (event.type, payload):
                raise StoreError(
                    Problem("L468", f"{event.id!r} is already in the log as a different event", self._place,
                            "a log of the activegraph package is append-only",
                            "fork the run at the previous event: runtime.fork(EVENT_ID)")
                )  # fmt: skip
            return
        fields = event.type, actor, payload, event.frame_id, event.caused_by, event.timestamp
        self._waiting.append(LogEvent(event.id, *fields))
        try:
            self.flush()
        except StoreError as error:
            if error.problems[0].code == "L469":
                raise
            # The emitting behavior is not at fault: the next operation writes the event or raises the error.

    def flush(self) -> None:
        """Write the waiting events.

        Raises:
            StoreError: L469, another program has written this run since; or it cannot be written.
        """
        if self._waiting:
            waiting = tuple(self._waiting)
            write_for(self.where, partial(append_events, run_id=self.run_id, last=self._last, events=waiting))
            self._last = waiting[-1].id
            del self._waiting[: len(waiting)]

    def is_at(self, path: Any) -> bool:
        """Return True if this path or URL names the store of the log."""
        return parse(path).target == parse(self.where).target

    @property
    def _place(self) -> str:
        return f"{self.url}, run {self.run_id!r}"


class LogPersistence(Persistence):
    """Saves a run of the activegraph package that is continued here. It is stored only as its log.

    The run can therefore be continued only at its end, and changed only by events. Its forks are in memory.
    """

    def __init__(self, state: State, callbacks: Callbacks, writer: LogWriter) -> None:
        super().__init__(state, callbacks)
        self.writer, self._run = writer, state.run
        writer.masking = partial(masking_for, state.run.tables.secrets)

    @property
    def store(self) -> Any:
        """The log writer of the run."""
        return super().store or self.writer

    def check_ready(self, *, repairs: bool = False) -> None:
        """Check that the next events can be added to the log.

        L470: a run of the package would continue from an earlier step, or be changed without an event.

        Raises:
            ExecutionError: L470, the run is at an earlier step.
            StoreError: the log cannot be written.
        """
        super().check_ready(repairs=repairs)
        self.writer.flush()
        run = self._state.run
        if run is not self._run or run.current_history is not run.history or run.position != run.history.tip:
            raise self._make_changed_error(
                "it is not at its last step", "go to its end with goto(), or fork it here: fork()"
            )

    def check_intervention(self, verb: str) -> None:
        """Raise an error for an intervention that the package does not record as an event.

        Raises:
            ExecutionError: L470.
        """
        if verb in ("edit()", "skip()"):
            raise self._make_changed_error(f"{verb} is not an event",
                                      "use runtime.graph.patch_object(...), or fork it and edit the fork")  # fmt: skip

    def save_changes(self) -> None:
        """Write the events that are not written yet.

        Raises:
            StoreError: the log cannot be written.
        """
        super().save_changes()
        self.writer.flush()

    def save(self, path: Any = None) -> str:
        """Return the location of the log; with another path, store a copy there, as for any run of agentnb.

        Raises:
            StoreError: the copy cannot be written.
        """
        if path is not None and not self.writer.is_at(path):
            return super().save(path)
        self.writer.flush()
        return self.writer.url

    def close(self) -> None:
        """Write the events that are not written yet; afterwards the run is read-only.

        Raises:
            ExecutionError: X112, the run is in progress.
            StoreError: the log cannot be written.
        """
        super().close()
        check_not_running(self._state, "close()")
        self.writer.flush()
        self._state.read_only_reason = make_closed_problem(
            self._state.run_id, "load it again: Runtime.load(PATH, RUN_ID, ...)"
        )

    def _make_changed_error(self, why: str, do: str) -> ExecutionError:
        return ExecutionError(
            Problem("L470", "a log of the activegraph package is append-only", f"run {self._state.run_id!r}",
                    why, do)
        )  # fmt: skip


def open_package_log(path: Any, run_id: str | None) -> PackageLog | None:
    """Return the run if the store belongs to the package; None if it belongs to agentnb or does not exist.

    Raises:
        StoreError: the store cannot be read; L464, there is no such run.
    """
    try:
        open_log(path).run(run_id)
    except StoreError as error:
        if error.problems[0].code == "L416":  # the tables of another program
            return read_log(path, run_id)
    return None  # opening a store of agentnb reports its errors


def continue_log(
    path: Any, log: PackageLog, behaviors: Sequence[Any], config: Any, name: str, graph_store: Any
) -> Graph:
    """Return the graph of a run that continues at the end of a log of the package.

    As in the package, an event is delivered if no behavior has started on it since the run was last idle.

    Raises:
        StoreError: L463, an event cannot be read.
    """
    run = run_of(log)
    run.clock = Clock()
    run.ns = run.clock.ns
    session = make_session(run, Limits(Budget()), name, {}, log.run.run_id)
    graph = Graph(graph_store=graph_store, session=session)
    attach(graph, behaviors, config, name, 0)
    for at in _find_undelivered(log.events):
        event = run.get_event(at + 1)
        assert event is not None
        append(run, event)
    writer = LogWriter(path, log)
    parts = get_parts(session)
    parts.persistence = LogPersistence(parts.state, parts.callbacks, writer)
    # a log of the package does not contain everything needed for a replay
    parts.state.replayable_from = get_first_step(run)
    graph.add_listener(writer.add)
    return graph


def _find_undelivered(events: Sequence[LogEvent]) -> list[int]:
    """Return the indexes of the events that have not been delivered yet."""
    last_idle = max((at for at, event in enumerate(events) if event.type == "runtime.idle"), default=-1)
    suffix = range(last_idle + 1, len(events))
    fired = {
        events[at].payload.get("event_id")
        for at in suffix
        if events[at].type.startswith(("behavior.", "relation_behavior."))
    }
    return [
        at
        for at in suffix
        if not is_lifecycle(events[at].type)
        and events[at].id not in fired
        and not (events[at].actor or "").startswith("promote:")
    ]


__all__ = ["LogPersistence", "LogWriter", "continue_log", "open_package_log"]
