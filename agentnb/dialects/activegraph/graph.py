"""graph: the Graph: objects and relations, and the log that they follow from. It is the board and log of a session."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agentnb.board.values import ABSENT
from agentnb.dialects.activegraph.acting import Hand, Inside, Outside
from agentnb.dialects.activegraph.errors import GraphError
from agentnb.dialects.activegraph.events import Event, event_of, events_of
from agentnb.dialects.activegraph.given import is_a
from agentnb.dialects.activegraph.graph_stores import GraphStore
from agentnb.dialects.activegraph.ledger import Ledger, ledger_of
from agentnb.dialects.activegraph.objects import Object, Patch, Relation, object_of, patch_of, relation_of
from agentnb.dialects.activegraph.reading import Chain, chains, direction_of, near
from agentnb.dialects.activegraph.recipes import recipe_of_behaviors
from agentnb.dialects.activegraph.times import Clock, IDGen, engine_clock, time_of
from agentnb.dialects.activegraph.where import Where, check, holds, of_object
from agentnb.errors import Problem

if TYPE_CHECKING:
    from agentnb.engine.history import Event as Kept
    from agentnb.session import Session

Words = Any  # actor=, caused_by=, frame_id=, and what the provenance tells of a model and its tools


class Graph:
    """Objects and relations, and the log of events that they follow from.

    All that is read is the reader's own copy. `session` is the run that it is the board of: go back there, and the
    graph is as it was.

    Args:
        ids: what counts the ids; left out, a count of its own.
        clock: what tells the time; left out, the wall clock.
        run_id: the id of its run; left out, a new one.
        graph_store: where what there is now lies to be found, see agentnb.dialects.activegraph.graph_stores; left out,
            in memory. What lay there before is forgotten: the log is the truth.

    Raises:
        GraphError: X516, it is no such store.

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
        self.store = graph_store
        self.ids = IDGen() if ids is None else ids
        self.clock = Clock() if clock is None else clock
        if session is None:
            from agentnb.session import Session as Begun

            recipe = recipe_of_behaviors(())
            session = Begun(recipe, clock=engine_clock(self.clock), run_id=run_id or self.ids.run(), name="graph")
        self.session = session
        counts, session.engine.ids = session.engine.ids.counters, self.ids
        for name, number in counts.items():
            self.ids.counters.setdefault(name, number)
        self._listeners: list[Callable[[Event], None]] = []

    # -- what stands behind it -----------------------------------------------------------------------------------

    @property
    def _raw(self) -> Ledger:
        ledger = ledger_of(self.session.engine)
        if self.store is not None:
            ledger.lie_in(self.store)
        if self._tell not in ledger.listeners:
            ledger.listeners.append(self._tell)
        return ledger

    @property
    def ledger(self) -> Ledger:
        """What the run's board and log hold, where it stands."""
        return self._raw.sync()

    def hand(self, actor: str | None = "system", cause: str | None = None, frame: str | None = None,
             **beside: Any) -> Hand:  # fmt: skip
        """Return somebody who acts: in the step that is being made, where its behaviour is what asks, else outside."""
        ledger = self._raw
        hand: Hand
        if ledger.acting is not None:
            hand = Inside(ledger.acting, ledger, actor, cause, frame)
        else:
            hand = Outside(self.session, ledger.sync(), actor, cause, frame)
        hand.beside = {name: value for name, value in beside.items() if value}
        return hand

    def _tell(self, kept: Kept) -> None:
        for listener in tuple(self._listeners):
            listener(event_of(kept))

    @property
    def run_id(self) -> str:
        """The id of its run."""
        return self.session.run_id

    # -- acts ----------------------------------------------------------------------------------------------------

    def emit(self, event: Event) -> Event:
        """Tell an event as it is given, id and all, and return it as it is kept.

        X507: an event is told with an id that another one has.

        Raises:
            GraphError: X507, there is an event of that id; X502, it is not what events of its type tell.
            NonSerializableEventError: X501, JSON cannot say its payload.
        """
        is_a(event, Event, "graph.emit()", "an event: Event(graph.ids.event(), type, payload)")
        ledger = self._raw
        if event.id in ledger.event_ids():
            raise GraphError(
                Problem("X507", f"there is an event {event.id!r} already", "graph.emit()", "an id names one event",
                        "take the next one: Event(graph.ids.event(), ...)")
            )  # fmt: skip
        kept = self.hand().tell(event.type, event.payload, actor=event.actor, cause=event.caused_by,
                                frame=event.frame_id, id_=event.id, when=time_of(event.timestamp))  # fmt: skip
        return event_of(kept)

    def add_object(self, type: str, data: Mapping[str, Any], *, actor: str = "system", caused_by: str | None = None,
                   frame_id: str | None = None, evidence: Sequence[str] | None = None,
                   llm_request_event_id: str | None = None,
                   tool_request_event_ids: Sequence[str] | None = None) -> Object:  # fmt: skip
        """Create an object; its id counts on: task#1, claim#2."""
        hand = self.hand(actor, caused_by, frame_id, **_asked(llm_request_event_id, tool_request_event_ids))
        return object_of(hand.add_object(type, data, evidence))

    def add_relation(self, source: str, target: str, type: str, data: Mapping[str, Any] | None = None, *,
                     actor: str = "system", caused_by: str | None = None, frame_id: str | None = None,
                     llm_request_event_id: str | None = None,
                     tool_request_event_ids: Sequence[str] | None = None) -> Relation:  # fmt: skip
        """Create a relation; its ends may be missing."""
        hand = self.hand(actor, caused_by, frame_id, **_asked(llm_request_event_id, tool_request_event_ids))
        return relation_of(hand.add_relation(source, target, type, data))

    def remove_object(self, object_id: str, *, actor: str = "system", caused_by: str | None = None,
                      frame_id: str | None = None) -> None:  # fmt: skip
        """Remove an object; the relations at it are removed first, each with an event of its own."""
        self.hand(actor, caused_by, frame_id).remove_object(object_id)

    def remove_relation(self, relation_id: str, *, actor: str = "system", caused_by: str | None = None,
                        frame_id: str | None = None) -> None:  # fmt: skip
        """Remove a relation."""
        self.hand(actor, caused_by, frame_id).remove_relation(relation_id)

    def patch_object(self, target: str, updates: Mapping[str, Any], *, actor: str = "system",
                     caused_by: str | None = None, frame_id: str | None = None, rationale: str | None = None,
                     evidence: Sequence[str] | None = None, llm_request_event_id: str | None = None,
                     tool_request_event_ids: Sequence[str] | None = None) -> Patch:  # fmt: skip
        """Merge fields into an object's data at once.

        Raises:
            KeyError: there is no such object.
        """
        hand = self.hand(actor, caused_by, frame_id, **_asked(llm_request_event_id, tool_request_event_ids))
        return patch_of(hand.patch_object(target, updates, rationale, evidence))

    def propose_patch(self, target: str, op: str, value: Mapping[str, Any], *, proposed_by: str,
                      rationale: str | None = None, evidence: Sequence[str] | None = None,
                      caused_by: str | None = None, frame_id: str | None = None,
                      llm_request_event_id: str | None = None,
                      tool_request_event_ids: Sequence[str] | None = None) -> Patch:  # fmt: skip
        """Propose a change: `update` merges fields, `replace` puts others in their place."""
        hand = self.hand("system", caused_by, frame_id, **_asked(llm_request_event_id, tool_request_event_ids))
        return patch_of(hand.propose_patch(target, op, value, proposed_by, rationale, evidence))

    def apply_patch(self, patch_id: str, *, approved_by: str = "system", caused_by: str | None = None,
                    frame_id: str | None = None) -> Event:  # fmt: skip
        """Apply a proposed patch, where its object has the version that it had; else the patch is rejected.

        Raises:
            KeyError: there is no such patch.
            InvalidPatchLifecycleState: X505, it was decided before.
        """
        return event_of(self.hand("system", caused_by, frame_id).apply_patch(patch_id, approved_by))

    def reject_patch(self, patch_id: str, reason: str, *, actor: str = "system", caused_by: str | None = None,
                     frame_id: str | None = None) -> Event:  # fmt: skip
        """Reject a proposed patch.

        Raises:
            KeyError: there is no such patch.
            InvalidPatchLifecycleState: X505, it was decided before.
        """
        return event_of(self.hand(actor, caused_by, frame_id).reject_patch(patch_id, reason))

    def add_listener(self, fn: Callable[[Event], None]) -> None:
        """Call `fn` with each event from now on, when it is kept and the graph has followed; what it raises goes on."""
        self._raw  # noqa: B018  (the ledger tells us from now on)
        self._listeners.append(fn)

    # -- reading -------------------------------------------------------------------------------------------------

    @property
    def events(self) -> list[Event]:
        """The log up to where the run stands, in order."""
        return events_of(self.ledger.events())

    def get_object(self, id_: str) -> Object | None:
        """Return an object; None where there is none of that id."""
        kept = self.ledger.object(id_)
        return None if kept is ABSENT else object_of(kept)

    def get_relation(self, id_: str) -> Relation | None:
        """Return a relation; None where there is none of that id."""
        kept = self.ledger.relation(id_)
        return None if kept is ABSENT else relation_of(kept)

    def get_patch(self, id_: str) -> Patch | None:
        """Return a patch; None where there is none of that id."""
        kept = self.ledger.patch(id_)
        return None if kept is ABSENT else patch_of(kept)

    def all_objects(self) -> list[Object]:
        """Return every object, in the order in which they were made."""
        return [object_of(kept) for kept in self.ledger.all_objects()]

    def all_relations(self) -> list[Relation]:
        """Return every relation, in the order in which they were made."""
        return [relation_of(kept) for kept in self.ledger.all_relations()]

    def objects(self, type: str | None = None, where: Where | None = None) -> list[Object]:
        """Return the objects of a type that a `where` holds for: dotted path -> value or {operator: value}."""
        check(where)
        found = self.ledger.all_objects(type)
        return [object_of(kept) for kept in found if not where or holds(where, of_object(kept))]

    def query(self, object_type: str | None = None, where: Where | None = None) -> list[Object]:
        """Return what `objects` returns."""
        return self.objects(object_type, where)

    def objects_in_types(self, types: Sequence[str]) -> list[Object]:
        """Return the objects of some types, in the order in which they were made."""
        return [object_of(kept) for kept in self.ledger.all_objects() if kept["type"] in types]

    def has_object_of_type(self, type_: str | None) -> bool:
        """Say whether there is an object of a type; of any, for None."""
        return next(self.ledger.all_objects(type_), None) is not None

    def relations(
        self, source: str | None = None, target: str | None = None, type: str | None = None
    ) -> list[Relation]:
        """Return the relations with these ends and of this type."""
        wanted = {name: value for name, value in (("source", source), ("target", target), ("type", type)) if value}
        ledger = self.ledger
        known = source or target
        found = ledger.all_relations() if known is None else map(ledger.relation, ledger.touching(known))
        return [relation_of(kept) for kept in found if all(kept[name] == value for name, value in wanted.items())]

    def get_relations(
        self, object_id: str | None = None, type: str | None = None, direction: str = "both"
    ) -> list[Relation]:
        """Return the relations of an object: those that leave it ("outgoing"), that lead to it ("incoming"), or "both".

        Raises:
            GraphError: X517, there is no such direction.
        """
        direction = direction_of(direction, "outgoing", "incoming", "both")
        if object_id is None:
            return self.relations(type=type)
        ends = {"outgoing": ("source",), "incoming": ("target",), "both": ("source", "target")}[direction]
        ledger = self.ledger
        return [
            relation_of(kept)
            for kept in map(ledger.relation, ledger.touching(object_id))
            if (type is None or kept["type"] == type) and any(kept[end] == object_id for end in ends)
        ]

    def neighborhood(self, object_id: str, depth: int = 1) -> tuple[list[Object], list[Relation]]:
        """Return what can be reached in so many relations, whichever way they lead, in the order of making."""
        objects, relations = near(self.ledger, object_id, depth)
        return [object_of(kept) for kept in objects], [relation_of(kept) for kept in relations]

    def match_chain(self, node_types: Sequence[str | None], rels: Sequence[tuple[str | None, str]]) -> list[Chain]:
        """Return each chain of objects of these types, joined by relations of (type, "right" or "left").

        Raises:
            GraphError: X517, a way leads neither right nor left.
        """
        return chains(self.ledger, node_types, rels)

    def __repr__(self) -> str:
        """Return one line: how much it holds."""
        ledger = self.ledger
        objects = sum(1 for _ in ledger.all_objects())
        return f"<Graph: {objects} objects, {len(ledger.relations)} relations>"


def _asked(llm: str | None, tools: Sequence[str] | None) -> dict[str, Any]:
    """Return what the provenance tells of a question to a model, and of the tools that it called."""
    return {"llm_request_event_id": llm, "tool_request_event_ids": None if tools is None else list(tools)}


def check_graph_store(given: Any) -> None:
    """X516: a graph is to lie in something that is no store of graphs.

    Raises:
        GraphError: X516, it has not what a GraphStore has.
    """
    if given is not None and (isinstance(given, type) or not isinstance(given, GraphStore)):
        raise GraphError(
            Problem("X516", f"a {type(given).__name__} cannot hold this graph", "graph_store=...",
                    "a store puts, gets, removes and lists objects, relations and patches: see GraphStore",
                    "leave graph_store out, or give one: graph_stores.InMemoryGraphStore()")
        )  # fmt: skip


__all__ = ["Graph", "check_graph_store"]
