"""What runs write to Python's logging, and `configure_logging`.

The loggers are `agentnb.run`, `agentnb.call` and `agentnb.store`. As usual for a library, their levels are not set, and
a `NullHandler` (agentnb/__init__.py) keeps them silent until logging is configured: `logging.basicConfig()` shows
warnings and errors. If no handler accepts the records of a run, no listener is installed and logging costs nothing.
The levels are:

    ERROR    a run cannot be saved, a node has failed
    WARNING  an attempt of a call has failed, a step has a warning
    INFO     a run begins, resumes, waits, ends; a call was answered
    DEBUG    each step, each event

Everything in a line is masked before it is written: the message and every field.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from agentnb.arguments import plain_arguments
from agentnb.board.masking import mask_value
from agentnb.errors import AgentNbError, ExecutionError, Problem, did_you_mean, format_error, warn_caller, with_article
from agentnb.secrets import mask_text
from agentnb.text import safe_repr, safe_str, to_json_integer

if TYPE_CHECKING:
    from agentnb.session.state import State

ROOT: Final = logging.getLogger("agentnb")
RUN, CALL, STORE = (logging.getLogger(f"agentnb.{name}") for name in ("run", "call", "store"))
FIELDS: Final = (
    *("run_id", "dialect", "step", "node", "event_id", "behavior", "tool", "model", "cost_usd", "latency_seconds"),
    *("reason", "error_type", "error_message", "payload"),
)
LONGEST: Final = 2_000  # maximum length of a text, and of a list, in a line
MOST: Final = 100
MOST_PARTS: Final = 2_000  # parts of a payload in a line

Redactor = Callable[[dict[str, Any]], dict[str, Any]]


class _Configuration:
    """The last configuration made by `configure_logging`."""

    handler: logging.Handler | None = None
    redactor: Redactor | None = None
    warned = False


@plain_arguments
def configure_logging(
    level: str | int = "INFO",
    json_output: bool = True,
    stream: Any = None,
    payload_redactor: Redactor | None = None,
) -> logging.Logger:
    """Configure runs to log what they do, one line each; return the logger `agentnb`. Replaces earlier configurations.

    A JSON line has timestamp, level, logger and message, and where applicable run_id, dialect, step, node, event_id,
    behavior, tool, model, cost_usd, latency_seconds, reason, error_type, error_message, payload. Secrets are masked.

    Args:
        json_output: if false, a line is time, level, logger and message.
        stream: where lines are written; default: stderr.
        payload_redactor: called with each payload (inputs, requests and answers of calls, event payloads), a dict;
            returns what may be written of it.

    Raises:
        ExecutionError: X205, there is no such level; X206, the redactor cannot be called.

    Example:
        >>> import sys
        >>> logger = configure_logging("DEBUG", stream=sys.stdout)
        >>> logger.warning("ready")  # doctest: +ELLIPSIS
        {"timestamp": "...", "level": "WARNING", "logger": "agentnb", "message": "ready"}
        >>> configure_logging("CRITICAL")  # doctest: +ELLIPSIS
        <Logger agentnb (CRITICAL)>
    """
    number = _parse_level(level)
    if payload_redactor is not None and not callable(payload_redactor):
        raise ExecutionError(
            Problem("X206", f"the redactor is {with_article(type(payload_redactor).__name__)}, which is not callable",
                    "configure_logging(payload_redactor=...)", "it is called with each payload before it is written",
                    "pass a function that takes a dict and returns one")
        )  # fmt: skip
    if _Configuration.handler is not None:
        ROOT.removeHandler(_Configuration.handler)
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines() if json_output else _Lines("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    _Configuration.handler, _Configuration.redactor, _Configuration.warned = handler, payload_redactor, False
    ROOT.addHandler(handler)
    ROOT.setLevel(number)
    ROOT.propagate = False  # else lines would be written twice if the root logger has a handler too
    return ROOT


def _parse_level(level: str | int) -> int:
    known = logging.getLevelNamesMapping()
    if isinstance(level, str) and level.upper() in known:
        return known[level.upper()]
    if isinstance(level, int) and not isinstance(level, bool):
        return level
    raise ExecutionError(
        Problem("X205", f"there is no level {level!r}", "configure_logging(level=...)",
                f"the levels are: {', '.join(known)}, or a number", did_you_mean(str(level).upper(), known, "use one"))
    )  # fmt: skip


# -- formatting -----------------------------------------------------------------------------------------------------


class _Lines(logging.Formatter):
    """Formats records as plain text lines."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line."""
        return _to_one_line(super().format(record))


class JsonLines(logging.Formatter):
    """Formats each record as a line of JSON: the common fields, and those of `FIELDS` that apply."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line of JSON."""
        line = {
            "timestamp": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": _to_one_line(record.getMessage()),
        }
        line |= {name: record.__dict__[name] for name in FIELDS if record.__dict__.get(name) is not None}
        if record.exc_info and record.exc_info[0] is not None and "error_type" not in line:
            line |= {"error_type": record.exc_info[0].__name__, "error_message": safe_str(record.exc_info[1])}
        return json.dumps(_to_plain(mask_value(line)), ensure_ascii=False)


def _to_one_line(text: str) -> str:
    """Return a text without secrets and line breaks; secrets, which may contain line breaks, are masked first."""
    return mask_text(" ".join(mask_text(text).split()))


def _to_plain(value: Any, depth: int = 0, room: list[int] | None = None) -> Any:
    """Return a masked value as JSON-compatible data; long parts are truncated, and so is a value with many parts."""
    room = [MOST_PARTS] if room is None else room
    room[0] -= 1
    match value:
        case None | bool():
            return value
        case int():
            return to_json_integer(value)
        case float():
            return value if math.isfinite(value) else str(value)
        case str():
            return str(value) if len(value) <= LONGEST else f"{value[:LONGEST]}… ({len(value)} characters)"
        case Mapping() if depth < 20 and room[0] > 0:
            plain = {safe_str(key): _to_plain(item, depth + 1, room) for key, item in list(value.items())[:MOST]}
            return plain if len(value) <= MOST else {**plain, "…": f"{len(value)} keys"}
        case list() | tuple() | set() | frozenset() if depth < 20 and room[0] > 0:
            items = [_to_plain(item, depth + 1, room) for item in list(value)[:MOST]]
            return items if len(value) <= MOST else [*items, f"… ({len(value)} items)"]
    return str(value) if isinstance(value, Decimal | date) else safe_repr(value)


def is_heard(logger: logging.Logger, level: int) -> bool:
    """Return True if a record of this level would reach a handler that processes it."""
    if not logger.isEnabledFor(level):
        return False
    at: logging.Logger | None = logger
    while at is not None:
        for handler in at.handlers:
            if handler.level <= level and not isinstance(handler, logging.NullHandler):
                return True
        at = at.parent if at.propagate else None
    return False


def log_line(
    logger: logging.Logger, level: int, message: str, payload: Mapping[str, Any] | None = None, **known: Any
) -> None:
    """Write one masked line if the logger is enabled for the level."""
    if not logger.isEnabledFor(level):
        return
    fields = {name: mask_value(value, name) for name, value in known.items() if value is not None}
    if payload:
        shown = _redact_payload(payload)
        if shown is not None:
            fields["payload"] = shown
    logger.log(level, "%s", _to_one_line(message), extra=fields)


def _redact_payload(payload: Mapping[str, Any]) -> Any:
    """Return the part of a payload that may be written; None if the redactor fails."""
    shown = mask_value(dict(payload))
    if _Configuration.redactor is None:
        return shown
    try:
        return mask_value(_Configuration.redactor(shown))
    except Exception as error:  # noqa: BLE001  (a run continues even if its log fails)
        if not _Configuration.warned:
            _Configuration.warned = True
            warn_caller(
                f"the payload_redactor raised {type(error).__name__}: {format_error(error)}; "
                "payloads for which it fails are left out of the log"
            )
        return None


# -- sessions -------------------------------------------------------------------------------------------------------


def log_store_failure(state: State, error: BaseException) -> None:
    """Log that a run cannot be saved."""
    log_line(STORE, logging.ERROR, f"run {state.run_id} cannot be stored: {format_error(error)}", run_id=state.run_id,
        dialect=state.recipe.dialect, step=state.run.position, **get_error_fields(error))  # fmt: skip


def get_error_fields(error: BaseException | None) -> dict[str, Any]:
    """Return the fields of an exception: its type, its message, and the code of its problem as reason."""
    if error is None:
        return {}
    problems = error.problems if isinstance(error, AgentNbError) else ()
    return {
        "error_type": type(error).__name__,
        "error_message": format_error(error),
        "reason": problems[0].code if problems else None,
    }


__all__ = ["CALL", "FIELDS", "ROOT", "RUN", "STORE", "JsonLines", "configure_logging", "get_error_fields", "is_heard",
           "log_line", "log_store_failure"]  # fmt: skip
