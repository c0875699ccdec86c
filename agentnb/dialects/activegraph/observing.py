"""observing: a runtime in logs and metrics: lines of JSON or text, counters and times for whoever counts."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from agentnb.board.secrets import hidden, masked

NAME: Final = "agentnb.activegraph"
LOG: Final = logging.getLogger(NAME)
FIELDS: Final = ("run_id", "event_id", "behavior", "tool", "model", "cache_hit", "cost_usd", "latency_seconds",
                 "reason", "error_type", "error_message")  # fmt: skip


class Observer:
    """Tells logs and metrics of what a runtime does."""

    def __init__(self, metrics: Any = None) -> None:
        self.metrics = metrics

    def __call__(self, what: str, said: Mapping[str, Any]) -> None:
        """Tell of an event of the run's own."""
        name = str(said.get("behavior", ""))
        if what == "behavior.failed":
            why = said.get("reason") or f"exception.{said['exception_type']}"
            rest = {"behavior": name, "event_id": said["event_id"], "reason": why, "error_type": said["exception_type"],
                    "error_message": said["message"]}  # fmt: skip
            LOG.warning(hidden(f"behavior failed: {name} (reason={why})"), extra={"fields": rest})
        elif LOG.isEnabledFor(logging.DEBUG):
            LOG.debug("%s %s", what, name, extra={"fields": {key: said[key] for key in FIELDS if key in said}})
        if self.metrics is not None:
            self._count(what, name, said)

    def _count(self, what: str, name: str, said: Mapping[str, Any]) -> None:
        labels = {"behavior": name}
        match what:
            case "behavior.started" | "relation_behavior.started":
                self.metrics.counter("activegraph_behaviors_invoked_total", 1, labels)
            case "behavior.failed":
                reason = str(said.get("reason") or f"exception.{said['exception_type']}")
                self.metrics.counter("activegraph_behaviors_failed_total", 1, {**labels, "reason": reason})
            case "pattern.matched":
                self.metrics.counter("activegraph_patterns_matched_total", said["matches_count"], labels)
            case "llm.responded":
                self.metrics.counter("activegraph_llm_calls_total", 1, labels)
                self.metrics.histogram("activegraph_llm_latency_seconds", said.get("latency_seconds", 0.0), labels)
            case "tool.responded":
                self.metrics.counter("activegraph_tool_calls_total", 1, {**labels, "tool": str(said.get("tool"))})


class _Lines(logging.Formatter):
    """One JSON object a line."""

    def __init__(self, redact: Callable[[dict[str, Any]], dict[str, Any]] | None) -> None:
        super().__init__()
        self.redact = redact

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as JSON, without secrets."""
        fields = dict(getattr(record, "fields", {}))
        if self.redact is not None:
            fields = self.redact(fields)
        line = {"timestamp": f"{datetime.fromtimestamp(record.created, UTC):%Y-%m-%dT%H:%M:%S.%f}Z",
                "level": record.levelname, "logger": record.name, "message": record.getMessage(), **fields}  # fmt: skip
        return json.dumps(masked(line), default=str)


def configure_logging(
    level: str | int = "INFO",
    *,
    json_output: bool = True,
    stream: Any = None,
    payload_redactor: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
) -> logging.Logger:
    """Let the log of behaviours be written, in place of how it was written before; return its logger.

    Args:
        level: a name or a number.
        json_output: a JSON object a line; else a line for people.
        stream: where to; left out, the standard error.
        payload_redactor: what is asked for the fields of each line, in place of those that it has.
    """
    shown = logging.StreamHandler(sys.stderr if stream is None else stream)
    plain = logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
    shown.setFormatter(_Lines(payload_redactor) if json_output else plain)
    for known in list(LOG.handlers):
        LOG.removeHandler(known)
    LOG.addHandler(shown)
    LOG.setLevel(level.upper() if isinstance(level, str) else level)
    LOG.propagate = False
    return LOG


__all__ = ["LOG", "Observer", "configure_logging"]
