"""Systems: the inputs and outputs that a function declares by its annotations."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Final, TypeVar, get_args, get_origin, get_type_hints

from agentnb.errors import Problem, RecipeError
from agentnb.kinds.typed_values import UNIONS, SystemContext, SystemParameter, list_members
from agentnb.recipe.agent_expansion import find_agent
from agentnb.recipe.user_functions import COLLECT, GENERATES, is_function, is_generator
from agentnb.text import safe_repr

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class ParameterRole:
    """What a parameter's annotation declares besides its type: `out` or `res`."""

    role: str


Out = Annotated[T, ParameterRole("out")]
"""`Out[T]`: the last stored output of type T; `Out[T] | None` is None if there is none yet."""
Res = Annotated[T, ParameterRole("res")]
"""`Res[T]`: the resource of type T."""

_ATTRIBUTE: Final = "agentnb_system"
_UNTOLD: Final = object()


@dataclass(frozen=True, slots=True)
class System:
    """A function as a node runs it. `gives` are the types that it may return; None if it does not declare them."""

    function: Callable[..., Any]
    name: str
    takes: tuple[SystemParameter, ...]
    gives: tuple[Any, ...] | None

    def may_give(self, kind: Any) -> bool:
        """Return True if it may return an output of a type."""
        return self.gives is None or kind in self.gives


def system(function: F) -> F:
    """Mark a plain or async function as a system; it can still be called directly.

    Its parameters are `Out[T]`, `Res[T]`, the `SystemContext`, or have a default; its return value is stored by type.

    Raises:
        RecipeError: R199, it could never be called as a system.
    """
    setattr(function, _ATTRIBUTE, read_system(function, sys._getframe(1).f_locals))  # noqa: SLF001  (names of types that are local there)
    return function


def is_system(function: object) -> bool:
    """Return True for a function marked as a system, and for an agent."""
    return hasattr(function, _ATTRIBUTE) or find_agent(function) is not None


def to_system(function: Any, names: Mapping[str, Any]) -> System:
    """Return a function as a system; `names` are available to its annotations besides its module's.

    An agent is also a system: its task is the last stored output of type str, and its answer is stored as one.

    Raises:
        RecipeError: R199, it is not a system.
    """
    if isinstance(function, System):
        return function
    if (agent := find_agent(function)) is not None:
        return System(function, agent.name, (SystemParameter("task", "out", str, needed=True),), (str,))
    declared: System | None = getattr(function, _ATTRIBUTE, None)
    return declared if declared is not None else read_system(function, names)


def read_system(function: Any, names: Mapping[str, Any]) -> System:
    """Read a function's annotations.

    Raises:
        RecipeError: R199, it is not a function, its annotations use undefined names, or some are missing.
    """
    if not callable(function):
        raise RecipeError(
            _make_signature_problem(safe_repr(function), "it cannot be called", "pass a plain or async function")
        )
    inner, name = _unwrap_partials(function), name_of(function)
    if is_generator(function):
        raise RecipeError(_make_signature_problem(name, GENERATES, COLLECT))
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError) as error:
        raise RecipeError(
            _make_signature_problem(name, f"it has no signature: {error}", "wrap it in a function")
        ) from error
    hints = _get_hints(inner, name, names)
    problems: list[Problem] = []
    takes = [
        take for each in parameters
        if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD) and (take := _parse(each, hints, name, problems))
    ]  # fmt: skip
    if problems:
        raise RecipeError(*problems)
    return System(function, name, tuple(takes), _return_types(hints.get("return", _UNTOLD)))


def name_of(function: Any) -> str:
    """Return the name of a function or, for a callable object, of its class."""
    inner = _unwrap_partials(function)
    return str(getattr(inner, "__name__", type(inner).__name__))


def _unwrap_partials(function: Any) -> Any:
    """Return the function inside a functools.partial, which has the annotations and the name."""
    while isinstance(function, partial):
        function = function.func
    return function


def _get_hints(function: Any, name: str, names: Mapping[str, Any]) -> dict[str, Any]:
    """Return the annotations of a function as types."""
    written = function if is_function(function) else type(function).__call__
    inner = inspect.unwrap(written)
    code, cells = getattr(inner, "__code__", None), getattr(inner, "__closure__", None) or ()
    around = dict(names)
    for word, cell in zip(code.co_freevars if code else (), cells, strict=False):
        try:
            around[word] = cell.cell_contents
        except ValueError:  # it is still empty
            continue
    try:
        return get_type_hints(written, localns=around, include_extras=True)
    except Exception as error:
        raise RecipeError(
            _make_signature_problem(name, f"its annotations cannot be read: {type(error).__name__}: {error}",
                   "define the types before the function, and apply @system where they are in scope")
        ) from error  # fmt: skip


def _parse(
    parameter: inspect.Parameter, hints: Mapping[str, Any], name: str, problems: list[Problem]
) -> SystemParameter | None:
    """Return what a parameter requires; None if it uses its default."""
    hint, optional = hints.get(parameter.name, Any), parameter.default is not parameter.empty
    none = False
    if get_origin(hint) in UNIONS and type(None) in get_args(hint):
        others = [each for each in get_args(hint) if each is not type(None)]
        hint, none = (others[0], True) if len(others) == 1 else (hint, False)
    by_name = parameter.kind is not parameter.POSITIONAL_ONLY
    if hint is SystemContext and by_name:
        return SystemParameter(parameter.name, "context", None, needed=True)
    marks = [extra for extra in getattr(hint, "__metadata__", ()) if isinstance(extra, ParameterRole)]
    if marks and by_name:
        return SystemParameter(
            parameter.name, marks[0].role, get_args(hint)[0], not (optional or none), none and not optional
        )
    if not optional:
        why = f"its parameter {parameter.name!r} does not declare the source of its value"
        order = f"annotate it: {parameter.name}: Out[T], Res[T] or SystemContext, or add a default"
        if not by_name:
            why, order = f"its parameter {parameter.name!r} cannot be passed by name", "remove the '/' in its signature"
        problems.append(_make_signature_problem(name, why, order))
    return None


def _return_types(hint: Any) -> tuple[Any, ...] | None:
    """Return the types in a return annotation; None if it does not declare them."""
    if get_origin(hint) in (Awaitable, Coroutine):
        hint = get_args(hint)[-1]
    while hasattr(hint, "__metadata__"):
        hint = get_args(hint)[0]
    if hint is None or hint is type(None):
        return ()
    members = list_members(hint)
    return None if hint is _UNTOLD or Any in members or object in members else members


def _make_signature_problem(name: str, why: str, do: str) -> Problem:
    """R199: a function cannot be called as a system."""
    return Problem("R199", f"{name!r} is not a system", f"system {name!r}", why, do)


__all__ = [
    "Out",
    "ParameterRole",
    "Res",
    "System",
    "SystemContext",
    "is_system",
    "name_of",
    "read_system",
    "system",
    "to_system",
]  # fmt: skip
