"""The arguments and options of a node's calls, and the settings of its model; compiled once."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from agentnb.board.values import ABSENT, ATOMS
from agentnb.errors import Problem, RecipeError
from agentnb.expressions.paths import Path
from agentnb.recipe.model import Node
from agentnb.recipe.user_functions import COLLECT, GENERATES, is_generator
from agentnb.text import safe_repr

Arguments = Callable[[Any], dict[str, Any]]
_PLAIN: Final = ATOMS - {type(ABSENT)}
_OPTIONS: Final = ("timeout", "attempts", "backoff", "blocking", "repeatable")
RNG: Final = "rng"  # the parameter that receives the step's random generator
NO_SETTINGS: Final = frozenset({"messages", "prompt", "tools"})  # messages and tools are the node's own


def get_options(node: Node) -> Mapping[str, Any]:
    """Return the options of a node's effects from its `params`: Effect's field names, only those that are set.

    `timeout` and `backoff` are in seconds, `attempts` counts all of them; a timeout of 0 or less means none. A
    `repeatable` call may be sent again if a run was interrupted before its answer arrived.
    """
    options = {name: node.params[name] for name in _OPTIONS if node.params.get(name) is not None}
    if options.get("timeout", 1) <= 0:
        del options["timeout"]
    return options


def find_options(world: Any, options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the options of a model call; simulated answers are marked as such."""
    return {**options, "is_simulated": True} if getattr(world.llm, "is_simulated", False) else options


def make_settings(model: Any) -> dict[str, Any]:
    """Return the settings of a model request: the model's name, or everything that a policy sets."""
    if isinstance(model, Mapping):
        return {str(name): value for name, value in model.items() if name not in NO_SETTINGS and value is not None}
    return {} if model is None else {"model": str(model)}


def takes_board(function: Callable[..., Any]) -> bool:
    """Return True if a function without `inputs` is called with the board.

    It has one required positional parameter (`rng` does not count), or takes any number of them and requires none. A
    parameter with a default keeps its default.
    """
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # a builtin without a signature
        return True
    places = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    required = [each.name for each in parameters if each.kind in places and each.default is each.empty]
    if any(name != RNG for name in required):
        return True
    return any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters)


def add_rng(node: Node, function: Callable[..., Any]) -> Callable[[Any], Callable[..., Any]] | None:
    """Return a function that adds `rng` for the work of a step; None if there is no parameter of that name.

    An `rng` among the node's `inputs` is an ordinary argument.
    """
    try:
        parameter = inspect.signature(function).parameters.get(RNG)
    except (TypeError, ValueError):
        return None
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    if parameter is None or parameter.kind not in by_name or RNG in (node.inputs or ()):
        return None
    return lambda work: partial(function, **{RNG: work.random})


def check_runs(node: Node, function: Callable[..., Any]) -> None:
    """Raise an error for a function whose body does not run when it is called.

    R148: a function of a node is a generator function.

    Raises:
        RecipeError: R148, it is a generator function, sync or async.
    """
    if is_generator(function):
        where = str(node.place or f"node {node.id!r}")
        name = get_function_name(function)
        raise RecipeError(Problem("R148", f"{name} is a generator function", where, GENERATES, COLLECT))


def check_signature(node: Node, function: Callable[..., Any]) -> None:
    """Raise an error for a function that can never be called with its node's arguments.

    Raises:
        RecipeError: R148, a call would not run it; R201, it does not accept an argument; R202, a required argument is
            missing.
    """
    check_runs(node, function)
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    names = () if node.inputs is None else tuple(node.inputs)
    parameters = signature.parameters
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    named = {name for name, parameter in parameters.items() if parameter.kind in by_name}
    open_end = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    needed = [
        parameter.name for parameter in parameters.values()
        if parameter.default is parameter.empty and parameter.kind in by_name and parameter.name != RNG
    ]  # fmt: skip
    missing = [argument for argument in needed if argument not in names]
    if (open_end or named.issuperset(names)) and (len(missing) <= 1 if node.inputs is None else not missing):
        return  # the usual case; a session of a few steps would otherwise take noticeably longer
    where, name = str(node.place or f"node {node.id!r}"), get_function_name(function)
    problems = [
        Problem("R201", f"{argument!r} is not a parameter of {name}", where, f"its signature is {name}{signature}",
                f"rename it in the inputs of {node.id!r}, or add it to the function")
        for argument in names if argument not in named and not open_end
    ]  # fmt: skip
    if node.inputs is None and len(missing) > 1:
        problems.append(
            Problem("R202", f"{name} needs {', '.join(map(repr, missing))}", where,
                    "a function without `inputs` receives one argument, the board",
                    f"add inputs for them to node {node.id!r}")
        )  # fmt: skip
    elif node.inputs is not None and missing:
        problems.append(
            Problem("R202", f"{name} needs {', '.join(map(repr, missing))}", where,
                    f"the inputs of {node.id!r} are: {', '.join(names) or 'none'}", "add them to the inputs")
        )  # fmt: skip
    raise RecipeError(*problems)


def get_function_name(function: Callable[..., Any]) -> str:
    """Return the qualified name of a function, or a safe repr of a callable that has none."""
    name = getattr(function, "__qualname__", None)
    return safe_repr(function) if name is None else str(name)


def compile_arguments(inputs: Mapping[str, Path]) -> Arguments:
    """Return a function that reads a node's arguments from the board; paths without a value are left out."""
    pairs = tuple((name, path[0] if len(path) == 1 else None, path) for name, path in inputs.items())

    def read_arguments(work: Any) -> dict[str, Any]:
        arguments, data = {}, work.scope.data
        for name, key, path in pairs:
            value = data.get(key, ABSENT)
            if type(value) not in _PLAIN:  # below a key, in an outer scope, to be copied, or missing
                value = work.arg(path)
                if value is ABSENT:
                    continue
            arguments[name] = value
        return arguments

    return read_arguments


def to_writes(key: str, value: Any, *, as_value: bool = False) -> Any:
    """Return a function's return value as writes: a mapping itself (without `as_value`), none for None, else a key."""
    if type(value) is dict and not as_value:
        return value
    if value is None:
        return {}
    return value if isinstance(value, Mapping) and not as_value else {key: value}
