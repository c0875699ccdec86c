"""The status of a runtime as immutable values, and its failures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

if TYPE_CHECKING:
    from agentnb.engine.core.history import Event as Kept

KNOWN_LIMITS: Final = (
    "max_events",
    "max_behavior_calls",
    "max_llm_calls",
    "max_tool_calls",
    "max_patches",
    "max_depth",
    "max_seconds",
    "max_cost_usd",
)
State = Literal["stopped", "running", "idle", "exhausted"]


class BehaviorFailure(NamedTuple):
    """A failed delivery: the behavior, the event, and the error; `failed_event_id` is the event that records it."""

    behavior: str
    event_id: str
    reason: str | None
    exception_type: str
    message: str
    failed_event_id: str


@dataclass(frozen=True)
class BudgetSnapshot:
    """The used and the allowed amounts, by the names of limits."""

    used: Mapping[str, float]
    limits: Mapping[str, float | None]
    cost_used_usd: str = "0"
    cost_limit_usd: str | None = None
    exhausted_by: str | None = None


@dataclass(frozen=True)
class FrameSnapshot:
    """The frame of a run."""

    id: str | None
    name: str | None = None


@dataclass(frozen=True)
class BehaviorInfo:
    """A registered behavior: `kind` is function, relation or llm."""

    name: str
    kind: str
    subscribed_to: tuple[str, ...]
    pattern: str | None
    activate_after: int | None


@dataclass(frozen=True)
class EventSummary:
    """A summary of an event."""

    id: str
    type: str
    actor: str | None
    timestamp: str


@dataclass(frozen=True)
class Timer:
    """A delayed delivery of a behavior, and how many more events it waits for."""

    behavior: str
    event_id: str
    fire_at_tick: int
    current_tick: int

    @property
    def missing(self) -> int:
        """The number of events that the delivery is still waiting for."""
        return self.fire_at_tick - self.current_tick


@dataclass(frozen=True)
class RuntimeStatus:
    """The status of a runtime at one moment. `timers` are the delayed deliveries that are not due yet."""

    run_id: str
    state: State
    queue_depth: int
    events_processed: int
    budget: BudgetSnapshot
    frame: FrameSnapshot | None
    registered_behaviors: tuple[BehaviorInfo, ...]
    recent_events: tuple[EventSummary, ...]
    timers: tuple[Timer, ...] = ()


@dataclass(frozen=True)
class RunQuantumResult:
    """The result of a short run: how many events were processed, and how many are left."""

    queue_events_processed: int
    elapsed_seconds: float
    queue_depth: int
    max_queue_depth: int
    delayed_depth: int
    idle: bool
    budget_exhausted: bool


def find_failures(events: list[Kept]) -> list[BehaviorFailure]:
    """Return the failures recorded in a log."""
    return [
        BehaviorFailure(payload["behavior"], payload["event_id"], payload.get("reason"), payload["exception_type"],
                        payload["message"], event.id)
        for event in events
        if event.type == "behavior.failed" and (payload := event.payload)
    ]  # fmt: skip


def describe_behavior(behavior: Any) -> BehaviorInfo:
    """Return a summary of a behavior."""
    return BehaviorInfo(behavior.name, behavior.kind, tuple(behavior.on), behavior.pattern, behavior.activate_after)


def make_snapshot(used: Mapping[str, Any], limits: Mapping[str, Any], by: str | None = None) -> BudgetSnapshot:
    """Return a snapshot of the used and the allowed amounts of a run."""
    spent, max_cost = Decimal(str(used.get("max_cost_usd", 0))), limits.get("max_cost_usd")
    return BudgetSnapshot(
        MappingProxyType({name: float(used.get(name, 0)) for name in KNOWN_LIMITS}),
        MappingProxyType({name: None if limits.get(name) is None else float(limits[name]) for name in KNOWN_LIMITS}),
        str(spent),
        None if max_cost is None else str(max_cost),
        by,
    )


def to_payload(snapshot: BudgetSnapshot) -> dict[str, Any]:
    """Return a budget as the payload of an event."""
    return {"used": dict(snapshot.used), "limits": dict(snapshot.limits), "cost_used_usd": snapshot.cost_used_usd,
            "cost_limit_usd": snapshot.cost_limit_usd}  # fmt: skip


__all__ = [
    "KNOWN_LIMITS",
    "BehaviorFailure",
    "BehaviorInfo",
    "BudgetSnapshot",
    "EventSummary",
    "FrameSnapshot",
    "RunQuantumResult",
    "RuntimeStatus",
    "Timer",
    "describe_behavior",
    "find_failures",
    "make_snapshot",
    "to_payload",
]  # fmt: skip
