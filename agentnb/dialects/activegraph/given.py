"""given: whether what a runtime, a graph or a decorator is given is what it should be; told before anything runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from agentnb.board.secrets import short
from agentnb.dialects.activegraph.errors import InvalidArgumentType
from agentnb.errors import Problem, did_you_mean

_VIEW: Final = ("around", "depth", "include_types", "recent_events")


def is_a(given: Any, kind: type | tuple[type, ...], where: str, should: str) -> None:
    """Raise where something that is given is of another sort than it should be; None is left to whoever asks.

    X519: something is given that is of another sort than it should be; `why` says what it should be.

    Raises:
        InvalidArgumentType: X519, it is so.
    """
    if given is not None and not isinstance(given, kind):
        raise wrong(given, where, should)


def wrong(given: Any, where: str, should: str) -> InvalidArgumentType:
    """Return the error that says what something should be."""
    return InvalidArgumentType(
        Problem("X519", f"{short(given)} cannot be given here", where, f"it should be {should}", f"give {should}")
    )


def listed(given: Any, where: str, should: str) -> list[Any]:
    """Return what is to be several things as a list.

    Raises:
        InvalidArgumentType: X519, it is no list of anything.
    """
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise wrong(given, where, should)
    return list(given)


def behaviors_in(given: Any) -> list[Any]:
    """Return behaviours as a list.

    Raises:
        InvalidArgumentType: X519, one of them is none.
    """
    should = "a list of behaviours: functions under @behavior, or Behavior(name, function, on=[...])"
    found = listed(given, "Runtime(behaviors=...)", should)
    for each in found:
        check_behavior(each, "Runtime(behaviors=...)")
    return found


def check_behavior(given: Any, where: str) -> None:
    """Raise where something that is to listen is no behaviour.

    Raises:
        InvalidArgumentType: X519, it is none.
    """
    if isinstance(given, type) or not (hasattr(given, "kind") and hasattr(given, "on") and hasattr(given, "fn")):
        raise wrong(given, where, "a behaviour: a function under @behavior, or Behavior(name, function, on=[...])")


def tools_in(given: Any) -> list[Any]:
    """Return tools as a list.

    Raises:
        InvalidArgumentType: X519, one of them is none.
    """
    should = "a list of tools: functions under @tool"
    found = listed(given, "tools=...", should)
    wanting = next((each for each in found if isinstance(each, type) or not hasattr(each, "told")), None)
    if wanting is not None:
        raise wrong(wanting, "tools=...", should)
    return found


def check_name(given: Any, decorator: str) -> None:
    """Raise where a decorator stands without its brackets: it is given the function in place of its first word.

    Raises:
        InvalidArgumentType: X519, it does.
    """
    if callable(given):
        raise wrong(given, f"@{decorator}", f"brackets behind the decorator: @{decorator}(...)")


def types_in(given: Any) -> list[str]:
    """Return the types of events that something listens to; one text is one type.

    Raises:
        InvalidArgumentType: X519, it is no list of texts.
    """
    found = [given] if isinstance(given, str) else listed(given or (), "on=...", "a list of types of events")
    for each in found:
        is_a(each, str, "on=...", "a list of types of events")
    return found


def check_view(spec: Any, where: str) -> None:
    """Raise where a view is described by a word that there is not.

    Raises:
        InvalidArgumentType: X519, it is so.
    """
    is_a(spec, Mapping, f"{where}, view", f"a mapping over {', '.join(_VIEW)}")
    unknown = next((word for word in spec or () if word not in _VIEW), None)
    if unknown is not None:
        raise InvalidArgumentType(
            Problem("X519", f"a view knows no {unknown!r}", f"{where}, view", f"its words are: {', '.join(_VIEW)}",
                    did_you_mean(str(unknown), _VIEW, "use one of them"))
        )  # fmt: skip
    for word in ("depth", "recent_events"):
        is_a((spec or {}).get(word), int, f"{where}, view, {word}", "a number")


__all__ = [
    "behaviors_in",
    "check_behavior",
    "check_name",
    "check_view",
    "is_a",
    "listed",
    "tools_in",
    "types_in",
    "wrong",
]
