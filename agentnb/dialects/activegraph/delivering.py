"""delivering: what a step of a behaviour does: it delivers one event to one behaviour, and tells how that went.

Told are `pattern.matched`, `behavior.started`, what the behaviour itself tells, and `behavior.completed` or
`behavior.failed`; of one that is put off `behavior.scheduled`, and the rest when its turn comes.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from agentnb.dialects.activegraph.acting import Inside
from agentnb.dialects.activegraph.context import BehaviorGraph, Context
from agentnb.dialects.activegraph.errors import GraphError
from agentnb.dialects.activegraph.events import event_of
from agentnb.dialects.activegraph.ledger import Ledger, ledger_of
from agentnb.dialects.activegraph.objects import Relation, relation_of
from agentnb.dialects.activegraph.party import Party
from agentnb.dialects.activegraph.patterns import Match
from agentnb.dialects.activegraph.reading import Then
from agentnb.engine.history import LATE
from agentnb.errors import Problem

if TYPE_CHECKING:
    from agentnb.engine.history import Event as Kept
    from agentnb.engine.work import Keep, Perform, Work


def performer(behavior: Any, party: Party | None) -> Perform:
    """Return what a node of a behaviour does."""
    if behavior.kind == "llm":
        from agentnb.dialects.activegraph.thinking import Thinking

        return Thinking(behavior, party or Party())
    return Delivery(behavior, party or Party())


class Delivery:
    """Delivers events to one behaviour. A step is one delivery."""

    def __init__(self, behavior: Any, party: Party) -> None:
        self.behavior, self.party = behavior, party

    def __call__(self, work: Work) -> Any:
        """Deliver the event of this turn."""
        turn = self.begin(work)
        if turn is None:
            return {}
        about = () if turn.relation is None else (turn.relation,)
        try:
            turn.call(self.behavior.fn, *about, turn.event, turn.graph, turn.ctx, **self._settings())
        except Exception as error:
            turn.failed(error)
            raise
        turn.completed()
        return {}

    def _settings(self) -> Mapping[str, Any]:
        given = getattr(self.behavior, "bound", None)
        return {} if given is None else given()

    def begin(self, work: Work) -> Turn | None:
        """Tell that a turn begins, and return it; None where the behaviour is only put off.

        X510: a behaviour is made the next one, and there is no event that it could be given.
        """
        kept, name = work.event, self.behavior.name
        if kept is None:
            raise GraphError(
                Problem("X510", f"{name!r} has no event to answer to", f"behaviour {name!r}",
                        "a behaviour runs when an event sets it off", "emit the event: session.emit(type, payload)")
            )  # fmt: skip
        ledger = ledger_of(work.run)
        ledger.begin(work)
        about = work.act.row.about
        turn = Turn(self.behavior, self.party, work, ledger, kept)
        if self.behavior.activate_after and about > LATE:
            turn.put_off(about)
            return None
        number = about if about > LATE else LATE - about
        if self.behavior.kind == "relation":
            turn.relation = _relation(work, number)
        turn.match(late=about <= LATE)
        turn.started()
        return turn


class Turn:
    """One delivery while it goes on: what the behaviour is given, and what is told of it."""

    def __init__(self, behavior: Any, party: Party, work: Work, ledger: Ledger, kept: Kept) -> None:
        self.behavior, self.party, self.work, self.ledger, self.kept = behavior, party, work, ledger, kept
        self.hand = Inside(work, ledger, behavior.name, kept.id, party.frame_id)
        self.graph = BehaviorGraph(self.hand, party)
        self.event = event_of(kept)
        self.ctx = Context(behavior.name, self.hand, party, kept, behavior.view_spec)
        self.relation: Relation | None = None
        self.beside: dict[str, Any] = {}  # what `behavior.completed` tells besides

    def tell(self, type_: str, payload: Mapping[str, Any], keep: Keep = "next") -> Kept:
        """Tell of the turn itself, in the runtime's name."""
        said = {"behavior": self.behavior.name, "event_id": self.kept.id, **payload}
        if self.party.live(self.work.run):
            self.party.watch(type_, said)
        return self.hand.tell(type_, said, actor="runtime", cause=self.kept.id, frame=self.party.frame_id, keep=keep)

    def match(self, *, late: bool) -> None:
        """Give the behaviour what its pattern has found when the event's turn came; tell of it, but for a late turn."""
        matcher = self.behavior.pattern_matcher
        if matcher is None:
            return
        found = self.ledger.matched.get((self.kept.seq, self.behavior.name))
        if found is None:
            found = [match.bindings for match in matcher.matches(as_matched(self.ledger, self.work))]
        self.ctx.matches = [Match(dict(bindings)) for bindings in found]
        if not late:
            self.tell("pattern.matched", {"matches_count": len(found), "pattern": self.behavior.pattern,
                                          "bindings": [dict(bindings) for bindings in found]})  # fmt: skip

    def started(self) -> None:
        """Tell that the turn begins."""
        said: dict[str, Any] = {"triggering_event_type": self.kept.type}
        if self.relation is not None:
            said |= {"relation_type": self.behavior.relation_type, "relation_id": self.relation.id}
            self.tell("relation_behavior.started", said)
            return
        made = self.event.payload.get("object")
        concerned = made.get("id") if isinstance(made, dict) else None
        self.tell("behavior.started", {**said, "triggering_object_id": concerned})

    def completed(self) -> None:
        """Tell that the turn has ended well."""
        self.tell("behavior.completed", {**self.graph.counters, **self.beside}, "step")

    def put_off(self, about: int) -> None:
        """Tell that the turn comes later, and when."""
        now, after = self.ledger.tick(self.kept.seq), self.behavior.activate_after
        more = {} if about < 0 else {"relation_id": _relation(self.work, about).id, "about_event": about}
        self.tell("behavior.scheduled", {"activate_after": after, "fire_at_tick": now + after, "current_tick": now,
                                         **more})  # fmt: skip

    def call(self, fn: Callable[..., Any], *given: Any, **words: Any) -> None:
        """Run code of the behaviour: what it does to its graph, by any name, and what it draws is part of its step."""
        ledger, work = self.ledger, self.work
        before, ledger.acting = ledger.acting, work
        try:
            fn(*given, **words)
        finally:
            ledger.acting = before
            ledger.end(work)

    def failed(self, error: Exception) -> None:
        """Tell that the turn has failed; of one that was given up before nothing is told."""
        if self.work.dead:
            return
        said: dict[str, Any] = {
            "exception_type": type(error).__name__,
            "message": str(error),
            "traceback": "".join(traceback.format_exception(error)),
        }
        reason = getattr(error, "reason", None)
        if isinstance(reason, str):
            said |= {"reason": reason, **getattr(error, "extra", {})}
        self.tell("behavior.failed", said, "step")


def _relation(work: Work, number: int) -> Relation:
    """Return the relation that an event has created."""
    event = work.run.event(number)
    assert event is not None
    return relation_of(event.payload["relation"])


def as_matched(ledger: Ledger, work: Work) -> Any:
    """Return the graph as it stood when the turn of an event came: before the first step that it has set off."""
    run, seq = work.run, work.act.event
    first = run.position
    for history, _ in reversed(run.parts()):
        while first > history.base and run.tables.acts[history.s_act[first - history.base]].event == seq:
            first -= 1
        if first > history.base:
            break
    before: dict[str, Any] = {}
    for history, end in run.parts():
        start = history.s_wend[max(first, history.base) - history.base] if history.tip >= first else len(history.w_new)
        for row in range(start, history.s_wend[end - history.base]):
            _, path = run.tables.codes[history.w_code[row] >> 2]
            before.setdefault(str(path[0]), history.w_old[row])
    return ledger if not before else Then({**run.root.scope.data, **before})


__all__ = ["Delivery", "Turn", "as_matched", "performer"]
