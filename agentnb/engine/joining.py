"""joining: the tables and histories of a run, put together again from its slices. Nothing is imported, nothing runs."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping
from itertools import accumulate
from typing import Any, Final

from agentnb.board.values import thaw
from agentnb.engine.differences import put_back, unfrozen
from agentnb.engine.history import CARRIED, Act, ActRow, Call, Event, Failure, FrameRow, History, Note, Tables
from agentnb.engine.replica import Replica
from agentnb.engine.slices import VERSION, Key
from agentnb.errors import ExecutionError, Problem, StoreError

_DAMAGED = (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError, StopIteration)


class Joined:
    """Tables and histories, as far as slices have come.

    `told` are the attempts of calls, `out` the calls that went out by number (attempt, kind, name, arguments, when),
    and `announced` the events of steps that are not committed, by activation.

    Args:
        nodes: the number that each node of the record has now, where it has another one.
    """

    def __init__(self, nodes: Mapping[int, int] | None = None) -> None:
        self.tables = Tables()
        self.histories: list[History] = []
        self.told: dict[int, dict[Key, Call]] = {}
        self.out: dict[int, dict[int, list[Any]]] = {}
        self.announced: dict[int, list[Event]] = {}
        self._columns: list[list[list[int]]] = []  # of each history, the seven columns of its steps, as differences
        self._values: list[list[Any]] = []  # of each history, what its writes wrote, as it is kept
        self._nodes = nodes

    def add(self, slices: Iterable[Mapping[str, Any]]) -> None:
        """Take further slices, in their order.

        L402: this is no run or trace of agentnb, or it is damaged.

        Raises:
            StoreError: L402, they are none of ours, or damaged.
        """
        try:
            for each in slices:
                if "t" in each:
                    self._tables(each["t"])
                if "p" in each:
                    for part in each["p"]:
                        self._part(*part)
                if "told" in each:
                    for fact in each["told"]:
                        self._fact(*fact)
        except _DAMAGED as error:
            raise damaged(error) from error

    def renumber(self, nodes: Mapping[int, int]) -> None:
        """Take the slices from here on as those of a plan with other numbers for its nodes."""
        self._nodes = nodes

    def flying(self) -> set[int]:
        """Return the activations of the steps that are in flight."""
        return {*self.told, *self.out, *self.announced}

    def finish(self) -> tuple[Tables, list[History]]:
        """Work out what was before each write, and the checkpoints; return the tables and the histories.

        Raises:
            StoreError: L402, what was added is none of ours, or damaged.
        """
        try:
            for history, columns in zip(self.histories, self._columns, strict=True):
                _fill_steps(history, columns)
            for history, values in zip(self.histories, self._values, strict=True):
                Replica.of(history).fill(history, values, put_back)
                Replica.of(history).mark(history)
                if history.parent is not None:
                    history.parent.sealed = max(history.parent.sealed, history.base)
        except _DAMAGED as error:
            raise damaged(error) from error
        return self.tables, self.histories

    # -- what is in a slice --------------------------------------------------------------------------------------

    def _tables(self, rows: Mapping[str, Any]) -> None:
        tables = self.tables
        new = (lambda node: node) if self._nodes is None else self._nodes.__getitem__
        for row in _from(rows.get("frames"), len(tables.frames)):
            frame = FrameRow(*row)
            tables.frames.append(frame._replace(owner=new(frame.owner), given=unfrozen(frame.given)))
        for row in _from(rows.get("acts"), len(tables.acts)):
            act = ActRow(*row)
            tables.act(act._replace(node=new(act.node)))
        for scope, path in _from(rows.get("codes"), len(tables.codes)):
            tables.code(scope, tuple(path))

    def _part(self, number: int, steps: list[list[int]], writes: list[Any], pushes: list[int], rare: Any) -> None:
        if "new" in rare:
            parent, base, name = rare["new"]
            if number != len(self.histories):
                raise ValueError(f"history {number} comes before others")
            above = None if parent is None else self.histories[parent]
            self.histories.append(History(self.tables, base=base, parent=above, name=name))
            self._columns.append([[], [], [], [], [], [], []])
            self._values.append([])
        history, columns = self.histories[number], self._columns[number]
        if "amend" in rare:  # the last step, as a person has changed it
            for column, more in zip(columns[4:], rare["amend"], strict=True):
                column[-1] += more
        if steps:
            act, began, took, flags, front, ends, pushed = columns  # one by one: this runs once a step
            act += steps[0]
            began += steps[1]
            took += steps[2]
            flags += steps[3]
            front += steps[4]
            ends += steps[5]
            pushed += steps[6]
        if writes[0]:
            history.w_code.extend(writes[0])
            self._values[number] += writes[1]
        if pushes:
            history.p_act.extend(pushes)
        if rare:
            for name, rows in rare.items():
                _TAKEN[name](self, history, rows)
        if steps and (self.told or self.out or self.announced):
            for gone in steps[0]:
                self.drop(gone)

    def _fact(self, what: str, act: int, *rest: Any) -> None:
        """Take what a step in flight has done."""
        if what == "out":
            number, attempt, kind, name, arguments, began = rest
            known = self.out.setdefault(act, {})
            given = known[number][3] if arguments is None and number in known else unfrozen(arguments)
            known[number] = [attempt, kind, name, given, began]
        elif what == "back":
            row = Call(*map(unfrozen, rest[0]))
            if rest[1]:
                row = row._replace(arguments=self.out[act][row.call][3])
            self.told.setdefault(act, {})[row.act, row.call, row.attempt] = row
        elif what == "stays":
            self.out.get(act, {}).pop(rest[0], None)
        elif what == "emit":
            self.announced.setdefault(act, []).append(Event(*map(unfrozen, rest[0])))
        else:
            self.drop(act)

    def drop(self, act: int | None = None) -> None:
        """Forget what a step in flight has done; left out: all of them."""
        for table in (self.told, self.out, self.announced):
            if act is None:
                table.clear()
            else:
                table.pop(act, None)

    def _conditions(self, history: History, rows: list[Any]) -> None:
        """Take the values of the conditions that pushes were taken for."""
        history.p_val.extend([None] * (len(history.p_act) - len(history.p_val)))
        for row, value in rows:
            history.p_val[row] = unfrozen(value)

    def _carried(self, history: History, rows: list[int]) -> None:
        history.p_val.extend([None] * (len(history.p_act) - len(history.p_val)))
        for row in rows:
            history.p_val[row] = CARRIED

    def _asides(self, history: History, rows: list[list[int]]) -> None:
        for start, end, waiting in rows:
            history.asides[start], history.returns[end - 1] = end, waiting

    def _reads(self, history: History, rows: list[list[int]]) -> None:
        history.r_step.extend(rows[0])
        history.r_code.extend(rows[1])

    def _marked(self, history: History, steps: list[int]) -> None:
        for step in steps:
            history.mark_rare(step)

    def _calls(self, history: History, rows: list[list[Any]]) -> None:
        history.calls.extend([self._call(row) for row in rows])

    def _events(self, history: History, rows: list[list[Any]]) -> None:
        history.events.extend([self._event(row) for row in rows])

    def _call(self, row: list[Any]) -> Call:
        if len(row) > 4:
            return Call(*map(unfrozen, row))
        step, act, call, attempt = row
        return self.told[act][act, call, attempt]._replace(step=step)

    def _event(self, row: list[Any]) -> Event:
        if len(row) > 2:
            return Event(*map(unfrozen, row))
        step, seq = row
        found = next(event for events in self.announced.values() for event in events if event.seq == seq)
        return found._replace(step=step, at=found.at if step is None else step)


def _failure(kind: str, message: str, timeout: bool, problem: list[str] | None, result: list[Any] | None) -> Failure:
    """Return a failure as it was kept; its exception is one only where more is known of it than its text."""
    error: Any = None
    if problem is not None:
        code, what, where, why, do = problem
        error = ExecutionError(Problem(code, what, where, why, do))
    if result is not None:
        error = error or Exception(message)
        error.result = thaw(unfrozen(result[0]))
    return Failure(kind, message, error, timeout)


# How each thing that seldom is in a slice is taken.
_TAKEN: Final[dict[str, Callable[[Joined, History, Any], None]]] = {
    "new": lambda _joined, _history, _rows: None,
    "amend": lambda _joined, _history, _rows: None,
    "values": Joined._conditions,  # noqa: SLF001  (parts of it)
    "carried": Joined._carried,  # noqa: SLF001
    "asides": Joined._asides,  # noqa: SLF001
    "reads": Joined._reads,  # noqa: SLF001
    "rare": Joined._marked,  # noqa: SLF001
    "calls": Joined._calls,  # noqa: SLF001
    "events": Joined._events,  # noqa: SLF001
    "opened": lambda _, history, rows: history.opened.update((step, tuple(frames)) for step, frames in rows),
    "closed": lambda _, history, rows: history.closed.update((step, tuple(frames)) for step, frames in rows),
    "errors": lambda _, history, rows: history.errors.update((row[0], _failure(*row[1:])) for row in rows),
    "notes": lambda _, history, rows: history.notes.update((step, Note(*map(unfrozen, row))) for step, row in rows),
    "in_place": lambda _, history, rows: history.in_place.update(rows),
    "order": lambda _, history, rows: history.order.update(rows),
    "people": lambda _, history, rows: history.people.extend([Act(*map(unfrozen, row)) for row in rows]),
}


def _from(rows: Any, known: int) -> list[Any]:
    """Return the rows of a table that are new: two that go on from the same place may both tell of them."""
    if rows is None:
        return []
    first, given = rows
    if first > known:
        raise ValueError(f"rows {known} to {first} of a table are missing")
    return list(given[known - first :])


def _fill_steps(history: History, columns: list[list[int]]) -> None:
    """Fill the columns of the steps from the differences that were taken."""
    act, began, took, flags, front, writes, pushes = columns
    starts = list(accumulate(began))
    history.s_act, history.s_flag = array("I", act), array("B", flags)
    history.s_t0 = array("q", starts)
    history.s_t1 = array("q", [start + length for start, length in zip(starts, took, strict=True)])
    history.s_pos, history.s_wend = array("I", accumulate(front)), array("I", accumulate(writes))
    history.s_pend = array("I", accumulate(pushes))
    history.p_val.extend([None] * (len(history.p_act) - len(history.p_val)))


def joined(document: Mapping[str, Any], nodes: Mapping[int, int] | None = None) -> tuple[Tables, list[History]]:
    """Return the tables and histories of a document that holds its version and its `slices`.

    Raises:
        StoreError: L402, it is none of ours or damaged; L403, a newer agentnb wrote it.
    """
    check_version(document.get("version"))
    found = Joined(nodes)
    try:
        slices = list(document["slices"])
    except _DAMAGED as error:
        raise damaged(error) from error
    found.add(slices)
    return found.finish()


def check_version(version: Any) -> None:
    """Raise for what a newer agentnb wrote.

    Raises:
        StoreError: L403, it did.
    """
    if isinstance(version, int) and version > VERSION:
        raise StoreError(
            Problem("L403", "a newer agentnb wrote this", "the document", f"it has version {version}, this one reads "
                    f"up to {VERSION}", "install a newer agentnb: pip install --upgrade agentnb")
        )  # fmt: skip


def damaged(error: Exception) -> StoreError:
    """Return the error for what cannot be read."""
    return StoreError(
        Problem("L402", "this is not a run of agentnb, or it is damaged", "the document",
                f"{type(error).__name__}: {error}", "open a file that trace.to_json or a store has written")
    )  # fmt: skip


__all__ = ["Joined", "check_version", "damaged", "joined"]
