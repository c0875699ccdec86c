"""Behaviors: functions triggered by events, with their subscriptions; and the global registry.

A decorator creates and registers a behavior; `register` adds an existing one, `clear_registry` removes and returns all.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from agentnb.dialects.activegraph.errors import InvalidActivateAfter, RegistrationError
from agentnb.dialects.activegraph.parts.argument_checks import check_behavior, check_name, check_view, to_event_types
from agentnb.dialects.activegraph.parts.budgets import parse_own_limits
from agentnb.dialects.activegraph.parts.patterns import Pattern, parse_pattern
from agentnb.dialects.activegraph.parts.where import check
from agentnb.errors import Problem
from agentnb.recipe.user_functions import is_async, is_generator
from agentnb.text import safe_repr

_REGISTRY: Final[list[Any]] = []
_COUNTED: Final = {"event", "events"}


class _BehaviorBase:
    """The common part of both kinds of behaviors. The fields are declared in each subclass.

    Their order is the package's signature.
    """

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
        """Parse the pattern and the delay; check the function and its `where`."""
        check_kind(self.name, self.fn)
        check(self.where)
        check_view(self.view_spec, f"behavior {self.name!r}")
        self.on = to_event_types(self.on)
        self.budget = parse_own_limits(self.name, self.budget)
        if self.pattern is not None and self.pattern_matcher is None:
            self.pattern_matcher = parse_pattern(self.pattern)
        if self.activate_after is not None:
            self.activate_after = parse_delay(self.activate_after)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        return self.fn(*args, **kwargs)


@dataclass
class Behavior(_BehaviorBase):
    """A function `(event, graph, ctx)` that events trigger.

    It is triggered by events of the types in `on` ("*" or an empty `on`: all except the run's own) whose payload
    matches `where`, if its `pattern` matches the graph. `activate_after` delays it by a number of events, and it is no
    longer triggered once its `budget` is used up: max_behavior_calls, max_llm_calls, max_tool_calls, max_patches,
    max_cost_usd.
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
class RelationBehavior(_BehaviorBase):
    """A function `(relation, event, graph, ctx)` triggered by events that name an end of a relation of its type."""

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


def parse_delay(delay: Any) -> int:
    """Return the delay in events: a number of 1 or more, or "2 events".

    Raises:
        InvalidActivateAfter: R321, it is not such a number: delays are counted in events, not in seconds.
    """
    number, _, unit = delay.partition(" ") if isinstance(delay, str) else (delay, "", "")
    if isinstance(number, str) and number.strip().isdecimal() and unit.strip() in {"", *_COUNTED}:
        number, unit = int(number), ""
    if type(number) is int and number >= 1 and not unit:
        return number
    raise InvalidActivateAfter(
        Problem("R321", f"activate_after={safe_repr(delay)} must be >= 1 event", "a behavior's activate_after",
                "a behavior is delayed by events, not by wall-clock time, so that a run can be repeated",
                "write activate_after=2, or activate_after='2 events'")
    )  # fmt: skip


def check_kind(name: str, fn: Callable[..., Any], what: str = "behavior") -> None:
    """Raise an error for a function whose body does not run when it is called.

    R330: the function of a behavior or a tool is async or a generator: calling it would not run it.

    Raises:
        RegistrationError: R330, it would only create a coroutine or a generator.
    """
    if is_async(fn) or is_generator(fn):
        raise RegistrationError(
            Problem("R330", f"{name!r} is async or a generator", f"{what} {name!r}",
                    f"a {what} is called as part of a step, and nothing would await or iterate its result",
                    "write a plain function; call slow code in a tool")
        )  # fmt: skip


def check_signature(fn: Any, params: tuple[str, ...], decorator: str, *, settings: bool = True) -> None:
    """Check that a function can be called with these positional arguments.

    Args:
        settings: whether further keyword-only parameters are allowed if they are annotated: a pack's settings are
            passed by annotation.

    Raises:
        TypeError: it is not callable, takes fewer arguments, or requires more.
    """
    if not callable(fn):
        raise TypeError(f"{decorator} must decorate a callable, not {safe_repr(fn)}")
    try:
        signature = inspect.signature(fn)
    except (TypeError, ValueError):  # built-in functions have no signature
        return
    name, expected = getattr(fn, "__name__", safe_repr(fn)), f"({', '.join(params)})"
    try:
        bound = set(signature.bind_partial(*params).arguments)
    except TypeError:
        raise TypeError(
            f"{decorator}: {name!r} must accept {len(params)} positional arguments {expected}; "
            f"its signature is {signature}"
        ) from None
    extra = [
        each.name
        for each in signature.parameters.values()
        if each.name not in bound
        and each.default is each.empty
        and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
        and not (settings and each.kind is each.KEYWORD_ONLY and each.annotation is not each.empty)
    ]
    if extra:
        advice = "annotate a keyword-only one with the settings' class, or " if settings else ""
        raise TypeError(
            f"{decorator}: {name!r} requires {', '.join(extra)} beyond the {expected} contract; {advice}give a default"
        )


def check_schema(schema: Any, word: str) -> None:
    """Raise for a value that cannot be a schema: it is not a pydantic model, or has no JSON Schema.

    Raises:
        TypeError: it cannot.
    """
    if schema is None:
        return
    if not isinstance(schema, type) or not hasattr(schema, "model_validate"):
        actual = f"{schema.__name__}, not a BaseModel subclass" if isinstance(schema, type) else type(schema).__name__
        raise TypeError(f"{word} must be a pydantic model (from pydantic import BaseModel), not {actual}")
    try:
        schema.model_json_schema()  # type: ignore[attr-defined]  # every pydantic model has it
    except Exception as error:  # pydantic has several exceptions, and a field may raise its own
        raise TypeError(f"{word}={schema.__name__} has no JSON Schema: {error}") from error


def get_behavior_name(fn: Callable[..., Any], name: str | None) -> str:
    """Return the name of a behavior: the explicit one or, without it, that of its function."""
    return name or fn.__name__


def to_fields(
    fn: Callable[..., None],
    name: str | None,
    on: list[str] | None,
    where: Mapping[str, Any] | None,
    view: Mapping[str, Any] | None,
    creates: list[str] | None,
    budget: Mapping[str, Any] | None,
    priority: int,
    pattern: str | None,
    activate_after: Any,
) -> dict[str, Any]:
    """Return the fields that all behaviors have, from the arguments of a decorator; collections are copied."""
    return {
        "name": get_behavior_name(fn, name),
        "fn": fn,
        "on": to_event_types(on),
        "where": copy_mapping(where),
        "view_spec": copy_mapping(view),
        "creates": list(creates or ()),
        "budget": copy_mapping(budget),
        "priority": priority,
        "pattern": pattern,
        "activate_after": activate_after,
    }


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
    """Create a behavior from a function `(event, graph, ctx)`, and register it.

    Args:
        on: the types of events that trigger it; default: all except the run's own.
        where: conditions on the payload: dotted path -> value or {operator: value}.
        view: the part of the graph that it sees: {"around": "event.payload.id", "depth": 1, "include_types": [...],
            "recent_events": 50}; default: all of it and the last 50 events.
        budget: what it may use in one run; once that is used up, it is no longer triggered.
        pattern: what the graph must contain, see agentnb.dialects.activegraph.parts.patterns.
        activate_after: the delay of each delivery, in events.

    Raises:
        TypeError: the function does not take these three arguments.
        RegistrationError: R320, the pattern cannot be read; R321, the delay is invalid; R331, the budget is.

    Example:
        >>> @behavior(on=["goal.created"])
        ... def plan(event, graph, ctx):
        ...     graph.add_object("task", {"title": event.payload["goal"]})
        >>> clear_registry()[-1].name
        'plan'
    """
    check_name(name, "behavior")

    def decorate(fn: Callable[..., None]) -> Behavior:
        check_signature(fn, ("event", "graph", "ctx"), "@behavior")
        new_behavior = Behavior(
            **to_fields(fn, name, on, where, view, creates, budget, priority, pattern, activate_after)
        )
        register(new_behavior)
        return new_behavior

    return decorate


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
    """Create a behavior from a function `(relation, event, graph, ctx)`, and register it; see `behavior`.

    It is triggered once for each relation of its type with an end named in the payload.

    Raises:
        TypeError: the function does not take these four arguments.
        RegistrationError: R320, R321, R331, as for `behavior`.
    """
    check_name(relation_type, "relation_behavior")

    def decorate(fn: Callable[..., None]) -> RelationBehavior:
        check_signature(fn, ("relation", "event", "graph", "ctx"), "@relation_behavior")
        new_behavior = RelationBehavior(
            relation_type=relation_type,
            **to_fields(fn, name, on, where, view, creates, budget, priority, pattern, activate_after),
        )
        register(new_behavior)
        return new_behavior

    return decorate


def copy_mapping(mapping: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return a copy of a mapping; None and other values are returned unchanged."""
    return dict(mapping) if isinstance(mapping, Mapping) else mapping


# -- the registry ------------------------------------------------------------------------------------------------------


def get_registry() -> list[Any]:
    """Return a new list of the registered behaviors, in the order in which they were registered."""
    return list(_REGISTRY)


def clear_registry() -> list[Any]:
    """Remove all registered behaviors, and return them in the order of registration."""
    cleared = list(_REGISTRY)
    _REGISTRY.clear()
    return cleared


def register(behavior_obj: Any) -> None:
    """Register an existing behavior; it replaces one that was created by the same source lines.

    Raises:
        InvalidArgumentType: X519, it is not a behavior.
    """
    check_behavior(behavior_obj, "register()")
    for number, known in enumerate(_REGISTRY):
        # The notebook cell that defines it was executed again
        if _read_definition(known) == _read_definition(behavior_obj):
            _REGISTRY[number] = behavior_obj
            return
    _REGISTRY.append(behavior_obj)


def _read_definition(behavior_obj: Any) -> tuple[Any, ...]:
    fn = behavior_obj.fn
    return behavior_obj.name, getattr(fn, "__module__", None), getattr(fn, "__qualname__", fn)


__all__ = [
    "Behavior",
    "RelationBehavior",
    "behavior",
    "check_kind",
    "check_schema",
    "check_signature",
    "clear_registry",
    "copy_mapping",
    "get_behavior_name",
    "get_registry",
    "parse_delay",
    "register",
    "relation_behavior",
    "to_fields",
]  # fmt: skip
