"""Type checks of the arguments of runtimes, graphs and decorators, before anything runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from agentnb.dialects.activegraph.errors import InvalidArgumentType, InvalidToolRegistration
from agentnb.errors import Problem, did_you_mean
from agentnb.text import safe_repr, safe_str

_VIEW: Final = ("around", "depth", "include_types", "recent_events")


def is_a(given: Any, kind: type | tuple[type, ...], where: str, should: str) -> None:
    """Raise for an argument of the wrong type; None is accepted.

    X519: an argument has the wrong type; `why` states the expected one.

    Raises:
        InvalidArgumentType: X519, it has.
    """
    if given is not None and not isinstance(given, kind):
        raise make_type_error(given, where, should)


def make_type_error(
    given: Any, where: str, should: str, kind: type[InvalidArgumentType] = InvalidArgumentType
) -> InvalidArgumentType:
    """Return the error that states the expected type."""
    return kind(
        Problem("X519", f"{safe_repr(given)} is not accepted here", where, f"expected {should}", f"pass {should}")
    )


def to_list(given: Any, where: str, should: str) -> list[Any]:
    """Return an argument for several values as a list.

    Raises:
        InvalidArgumentType: X519, it is not a list.
    """
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise make_type_error(given, where, should)
    return list(given)


def to_behaviors(given: Any) -> list[Any]:
    """Return behaviors as a list.

    Raises:
        InvalidArgumentType: X519, one of them is not a behavior.
    """
    should = "a list of behaviors: functions under @behavior, or Behavior(name, function, on=[...])"
    found = to_list(given, "Runtime(behaviors=...)", should)
    for each in found:
        check_behavior(each, "Runtime(behaviors=...)")
    return found


def check_behavior(given: Any, where: str) -> None:
    """Raise for a listener that is not a behavior.

    Raises:
        InvalidArgumentType: X519, it is not one.
    """
    if isinstance(given, type) or not (hasattr(given, "kind") and hasattr(given, "on") and hasattr(given, "fn")):
        raise make_type_error(
            given, where, "a Behavior: a function decorated with @behavior, or Behavior(name, function, on=[...])"
        )


def to_tools(given: Any) -> list[Any]:
    """Return tools as a list.

    Raises:
        InvalidArgumentType: X519, one of them is not a tool.
    """
    should = "a list of tools: functions under @tool"
    found = to_list(given, "tools=...", should)
    wanting = next((each for each in found if isinstance(each, type) or not hasattr(each, "to_definition")), None)
    if wanting is not None:
        raise make_type_error(wanting, "tools=...", should, InvalidToolRegistration)
    return found


def check_name(given: Any, decorator: str) -> None:
    """Raise for a decorator without parentheses: its first argument is then the function.

    Raises:
        InvalidArgumentType: X519, it does.
    """
    if callable(given):
        raise make_type_error(given, f"@{decorator}", f"brackets behind the decorator: @{decorator}(...)")


def to_event_types(given: Any) -> list[str]:
    """Return the event types of a subscription; one text is one type.

    Raises:
        InvalidArgumentType: X519, it is not a list of texts.
    """
    found = [given] if isinstance(given, str) else to_list(given or (), "on=...", "a list of types of events")
    for each in found:
        is_a(each, str, "on=...", "a list of types of events")
    return found


def check_view(spec: Any, where: str) -> None:
    """Raise for an unknown key of a view.

    Raises:
        InvalidArgumentType: X519, a key is not known.
    """
    is_a(spec, Mapping, f"{where}, view", f"a mapping over {', '.join(_VIEW)}")
    unknown = next((word for word in spec or () if word not in _VIEW), None)
    if unknown is not None:
        raise InvalidArgumentType(
            Problem("X519", f"a view has no key {safe_repr(unknown)}", f"{where}, view",
                    f"its keys are: {', '.join(_VIEW)}",
                    did_you_mean(safe_str(unknown), _VIEW, "use one of them"))
        )  # fmt: skip
    for word in ("depth", "recent_events"):
        is_a((spec or {}).get(word), int, f"{where}, view, {word}", "a number")


__all__ = [
    "check_behavior",
    "check_name",
    "check_view",
    "is_a",
    "make_type_error",
    "to_behaviors",
    "to_event_types",
    "to_list",
    "to_tools",
]
