"""Inspection of user functions: whether they are async or generators, and whether a call has run them."""

from __future__ import annotations

import functools
import inspect
import tokenize
from types import AsyncGeneratorType, CoroutineType, FunctionType, GeneratorType
from typing import Any, Final

# Raised by `read_source_lines` if the source is missing or has changed since it was loaded.
UNKNOWN_SOURCE: Final = (OSError, TypeError, IndexError, SyntaxError, tokenize.TokenError)
# The file of code compiled from a string by `exec` and `eval`. Since Python 3.13, it is also that of the program of
# `python -c`, whose text Python then takes for the source of all such code.
NO_FILE: Final = "<string>"
GENERATES: Final = "calling a generator function does not run it, it only returns a generator"
COLLECT: Final = "return a list of the yielded values"
_MISSING: Final = object()
_UNRUN: Final[dict[type, str]] = {
    GeneratorType: "a generator",
    AsyncGeneratorType: "an async generator",
    CoroutineType: "a coroutine",
    map: "a map object",
    filter: "a filter object",
}


def read_source_lines(function: Any) -> tuple[list[str], int]:
    """Return the lines of a function's source, and the number of the first.

    Raises:
        UNKNOWN_SOURCE: the source is not known.
    """
    if getattr(getattr(function, "__code__", None), "co_filename", None) == NO_FILE:
        raise OSError("it was compiled from a string")
    return inspect.getsourcelines(function)


def get_own_attribute(value: Any, name: str, default: Any = None) -> Any:
    """Return an attribute of a user's object; the default for one that its `__getattr__` makes, or fails to make.

    A proxy answers for the object behind it, a Mock for everything, and both may raise any error.
    """
    return default if inspect.getattr_static(value, name, _MISSING) is _MISSING else getattr(value, name, default)


def is_function(value: Any) -> bool:
    """Return True for a function, a method or a built-in; False for a `partial`, a routine from Python 3.14 on."""
    return inspect.isroutine(value) and not isinstance(value, functools.partial)


def is_async(function: Any) -> bool:
    """Return True if a call returns a coroutine: an async function, a `partial` of one, or an async `__call__`."""
    return inspect.iscoroutinefunction(_unwrap_function(function))


def is_generator(function: Any) -> bool:
    """Return True if a call returns a generator, sync or async.

    Example:
        >>> def count():
        ...     yield 1
        >>> is_generator(count), is_generator(lambda: 1)
        (True, False)
    """
    if type(function) is FunctionType:  # by far the most common
        return function.__code__.co_flags & (inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR) > 0
    called = _unwrap_function(function)
    return inspect.isgeneratorfunction(called) or inspect.isasyncgenfunction(called)


def _unwrap_function(function: Any) -> Any:
    """Return the function that a call runs: without `partial`, and for an object its `__call__`."""
    while isinstance(function, functools.partial):
        function = function.func
    if is_function(function) or inspect.isclass(function):
        return function
    return getattr(function, "__call__", None)  # noqa: B004  (what it is, not whether it is there)


def find_unrun(value: Any) -> str | None:
    """Return what a call returned instead of running its function, such as "a generator"; None if it ran."""
    return _UNRUN.get(type(value))


def describe_how_to_run(value: Any) -> str:
    """Return the remedy for a value that `find_unrun` names. A coroutine is closed, so that Python does not warn."""
    if isinstance(value, CoroutineType):
        value.close()
        return "write `await` before the call that made it, in an async function"
    return COLLECT if find_unrun(value) in ("a generator", "an async generator") else "return a list: list(...)"


def check_ran(value: Any) -> Any:
    """Return the result of a call.

    Raises:
        TypeError: it is a generator, a coroutine or similar: nothing has run.
    """
    unrun = find_unrun(value)
    if unrun is not None:
        raise TypeError(f"it returned {unrun}, which has not run; {describe_how_to_run(value)}")
    return value
