"""matching: which behaviours an event sets off, and why it does not. It is asked by the engine's frontier."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agentnb.board.values import FrozenList
from agentnb.dialects.activegraph.behaviors import RelationBehavior
from agentnb.dialects.activegraph.events import canonical, is_lifecycle
from agentnb.dialects.activegraph.ledger import Ledger, ledger_of
from agentnb.dialects.activegraph.projection import check_kept, projected
from agentnb.dialects.activegraph.where import failing, holds
from agentnb.engine.history import LATE

if TYPE_CHECKING:
    from agentnb.engine.history import Event
    from agentnb.engine.run import Run

ANY = "*"


class Matcher:
    """Which of some behaviours an event sets off: the higher priority first, else in the order of registering.

    `since` is the number of the event from which on they listen; -1 says that nobody does.
    """

    def __init__(self, behaviors: Sequence[Any], since: int = -1) -> None:
        self.since = since
        behaviors = sorted(behaviors, key=lambda each: -each.priority)  # the same priority: as they were registered
        self.behaviors = {each.name: each for each in behaviors}
        self._by_type: dict[str, list[Any]] = {}
        self._turns: dict[str, bool] = {}  # type -> whether events of it have a turn
        # The behaviours whose turns depend on the graph as it is then: on a pattern, on the relations that there are.
        self._open = {
            each.name for each in behaviors if each.pattern_matcher is not None or isinstance(each, RelationBehavior)
        }
        self._any = [each for each in behaviors if not each.on or ANY in each.on]
        self.types = {type_ for each in behaviors for type_ in each.on}
        self._puts_off = any(each.activate_after for each in behaviors)

    def waits(self, event: Event) -> bool:
        """Say whether an event has a turn: of the run's own only those of types that somebody names."""
        type_ = event.type
        has_turn = self._turns.get(type_)
        if has_turn is None:
            has_turn = self._turns[type_] = type_ in self.types or not is_lifecycle(type_)
        return has_turn and 0 <= self.since < event.seq

    def listening(self, type_: str) -> list[Any]:
        """Return the behaviours that listen to events of this type."""
        found = self._by_type.get(type_)
        if found is None:
            open_to_all = [] if is_lifecycle(type_) else self._any
            found = [each for each in self.behaviors.values() if type_ in each.on or each in open_to_all]
            self._by_type[type_] = found
        return found

    def at_once(self, run: Run, event: Event) -> list[str] | None:
        """Return the names of those that an event will set off; None where that depends on the graph as it is then."""
        found = []
        for each in self.listening(event.type):
            if not each.where or holds(each.where, event.payload):
                if each.name in self._open:
                    return None
                found.append(each.name)
        return found

    def turns(self, run: Run, event: Event) -> list[tuple[str, int]]:
        """Return the turns that an event sets off, now that its own has come."""
        ledger, found = ledger_of(run).sync(), list[tuple[str, int]]()
        for each in self.listening(event.type):
            if not holds(each.where, event.payload) or not self._fits(ledger, each, event):
                continue
            if isinstance(each, RelationBehavior):
                found += [(each.name, ledger.relations[id_]) for id_ in concerned(ledger, each, event)]
            else:
                found.append((each.name, -1))
        return found

    def late(self, run: Run, event: Event) -> list[tuple[str, int, int]]:
        """Return what was put off until the turn of this event is over, where it is still set off."""
        if not self._puts_off:
            return []
        ledger = ledger_of(run).sync()
        now, found = ledger.tick(event.seq), list[tuple[str, int, int]]()
        for seq, said in ledger.scheduled:
            each, cause = self.behaviors.get(said["behavior"]), run.event(seq)
            due = ledger.tick(seq) + said["activate_after"]
            if due == now and each is not None and cause is not None and holds(each.where, cause.payload):
                about = said.get("about_event", 0)
                if self._fits(ledger, each, cause):
                    found.append((each.name, LATE - about, seq))
        return found

    def projected(self, run: Run, event: Event) -> list[tuple[tuple[str, ...], Any]]:
        """Return what an event from outside writes."""
        canonical(event.payload)  # what JSON cannot say is no part of a log, whoever tells it
        return [((key,), value) for key, value in projected(ledger_of(run).sync(), event.type, event.payload)]

    def edited(self, key: str, value: Any) -> None:
        """Raise where a person would leave something on the board that no graph holds."""
        check_kept(key, value)

    def _fits(self, ledger: Ledger, each: Any, event: Event) -> bool:
        if each.pattern_matcher is None:
            return True
        found = [match.bindings for match in each.pattern_matcher.matches(ledger)]
        if found:
            ledger.matched[event.seq, each.name] = found
        return bool(found)

    def listens(self, node: str, event: Event) -> bool:
        """Say whether a behaviour listens to events of this type at all."""
        return self.behaviors[node] in self.listening(event.type)

    # -- why not -------------------------------------------------------------------------------------------------

    def refusals(self, run: Run, name: str, event: Event) -> Iterator[str]:
        """Yield each clause of a behaviour that does not hold for an event, in words."""
        each, ledger = self.behaviors[name], ledger_of(run).sync()
        if each not in self.listening(event.type):
            wanted = " and ".join(map(repr, each.on)) or "any event but the run's own"
            yield f"on: it listens to {wanted}, and event {event.id} is of type {event.type!r}"
            return
        failed = failing(each.where, event.payload)
        if failed is not None:
            path, wanted, found = failed
            yield f"where: {path} should be {wanted!r}, and is {found!r} in event {event.id}"
        if each.pattern_matcher is not None and next(each.pattern_matcher.matches(ledger), None) is None:
            yield f"pattern: {each.pattern!r} fits nothing in the graph"
        if isinstance(each, RelationBehavior) and not concerned(ledger, each, event):
            yield f"relation: event {event.id} names no end of a relation of type {each.relation_type!r}"


def concerned(ledger: Ledger, each: Any, event: Event) -> list[str]:
    """Return the relations of a behaviour's type of which the payload names an end, as a text of its own."""
    named = dict.fromkeys(texts(event.payload))
    found = dict.fromkeys(id_ for name in named for id_ in ledger.touching(name))
    mine = [id_ for id_ in found if ledger.relation(id_)["type"] == each.relation_type]
    return sorted(mine, key=ledger.relations.__getitem__)  # as they were made


def texts(value: Any) -> Iterator[str]:
    """Yield every text in a payload."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from texts(item)
    elif isinstance(value, list | tuple | FrozenList):
        for item in value:
            yield from texts(item)


__all__ = ["Matcher", "concerned", "texts"]
