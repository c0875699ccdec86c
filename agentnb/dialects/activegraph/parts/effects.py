"""Model requests and tool calls as effects of the run, whose answers and failures are recorded.

The effects do not raise: a failure is recorded as an answer, so that a replay fails with the same text.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from agentnb.board.masking import mask_value
from agentnb.board.values import thaw
from agentnb.dialects.activegraph.errors import LLMBehaviorError, ToolError, UnknownToolError
from agentnb.dialects.activegraph.parts.caches import LLMCache, ToolCache
from agentnb.dialects.activegraph.parts.events import to_canonical, to_plain
from agentnb.dialects.activegraph.parts.models import (
    DEFAULT_MODEL,
    ClientProvider,
    is_native_schema,
    parse_messages,
    to_response,
    to_response_dict,
)
from agentnb.dialects.activegraph.parts.tools import Tool, ToolContext
from agentnb.errors import AgentNbError
from agentnb.recipe.user_functions import check_ran
from agentnb.world.effect import Effect
from agentnb.world.llm import base
from agentnb.world.world import count_earlier_calls

if TYPE_CHECKING:
    from agentnb.dialects.activegraph.parts.recorded import ToolInvoker
    from agentnb.dialects.activegraph.parts.run_config import RuntimeConfig
    from agentnb.engine.core.work import Work
    from agentnb.world.world import World

TOO_MANY: Final = 429  # the HTTP status of a rate limit
UNKNOWN_HERE: Final = frozenset({401, 403})  # the HTTP statuses of a rejected key
AGAIN: Final = frozenset({"llm.network_error", "llm.rate_limited"})


class PricedAnswer(dict[str, Any]):
    """A tool's answer with its cost."""

    usage = base.Usage()


class EffectCaller:
    """How the behaviors of one runtime call models and tools: retries and caches."""

    def __init__(
        self,
        config: RuntimeConfig,
        *,
        attempts: int,
        delays: tuple[float, float],
        caches: tuple[LLMCache | None, ToolCache | None],
        caching: tuple[bool, bool],
        reinvoke: bool,
        tools: Callable[[], Iterable[Tool]],
        invoker: ToolInvoker | None,
        native: bool,
    ) -> None:
        self.config, self.attempts, self.delays, self.reinvoke, self.tools = config, attempts, delays, reinvoke, tools
        self.session_model: Any = None
        self.invoker, self.native = invoker, native
        self.caching = (caching[0] or caches[0] is not None, caching[1] or caches[1] is not None)
        self.llm_cache, self.tool_cache = caches[0] or LLMCache(), caches[1] or ToolCache()

    @property
    def provider(self) -> Any:
        """The model in use: the session's, otherwise the runtime's."""
        return self.config.llm if self.session_model is None else self.session_model

    def of_world(self, world: World) -> EffectCaller:
        """Return the caller in a session; if the session has a model, it replaces the runtime's."""
        if world.llm is None:
            return self
        caller = copy.copy(self)
        caller.session_model = ClientProvider(world.llm)
        return caller

    def retries(self, attempts: int | None, first: float | None, maximum: float | None) -> dict[str, Any]:
        """Return the retry policy of model requests in a Runtime's terms; None for the default."""
        return {
            "llm_retry_max_attempts": self.attempts if attempts is None else attempts,
            "llm_retry_initial_delay_seconds": self.delays[0] if first is None else first,
            "llm_retry_max_delay_seconds": self.delays[1] if maximum is None else maximum,
        }

    def fill_caches(self, events: Iterable[Any]) -> None:
        """Fill the active caches from a log."""
        known = list(events)
        if self.caching[0]:
            self.llm_cache.add_events(known)
        if self.caching[1]:
            self.tool_cache.add_events(known)

    # -- models --------------------------------------------------------------------------------------------------

    def model_of(self, behavior: Any) -> str:
        """Return the name of the model that a behavior uses."""
        return str(behavior.model or getattr(self.provider, "default_model", None) or DEFAULT_MODEL)

    def is_native(self, behavior: Any) -> bool:
        """Return True if the provider itself enforces the schema of a behavior's answer."""
        supports = getattr(self.provider, "supports_native_structured_output", None)
        return (
            self.native
            and behavior.output_schema is not None
            and supports is not None
            and bool(supports(self.model_of(behavior)))
            and is_native_schema(behavior.output_schema.model_json_schema())
        )

    def find_cached_response(self, prompt_hash: str) -> dict[str, Any] | None:
        """Return the cached response to this request, if caching is on."""
        return self.llm_cache.payload(prompt_hash) if self.caching[0] else None

    async def ask(self, work: Work, call: dict[str, Any]) -> tuple[dict[str, Any], Exception | None]:
        """Send one request to the model and return the response as its event records it, or {"failed": ...}.

        The second value is the exception of a failure; None if it was recorded earlier. `call` are the arguments of the
        request; afterwards they include a person's changes to the pending call.
        """
        provider, request, clock = self.provider, dict(call), work.run.ns
        raised: Exception | None = None

        def describe_failure(error: Exception, start_time: int) -> base.LLMResponse:
            nonlocal raised
            raised = error
            return _make_failed_response(error, call["model"], _measure_seconds(clock, start_time))

        def send_request(**now: Any) -> Any:
            start_time = clock()
            try:
                answer = provider.complete(
                    **_apply_changes(request, sent, now), **_make_caller(provider, work, call["model"])
                )
                return (
                    await_response(answer, start_time)
                    if inspect.isawaitable(answer)
                    else _add_usage(to_response_dict(answer))
                )
            except Exception as error:  # noqa: BLE001  (whatever a provider raises is an answer of its own)
                return describe_failure(error, start_time)

        async def await_response(answer: Awaitable[Any], start_time: int) -> Any:
            try:
                return _add_usage(to_response_dict(await answer))
            except Exception as error:  # noqa: BLE001  (as above)
                return describe_failure(error, start_time)

        sent = to_canonical({"model": call["model"], "system": call["system"],
                          "messages": [each.to_dict() for each in call["messages"]]})  # fmt: skip
        answer = await work.call(Effect("llm", call["model"], sent, target=send_request, prepare=self._prepare))
        call |= _apply_changes(request, sent, thaw(work.calls[-1].arguments))
        return to_response(getattr(answer, "content", answer), call["model"]), raised

    def _prepare(self) -> Awaitable[None] | None:
        """Return an awaitable to run before the timeout of a request starts; None if there is nothing to prepare."""
        provider = self.provider
        return provider.preparing() if isinstance(provider, ClientProvider) else None

    async def wait(self, work: Work, attempt: int, failure: Mapping[str, Any]) -> None:
        """Wait before a model request is retried."""
        first, maximum = self.delays
        seconds = max(min(first * 2**attempt, maximum), float(failure.get("retry_after_seconds") or 0.0))
        clock = work.run.clock
        await work.call(Effect("sleep", "retry", {"seconds": seconds}, target=clock.sleep, repeatable=True))

    def estimate(self, call: Mapping[str, Any]) -> tuple[int, Any] | None:
        """Return the number of tokens of a request and its maximum cost; None if the provider cannot estimate them."""
        provider = self.provider
        if not hasattr(provider, "estimate_cost"):
            return None
        tokens = provider.count_tokens(system=call["system"], messages=call["messages"], model=call["model"])
        cost = provider.estimate_cost(input_tokens=tokens, output_tokens=call["max_tokens"], model=call["model"])
        return tokens, cost

    # -- tools ---------------------------------------------------------------------------------------------------

    def tools_of(self, behavior: Any) -> dict[str, Tool]:
        """Return the tools that a behavior names: the tools themselves, or found by name in the runtime."""
        return {tool.name: tool for tool in self._map_named_tools(behavior).values() if tool is not None}

    def missing_tool(self, behavior: Any) -> str | None:
        """Return the first tool that a behavior names but the runtime lacks; None if there is none."""
        return next((name for name, tool in self._map_named_tools(behavior).items() if tool is None), None)

    def _map_named_tools(self, behavior: Any) -> dict[str, Tool | None]:
        known = {each.name: each for each in self.tools()}
        short = {name.rpartition(".")[2]: each for name, each in known.items()}
        return {
            each if isinstance(each, str) else each.name: known.get(each, short.get(each))
            if isinstance(each, str)
            else each
            for each in behavior.tools
        }

    def tool_of(self, behavior: Any, name: str) -> Tool:
        """Return a tool that a behavior names.

        Raises:
            UnknownToolError: it does not name it.
        """
        tool = self.tools_of(behavior).get(name)
        if tool is None:
            names = ", ".join(self.tools_of(behavior)) or "none"
            raise UnknownToolError("tool.unknown_tool", f"{behavior.name!r} has no tool {name!r}; it has: {names}",
                                   payload_extras={"tool": name})  # fmt: skip
        return tool

    def find_cached_result(self, tool: Tool, hash_: str) -> dict[str, Any] | None:
        """Return the cached result of this tool call, if caching is on."""
        if not self.caching[1] or (self.reinvoke and tool.deterministic):
            return None
        return self.tool_cache.payload(hash_)

    async def use(
        self, work: Work, tool: Tool, args: Mapping[str, Any], context: ToolContext
    ) -> tuple[dict[str, Any], Exception | None]:
        """Call a tool, and return {"output", "latency_seconds"}, or {"failed": ...}.

        The second value is the exception of a failure; None if it was recorded earlier.
        """
        raised: Exception | None = None

        def run_tool(**arguments: Any) -> Any:
            nonlocal raised
            start_time = work.run.ns()
            result, raised = _run(tool, arguments, context, self.invoker)
            result["latency_seconds"] = _measure_seconds(work.run.ns, start_time)
            return result if "failed" in result else _add_price(result, tool)  # a failed call costs nothing

        effect = Effect("tool", tool.name, dict(args), timeout=tool.timeout_seconds or None, target=run_tool,
                        repeatable=tool.deterministic)  # fmt: skip
        try:
            return dict(await work.call(effect)), raised
        except TimeoutError as error:
            failed = {"reason": "tool.timeout", "type": "ToolError", "message": str(error)}
            return {"failed": {**failed, "extra": {}, "is_invalid": False}}, error


def _measure_seconds(clock: Callable[[], int], start_time: int) -> float:
    """Return the seconds since a reading of the run's clock: equal runs under a frozen clock record equal durations."""
    return (clock() - start_time) / 1e9


def _add_usage(fields: dict[str, Any]) -> base.LLMResponse:
    """Return a response with its usage."""
    usage = base.Usage(fields["input_tokens"], fields["output_tokens"], Decimal(fields["cost_usd"]))
    return base.LLMResponse(fields, fields["model"], usage)


def _make_failed_response(error: Exception, model: str, seconds: float) -> base.LLMResponse:
    """Return the response that represents a failure; its cost is 0, as in its event."""
    return base.LLMResponse({"failed": _describe_failure(error, model, seconds)}, usage=base.Usage(cost_usd=Decimal(0)))


def _make_caller(provider: Any, work: Work, model: str) -> dict[str, Any]:
    """Return the caller for a client of agentnb: scripts are indexed by node and by the number of earlier requests."""
    if not isinstance(provider, ClientProvider):
        return {}
    node, on_token, of_node = work.node.id, work.run.on_token, count_earlier_calls(work, "llm", work.node.id)
    asker: dict[str, Any] = {"node": node, "number": count_earlier_calls(work, "llm"), "of_node": of_node}
    if on_token is not None:
        asker["on_token"] = lambda text: work.has_ended or on_token(node, text, 1, of_node, model)
    return {"asker": asker}


def _apply_changes(call: Mapping[str, Any], sent: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of the request, with a person's changes to the pending call."""
    new = {
        name: value
        for name, value in now.items()
        if name in sent and mask_value(value, name) != mask_value(sent[name], name)
    }
    if "messages" in new:
        new["messages"] = parse_messages(new["messages"])
    return {**call, **new}


def _add_price(fields: dict[str, Any], tool: Tool) -> PricedAnswer:
    answer = PricedAnswer(fields)
    answer.usage = base.Usage(cost_usd=tool.cost_per_call)
    return answer


def _run(tool: Tool, arguments: Mapping[str, Any], context: ToolContext,
         invoker: ToolInvoker | None = None) -> tuple[dict[str, Any], Exception | None]:  # fmt: skip
    """Validate the input, call the function, validate the output; a failure is returned as an answer."""
    reason = "tool.invalid_input"
    try:
        args = tool.input_schema.model_validate(dict(arguments)) if tool.input_schema else dict(arguments)
        reason = "tool.execution_error"
        output = check_ran(tool.fn(args, context) if invoker is None else _invoke(invoker, tool, args, context))
        reason = "tool.invalid_output"
        if tool.output_schema is not None and not isinstance(output, tool.output_schema):
            output = tool.output_schema.model_validate(output)
        output = to_plain(output)
    except Exception as error:  # noqa: BLE001  (whatever a tool raises is an answer of its own)
        name, extras = type(error).__name__, getattr(error, "payload_extras", None)
        failed = {"reason": reason, "type": name, "message": str(error), "extra": {}, "is_invalid": False}
        if extras is not None:  # a ToolError
            failed |= {"reason": getattr(error, "reason", reason), "extra": to_canonical(extras)}
        elif reason == "tool.execution_error":
            extra = {"tool": tool.name, "exception_type": name}
            failed |= {"type": "ToolError", "message": f"{name}: {error}", "extra": extra}
        else:
            failed["is_invalid"] = True
        return {"failed": failed}, error
    return {"output": output}, None


def _invoke(invoker: ToolInvoker, tool: Tool, args: Any, context: ToolContext) -> Any:
    """Return the result of a custom invoker in place of the tool.

    Raises:
        ToolError: the answer is an error.
    """
    answer = invoker.invoke(tool, args, context)
    if answer.error:
        raise ToolError(str(answer.error.get("reason", "tool.execution_error")), str(answer.error.get("message", "")))
    return answer.output


def _describe_failure(error: Exception, model: str, seconds: float) -> dict[str, Any]:
    """Return a provider's failure: its own reason, or else a network error."""
    description: dict[str, Any] = {"type": type(error).__name__, "message": str(error), "latency_seconds": seconds}
    reason = getattr(error, "reason", None)
    if isinstance(error, LLMBehaviorError) or (isinstance(reason, str) and reason.startswith("llm.")):
        extras = getattr(error, "payload_extras", None) or {}
        return {**description, "reason": reason, "extra": to_canonical(extras)}
    if not isinstance(error, AgentNbError):  # unknown: it may be the connection to the model
        return {**description, "reason": "llm.network_error", "extra": {"model": model}}
    status, retry_after = getattr(error, "status", None), getattr(error, "retry_after", None)
    retry_reason = "llm.rate_limited" if status == TOO_MANY else "llm.network_error"
    refused = "llm.auth_error" if status in UNKNOWN_HERE else "llm.request_error"
    extra = {"model": model} if retry_after is None else {"model": model, "retry_after_seconds": retry_after}
    return {**description, "reason": retry_reason if getattr(error, "is_retryable", False) else refused, "extra": extra}


__all__ = ["AGAIN", "EffectCaller", "PricedAnswer"]
