"""Type checks of the arguments of runtimes, graphs and decorators, before anything runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from agentnb.dialects.activegraph.errors import InvalidArgumentType, InvalidToolRegistration
from agentnb.errors import Problem, did_you_mean
from agentnb.text import safe_repr, safe_str

_VIEW: Final = ("around", "depth", "include_types", "recent_events")


def check_type(value: Any, kind: type | tuple[type, ...], where: str, expected: str) -> None:
    """Raise an error for an argument of the wrong type; None is accepted.

    X519: an argument has the wrong type; `why` states the expected one.

    Raises:
        InvalidArgumentType: X519.
    """
    if value is not None and not isinstance(value, kind):
        raise make_type_error(value, where, expected)


def make_type_error(
    value: Any, where: str, expected: str, kind: type[InvalidArgumentType] = InvalidArgumentType
) -> InvalidArgumentType:
    """Return the error that states the expected type."""
    return kind(
        Problem("X519", f"{safe_repr(value)} is not accepted here", where, f"expected {expected}", f"pass {expected}")
    )


def to_list(value: Any, where: str, expected: str) -> list[Any]:
    """Return an argument for several values as a list.

    Raises:
        InvalidArgumentType: X519, it is not a list.
    """
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise make_type_error(value, where, expected)
    return list(value)


def to_behaviors(value: Any) -> list[Any]:
    """Return behaviors as a list.

    Raises:
        InvalidArgumentType: X519, one of them is not a behavior.
    """
    expected = "a list of behaviors: functions under @behavior, or Behavior(name, function, on=[...])"
    behaviors = to_list(value, "Runtime(behaviors=...)", expected)
    for each in behaviors:
        check_behavior(each, "Runtime(behaviors=...)")
    return behaviors


def check_behavior(value: Any, where: str) -> None:
    """Raise for a listener that is not a behavior.

    Raises:
        InvalidArgumentType: X519, it is not a behavior.
    """
    if isinstance(value, type) or not (hasattr(value, "kind") and hasattr(value, "on") and hasattr(value, "fn")):
        raise make_type_error(
            value, where, "a Behavior: a function decorated with @behavior, or Behavior(name, function, on=[...])"
        )


def to_tools(value: Any) -> list[Any]:
    """Return tools as a list.

    Raises:
        InvalidArgumentType: X519, one of them is not a tool.
    """
    expected = "a list of tools: functions under @tool"
    tools = to_list(value, "tools=...", expected)
    wanting = next((each for each in tools if isinstance(each, type) or not hasattr(each, "to_definition")), None)
    if wanting is not None:
        raise make_type_error(wanting, "tools=...", expected, InvalidToolRegistration)
    return tools


def check_name(value: Any, decorator: str) -> None:
    """Raise for a decorator without parentheses: its first argument is then the function.

    Raises:
        InvalidArgumentType: X519, the argument is a function.
    """
    if callable(value):
        raise make_type_error(value, f"@{decorator}", f"parentheses after the decorator: @{decorator}(...)")


def to_event_types(value: Any) -> list[str]:
    """Return the event types of a subscription; a single string is one type.

    Raises:
        InvalidArgumentType: X519, it is not a list of strings.
    """
    types = [value] if isinstance(value, str) else to_list(value or (), "on=...", "a list of types of events")
    for each in types:
        check_type(each, str, "on=...", "a list of types of events")
    return types


def check_view(spec: Any, where: str) -> None:
    """Raise for an unknown key of a view.

    Raises:
        InvalidArgumentType: X519, a key is not known.
    """
    check_type(spec, Mapping, f"{where}, view", f"a mapping over {', '.join(_VIEW)}")
    unknown = next((word for word in spec or () if word not in _VIEW), None)
    if unknown is not None:
        raise InvalidArgumentType(
            Problem("X519", f"a view has no key {safe_repr(unknown)}", f"{where}, view",
                    f"its keys are: {', '.join(_VIEW)}",
                    did_you_mean(safe_str(unknown), _VIEW, "use one of them"))
        )  # fmt: skip
    for word in ("depth", "recent_events"):
        check_type((spec or {}).get(word), int, f"{where}, view, {word}", "a number")


__all__ = [
    "check_behavior",
    "check_name",
    "check_type",
    "check_view",
    "make_type_error",
    "to_behaviors",
    "to_event_types",
    "to_list",
    "to_tools",
]
