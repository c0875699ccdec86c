"""drawing: which types of events behaviours tell, as far as that is known before they run: what their drawing shows.

A behaviour declares types of objects that it `creates`. What else it may tell is what its function's code names: the
types that somebody listens to, and the methods of its graph. Its code is looked at, and not run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import CodeType
from typing import Any, Final

from agentnb.dialects.activegraph.events import LIFECYCLE

_TOLD_BY_METHOD: Final = {
    "add_object": "object.created",
    "remove_object": "object.removed",
    "add_relation": "relation.created",
    "remove_relation": "relation.removed",
    "patch_object": "patch.applied",
    "propose_patch": "patch.proposed",
    "propose_object": "approval.proposed",
}


def events_of(behaviors: Sequence[Any]) -> dict[str, Any]:
    """Return what a drawing is told of the events of behaviours, for `Recipe.meta`.

    `own`: how the types begin that tell of the run itself. `tells`: behaviour -> type -> what it says of it.
    `may`: behaviour -> the types that its code names, of those that somebody listens to.
    """
    heard = {type_ for each in behaviors for type_ in each.on}
    return {
        "own": (*LIFECYCLE, "context."),
        "tells": {each.name: {"object.created": ", ".join(each.creates)} for each in behaviors if each.creates},
        "may": {each.name: tuple(sorted(heard & set(_named(each)))) for each in behaviors},
    }


def _named(behavior: Any) -> Iterator[str]:
    """Yield the types of events that a behaviour's code names, and those that the methods it calls tell."""
    function = getattr(behavior, "handler", None) or behavior.fn
    code = getattr(function, "__code__", None)
    if code is not None:
        yield from _in_code(code)


def _in_code(code: CodeType) -> Iterator[str]:
    yield from (_TOLD_BY_METHOD[name] for name in code.co_names if name in _TOLD_BY_METHOD)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _in_code(constant)
        elif isinstance(constant, str):
            yield constant


__all__ = ["events_of"]
