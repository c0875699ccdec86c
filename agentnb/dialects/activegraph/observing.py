"""observing: a runtime in its log: lines of JSON or of text, for whoever reads them."""

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
                 "reason", "error_type", "error_message", "doc_url")  # fmt: skip
_PAGES: Final = {"llm.": "models-and-tools", "tool.": "models-and-tools", "budget.": "what-is-allowed",
                 "policy.": "what-is-allowed"}  # fmt: skip


class Observer:
    """Writes log lines of what a runtime does; `run_id` says of which run."""

    def __init__(self) -> None:
        self.run_id: Callable[[], str] = str

    def __call__(self, what: str, said: Mapping[str, Any]) -> None:
        """Tell of an event of the run's own."""
        name = str(said.get("behavior", ""))
        if what == "behavior.failed":
            why = said.get("reason") or f"exception.{said['exception_type']}"
            rest = {"run_id": self.run_id(), "behavior": name, "event_id": said["event_id"], "reason": why,
                    "error_type": said["exception_type"], "error_message": said["message"],
                    "doc_url": doc_url(why)}  # fmt: skip
            LOG.warning(hidden(f"behavior failed: {name} (reason={why})"), extra={"fields": rest})
        elif LOG.isEnabledFor(logging.DEBUG):
            rest = {"run_id": self.run_id(), **{key: said[key] for key in FIELDS if key in said}}
            LOG.debug("%s %s", what, name, extra={"fields": rest})


def doc_url(reason: str) -> str:
    """Return where the pages of agentnb say more of why a behaviour has failed."""
    part = next((part for start, part in _PAGES.items() if reason.startswith(start)), "what-goes-wrong")
    return f"docs/reactive_agents.md#{part}"


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


__all__ = ["FIELDS", "LOG", "Observer", "configure_logging", "doc_url"]
