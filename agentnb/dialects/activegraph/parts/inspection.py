"""The status of a runtime: its position, usage, failures, and delayed deliveries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from agentnb.dialects.activegraph.parts.argument_checks import make_type_error
from agentnb.dialects.activegraph.parts.clocks import format_time
from agentnb.dialects.activegraph.parts.status import (
    KNOWN_LIMITS,
    BehaviorFailure,
    EventSummary,
    FrameSnapshot,
    RuntimeStatus,
    State,
    Timer,
    describe_behavior,
    find_failures,
    make_snapshot,
)
from agentnb.engine.core.history import LATE
from agentnb.session.state import get_state

if TYPE_CHECKING:
    from agentnb.dialects.activegraph.parts.budgets import Budget
    from agentnb.dialects.activegraph.parts.graph import Graph
    from agentnb.dialects.activegraph.parts.run_config import RuntimeConfig

_HALTS: Final[Mapping[str, State]] = {"runtime.idle": "idle", "runtime.budget_exhausted": "exhausted"}


class RuntimeInspection:
    """The read-only part of a Runtime."""

    graph: Graph
    config: RuntimeConfig
    budget: Budget
    behaviors: Any

    def _read_usage(self) -> Mapping[str, Any]:
        used = dict(self.graph.session.status.used)
        calls = self.graph.ledger.started
        own = {"max_events": self._count_deliveries(), "max_behavior_calls": calls}
        return {**{name: used.get(name, 0) for name in KNOWN_LIMITS}, **own}

    def _count_usage(self) -> Mapping[str, Any]:
        """Return the usage recorded in the log: time, patches and depth only if they are limited."""
        left_out = {"max_patches", "max_depth", "max_seconds"} - self.budget.limits.keys()
        return {name: used for name, used in self._read_usage().items() if name not in left_out}

    def _count_deliveries(self) -> int:
        """Return the number of events taken from the queue; at a limit, none after the last one delivered."""
        taken = self._count_excess_deliveries()
        run = get_state(self.graph.session).run
        last = run.get_last_activation()
        if not self._is_at_limit(taken) or last is None or last.about <= LATE:
            return taken
        over, limit = self.graph.ledger.tick(last.event), self.budget.limits.get("max_events")
        return min(taken, over if limit is None else max(over, int(limit)))

    def _is_at_limit(self, taken: int) -> bool:
        """Return True if a limit of the run is used up, even if no deliveries are left."""
        limits = self.budget.limits
        if not limits:
            return False
        status = self.graph.session.status
        used = {**status.used, "max_events": taken, "max_behavior_calls": self.graph.ledger.started}
        return status == "exhausted" or any(used.get(name, 0) >= limit for name, limit in limits.items())

    def _count_excess_deliveries(self) -> int:
        """Return the number of events that were processed or have no listeners, before the first waiting one."""
        ledger, run = self.graph.ledger, get_state(self.graph.session).run
        queue = run.frontier()
        if not queue:
            return len(ledger.delivered)
        first = run.tables.activations[queue[0]]
        if first.about <= LATE:
            waiting = next(
                (row.event for row in map(run.tables.activations.__getitem__, queue) if row.about > LATE), None
            )
            return len(ledger.delivered) if waiting is None else ledger.tick(waiting) - 1
        last = run.get_last_activation()
        started = last is not None and last.event == first.event
        return ledger.tick(first.event) - (not started)

    def _count_queue(self) -> int:
        """Return the number of queued events, excluding the one being delivered."""
        return len(self.graph.ledger.delivered) - self._count_deliveries()

    def _find_halt(self) -> str | None:
        """Return the type of the event that says why the run stopped last; None if it has continued since.

        It has continued if the log has a delivery, or an event to deliver, after it.
        """
        waits = self.graph.session.recipe.reactive
        for event in self.graph.ledger.backwards():
            if event.type in _HALTS:
                return str(event.type)
            if event.type.startswith(("behavior.", "relation_behavior.")) or (
                waits is not None and waits.has_listeners(event)
            ):
                return None
        return None

    @property
    def timers(self) -> tuple[Timer, ...]:
        """The delayed deliveries that are not due: they wait for more events."""
        ledger = self.graph.ledger
        now = self._count_deliveries()
        scheduled = ((ledger.tick(seq) + delay["activate_after"], delay) for seq, delay in ledger.scheduled)
        return tuple(Timer(delay["behavior"], delay["event_id"], due, now) for due, delay in scheduled if due > now)

    @property
    def errors(self) -> list[BehaviorFailure]:
        """The failures of behaviors recorded in the log so far."""
        return find_failures(self.graph.ledger.failures)

    def status(self, recent: int = 20) -> RuntimeStatus:
        """Return the status of the runtime, and the last `recent` events. The result does not change afterwards.

        Raises:
            InvalidArgumentType: X519, `recent` is not a number of events.
        """
        if type(recent) is not int or recent < 0:
            raise make_type_error(recent, "runtime.status(recent=...)", "a number of events, 0 or more")
        ledger, session = self.graph.ledger, self.graph.session
        session_status, frame = session.status, self.config.frame
        last = ledger.last_events(recent)
        return RuntimeStatus(
            self.graph.run_id,
            self._get_state(str(session_status)),
            self._count_queue(),
            ledger.count(),
            make_snapshot(self._read_usage(), self.budget.limits, session_status.limit),
            None if frame is None else FrameSnapshot(frame.id),
            tuple(map(describe_behavior, self.behaviors)),
            tuple(EventSummary(event.id, event.type, event.actor or None, format_time(event.time)) for event in last),
            self.timers,
        )

    def _get_state(self, word: str) -> State:
        if word == "exhausted" or (word in ("ready", "paused") and self._find_halt() == "runtime.budget_exhausted"):
            return "exhausted"
        if word in ("running", "pausing"):
            return "running"
        if word in ("idle", "finished"):
            types = (event.type for event in reversed(self.graph.ledger.last_events(20)))
            return next((_HALTS[type_] for type_ in types if type_ in _HALTS), "stopped")
        return "stopped"


__all__ = ["RuntimeInspection"]
