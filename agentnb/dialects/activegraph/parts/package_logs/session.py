"""Sessions for runs of the activegraph package, which step through the deliveries of a log."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

from agentnb.arguments import plain_arguments
from agentnb.board.masking import mask_value
from agentnb.board.values import thaw
from agentnb.dialects.activegraph.parts.package_logs.building import run_of
from agentnb.dialects.activegraph.parts.package_logs.reading import read_log
from agentnb.dialects.activegraph.parts.package_logs.records import LogRun, PackageLog
from agentnb.errors import Problem
from agentnb.session.pending import Pending
from agentnb.session.recording import Recording
from agentnb.text import safe_str

if TYPE_CHECKING:
    import pandas as pd

    from agentnb.session.session import Session
    from agentnb.trace.trace import SimulationStep

_COLUMNS: Final = {
    "run_id": "object", "label": "object", "goal": "object", "created": "object", "parent": "object",
    "forked_at": "object", "events": "int64", "archived": "int64",
}  # fmt: skip


class ActiveGraphRun(Recording):
    """A run recorded by the activegraph package, from its store. It can only be read.

    `step`, `run` and `step_over` go forward through the record, `back`, `goto` and `run_back` backward. A step is one
    delivery of one event to one behavior. The board is the object graph: each object, relation and patch under its id.
    `package_log` is the log itself, `runs` the other runs of its store.
    """

    __slots__ = ("_opened", "_recording", "_where")

    _where: str | os.PathLike[str]
    _recording: PackageLog
    _opened: dict[str, ActiveGraphRun]

    @classmethod
    def of(cls, where: str | os.PathLike[str], log: PackageLog, opened: dict[str, ActiveGraphRun]) -> ActiveGraphRun:
        """Return the session of a run; `opened` contains the sessions of other runs of its store.

        Raises:
            StoreError: L463, an event cannot be read.
        """
        run = run_of(log)
        session = cls.of_run(run, run.plan.recipe.name, log.run.run_id, _read_only(log), "idle")
        session._recording, session._where, session._opened = log, where, opened  # noqa: SLF001  (it is made here)
        opened[log.run.run_id] = session
        return session

    @property
    def package_log(self) -> PackageLog:
        """The log that was read."""
        return self._recording

    # -- moving ----------------------------------------------------------------------------------------

    def step_over(self) -> SimulationStep | None:
        """Move past all recorded deliveries of the next event."""
        run, tip = self._run, self._run.history.tip
        activations, steps = run.tables.activations, run.history.step_activations
        end = run.position + 1
        while end < tip and activations[steps[end + 1]].event == activations[steps[end]].event:
            end += 1
        return self._forward_to(min(end, tip))

    # -- contents of the log -------------------------------------------------------------------------------------

    def _get_status_word(self) -> str:
        return "exhausted" if self._get_limit() else super()._get_status_word()

    def _get_limit(self) -> str | None:
        """Return the limit that ended the run, if the session is at its end."""
        if self._run.position < self._run.history.tip:
            return None
        for event in reversed(self.package_log.events):
            if event.type == "runtime.budget_exhausted":
                return str(event.payload.get("exhausted_by") or "a limit")
            if event.type.startswith(("behavior.", "runtime.idle")):
                return None
        return None

    def _get_outcome(self) -> dict[str, Any] | None:
        limit = self._get_limit()
        outcome = {"status": self._get_status_word(), "steps": self.position}
        return outcome if limit is None else {**outcome, "limit": limit}

    @property
    def pending(self) -> tuple[Pending, ...]:
        """The approvals that were pending at the current step."""
        approvals: dict[str, Pending] = {}
        makers = {event.id: event.step for event in self._run.events()}
        for event in self._run.events():
            id = str(event.payload.get("approval_id", ""))
            if event.type == "approval.proposed":
                step = makers[event.id]
                node = "" if step is None else self.trace.steps[step - 1].node_id
                arguments = {key: value for key, value in thaw(event.payload).items() if key != "approval_id"}
                approvals[id] = Pending(id, "approval", node, str(event.payload.get("object_type", "")), arguments,
                                    free=())  # fmt: skip
            elif event.type in ("approval.granted", "approval.denied"):
                approvals.pop(id, None)
        return tuple(approvals.values())

    # -- the other runs of its store -----------------------------------------------------------------------------

    @property
    def runs(self) -> pd.DataFrame:
        """The runs of the store, one per row: run_id, label, goal, created, parent, forked_at, events, archived."""
        from agentnb.trace.frames import make_table

        return make_table(
            [{name: mask_value(getattr(run, name)) for name in _COLUMNS} for run in self.package_log.runs], _COLUMNS
        )

    def _open_other(self, run_id: str) -> ActiveGraphRun:
        known = self._opened.get(run_id)
        return known or ActiveGraphRun.of(self._where, read_log(self._where, run_id), self._opened)

    @property
    def parent(self) -> Session | None:
        """The run that this one was forked from; None if it is not a fork, or if its parent is not in the store."""
        parent = self.package_log.run.parent
        known = parent is not None and any(run.run_id == parent for run in self.package_log.runs)
        return self._open_other(str(parent)) if known else None

    @property
    def forks(self) -> tuple[Session, ...]:
        """The runs of the store that were forked from this one."""
        return tuple(
            self._open_other(run.run_id) for run in self.package_log.runs if run.parent == self.package_log.run.run_id
        )

    def tree(self) -> str:
        """Return this run and all its forks, one per line, from their common root."""
        runs = {run.run_id: run for run in self.package_log.runs}
        top = self.package_log.run
        seen = {top.run_id}
        while top.parent in runs and top.parent not in seen:
            top = runs[top.parent]
            seen.add(top.run_id)
        return "\n".join(self._format_lines(top, 0, set()))

    def _format_lines(self, run: LogRun, depth: int, seen: set[str]) -> list[str]:
        seen.add(run.run_id)
        name = safe_str(run.label or run.goal or run.run_id)
        origin = f" from {run.forked_at}" if run.forked_at else ""
        mark = " <- here" if run.run_id == self.package_log.run.run_id else ""
        lines = [f"{'  ' * depth}{name} ({run.run_id}){origin}: {run.events + run.archived} events{mark}"]
        for other in self.package_log.runs:
            if other.parent == run.run_id and other.run_id not in seen:
                lines += self._format_lines(other, depth + 1, seen)
        return lines

    def to_activegraph(self, where: str | os.PathLike[str], run_id: str | None = None) -> str:
        """Write the run to a store that the package's `Runtime.load` opens: a file, or a PostgreSQL server.

        Raises:
            StoreError: as for `agentnb.dialects.activegraph.to_activegraph`.
        """
        from agentnb.dialects.activegraph.parts.package_logs.writing import to_activegraph

        return to_activegraph(self, where, run_id)


@plain_arguments
def open_activegraph(where: str | os.PathLike[str], run_id: str | None = None) -> ActiveGraphRun:
    """Return a run of the activegraph package as a session that can be stepped through, drawn, and read as tables.

    The store is opened read-only, and may be written by another program meanwhile. Nothing in the log is executed. The
    session is at the end of the run; `session.goto(0)` goes back to before its first delivery.

    Args:
        where: a path, or a URL (sqlite:///run.db, postgresql://user:password@host/database).
        run_id: the id of the run; default: the run that was written last. `session.runs` lists them.

    Raises:
        StoreError: L410, there is no store; L461, it is not a store of the package; L462, another version of
            the package wrote it; L463, an event cannot be read; L464, there is no such run; or the store cannot be
            read.
    """
    return ActiveGraphRun.of(where, read_log(where, run_id), {})


def _read_only(log: PackageLog) -> Problem:
    """L450: this run can only be read."""
    return Problem(
        "L450",
        "this run is read-only: it is a log of the activegraph package",
        f"{log.display_name}, run {log.run.run_id!r}",
        "a log records what happened; the behaviors are in the program that wrote it",
        "move through it with step(), back() and goto(); to continue it, load it with that program's Runtime",
    )


__all__ = ["ActiveGraphRun", "open_activegraph"]
