"""Matching of events to behaviors, and the reasons for mismatches. Used by the engine's scheduler."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agentnb.board.values import FrozenList
from agentnb.dialects.activegraph.parts.behaviors import RelationBehavior
from agentnb.dialects.activegraph.parts.events import is_lifecycle, to_canonical
from agentnb.dialects.activegraph.parts.ledger import Ledger, get_ledger
from agentnb.dialects.activegraph.parts.projection import check_board_value, project
from agentnb.dialects.activegraph.parts.where import find_failing_clause, holds
from agentnb.engine.core.history import LATE
from agentnb.text import safe_repr

if TYPE_CHECKING:
    from agentnb.engine.core.history import Event
    from agentnb.engine.core.run import Run

ANY = "*"


class Matcher:
    """The behaviors triggered by an event: by priority, then in the order of registration.

    `since` is the number of the first event that they get; -1 if there are no listeners.
    """

    def __init__(self, behaviors: Sequence[Any], since: int) -> None:
        self.since = since
        # the same priority: in the order of registration
        behaviors = sorted(behaviors, key=lambda each: -each.priority)
        self.behaviors = {each.name: each for each in behaviors}
        self._by_type: dict[str, list[Any]] = {}
        self._deliveries: dict[str, bool] = {}  # type -> whether such events are delivered
        # The behaviors that depend on the state of the graph at delivery: on a pattern, or on existing relations.
        self._open = {
            each.name for each in behaviors if each.pattern_matcher is not None or isinstance(each, RelationBehavior)
        }
        self._any = [each for each in behaviors if not each.on or ANY in each.on]
        self.types = {type_ for each in behaviors for type_ in each.on}
        self._puts_off = any(each.activate_after for each in behaviors)

    def has_listeners(self, event: Event) -> bool:
        """Return True if an event is delivered.

        Events of the run itself are delivered only if a behavior names their type.
        """
        type_ = event.type
        has_turn = self._deliveries.get(type_)
        if has_turn is None:
            has_turn = self._deliveries[type_] = type_ in self.types or not is_lifecycle(type_)
        return has_turn and 0 <= self.since < event.seq

    def listening(self, type_: str) -> list[Any]:
        """Return the behaviors that listen to events of this type."""
        listeners = self._by_type.get(type_)
        if listeners is None:
            # As in the package, an event about embeddings is delivered, but only to those who name it
            open_to_all = [] if is_lifecycle(type_) or type_.startswith("embedding.") else self._any
            listeners = [each for each in self.behaviors.values() if type_ in each.on or each in open_to_all]
            self._by_type[type_] = listeners
        return listeners

    def list_triggered(self, run: Run, event: Event) -> list[str] | None:
        """Return the names of the behaviors that an event will trigger.

        None if that depends on the future state of the graph.
        """
        names = []
        for each in self.listening(event.type):
            if not each.where or holds(each.where, event.payload):
                if each.name in self._open:
                    return None
                names.append(each.name)
        return names

    def list_deliveries(self, run: Run, event: Event) -> list[tuple[str, int]]:
        """Return the deliveries triggered by an event that is being processed."""
        ledger, deliveries = get_ledger(run).sync(), list[tuple[str, int]]()
        for each in self.listening(event.type):
            if not holds(each.where, event.payload) or not self._fits_event(ledger, each, event):
                continue
            if isinstance(each, RelationBehavior):
                deliveries += [(each.name, ledger.relations[id_]) for id_ in find_concerned(ledger, each, event)]
            else:
                deliveries.append((each.name, -1))
        return deliveries

    def list_delayed(self, run: Run, event: Event) -> list[tuple[str, int, int]]:
        """Return the delayed deliveries that are due after this event, if they are still triggered."""
        if not self._puts_off:
            return []
        ledger = get_ledger(run).sync()
        now, delayed = ledger.tick(event.seq), list[tuple[str, int, int]]()
        for seq, delay in ledger.scheduled:
            each, cause = self.behaviors.get(delay["behavior"]), run.get_event(seq)
            due = ledger.tick(seq) + delay["activate_after"]
            if due == now and each is not None and cause is not None and holds(each.where, cause.payload):
                about = delay.get("about_event", 0)
                if self._fits_event(ledger, each, cause):
                    delayed.append((each.name, LATE - about, seq))
        return delayed

    def project(self, run: Run, event: Event) -> list[tuple[tuple[str, ...], Any]]:
        """Return the writes of an external event."""
        to_canonical(event.payload)  # values that are not JSON-serializable are never part of a log
        return [((key,), value) for key, value in project(get_ledger(run).sync(), event.type, event.payload)]

    def accept(self, run: Run, event: Event) -> None:
        """Notify the listeners of the graph, unless the event comes from the graph, which notifies them itself."""
        ledger = get_ledger(run)
        if event.id != ledger.emitting:
            ledger.notify(event)

    def check_value(self, key: str, value: Any) -> None:
        """Raise an error for a value that is not part of a graph."""
        check_board_value(key, value)

    def _fits_event(self, ledger: Ledger, behavior: Any, event: Event) -> bool:
        if behavior.pattern_matcher is None:
            return True
        bindings = [match.bindings for match in behavior.pattern_matcher.matches(ledger)]
        if bindings:
            ledger.matched[event.seq, behavior.name] = bindings
        return bool(bindings)

    def listens(self, node: str, event: Event) -> bool:
        """Return True if a behavior listens to events of this type."""
        return self.behaviors[node] in self.listening(event.type)

    def find_matches(self, run: Run, name: str) -> list[dict[str, str]]:
        """Return the matches of a behavior's pattern at the current step; empty if it has none."""
        matcher = self.behaviors[name].pattern_matcher
        return [] if matcher is None else [match.bindings for match in matcher.matches(get_ledger(run).sync())]

    # -- why not -------------------------------------------------------------------------------------------------

    def explain_refusal(self, run: Run, name: str, event: Event) -> Iterator[str]:
        """Yield each clause of a behavior that an event does not match, as text."""
        each, ledger = self.behaviors[name], get_ledger(run).sync()
        if each not in self.listening(event.type):
            expected = " and ".join(map(repr, each.on)) or "any event but the run's own"
            yield f"on: it listens to {expected}, and event {event.id} is of type {event.type!r}"
            return
        failed = find_failing_clause(each.where, event.payload)
        if failed is not None:
            path, expected, actual = failed
            yield f"where: {path} should be {safe_repr(expected)}, and is {safe_repr(actual)} in event {event.id}"
        if each.pattern_matcher is not None and next(each.pattern_matcher.matches(ledger), None) is None:
            yield f"pattern: {safe_repr(each.pattern)} matches nothing in the graph"
        if isinstance(each, RelationBehavior) and not find_concerned(ledger, each, event):
            yield f"relation: event {event.id} names no end of a relation of type {each.relation_type!r}"


def find_concerned(ledger: Ledger, behavior: Any, event: Event) -> list[str]:
    """Return the relations of a behavior's type one of whose ends is named by a complete value in the payload."""
    named = dict.fromkeys(iter_texts(event.payload))
    relation_ids = dict.fromkeys(id_ for name in named for id_ in ledger.touching(name))
    matching = [id_ for id_ in relation_ids if ledger.relation(id_)["type"] == behavior.relation_type]
    return sorted(matching, key=ledger.relations.__getitem__)  # in creation order


def iter_texts(value: Any) -> Iterator[str]:
    """Yield every string in a payload."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from iter_texts(item)
    elif isinstance(value, list | tuple | FrozenList):
        for item in value:
            yield from iter_texts(item)


__all__ = ["Matcher", "find_concerned", "iter_texts"]
