"""tools: functions that models may call, `(args, ctx)`; and the registry of those that the decorator makes."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

from agentnb.dialects.activegraph.behaviors import check_arity, check_schema
from agentnb.dialects.activegraph.events import canonical
from agentnb.dialects.activegraph.observing import LOG

_REGISTRY: Final[list[Any]] = []


@dataclass(frozen=True)
class ToolContext:
    """What a tool is given besides its arguments."""

    behavior_name: str
    event_id: str
    frame: Any
    idempotency_key: str
    timeout_seconds: float
    logger: logging.Logger = LOG


@dataclass
class Tool:
    """A function that models may call, and what is known of it. Its time-out is kept to."""

    name: str
    fn: Callable[..., Any]
    description: str = ""
    input_schema: Any = None
    output_schema: Any = None
    cost_per_call: Decimal = Decimal(0)
    timeout_seconds: float = 30.0
    deterministic: bool = False
    meta: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check the schemas.

        Raises:
            TypeError: one of them cannot be a schema.
        """
        check_schema(self.input_schema, "input_schema")
        check_schema(self.output_schema, "output_schema")

    def told(self) -> dict[str, Any]:
        """Return what a model is told of it."""
        schema = self.input_schema.model_json_schema() if self.input_schema else {"type": "object"}
        return {"name": self.name, "description": self.description, "input_schema": schema}


def tool(
    *,
    name: str | None = None,
    description: str = "",
    input_schema: Any = None,
    output_schema: Any = None,
    cost_per_call: Any = Decimal(0),
    timeout_seconds: float = 30.0,
    deterministic: bool = False,
) -> Callable[[Callable[..., Any]], Tool]:
    """Make a tool of a function `(args, ctx)`, and register it.

    Args:
        input_schema, output_schema: pydantic models of what it takes and gives; else plain dicts.
        cost_per_call: dollars, counted by max_cost_usd.
        timeout_seconds: after so long a call fails with the reason tool.timeout.
        deterministic: whether it gives the same for the same.

    Raises:
        TypeError: the function does not take the two, or a schema cannot be one.
    """

    def made(fn: Callable[..., Any]) -> Tool:
        check_arity(fn, ("args", "ctx"), "tool")
        about = description or (fn.__doc__ or "").strip().partition("\n")[0]
        found = Tool(name or fn.__name__, fn, about, input_schema, output_schema, Decimal(str(cost_per_call)),
                     timeout_seconds, deterministic)  # fmt: skip
        _REGISTRY.append(found)
        return found

    return made


def get_tool_registry() -> list[Any]:
    """Return the registered tools."""
    return list(_REGISTRY)


def clear_tool_registry() -> list[Any]:
    """Forget the registered tools, and return them."""
    cleared = list(_REGISTRY)
    _REGISTRY.clear()
    return cleared


def args_hash(name: str, args: Mapping[str, Any]) -> str:
    """Return the digest of a call: the same for the same tool and arguments, whatever their order."""
    return digest({"tool": name, "args": args})


def digest(value: Any) -> str:
    """Return the digest of a value as JSON."""
    text = json.dumps(canonical(value), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


__all__ = ["Tool", "ToolContext", "args_hash", "clear_tool_registry", "digest", "get_tool_registry", "tool"]
