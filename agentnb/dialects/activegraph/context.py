"""context: what a behaviour is given beside its event: the graph to act on, a view of it, and what it may ask for."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agentnb.board.values import ABSENT
from agentnb.dialects.activegraph.acting import Inside
from agentnb.dialects.activegraph.events import Event, canonical, event_of, events_of
from agentnb.dialects.activegraph.objects import Object, Patch, Relation, object_of, patch_of, relation_of
from agentnb.dialects.activegraph.patterns import Match
from agentnb.dialects.activegraph.reading import Then, near
from agentnb.dialects.activegraph.times import text_of
from agentnb.dialects.activegraph.where import Where, at, holds
from agentnb.errors import Problem

if TYPE_CHECKING:
    from agentnb.dialects.activegraph.ledger import Ledger
    from agentnb.dialects.activegraph.party import Frame, Party, Policy
    from agentnb.engine.history import Event as Kept
    from agentnb.engine.run import Run

RECENT = 50


class BehaviorGraph:
    """The graph as a behaviour acts on it: what it does is told in its name, because of its event."""

    def __init__(self, hand: Inside, party: Party) -> None:
        self._hand, self._party, self._name = hand, party, str(hand.actor)
        self.counters = {"objects_created": 0, "relations_created": 0, "patches_applied": 0, "patches_proposed": 0,
                         "events_emitted": 0}  # fmt: skip

    def add_object(self, type: str, data: Mapping[str, Any], *, evidence: Sequence[str] | None = None) -> Object:
        """Create an object.

        Raises:
            PolicyViolation: X508, a policy is against it.
        """
        self._party.check(self._name, "can_create", type)
        for check in self._party.checks:
            data = check("object", type, data)
        made = object_of(self._hand.add_object(type, data, evidence))
        self.counters["objects_created"] += 1
        return made

    def add_relation(self, source: str, target: str, type: str, data: Mapping[str, Any] | None = None) -> Relation:
        """Create a relation.

        Raises:
            PolicyViolation: X508, a policy is against it.
        """
        self._party.check(self._name, "can_create_relation", type)
        for check in self._party.checks:
            check("relation", type, {"source": source, "target": target})
        made = relation_of(self._hand.add_relation(source, target, type, data))
        self.counters["relations_created"] += 1
        return made

    def patch_object(self, target: str, updates: Mapping[str, Any], *, rationale: str | None = None,
                     evidence: Sequence[str] | None = None) -> Patch:  # fmt: skip
        """Merge fields into an object's data at once.

        Raises:
            KeyError: there is no such object.
            PolicyViolation: X508, a policy is against it.
        """
        self._party.check(self._name, "can_apply", self._type(target))
        made = patch_of(self._hand.patch_object(target, updates, rationale, evidence))
        self.counters["patches_applied"] += 1
        return made

    def propose_patch(self, target: str, op: str, value: Mapping[str, Any], *, rationale: str | None = None,
                      evidence: Sequence[str] | None = None) -> Patch:  # fmt: skip
        """Propose a change of an object as it is now.

        Raises:
            PolicyViolation: X508, a policy is against it.
        """
        self._party.check(self._name, "can_propose", self._type(target.removeprefix("object:")))
        made = patch_of(self._hand.propose_patch(target, op, value, self._name, rationale, evidence))
        self.counters["patches_proposed"] += 1
        return made

    def emit(self, type: str, payload: Mapping[str, Any] | None = None) -> Event:
        """Tell an event of the behaviour's own."""
        made = event_of(self._hand.emit(type, dict(payload or {})))
        self.counters["events_emitted"] += 1
        return made

    def remove_object(self, object_id: str) -> None:
        """Remove an object; the relations at it are removed first, each with an event of its own."""
        self._party.check(self._name, "can_apply", self._type(object_id))
        self._hand.remove_object(object_id)

    def remove_relation(self, relation_id: str) -> None:
        """Remove a relation: who may not create one of its type may not remove one.

        Raises:
            PolicyViolation: X508, a policy is against it.
        """
        kept = self._hand.ledger.relation(relation_id)
        if kept is not ABSENT:
            self._party.check(self._name, "can_create_relation", kept["type"], "remove a relation of type")
        self._hand.remove_relation(relation_id)

    def get_object(self, id_: str) -> Object | None:
        """Return an object, a copy; None where there is none."""
        kept = self._hand.ledger.object(id_)
        return None if kept is ABSENT else object_of(kept)

    def get_relation(self, id_: str) -> Relation | None:
        """Return a relation, a copy; None where there is none."""
        kept = self._hand.ledger.relation(id_)
        return None if kept is ABSENT else relation_of(kept)

    def _type(self, id_: str) -> str:
        kept = self._hand.ledger.object(id_)
        return "" if kept is ABSENT else str(kept["type"])


class View:
    """What of the graph a behaviour is shown, as it stood when it began. What it returns is copies."""

    def __init__(self, ledger: Ledger, event: Kept, spec: Mapping[str, Any] | None) -> None:
        spec = spec or {}
        recent = int(spec.get("recent_events", RECENT))
        self._events = ledger.last_events(recent) if recent > 0 else []
        self._ledger, self._event, self._spec = ledger, event, spec
        self._taken: tuple[list[Any], list[Any]] | None = None

    def take(self) -> tuple[list[Any], list[Any]]:
        """Return the objects and relations that it shows, frozen; looked up once, as they stood at the begin."""
        if self._taken is None:
            around, types = self._spec.get("around"), self._spec.get("include_types")
            ledger: Ledger | Then = self._ledger  # what this step has changed since is not part of it
            ledger = Then(self._ledger.run.root.scope.data) if self._ledger.changed else self._ledger
            if around is None:
                objects, relations = list(ledger.all_objects()), list(ledger.all_relations())
            else:
                objects, relations = near(ledger, self._centre(str(around)), int(self._spec.get("depth", 1)))
            if types:
                objects = [kept for kept in objects if kept["type"] in types]
            self._taken = objects, relations
        return self._taken

    def _centre(self, around: str) -> str:
        """Return the id of the object that a view is around: found in the event, or named as it is."""
        head, *path = around.split(".")
        if head != "event":
            return around
        event = self._event
        root = {"payload": event.payload, "id": event.id, "type": event.type, "actor": event.actor}
        return str(at(root, path))

    def objects(self, type: str | None = None, where: Where | None = None) -> list[Object]:
        """Return the objects that it shows, of a type and as `where` says: {"data.state": "open"}."""
        return [object_of(kept) for kept in self.take()[0]
                if type in (None, kept["type"]) and (not where or holds(where, kept))]  # fmt: skip

    def relations(self, type: str | None = None) -> list[Relation]:
        """Return the relations that it shows, of a type."""
        return [relation_of(kept) for kept in self.take()[1] if type in (None, kept["type"])]

    def events(self, type: str | None = None) -> list[Event]:
        """Return the last events, of a type."""
        return events_of(kept for kept in self._events if type in (None, kept.type))

    def get_object(self, id_: str) -> Object | None:
        """Return an object that it shows; None where it shows none of that id."""
        return next((object_of(kept) for kept in self.take()[0] if kept["id"] == id_), None)


class Seen:
    """The clock of a run, as behaviours read it."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def now(self) -> str:
        """Return the time."""
        return text_of(self._run.clock.now())


class Context:
    """What a behaviour may look at and ask for: `view`, `frame`, `policy`, `random`, `clock`, `matches`, `settings`."""

    def __init__(self, name: str, hand: Inside, party: Party, event: Kept, spec: Mapping[str, Any] | None) -> None:
        self._name, self._hand, self._party = name, hand, party
        self.view = View(hand.ledger, event, spec)
        self.matches: list[Match] = []
        self.clock = Seen(hand.ledger.run)

    @property
    def frame(self) -> Frame | None:
        """What the run is about."""
        return self._party.frame

    @property
    def policy(self) -> Policy | None:
        """What behaviours may do."""
        return self._party.policy

    @property
    def random(self) -> random.Random:
        """The run's own source of chance: the same run draws the same, also where it goes on elsewhere."""
        return self._hand.ledger.run.random

    @property
    def llm_provider(self) -> Any:
        """The model that is asked."""
        return self._party.llm

    @property
    def settings(self) -> Any:
        """The settings of the pack that the behaviour comes from; None where it comes from none."""
        return self._party.settings.get(self._party.packs(self._name))

    def pack_settings(self, name: str) -> Any:
        """Return the settings of a pack; None where it is not loaded."""
        return self._party.settings.get(name)

    def propose_object(self, type: str, data: Mapping[str, Any], reason: str = "") -> str:
        """Ask leave to create an object, and return the id of the approval that is waited for."""
        hand, approval = self._hand, self._hand.ledger.ids.approval()
        payload = {"approval_id": approval, "object_type": type, "reason": reason,
                   "pack": self._party.packs(self._name), "data": canonical(data)}  # fmt: skip
        hand.tell("approval.proposed", payload, actor="runtime", cause=hand.cause, frame=hand.frame)
        return approval

    def embed(self, texts: Sequence[str]) -> Any:
        """Refuse: vectors are out of what runs here.

        X509: a behaviour asks for vectors, which nothing here makes.
        """
        from agentnb.dialects.activegraph.errors import GraphError

        raise GraphError(
            Problem("X509", f"nothing here makes vectors of {len(texts)} texts", f"behaviour {self._name!r}",
                    "embeddings are no part of this dialect", "call a model of embeddings in a tool")
        )  # fmt: skip


__all__ = ["BehaviorGraph", "Context", "View"]
