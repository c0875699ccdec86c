"""callables: functions of the board as conditions: what they must be, and how people read them."""

from __future__ import annotations

import ast
import inspect
import textwrap
from typing import Any

from agentnb.errors import Place, Problem, RecipeError

__all__ = ["callable_text", "check_callable", "no_condition"]


def check_callable(value: Any, place: Place | None) -> None:
    """Raise RecipeError, R310, where `value` cannot be called with the board alone, or answers later."""
    order = "write an expression (score > 3), a JsonLogic dict or a function of the board"
    if not callable(value):
        raise RecipeError(no_condition(value, place, f"it is a {type(value).__name__}", order))
    if inspect.iscoroutinefunction(value) or inspect.iscoroutinefunction(getattr(value, "__call__", None)):  # noqa: B004
        raise RecipeError(no_condition(value, place, "an async function has no answer at once", "write a plain one"))
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return  # some built-in functions do not tell
    try:
        signature.bind({})
    except TypeError as error:
        why = f"it cannot be called with the board alone: {error}"
        raise RecipeError(no_condition(value, place, why, "let it take one argument, the board")) from None


def no_condition(value: Any, place: Place | None, why: str, order: str) -> Problem:
    """Return the Problem of what is no condition."""
    return Problem("R310", f"{str(value)[:200]!r} is no condition", str(place or "<condition>"), why, order)


def callable_text(function: Any) -> str:
    """Return a lambda's own words where its source can be read, else the callable's name."""
    name = getattr(function, "__name__", type(function).__name__)
    if name != "<lambda>":
        return str(name)
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)).strip())
    except (OSError, TypeError, SyntaxError):
        return "a lambda"
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Lambda)]
    return ast.unparse(found[0].body) if len(found) == 1 else "a lambda"
