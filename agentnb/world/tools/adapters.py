"""Adapters that turn the object named by an `impl` into a tool: functions, classes, objects with `invoke` or `run`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from agentnb.errors import ExecutionError, Problem, RecipeError, did_you_mean, format_error_line, with_article
from agentnb.recipe.model import ToolSpec
from agentnb.recipe.user_functions import COLLECT, GENERATES, get_own_attribute, is_async, is_function, is_generator
from agentnb.world.tools.invocation import LISTS, Tool, bind_tool, name_tool


def to_tool(spec: ToolSpec, implementation: Any, config: Mapping[str, Any]) -> Tool:
    """Return an object as a tool: by its `invoke` or `run` if it has one, else called with keyword arguments.

    R161: the object that a tool's `impl` names cannot be used as one.

    Raises:
        RecipeError: R161, it can be neither invoked nor called, or its class cannot be instantiated.
    """
    rest = dict(config)
    init, key = rest.pop("init", None), rest.pop("input_key", None)
    if spec.mode == "class" or (spec.kind == "langchain" and inspect.isclass(implementation)):
        implementation = _make(spec, implementation, init)
    elif init is not None:
        rest["init"] = init  # an ordinary argument
    method = _find_method(spec, implementation)
    if method is not None:
        return _make_invoker(spec, method, rest, key)
    if not callable(implementation):
        raise RecipeError(
            _make_problem(spec, f"{spec.impl!r} is {with_article(type(implementation).__name__)}, and cannot be called",
                   "a tool is a function, or an object with __call__, invoke or run",
                   "name a function after the '#', or set `mode: class` for a class")
        )  # fmt: skip
    if is_generator(implementation):
        raise RecipeError(_make_problem(spec, f"{spec.impl or spec.id!r} is a generator function", GENERATES, COLLECT))
    return bind_tool(spec, implementation, rest if key is None else rest | {"input_key": key})


def _make(spec: ToolSpec, cls: Any, init: Any) -> Any:
    """R161: the object that a tool's `impl` names cannot be used as one."""
    if not inspect.isclass(cls):
        raise RecipeError(
            _make_problem(spec, f"{spec.impl!r} is not a class, and the tool's mode is class",
                   f"it is {with_article(type(cls).__name__)}",
                   "name a class after the '#', or leave `mode` out")
        )  # fmt: skip
    if init is not None and not isinstance(init, Mapping):
        raise RecipeError(
            _make_problem(spec, f"`init` of tool {spec.id!r} is {with_article(type(init).__name__)}",
                   "it contains the keyword arguments for the class", "write a mapping under `config.init`")
        )  # fmt: skip
    try:
        return cls(**{str(name): value for name, value in (init or {}).items()})
    except Exception as error:
        message = format_error_line(error)
        problem = _make_problem(spec, f"{cls.__name__} cannot be made for tool {spec.id!r}", message,
                         f"see `config.init`; it has: {', '.join(map(str, init or {})) or 'nothing'}")  # fmt: skip
        raise RecipeError(problem) from error


def _find_method(spec: ToolSpec, implementation: Any) -> Callable[[Any], Any] | None:
    """Return the method that takes an object's whole payload.

    None for a function, a class, or an object without one.
    """
    if is_function(implementation) or inspect.isclass(implementation):
        return None
    later = get_own_attribute(implementation, "ainvoke")
    only_later = (
        get_own_attribute(implementation, "coroutine") is not None and get_own_attribute(implementation, "func") is None
    )
    if callable(later) and (only_later or not callable(get_own_attribute(implementation, "invoke"))):
        return later  # type: ignore[no-any-return]  # an object without types
    names = ("invoke", "run") if spec.kind == "langchain" or not callable(implementation) else ("invoke",)
    methods = (get_own_attribute(implementation, name) for name in names)
    return next((method for method in methods if callable(method)), None)


def _make_invoker(spec: ToolSpec, method: Callable[[Any], Any], config: Mapping[str, Any], key: str | None) -> Tool:
    def payload(inputs: Mapping[str, Any]) -> Any:
        values = {**config, **inputs}
        values.pop("timeout", None)
        if key is None:
            return values
        if key in values:
            return values[key]
        raise ExecutionError(
            Problem("X352", f"tool {spec.id!r} received no {key!r}", str(spec.place or f"tool {spec.id!r}"),
                    f"its `input_key` is {key!r}, and it received: {', '.join(values) or 'nothing'}",
                    did_you_mean(key, values, f"pass {key!r} in the node's inputs, or in the tool's config"))
        )  # fmt: skip

    if is_async(method):

        async def acall(**inputs: Any) -> dict[str, Any]:
            return describe_answer(await method(payload(inputs)))

        return name_tool(acall, spec, takes=False)

    def call(**inputs: Any) -> dict[str, Any]:
        return describe_answer(method(payload(inputs)))

    return name_tool(call, spec, takes=False)


def describe_answer(value: Any) -> dict[str, Any]:
    """Return the answer of an invoked object under the keys that every tool result has.

    Example:
        >>> describe_answer({"output": "42"})["text"]
        '42'
    """
    text, json, items = None, None, None
    if isinstance(value, Mapping):
        json = dict(value)
        text = next((value[key] for key in ("text", "output") if isinstance(value.get(key), str)), None)
        items = value[LISTS[0]] if isinstance(value.get(LISTS[0]), list) else None
    elif isinstance(value, list):
        items = value
    elif value is not None:
        text = value if isinstance(value, str) else str(value)
    return {"status": 200, "json": json, "text": text, "items": items, "result": value, "error": None}


def _make_problem(spec: ToolSpec, what: str, why: str, do: str) -> Problem:
    """R161: the object that a tool's `impl` names cannot be used as one."""
    return Problem("R161", what, str(spec.place or f"tool {spec.id!r}"), why, do)
