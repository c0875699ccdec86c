"""slices: what has happened in a run since the last time that somebody asked, as JSON; `joining` puts slices together.

A slice is a mapping of what there is new:

    "t"  rows of the tables: {"frames" | "acts" | "codes": [number of the first, rows]}
    "p"  parts of histories: [number of the history, steps, writes, pushes, rare]
         steps   seven lists: activation, begun (ns after the one before), ns it took, flag, and how much further the
                 frontier begins, the writes end and the pushes end than those of the step before
         writes  two lists: code, value by what it does not share with the one before
         pushes  one list: activation
         rare    what seldom is: "new" [parent, base, name], "amend" (the same three for the step before, which a
                 person has changed), "reads", "values" of pushes, "carried" ...

What was before each write is not kept: it is worked out again by doing the writes in order; so are the checkpoints.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from agentnb.board.codec import encode
from agentnb.board.places import APPEND
from agentnb.board.secrets import hidden, is_secret
from agentnb.board.values import ATOMS
from agentnb.engine.differences import difference
from agentnb.engine.history import CARRIED, Act, Call, Event, Failure, History, Tables
from agentnb.engine.replica import before
from agentnb.errors import AgentNbError, StoreError
from agentnb.expressions.paths import path_text

if TYPE_CHECKING:
    from agentnb.engine.run import Run

VERSION: Final = 1
Json = dict[str, Any]
Key = tuple[int, int, int]  # of an attempt: activation, call, attempt


@dataclass(slots=True)
class Mark:
    """How far a history is kept: how many of its rows, and where its last kept step ended."""

    rows: int = 0
    last: tuple[int, int, int] = (0, 0, 0)
    reads: int = 0
    people: int = 0
    events: int = 0
    calls: int = 0

    def stays(self, history: History) -> bool:
        """Say whether nothing has come to the rows that are kept: no act of a person, nothing that was amended."""
        row = self.rows - 1
        return (
            row >= 0
            and (history.s_pos[row], history.s_wend[row], history.s_pend[row]) == self.last
            and len(history.people) == self.people
            and len(history.events) == self.events
            and len(history.calls) == self.calls
            and len(history.r_step) == self.reads
        )


class Slicer:
    """Gives the slices of one run, one after the other. It numbers histories in the order in which it meets them.

    `told` and `announced` are the attempts and events that are kept already, from before their step was committed: a
    slice only names those. `lenient` writes what no codec takes as short text, marked as opaque.
    """

    def __init__(self, tables: Tables, *, lenient: bool = False) -> None:
        self.tables, self.lenient = tables, lenient
        self.histories: list[History] = []
        self.marks: list[Mark] = []
        self.kept = [1, 0, 0]  # frames (the root is always there), activations, codes
        self.told: dict[Key, Call] = {}
        self.announced: set[int] = set()
        self.run: Run | None = None  # whose it is: what it has left, and the names of its nodes
        self.unfit: int | None = None  # the step that could not be kept, since no codec takes a value of it
        self._numbers: dict[int, int] = {}
        self._secret: list[str | None] = []

    @classmethod
    def after(cls, tables: Tables, histories: Sequence[History]) -> Slicer:
        """Return a slicer for which all of these histories is kept, each under its place."""
        slicer = cls(tables)
        for history in histories:
            mark, size = slicer.marks[slicer.know(history)], len(history.s_pend)
            mark.rows, mark.last = size, (history.s_pos[size - 1], history.s_wend[size - 1], history.s_pend[size - 1])
            mark.reads, mark.people, mark.events, mark.calls = _counts(history, mark, history.tip)
        slicer.kept = [len(tables.frames), len(tables.acts), len(tables.codes)]
        return slicer

    def fork(self, tables: Tables) -> Slicer:
        """Return a slicer that goes on from here by itself: what is kept so far is kept for it too."""
        other = Slicer(tables, lenient=self.lenient)
        other.histories, other.kept = [*self.histories], [*self.kept]
        other._numbers = {**self._numbers}
        other.marks = [Mark(*(getattr(mark, name) for name in Mark.__slots__)) for mark in self.marks]
        return other

    def know(self, history: History) -> int:
        """Return the number of a history; a new one is numbered, after those that it comes from."""
        number = self._numbers.get(id(history))
        if number is None:
            if history.parent is not None:
                self.know(history.parent)
            number = self._numbers[id(history)] = len(self.histories)
            self.histories.append(history)
            self.marks.append(Mark())
        return number

    def known(self) -> tuple[list[Mark], list[int]]:
        """Return how far all is kept, for `forget`."""
        return [*self.marks], self.kept

    def forget(self, known: tuple[list[Mark], list[int]]) -> None:
        """Go back to what was kept then: what was taken since counts as not taken."""
        marks, self.kept = known
        self.histories, self.marks = self.histories[: len(marks)], [*marks]
        self._numbers = {key: number for key, number in self._numbers.items() if number < len(marks)}

    def behind(self, history: History, size: int) -> int:
        """Return how many of the first `size` rows of a history are not kept yet."""
        number = self._numbers.get(id(history))
        return size - (0 if number is None else self.marks[number].rows)

    def take(self, histories: Sequence[tuple[History, int]], *, rows: bool = False) -> Json:
        """Return what is new in some histories, each up to so many rows; empty where nothing is. It counts as kept.

        The tables are shared with forks: where nothing else is new, their rows are told only where `rows` are wanted.

        Raises:
            StoreError: L401, a value can be kept by no codec; then nothing counts as kept.
        """
        sizes = sorted([(self.know(history), size) for history, size in histories])
        taken = [(number, *self._part(number, size)) for number, size in sizes]
        parts = [part for _, part, _ in taken if part]
        tables, kept = self._rows_of_tables() if parts or rows else ({}, self.kept)
        for number, _, mark in taken:
            self.marks[number] = mark
        self.kept, self.unfit = kept, None
        return {name: found for name, found in (("t", tables), ("p", parts)) if found}

    def _rows_of_tables(self) -> tuple[Json, list[int]]:
        tables, kept, found = self.tables, self.kept, {}
        ends = [len(tables.frames), len(tables.acts), len(tables.codes)]
        if ends[0] > kept[0]:
            rows = tables.frames[kept[0] : ends[0]]
            found["frames"] = [kept[0], [[*row[:-1], encode(row.given, lenient=self.lenient)] for row in rows]]
        if ends[1] > kept[1]:
            found["acts"] = [kept[1], [list(row) for row in tables.acts[kept[1] : ends[1]]]]
        if ends[2] > kept[2]:
            found["codes"] = [kept[2], [[scope, list(path)] for scope, path in tables.codes[kept[2] : ends[2]]]]
        return found, ends

    # -- one history ---------------------------------------------------------------------------------------------

    def _part(self, number: int, size: int) -> tuple[list[Any], Mark]:
        """Return what is new in a history up to a row, and the mark that stands behind it."""
        history, mark = self.histories[number], self.marks[number]
        first, tip = mark.rows, history.base + size - 1
        if size < first:
            return [], mark
        if size == first and mark.stays(history):
            return [], mark
        rare: Json = {}
        last = (0, 0, 0)
        if not first:
            rare["new"] = [None if history.parent is None else self.know(history.parent), history.base, history.name]
        else:
            last = (history.s_pos[first - 1], history.s_wend[first - 1], history.s_pend[first - 1])
            if last != mark.last:
                rare["amend"] = [now - then for now, then in zip(last, mark.last, strict=True)]
        new = Mark(size, (history.s_pos[size - 1], history.s_wend[size - 1], history.s_pend[size - 1]),
                   *_counts(history, mark, tip))  # fmt: skip
        writes, pushes = (mark.last[1], new.last[1]), (mark.last[2], new.last[2])
        steps = _steps(history, first, size, last) if size > first else []
        self._rare(history, (first, size), writes, rare)
        self._pushed(history, pushes, rare)
        self._lists(history, mark, new, rare)
        if not steps and not rare:
            return [], mark
        return [number, steps, self._writes(history, *writes), history.p_act[slice(*pushes)].tolist(), rare], new

    def _rare(self, history: History, rows: tuple[int, int], writes: tuple[int, int], rare: Json) -> None:
        """Add what is kept by step or by write in sparse tables."""
        first, size = rows
        steps: Sequence[int] = range(history.base + first, history.base + size)
        if "amend" in rare:
            steps = range(history.base + first - 1, history.base + size)
        if history.rare and steps:
            found = history.rare[bisect_left(history.rare, steps[0]) : bisect_right(history.rare, steps[-1])]
            if found:
                rare["rare"] = found
        for name, table in (("opened", history.opened), ("closed", history.closed)):
            if table and (given := [[step, list(table[step])] for step in steps if step in table]):
                rare[name] = given
        if history.errors and (failed := [step for step in steps if step in history.errors]):
            rare["errors"] = [_failure(step, history.errors[step]) for step in failed]
        if history.notes and (noted := [step for step in steps if step in history.notes]):
            rare["notes"] = [[step, self._fit(history, step, "what it noted", partial(_coded, history.notes[step]))]
                             for step in noted]  # fmt: skip
        if history.in_place and (placed := [row for row in range(*writes) if row in history.in_place]):
            rare["in_place"] = placed
        if history.order and (ordered := [[row, history.order[row]] for row in range(*writes) if row in history.order]):
            rare["order"] = ordered

    def _pushed(self, history: History, rows: tuple[int, int], rare: Json) -> None:
        """Add what is known of the pushes besides where they lead."""
        start, end = rows
        if history.asides and (
            aside := [[at, history.asides[at], history.returns[history.asides[at] - 1]]
                      for at in range(start, end) if at in history.asides]
        ):  # fmt: skip
            rare["asides"] = aside
        values = history.p_val[start:end]
        if values.count(None) == len(values):
            return
        if carried := [start + at for at, value in enumerate(values) if value is CARRIED]:
            rare["carried"] = carried
        if given := [at for at, value in enumerate(values, start) if value is not None and value is not CARRIED]:
            rare["values"] = [[at, self._fit(history, history.base + bisect_right(history.s_pend, at), "a condition",
                                             partial(encode, history.p_val[at]))] for at in given]  # fmt: skip

    def _lists(self, history: History, mark: Mark, new: Mark, rare: Json) -> None:
        """Add what has grown in the lists: reads, people's acts, events, calls."""
        if new.reads > mark.reads:
            rare["reads"] = [history.r_step[mark.reads : new.reads].tolist(),
                             history.r_code[mark.reads : new.reads].tolist()]  # fmt: skip
        if new.people > mark.people:
            rare["people"] = [_act(act) for act in history.people[mark.people : new.people]]
        if new.events > mark.events:
            rare["events"] = [self._fit(history, event.at, f"event {event.type!r}", partial(self.event, event))
                              for event in history.events[mark.events : new.events]]  # fmt: skip
        if new.calls > mark.calls:
            rare["calls"] = [self._fit(history, call.step, f"{call.kind} {call.name!r}", partial(self.call, call))
                             for call in history.calls[mark.calls : new.calls]]  # fmt: skip

    def _writes(self, history: History, start: int, end: int) -> list[Any]:
        codes, secret = self.tables.codes, self._secret
        secret.extend(next((str(name) for name in path if is_secret(name)), None) for _, path in codes[len(secret) :])
        written = history.w_code[start:end].tolist()
        rows = zip(written, history.w_new[start:end], history.w_old[start:end], strict=True)
        try:
            return [written, [new if (new.__class__ is int or new.__class__ is bool or new is None)
                              and not secret[code >> 2] else self._write(code, new, old, lenient=self.lenient)
                              for code, new, old in rows]]  # fmt: skip
        except StoreError:
            return [written, [self._written(history, row) for row in range(start, end)]]

    def _write(self, code: int, new: Any, old: Any, *, lenient: bool) -> Any:
        name = self._secret[code >> 2]
        if new.__class__ in ATOMS or name or code & 3:
            return encode(new, name, lenient=lenient)
        return difference(new, before(old, self.tables.codes[code >> 2][1]), lenient=lenient)

    def _written(self, history: History, row: int) -> Any:
        """Return one write as JSON. Where its own step, or an edit there, writes the whole key anew, it may be text."""
        code, step = history.w_code[row], history.base + bisect_right(history.s_wend, row)
        scope, path = self.tables.codes[code >> 2]
        anew = {(scope, path[:1])}
        later = history.w_code[row + 1 : history.s_wend[step - history.base]] if step <= history.tip else ()
        lost = any(other & 3 != APPEND and self.tables.codes[other >> 2] in anew for other in later)
        write = partial(self._write, code, history.w_new[row], history.w_old[row])
        return write(lenient=True) if lost else self._fit(history, step, f"key {path_text(path)!r}", write)

    def _fit(self, history: History, step: int, what: str, code: Callable[..., Any]) -> Any:
        """Return what `code` gives; as text what no codec takes of a step that is left, or that a person has mended.

        Raises:
            StoreError: L401, a value can be kept by no codec: of which step and node, and where it stands.
        """
        try:
            return code(lenient=self.lenient)
        except StoreError as error:
            if self.run is None:
                raise
            if self._is_over(self.run, history, step, what):
                return code(lenient=True)
            self.unfit = step
            problem, row = error.problems[0], step - history.base
            begun = "the inputs" if not step else f"step {step}"
            node = f", {self.run.node_of(history.s_act[row])!r}" if 0 < row < len(history.s_act) else ""
            do = f"{problem.do}: session.edit(...), then go on; or session.retry()"
            raise StoreError(replace(problem, where=f"{begun}{node}, {what}", do=do)) from None

    def _is_over(self, run: Run, history: History, step: int, what: str) -> bool:
        ends = dict(zip(map(id, run.chain), (*(after.base for after in run.chain[1:]), run.history.tip), strict=True))
        if step > ends.get(id(history), -1):
            return True
        return not what.startswith("key ") and any(act.act == "edit" and act.step == step for act in history.people)

    # -- rows ----------------------------------------------------------------------------------------------------

    def call(self, call: Call, *, lenient: bool = False) -> list[Any]:
        """Return a call's row: what names it where it is kept already, else the whole of it."""
        known = self.told.get((call.act, call.call, call.attempt))
        if known is not None and known.result is call.result and known.error == call.error:
            return [call.step, call.act, call.call, call.attempt]
        return whole_call(call, lenient=lenient)

    def event(self, event: Event, *, lenient: bool = False) -> list[Any]:
        """Return an event's row: its step and number where it is kept already, else the whole of it."""
        return [event.step, event.seq] if event.seq in self.announced else whole_event(event, lenient=lenient)


def _counts(history: History, mark: Mark, tip: int) -> tuple[int, int, int, int]:
    """Return how many reads, people's acts, events and calls of a history belong to its steps up to `tip`."""
    reads, people, events, calls = len(history.r_step), len(history.people), len(history.events), len(history.calls)
    while reads > mark.reads and history.r_step[reads - 1] > tip:
        reads -= 1
    while people > mark.people and history.people[people - 1].step > tip:
        people -= 1
    while events > mark.events and history.events[events - 1].at > tip:
        events -= 1
    while calls > mark.calls and history.calls[calls - 1].step > tip:
        calls -= 1
    return reads, people, events, calls


def _steps(history: History, first: int, size: int, last: tuple[int, int, int]) -> list[list[int]]:
    rows = slice(first, size)
    began, ended = history.s_t0[rows].tolist(), history.s_t1[rows].tolist()
    before_it = history.s_t0[first - 1] if first else 0
    ends = ((history.s_pos, last[0]), (history.s_wend, last[1]), (history.s_pend, last[2]))
    return [
        history.s_act[rows].tolist(),
        [later - earlier for earlier, later in pairwise([before_it, *began])],
        [end - start for start, end in zip(began, ended, strict=True)],
        history.s_flag[rows].tolist(),
        *([later - earlier for earlier, later in pairwise([start, *column[rows].tolist()])] for column, start in ends),
    ]


def _coded(row: Any, *plain: int, lenient: bool) -> list[Any]:
    return [item if at in plain else encode(item, name, lenient=lenient)
            for at, (name, item) in enumerate(zip(row._fields, row, strict=True))]  # fmt: skip


def whole_call(call: Call, *, lenient: bool = False) -> list[Any]:
    """Return the whole row of a call as JSON."""
    return _coded(call, 0, 1, 2, lenient=lenient)


def whole_event(event: Event, *, lenient: bool = False) -> list[Any]:
    """Return the whole row of an event as JSON."""
    seq, step, *said, payload, at, mark = event
    return [seq, step, *map(encode, said), encode(payload, lenient=lenient), at, encode(mark)]


def _failure(step: int, failure: Failure) -> list[Any]:
    """Return a failure as JSON: type, message, whether it came too late, its Problem, and what its step came to."""
    error, problem, result = failure.error, None, None
    if isinstance(error, AgentNbError) and error.problems:
        first = error.problems[0]
        problem = [first.code, *map(hidden, (first.what, first.where, first.why, first.do))]
    if hasattr(error, "result"):
        result = [encode(failure.result, lenient=True)]
    return [step, failure.type, hidden(failure.message), failure.timeout, problem, result]


def _act(act: Act) -> list[Any]:
    """Return a person's act as JSON; what no codec takes as text, since nothing goes on from it."""
    key = next(filter(is_secret, act.target.split(".")), act.target)
    old, new = (encode(value, key, lenient=True) for value in (act.old, act.new))
    return [act.step, act.act, act.target, old, new, act.actor, encode(act.time)]


def whole(chain: Sequence[History], *, lenient: bool = False) -> Json:
    """Return a chain of histories as one slice, each as far as the next one goes on from it.

    Raises:
        StoreError: L401, a value can be kept by no codec.
    """
    slicer = Slicer(chain[0].tables, lenient=lenient)
    ends = [*(after.base - history.base + 1 for history, after in pairwise(chain)), len(chain[-1].s_pend)]
    return slicer.take(list(zip(chain, ends, strict=True)))


def family(chains: Iterable[Sequence[History]]) -> list[History]:
    """Return the histories of all chains once each, parents first."""
    return list({id(history): history for chain in chains for history in chain}.values())


__all__ = ["VERSION", "Json", "Mark", "Slicer", "family", "whole", "whole_call", "whole_event"]
