"""behaviors: functions that events set off, with what they listen to; the registry of those that decorators make.

A decorator registers what it makes; `register` takes what was made before, `clear_registry` forgets and returns all.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from agentnb.dialects.activegraph.budgets import own_limits_of
from agentnb.dialects.activegraph.errors import InvalidActivateAfter, RegistrationError
from agentnb.dialects.activegraph.given import check_behavior, check_name, check_view, types_in
from agentnb.dialects.activegraph.patterns import Pattern, pattern_of
from agentnb.dialects.activegraph.where import check
from agentnb.errors import Problem

_REGISTRY: Final[list[Any]] = []
_COUNTED: Final = {"event", "events"}


class _Reacting:
    """What both kinds of behaviours do. The fields stand in each of them: their order is the package's signature."""

    name: str
    fn: Callable[..., None]
    on: list[str]
    where: dict[str, Any] | None
    view_spec: dict[str, Any] | None
    budget: dict[str, Any] | None
    pattern: str | None
    pattern_matcher: Pattern | None
    activate_after: int | None

    def __post_init__(self) -> None:
        """Read the pattern, and how long it is put off; check the function and its `where`."""
        check_kind(self.name, self.fn)
        check(self.where)
        check_view(self.view_spec, f"behaviour {self.name!r}")
        self.on = types_in(self.on)
        self.budget = own_limits_of(self.name, self.budget)
        if self.pattern is not None and self.pattern_matcher is None:
            self.pattern_matcher = pattern_of(self.pattern)
        if self.activate_after is not None:
            self.activate_after = put_off(self.activate_after)

    def __call__(self, *given: Any, **words: Any) -> Any:
        """Call the function."""
        return self.fn(*given, **words)


@dataclass
class Behavior(_Reacting):
    """A function `(event, graph, ctx)` that events set off.

    It is set off by events of the types in `on` ("*" and an empty `on`: of any but the run's own) whose payload `where`
    holds for, where its `pattern` fits the graph. `activate_after` puts it off by so many events, and it is set off no
    more where its `budget` is used up: max_behavior_calls, max_llm_calls, max_tool_calls, max_patches, max_cost_usd.
    """

    name: str
    fn: Callable[..., None]
    on: list[str] = field(default_factory=list)
    where: dict[str, Any] | None = None
    view_spec: dict[str, Any] | None = None
    creates: list[str] = field(default_factory=list)
    budget: dict[str, Any] | None = None
    priority: int = 0
    pattern: str | None = None
    pattern_matcher: Pattern | None = None
    activate_after: int | None = None

    kind: ClassVar[str] = "function"


@dataclass
class RelationBehavior(_Reacting):
    """A function `(relation, event, graph, ctx)` that events set off which name an end of a relation of its type."""

    name: str
    fn: Callable[..., None]
    relation_type: str
    on: list[str] = field(default_factory=list)
    where: dict[str, Any] | None = None
    view_spec: dict[str, Any] | None = None
    creates: list[str] = field(default_factory=list)
    budget: dict[str, Any] | None = None
    priority: int = 0
    pattern: str | None = None
    pattern_matcher: Pattern | None = None
    activate_after: int | None = None

    kind: ClassVar[str] = "relation"


def put_off(given: Any) -> int:
    """Return by how many events somebody is put off: a number of 1 or more, or "2 events".

    Raises:
        InvalidActivateAfter: R321, it is no such number: time is told by events, not by the clock.
    """
    number, _, unit = given.partition(" ") if isinstance(given, str) else (given, "", "")
    if isinstance(number, str) and number.strip().isdecimal() and unit.strip() in {"", *_COUNTED}:
        number, unit = int(number), ""
    if type(number) is int and number >= 1 and not unit:
        return number
    raise InvalidActivateAfter(
        Problem("R321", f"activate_after={given!r} is no number of events", "a behaviour's activate_after",
                "a behaviour is put off by 1 or more events, so that the same run is made twice alike",
                "write activate_after=2, or activate_after='2 events'")
    )  # fmt: skip


def check_kind(name: str, fn: Callable[..., Any]) -> None:
    """Raise where calling a function does not run it.

    R330: a behaviour's function is async or a generator: to call it would not run it.

    Raises:
        RegistrationError: R330, it would only make a coroutine or a generator.
    """
    for each in (fn, getattr(fn, "__call__", fn)):  # noqa: B004  (an object may be called as well)
        kinds = (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction)
        if any(is_kind(each) for is_kind in kinds):
            raise RegistrationError(
                Problem("R330", f"{name!r} is async or a generator", f"behaviour {name!r}",
                        "a behaviour is called as part of a step, and nothing would run what such a call returns",
                        "write it as a plain function; what takes long can be called in a tool")
            )  # fmt: skip


def check_arity(fn: Callable[..., Any], wanted: tuple[str, ...], decorator: str) -> None:
    """Raise where a function cannot be called with these arguments.

    Raises:
        TypeError: it takes fewer, or needs more.
    """
    try:
        inspect.signature(fn).bind(*wanted)
    except TypeError as error:
        # What is bound to settings by its annotation is no argument of the call.
        named = [each for each in inspect.signature(fn).parameters.values() if each.kind is each.KEYWORD_ONLY]
        if not named or "missing a required" not in str(error):
            raise TypeError(
                f"@{decorator} needs a function of ({', '.join(wanted)}), and {fn.__name__!r} has the signature "
                f"{inspect.signature(fn)}: {error}"
            ) from None


def check_schema(given: Any, word: str) -> None:
    """Raise where something that is to be a schema cannot be one: no pydantic model, or one that JSON cannot tell.

    Raises:
        TypeError: it is so.
    """
    if given is None:
        return
    if not isinstance(given, type) or not hasattr(given, "model_validate"):
        raise TypeError(f"{word}={given!r} is no pydantic model: give a class that is a BaseModel")
    try:
        given.model_json_schema()  # type: ignore[attr-defined]  # every pydantic model has it
    except Exception as error:  # pydantic has several, and a field may raise its own
        raise TypeError(f"{word}={given.__name__} cannot be told as a JSON Schema: {error}") from error


def named(fn: Callable[..., Any], name: str | None) -> str:
    """Return the name of a behaviour: the one that is given, else its function's."""
    return name or fn.__name__


def behavior(
    name: str | None = None,
    on: list[str] | None = None,
    where: Mapping[str, Any] | None = None,
    view: Mapping[str, Any] | None = None,
    creates: list[str] | None = None,
    budget: Mapping[str, Any] | None = None,
    priority: int = 0,
    *,
    pattern: str | None = None,
    activate_after: Any = None,
) -> Callable[[Callable[..., None]], Behavior]:
    """Make a behaviour of a function `(event, graph, ctx)`, and register it.

    Args:
        on: the types of events that set it off; left out, all but the run's own, as far as `pattern` fits.
        where: what must hold of the payload: dotted path -> value or {operator: value}.
        view: what of the graph it is shown: {"around": "event.payload.id", "depth": 1, "include_types": [...],
            "recent_events": 50}; left out, all of it and the last 50 events.
        budget: what it may use in one run; where that is used up, it is set off no more.
        pattern: what must be there, see agentnb.dialects.activegraph.patterns.
        activate_after: by how many events it is put off.

    Raises:
        TypeError: the function does not take the three.
        RegistrationError: R320, the pattern cannot be read; R321, it cannot be put off so; R331, of its budget.

    Example:
        >>> @behavior(on=["goal.created"])
        ... def plan(event, graph, ctx):
        ...     graph.add_object("task", {"title": event.payload["goal"]})
        >>> clear_registry()[-1].name
        'plan'
    """
    check_name(name, "behavior")

    def made(fn: Callable[..., None]) -> Behavior:
        check_arity(fn, ("event", "graph", "ctx"), "behavior")
        found = Behavior(named(fn, name), fn, types_in(on), own(where), own(view), list(creates or ()),
                         own(budget), priority, pattern, None, activate_after)  # fmt: skip
        register(found)
        return found

    return made


def relation_behavior(
    relation_type: str,
    on: list[str] | None = None,
    name: str | None = None,
    where: Mapping[str, Any] | None = None,
    view: Mapping[str, Any] | None = None,
    creates: list[str] | None = None,
    budget: Mapping[str, Any] | None = None,
    priority: int = 0,
    *,
    pattern: str | None = None,
    activate_after: Any = None,
) -> Callable[[Callable[..., None]], RelationBehavior]:
    """Make a behaviour of a function `(relation, event, graph, ctx)`, and register it; see `behavior`.

    It is set off once for each relation of its type of which the payload names an end.

    Raises:
        TypeError: the function does not take the four.
        RegistrationError: R320, R321, R331, as for `behavior`.
    """
    check_name(relation_type, "relation_behavior")

    def made(fn: Callable[..., None]) -> RelationBehavior:
        check_arity(fn, ("relation", "event", "graph", "ctx"), "relation_behavior")
        found = RelationBehavior(
            named(fn, name), fn, relation_type, types_in(on), own(where), own(view), list(creates or ()),
            own(budget), priority, pattern, None, activate_after,
        )  # fmt: skip
        register(found)
        return found

    return made


def own(given: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return a copy of a mapping; None for None, and what is no mapping as it is."""
    return dict(given) if isinstance(given, Mapping) else given


# -- the registry ------------------------------------------------------------------------------------------------------


def get_registry() -> list[Any]:
    """Return the registered behaviours, in the order in which they were registered; the list is the caller's own."""
    return list(_REGISTRY)


def clear_registry() -> list[Any]:
    """Forget the registered behaviours, and return them in the order in which they were registered."""
    cleared = list(_REGISTRY)
    _REGISTRY.clear()
    return cleared


def register(behavior_obj: Any) -> None:
    """Register a behaviour that was made before; it takes the place of one that the same lines made before.

    Raises:
        InvalidArgumentType: X519, it is no behaviour.
    """
    check_behavior(behavior_obj, "register()")
    for number, known in enumerate(_REGISTRY):
        if _written(known) == _written(behavior_obj):  # the cell of a notebook that it is in has run again
            _REGISTRY[number] = behavior_obj
            return
    _REGISTRY.append(behavior_obj)


def _written(behavior_obj: Any) -> tuple[Any, ...]:
    fn = behavior_obj.fn
    return behavior_obj.name, getattr(fn, "__module__", None), getattr(fn, "__qualname__", fn)


__all__ = ["Behavior", "RelationBehavior", "behavior", "check_arity", "check_kind", "check_schema", "clear_registry",
           "get_registry", "named", "own", "put_off", "register", "relation_behavior"]  # fmt: skip
