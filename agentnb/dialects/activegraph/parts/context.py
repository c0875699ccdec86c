"""The arguments of a behavior besides its event: the graph to change, a view of it, and the context."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agentnb.board.values import ABSENT
from agentnb.dialects.activegraph.parts.clocks import format_time
from agentnb.dialects.activegraph.parts.events import Event, to_canonical, to_event, to_events
from agentnb.dialects.activegraph.parts.graph_mutations import StepActor
from agentnb.dialects.activegraph.parts.graph_queries import EarlierGraph, find_near
from agentnb.dialects.activegraph.parts.objects import Object, Patch, Relation, patch_of, to_object, to_relation
from agentnb.dialects.activegraph.parts.patterns import Match
from agentnb.dialects.activegraph.parts.where import Where, get_at, holds
from agentnb.errors import Problem

if TYPE_CHECKING:
    from agentnb.dialects.activegraph.parts.ledger import Ledger
    from agentnb.dialects.activegraph.parts.run_config import Frame, Policy, RuntimeConfig
    from agentnb.engine.core.history import Event as Kept
    from agentnb.engine.core.work import Work

RECENT = 50
Reads = dict[str, None] | None  # the ids of the objects that a delivery has read, in order; None: not recorded


class BehaviorGraph:
    """The graph as a behavior changes it: the behavior is the actor of its changes, and its event is their cause."""

    def __init__(self, hand: StepActor, config: RuntimeConfig, reads: Reads) -> None:
        self._actor, self._config, self._name, self._reads = hand, config, str(hand.actor), reads
        self.counters = {"objects_created": 0, "relations_created": 0, "patches_applied": 0, "patches_proposed": 0,
                         "events_emitted": 0}  # fmt: skip

    def add_object(self, type: str, data: Mapping[str, Any], *, evidence: Sequence[str] | None = None) -> Object:
        """Create an object.

        Raises:
            PolicyViolation: X508, a policy forbids it.
        """
        self._config.check(self._name, "can_create", type)
        object_ = to_object(self._actor.add_object(type, data, evidence))
        self.counters["objects_created"] += 1
        return object_

    def add_relation(self, source: str, target: str, type: str, data: Mapping[str, Any] | None = None) -> Relation:
        """Create a relation.

        Raises:
            PolicyViolation: X508, a policy forbids it.
        """
        self._config.check(self._name, "can_create_relation", type)
        relation = to_relation(self._actor.add_relation(source, target, type, data))
        self.counters["relations_created"] += 1
        return relation

    def patch_object(self, target: str, updates: Mapping[str, Any], *, rationale: str | None = None,
                     evidence: Sequence[str] | None = None) -> Patch:  # fmt: skip
        """Merge fields into an object's data at once.

        Raises:
            KeyError: there is no such object.
            PolicyViolation: X508, a policy forbids it.
        """
        self._config.check(self._name, "can_apply", self._get_type(target))
        patch = patch_of(self._actor.patch_object(target, updates, rationale, evidence))
        self.counters["patches_applied"] += 1
        return patch

    def propose_patch(self, target: str, op: str, value: Mapping[str, Any], *, rationale: str | None = None,
                      evidence: Sequence[str] | None = None) -> Patch:  # fmt: skip
        """Propose a change of an object in its current state.

        Raises:
            PolicyViolation: X508, a policy forbids it.
        """
        self._config.check(self._name, "can_propose", self._get_type(target.removeprefix("object:")))
        patch = patch_of(self._actor.propose_patch(target, op, value, self._name, rationale, evidence))
        self.counters["patches_proposed"] += 1
        return patch

    def emit(self, type: str, payload: Mapping[str, Any] | None = None) -> Event:
        """Record an event with the behavior as its actor."""
        event = to_event(self._actor.emit(type, dict(payload or {})))
        self.counters["events_emitted"] += 1
        return event

    def remove_object(self, object_id: str) -> None:
        """Remove an object; its relations are removed first, each with an event."""
        self._config.check(self._name, "can_apply", self._get_type(object_id))
        self._actor.remove_object(object_id)

    def remove_relation(self, relation_id: str) -> None:
        """Remove a relation; requires the same permission as creating one of its type.

        Raises:
            PolicyViolation: X508, a policy forbids it.
        """
        record = self._actor.ledger.relation(relation_id)
        if record is not ABSENT:
            self._config.check(self._name, "can_create_relation", record["type"], "remove a relation of type")
        self._actor.remove_relation(relation_id)

    def get_object(self, id_: str) -> Object | None:
        """Return an object, a copy; None if there is none."""
        record = self._actor.ledger.object(id_)
        if record is ABSENT:
            return None
        if self._reads is not None:
            self._reads[id_] = None
        return to_object(record)

    def get_relation(self, id_: str) -> Relation | None:
        """Return a relation, a copy; None if there is none."""
        record = self._actor.ledger.relation(id_)
        return None if record is ABSENT else to_relation(record)

    def _get_type(self, id_: str) -> str:
        record = self._actor.ledger.object(id_)
        return "" if record is ABSENT else str(record["type"])


class View:
    """The part of the graph that a behavior sees, as of the start of the delivery. It returns copies."""

    def __init__(self, ledger: Ledger, event: Kept, spec: Mapping[str, Any] | None, reads: Reads) -> None:
        spec, self._reads = spec or {}, reads
        self._events = ledger.last_events(max(spec.get("recent_events", RECENT), 0))
        self._ledger, self._event, self._spec = ledger, event, spec
        self._contents: tuple[list[Any], list[Any]] | None = None

    def take(self) -> tuple[list[Any], list[Any]]:
        """Return the visible objects and relations, frozen; looked up only once, as they were at the start."""
        if self._contents is None:
            around, types = self._spec.get("around"), self._spec.get("include_types")
            ledger: Ledger | EarlierGraph = self._ledger  # changes of this step since then are not part of it
            ledger = EarlierGraph(self._ledger.run.root.scope.data) if self._ledger.changed else self._ledger
            if around is None:
                objects, relations = list(ledger.all_objects()), list(ledger.all_relations())
            else:
                objects, relations = find_near(ledger, self._get_center(str(around)), int(self._spec.get("depth", 1)))
            if types:
                objects = [record for record in objects if record["type"] in types]
            self._contents = objects, relations
        return self._contents

    def _get_center(self, around: str) -> str:
        """Return the id of the object at the center of a view: read from the event, or stated literally."""
        head, *path = around.split(".")
        if head != "event":
            return around
        event = self._event
        root = {"payload": event.payload, "id": event.id, "type": event.type, "actor": event.actor}
        return str(get_at(root, path))

    def objects(self, type: str | None = None, where: Where | None = None) -> list[Object]:
        """Return the visible objects of a type that match `where`: {"data.state": "open"}."""
        records = [record for record in self.take()[0]
                 if type in (None, record["type"]) and (not where or holds(where, record))]  # fmt: skip
        if self._reads is not None:
            self._reads.update(dict.fromkeys(record["id"] for record in records))
        return [to_object(record) for record in records]

    def relations(self, type: str | None = None) -> list[Relation]:
        """Return the visible relations of a type."""
        return [to_relation(record) for record in self.take()[1] if type in (None, record["type"])]

    def events(self, type: str | None = None) -> list[Event]:
        """Return the last visible events of a type."""
        return to_events(event for event in self._events if type in (None, event.type))

    def get_object(self, id_: str) -> Object | None:
        """Return a visible object; None if none has that id."""
        found = next((record for record in self.take()[0] if record["id"] == id_), None)
        if found is None:
            return None
        if self._reads is not None:
            self._reads[id_] = None
        return to_object(found)


class ClockView:
    """The clock of a run, as behaviors read it."""

    def __init__(self, work: Work) -> None:
        self._work = work

    def now(self) -> str:
        """Return the time."""
        return format_time(self._work.now())


class Context:
    """The context of a behavior: `view`, `frame`, `policy`, `random`, `clock`, `matches`, `settings`."""

    def __init__(self, name: str, hand: StepActor, config: RuntimeConfig, event: Kept, spec: Mapping[str, Any] | None,
                 reads: Reads = None) -> None:  # fmt: skip
        self._name, self._actor, self._config = name, hand, config
        self.view = View(hand.ledger, event, spec, reads)
        self.matches: list[Match] = []
        self.clock = ClockView(hand.work)

    @property
    def frame(self) -> Frame | None:
        """The subject of the run."""
        return self._config.frame

    @property
    def policy(self) -> Policy | None:
        """The permissions of behaviors."""
        return self._config.policy

    @property
    def random(self) -> random.Random:
        """The run's random generator: equal runs draw equal numbers, even after a resume in another process."""
        return self._actor.ledger.run.random

    @property
    def llm_provider(self) -> Any:
        """The model provider: the session's model, else the runtime's."""
        asking = self._config.asking
        return self._config.llm if asking is None else asking.of_world(self._actor.ledger.run.world).provider

    @property
    def settings(self) -> Any:
        """The settings of the behavior's pack; None if it is not from a pack."""
        return self._config.find_settings(self._name)

    def pack_settings(self, name: str) -> Any:
        """Return the settings of a pack; None if it is not loaded."""
        loaded = self._config.packs.get(name)
        return None if loaded is None else loaded.settings

    def propose_object(self, type: str, data: Mapping[str, Any], reason: str = "") -> str:
        """Request approval to create an object, and return the id of the pending approval."""
        hand, approval = self._actor, self._actor.ledger.ids.approval()
        payload = {"approval_id": approval, "object_type": type, "reason": reason,
                   "pack": self._config.gating_pack(type), "data": to_canonical(data)}  # fmt: skip
        hand.record("approval.proposed", payload, actor="runtime", cause=hand.cause, frame=hand.frame)
        return approval

    def embed(self, texts: Sequence[str]) -> Any:
        """Raise an error: embeddings are not supported here.

        X509: a behavior requests an embedding, which is not supported here.
        """
        from agentnb.dialects.activegraph.errors import GraphError

        raise GraphError(
            Problem("X509", f"embeddings of {len(texts)} strings are not available", f"behavior {self._name!r}",
                    "this dialect does not support embeddings", "call an embedding model in a tool")
        )  # fmt: skip


__all__ = ["BehaviorGraph", "Context", "View"]
