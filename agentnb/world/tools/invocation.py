"""Calling a tool with keyword arguments, and classifying its answer: a result, or a failure."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from agentnb.board.values import is_truthy
from agentnb.errors import format_error_line
from agentnb.recipe.model import ToolSpec
from agentnb.recipe.user_functions import is_async
from agentnb.text import LONGEST_TEXT, safe_repr, safe_str

Tool = Callable[..., Any]
LISTS: Final = ("items", "results", "data")  # the keys under which an answer holds its main list


def to_result(value: Any) -> Mapping[str, Any]:
    """Return a tool's return value as a mapping: unchanged, or else under `result`, a string also under `text`.

    Example:
        >>> to_result("hello")
        {'result': 'hello', 'text': 'hello'}
    """
    if isinstance(value, Mapping):
        return value
    return {"result": value, "text": value if isinstance(value, str) else None}


def find_failure(result: Any) -> str | None:
    """Return why a tool's result is a failure: the value of its `error`, as text; None if it is not a failure.

    Example:
        >>> find_failure({"error": {"type": "quota", "message": "come back tomorrow"}})
        'quota: come back tomorrow'
        >>> find_failure({"error": None, "text": "fine"})
    """
    error = result.get("error") if isinstance(result, Mapping) else None
    if not is_truthy(error):
        return None
    if isinstance(error, Mapping):
        texts = [str(error[key]) for key in ("type", "message") if is_truthy(error.get(key))]
        return safe_str(": ".join(texts), LONGEST_TEXT) or safe_repr(dict(error), 2000)
    return format_error_line(error) if isinstance(error, BaseException) else safe_str(error, LONGEST_TEXT)


def find_items(answer: Any, keys: Iterable[str] = LISTS) -> list[Any] | None:
    """Return the list that an answer is or contains: itself, or the first list under `keys`; None if there is none."""
    if isinstance(answer, list):
        return answer
    if isinstance(answer, Mapping):
        return next((answer[key] for key in keys if isinstance(answer.get(key), list)), None)
    return None


def takes_timeout(function: Tool) -> bool:
    """Return True if a callable accepts the keyword `timeout`; a tool of `load_tools` reports this for its function."""
    known = getattr(function, "__dict__", {}).get("takes_timeout")
    if isinstance(known, bool):
        return known
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):  # a builtin without a signature
        return False
    named = parameters.get("timeout")
    if named is not None and named.kind not in (named.POSITIONAL_ONLY, named.VAR_POSITIONAL):
        return True
    return any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())


def bind_tool(spec: ToolSpec, function: Tool, config: Mapping[str, Any]) -> Tool:
    """Return the tool that calls `function` with its config and the inputs, which override it.

    A function with a parameter `timeout` (seconds) gets the tool's, unless the inputs set one. The tool is async if and
    only if the function is, so that the engine awaits it instead of using a thread.
    """
    takes = takes_timeout(function)

    def make_keywords(inputs: Mapping[str, Any]) -> dict[str, Any]:
        values = {**copy.deepcopy(dict(config)), **inputs}  # a tool may change its arguments
        if not takes:
            values.pop("timeout", None)
        elif spec.timeout is not None:
            values.setdefault("timeout", spec.timeout)
        return values

    if is_async(function):

        async def acall(**inputs: Any) -> Any:
            return await function(**make_keywords(inputs))

        return name_tool(acall, spec, takes=takes)

    def call(**inputs: Any) -> Any:
        return function(**make_keywords(inputs))

    return name_tool(call, spec, takes=takes)


def name_tool(call: Tool, spec: ToolSpec, *, takes: bool, close: Callable[[], None] | None = None) -> Tool:
    """Set a tool's name and attributes: whether it takes a timeout, and how it is closed."""
    call.__name__ = call.__qualname__ = spec.id
    call.__dict__.update(takes_timeout=takes, close=close)
    return call
