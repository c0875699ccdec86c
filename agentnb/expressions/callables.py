"""Callables as conditions: functions of the board, how they are checked, and the text shown for them."""

from __future__ import annotations

import ast
import inspect
import textwrap
from typing import Any

from agentnb.errors import Place, Problem, RecipeError, with_article
from agentnb.recipe.user_functions import GENERATES, UNKNOWN_SOURCE, is_async, is_generator, source_lines
from agentnb.text import safe_repr

__all__ = ["check_callable", "get_callable_text", "make_condition_problem"]


def check_callable(value: Any, place: Place | None) -> None:
    """Raise RecipeError, R310, if `value` cannot be called with the board alone, or is asynchronous."""
    order = "write an expression (score > 3), a JsonLogic dict or a function of the board"
    if not callable(value):
        raise RecipeError(make_condition_problem(value, place, f"it is {with_article(type(value).__name__)}", order))
    if is_async(value):
        raise RecipeError(
            make_condition_problem(value, place, "an async function has no answer at once", "write a plain one")
        )
    if is_generator(value):
        raise RecipeError(make_condition_problem(value, place, GENERATES, "write a plain function"))
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return  # some built-in functions have no signature
    try:
        signature.bind({})
    except TypeError as error:
        why = f"it cannot be called with the board alone: {error}"
        raise RecipeError(make_condition_problem(value, place, why, "let it take one argument, the board")) from None


def make_condition_problem(value: Any, place: Place | None, why: str, order: str) -> Problem:
    """Return the Problem of a value that is not a condition."""
    return Problem("R310", f"{safe_repr(value, 200)} is not a condition", str(place or "<condition>"), why, order)


def get_callable_text(function: Any) -> str:
    """Return the source of a lambda if it is available, otherwise the callable's name."""
    name = getattr(function, "__name__", type(function).__name__)
    if name != "<lambda>":
        return str(name)
    try:
        tree = ast.parse(textwrap.dedent("".join(source_lines(function)[0])).strip())
    except UNKNOWN_SOURCE:
        return "a lambda"
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Lambda)]
    return ast.unparse(found[0].body) if len(found) == 1 else "a lambda"
