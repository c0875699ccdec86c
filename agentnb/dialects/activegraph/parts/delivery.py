"""The step of a behavior: the delivery of one event to one behavior, and the events that record it.

These are `pattern.matched`, `behavior.started`, the behavior's own events, and `behavior.completed` or
`behavior.failed`; for a delayed delivery `behavior.scheduled`, and the others when it is due.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from agentnb.dialects.activegraph.errors import GraphError
from agentnb.dialects.activegraph.parts.context import BehaviorGraph, Context, Reads
from agentnb.dialects.activegraph.parts.events import to_event
from agentnb.dialects.activegraph.parts.graph_mutations import StepActor
from agentnb.dialects.activegraph.parts.graph_queries import EarlierGraph
from agentnb.dialects.activegraph.parts.ledger import Ledger, get_ledger
from agentnb.dialects.activegraph.parts.objects import Relation, to_relation
from agentnb.dialects.activegraph.parts.patterns import Match
from agentnb.dialects.activegraph.parts.run_config import RuntimeConfig
from agentnb.engine.core.history import LATE
from agentnb.errors import Problem
from agentnb.recipe.user_functions import check_ran

if TYPE_CHECKING:
    from agentnb.engine.core.history import Event as Kept
    from agentnb.engine.core.work import Keep, Perform, Work

# The fields of every `behavior.failed`, which those of an exception do not replace.
FAILURE_FIELDS: Final = frozenset({"behavior", "event_id", "exception_type", "message", "traceback", "reason"})
READS: Final = 200  # the maximum number of object ids recorded per delivery


def make_performer(behavior: Any, config: RuntimeConfig | None) -> Perform:
    """Return the function that performs a behavior's node."""
    if behavior.kind == "llm":
        from agentnb.dialects.activegraph.parts.llm_delivery import LLMDelivery

        return LLMDelivery(behavior, config or RuntimeConfig())
    return Delivery(behavior, config or RuntimeConfig())


class Delivery:
    """Delivers events to one behavior. One step is one delivery."""

    def __init__(self, behavior: Any, config: RuntimeConfig) -> None:
        self.behavior, self.config = behavior, config

    def __call__(self, work: Work) -> Any:
        """Deliver the current event."""
        turn = self.begin(work)
        if turn is None:
            return {}
        relation_arguments = () if turn.relation is None else (turn.relation,)
        try:
            turn.call(self.behavior.fn, *relation_arguments, turn.event, turn.graph, turn.ctx, **self._get_settings())
        except Exception as error:
            turn.record_failure(error)
            raise
        turn.record_completion()
        return {}

    def _get_settings(self) -> Mapping[str, Any]:
        settings = getattr(self.behavior, "bound", None)
        return {} if settings is None else settings()

    def begin(self, work: Work) -> DeliveryInProgress | None:
        """Record the start of a delivery, and return it; None if the behavior is only scheduled for later.

        X510: a behavior is set as the next node, but there is no event to deliver.
        """
        event, name = work.event, self.behavior.name
        if event is None:
            raise GraphError(
                Problem("X510", f"{name!r} has no event to handle", f"behavior {name!r}",
                        "a behavior runs when an event triggers it", "emit the event: session.emit(type, payload)")
            )  # fmt: skip
        ledger = get_ledger(work.run)
        ledger.begin(work)
        about = work.activation.row.about
        turn = DeliveryInProgress(self.behavior, self.config, work, ledger, event)
        if self.behavior.activate_after and about > LATE:
            turn.record_delay(about)
            return None
        number = about if about > LATE else LATE - about
        if self.behavior.kind == "relation":
            turn.relation = _get_relation(work, number)
        turn.match(late=about <= LATE)
        turn.record_start()
        return turn


class DeliveryInProgress:
    """One delivery in progress: the behavior's arguments, and the events that record it."""

    def __init__(self, behavior: Any, config: RuntimeConfig, work: Work, ledger: Ledger, event: Kept) -> None:
        self.behavior, self.config, self.work, self.ledger, self.event_row = behavior, config, work, ledger, event
        self.actor = StepActor(work, ledger, behavior.name, event.id, config.frame_id)
        self.actor.checks = config.checks
        self.reads: Reads = {} if _traces_reads(work, config) else None
        self.execution = ""  # the id of the event that records the start
        self.graph = BehaviorGraph(self.actor, config, self.reads)
        self.event = to_event(event)
        self.ctx = Context(behavior.name, self.actor, config, event, behavior.view_spec, self.reads)
        self.relation: Relation | None = None
        self.extra_fields: dict[str, Any] = {}  # additional fields of `behavior.completed`

    def record(self, type_: str, payload: Mapping[str, Any], keep: Keep = "next") -> Kept:
        """Record an event about the delivery itself, with the runtime as its actor."""
        content = {"behavior": self.behavior.name, "event_id": self.event_row.id, **payload}
        if self.config.live(self.work.run):
            self.config.watch(type_, content)
        return self.actor.record(
            type_, content, actor="runtime", cause=self.event_row.id, frame=self.config.frame_id, keep=keep
        )

    def match(self, *, late: bool) -> None:
        """Pass the pattern's matches at the time of the event to the behavior.

        Record them, unless the delivery was delayed.
        """
        matcher = self.behavior.pattern_matcher
        if matcher is None:
            return
        all_bindings = self.ledger.matched.get((self.event_row.seq, self.behavior.name))
        if all_bindings is None:
            all_bindings = [match.bindings for match in matcher.matches(get_graph_as_matched(self.ledger, self.work))]
        self.ctx.matches = [Match(dict(bindings)) for bindings in all_bindings]
        if not late and self._is_first():
            self.record("pattern.matched", {"matches_count": len(all_bindings), "pattern": self.behavior.pattern})

    def _is_first(self) -> bool:
        """Return True if this is the behavior's first delivery of this event; there may be one for each relation."""
        last = self.work.run.get_last_activation()
        return last is None or (last.event, last.node) != (self.event_row.seq, self.work.activation.row.node)

    def record_start(self) -> None:
        """Record that the delivery has started."""
        payload: dict[str, Any] = {"triggering_event_type": self.event_row.type}
        if self.relation is not None:
            payload |= {"relation_type": self.behavior.relation_type, "relation_id": self.relation.id}
            self.execution = self.record("relation_behavior.started", payload).id
            return
        created = self.event.payload.get("object")
        concerned = created.get("id") if isinstance(created, dict) else None
        self.execution = self.record("behavior.started", {**payload, "triggering_object_id": concerned}).id

    def record_completion(self) -> None:
        """Record that the delivery has completed."""
        self.record("behavior.completed", {**self.graph.counters, **self.extra_fields}, "step")
        self._record_reads()

    def _record_reads(self) -> None:
        """Record which objects were read, once each in the order of first reads; at most `READS` of them."""
        if not self.reads:
            return
        payload: dict[str, Any] = {"execution_event_id": self.execution, "object_ids": list(islice(self.reads, READS)),
                                "count": len(self.reads)}  # fmt: skip
        if len(self.reads) > READS:
            payload["truncated"] = True
        self.record("context.read", payload, "step")

    def record_delay(self, about: int) -> None:
        """Record that the delivery is delayed, and until when."""
        now, delay = self.ledger.tick(self.event_row.seq), self.behavior.activate_after
        more = {} if about < 0 else {"relation_id": _get_relation(self.work, about).id, "about_event": about}
        self.record("behavior.scheduled", {"activate_after": delay, "fire_at_tick": now + delay, "current_tick": now,
                                         **more})  # fmt: skip

    def call(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        """Run the behavior's code: its changes to the graph, by any actor, and random numbers belong to its step."""
        ledger, work = self.ledger, self.work
        outer_work, ledger.acting = ledger.acting, work
        try:
            check_ran(fn(*args, **kwargs))
        finally:
            ledger.acting = outer_work
            ledger.end(work)

    def record_failure(self, error: Exception) -> None:
        """Record that the delivery has failed; nothing is recorded for one cancelled earlier."""
        if self.work.has_ended:
            return
        payload: dict[str, Any] = {
            "exception_type": type(error).__name__,
            "message": str(error),
            "traceback": "".join(traceback.format_exception(error)),
        }
        recorded = self.work.run.recorded
        next_event = None if recorded is None else recorded.next_event(self.work)
        if next_event is not None and next_event.type == "behavior.failed":
            # the location at that time, which may have changed since
            payload["traceback"] = next_event.payload["traceback"]
        reason = getattr(error, "reason", None)
        if isinstance(reason, str):
            payload["reason"] = reason
            extras = getattr(error, "payload_extras", {})
            payload |= {name: value for name, value in extras.items() if name not in FAILURE_FIELDS}
        self.record("behavior.failed", payload, "step")
        self._record_reads()


def _traces_reads(work: Work, config: RuntimeConfig) -> bool:
    """Return True if this delivery records its reads; a replay does the same as the recorded step."""
    recorded = getattr(work.run.recorded, "recorded", None)
    return config.trace_reads if recorded is None else any(each.type == "context.read" for each in recorded.events)


def _get_relation(work: Work, number: int) -> Relation:
    """Return the relation created by an event."""
    event = work.run.get_event(number)
    assert event is not None
    return to_relation(event.payload["relation"])


def get_graph_as_matched(ledger: Ledger, work: Work) -> Any:
    """Return the graph as it was when an event was processed: before the first step that it triggered."""
    run, seq = work.run, work.activation.event
    first = run.position
    for history, _ in reversed(run.parts()):
        while (
            first > history.base and run.tables.activations[history.step_activations[first - history.base]].event == seq
        ):
            first -= 1
        if first > history.base:
            break
    earlier: dict[str, Any] = {}
    for history, end in run.parts():
        start = (
            history.write_ends[max(first, history.base) - history.base]
            if history.tip >= first
            else len(history.new_values)
        )
        for row in range(start, history.write_ends[end - history.base]):
            _, path = run.tables.codes[history.write_codes[row] >> 2]
            earlier.setdefault(str(path[0]), history.old_values[row])
    return ledger if not earlier else EarlierGraph({**run.root.scope.data, **earlier})


__all__ = ["FAILURE_FIELDS", "Delivery", "DeliveryInProgress", "get_graph_as_matched", "make_performer"]
