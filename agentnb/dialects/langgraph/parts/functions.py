"""How LangGraph's runnables are called. A plain function is called directly, with the arguments that it declares.

If a runnable has a sync and an async function, LangGraph calls the sync one from `invoke` and the async one from
`ainvoke`.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

from agentnb.dialects.langgraph.parts import package as lg
from agentnb.dialects.langgraph.schema import is_entrypoint, is_state_graph
from agentnb.recipe.user_functions import get_own_attribute, is_function


def unwrap_function(runnable: Any) -> Any:
    """Return the function that a runnable wraps, even within a config or before fallbacks; else what it wraps."""
    while isinstance(runnable, lg.RunnableBinding | lg.RunnableWithFallbacks):
        runnable = runnable.bound if isinstance(runnable, lg.RunnableBinding) else runnable.runnable
    for name in ("func", "afunc"):
        function = get_own_attribute(runnable, name)
        if function is not None:
            return function
    return runnable


class Caller(NamedTuple):
    """How a runnable is called with (input, config), and whether its result is awaited."""

    call: Callable[[Any, dict[str, Any]], Any]
    is_async: bool


class Callers(NamedTuple):
    """How a runnable is called by `invoke` (`plain`) and by `ainvoke` (`awaited`).

    Both are the same unless the runnable has a sync function and an async one.
    """

    plain: Caller
    awaited: Caller

    @property
    def differ(self) -> bool:
        """Return True if there is a sync function and an async one."""
        return self.plain is not self.awaited


def make_callers(runnable: Any) -> Callers:
    """Return how a runnable is called."""
    if isinstance(runnable, lg.RunnableCallable) and not runnable.explode_args:
        callers = [
            Caller(_make_call(runnable, function), is_async)
            for function, is_async in ((runnable.func, False), (_get_async_function(runnable), True))
            if function is not None
        ]
        return Callers(callers[0], callers[-1])
    if hasattr(runnable, "invoke"):
        awaited = Caller(runnable.ainvoke, is_async=True)
        return Callers(awaited if is_only_async(runnable) else Caller(runnable.invoke, is_async=False), awaited)
    only = Caller(lambda value, _: runnable(value), inspect.iscoroutinefunction(runnable))
    return Callers(only, only)


def _get_async_function(runnable: Any) -> Any:
    """Return the async function of a RunnableCallable; None if it only calls the sync one in a thread."""
    function = runnable.afunc
    return None if isinstance(function, partial) and function.func is lg.run_in_executor else function


def _make_call(runnable: Any, function: Callable[..., Any]) -> Callable[[Any, dict[str, Any]], Any]:
    accepts = dict(runnable.func_accepts)
    kwargs = dict(runnable.kwargs)
    if not accepts and not kwargs:
        return lambda value, _: function(value)
    injected = [(name, key, default) for name, (key, default) in accepts.items() if name not in kwargs]
    return lambda value, config: function(value, **kwargs, **_make_arguments(injected, config))


def is_only_async(*runnables: Any) -> bool:
    """Return True if LangGraph can await these but not invoke them, because a part of them has no sync function.

    This covers nodes and conditions of graphs, steps of sequences, tools, middleware of agents, and the runnables that
    functions refer to.
    """
    return any(map(_lacks_sync_function, _walk(runnables)))


def is_only_sync(*runnables: Any) -> bool:
    """Return True if LangGraph can invoke these but not await them, because some middleware has no async function."""
    wrappers = _list_unimplemented_wrappers(awaited=True)
    return bool(wrappers) and any(
        getattr(each, "__func__", None) in wrappers for each in _walk(runnables, awaited=True) if is_function(each)
    )


def _walk(runnables: Iterable[Any], *, awaited: bool = False) -> Iterator[Any]:
    """Yield runnables and all of their parts, each once; with `awaited`, only the parts that are awaited."""
    candidates, known = list(runnables), set[int]()
    for candidate in candidates:  # the list grows during the loop
        if id(candidate) not in known:
            known.add(id(candidate))
            yield candidate
            candidates += _list_parts(candidate, awaited=awaited)


def _lacks_sync_function(runnable: Any) -> bool:
    if is_function(runnable):
        return getattr(runnable, "__func__", None) in _list_unimplemented_wrappers()
    if isinstance(runnable, lg.RunnableLambda):
        return not hasattr(runnable, "func")
    return isinstance(runnable, lg.RunnableCallable | lg.StructuredTool) and runnable.func is None


def _list_unimplemented_wrappers(*, awaited: bool = False) -> list[Any]:
    """Return the sync (or async) functions of the middleware base class, which only raise.

    Middleware that defines only the other form inherits them.
    """
    module = sys.modules.get("langchain.agents.middleware.types")
    if module is None:
        return []
    names = ("awrap_model_call", "awrap_tool_call") if awaited else ("wrap_model_call", "wrap_tool_call")
    return [getattr(module.AgentMiddleware, name) for name in names]


def _list_middleware(function: Any) -> list[Any]:
    """Return the middleware functions that a function of an agent has in its closure."""
    if not str(getattr(function, "__module__", "")).startswith("langchain.agents."):
        return []
    cells = getattr(function, "__closure__", None) or ()
    values = [_get_cell_value(cell) for cell in cells]
    return [getattr(each, "__wrapped__", each) for each in values if is_function(each)]


def _get_cell_value(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # the cell is empty
        return None


def _list_parts(runnable: Any, *, awaited: bool) -> list[Any]:
    """Return the runnables that a runnable consists of, or that its sync (or async) function refers to."""
    if is_function(runnable):
        return _list_middleware(runnable)
    if is_state_graph(runnable):
        specs, branches = runnable.builder.nodes.values(), runnable.builder.branches.values()
        return [spec.runnable for spec in specs] + [each.path for group in branches for each in group.values()]
    if is_entrypoint(runnable):
        return [process.bound for process in runnable.nodes.values()]
    if isinstance(runnable, lg.RunnableCallable):
        function = runnable.afunc if awaited else runnable.func
        references = [getattr(each, "__self__", each) for each in lg.get_function_nonlocals(function)]
        references += getattr(runnable, "tools_by_name", {}).values()  # of a ToolNode
        wrapper = getattr(runnable, "_awrap_tool_call" if awaited else "_wrap_tool_call", None)
        wrappers = [] if wrapper is None else [getattr(wrapper, "__wrapped__", wrapper)]
        return [each for each in references if isinstance(each, lg.Runnable)] + _list_middleware(function) + wrappers
    if isinstance(runnable, lg.RunnableLambda):
        return list(runnable.deps)
    if isinstance(runnable, lg.RunnableSequence | lg.RunnableSeq):
        return list(runnable.steps)
    return [runnable.bound] if isinstance(runnable, lg.RunnableBinding) else []


def _make_arguments(injected: list[tuple[str, str, Any]], config: dict[str, Any]) -> dict[str, Any]:
    configurable = config["configurable"]
    runtime = configurable[lg.keys.CONFIG_KEY_RUNTIME]
    arguments: dict[str, Any] = {}
    for name, key, default in injected:
        if name == "config":
            arguments[name] = config
        elif name == "runtime":
            arguments[name] = runtime
        elif name == "error":
            arguments[name] = configurable.get(lg.keys.CONFIG_KEY_NODE_ERROR, default)
        else:
            value = getattr(runtime, key, None)
            if value is None and default is not inspect.Parameter.empty:
                value = default
            arguments[name] = value
    return arguments
