"""Build a run from a log of the activegraph package: its steps, writes, events, calls and interventions.

Nothing is executed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from agentnb.board.masking import register_secrets
from agentnb.board.scopes import Scope
from agentnb.board.values import ABSENT, freeze
from agentnb.clock import FrozenClock
from agentnb.dialects.activegraph.parts.package_logs.behaviors import assign_names, make_recipe
from agentnb.dialects.activegraph.parts.package_logs.calls import iter_calls
from agentnb.dialects.activegraph.parts.package_logs.deliveries import Delivery, find_deliveries
from agentnb.dialects.activegraph.parts.package_logs.payloads import InvalidPayload, check, iter_creation_events
from agentnb.dialects.activegraph.parts.package_logs.reading import SNAPSHOT
from agentnb.dialects.activegraph.parts.package_logs.records import (
    EPOCH,
    LogEvent,
    PackageLog,
    make_event_error,
    parse_time,
)
from agentnb.dialects.activegraph.parts.projection import Writes, project
from agentnb.engine.core.history import (
    CANCELLED,
    CARRIED,
    COUNTED,
    ERROR,
    OK,
    UNKNOWN_EDGE,
    ActivationRow,
    Event,
    Failure,
    Intervention,
    Note,
)
from agentnb.engine.core.plan import Plan
from agentnb.engine.core.run import Run
from agentnb.engine.effects.dispatch import EffectDispatcher
from agentnb.errors import BoardError
from agentnb.trace.recipe_snapshot import make_readable_kinds
from agentnb.world.world import World

# The package's own events, which are not interventions.
_OWN: Final = ("behavior.", "relation_behavior.", "runtime.", "llm.", "tool.", "pattern.", "pack.", "context.",
               "authority.", "embedding.", "promote.", "trial.", "patch.rejected", "approval.proposed")  # fmt: skip
_VERDICTS: Final = {"approval.granted": "approve", "approval.denied": "deny"}


def run_of(log: PackageLog) -> Run:
    """Return a run at the end of a log.

    Raises:
        StoreError: L463, an event does not fit its type.
    """
    return _Builder(log).run


# The field that identifies the subject of an event: an object has a version, a relation a source, a patch an op.
_SPEAKS_OF: Final = {
    "object.removed": "version",
    "patch.applied": "version",
    "relation.removed": "source",
    "patch.rejected": "op",
    "approval.changed": "approval_id",
    "approval.granted": "approval_id",
    "approval.denied": "approval_id",
}


class _Graph:
    """The parts of the object graph that determine an event's effect; `type` is the event's."""

    def __init__(self, scope: Scope) -> None:
        self._scope, self.type = scope, ""
        self._touching: dict[str, dict[str, None]] = {}

    def get(self, key: str) -> Any:
        """Return the frozen value with this id; ABSENT if events of this type do not refer to its kind.

        The package allows patches that name a relation; such patches change nothing.
        """
        value = self._scope.get(key)
        return value if value is not ABSENT and _SPEAKS_OF.get(self.type, "") in value else ABSENT

    object = relation = patch = get  # in the interface of a ledger

    def touching(self, key: str) -> list[str]:
        """Return the relations that start or end at an object, in creation order."""
        return [delivery for delivery in self._touching.get(key, ()) if self._scope.get(delivery) is not ABSENT]

    def note(self, key: str, value: Any) -> None:
        """Update the graph with a write."""
        if value is not ABSENT and "source" in value:
            for end in (value["source"], value["target"]):
                self._touching.setdefault(end, {})[key] = None


class _Builder:
    """Reads a log once and appends the results of each delivery to the columns of a history."""

    def __init__(self, log: PackageLog) -> None:
        self.log, self.events = log, log.events
        self.deliveries = find_deliveries(log.events)
        self.owners: list[int | None] = [None] * len(log.events)
        for number, delivery in enumerate(self.deliveries):
            for at in delivery.events:
                self.owners[at] = number
        recipe = make_recipe(log, self.deliveries, self.owners)
        self.numbers = {event.id: at + 1 for at, event in enumerate(log.events)}
        self.times = list(_iter_times(log.events)) or [EPOCH]
        plan = Plan(recipe, make_readable_kinds(recipe), World())
        self.run = Run(plan, EffectDispatcher(), clock=FrozenClock(self.times[-1]))
        self.history, self.tables = self.run.history, self.run.tables
        self.graph: Any = _Graph(self.run.root.scope)  # the part of a ledger that the projection needs
        self.frozen: dict[int, Any] = {}
        names = assign_names(self.deliveries, log)
        self.activations = [
            self._add_activation(delivery, plan.index[names[delivery.key]]) for delivery in self.deliveries
        ]
        self.follow = self._map_followers()
        self.queue: deque[int] = deque()
        self._build()

    def _add_activation(self, delivery: Delivery, node: int) -> int:
        return self.tables.add_activation(ActivationRow(node, 0, 0, self.numbers.get(delivery.trigger, -1)))

    def _map_followers(self) -> dict[int, list[int]]:
        """Return the deliveries that each event triggers, by its index; delayed ones are scheduled separately."""
        followers: dict[int, list[int]] = {}
        for number, delivery in enumerate(self.deliveries):
            if not delivery.delayed and delivery.trigger in self.numbers:
                followers.setdefault(self.numbers[delivery.trigger] - 1, []).append(number)
        return followers

    # -- step by step ----------------------------------------------------------------------------------------------

    def _build(self) -> None:
        run, history = self.run, self.history
        self._begin()
        begins = [delivery.events[0] for delivery in self.deliveries] + [len(self.events)]
        self._add_outside(range(begins[0]), 0)
        first = self._to_ns(0)
        history.set_first_row([], first)  # its frontier has been pushed
        run.checkpoint()
        for number, delivery in enumerate(self.deliveries):
            self._move_to_front(number)
            pos = history.queue_starts[-1] + 1
            self.queue.popleft()
            self._step(number, delivery)
            following = [at for at in range(delivery.events[-1] + 1, begins[number + 1]) if self.owners[at] is None]
            self._add_outside(following, number + 1)
            self._add_row(number, delivery, pos)
        run.is_rewound = False
        run.set_next_due()

    def _begin(self) -> None:
        """Restore the snapshot that represents events no longer in the store."""
        first = self.events[0] if self.events else None
        if first is None or first.type != SNAPSHOT:
            return
        state = self.log.snapshots.get(str(first.payload.get("state_hash", "")))
        try:
            for type, payload in iter_creation_events(state):
                check(type, payload)
                for key, value in project(self.graph, type, freeze(payload)):
                    self._write(first, key, value)
        except InvalidPayload as unfit:
            raise self._make_error(first, unfit.path, unfit.why) from None

    def _move_to_front(self, number: int) -> None:
        """Move a delivery that was delayed or is out of order to the front of the queue."""
        history = self.history
        if self.queue and self.queue[0] == number:
            return
        if number in self.queue:
            self.queue.remove(number)
        self.queue.appendleft(number)
        history.queue_starts[-1] = self.run.queue_start = len(history.push_activations)
        self._push(self.queue, CARRIED)
        history.push_ends[-1] = len(history.push_activations)

    def _push(self, numbers: Iterable[int], value: Any) -> None:
        self.history.push([(self.activations[number], value, UNKNOWN_EDGE) for number in numbers])

    def _step(self, number: int, delivery: Delivery) -> None:
        """Append a delivery: its events, their writes, its reads and its calls."""
        step, activation, history = number + 1, self.activations[number], self.history
        for at in delivery.events:
            event = self.events[at]
            self._tell(at, step, step)
            for key, value in self._writes(at):
                self._write(event, key, value)
            self._follow(at, None)
            if event.type == "context.read":
                self._read(event, step)
        history.calls.extend(iter_calls([self.events[at] for at in delivery.events], step, activation))
        trigger = self.numbers.get(delivery.trigger)
        if trigger is not None:
            event = self.events[trigger - 1]
            inputs = {"event": event.id, "type": event.type, "payload": self._get_payload(trigger - 1)}
            history.notes[step] = Note(f"event {event.id} of type {event.type!r}", inputs=freeze(inputs))

    def _add_row(self, number: int, delivery: Delivery, pos: int) -> None:
        history, run, step = self.history, self.run, number + 1
        status = CANCELLED
        if delivery.end is not None:
            end = self.events[delivery.end]
            status = ERROR if end.type == "behavior.failed" else OK
            if status == ERROR:
                history.errors[step] = _make_failure(end.payload)
        start, ended = self._to_ns(delivery.events[0]), self._to_ns(delivery.events[-1])
        history.step_activations.append(self.activations[number])
        history.start_times.append(start)
        history.end_times.append(max(start, ended))
        history.step_flags.append(status | COUNTED)
        history.queue_starts.append(pos)
        history.write_ends.append(len(history.new_values))
        history.push_ends.append(len(history.push_activations))
        run.position, run.queue_start, run.counted_steps = step, pos, run.counted_steps + 1
        if step >= run.next_checkpoint:
            run.checkpoint()

    def _add_outside(self, places: Sequence[int], step: int) -> None:
        """Append the events between two deliveries: interventions, and the package's own events."""
        for at in places:
            event = self.events[at]
            self._tell(at, step, None)
            writes = self._writes(at)
            if event.type in _VERDICTS:
                target = str(event.payload.get("approval_id", ""))
                self._add_intervention(at, step, (_VERDICTS[event.type], target), ABSENT, self._get_payload(at))
            elif not writes and not event.type.startswith(_OWN):
                self._add_intervention(at, step, ("emit", event.type), ABSENT, self._get_payload(at))
            for key, value in writes:
                old, rows = self.run.root.scope.get(key), len(self.history.new_values)
                self._write(event, key, value)
                if len(self.history.new_values) > rows:
                    self._add_intervention(at, step, ("edit", key), old, value)
            self._follow(at, CARRIED if step else None)

    def _add_intervention(self, at: int, step: int, what: tuple[str, str], old: Any, new: Any) -> None:
        event = self.events[at]
        actor = event.payload.get("approved_by") if event.type in _VERDICTS else event.actor
        self.history.interventions.append(
            Intervention(step, *what, old, new, str(actor or event.actor or ""), self.times[at])
        )

    def _follow(self, at: int, value: Any) -> None:
        """Queue the deliveries that an event triggers."""
        numbers = self.follow.get(at, ())
        self.queue.extend(numbers)
        self._push(numbers, value)

    # -- one event -------------------------------------------------------------------------------------------------

    def _tell(self, at: int, position: int, step: int | None) -> None:
        event, payload = self.events[at], self._get_payload(at)
        actor: Any = event.actor  # None if the package names no actor
        row = (event.id, event.type, actor, event.caused_by, self.times[at], payload)
        self.history.events.append(Event(at + 1, step, *row, position, event.frame_id))

    def _get_payload(self, at: int) -> Any:
        payload = self.frozen.get(at)
        if payload is None:
            try:
                payload = self.frozen[at] = freeze(dict(self.events[at].payload))
            except BoardError as error:
                raise self._make_error(self.events[at], "payload", error.problems[0].what) from None
            register_secrets(payload, owner=self.tables.secrets)
        return payload

    def _writes(self, at: int) -> Writes:
        """Return an event's effect on the object graph as pairs of id and value; ABSENT means a removal."""
        event = self.events[at]
        try:
            check(event.type, event.payload)
        except InvalidPayload as unfit:
            raise self._make_error(event, unfit.path, unfit.why) from None
        self.graph.type = event.type
        return project(self.graph, event.type, self._get_payload(at))

    def _write(self, event: LogEvent, key: str, value: Any) -> None:
        try:
            self.run.write(self.run.root.scope, (key,), value)
        except BoardError as error:
            raise self._make_error(event, key, error.problems[0].what) from None
        self.graph.note(key, value)

    def _read(self, event: LogEvent, step: int) -> None:
        """Append the objects that a delivery has read, if they are in the log."""
        names = event.payload.get("object_ids")
        for name in dict.fromkeys(map(str, names)) if isinstance(names, list) else ():
            self.history.read_codes.append(self.tables.add_path(0, (name,)))
            self.history.read_steps.append(step)

    def _make_error(self, event: LogEvent, path: str, why: str) -> Exception:
        return make_event_error(self.log.display_name, self.log.run.run_id, f"{event.id} ({event.type})", path, why)

    def _to_ns(self, at: int) -> int:
        since = self.times[at] - EPOCH
        return (since.days * 86_400 + since.seconds) * 1_000_000_000 + since.microseconds * 1000


def _iter_times(events: Sequence[LogEvent]) -> Iterable[datetime]:
    """Yield the time of each event; an event with an invalid time gets the time of the previous event."""
    last = EPOCH
    for event in events:
        last = parse_time(event.timestamp) or last
        yield last


def _make_failure(payload: Mapping[str, Any]) -> Failure:
    """Return the error of a behavior; the reason precedes the message if it says more than the type."""
    type, reason = str(payload.get("exception_type") or "failed"), payload.get("reason")
    message = str(payload.get("message") or "")
    text = reason if isinstance(reason, str) and not reason.startswith("exception.") and reason not in message else None
    return Failure(type, f"{text}: {message}" if text else message)


__all__ = ["run_of"]
