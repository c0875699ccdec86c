"""Graph: objects and relations, and the event log that they are derived from.

It uses the board and log of a session.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agentnb.board.values import ABSENT
from agentnb.dialects.activegraph.errors import DuplicateEventError, GraphError
from agentnb.dialects.activegraph.parts.argument_checks import check_type
from agentnb.dialects.activegraph.parts.clocks import Clock, IDGen, parse_time, to_engine_clock
from agentnb.dialects.activegraph.parts.events import Event, to_event, to_events
from agentnb.dialects.activegraph.parts.graph_mutations import Actor, Check, SessionActor, StepActor
from agentnb.dialects.activegraph.parts.graph_queries import Chain, find_chains, find_near, parse_direction
from agentnb.dialects.activegraph.parts.graph_stores import GraphStore
from agentnb.dialects.activegraph.parts.ledger import Ledger, get_ledger
from agentnb.dialects.activegraph.parts.objects import Object, Patch, Relation, patch_of, to_object, to_relation
from agentnb.dialects.activegraph.parts.where import Where, check, get_object_values, holds
from agentnb.dialects.activegraph.schema import make_recipe
from agentnb.engine.effects.step_into import is_stopped
from agentnb.errors import Problem, with_article
from agentnb.session.parts import get_parts
from agentnb.session.state import get_state

if TYPE_CHECKING:
    from agentnb.engine.core.history import Event as Kept
    from agentnb.session import Session

Words = Any  # actor=, caused_by=, frame_id=, and the provenance of a model and its tools


class Graph:
    """Objects and relations, and the event log that they are derived from.

    All returned values are copies. `session` is the run that the graph belongs to; `session.back()` restores the graph,
    too.

    Args:
        ids: the generator of ids; default: a new one.
        clock: the source of times; default: the wall clock.
        run_id: the id of its run; default: a new one.
        graph_store: holds the objects and relations, see agentnb.dialects.activegraph.parts.graph_stores; default: in
            memory. Its previous content is removed: the log is the source of truth.

    Raises:
        GraphError: X516, it is not such a store.

    Example:
        >>> graph = Graph()
        >>> task = graph.add_object("task", {"title": "write"})
        >>> graph.patch_object(task.id, {"title": "read"}).status
        'applied'
        >>> graph.get_object("task#1").version, [event.type for event in graph.events]
        (2, ['object.created', 'patch.applied'])
    """

    def __init__(self, ids: IDGen | None = None, clock: Any = None, run_id: str | None = None,
                 graph_store: Any = None, *, session: Session | None = None) -> None:  # fmt: skip
        check_graph_store(graph_store)
        self.graph_store = graph_store
        self.replayed_count = 0  # how many events were in the log when it was opened; see `replayed_ids`
        self.ids = IDGen() if ids is None else ids
        self.clock = Clock() if clock is None else clock
        if session is None:
            from agentnb.session import Session as Begun

            recipe = make_recipe(())
            session = Begun(recipe, clock=to_engine_clock(self.clock), run_id=run_id or self.ids.run(), name="graph")
        self.session = session
        run = get_state(session).run
        counts, run.ids = run.ids.counters, self.ids
        for name, number in counts.items():
            self.ids.counters.setdefault(name, number)
        self._listeners: list[Callable[[Event], None]] = []
        self.observe: Callable[[Kept], None] | None = None  # called with each event of the run, frozen
        self.checks: Sequence[Check] = ()  # checks of the packs that a runtime has loaded

    # -- internals -----------------------------------------------------------------------------------------------

    @property
    def _raw(self) -> Ledger:
        ledger = get_ledger(get_state(self.session).run)
        if self.graph_store is not None:
            ledger.use_store(self.graph_store)
        if self._notify_listeners not in ledger.listeners:
            ledger.listeners.append(self._notify_listeners)
        return ledger

    @property
    def ledger(self) -> Ledger:
        """The state of the run's board and log at the current step."""
        return self._raw.sync()

    def get_actor(self, actor: str | None = "system", cause: str | None = None, frame: str | None = None,
             **options: Any) -> Actor:  # fmt: skip
        """Return the actor: in the current step if its behavior is the caller, else outside."""
        ledger = self._raw
        hand: Actor
        if ledger.acting is not None and not is_stopped(ledger.acting):
            hand = StepActor(ledger.acting, ledger, actor, cause, frame)
        else:
            hand = SessionActor(self.session, ledger.sync(), actor, cause, frame)
        hand.provenance = {name: value for name, value in options.items() if value}
        hand.checks = self.checks
        return hand

    def _notify_listeners(self, event: Kept) -> None:
        if self.observe is not None:
            self.observe(event)
        for listener in tuple(self._listeners):
            listener(to_event(event))

    @property
    def run_id(self) -> str:
        """The id of the run."""
        return self.session.run_id

    @property
    def store(self) -> Any:
        """The store that records the run; None if it is only in memory. Its `url` is the location.

        It is an EventLog of agentnb.store; for a continued run of the activegraph package, the writer of its log.
        """
        return get_parts(self.session).persistence.store

    @property
    def replayed_ids(self) -> set[str]:
        """The ids of the events that were already in the log when this run was loaded or forked."""
        return {event.id for event in self.ledger.events()[: self.replayed_count]}

    # -- changes -------------------------------------------------------------------------------------------------

    def emit(self, event: Event) -> Event:
        """Record an event exactly as passed, including its id, and return it as recorded.

        X507: an event has an id that is already used.

        Raises:
            DuplicateEventError: X507, there is an event with that id.
            GraphError: X502, its payload is not that of an event of its type.
            NonSerializableEventError: X501, its payload is not JSON-serializable.
        """
        check_type(event, Event, "graph.emit()", "an event: Event(graph.ids.event(), type, payload)")
        ledger = self._raw
        if event.id in ledger.event_ids():
            raise DuplicateEventError(
                Problem("X507", f"event {event.id!r} already exists", "graph.emit()", "event ids are unique",
                        "use the next id: Event(graph.ids.event(), ...)")
            )  # fmt: skip
        recorded = self.get_actor().record(event.type, event.payload, actor=event.actor, cause=event.caused_by,
                                frame=event.frame_id, id_=event.id, when=parse_time(event.timestamp))  # fmt: skip
        return to_event(recorded)

    def add_object(self, type: str, data: Mapping[str, Any], *, actor: str = "system", caused_by: str | None = None,
                   frame_id: str | None = None, evidence: Sequence[str] | None = None,
                   llm_request_event_id: str | None = None,
                   tool_request_event_ids: Sequence[str] | None = None) -> Object:  # fmt: skip
        """Create an object; ids are numbered: task#1, claim#2."""
        hand = self.get_actor(
            actor, caused_by, frame_id, **_request_provenance(llm_request_event_id, tool_request_event_ids)
        )
        return to_object(hand.add_object(type, data, evidence))

    def add_relation(self, source: str, target: str, type: str, data: Mapping[str, Any] | None = None, *,
                     actor: str = "system", caused_by: str | None = None, frame_id: str | None = None,
                     llm_request_event_id: str | None = None,
                     tool_request_event_ids: Sequence[str] | None = None) -> Relation:  # fmt: skip
        """Create a relation; its ends need not exist."""
        hand = self.get_actor(
            actor, caused_by, frame_id, **_request_provenance(llm_request_event_id, tool_request_event_ids)
        )
        return to_relation(hand.add_relation(source, target, type, data))

    def remove_object(self, object_id: str, *, actor: str = "system", caused_by: str | None = None,
                      frame_id: str | None = None) -> None:  # fmt: skip
        """Remove an object; its relations are removed first, each with an event."""
        self.get_actor(actor, caused_by, frame_id).remove_object(object_id)

    def remove_relation(self, relation_id: str, *, actor: str = "system", caused_by: str | None = None,
                        frame_id: str | None = None) -> None:  # fmt: skip
        """Remove a relation."""
        self.get_actor(actor, caused_by, frame_id).remove_relation(relation_id)

    def patch_object(self, target: str, updates: Mapping[str, Any], *, actor: str = "system",
                     caused_by: str | None = None, frame_id: str | None = None, rationale: str | None = None,
                     evidence: Sequence[str] | None = None, llm_request_event_id: str | None = None,
                     tool_request_event_ids: Sequence[str] | None = None) -> Patch:  # fmt: skip
        """Merge fields into an object's data at once.

        Raises:
            KeyError: there is no such object.
        """
        hand = self.get_actor(
            actor, caused_by, frame_id, **_request_provenance(llm_request_event_id, tool_request_event_ids)
        )
        return patch_of(hand.patch_object(target, updates, rationale, evidence))

    def propose_patch(self, target: str, op: str, value: Mapping[str, Any], *, proposed_by: str,
                      rationale: str | None = None, evidence: Sequence[str] | None = None,
                      caused_by: str | None = None, frame_id: str | None = None,
                      llm_request_event_id: str | None = None,
                      tool_request_event_ids: Sequence[str] | None = None) -> Patch:  # fmt: skip
        """Propose a change: `update` merges fields, `replace` replaces all of them."""
        hand = self.get_actor(
            "system", caused_by, frame_id, **_request_provenance(llm_request_event_id, tool_request_event_ids)
        )
        return patch_of(hand.propose_patch(target, op, value, proposed_by, rationale, evidence))

    def apply_patch(self, patch_id: str, *, approved_by: str = "system", caused_by: str | None = None,
                    frame_id: str | None = None) -> Event:  # fmt: skip
        """Apply a proposed patch if its object still has the same version; otherwise the patch is rejected.

        Raises:
            KeyError: there is no such patch.
            InvalidPatchLifecycleState: X505, it was decided before.
        """
        return to_event(self.get_actor("system", caused_by, frame_id).apply_patch(patch_id, approved_by))

    def reject_patch(self, patch_id: str, reason: str, *, actor: str = "system", caused_by: str | None = None,
                     frame_id: str | None = None) -> Event:  # fmt: skip
        """Reject a proposed patch.

        Raises:
            KeyError: there is no such patch.
            InvalidPatchLifecycleState: X505, it was decided before.
        """
        return to_event(self.get_actor(actor, caused_by, frame_id).reject_patch(patch_id, reason))

    def add_listener(self, fn: Callable[[Event], None]) -> None:
        """Call `fn` with each event from now on, after it is recorded and applied; exceptions propagate."""
        self._raw  # noqa: B018  (the ledger tells us from now on)
        self._listeners.append(fn)

    # -- reading -------------------------------------------------------------------------------------------------

    @property
    def events(self) -> list[Event]:
        """The log up to the current step, in order."""
        return to_events(self.ledger.events())

    def get_object(self, id_: str) -> Object | None:
        """Return an object; None if there is none with that id."""
        record = self.ledger.object(id_)
        return None if record is ABSENT else to_object(record)

    def get_relation(self, id_: str) -> Relation | None:
        """Return a relation; None if there is none with that id."""
        record = self.ledger.relation(id_)
        return None if record is ABSENT else to_relation(record)

    def get_patch(self, id_: str) -> Patch | None:
        """Return a patch; None if there is none with that id."""
        record = self.ledger.patch(id_)
        return None if record is ABSENT else patch_of(record)

    def all_objects(self) -> list[Object]:
        """Return all objects in creation order."""
        return [to_object(record) for record in self.ledger.all_objects()]

    def all_relations(self) -> list[Relation]:
        """Return all relations in creation order."""
        return [to_relation(record) for record in self.ledger.all_relations()]

    def objects(self, type: str | None = None, where: Where | None = None) -> list[Object]:
        """Return the objects of a type that match a `where`: dotted path -> value or {operator: value}."""
        check(where)
        objects = self.ledger.all_objects(type)
        return [to_object(record) for record in objects if not where or holds(where, get_object_values(record))]

    def query(self, object_type: str | None = None, where: Where | None = None) -> list[Object]:
        """Return the same as `objects`."""
        return self.objects(object_type, where)

    def objects_in_types(self, types: Sequence[str]) -> list[Object]:
        """Return the objects of some types in creation order."""
        return [to_object(record) for record in self.ledger.all_objects() if record["type"] in types]

    def has_object_of_type(self, type_: str | None) -> bool:
        """Return True if there is an object of a type; for None, of any type."""
        return next(self.ledger.all_objects(type_), None) is not None

    def relations(
        self, source: str | None = None, target: str | None = None, type: str | None = None
    ) -> list[Relation]:
        """Return the relations with these ends and of this type."""
        filters = {name: value for name, value in (("source", source), ("target", target), ("type", type)) if value}
        ledger = self.ledger
        known = source or target
        relations = ledger.all_relations() if known is None else map(ledger.relation, ledger.touching(known))
        return [
            to_relation(record) for record in relations if all(record[name] == value for name, value in filters.items())
        ]

    def get_relations(
        self, object_id: str | None = None, type: str | None = None, direction: str = "both"
    ) -> list[Relation]:
        """Return the relations of an object: those that start there ("outgoing"), end there ("incoming"), or "both".

        Raises:
            GraphError: X517, there is no such direction.
        """
        direction = parse_direction(direction, "outgoing", "incoming", "both")
        if object_id is None:
            return self.relations(type=type)
        ends = {"outgoing": ("source",), "incoming": ("target",), "both": ("source", "target")}[direction]
        ledger = self.ledger
        return [
            to_relation(record)
            for record in map(ledger.relation, ledger.touching(object_id))
            if (type is None or record["type"] == type) and any(record[end] == object_id for end in ends)
        ]

    def neighborhood(self, object_id: str, depth: int = 1) -> tuple[list[Object], list[Relation]]:
        """Return the objects reachable within a number of relations, in any direction, in creation order."""
        objects, relations = find_near(self.ledger, object_id, depth)
        return [to_object(record) for record in objects], [to_relation(record) for record in relations]

    def match_chain(self, node_types: Sequence[str | None], rels: Sequence[tuple[str | None, str]]) -> list[Chain]:
        """Return each chain of objects of these types, joined by relations of (type, "right" or "left").

        Raises:
            GraphError: X517, a direction is neither right nor left.
        """
        return find_chains(self.ledger, node_types, rels)

    def __repr__(self) -> str:
        """Return one line with the numbers of objects and relations."""
        ledger = self.ledger
        objects = sum(1 for _ in ledger.all_objects())
        return f"<Graph: {objects} objects, {len(ledger.relations)} relations>"


def _request_provenance(llm: str | None, tools: Sequence[str] | None) -> dict[str, Any]:
    """Return the provenance fields of a model request and of the tools that it called."""
    return {"llm_request_event_id": llm, "tool_request_event_ids": None if tools is None else list(tools)}


def check_graph_store(store: Any) -> None:
    """X516: the object passed as a graph store is not one.

    Raises:
        GraphError: X516, it does not implement GraphStore.
    """
    if store is not None and (isinstance(store, type) or not isinstance(store, GraphStore)):
        raise GraphError(
            Problem("X516", f"{with_article(type(store).__name__)} cannot store this graph", "graph_store=...",
                    "a store puts, gets, removes and lists objects, relations and patches: see GraphStore",
                    "leave graph_store out, or pass one: graph_stores.InMemoryGraphStore()")
        )  # fmt: skip


__all__ = ["Graph", "check_graph_store"]
