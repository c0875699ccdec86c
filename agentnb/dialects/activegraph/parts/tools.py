"""Tools: functions `(args, ctx)` that models may call, and the registry of the tools that the decorator creates."""

from __future__ import annotations

import hashlib
import inspect
import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

from agentnb.dialects.activegraph.parts.behaviors import check_kind, check_schema, check_signature
from agentnb.dialects.activegraph.parts.events import to_canonical
from agentnb.dialects.activegraph.parts.log_output import LOG

_REGISTRY: Final[list[Any]] = []


@dataclass(frozen=True)
class ToolContext:
    """The second argument of a tool's function, besides the arguments of the call."""

    behavior_name: str
    event_id: str
    frame: Any
    idempotency_key: str
    timeout_seconds: float
    logger: logging.Logger = LOG


@dataclass
class Tool:
    """A function that models may call, and its settings. Its timeout is enforced."""

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
        """Check the function and the schemas.

        Raises:
            RegistrationError: R330, a call would not run the function.
            TypeError: one of the schemas is not valid.
        """
        check_kind(self.name, self.fn, "tool")
        check_schema(self.input_schema, "input_schema")
        check_schema(self.output_schema, "output_schema")

    def takes(self, args: Mapping[str, Any]) -> bool:
        """Return True if arguments fit the schema."""
        if self.input_schema is None:
            return True
        try:
            self.input_schema.model_validate(dict(args))
        except Exception:  # noqa: BLE001  (a validator may raise anything)
            return False
        return True

    def to_definition(self) -> dict[str, Any]:
        """Return the tool's name, description and JSON Schema of the arguments, as they are sent to a model."""
        schema = self.input_schema.model_json_schema() if self.input_schema else {"type": "object", "properties": {}}
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
    """Create a tool from a function `(args, ctx)`, and register it.

    Args:
        input_schema: a pydantic model of the arguments; default: the annotation of the first parameter, if it is a
            pydantic model; otherwise the function is called with a dict.
        output_schema: a pydantic model of the result.
        cost_per_call: dollars, counted by max_cost_usd.
        timeout_seconds: the time after which a call fails with the reason tool.timeout.
        deterministic: whether equal arguments give equal results.

    Raises:
        TypeError: the function does not accept these two arguments, or a schema is not valid.
    """

    def decorate(fn: Callable[..., Any]) -> Tool:
        check_signature(fn, ("args", "ctx"), "@tool", settings=False)
        schema = _find_annotated_schema(fn) if input_schema is None else input_schema
        text = description or (fn.__doc__ or "").strip().partition("\n")[0]
        new_tool = Tool(name or fn.__name__, fn, text, schema, output_schema, Decimal(str(cost_per_call)),
                     timeout_seconds, deterministic)  # fmt: skip
        _REGISTRY.append(new_tool)
        return new_tool

    return decorate


def _find_annotated_schema(fn: Callable[..., Any]) -> Any:
    """Return the pydantic model that annotates the first parameter; None if there is no such annotation."""
    try:
        first = next(iter(inspect.signature(fn, eval_str=True).parameters.values()), None)
    except (NameError, TypeError, ValueError):  # a name that exists only for type checkers, or a built-in function
        return None
    annotation = None if first is None else first.annotation
    return annotation if isinstance(annotation, type) and hasattr(annotation, "model_validate") else None


def get_tool_registry() -> list[Any]:
    """Return the registered tools."""
    return list(_REGISTRY)


def clear_tool_registry() -> list[Any]:
    """Remove all registered tools, and return them."""
    cleared = list(_REGISTRY)
    _REGISTRY.clear()
    return cleared


def hash_args(name: str, args: Mapping[str, Any]) -> str:
    """Return the digest of a call, which does not depend on the order of its arguments."""
    return digest({"tool": name, "args": args})


def digest(value: Any) -> str:
    """Return the digest of a value as JSON."""
    text = json.dumps(to_canonical(value), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


__all__ = ["Tool", "ToolContext", "clear_tool_registry", "digest", "get_tool_registry", "hash_args", "tool"]
