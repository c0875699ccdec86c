"""checks: what a session refuses, and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from agentnb.errors import ExecutionError, Problem, RecipeError, did_you_mean
from agentnb.recipe.model import Recipe

if TYPE_CHECKING:
    from agentnb.session.core import Core

# JSON Schema's simple types.
_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list, tuple),
    "object": (dict, Mapping),
    "null": (type(None),),
}


def check_recipe(recipe: Any) -> None:
    """Raise for what is no recipe, or a recipe with errors.

    Raises:
        ExecutionError: X117, it is something else.
        RecipeError: every error of the recipe.
    """
    if not isinstance(recipe, Recipe):
        raise ExecutionError(
            Problem(
                "X117",
                f"a {type(recipe).__name__} is no recipe",
                "Session(recipe)",
                "a session runs what load() returns",
                "write Session(agentnb.load(...))",
            )
        )
    errors = [problem for problem in recipe.check() if problem.severity == "error"]
    if errors:
        raise RecipeError(*errors)


def check_inputs(recipe: Recipe, inputs: Mapping[str, Any]) -> None:
    """Raise for inputs that the recipe declares and that are missing or of a wrong type; others are welcome.

    Raises:
        RecipeError: R205, a required input is missing; R206, an input has a wrong type.
    """
    problems = []
    known = {**recipe.init, **inputs}
    for name in recipe.meta.get("required", ()):
        if name not in known:
            extra = [given for given in inputs if given not in recipe.inputs]
            problems.append(
                Problem("R205", f"input {name!r} is missing", "Session(inputs=...)",
                        f"{recipe.name!r} requires it; given were: {', '.join(inputs) or 'none'}",
                        did_you_mean(name, extra, f"pass {{{name!r}: ...}}"))
            )  # fmt: skip
    for name, schema in recipe.inputs.items():
        wanted = schema.get("type") if isinstance(schema, Mapping) else None
        kinds = [kind for kind in ([wanted] if isinstance(wanted, str) else wanted or ()) if kind in _TYPES]
        if name in inputs and kinds and not any(_fits(inputs[name], kind) for kind in kinds):
            problems.append(
                Problem("R206", f"input {name!r} is a {type(inputs[name]).__name__}", "Session(inputs=...)",
                        f"{recipe.name!r} declares it as {' or '.join(kinds)}",
                        f"pass a {kinds[0]}, or validate_inputs=False")
            )  # fmt: skip
    if problems:
        raise RecipeError(*problems)


def _fits(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, _TYPES[kind])


def not_running(session: Core, verb: str) -> None:
    """Raise while a live run goes on.

    Raises:
        ExecutionError: X112, it runs.
    """
    if session.live.moves:
        raise ExecutionError(
            Problem(
                "X112",
                f"{verb} cannot be done while the session is running: pause() first",
                f"session {session.name!r}, after step {session.engine.position}",
                "start(), arun() or astep() moves it, and only one thing at a time may",
                "call session.pause(), then `await session.wait()`, then try again",
            )
        )


def refuse_step(session: Core, step: Any) -> None:
    """Raise for a step that this run does not have.

    X111: there is no such step, or no such event to fork at.

    Raises:
        ExecutionError: X111, there is no such step.
    """
    tip = session.engine.history.tip
    if isinstance(step, bool) or not isinstance(step, int) or not 0 <= step <= tip:
        raise ExecutionError(
            Problem(
                "X111",
                f"there is no step {step!r}",
                f"session {session.name!r}",
                f"its steps are 1 to {tip}, and 0 is before the first",
                "name one of them, or run on",
            )
        )
