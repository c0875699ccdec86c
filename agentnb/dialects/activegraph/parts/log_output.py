"""Logging of a runtime: lines of JSON or of text."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from agentnb.board.masking import mask_value
from agentnb.board.values import thaw
from agentnb.dialects.activegraph.parts.events import is_lifecycle
from agentnb.text import safe_str

if TYPE_CHECKING:
    from agentnb.engine.core.history import Event as Kept

NAME: Final = "activegraph"
LOG: Final = logging.getLogger(f"{NAME}.runtime")
FIELDS: Final = ("run_id", "event_id", "behavior", "tool", "model", "cache_hit", "cost_usd", "latency_seconds",
                 "reason", "error_type", "error_message", "doc_url", "payload")  # fmt: skip
_PAGES: Final = {"llm.": "models-and-tools", "tool.": "models-and-tools", "budget.": "what-is-allowed",
                 "policy.": "what-is-allowed"}  # fmt: skip


_redactor: Callable[[dict[str, Any]], dict[str, Any]] | None = None  # set by `configure_logging`


class Observer:
    """Writes log lines about a runtime; `run_id` identifies the run."""

    def __init__(self) -> None:
        self.run_id: Callable[[], str] = str

    def record_event(self, event: Kept) -> None:
        """Log an event that behaviors may react to; at level DEBUG with its payload."""
        if not LOG.isEnabledFor(logging.INFO) or is_lifecycle(event.type):
            return
        fields: dict[str, Any] = {"run_id": self.run_id(), "event_id": event.id}
        if LOG.isEnabledFor(logging.DEBUG):
            fields["payload"] = _redact(event.payload)
        LOG.info("event emitted", extra=fields)

    def __call__(self, what: str, payload: Mapping[str, Any]) -> None:
        """Log an event about the run itself."""
        name = str(payload.get("behavior", ""))
        if what == "behavior.failed":
            if not LOG.isEnabledFor(logging.WARNING):
                return
            why = payload.get("reason") or f"exception.{safe_str(payload['exception_type'])}"
            rest = {"run_id": self.run_id(), "behavior": name, "event_id": payload["event_id"], "reason": why,
                    "error_type": payload["exception_type"], "doc_url": make_doc_url(why)}  # fmt: skip
            shown = _redact(payload)
            if "message" in shown:
                rest["error_message"] = shown["message"]
            LOG.warning(safe_str(f"behavior failed: {name} (reason={why})"), extra=rest)
        elif LOG.isEnabledFor(logging.DEBUG):
            rest = {"run_id": self.run_id(), **{key: payload[key] for key in FIELDS if key in payload}}
            LOG.debug("%s %s", what, name, extra={**rest, "payload": _redact(payload)})


def _redact(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of a payload, processed by the redactor of `configure_logging`."""
    plain = dict(thaw(payload))
    return plain if _redactor is None else dict(_redactor(plain))


def make_doc_url(reason: str) -> str:
    """Return the URL of the documentation about a behavior's failure."""
    part = next((part for start, part in _PAGES.items() if reason.startswith(start)), "what-goes-wrong")
    return f"docs/recipes/activegraph.md#{part}"


class _Handler(logging.StreamHandler[Any]):
    """The handler of `configure_logging`; handlers that others have added are not removed."""


class _Lines(logging.Formatter):
    """Formats one JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as JSON, with secrets masked; unknown values and fields are left out."""
        fields = {name: getattr(record, name) for name in FIELDS if getattr(record, name, None) is not None}
        line = {"timestamp": f"{datetime.fromtimestamp(record.created, UTC):%Y-%m-%dT%H:%M:%S.%f}Z",
                "level": record.levelname, "logger": record.name, "message": record.getMessage(), **fields}  # fmt: skip
        return json.dumps(mask_value(line), default=str)


def configure_logging(
    level: str | int = "INFO",
    *,
    json_output: bool = True,
    stream: Any = None,
    payload_redactor: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
) -> logging.Logger:
    """Configure the logging of behaviors, replacing the previous configuration; return the logger.

    Args:
        level: a name or a number. json_output: one JSON object per line; otherwise readable text. stream: the output;
            default: standard error. payload_redactor: a function that returns the part of an event's payload that may
            be logged. It applies to the `payload` of lines of level DEBUG and to the `error_message` of a failure.
    """
    global _redactor  # noqa: PLW0603  (the logging of a process is configured once for all of it)
    _redactor = payload_redactor
    shown = _Handler(sys.stderr if stream is None else stream)
    plain = logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
    shown.setFormatter(_Lines() if json_output else plain)
    root = logging.getLogger(NAME)
    for known in list(root.handlers):
        if isinstance(known, _Handler):
            root.removeHandler(known)
    root.addHandler(shown)
    root.setLevel(level.upper() if isinstance(level, str) else level)
    root.propagate = False
    return root


__all__ = ["FIELDS", "LOG", "Observer", "configure_logging", "make_doc_url"]
