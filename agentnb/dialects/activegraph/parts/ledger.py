"""Indexes of a run's board and log. They store nothing themselves: everything can be rebuilt.

They are updated while the run progresses, including the current step; if the run was moved otherwise (back, goto, fork,
another process), they are rebuilt from the board and the log.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from agentnb.board.values import ABSENT
from agentnb.clock import TickingClock
from agentnb.dialects.activegraph.parts.clocks import UNSAID, IDGen
from agentnb.dialects.activegraph.parts.graph_stores import GraphStore, InMemoryGraphStore
from agentnb.dialects.activegraph.parts.projection import CHANCE, Writes, project

if TYPE_CHECKING:
    from agentnb.engine.core.history import Event
    from agentnb.engine.core.run import Run
    from agentnb.engine.core.work import Work

Names = dict[str, None]
_AT: Final = attrgetter("at")
STARTED: Final = frozenset({"behavior.started", "relation_behavior.started"})


class Ledger:
    """The objects by type, the relations by their ends, and the ids of one run.

    `work` belongs to the node that is currently running; `listeners` are called with each event of this run.
    """

    def __init__(self, run: Run, ids: IDGen) -> None:
        self.run = run
        self.work: Work | None = None  # of the current step
        self.acting: Work | None = None  # the same, but only while the code of its behavior is running
        self.listeners: list[Callable[[Event], None]] = []
        # The id of an external event emitted by the graph itself, which also notifies its listeners.
        self.emitting: str | None = None
        self._at: tuple[Any, ...] = ()  # where the indexes are; see `_get_here`
        self._fresh: dict[str, Any] = {}
        self.use_store(InMemoryGraphStore())
        self.relations: dict[str, int] = {}  # id -> the number of the event that created it
        self.approvals: Names = {}
        self.proposed: Names = {}  # the undecided patches
        self.delivered: list[int] = []  # the numbers of the events that are delivered on their own
        self.started = 0  # the number of deliveries started
        self.failures: list[Event] = []  # the events that record a failed delivery
        self.scheduled: list[tuple[int, Any]] = []  # delayed deliveries: the number of the event, and the schedule
        self.matched: dict[tuple[int, str], list[dict[str, str]]] = {}  # (event, node) -> the matches of a pattern
        self._reported = 0
        self._drawn: Any = None
        self._event_ids: set[str] | None = None  # only if the caller supplies event ids
        self._numbers: dict[str | None, int] = {}  # numbers of events by id; only if there are delayed deliveries
        if run.ids is not ids:
            ids.counters.update(run.ids.counters)
        self.ids = run.ids = ids

    # -- position ------------------------------------------------------------------------------------------------

    def sync(self) -> Ledger:
        """Bring the indexes to the current step of the run."""
        position, work = self._get_here(), self.work
        if position == self._at:
            if work is not None and len(work.emitted) < self._reported:  # the step was interrupted and rolled back
                self._reset()
            return self
        if work is not None and position == self._get_next(work):
            self._fresh.clear()
            self.work = None
        else:
            self._reset()
        self._at = position
        return self

    def _get_here(self) -> tuple[Any, ...]:
        run, history = self.run, self.run.history
        return (
            id(history),
            run.position,
            len(history.events),
            len(history.interventions),
            run.current_history is history,
            len(run.abandoned_branches),
        )

    def _get_next(self, work: Work) -> tuple[Any, ...]:
        history, position, events, people, *rest = self._at
        return (history, position + 1, events + self._reported, people, *rest)

    def begin(self, work: Work) -> None:
        """Follow a step from its start."""
        self.sync()
        self._reported, self.work = 0, work
        self._drawn = self._get_random()

    # -- random numbers and time ---------------------------------------------------------------------------------

    def _get_random(self) -> Any:
        """Return the position of the run's random generator; if it was moved from outside, adopt that position."""
        run = self.run
        stored, chance = run.root.scope.data.get(CHANCE), run.rng
        if stored is not None and (chance is None or chance.get_state() != list(stored)):
            run.rng = None
            run.random.advance_to(list(stored))
        elif stored is None and chance is not None and chance.words_drawn:
            run.rng = None
        return stored

    def end(self, work: Work) -> None:
        """Store the position of the random generator if this step has drawn numbers.

        The next step continues from it.
        """
        chance = self.run.rng
        now = None if chance is None or not chance.words_drawn else chance.get_state()
        if now is not None and (self._drawn is None or list(self._drawn) != now):
            work.write((CHANCE,), now)

    def _restore_clock(self, last: Event | None) -> None:
        """Reset a ticking clock to its time after the last event, as if only this run used it."""
        run, clock = self.run, self.run.clock
        if type(clock) is TickingClock and last is not None and last.time != UNSAID:
            run.clock = TickingClock(last.time + clock.step, clock.step.total_seconds())
            run.ns = run.clock.ns

    def record(self, event: Event, writes: Writes) -> None:
        """Update the indexes for an event of the current step and its writes."""
        self._reported += 1
        self._update_queue(event)
        for key, value in writes:
            self._fresh[key] = value
            self._note(key, value, event.seq)

    def notify(self, event: Event) -> None:
        """Call the listeners with an event that is recorded and applied; exceptions propagate."""
        for listener in tuple(self.listeners):
            listener(event)

    def record_outside(self) -> None:
        """Update the indexes for a recorded external event and its writes."""
        self._at = self._get_here()

    def _reset(self) -> None:
        run, self.work = self.run, None
        self.store.clear()
        for table in (self._fresh, self.relations, self.approvals, self.proposed, self.matched):
            table.clear()
        self._event_ids = None
        self.started = 0
        self.delivered.clear()
        self.failures.clear()
        self.scheduled.clear()
        counts: dict[str, int] = {}
        drawn, position = dict(self.ids.counters), self._get_here()
        is_ahead = not self._at or (position[0] == self._at[0] and position[1:3] >= self._at[1:3] and position[4])
        self.ids.counters.clear()
        events = run.events()
        if not is_ahead or (not self._at and run.history.parent is not None):
            self._restore_clock(events[-1] if events else None)
        self.ids.reseed_from_events(events)
        for event in events:
            self._update_queue(event)
            if event.type == "relation.created":
                counts[str(event.payload.get("id"))] = event.seq
        if is_ahead:  # ids drawn without an event: in another process, or by the caller
            self.ids.skip_drawn(drawn)
        else:
            self.ids.counters["frame"] = drawn.get("frame", 0)
        for key, value in run.root.scope.data.items():
            self._note(key, value, counts.get(key, -1))
        for pending_step in run.pending_steps.values():
            for event in pending_step.activation.work.emitted:
                writes = project(self, event.type, event.payload)
                self._fresh.update(writes)
                self.note(event, writes)
                self.ids.saw("evt", event.id)
                self.ids.saw_in(event.type, event.payload)

    # -- contents ------------------------------------------------------------------------------------------------

    def note(self, event: Event, writes: Writes) -> None:
        """Update the indexes for an event and its writes."""
        self._update_queue(event)
        for key, value in writes:
            self._note(key, value, event.seq)

    @property
    def changed(self) -> bool:
        """True if the current step has changed anything so far."""
        return bool(self._fresh)

    def event_ids(self) -> set[str]:
        """Return the ids of all events."""
        if self._event_ids is None:
            self._event_ids = {event.id for event in self.events()}
        return self._event_ids

    def event_id(self) -> str:
        """Return the next unused event id."""
        new_id, next_ids = self.ids.event(), self._event_ids
        while next_ids is not None and new_id in next_ids:
            new_id = self.ids.event()
        return new_id

    def _update_queue(self, event: Event) -> None:
        if self._event_ids is not None:
            self._event_ids.add(event.id)
        reactive = self.run.plan.recipe.reactive
        if reactive is not None and reactive.has_listeners(event):
            self.delivered.append(event.seq)
        if event.type in STARTED:
            self.started += 1
        elif event.type == "behavior.failed":
            self.failures.append(event)
        elif event.type == "behavior.scheduled":
            self.scheduled.append((self._number_of(event.cause), event.payload))

    def _number_of(self, id_: str | None) -> int:
        """Return the number of the event that triggers the current step, or of another event; -1 if there is none."""
        own = None if self.work is None else self.work.event
        if own is not None and own.id == id_:
            return own.seq
        if id_ not in self._numbers:
            self._numbers = {event.id: event.seq for event in self.run.events()}
        return self._numbers.get(id_, -1)

    def tick(self, seq: int) -> int:
        """Return the number of events processed, up to and including this one."""
        return bisect_right(self.delivered, seq)

    def _note(self, key: str, value: Any, seq: int) -> None:
        if value is ABSENT:
            self._forget(key)
        elif key == CHANCE:
            return
        elif "version" in value:
            self._put_object(key, value)
        elif "source" in value:
            self.relations.setdefault(key, seq)
            self.store.put_relation(key, value)
        elif "op" in value:
            self.store.put_patch(key, value)
            if value.get("status") == "proposed":
                self.proposed[key] = None
            else:
                self.proposed.pop(key, None)
        elif "approval_id" in value:
            self.approvals[key] = None

    def _forget(self, key: str) -> None:
        if self.approvals.pop(key, ABSENT) is not ABSENT:
            return
        if self.relations.pop(key, None) is None:
            self.store.remove_object(key)
        else:
            self.store.remove_relation(key)

    def get(self, key: str) -> Any:
        """Return the frozen value under an id; ABSENT if there is none."""
        value = self._fresh.get(key)
        return self.run.root.scope.data.get(key, ABSENT) if value is None else value

    def use_store(self, store: GraphStore) -> None:
        """Use this store for the graph from now on: the current content is copied to it, and it serves all look-ups."""
        known = self.__dict__.get("store")
        if known is store:
            return
        store.clear()
        if known is not None:
            for put, all_ in ((store.put_object, known.all_objects()), (store.put_relation, known.all_relations()),
                              (store.put_patch, known.all_patches())):  # fmt: skip
                for value in all_:
                    put(str(value["id"]), value)
        self.store = store
        # Called very often in a step: inlined, to avoid a call.
        self._put_object, self.object, self.all_objects = store.put_object, store.get_object, store.all_objects
        self.relation, self.all_relations, self.touching = store.get_relation, store.all_relations, store.touching
        self.patch = store.get_patch

    def events(self) -> list[Event]:
        """Return the events so far, including those of current steps."""
        return [*self.run.events(), *self._list_flying()]

    def _list_flying(self) -> list[Event]:
        if not self.run.pending_steps:
            return (
                [] if self.work is None or not self.work.emitted or self._get_here() != self._at else self.work.emitted
            )
        works = [pending_step.activation.work for pending_step in self.run.pending_steps.values()]
        return sorted((event for work in works for event in work.emitted), key=lambda event: event.seq)

    def last_frame(self) -> str | None:
        """Return the id of the frame of the last event recorded in one; None if there is none."""
        return next((event.mark for event in self.backwards() if event.mark), None)

    def last_events(self, count: int) -> list[Event]:
        """Return the last `count` events."""
        run, flying = self.run, self._list_flying()
        committed, older = run.current_history.events, max(count - len(flying), 0)
        if len(committed) >= older and (not committed or committed[-1].at <= run.position):  # nearly always
            return [*committed[len(committed) - older :], *flying[len(flying) - count + older :]]
        return list(islice(self.backwards(), count))[::-1]

    def backwards(self) -> Iterator[Event]:
        """Yield the events so far, newest first."""
        yield from reversed(self._list_flying())
        for history, end in reversed(self.run.parts()):
            yield from (event for event in reversed(history.events) if event.at <= end)

    def count(self) -> int:
        """Return the number of events so far."""
        committed = sum(bisect_right(history.events, end, key=_AT) for history, end in self.run.parts())
        return committed + len(self._list_flying())


def get_ledger(run: Run) -> Ledger:
    """Return the ledger of a run."""
    ids = run.ids if isinstance(run.ids, IDGen) else IDGen()
    ledger = ids.ledgers.get(run)
    if ledger is None:
        ledger = ids.ledgers[run] = Ledger(run, ids)
    return ledger


__all__ = ["Ledger", "get_ledger"]
