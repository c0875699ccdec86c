"""Tools by name, for the symphony system: registration, description, validation and execution.

An execution never raises. Its stages are look-up, validation, handler check, run, context, metrics. Callers that make
the call themselves can use the parts: `check`, `attempt`, `to_result`, `learn`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any, ClassVar, Final, Protocol, runtime_checkable

from agentnb.bounds import find_excess
from agentnb.clock import Clock
from agentnb.errors import ExecutionError, Problem, format_error
from agentnb.recipe.user_functions import is_async
from agentnb.text import safe_repr
from agentnb.world.tools.execution import Awaiting, Blocking, WaitMode, drive
from agentnb.world.tools.function_schema import find_hinted_model
from agentnb.world.tools.parameters import INSIDE, Parameters, copy_parts
from agentnb.world.tools.short_parameters import get_type_name
from agentnb.world.tools.tool_config import CONTEXT, ToolConfig
from agentnb.world.tools.tool_result import Detail, ToolMetrics, ToolResult, make_failure, to_result

LOG: Final = logging.getLogger("agentnb.tools")
_FAILURES: Final = (Exception, SystemExit, asyncio.CancelledError)


@runtime_checkable
class ContextIntelligenceAPI(Protocol):
    """The protocol of an object that learns from each run of a tool."""

    def update_learning_context(
        self, tool_name: str, parameters: dict[str, Any], result: Any, success: bool, context_data: dict[str, Any]
    ) -> Awaitable[None] | None:
        """Process a run; may be async. Exceptions are logged, and changes to the arguments have no effect.

        Args:
            result: the result of the tool.
            context_data: `execution_time` in seconds, `tool_type`.
        """


@dataclass(frozen=True, slots=True)
class _Registered:
    config: ToolConfig
    parameters: Parameters


class ToolRegistry:
    """Tools by name. Registries are independent; `get_instance()` returns the shared one.

    Attributes:
        context: learns from each run of a tool; None for no context.
    """

    _shared: ClassVar[ToolRegistry | None] = None
    _sharing: ClassVar[Lock] = Lock()

    def __init__(self, *, context: ContextIntelligenceAPI | None = None, clock: Clock | None = None) -> None:
        self.context = context
        self.clock = clock or Clock()
        self._tools: dict[str, _Registered] = {}
        self._lock = Lock()

    @classmethod
    def get_instance(cls) -> ToolRegistry:
        """Return the shared registry, created at the first call."""
        with ToolRegistry._sharing:
            if ToolRegistry._shared is None:
                ToolRegistry._shared = ToolRegistry()
            return ToolRegistry._shared

    # -- which there are -----------------------------------------------------------------------------------------------

    def register_tool(self, name: str, config: Any) -> ToolConfig:
        """Register a tool under a name, replacing an earlier one; return it as registered.

        A tool without a handler is registered with a warning: it can be described, but not executed.

        Args:
            config: anything that `ToolConfig.of` accepts: a ToolConfig, a mapping of its fields, or a function.

        Raises:
            RecipeError: all of its problems, R112, R114, R190 or R191.
        """
        registered = ToolConfig.of(name, config)
        if registered.handler is None:
            LOG.warning("tool %r has no handler: it can be described, not executed", name)
        with self._lock:
            self._tools[name] = _Registered(registered, registered.parameters())
        return registered

    def unregister_tool(self, name: str) -> bool:
        """Remove a tool; return True if it was registered."""
        with self._lock:
            return self._tools.pop(name, None) is not None

    def get_available_tools(self) -> list[str]:
        """Return the names of the tools, in the order in which each was first registered."""
        with self._lock:
            return list(self._tools)

    def get_tool_info(self, name: str) -> ToolConfig | None:
        """Return a tool; None if there is none with that name."""
        registered = self._find(name)
        return None if registered is None else registered.config

    def describe(self, name: str | None = None) -> Any:
        """Return a tool's description for a model: a dict of name, description and input_schema (a JSON Schema).

        Without a name, a list of all descriptions; None for an unknown name.
        """
        if name is None:
            with self._lock:
                tools = list(self._tools.values())
            return [_describe(tool) for tool in tools]
        registered = self._find(name)
        return None if registered is None else _describe(registered)

    # -- execution -----------------------------------------------------------------------------------------------------

    def execute_tool(self, name: str, params: Any = None, *, allowed: Collection[str] | None = None) -> ToolResult:
        """Run a tool and return its result; a failure is a result too.

        Blocks until it is done, even for an async tool and while an event loop is running. Each attempt has the tool's
        timeout; failed attempts are retried up to retry_count times.

        Args:
            params: a mapping; None and an empty list count as an empty mapping.
            allowed: names of the tools that may be run; None for all.
        """
        return drive(self._execute(name, params, allowed, Blocking()))

    async def aexecute_tool(
        self, name: str, params: Any = None, *, allowed: Collection[str] | None = None
    ) -> ToolResult:
        """Run a tool as `execute_tool` does, and await it: a plain function runs in a thread meanwhile."""
        return await self._execute(name, params, allowed, Awaiting())

    async def _execute(self, name: str, params: Any, allowed: Collection[str] | None, mode: WaitMode) -> ToolResult:
        start = self.clock.ns()
        registered, refused = self._check(name, params, allowed)
        if registered is None:
            return to_result(refused, str(name), ToolMetrics.of_ns(start, self.clock.ns()))
        call, config = _make_dict_handler(registered.config), registered.config
        for retries_left in range(config.retry_count, -1, -1):
            answer: Any
            try:
                answer = await mode.call(
                    lambda: call(_copy_parameters(params)), config.timeout, is_async=is_async(config.handler)
                )
            except _FAILURES as error:
                if isinstance(error, asyncio.CancelledError) and mode.is_cancelled():
                    raise
                answer = error
            result = to_result(answer, name, ToolMetrics.of_ns(start, self.clock.ns()))
            if result.success or not retries_left:
                break
            await mode.settle(self.clock.sleep(config.backoff) if config.backoff else None)
        await self._report(config, params, result, mode)
        return result

    # -- its parts -----------------------------------------------------------------------------------------------------

    def check(self, name: str, params: Any = None, allowed: Collection[str] | None = None) -> ToolResult | None:
        """Return why a tool cannot be run with these parameters, as a failed result; None if it can."""
        start = self.clock.ns()
        registered, refused = self._check(name, params, allowed)
        return None if registered else to_result(refused, str(name), ToolMetrics.of_ns(start, self.clock.ns()))

    def attempt(self, name: str) -> Callable[[Mapping[str, Any]], Any]:
        """Return a callable that makes one attempt: it takes the parameters and returns or raises what the tool does.

        It is async if and only if the tool is, and has no timeout or retries.

        Raises:
            ExecutionError: X360, there is no such tool, or it has no handler.
        """
        registered = self._find(name)
        if registered is None or registered.config.handler is None:
            raise ExecutionError(
                Problem(
                    "X360",
                    f"tool {safe_repr(name)} cannot be run",
                    "the registry of tools",
                    _describe_missing(name, self.get_available_tools())
                    if registered is None
                    else _describe_no_handler(name),
                    "call check(name, params) first",
                )
            )
        call = _make_dict_handler(registered.config)
        if is_async(registered.config.handler):

            async def aattempt(params: Mapping[str, Any]) -> Any:
                return await call(_copy_parameters(params))

            return aattempt
        return lambda params: call(_copy_parameters(params))

    @staticmethod
    def result_of(answer: Any, name: str, metrics: ToolMetrics | None = None) -> ToolResult:
        """Return an attempt's return value or exception as a ToolResult."""
        return to_result(answer, name, metrics)

    def learn(self, name: str, params: Any, result: ToolResult) -> None:
        """Update the context with a run that was made without `execute_tool`; never raises."""
        registered = self._find(name)
        if registered is not None:
            drive(self._report(registered.config, params, result, Blocking()))

    async def alearn(self, name: str, params: Any, result: ToolResult) -> None:
        """Update the context with a run, awaiting it if it is async; never raises."""
        registered = self._find(name)
        if registered is not None:
            await self._report(registered.config, params, result, Awaiting())

    async def _report(self, config: ToolConfig, params: Any, result: ToolResult, mode: WaitMode) -> None:
        context = self.context
        if context is None or config.type == CONTEXT:
            return
        seconds = 0.0 if result.metrics is None else result.metrics.duration
        try:
            await mode.settle(
                context.update_learning_context(
                    tool_name=config.name,
                    parameters=_copy_parameters(params),
                    result=copy_parts(result.result),
                    success=result.success,
                    context_data={"execution_time": seconds, "tool_type": config.type},
                )
            )
        except _FAILURES as error:
            if isinstance(error, asyncio.CancelledError) and mode.is_cancelled():
                raise
            LOG.warning(
                "the context was not updated with tool %r: %s: %s",
                config.name,
                type(error).__name__,
                format_error(error),
            )

    def _find(self, name: Any) -> _Registered | None:
        with self._lock:
            return self._tools.get(name) if isinstance(name, str) else None

    def _check(
        self, name: Any, params: Any, allowed: Collection[str] | None
    ) -> tuple[_Registered, None] | tuple[None, ToolResult]:
        """Return a tool that can be run with these parameters, or the failed result."""
        registered = self._find(name)
        if registered is None:
            return None, make_failure(_describe_missing(name, self.get_available_tools()))
        if allowed is not None and name not in allowed:
            listed = ", ".join(allowed) or "none"
            return None, make_failure(f"Tool {safe_repr(name)} is not allowed here. Allowed tools: {listed}")
        details = _find_errors(registered, params)
        if details:
            text = "; ".join(f"{each['path']}: {each['message']}" for each in details)
            return None, make_failure(f"Input validation failed for tool {safe_repr(name)}: {text}", details=details)
        if registered.config.handler is None:
            return None, make_failure(_describe_no_handler(name))
        return registered, None


def _make_dict_handler(config: ToolConfig) -> Callable[[dict[str, Any]], Any]:
    """Return a tool's handler as a function of a dict, even if it expects a model."""
    handler = config.handler
    assert handler is not None
    model = find_hinted_model(handler)
    return handler if model is None else lambda params: handler(model.model_validate(params))  # type: ignore[arg-type]  # as it is hinted


def _copy_parameters(params: Any) -> dict[str, Any]:
    """Return parameters as a separate dict, so that the tool's changes affect no other attempt and no caller."""
    return copy_parts(params) if params else {}


def _find_errors(registered: _Registered, params: Any) -> list[Detail]:
    path = f"{registered.config.name}.{INSIDE}"
    if (
        not isinstance(params, Mapping)
        and params is not None
        and not (isinstance(params, Sequence) and not isinstance(params, str | bytes) and len(params) == 0)
    ):
        received = get_type_name(params)
        return [{"path": path, "message": f"Invalid type. Expected object but received {received}.",
                 "expected": "object", "received": received}]  # fmt: skip
    if find_excess(params):
        return [{"path": path, "message": "The parameters are nested too deeply, or are too large."}]
    return list(registered.parameters.iter_errors(_copy_parameters(params), path))


def _describe(tool: _Registered) -> dict[str, Any]:
    config = tool.config
    return {"name": config.name, "description": config.description, "input_schema": tool.parameters.json_schema()}


def _describe_missing(name: Any, names: Collection[str]) -> str:
    return f"Tool {safe_repr(name)} not found. Available tools: {', '.join(names) or 'none'}"


def _describe_no_handler(name: str) -> str:
    return f"Tool {name!r} is not executable: it has no handler"
