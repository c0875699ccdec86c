"""Recorded answers: the calls of a recorded run, from which the equal calls of a fork are answered."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

from agentnb.board.codec import is_known
from agentnb.board.values import thaw
from agentnb.engine.core.history import OUTSIDE
from agentnb.engine.effects.recorded_calls import CUT_SHORT, freeze_arguments
from agentnb.engine.replay.equality import are_equal
from agentnb.engine.replay.recorded_effects import UnrecordedCall

if TYPE_CHECKING:
    from agentnb.engine.core.history import Call
    from agentnb.engine.core.run import Run
    from agentnb.engine.core.work import Work
    from agentnb.trace.row_index import StepIndex
    from agentnb.world.effect import Effect


class _RecordedCall(NamedTuple):
    """A call of the recorded run: its step, and its attempts in order."""

    step: int
    rows: list[Call]


def send_nothing(_effect: Effect) -> bool:
    """Return False: no call that is not recorded is sent."""
    return False


class RecordedAnswers:
    """The calls of a recorded run (see `interfaces.AnswerSource`).

    A call of the same node with the same kind, name and arguments is equal, and the k-th of equal calls of a run gets
    the answer of the k-th in the record; a call that failed fails again. A call whose callable reads the board is equal
    if what its step read is equal, too. The count is that of the run's own history: a run that goes back gets the same
    answers again.

    `attempts` are the attempts that were sent, `refused` the calls that were not.

    Args:
        index: the steps of the recorded run, those after its position included.
        sends: returns whether a call that is not recorded is sent; otherwise its step is abandoned.
        skipped: a step whose calls are not used as answers.
    """

    def __init__(
        self, index: StepIndex, sends: Callable[[Effect], bool] = send_nothing, skipped: int | None = None
    ) -> None:
        self.attempts: list[Call] = []
        self.refused: list[Effect] = []
        self._index, self._sends, self._lock = index, sends, Lock()  # tools of one step may be called in threads
        self._calls = defaultdict[tuple[str, str, str], list[_RecordedCall]](list)
        self._kinds: dict[str, str] = {}
        self._read_values: dict[int, dict[str, Any]] = {}
        for history, last in index.parts():
            calls: dict[tuple[int, int, int], list[Call]] = {}
            for row in history.calls:
                if row.call != OUTSIDE and row.step <= history.base + last and row.step != skipped:
                    calls.setdefault((row.step, row.activation, row.call), []).append(row)
            for rows in calls.values():
                node, kind = index.nodes[index.tables.activations[rows[0].activation].node].id, rows[0].kind
                if kind in ("llm", "agent"):
                    self._kinds[node] = kind
                if rows[-1].error != CUT_SHORT and rows[-1].attempt and is_known(rows[-1].result):
                    self._calls[node, kind, rows[0].name].append(_RecordedCall(rows[0].step, rows))

    def get_kind(self, work: Work) -> str | None:
        """Return the kind of the recorded calls of a step's node to models or agents; None if none is recorded."""
        return self._kinds.get(work.node.id)

    def take(self, work: Work, number: int, effect: Effect) -> Call | None:
        """Add the recorded attempts of an equal call to a step's calls and return the last; None if it is to be sent.

        Raises:
            UnrecordedCall: it is not recorded, and must not be sent.
        """
        with self._lock:
            recorded = self._find(work, effect)
            if recorded is None:
                if effect.is_simulated or self._sends(effect):
                    return None
                self.refused.append(effect)
                raise UnrecordedCall
            step = work.run.position + 1  # provisional, as of every row of a step that is not committed
            rows = [row._replace(step=step, activation=work.activation.id, call=number) for row in recorded.rows]
            work.busy = True
            work.calls.extend(rows)
            if effect.target is not None:
                self._repeat_changes(work, recorded.step)
            return rows[-1]

    def add_attempt(self, row: Call) -> None:
        """Notice the end of an attempt of a call that was sent."""
        self.attempts.append(row)

    def _find(self, work: Work, effect: Effect) -> _RecordedCall | None:
        """Return the recorded call that answers a call; None if there is none."""
        calls = self._calls.get((work.node.id, effect.kind, effect.name), ())
        sent = freeze_arguments(effect) if calls else None
        equal = [call for call in calls if are_equal(call.rows[0].arguments, sent)]
        number = _count_equal_calls(work, effect, sent) if equal else 0
        if number >= len(equal):
            return None
        # The arguments of a call that reads the board say nothing: it is the k-th call, if it reads the same
        return equal[number] if not effect.reads_board or self._reads_same(work, equal[number].step) else None

    def _reads_same(self, work: Work, step: int) -> bool:
        """Return True if a node sees the values that a recorded step read."""
        values = self._read_values.get(step)
        if values is None:
            replica = self._index.replica(step - 1)
            values = {str(key): replica.get(scope, key) for scope, key in self._index.reads(step)}
            self._read_values[step] = values
        return all(are_equal(value, work.scope.get(key)) for key, value in values.items())

    def _repeat_changes(self, work: Work, step: int) -> None:
        """Repeat the in-place changes of a call's callable, which does not run again, to values that are as then."""
        for history, row, _ in self._index.rows(step):
            key = str(history.tables.codes[history.write_codes[row] >> 2][1][0])
            if row in history.in_place and are_equal(history.old_values[row], work.scope.get(key)):
                work.copies[key] = (thaw(history.new_values[row]), work.scope.get(key))


def _count_equal_calls(work: Work, effect: Effect, sent: Any) -> int:
    """Count the calls of a run, committed and in flight, that are equal to one that begins."""
    run = work.run
    flying = {id(work): work} | {id(each): each for each in _list_works_in_flight(run)}
    rows = [row for history, end in run.parts() for row in history.calls if row.step <= end and row.call != OUTSIDE]
    rows += [row for each in flying.values() for row in tuple(each.calls)]
    node = work.node.id
    return len({
        (row.step, row.activation, row.call) for row in rows
        if row.kind == effect.kind and row.name == effect.name and run.get_node_id(row.activation) == node
        and are_equal(row.arguments, sent)
    })  # fmt: skip


def _list_works_in_flight(run: Run) -> list[Work]:
    return [pending_step.activation.work for pending_step in tuple(run.pending_steps.values())]


__all__ = ["RecordedAnswers", "send_nothing"]
