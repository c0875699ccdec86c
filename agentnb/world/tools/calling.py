"""calling: how a tool is called by keyword, and what its answer means: a result, or a failure."""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from agentnb.board.secrets import hidden
from agentnb.recipe.model import ToolSpec

Tool = Callable[..., Any]
LISTS: Final = ("items", "results", "data")  # where an answer keeps the list that it is about


def as_result(value: Any) -> Mapping[str, Any]:
    """Return what a tool returned as a mapping: a mapping as it is, anything else under `result`, a text as `text` too.

    Example:
        >>> as_result("hello")
        {'result': 'hello', 'text': 'hello'}
    """
    if isinstance(value, Mapping):
        return value
    return {"result": value, "text": value if isinstance(value, str) else None}


def failure_of(result: Any) -> str | None:
    """Return why a tool's result is a failure: what stands under its `error`, as text; None where it is none.

    Example:
        >>> failure_of({"error": {"type": "quota", "message": "come back tomorrow"}})
        'quota: come back tomorrow'
        >>> failure_of({"error": None, "text": "fine"})
    """
    error = result.get("error") if isinstance(result, Mapping) else None
    if not error:
        return None
    if isinstance(error, Mapping):
        said = [str(error[key]) for key in ("type", "message") if error.get(key)]
        return hidden(": ".join(said) or str(dict(error)))
    return hidden(f"{type(error).__name__}: {error}" if isinstance(error, BaseException) else str(error))


def items_of(answer: Any, keys: Iterable[str] = LISTS) -> list[Any] | None:
    """Return the list that an answer is or holds: itself, or the first list under `keys`; None where there is none."""
    if isinstance(answer, list):
        return answer
    if isinstance(answer, Mapping):
        return next((answer[key] for key in keys if isinstance(answer.get(key), list)), None)
    return None


def is_async(function: Any) -> bool:
    """Say whether calling this gives a coroutine: an async function, one bound by `partial`, or an object's own."""
    while isinstance(function, functools.partial):
        function = function.func
    if inspect.isroutine(function) or inspect.isclass(function):
        return inspect.iscoroutinefunction(function)
    return inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004  (is it async, not: is it there)


def takes_timeout(function: Tool) -> bool:
    """Say whether a callable may be given `timeout` by keyword; a tool of `load_tools` answers for what it calls."""
    known = getattr(function, "__dict__", {}).get("takes_timeout")
    if isinstance(known, bool):
        return known
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):  # a builtin that does not tell
        return False
    named = parameters.get("timeout")
    if named is not None and named.kind not in (named.POSITIONAL_ONLY, named.VAR_POSITIONAL):
        return True
    return any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())


def bound(spec: ToolSpec, function: Tool, config: Mapping[str, Any]) -> Tool:
    """Return the tool that calls `function` with its config and the inputs, which win.

    A function that takes a `timeout` (seconds) is given the tool's, where the inputs say none; another never is.
    The tool is async exactly where the function is, so that the engine awaits it in place of giving it a thread.
    """
    takes = takes_timeout(function)

    def words(inputs: Mapping[str, Any]) -> dict[str, Any]:
        given = {**copy.deepcopy(dict(config)), **inputs}  # a tool may change what it is given
        if not takes:
            given.pop("timeout", None)
        elif spec.timeout is not None:
            given.setdefault("timeout", spec.timeout)
        return given

    if is_async(function):

        async def acall(**inputs: Any) -> Any:
            return await function(**words(inputs))

        return named(acall, spec, takes=takes)

    def call(**inputs: Any) -> Any:
        return function(**words(inputs))

    return named(call, spec, takes=takes)


def named(call: Tool, spec: ToolSpec, *, takes: bool, close: Callable[[], None] | None = None) -> Tool:
    """Give a tool its name, and what it tells about itself: whether it takes a timeout, and how it is closed."""
    call.__name__ = call.__qualname__ = spec.id
    call.__dict__.update(takes_timeout=takes, close=close)
    return call
