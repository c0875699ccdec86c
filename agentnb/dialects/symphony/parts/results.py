"""The results of an agent. Every field can be read as an attribute or as a key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from decimal import Decimal
from typing import Any, Final


class KeyedResult(Mapping[str, Any]):
    """A dataclass whose fields are also keys: `result.success` and `result["success"]` are the same."""

    __slots__ = ()

    def __getitem__(self, key: str) -> Any:
        if key in self.__dataclass_fields__:  # type: ignore[attr-defined]  # every subclass is a dataclass
            return getattr(self, key)
        raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        return iter(field.name for field in fields(self))  # type: ignore[arg-type]  # as above

    def __len__(self) -> int:
        return len(fields(self))  # type: ignore[arg-type]  # as above

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain dicts and lists."""
        return {name: _to_plain(value) for name, value in self.items()}


def _to_plain(value: Any) -> Any:
    """Return a part as a dict, and a tuple of parts as a list of dicts; other values are returned unchanged."""
    if isinstance(value, KeyedResult):
        return value.to_dict()
    return [_to_plain(each) for each in value] if isinstance(value, tuple) else value


@dataclass(frozen=True)
class Usage(KeyedResult):
    """The total usage of a task's models; None if no model reported any."""

    requests: int = 0
    tokens_in: int | None = None
    tokens_out: int | None = None
    cost_usd: Decimal | None = None


@dataclass(frozen=True)
class Times(KeyedResult):
    """How long an operation took, in seconds, and when it started and ended, in UTC; None if it never started."""

    duration: float = 0.0
    start_time: datetime | None = None
    end_time: datetime | None = None


@dataclass(frozen=True)
class TaskMetrics(Times):
    """The metrics of a task: its times, the number of tool calls, and the usage of its models."""

    tool_calls: int = 0
    llm_usage: Usage = Usage()


@dataclass(frozen=True)
class ToolExecuted(KeyedResult):
    """One tool call requested by the agent's model, executed or refused; `success` is its outcome."""

    name: str
    parameters: Any
    success: bool
    result: Any = None
    error: str | None = None
    details: Any = None
    metrics: Times = Times()


@dataclass(frozen=True)
class TaskOutcome(KeyedResult):
    """An agent's answer, its reasoning, and the tools that it called, in order.

    `fallback` is true if no model answered; `response` is then an apology.
    """

    response: str
    reasoning: str = ""
    tools_executed: tuple[ToolExecuted, ...] = ()
    agent: str = ""
    model: str | None = None
    token_usage: Usage = Usage()
    timestamp: datetime | None = None
    fallback: bool = False


@dataclass(frozen=True)
class AgentResult(KeyedResult):
    """The result of a task: `error` states why `success` is False."""

    success: bool
    result: TaskOutcome
    error: str | None = None
    metrics: TaskMetrics = field(default_factory=TaskMetrics)


_NAMELESS: Final = {"name": "", "parameters": None, "success": False}  # fields that an item edited by a person may lack


def to_usage(value: Mapping[str, Any] | None) -> Usage:
    """Return the value of `usage` on an agent's blackboard."""
    known = value if isinstance(value, Mapping) else {}
    return Usage(**{each.name: known.get(each.name, each.default) for each in fields(Usage)})


def to_tool_executed(values: Mapping[str, Any], times: Times) -> ToolExecuted:
    """Return an item of `tools_executed` on an agent's blackboard; `times` are those of its step."""
    known = {each.name: values[each.name] for each in fields(ToolExecuted) if each.name in values}
    own = values.get("metrics")
    return ToolExecuted(**{**_NAMELESS, **known, "metrics": Times(**own) if isinstance(own, Mapping) else times})
