"""ToolResult: the outcome of a tool's run, from any return value or exception, with its times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from agentnb.errors import format_error
from agentnb.recipe.user_functions import find_unrun
from agentnb.world.tools.invocation import find_failure

Detail = dict[str, Any]  # path and message and, if known, the expected and the received type

_WORDS: Final = frozenset({"success", "result", "error", "details", "metrics"})


@dataclass(frozen=True, slots=True)
class ToolMetrics:
    """How long an operation took, in seconds, and when it started and ended, in UTC."""

    duration: float
    start_time: datetime
    end_time: datetime

    @classmethod
    def between(cls, start: datetime, end: datetime) -> ToolMetrics:
        """Return the metrics of the interval between two times."""
        return cls((end - start).total_seconds(), start, end)

    @classmethod
    def of_ns(cls, start: int, end: int) -> ToolMetrics:
        """Return the metrics of the interval between two readings of a clock, in nanoseconds since the epoch."""
        return cls((end - start) / 1e9, *(datetime.fromtimestamp(at / 1e9, UTC) for at in (start, end)))


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The outcome of a tool's run.

    Attributes:
        error: why it failed, as readable text; None if it did not fail.
        details: one mapping per invalid parameter, with `path`, `message` and, if known, `expected` and `received`;
            otherwise the details of the tool itself.
        metrics: how long it took, including all attempts and the waits between them.
    """

    success: bool
    result: Any = None
    error: str | None = None
    details: Any = None
    metrics: ToolMetrics | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a dict, including its metrics; the result and the details are the same objects."""
        metrics = None if self.metrics is None else asdict(self.metrics)
        return {"success": self.success, "result": self.result, "error": self.error, "details": self.details,
                "metrics": metrics}  # fmt: skip


def to_result(answer: Any, name: str, metrics: ToolMetrics | None = None) -> ToolResult:
    """Return a tool's return value or exception as a ToolResult.

    A ToolResult is unchanged except for its metrics; a mapping with `success` is a ToolResult written as a dict (if it
    has no `result`, its other keys are the result). Any other value, including None, is the result of a success. A
    failure always has a message.

    Args:
        metrics: the measured metrics; None keeps those of the answer.

    Example:
        >>> to_result({"success": False, "error": "sold out"}, "order").error
        'sold out'
        >>> to_result(ValueError("no such city"), "weather").error
        "Tool 'weather' failed: ValueError: no such city"
        >>> to_result(None, "notify").success
        True
    """
    if isinstance(answer, BaseException):
        return make_failure(f"Tool {name!r} failed: {_describe_error(answer)}", metrics)
    if find_unrun(answer) is not None:
        return make_failure(f"Tool {name!r} failed: it returned {find_unrun(answer)}, which has not run", metrics)
    if isinstance(answer, Mapping) and "success" in answer:
        answer = _from_mapping(answer)
    if not isinstance(answer, ToolResult):
        return ToolResult(success=True, result=answer, metrics=metrics)
    success, error = bool(answer.success), _format_text(answer.error)
    if not success and error is None:
        error = f"Tool {name!r} failed without a message"
    return replace(answer, success=success, error=error, metrics=metrics or answer.metrics)


def make_failure(error: str, metrics: ToolMetrics | None = None, details: Any = None) -> ToolResult:
    """Return the result of a tool that could not be run, or failed."""
    return ToolResult(success=False, error=error, details=details, metrics=metrics)


def _from_mapping(answer: Mapping[str, Any]) -> ToolResult:
    rest = {key: value for key, value in answer.items() if key not in _WORDS}
    metrics = answer.get("metrics")
    return ToolResult(
        answer["success"],
        answer.get("result", rest or None),
        answer.get("error"),
        answer.get("details"),
        metrics if isinstance(metrics, ToolMetrics) else _parse_metrics(metrics),
    )


def _parse_metrics(value: Any) -> ToolMetrics | None:
    """Return metrics written by `to_dict`; None for anything else."""
    known = value if isinstance(value, Mapping) else {}
    duration, start, end = (known.get(word) for word in ("duration", "start_time", "end_time"))
    if isinstance(duration, int | float) and isinstance(start, datetime) and isinstance(end, datetime):
        return ToolMetrics(duration, start, end)
    return None


def _describe_error(error: BaseException) -> str:
    if isinstance(error.__cause__, StopIteration) and format_error(error) == "coroutine raised StopIteration":
        error = error.__cause__  # Python's substitute for it in a coroutine
    if isinstance(error, SystemExit):
        return f"it called sys.exit({error.code!r})"
    text, kind = format_error(error), type(error).__name__
    if not text:
        return kind
    return text if type(error) is TimeoutError else f"{kind}: {text}"


def _format_text(error: Any) -> str | None:
    """Return a tool's error as text: it may be an exception, or a mapping with a message."""
    return find_failure({"error": error})
