"""journal: keeps a run in a log while it moves: each step when it is committed, each call and event when it is made.

An entry is a slice (see `slices`), and beside it what else has changed:

    "told"  what steps in flight have done: ["out", activation, call, attempt, kind, name, arguments, begun (ns)],
            ["stays", activation, call]: it could not be kept that it goes out, so it did not,
            ["back", activation, the row of an attempt, whether its arguments stand in its "out"],
            ["emit", activation, the row of an event], ["drop", activation]: given up
    "run"   chain and branches of the run, its ids, its chance and its clock
    "aux"   what else somebody wants to find again, by name

What cannot be kept is tried again before the run goes on; `trouble` says why it could not be.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from pydantic_core import to_json

from agentnb.board.codec import encode
from agentnb.engine.alive import LIVE, check_alone
from agentnb.engine.batches import Batch, begin_catching_up
from agentnb.engine.chance import drawn
from agentnb.engine.effects import Spent, is_told
from agentnb.engine.log import Entry, EventLog, RunRow
from agentnb.engine.resuming import Asked, cut, in_flight
from agentnb.engine.slices import Json, Key, Slicer, whole_call, whole_event
from agentnb.errors import StoreError

if TYPE_CHECKING:
    from agentnb.engine.history import Call, Event, History
    from agentnb.engine.run import Run
    from agentnb.engine.work import Effect, Work


def text_of(document: Any) -> str:
    """Return a document as JSON text."""
    try:
        return to_json(document).decode()  # more than twice as fast
    except ValueError:  # half of a pair of UTF-16, or nested very deep
        return json.dumps(document, separators=(",", ":"), ensure_ascii=False)


class Journal:
    """Keeps one run in a log. Without a `batch` each thing is kept before the next one begins."""

    def __init__(self, log: EventLog, run_id: str, run: Run, slicer: Slicer, batch: Batch | None = None) -> None:
        self.log, self.run_id, self.run, self.batch = log, run_id, run, batch
        self.slicer, self.seq = slicer, 0
        slicer.run = run
        self.trouble: StoreError | None = None
        self.holds = False  # whether it writes this run, and nobody else may
        self.aux: dict[str, Any] = {}
        self._said: dict[str, Any] = {}
        self._chain: list[History] = []
        self._left = 0
        self._told: list[list[Any]] = []
        self._keys: dict[int, list[Key]] = {}  # of each step in flight: the attempts that are told of
        self._outs: set[tuple[int, int]] = set()  # the calls whose arguments are told
        self._emits: dict[int, list[Event]] = {}  # of each step in flight: the events that are told of
        self._over: set[int] = set()  # the steps that are committed, and not yet kept as such
        self._limbo: Entry | None = None  # an entry of which nobody knows whether it has arrived
        self._made = self._sent = self._safe = 0  # steps: committed, in what was sent last, and kept
        self._standing: dict[str, Any] = {}
        self._stood: tuple[History, int, Json] = (run.history, run.position, {})
        self._ends = (run.history, run.position)  # up to which step all that steps in flight have told is over
        self._lock = threading.RLock()
        self._flusher: threading.Thread | None = None
        LIVE.add(self)

    # -- beginning -----------------------------------------------------------------------------------------------

    def begin(self, row: RunRow) -> None:
        """Begin the run in the log, with all that it has done so far.

        Raises:
            StoreError: it cannot be kept.
        """
        self._note()
        self.take_over()
        entry = self._entry()
        assert entry is not None
        self.log.create(row, [entry])
        self.holds = True
        self._kept(entry)

    def fork(self, run: Run, row: RunRow) -> Journal:
        """Begin a run that shares what is kept of this one so far; return its journal.

        Raises:
            StoreError: it cannot be kept.
        """
        other = Journal(self.log, row.run_id, run, self.slicer.fork(run.tables), self.batch)
        other.begin(row)
        return other

    def go_on(self, seq: int, said: Mapping[str, Any], aux: Mapping[str, Any], flying: Iterable[int]) -> None:
        """Go on behind entry `seq` with a run that was put together from the log; `flying` are its steps in flight."""
        self.seq, self._said, self.aux = seq, {**said, "aux": dict(aux)}, dict(aux)
        self._chain, self._left = self.run.chain, len(self.run.left)
        self._keys = {act: [key for key in self.slicer.told if key[0] == act] for act in flying}
        self._note()

    # -- after each step -----------------------------------------------------------------------------------------

    def keep(self) -> bool:
        """Keep the step that was made, now or with the batch; say whether the run may go on."""
        self._note()
        self._made += 1
        if self.batch is not None and self._made - self._safe < self.batch.steps:
            if self._flusher is None:
                self._flusher = begin_catching_up(self, self.batch, self.run_id)
            return self.trouble is None or self._try()
        return self._try()

    def _note(self) -> None:
        """Take note of where the run stands between two steps, and of what it goes on with from there.

        What a step in flight draws or asks of the clock belongs to that step: cut, it does the same once more.
        """
        run, history = self.run, self.run.history
        over = self._ends[1] if self._ends[0] is history else history.base
        for act in history.s_act[over - history.base + 1 : run.position - history.base + 1]:
            if self._told or self._outs or act in self._keys:
                self._committed(act)
        self._ends = (history, max(over, run.position))
        began = run.flights and run.stood[:2] == (history, run.position)
        self._stood = (history, run.position, run.stood[2] if began else drawn(run))

    def _committed(self, act: int) -> None:
        """Forget what is not written yet of a step that will be written as a whole."""
        with self._lock:
            for fact in self._told:
                if fact[1] == act and fact[0] == "back":
                    self.slicer.told.pop((act, fact[2][2], fact[2][5]), None)
                elif fact[1] == act and fact[0] == "emit":
                    self.slicer.announced.discard(fact[2][0])
            self._told = [fact for fact in self._told if fact[1] != act]
            self._outs -= {key for key in self._outs if key[0] == act}
            self._over.add(act)

    def _try(self) -> bool:
        try:
            self.flush()
        except StoreError as error:
            self.trouble = error
            return False
        return True

    def flush(self) -> None:
        """Keep whatever is not kept yet.

        Raises:
            StoreError: it cannot be kept; nothing is lost, it may be tried again.
        """
        with self._lock:
            if self._limbo is not None:
                self._append(self._limbo, again=True)
            entry = self._entry()
            if entry is not None:
                self._append(entry)
            self.trouble = None

    def _append(self, entry: Entry, *, again: bool = False) -> None:
        if not self.holds:
            check_alone(self)
        standing = {"status": "running", "steps": entry.step}
        told: dict[str, Any] = {name: value for name, value in standing.items() if self._standing.get(name) != value}
        try:
            self.log.append(self.run_id, [entry], **told)
        except StoreError:
            if not again or not self._arrived(entry):
                raise
        self.holds = True
        self._standing.update(standing)
        self._kept(entry)

    def _arrived(self, entry: Entry) -> bool:
        """Say whether an entry that was sent before has been kept, though nobody could say so then."""
        with contextlib.suppress(StoreError):
            return next(self.log.entries(self.run_id, entry.seq - 1, entry.seq), None) == entry
        return False

    def _kept(self, entry: Entry) -> None:
        self.seq, self._safe = entry.seq, self._sent
        for act in self._over:
            for key in self._keys.pop(act, ()):
                self.slicer.told.pop(key, None)
            self.slicer.announced -= {event.seq for event in self._emits.pop(act, ())}
        self._over.clear()
        self._limbo = None  # last: what was cut before is done once more

    # -- what an entry says --------------------------------------------------------------------------------------

    def _entry(self) -> Entry | None:
        """Return what is new; it counts as told from then on, and is in limbo until it is kept. None where nothing is.

        What cuts this short (a value that no codec takes, an interrupt) leaves it as if it had not begun.
        """
        run, slicer = self.run, self.slicer
        known, before = slicer.known(), (self._told, self._said, self._chain, self._left)
        self._sent = self._made
        try:
            state, tip = self._state(), self._tip()
            document: Json = slicer.take(self._histories(tip), rows=bool(self._told))
            if self._told:
                document["told"], self._told = self._told, []
            if state:
                document["run"] = state
            said = {**self._said, **state}
            if self.aux != said.get("aux", {}):
                document["aux"] = said["aux"] = dict(self.aux)
            self._said = said
            self._chain, self._left = run.chain, len(run.left)
            self._limbo = Entry(self.seq + 1, tip, text_of(document)) if document else None
        finally:
            if self._limbo is None:
                slicer.forget(known)
                self._told, self._said, self._chain, self._left = before
        return self._limbo

    def _tip(self) -> int:
        """Return the last step that is to be kept: one that another thread is just about to commit is not."""
        run, (history, position, _) = self.run, self._stood
        if run.past or run.at is not run.history:
            return run.history.tip
        return position if history is run.history else run.position

    def _histories(self, tip: int) -> list[tuple[History, int]]:
        run = self.run
        here = (run.history, tip - run.history.base + 1)
        if run.chain is self._chain and len(run.left) == self._left:
            return [here]
        others = {id(history): history for chain, _ in [*run.left[self._left :], (run.chain, 0)] for history in chain}
        others.pop(id(run.history), None)
        return [*((history, len(history.s_pend)) for history in others.values()), here]

    def _state(self) -> Json:
        """Return what has changed of the run besides its histories."""
        run, said = self.run, self._said
        found: Json = {}
        if run.chain is not self._chain or len(run.left) != self._left:
            know = self.slicer.know
            found["chain"] = [know(history) for history in run.chain]
            found["left"] = [[[know(history) for history in chain], tip] for chain, tip in run.left]
        found.update(self._stood[2])
        return {name: value for name, value in found.items() if name not in said or said[name] != value}

    # -- what steps in flight do (Keeping) -----------------------------------------------------------------------

    def goes_out(self, work: Work, number: int, attempt: int, effect: Effect, sent: Any, began: int) -> None:
        """Keep that a call goes out now, unless it may go out once more anyway.

        Raises:
            Spent: it cannot be kept, so it must not go out.
        """
        act = work.act.id
        if not is_told(effect):
            return
        self._tell_out(Asked(act, number, attempt, effect.kind, effect.name, sent, began))
        if self.batch is None and not self._try():
            with self._lock:
                self._told.append(["stays", act, number])
                self._outs.discard((act, number))
            cut(self.run, work)
            raise Spent

    def _tell_out(self, call: Asked) -> None:
        arguments = None if call[:2] in self._outs else encode(call.arguments, lenient=True)
        with self._lock:
            self._outs.add(call[:2])
            self._told.append(["out", *call[:5], arguments, call.began])

    def came_back(self, work: Work, row: Call) -> None:
        """Keep how an attempt ended."""
        if self._tell_back(row) and self.batch is None:
            self._try()

    def _tell_back(self, row: Call) -> bool:
        key, known = (row.act, row.call, row.attempt), (row.act, row.call) in self._outs
        try:
            told = whole_call(row._replace(arguments=None) if known else row)
        except StoreError as error:  # the step will be told as a whole, and say so again
            self.trouble = error
            return False
        with self._lock:
            self._told.append(["back", row.act, told, known])
            self.slicer.told[key] = row
            self._keys.setdefault(row.act, []).append(key)
        return True

    def emitted(self, work: Work, event: Event, *, alone: bool = True) -> None:
        """Keep an event of a step; where not `alone`, with what is told next."""
        if self._tell_emit(work.act.id, event) and alone and self.batch is None:
            self._try()

    def _tell_emit(self, act: int, event: Event) -> bool:
        try:
            told = whole_event(event)
        except StoreError as error:
            self.trouble = error
            return False
        with self._lock:
            self._told.append(["emit", act, told])
            self.slicer.announced.add(event.seq)
            self._emits.setdefault(act, []).append(event)
            self._keys.setdefault(act, [])
        return True

    def take_over(self) -> None:
        """Have all that the steps in flight have done so far told, of a run that somebody else keeps, or nobody."""
        found, run = in_flight(self.run), self.run
        emits = {id(event) for events in self._emits.values() for event in events}
        for act in {*self._keys, *(key[0] for key in self._outs)} - {*found.acts()} - self._over:
            self.drop(act)
        for what, act, fact in found.facts():
            if what == "out":
                self._tell_out(fact)
            elif what == "back" and self.slicer.told.get((act, fact.call, fact.attempt)) is not fact:
                self._tell_back(fact)
            elif what == "emit" and id(fact) not in emits and run.activation(act).node.kind.keeps:
                self._tell_emit(act, fact)

    def drop(self, act: int) -> None:
        """Keep that a step was given up: whatever it has done does not count when it runs again."""
        with self._lock:
            known = act in self._keys or any(key[0] == act for key in self._outs)
            self._committed(act)
            if known:
                self._told.append(["drop", act])

    def drop_all(self) -> None:
        """Keep that every step in flight was given up, those too that an interrupt has cut short."""
        told = {fact[1] for fact in self._told if fact[0] in ("emit", "back")}
        for act in {*self._keys, *(key[0] for key in self._outs), *told} - self._over:
            self.drop(act)

    # -- how it stands -------------------------------------------------------------------------------------------

    def tell(self, status: str) -> None:
        """Keep what is not kept yet, and say how the run stands now.

        Raises:
            StoreError: it cannot be kept.
        """
        run = self.run
        if not run.flights or run.keeping is not self:
            self._note()
        if run.keeping is not self:
            self.take_over()
        try:
            self.flush()
            past = run.past or run.at is not run.history
            at = text_of({"position": run.position, "seq": self.seq}) if past else ""
            standing: dict[str, Any] = {"status": status, "steps": run.position, "at": at}
            if standing != self._standing:
                self.log.tell(self.run_id, **standing)
                self._standing = standing
        except StoreError as error:
            self.trouble = error
            raise

    def close(self) -> None:
        """Keep what is not kept yet, and let others write this run.

        Raises:
            StoreError: it cannot be kept.
        """
        try:
            self.flush()
        finally:
            self.rest()

    def rest(self) -> None:
        """Let others write this run; nothing more is kept before somebody asks for it."""
        LIVE.discard(self)
        self.holds = False
        self.log.release(self.run_id)

    def catch_up(self) -> bool:
        """Keep what has waited; say whether more may come."""
        if self in LIVE and (self._made > self._safe or self._told):
            self._try()
        return self in LIVE


__all__ = ["Batch", "Journal", "text_of"]
