"""Metrics of a runtime: counters, histograms and gauges for a metrics backend, under the package's own names.

They are derived from the log as it grows, so that replayed events are not counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, Protocol

from agentnb.dialects.activegraph.parts.ledger import STARTED, get_ledger
from agentnb.session.state import get_state
from agentnb.text import safe_str

if TYPE_CHECKING:
    from agentnb.dialects.activegraph.api import Runtime
    from agentnb.dialects.activegraph.parts.events import Event

METRICS: Final = {
    "events_emitted_total": "each event of the log, by event_type",
    "behaviors_invoked_total": "each delivery that begins, by behavior",
    "behaviors_failed_total": "each that failed, by behavior and reason",
    "behaviors_duration_seconds": "duration of each delivery, by behavior",
    "llm_calls_total": "each question, by model; those that a cache answered too",
    "llm_cache_hits_total": "questions that a cache answered, by model",
    "llm_failed_total": "questions without a usable answer, by model and reason",
    "llm_tokens_in": "tokens of each question, by model",
    "llm_tokens_out": "tokens of each answer, by model",
    "llm_cost_usd": "cost of each answer, by model",
    "tools_calls_total": "each call of a tool, by tool; those that a cache answered too",
    "tools_cache_hits_total": "calls that a cache answered, by tool",
    "tools_failed_total": "calls that failed, by tool and reason",
    "tools_duration_seconds": "duration of each call, by tool",
    "queue_depth": "the current number of waiting events",
    "budget_cost_remaining_usd": "the remaining cost budget, by run_id, if there is a limit",
    "budget_events_remaining": "the remaining number of events, by run_id, if there is a limit",
    "patterns_evaluated_total": "evaluations of patterns",
    "patterns_evaluation_duration_seconds": "duration of each evaluation",
    "replay_divergence_detected_total": "strict replays that diverged, by reason",
}


class Metrics(Protocol):
    """The protocol of a metrics backend: a name, its tags, a value. New names may be added."""

    def counter(self, name: str, tags: dict[str, str], value: float = 1.0) -> None:
        """Increase a counter."""
        ...

    def histogram(self, name: str, tags: dict[str, str], value: float) -> None:
        """Record a value of a distribution."""
        ...

    def gauge(self, name: str, tags: dict[str, str], value: float) -> None:
        """Set the current value."""
        ...


class MetricsReporter:
    """Reports the metrics of one runtime."""

    def __init__(self, metrics: Metrics, runtime: Runtime) -> None:
        self.metrics, self.runtime = metrics, runtime
        self._start_times: dict[tuple[str, str], float] = {}

    def __call__(self, event: Event) -> None:
        """Update the metrics for an event; called with each event of the log."""
        self._add("events_emitted_total", event_type=event.type)
        counts = _BY_TYPE.get(event.type)
        if counts is not None:
            counts(self, event.payload)
        if event.type in STARTED or event.type.startswith("runtime."):
            self._update_gauges()

    # -- by type of event ----------------------------------------------------------------------------------------

    def _on_started(self, payload: Mapping[str, Any]) -> None:
        self._start_times[payload["behavior"], payload["event_id"]] = perf_counter()
        self._add("behaviors_invoked_total", behavior=payload["behavior"])

    def _on_completed(self, payload: Mapping[str, Any]) -> None:
        start = self._start_times.pop((payload["behavior"], payload["event_id"]), None)
        if start is not None:
            self._take("behaviors_duration_seconds", perf_counter() - start, behavior=payload["behavior"])

    def _on_failed(self, payload: Mapping[str, Any]) -> None:
        self._on_completed(payload)
        why = str(payload.get("reason") or f"exception.{safe_str(payload['exception_type'])}")
        self._add("behaviors_failed_total", behavior=payload["behavior"], reason=why)

    def _on_requested(self, payload: Mapping[str, Any]) -> None:
        sort, tag = ("llm", "model") if "model" in payload else ("tools", "tool")
        self._add(f"{sort}_calls_total", **{tag: str(payload[tag])})
        if payload["cache_hit"]:
            self._add(f"{sort}_cache_hits_total", **{tag: str(payload[tag])})

    def _on_answered(self, payload: Mapping[str, Any]) -> None:
        model = str(payload["model"])
        if payload.get("error"):
            self._add("llm_failed_total", model=model, reason=str(payload["error"]["reason"]))
            return
        for name, value in (("tokens_in", "input_tokens"), ("tokens_out", "output_tokens"), ("cost_usd", "cost_usd")):
            self._take(f"llm_{name}", float(payload[value] or 0), model=model)

    def _on_used(self, payload: Mapping[str, Any]) -> None:
        tool = str(payload["tool"])
        self._take("tools_duration_seconds", float(payload["latency_seconds"]), tool=tool)
        if payload.get("error"):
            self._add("tools_failed_total", tool=tool, reason=str(payload["error"]["reason"]))

    # -- gauges ---------------------------------------------------------------------------------------

    def _update_gauges(self) -> None:
        graph, limits = self.runtime.graph, self.runtime.budget.limits
        ledger = get_ledger(get_state(graph.session).run)
        counts = ledger.work
        taken = self.runtime._count_deliveries() if counts is None else ledger.tick(counts.activation.event)  # noqa: SLF001  (of this dialect)
        self.metrics.gauge(_name("queue_depth"), {}, float(len(ledger.delivered) - taken))
        run = {"run_id": graph.run_id}
        if "max_events" in limits:
            self.metrics.gauge(_name("budget_events_remaining"), run, float(max(limits["max_events"] - taken, 0)))
        remaining = self.runtime.budget.cost_remaining_amount()
        if remaining is not None:
            self.metrics.gauge(_name("budget_cost_remaining_usd"), run, max(float(remaining), 0.0))

    def count_divergence(self, reason: str) -> None:
        """Count a strict replay that diverged."""
        self._add("replay_divergence_detected_total", reason=reason)

    def count_evaluation(self, seconds: float) -> None:
        """Count one evaluation of a pattern."""
        self._add("patterns_evaluated_total")
        self._take("patterns_evaluation_duration_seconds", seconds)

    def time_patterns(self, behaviors: Sequence[Any]) -> list[Any]:
        """Return behaviors whose patterns report their evaluations."""
        return [
            each if each.pattern_matcher is None else _replace_fields(each, TimedPattern(each.pattern_matcher, self))
            for each in behaviors
        ]

    def _add(self, name: str, **tags: str) -> None:
        self.metrics.counter(_name(name), tags, 1.0)

    def _take(self, name: str, value: float, **tags: str) -> None:
        self.metrics.histogram(_name(name), tags, value)


class TimedPattern:
    """A pattern that reports each evaluation in the measured run, with its duration."""

    def __init__(self, pattern: Any, counting: MetricsReporter) -> None:
        self.pattern, self.counting = pattern, counting

    def matches(self, ledger: Any) -> Iterator[Any]:
        """Yield the matches of the pattern."""
        run, graph = getattr(ledger, "run", None), getattr(self.counting.runtime, "graph", None)
        if run is None or graph is None or run is not get_state(graph.session).run:  # a replay, or an opened run
            return iter(self.pattern.matches(ledger))
        start = perf_counter()
        matches = list(self.pattern.matches(ledger))
        self.counting.count_evaluation(perf_counter() - start)
        return iter(matches)


def _replace_fields(behavior: Any, pattern: TimedPattern) -> Any:
    replacement = copy(behavior)
    replacement.pattern_matcher = pattern
    return replacement


def _name(name: str) -> str:
    return f"activegraph_{name}"


_BY_TYPE: Final[Mapping[str, Callable[[MetricsReporter, Mapping[str, Any]], None]]] = {
    "behavior.started": MetricsReporter._on_started,  # noqa: SLF001  (of its own)
    "relation_behavior.started": MetricsReporter._on_started,  # noqa: SLF001
    "behavior.completed": MetricsReporter._on_completed,  # noqa: SLF001
    "behavior.failed": MetricsReporter._on_failed,  # noqa: SLF001
    "llm.requested": MetricsReporter._on_requested,  # noqa: SLF001
    "tool.requested": MetricsReporter._on_requested,  # noqa: SLF001
    "llm.responded": MetricsReporter._on_answered,  # noqa: SLF001
    "tool.responded": MetricsReporter._on_used,  # noqa: SLF001
}

__all__ = ["METRICS", "Metrics", "MetricsReporter", "TimedPattern"]
