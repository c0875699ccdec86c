"""calls: how what a node calls is called: arguments, options, settings of a model; worked out once."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Final

from agentnb.board.values import ABSENT, ATOMS
from agentnb.errors import Problem, RecipeError
from agentnb.expressions.paths import Path
from agentnb.recipe.model import Node

Arguments = Callable[[Any], dict[str, Any]]
_PLAIN: Final = ATOMS - {type(ABSENT)}
_OPTIONS: Final = ("timeout", "attempts", "backoff", "blocking", "repeatable")
_NO_SETTINGS: Final = frozenset({"messages", "prompt"})  # what is asked is the node's own


def options_of(node: Node) -> Mapping[str, Any]:
    """Return how a node's effects are done, as its `params` say: by the names of Effect's fields, only those given.

    `timeout` and `backoff` are in seconds, `attempts` counts all of them; a timeout of 0 or less means none. What is
    `repeatable` may go out once more, where a run was cut before its answer came.
    """
    given = {name: node.params[name] for name in _OPTIONS if node.params.get(name) is not None}
    if given.get("timeout", 1) <= 0:
        del given["timeout"]
    return given


def asked_of(world: Any, options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return how a model is asked: where its answers are only made up, the effect says so."""
    return {**options, "made_up": True} if getattr(world.llm, "made_up", False) else options


def settings_of(model: Any) -> dict[str, Any]:
    """Return what a request to a model carries besides what is asked: the model's name, or all that a policy sets."""
    if isinstance(model, Mapping):
        return {str(name): value for name, value in model.items() if name not in _NO_SETTINGS and value is not None}
    return {} if model is None else {"model": str(model)}


def positional(function: Callable[..., Any]) -> int:
    """Return how many positional arguments a function needs or takes: 0 or 1; by keyword only counts as 0."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # a builtin that does not tell: it is given the board
        return 1
    places = (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        inspect.Parameter.VAR_POSITIONAL,
    )
    return int(any(parameter.kind in places for parameter in parameters))


def check_signature(node: Node, function: Callable[..., Any]) -> None:
    """Raise for a function that could never be called as its node asks.

    Raises:
        RecipeError: R201, an argument that the function does not take; R202, one that it needs and does not get.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    given = () if node.inputs is None else tuple(node.inputs)
    parameters = signature.parameters
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    named = {name for name, parameter in parameters.items() if parameter.kind in by_name}
    open_end = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    where = str(node.place or f"node {node.id!r}")
    name = getattr(function, "__qualname__", repr(function))
    problems = [
        Problem("R201", f"{argument!r} is no parameter of {name}", where, f"its signature is {name}{signature}",
                f"rename it in the inputs of {node.id!r}, or add it to the function")
        for argument in given if argument not in named and not open_end
    ]  # fmt: skip
    needed = [
        parameter.name for parameter in parameters.values()
        if parameter.default is parameter.empty and parameter.kind in by_name
    ]  # fmt: skip
    missing = [argument for argument in needed if argument not in given]
    if node.inputs is None and len(missing) > 1:
        problems.append(
            Problem("R202", f"{name} needs {', '.join(map(repr, missing))}", where,
                    "a function without `inputs` gets one argument, the board",
                    f"give node {node.id!r} inputs for them")
        )  # fmt: skip
    elif node.inputs is not None and missing:
        problems.append(
            Problem("R202", f"{name} needs {', '.join(map(repr, missing))}", where,
                    f"the inputs of {node.id!r} give: {', '.join(given) or 'none'}", "add them to the inputs")
        )  # fmt: skip
    if problems:
        raise RecipeError(*problems)


def arguments_of(inputs: Mapping[str, Path]) -> Arguments:
    """Return the function that takes a node's arguments from the board; a path that leads nowhere is left out."""
    pairs = tuple((name, path[0] if len(path) == 1 else None, path) for name, path in inputs.items())

    def arguments(work: Any) -> dict[str, Any]:
        found, data = {}, work.scope.data
        for name, key, path in pairs:
            value = data.get(key, ABSENT)
            if value.__class__ not in _PLAIN:  # below a key, in an outer scope, a copy to make, or not there
                value = work.arg(path)
                if value is ABSENT:
                    continue
            found[name] = value
        return found

    return arguments


def as_writes(node: str, value: Any) -> Any:
    """Return what a function returned as writes: a mapping as it is, nothing for None, else under the node's id."""
    if value is None:
        return {}
    return value if value.__class__ is dict or isinstance(value, Mapping) else {node: value}
