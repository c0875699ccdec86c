"""journal: keeps a run in a log while it moves: each step when it is committed, each call and event when it is made.

An entry is a slice (see `slices`), and beside it what else has changed:

    "told"  what steps in flight have done: ["out", activation, call, attempt, kind, name, arguments, begun (ns)],
            ["back", activation, the row of an attempt, whether its arguments stand in its "out"],
            ["emit", activation, the row of an event], ["drop", activation]: given up
    "run"   chain and branches of the run, its ids, its chance and its clock
    "aux"   what else somebody wants to find again, by name

What cannot be kept is tried again before the run goes on; `trouble` says why it could not be.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import threading
import weakref
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from agentnb.board.codec import encode
from agentnb.engine.effects import ASKED, Spent
from agentnb.engine.log import Entry, EventLog, RunRow
from agentnb.engine.slices import Json, Key, Slicer, whole_call, whole_event
from agentnb.errors import StoreError

if TYPE_CHECKING:
    from agentnb.engine.history import Call, Event, History
    from agentnb.engine.run import Run
    from agentnb.engine.work import Effect, Work

_LIVE: Final[weakref.WeakSet[Journal]] = weakref.WeakSet()


@dataclass(frozen=True, slots=True)
class Batch:
    """How much may be lost when a process dies: at most so many steps, and what was done in so many milliseconds."""

    steps: int = 1000
    ms: int = 200


def text_of(document: Any) -> str:
    """Return a document as JSON text."""
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)


class Journal:
    """Keeps one run in a log. Without a `batch` each thing is kept before the next one begins."""

    def __init__(self, log: EventLog, run_id: str, run: Run, slicer: Slicer, batch: Batch | None = None) -> None:
        self.log, self.run_id, self.run, self.batch = log, run_id, run, batch
        self.slicer, self.seq = slicer, 0
        self.trouble: StoreError | None = None
        self.aux: dict[str, Any] = {}
        self._said: dict[str, Any] = {}
        self._chain: list[History] = []
        self._left = 0
        self._told: list[list[Any]] = []
        self._keys: dict[int, list[Key]] = {}  # of each step in flight: the attempts that are told of
        self._outs: set[tuple[int, int]] = set()  # the calls whose arguments are told
        self._over: set[int] = set()  # the steps that are committed, and not yet kept as such
        self._limbo: Entry | None = None  # an entry of which nobody knows whether it has arrived
        self._behind = 0
        self._standing: dict[str, Any] = {}
        self._lock = threading.RLock()
        self._flusher: threading.Thread | None = None
        _LIVE.add(self)

    # -- beginning -----------------------------------------------------------------------------------------------

    def begin(self, row: RunRow) -> None:
        """Begin the run in the log, with all that it has done so far.

        Raises:
            StoreError: it cannot be kept.
        """
        entry = self._entry()
        assert entry is not None
        self.log.create(row, [entry])
        self._kept(entry)

    def fork(self, run: Run, row: RunRow, origin: Mapping[int, int]) -> Journal:
        """Begin a run that shares what is kept of this one so far; return its journal.

        `origin` says, of histories that were made anew for it, which of this run's each of them is (id to id).

        Raises:
            StoreError: it cannot be kept.
        """
        other = Journal(self.log, row.run_id, run, self.slicer.fork(run.tables, origin), self.batch)
        other.begin(row)
        return other

    def go_on(self, seq: int, said: Mapping[str, Any], aux: Mapping[str, Any], flying: Iterable[int]) -> None:
        """Go on behind entry `seq` with a run that was put together from the log; `flying` are its steps in flight."""
        self.seq, self._said, self.aux = seq, {**said, "aux": dict(aux)}, dict(aux)
        self._chain, self._left = self.run.chain, len(self.run.left)
        self._keys = {act: [key for key in self.slicer.told if key[0] == act] for act in flying}

    # -- after each step -----------------------------------------------------------------------------------------

    def keep(self, act: int) -> bool:
        """Keep the step of an activation, now or with the batch; say whether the run may go on."""
        if self._told or self._outs or act in self._keys:
            self._committed(act)
            self._outs -= {key for key in self._outs if key[0] == act}
        self._behind += 1
        if self.batch is not None and self._behind < self.batch.steps:
            if self._flusher is None:
                self._begin_flusher()
            return self.trouble is None
        return self._try()

    def _committed(self, act: int) -> None:
        """Forget what is not written yet of a step that will be written as a whole."""
        with self._lock:
            mine = [fact for fact in self._told if fact[1] == act]
            self._told = [fact for fact in self._told if fact[1] != act]
            for fact in mine:
                if fact[0] == "back":
                    self.slicer.told.pop((act, fact[2][2], fact[2][5]), None)
                elif fact[0] == "emit":
                    self.slicer.announced.discard(fact[2][0])
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
                self._append(self._limbo)
            entry = self._entry()
            if entry is not None:
                self._append(entry)
            self.trouble = None

    def _append(self, entry: Entry) -> None:
        before, self._limbo = self._limbo, entry
        try:
            self.log.append(self.run_id, [entry], **self._unsaid("running"))
        except StoreError:
            if before is None or not self._arrived(entry):
                raise
        self._limbo = None
        self._kept(entry)

    def _arrived(self, entry: Entry) -> bool:
        """Say whether an entry that was sent before has been kept, though nobody could say so then."""
        with contextlib.suppress(StoreError):
            return next(self.log.entries(self.run_id, entry.seq - 1, entry.seq), None) == entry
        return False

    def _unsaid(self, status: str) -> dict[str, Any]:
        """Return what the run's row does not say yet: that it runs."""
        if self._standing.get("status") == status:
            return {}
        self._standing["status"] = status
        return {"status": status}

    def _kept(self, entry: Entry) -> None:
        self.seq, self._behind = entry.seq, 0
        for act in self._over:
            for key in self._keys.pop(act, ()):
                self.slicer.told.pop(key, None)
        self._over.clear()

    # -- what an entry says --------------------------------------------------------------------------------------

    def _entry(self) -> Entry | None:
        run = self.run
        state = self._state()
        tip = run.history.tip if run.past or run.at is not run.history else run.position
        document: Json = self.slicer.take(self._histories(tip))
        told, self._told = self._told, []
        if told:
            document["told"] = told
        if state:
            document["run"] = state
            self._said.update(state)
        if self.aux != self._said.get("aux", {}):
            document["aux"] = self._said["aux"] = dict(self.aux)
        self._chain, self._left = run.chain, len(run.left)
        return Entry(self.seq + 1, tip, text_of(document)) if document else None

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
        chance = run.__dict__.get("random")
        found["random"] = None if chance is None else chance.kept()
        found["ids"] = dict(run.ids.counters)
        found["clock"] = run.clock.kept()
        return {name: value for name, value in found.items() if name not in said or said[name] != value}

    # -- what steps in flight do (Keeping) -----------------------------------------------------------------------

    def goes_out(self, work: Work, number: int, attempt: int, effect: Effect, sent: Any, began: int) -> None:
        """Keep that a call goes out now, unless it may go out once more anyway.

        Raises:
            Spent: it cannot be kept, so it must not go out.
        """
        act = work.act.id
        if effect.repeatable and effect.kind not in ASKED:
            return
        first = (act, number) not in self._outs
        arguments = encode(sent, lenient=True) if first else None
        with self._lock:
            self._outs.add((act, number))
            self._told.append(["out", act, number, attempt, effect.kind, effect.name, arguments, began])
        if self.batch is None and not self._try():
            raise Spent

    def came_back(self, work: Work, row: Call) -> None:
        """Keep how an attempt ended."""
        key, known = (row.act, row.call, row.attempt), (row.act, row.call) in self._outs
        try:
            told = whole_call(row._replace(arguments=None) if known else row)
        except StoreError as error:  # the step will be told as a whole, and say so again
            self.trouble = error
            return
        with self._lock:
            self._told.append(["back", row.act, told, known])
            self.slicer.told[key] = row
            self._keys.setdefault(row.act, []).append(key)
        if self.batch is None:
            self._try()

    def emitted(self, work: Work, event: Event) -> None:
        """Keep an event of a step."""
        try:
            told = whole_event(event)
        except StoreError as error:
            self.trouble = error
            return
        with self._lock:
            self._told.append(["emit", work.act.id, told])
            self.slicer.announced.add(event.seq)
            self._keys.setdefault(work.act.id, [])
        if self.batch is None:
            self._try()

    def drop(self, act: int) -> None:
        """Keep that a step was given up: whatever it has done does not count when it runs again."""
        with self._lock:
            known = act in self._keys or any(key[0] == act for key in self._outs)
            self._committed(act)
            self._outs -= {key for key in self._outs if key[0] == act}
            if known:
                self._told.append(["drop", act])

    # -- how it stands -------------------------------------------------------------------------------------------

    def tell(self, status: str) -> None:
        """Keep what is not kept yet, and say how the run stands now.

        Raises:
            StoreError: it cannot be kept.
        """
        self.flush()
        run = self.run
        at = text_of({"position": run.position}) if run.past or run.at is not run.history else ""
        standing: dict[str, Any] = {"status": status, "steps": run.position, "at": at}
        if standing != self._standing:
            self.log.tell(self.run_id, **standing)
            self._standing = standing

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
        _LIVE.discard(self)
        self.log.release(self.run_id)

    # -- in batches ----------------------------------------------------------------------------------------------

    def _begin_flusher(self) -> None:
        """Begin the thread that keeps what has waited for as long as it may."""
        assert self.batch is not None
        words = (weakref.ref(self), self.batch.ms / 1000)
        self._flusher = threading.Thread(target=_flush_on, args=words, name=f"agentnb-keep-{self.run_id}", daemon=True)
        self._flusher.start()


def _flush_on(journal: weakref.ref[Journal], seconds: float) -> None:
    pause = threading.Event()
    while not pause.wait(seconds):
        here = journal()
        if here is None or here not in _LIVE:
            return
        if here._behind or here._told:  # noqa: SLF001  (its own thread)
            here._try()  # noqa: SLF001  (the same)
        del here


def flush_all() -> None:
    """Keep what no journal of this process has kept yet, as far as it can be kept."""
    for journal in list(_LIVE):
        with contextlib.suppress(StoreError):
            journal.flush()


def live(run_id: str, log: EventLog) -> Journal | None:
    """Return the journal of this process that keeps a run, if there is one."""
    return next((journal for journal in list(_LIVE) if journal.run_id == run_id and journal.log is log), None)


@atexit.register
def _close_all() -> None:
    for journal in list(_LIVE):
        with contextlib.suppress(Exception):
            journal.close()


__all__ = ["Batch", "Journal", "flush_all", "live", "text_of"]
