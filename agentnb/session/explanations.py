"""Explanations: why a run went where it did, and which step wrote a value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentnb.errors import ExecutionError
from agentnb.expressions.paths import parse_path
from agentnb.session import run_queries
from agentnb.session.causal_chain import Chain, get_chain
from agentnb.session.checks import refuse_step
from agentnb.session.last_writers import LastWriters, Writer
from agentnb.session.why import Why, explain_why
from agentnb.session.why_not import WhyNot, explain_why_not

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pandas as pd

    from agentnb.session.state import State


_BLAME_TYPES = {"step": "int64", "node": "category", "actor": "category", "old": "object", "new": "object"}


class Explanations:
    """Explains the run of a session from its history."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._writers, self._run = LastWriters(), state.run

    def why(self, at: int | None) -> Why:
        """Return why a step led to the next.

        Raises:
            ExecutionError: X111, there is no such step.
        """
        return explain_why(self._state.run, at)

    def why_not(self, behavior: str, at: int | str | None) -> WhyNot:
        """Return why a node did not run.

        Raises:
            ExecutionError: X101, there is no such node; X111, there is no such step or event.
        """
        if at is not None and not isinstance(at, str):
            refuse_step(self._state, at)
        return explain_why_not(self._state.run, behavior, at)

    def who_wrote(self, path: str, at: int | None) -> int | None:
        """Return the step that last changed the value at a path; 0 for the inputs, None if nothing wrote it.

        Raises:
            ExecutionError: X145, nothing writes a key of this name; X111, there is no such step.
        """
        return run_queries.find_writer(self._state.run, path, self._check(path, at, "session.who_wrote()"))

    def blame(self, path: str, at: int | None) -> pd.DataFrame:
        """Return every change of the value at a path as a DataFrame; see `Session.blame`.

        Raises:
            ExecutionError: X145, nothing writes a key of this name; X111, there is no such step.
        """
        from agentnb.trace.frames import make_table, to_cell

        rows = run_queries.blame(self._state.run, path, self._check(path, at, "session.blame()"))
        cells = [row | {name: to_cell(row[name], path) for name in ("old", "new")} for row in rows]
        return make_table(cells, _BLAME_TYPES)

    def _check(self, path: str, at: int | None, where: str) -> int:
        """Return the step that a question is about.

        Raises:
            ExecutionError: X145, nothing writes a key of this name; X111, there is no such step.
        """
        state = self._state
        if at is not None:
            refuse_step(state, at)
        if problems := [*state.check_paths([parse_path(path)], where)]:
            raise ExecutionError(*problems)
        return state.run.position if at is None else at

    def writers(self, keys: Iterable[str] | None = None) -> dict[str, Writer]:
        """Return the last writer of each of these keys of the board, or of all.

        A writer is the step and its node; "" for the inputs, None for a person's edit.
        """
        state = self._state
        if self._run is not state.run:  # it was reset
            self._writers, self._run = LastWriters(), state.run
        return self._writers.of(state.run, state.board if keys is None else keys)

    def chain(self, id_: str) -> Chain:
        """Return the causes and effects of an event, an object, a relation, a patch or an approval.

        Raises:
            ExecutionError: X161, no event so far concerns it.
        """
        return get_chain(self._state.run, id_)


__all__ = ["Explanations"]
