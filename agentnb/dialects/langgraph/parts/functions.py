"""How LangGraph's runnables are called: a plain function at once, with the arguments that it asks for."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from agentnb.dialects.langgraph.parts import package as lg


def unwrap_function(runnable: Any) -> Any:
    """Return the function that a runnable wraps, else the runnable."""
    for name in ("func", "afunc"):
        found = getattr(runnable, name, None)
        if found is not None:
            return found
    return runnable


def make_caller(runnable: Any) -> tuple[Callable[[Any, dict[str, Any]], Any], bool]:
    """Return a function of (input, config) that calls a runnable, and whether it is async."""
    if isinstance(runnable, lg.RunnableCallable) and not runnable.explode_args:
        function = runnable.func if runnable.func is not None else runnable.afunc
        is_async = runnable.func is None
        accepts = dict(runnable.func_accepts)
        given = dict(runnable.kwargs)
        if not accepts and not given:
            return (lambda value, _: function(value)), is_async
        wanted = [(name, key, default) for name, (key, default) in accepts.items() if name not in given]
        return (lambda value, config: function(value, **given, **_make_arguments(wanted, config))), is_async
    if hasattr(runnable, "invoke"):
        return runnable.invoke, False
    return (lambda value, _: runnable(value)), inspect.iscoroutinefunction(runnable)


def _make_arguments(wanted: list[tuple[str, str, Any]], config: dict[str, Any]) -> dict[str, Any]:
    configurable = config["configurable"]
    runtime = configurable[lg.keys.CONFIG_KEY_RUNTIME]
    found: dict[str, Any] = {}
    for name, key, default in wanted:
        if name == "config":
            found[name] = config
        elif name == "runtime":
            found[name] = runtime
        elif name == "error":
            found[name] = configurable.get(lg.keys.CONFIG_KEY_NODE_ERROR, default)
        else:
            value = getattr(runtime, key, None)
            if value is None and default is not inspect.Parameter.empty:
                value = default
            found[name] = value
    return found
