"""The types of events that behaviors may emit, as far as this is known before they run; used for drawings.

A behavior declares the types of objects that it `creates`. Other events are inferred from the code of its function: the
types with listeners that it names, and the graph methods that it calls. The code is inspected, not run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import CodeType
from typing import Any, Final

from agentnb.dialects.activegraph.parts.events import LIFECYCLE

_TOLD_BY_METHOD: Final = {
    "add_object": "object.created",
    "remove_object": "object.removed",
    "add_relation": "relation.created",
    "remove_relation": "relation.removed",
    "patch_object": "patch.applied",
    "propose_patch": "patch.proposed",
    "propose_object": "approval.proposed",
}


def find_emitted_events(behaviors: Sequence[Any]) -> dict[str, Any]:
    """Return the events of behaviors for a drawing, for `Recipe.meta`.

    `own`: the prefixes of the types that report on the run itself. `tells`: behavior -> type -> how certain that is.
    `may`: behavior -> the types that its code names, of those with listeners.
    """
    listened = {type_ for each in behaviors for type_ in each.on}
    return {
        "own": (*LIFECYCLE, "context."),
        "tells": {each.name: {"object.created": ", ".join(each.creates)} for each in behaviors if each.creates},
        "may": {each.name: tuple(sorted(listened & set(_iter_types(each)))) for each in behaviors},
    }


def _iter_types(behavior: Any) -> Iterator[str]:
    """Yield the event types that a behavior's code names, and those that the methods it calls emit."""
    function = getattr(behavior, "handler", None) or behavior.fn
    code = getattr(function, "__code__", None)
    if code is not None:
        yield from _iter_types_in_code(code)


def _iter_types_in_code(code: CodeType) -> Iterator[str]:
    yield from (_TOLD_BY_METHOD[name] for name in code.co_names if name in _TOLD_BY_METHOD)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _iter_types_in_code(constant)
        elif isinstance(constant, str):
            yield constant


__all__ = ["find_emitted_events"]
