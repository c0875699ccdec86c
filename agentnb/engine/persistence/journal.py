"""The journal: saves a run to a log as it progresses: steps when committed, calls and events when they are made.

An entry is a delta (see `deltas`) with these additional fields:

    "told"  what steps in flight have done: ["times", activation, the times it read from a clock (microseconds)],
             ["out", activation, call, attempt, kind, name, arguments, start (ns), delay before it (s)],
            ["stays", activation, call]: the start could not be saved, so the call was not sent,
            ["back", activation, the row of an attempt, whether its arguments are in its "out"],
            ["emit", activation, the row of an event, the times read before it], ["drop", activation]: abandoned
    "run"   chain and branches of the run, and the states of its ids, random generator and clock
    "aux"   further data to be saved, by name

Records that cannot be saved are retried before the run continues; `failure` is the last error.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic_core import to_json

from agentnb.board.codec import encode
from agentnb.board.values import ABSENT
from agentnb.clock import to_microseconds
from agentnb.engine.core.interfaces import StepAbandoned
from agentnb.engine.core.rng import get_draws
from agentnb.engine.effects.crash_recovery import UnansweredCall, collect_interrupted_steps
from agentnb.engine.effects.recorded_calls import must_log_start
from agentnb.engine.persistence.checksums import add_checksum
from agentnb.engine.persistence.deltas import DeltaEncoder, Json, Key, encode_call
from agentnb.engine.persistence.event_log import Entry, EventLog, RunRow, seal
from agentnb.engine.persistence.flush_timer import Batch, flush_later
from agentnb.engine.persistence.open_journals import LIVE, check_alone
from agentnb.errors import StoreError
from agentnb.secrets import masks_by
from agentnb.threadless import has_threads

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from agentnb.engine.core.history import Call, Event, History
    from agentnb.engine.core.run import Run
    from agentnb.engine.core.work import SentCall, Work


def to_json_text(document: Any) -> str:
    """Return a document as JSON text."""
    try:
        return to_json(document).decode()  # more than twice as fast as json
    except ValueError:  # a lone UTF-16 surrogate, or very deep nesting
        return json.dumps(document, separators=(",", ":"))


@masks_by(lambda journal: journal.run.tables.secrets)
class Journal:
    """Saves one run to a log. Without a `batch`, each record is saved before the run continues."""

    def __init__(self, log: EventLog, run_id: str, run: Run, encoder: DeltaEncoder, batch: Batch | None = None) -> None:
        self.log, self.run_id, self.run, self.batch = log, run_id, run, batch
        self.encoder, self.seq = encoder, 0
        encoder.run = run
        self.failure: StoreError | None = None
        self.is_writer = False  # True if it holds the run, so that there can be no other writer
        self.takes_over = False  # True if another journal that holds the run is asked to release it
        # Weak: returns the function that releases the run, if there is one.
        self.get_release: Callable[[], Callable[[], bool] | None] = lambda: None
        self.aux: dict[str, Any] = {}
        self._saved_state: dict[str, Any] = {}
        self._chain: list[History] = []
        self._branch_count = 0
        self._facts: list[list[Any]] = []
        self._keys: dict[int, list[Key]] = {}  # by step in flight: the recorded attempts
        # By call of a step in flight, as (activation, number): as it was last recorded as sent
        self._requests: dict[tuple[int, int], UnansweredCall] = {}
        self._emitted: dict[int, list[Event]] = {}  # by step in flight: the recorded events
        self._recorded_times: dict[int, list[int]] = {}  # by step in flight: its recorded clock times, in microseconds
        self._committed_steps: set[int] = set()  # the steps that are committed, but not yet saved
        self._unconfirmed: Entry | None = None  # an entry that may or may not have arrived
        # Steps: committed, in the entry sent last, and saved.
        self._step_count = self._sent_steps = self._saved_steps = 0
        self._row_state: dict[str, Any] = {}
        self._position_state: tuple[History, int, Json] = (run.history, run.position, {})
        # The step up to which records of steps in flight are obsolete
        self._obsolete_up_to = (
            run.history,
            run.position,
        )
        self._lock = threading.RLock()
        self._flushes = False  # True if a thread will check for pending records

    # -- start ---------------------------------------------------------------------------------------------------

    def begin(self, row: RunRow) -> None:
        """Create the run in the log, with everything it has done so far.

        Raises:
            StoreError: it cannot be saved.
        """
        entry = self.first_entry()
        self.log.create(row, [entry])
        LIVE.add(self)
        self.is_writer = True
        self._mark_saved(entry)

    def first_entry(self) -> Entry:
        """Return everything that the run has done so far as one entry.

        Raises:
            StoreError: no codec accepts one of its values.
        """
        self._record_position()
        self.record_steps_in_flight()
        entry = self._make_entry()
        assert entry is not None
        return entry

    def fork(self, run: Run, row: RunRow) -> Journal:
        """Create a run that shares what is saved of this one so far; return its journal.

        Raises:
            StoreError: it cannot be saved.
        """
        other = Journal(self.log, row.run_id, run, self.encoder.fork(run.tables), self.batch)
        other.begin(row)
        return other

    def continue_run(self, seq: int, state: Mapping[str, Any], aux: Mapping[str, Any], flying: Iterable[int]) -> None:
        """Continue after entry `seq` with a run that was rebuilt from the log; `flying` are its steps in flight."""
        self.seq, self._saved_state, self.aux = seq, {**state, "aux": dict(aux)}, dict(aux)
        self._chain, self._branch_count = self.run.chain, len(self.run.abandoned_branches)
        self._keys = {
            activation: [key for key in self.encoder.recorded_calls if key[0] == activation] for activation in flying
        }
        self._record_position()
        LIVE.add(self)

    def claim(self) -> None:
        """Claim the run, so that nothing is done in it that cannot be saved.

        Raises:
            StoreError: L411, L453, another session writes it, or has written to it since; or it cannot be saved.
        """
        if not self.is_writer:
            check_alone(self)
            self.log.claim(self.run_id, self.seq)
            self.is_writer = True

    # -- after each step -----------------------------------------------------------------------------------------

    def save_step(self) -> bool:
        """Save the last step, now or with the batch; return True if the run may continue."""
        self._record_position()
        self._step_count += 1
        if self.batch is not None and self._step_count - self._saved_steps < self.batch.steps:
            if not self._flushes and has_threads():  # without threads, a batch is limited only by the number of steps
                self._flushes = True
                flush_later(self, self.batch, self.run_id)
            return self.failure is None or self._try_flush()
        return self._try_flush()

    def _record_position(self) -> None:
        """Record the run's position between two steps, and the states it continues from.

        What a step in flight draws or reads from the clock belongs to that step; if interrupted, it gets the same
        values again.
        """
        run, history = self.run, self.run.history
        over = self._obsolete_up_to[1] if self._obsolete_up_to[0] is history else history.base
        for activation in history.step_activations[over - history.base + 1 : run.position - history.base + 1]:
            if self._facts or self._requests or activation in self._keys:
                self._discard_committed(activation)
        self._obsolete_up_to = (history, max(over, run.position))
        in_progress = run.pending_steps and run.random_state[:2] == (history, run.position)
        self._position_state = (history, run.position, run.random_state[2] if in_progress else get_draws(run))

    def _discard_committed(self, activation: int) -> None:
        """Drop the unsaved records of a step in flight that will be saved as a whole."""
        with self._lock:
            unsaved = 0
            for fact in self._facts:
                if fact[1] == activation and fact[0] == "back":
                    self.encoder.recorded_calls.pop((activation, fact[2][2], fact[2][5]), None)
                elif fact[1] == activation and fact[0] == "emit":
                    self.encoder.recorded_events.discard(fact[2][0])
                    unsaved += len(fact[3]) if len(fact) > 3 else 0
                elif fact[1] == activation and fact[0] == "times":
                    unsaved += len(fact[2])
            self._facts = [fact for fact in self._facts if fact[1] != activation]
            self._requests = {key: call for key, call in self._requests.items() if key[0] != activation}
            if times := self._recorded_times.pop(activation, None):
                self.encoder.recorded_times[activation] = times[: len(times) - unsaved]
            self._committed_steps.add(activation)

    def _try_flush(self) -> bool:
        try:
            self.flush()
        except StoreError as error:
            self.failure = error
            return False
        return True

    def flush(self, status: str = "running") -> None:
        """Save everything that is not saved yet, together with the status.

        Raises:
            StoreError: it cannot be saved; nothing is lost, and it may be retried.
        """
        with self._lock:
            if self._unconfirmed is not None:
                self._append(self._unconfirmed, again=True)
            entry = self._make_entry()
            if entry is not None:
                self._append(entry, status=status)
            self.failure = None

    def _append(self, entry: Entry, *, again: bool = False, status: str = "running") -> None:
        if not self.is_writer:
            check_alone(self)
        state = {"status": status, "steps": entry.step}
        changed: dict[str, Any] = {name: value for name, value in state.items() if self._row_state.get(name) != value}
        try:
            self.log.append(self.run_id, [entry], **changed)
        except StoreError:
            if not again or not self._has_arrived(entry):
                raise
        self.is_writer = True
        self._row_state.update(state)
        self._mark_saved(entry)

    def _has_arrived(self, entry: Entry) -> bool:
        """Return True if an entry sent earlier was saved although this could not be confirmed at the time."""
        with contextlib.suppress(StoreError):
            return next(self.log.entries(self.run_id, entry.seq - 1, entry.seq), None) == entry
        return False

    def _mark_saved(self, entry: Entry) -> None:
        self.seq, self._saved_steps = entry.seq, self._sent_steps
        for activation in self._committed_steps:
            self._forget(activation)
        self._committed_steps.clear()
        self._unconfirmed = None  # last, so that saving is repeated if it is interrupted before this

    # -- entries -------------------------------------------------------------------------------------------------

    def _make_entry(self) -> Entry | None:
        """Return what is new as an entry, which stays unconfirmed until it is saved; None if nothing is new.

        If this fails (no codec accepts a value, or an interrupt), the state is rolled back.
        """
        run, encoder = self.run, self.encoder
        known, saved = encoder.get_mark(), (self._facts, self._saved_state, self._chain, self._branch_count)
        self._sent_steps = self._step_count
        try:
            state, tip = self._encode_state(), self._get_tip()
            document: Json = encoder.encode_delta(self._list_histories(tip), rows=bool(self._facts))
            if self._facts:
                document["told"], self._facts = self._facts, []
            if state:
                document["run"] = state
            merged = {**self._saved_state, **state}
            if self.aux != merged.get("aux", {}):
                document["aux"] = merged["aux"] = dict(self.aux)
            self._saved_state = merged
            self._chain, self._branch_count = run.chain, len(run.abandoned_branches)
            self._unconfirmed = seal(self.run_id, self.seq + 1, tip, to_json_text(document)) if document else None
        finally:
            if self._unconfirmed is None:
                encoder.forget(known)
                self._facts, self._saved_state, self._chain, self._branch_count = saved
        return self._unconfirmed

    def _get_tip(self) -> int:
        """Return the last step to save, excluding a step that another thread is committing."""
        run, (history, position, _) = self.run, self._position_state
        if run.is_rewound or run.current_history is not run.history:
            return run.history.tip
        return position if history is run.history else run.position

    def _list_histories(self, tip: int) -> list[tuple[History, int]]:
        run = self.run
        current = (run.history, tip - run.history.base + 1)
        if run.chain is self._chain and len(run.abandoned_branches) == self._branch_count:
            return [current]
        others = {
            id(history): history
            for chain, _ in [*run.abandoned_branches[self._branch_count :], (run.chain, 0)]
            for history in chain
        }
        others.pop(id(run.history), None)
        return [*((history, len(history.push_ends)) for history in others.values()), current]

    def _encode_state(self) -> Json:
        """Return what has changed in the run besides its histories."""
        run, saved = self.run, self._saved_state
        state: Json = {}
        if run.chain is not self._chain or len(run.abandoned_branches) != self._branch_count:
            know = self.encoder.number_history
            state["chain"] = [know(history) for history in run.chain]
            state["left"] = [[[know(history) for history in chain], tip] for chain, tip in run.abandoned_branches]
        state.update(self._position_state[2])
        return {name: value for name, value in state.items() if saved.get(name, ABSENT) != value}

    # -- steps in flight (the Recorder interface) ------------------------------------------------------------------

    def record_sent(self, work: Work, number: int, call: SentCall) -> None:
        """Record that a call is being sent, unless it may be repeated anyway.

        Raises:
            StepAbandoned: it cannot be saved, so the call must not be sent.
        """
        activation, (attempt, effect, sent, started_at, wait) = work.activation.id, call
        if not must_log_start(effect):
            return
        out = UnansweredCall(activation, number, attempt, effect.kind, effect.name, sent, started_at, wait)
        self._record_sent(out)
        if self.batch is None and not self._try_flush():
            self.record_withdrawal(activation, number)
            raise StepAbandoned

    def record_withdrawal(self, activation: int, number: int) -> None:
        """Record that a call of a step was not sent, or that a person's question was withdrawn."""
        with self._lock:
            self._facts.append(["stays", activation, number])
            self._requests.pop((activation, number), None)

    def _record_sent(self, call: UnansweredCall) -> None:
        arguments, known = encode(call.arguments, lenient=True), self._requests.get(call[:2])
        # An attempt repeats the arguments; a step that was stopped and starts again may send other ones.
        repeats = known and to_json_text(encode(known.arguments, lenient=True)) == to_json_text(arguments)
        with self._lock:
            self._requests[call[:2]] = call
            self._facts.append(["out", *call[:5], None if repeats else arguments, call.started_at, call.wait])

    def _has_sent(self, call: UnansweredCall) -> bool:
        """Return True if this attempt of a call is recorded as sent."""
        known = self._requests.get(call[:2])
        return known is not None and known.attempt == call.attempt

    def record_response(self, row: Call) -> None:
        """Record the end of an attempt."""
        if self._record_attempt(row) and self.batch is None:
            self._try_flush()

    def _record_attempt(self, row: Call) -> bool:
        key, request = (row.activation, row.call, row.attempt), self._requests.get((row.activation, row.call))
        known = request is not None and request.arguments is row.arguments
        try:
            encoded = encode_call(row._replace(arguments=None) if known else row)
        except StoreError as error:  # the step will be saved as a whole, and raise this again
            self.failure = error
            return False
        self._record_times(row.activation, self.run.find_activation(row.activation).work.times)
        with self._lock:
            self._facts.append(["back", row.activation, encoded, known])
            self.encoder.recorded_calls[key] = row
            self._keys.setdefault(row.activation, []).append(key)
        return True

    def record_event(self, work: Work, event: Event, *, alone: bool) -> None:
        """Record an event of a step; unless `alone`, with the next record."""
        if self._record_event(work.activation.id, event) and alone and self.batch is None:
            self._try_flush()

    def _record_event(self, activation: int, event: Event) -> bool:
        try:
            encoded = self.encoder.event(event)
        except StoreError as error:
            self.failure = error
            return False
        read = self._find_unrecorded_times(activation, self.run.find_activation(activation).work.times)
        with self._lock:
            self._facts.append(["emit", activation, encoded, read] if read else ["emit", activation, encoded])
            self._recorded_times.setdefault(activation, []).extend(read)
            self.encoder.recorded_events.add(event.seq)
            self._emitted.setdefault(activation, []).append(event)
            self._keys.setdefault(activation, [])
        return True

    def _record_times(self, activation: int, times: Sequence[datetime]) -> None:
        """Record the times a step has read from a clock since the last call."""
        if read := self._find_unrecorded_times(activation, times):
            with self._lock:
                self._recorded_times.setdefault(activation, []).extend(read)
                self._facts.append(["times", activation, read])

    def _find_unrecorded_times(self, activation: int, times: Sequence[datetime]) -> list[int]:
        return [*map(to_microseconds, times[len(self._recorded_times.get(activation, ())) :])]

    def record_steps_in_flight(self) -> None:
        """Record everything that the steps in flight have done so far, for a run that was not stored in this log."""
        run = self.run
        if not (run.pending_steps or run.recorded or self._facts or self._keys or self._requests or self._emitted):
            return  # no step is or was in flight
        interrupted = collect_interrupted_steps(run)
        facts, pending = [*interrupted.iter_facts()], {*interrupted.list_activations()}
        current = {id(fact) for _, _, fact in facts}
        for activation in self._list_recorded_steps():
            rows = [self.encoder.recorded_calls.get(key) for key in self._keys.get(activation, ())]
            known = [row for row in (*rows, *self._emitted.get(activation, ())) if row is not None]
            # Going back starts an activation again under its number; what it did before no longer belongs to the run.
            if any(id(fact) not in current for fact in known) or activation not in pending:
                self.drop(activation)
        attempts = {
            (activation, fact.number if what == "out" else fact.call, fact.attempt)
            for what, activation, fact in facts
            if what in ("out", "back")
        }
        for (activation, number), call in [*self._requests.items()]:
            if (activation, number, call.attempt) not in attempts:  # a person's question that has been withdrawn
                self.record_withdrawal(activation, number)
        emits = {id(event) for events in self._emitted.values() for event in events}
        for what, activation, fact in facts:
            if what == "times":
                self._record_times(activation, fact)
            elif what == "out" and not self._has_sent(fact):
                self._record_sent(fact)
            elif what == "back" and self.encoder.recorded_calls.get((activation, fact.call, fact.attempt)) is not fact:
                self._record_attempt(fact)
            elif (
                what == "emit"
                and id(fact) not in emits
                and run.plan.nodes[run.tables.activations[activation].node].kind.keeps_writes
            ):
                self._record_event(activation, fact)

    def drop(self, activation: int) -> None:
        """Record that a step was abandoned: what it has done does not count when it runs again."""
        with self._lock:
            known = activation in self._list_recorded_steps()
            self._discard_committed(activation)
            self._forget(activation)
            self._committed_steps.discard(activation)
            if known:
                self._facts.append(["drop", activation])

    def record_again(self) -> None:
        """Record again what uncommitted steps have done: an interrupt may have cut a record short."""
        for activation in self._list_recorded_steps():
            self.drop(activation)
        self.record_steps_in_flight()

    def _list_recorded_steps(self) -> set[int]:
        """Return the activations of the uncommitted steps with records."""
        event_ids = {fact[1] for fact in self._facts if fact[0] in ("emit", "back")}
        return {*self._keys, *(key[0] for key in self._requests), *event_ids} - self._committed_steps

    def _forget(self, activation: int) -> None:
        """Forget the records of a step."""
        for key in self._keys.pop(activation, ()):
            self.encoder.recorded_calls.pop(key, None)
        self.encoder.recorded_events -= {event.seq for event in self._emitted.pop(activation, ())}
        self.encoder.recorded_times.pop(activation, None)

    # -- status --------------------------------------------------------------------------------------------------

    def save_status(self, status: str) -> None:
        """Save everything that is not saved yet, and the run's current status.

        Raises:
            StoreError: it cannot be saved.
        """
        run = self.run
        if not run.pending_steps or run.recorder is not self:
            self._record_position()
        if run.recorder is not self:
            self.record_steps_in_flight()
        try:
            self.flush("running" if _is_back(run) else status)
            state: dict[str, Any] = {"status": status, "steps": run.position, "at": self.position_text()}
            if state != {"at": "", **self._row_state}:
                self.claim()
                self.log.update_run(self.run_id, **state)
                self._row_state = state
        except StoreError as error:
            self.failure = error
            raise

    def position_text(self) -> str:
        """Return the run's position as a store records it; empty at the end of what is saved."""
        if not _is_back(self.run):
            return ""
        return add_checksum(to_json_text({"position": self.run.position, "seq": self.seq}), self.run_id)

    def is_complete(self) -> bool:
        """Return True if everything that the run has done is in the log."""
        return self._unconfirmed is None and self.encoder.unsavable is None and not self._facts

    def close(self) -> None:
        """Save everything that is not saved yet, and release the run for other writers.

        Raises:
            StoreError: it cannot be saved.
        """
        try:
            self.flush()
        finally:
            self.release()

    def release(self) -> None:
        """Release the run for other writers; nothing more is saved until requested."""
        LIVE.discard(self)
        if self.is_writer:
            self.log.release(self.run_id)
            self.is_writer = False

    def needs_thread(self) -> bool:
        """Return True if something is pending; otherwise `flush_later` is called again when something is."""
        self._flushes = False  # before checking, so that later records start a new flush
        self._flushes = self in LIVE and self._is_behind()
        return self._flushes

    def catch_up(self) -> bool:
        """Save what is pending; return True if more may follow."""
        if self in LIVE and self._is_behind():
            self._try_flush()
        return self in LIVE

    def _is_behind(self) -> bool:
        """Return True if there are steps or facts that are not saved."""
        return self._step_count != self._saved_steps or bool(self._facts)


def _is_back(run: Run) -> bool:
    """Return True if a run is positioned before steps that it has made."""
    return run.is_rewound or run.current_history is not run.history


__all__ = ["Batch", "Journal", "to_json_text"]
