"""Deliveries to behaviors that call a model first: model requests, tool calls, and parsing the answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar, Final

from agentnb.dialects.activegraph.errors import LLMBehaviorError, ToolError
from agentnb.dialects.activegraph.parts.behavior_budgets import measure_behavior_usage
from agentnb.dialects.activegraph.parts.behaviors import (
    Behavior,
    check_kind,
    check_schema,
    check_signature,
    register,
    to_fields,
)
from agentnb.dialects.activegraph.parts.delivery import FAILURE_FIELDS, Delivery, DeliveryInProgress
from agentnb.dialects.activegraph.parts.effects import AGAIN
from agentnb.dialects.activegraph.parts.events import to_canonical
from agentnb.dialects.activegraph.parts.models import LLMMessage, ToolCall, make_prompt_payload, read, to_prompt_fields
from agentnb.dialects.activegraph.parts.prompts import make_system_prompt, to_json, to_messages
from agentnb.dialects.activegraph.parts.tools import ToolContext, digest, hash_args
from agentnb.engine.core.work import Work
from agentnb.session.usage import measure_usage

if TYPE_CHECKING:
    from datetime import datetime

    from agentnb.engine.core.history import Event as Kept


ESTIMATED: Final = ("estimated_input_tokens", "estimated_cost_usd", "budget_remaining_usd")


@dataclass
class LLMBehavior(Behavior):
    """A behavior that calls a model first; its handler `(event, graph, ctx, answer)` gets the parsed answer."""

    handler: Callable[..., None] | None = None
    description: str = ""
    model: str | None = None
    output_schema: Any = None
    deterministic: bool = False
    max_tokens: int = 4096
    temperature: float = 0.7
    top_p: float = 1.0
    timeout_seconds: float = 60.0
    prompt_template: str | None = None
    tools: list[Any] = field(default_factory=list)
    max_tool_turns: int = 6

    def __post_init__(self) -> None:
        """Check its handler and the schema."""
        super().__post_init__()
        check_schema(self.output_schema, "output_schema")
        check_kind(self.name, self.handler or self.fn)

    kind: ClassVar[str] = "llm"


def llm_behavior(*, name: str | None = None, on: list[str] | None = None, where: Mapping[str, Any] | None = None,
                 description: str = "", model: str | None = None, output_schema: Any = None,
                 view: Mapping[str, Any] | None = None, creates: list[str] | None = None,
                 budget: Mapping[str, Any] | None = None, deterministic: bool = False, max_tokens: int = 4096,
                 temperature: float = 0.7, top_p: float = 1.0, timeout_seconds: float = 60.0,
                 prompt_template: str | None = None, priority: int = 0, pattern: str | None = None,
                 activate_after: Any = None, tools: list[Any] | None = None,
                 max_tool_turns: int = 6) -> Callable[[Callable[..., None]], LLMBehavior]:  # fmt: skip
    """Create and register a behavior from a function `(event, graph, ctx, answer)` that runs after a model's answer.

    Args:
        output_schema: a pydantic model of the answer; without one the answer is None, and the text in the log.
        deterministic: use temperature 0 and top_p 1, regardless of other settings.
        tools: what the model may call: tools, or names of tools of the runtime.
        max_tool_turns: the maximum number of model requests in one delivery.

    Raises:
        TypeError: the function does not take these four arguments, or the schema is not a pydantic model.
    """
    check_schema(output_schema, "output_schema")

    def decorate(fn: Callable[..., None]) -> LLMBehavior:
        check_signature(fn, ("event", "graph", "ctx", "answer"), "@llm_behavior")
        new_behavior = LLMBehavior(
            **to_fields(fn, name, on, where, view, creates, budget, priority, pattern, activate_after),
            handler=fn,
            description=description,
            model=model,
            output_schema=output_schema,
            deterministic=deterministic,
            max_tokens=max_tokens,
            temperature=temperature,
            top_p=top_p,
            timeout_seconds=timeout_seconds,
            prompt_template=prompt_template,
            tools=list(tools or ()),
            max_tool_turns=max_tool_turns,
        )
        register(new_behavior)
        return new_behavior

    return decorate


class LLMDelivery(Delivery):
    """Delivers events to one behavior that calls a model."""

    async def __call__(self, work: Work) -> Any:
        """Deliver the current event: call the model, then the behavior with its answer."""
        turn = self.begin(work)
        if turn is None:
            return {}
        try:
            answer = await _ModelRequests(self.behavior, turn).answer()
            turn.call(self.behavior.handler, turn.event, turn.graph, turn.ctx, answer, **self._get_settings())
        except Exception as error:
            turn.record_failure(error)
            raise
        turn.record_completion()
        return {}


class _ModelRequests:
    """The model requests of one delivery, each with the results of the tools requested before it."""

    def __init__(self, behavior: Any, turn: DeliveryInProgress) -> None:
        self.behavior, self.turn, self.work = behavior, turn, turn.work
        self.asking = turn.config.asking.of_world(turn.work.run.world)
        self.cause = turn.event_row.id
        self.calls = 0
        self.words: dict[str, Any] = {
            "system": make_system_prompt(behavior, turn, native=self.asking.is_native(behavior)),
            "messages": to_messages(behavior, turn),
            "model": self.asking.model_of(behavior),
            "max_tokens": behavior.max_tokens,
            "temperature": 0.0 if behavior.deterministic else behavior.temperature,
            "top_p": 1.0 if behavior.deterministic else behavior.top_p,
            "output_schema": behavior.output_schema,
            "timeout_seconds": behavior.timeout_seconds,
        }
        definitions = [tool.to_definition() for tool in self.asking.tools_of(behavior).values()]
        if definitions:
            self.words["tools"] = definitions
        if self.asking.is_native(behavior):
            self.words["structured_output_mode"] = "native"

    async def answer(self) -> Any:
        """Send requests until an answer requests no tool, and return that answer parsed.

        Raises:
            LLMBehaviorError: the model failed, or its answer does not match the request.
            ToolError: a tool failed, or too many calls were requested.
        """
        self.turn.extra_fields["tool_calls"] = 0
        for index in range(self.behavior.max_tool_turns):
            reply = await self._ask_model(index)
            self.turn.actor.provenance["llm_request_event_id"] = self.cause
            calls = reply.get("tool_calls")
            if not calls:
                return self._read(reply)
            tool_calls = tuple(ToolCall(call["id"], call["name"], call["args"]) for call in calls)
            self.words["messages"].append(LLMMessage("assistant", reply["raw_text"], tool_calls=tool_calls))
            for call in tool_calls:
                self.words["messages"].append(await self._call_tool(call))
        max_turns = self.behavior.max_tool_turns
        raise _make_failure("RuntimeError", f"exceeded max_tool_turns={max_turns} without a non-tool response",
                      "tool.max_turns_exhausted", {"max_tool_turns": max_turns})  # fmt: skip

    def record(self, type_: str, payload: Mapping[str, Any], cause: str, when: datetime | None = None) -> str:
        """Record the event of a request or a tool call by the behavior; return the event's id."""
        turn = self.turn
        if turn.config.live(self.work.run):
            turn.config.watch(type_, payload)
        event = turn.actor.record(
            type_, payload, actor=self.behavior.name, cause=cause, frame=turn.config.frame_id, when=when
        )
        return event.id

    async def _ask_model(self, index: int) -> dict[str, Any]:
        known = self.asking.find_cached_response(self._hash())
        estimated = self._check_cost(known)
        first, cause = "", self.cause
        max_attempts = self._count_attempts()
        for attempt in range(max_attempts):
            if known is None:
                details: dict[str, Any] = {
                    "model": self.words["model"],
                    "attempt_index": attempt,
                    "max_attempts": max_attempts,
                }
                self._check_run(
                    ("llm", "tool"), "the budget is used up before another question", **(details if attempt else {})
                )
                self._check_own("max_llm_calls", "llm_calls")
            later, when = known is None and self._may_be_changed(), None
            payload: dict[str, Any] = {
                "cache_hit": known is not None,
                "turn_index": index,
                "prompt_normalized": True,
                **estimated,
            }
            if attempt:
                payload |= {"attempt_index": attempt, "max_attempts": max_attempts, "retry_of": first}
            if not later:
                request = self._record_request(payload, cause)
            elif self.work.run.recorded is None:  # the time of a recorded event is known from the event
                when = self.work.now()
            try:
                response, raised = (
                    ({**known, "cache_hit": True}, None)
                    if known is not None
                    else await self.asking.ask(self.work, self.words)
                )
            except Exception:  # not an error of the model, whose failures are answers: chaos, for example
                if later:
                    self._record_request(payload, cause, when)
                raise
            if later:
                request = self._record_request(payload, cause, when)
            first = first or request
            head = {"behavior": self.behavior.name, "prompt_hash": self._hash()}
            if "failed" not in response:
                self.record("llm.responded", {**response, **head, "turn_index": index}, request)
                self.cause = request
                return response
            cause = await self._record_failure(
                response["failed"], {**head, "model": self.words["model"]}, attempt, request, raised
            )
        raise AssertionError("the last attempt that fails is raised")

    def _count_attempts(self) -> int:
        """Return the maximum number of attempts per request; in a replay, as many as the recorded step could make."""
        step = getattr(self.work.run.recorded, "recorded", None)
        events = () if step is None else step.events
        recorded = (each.payload["max_attempts"] for each in events if "max_attempts" in (each.payload or ()))
        return int(next(recorded, self.asking.attempts))

    def _get_next_event(self) -> Kept | None:
        """Return the next recorded event, if any: a following request shows that the budget allowed it."""
        recorded = self.work.run.recorded
        return None if recorded is None else recorded.next_event(self.work)

    def _may_be_changed(self) -> bool:
        """Return True if a person may still change the request before it is sent, or has changed it.

        It is then recorded as it was sent.
        """
        run = self.work.run
        return run.holds_call is not None or run.recorded is not None

    def _hash(self) -> str:
        return digest(to_prompt_fields(self.words))

    def _record_request(self, more: Mapping[str, Any], cause: str, when: datetime | None = None) -> str:
        """Record a request as it is sent; return the event's id."""
        behavior, call = self.behavior, self.words
        request: dict[str, Any] = {"behavior": behavior.name, "model": call["model"], "prompt_hash": self._hash(),
                                "deterministic": behavior.deterministic, **more}  # fmt: skip
        if behavior.output_schema is not None:
            request["structured_output_mode"] = call.get("structured_output_mode", "prompt")
        if not (more["turn_index"] or more.get("attempt_index")):
            request["prompt"] = make_prompt_payload(call, deterministic=behavior.deterministic)
        return self.record("llm.requested", request, cause, when)

    def _check_run(self, kinds: tuple[str, ...], message: str, **extra: Any) -> None:
        """Raise an error if the run's budget allows no call of these kinds.

        A replay fails where the recorded run failed.

        Raises:
            LLMBehaviorError: the budget is used up.
        """
        run = self.work.run
        event = self._get_next_event()
        if event is not None:
            reason = str(event.payload.get("reason"))
            if event.type == "behavior.failed" and reason.startswith("budget."):
                payload = {name: value for name, value in event.payload.items() if name not in FAILURE_FIELDS}
                raise _make_failure(event.payload["exception_type"], event.payload["message"], reason, payload)
            return
        limit = None if run.limiter is None else run.limiter.limit_for(run, kinds)
        if limit is not None:
            what = "cost" if limit == "max_cost_usd" else limit.removeprefix("max_")
            raise _make_failure("RuntimeError", message, f"budget.{what}_exhausted", extra)

    def _check_own(self, limit: str, what: str) -> None:
        """Raise an error if the behavior's own budget allows no further call."""
        if self._get_next_event() is not None:
            return
        allowed = (self.behavior.budget or {}).get(limit)
        if (
            allowed is not None
            and measure_behavior_usage(self.work.run, self.behavior.name, {limit: allowed})[limit] >= allowed
        ):
            raise _make_failure("RuntimeError", f"{limit}={allowed} of {self.behavior.name!r} is used up",
                          f"budget.{what}_exhausted", {})  # fmt: skip

    async def _record_failure(
        self,
        failure: Mapping[str, Any],
        head: Mapping[str, Any],
        attempt: int,
        request: str,
        raised: Exception | None,
    ) -> str:
        """Record a failed request; return the event's id if it is retried.

        Raises:
            LLMBehaviorError: it is not retried.
        """
        max_attempts, reason = self._count_attempts(), failure["reason"]
        may_retry = reason in AGAIN
        extra, known = dict(failure["extra"]), {"behavior": head["behavior"], "prompt_hash": head["prompt_hash"]}
        payload = {**known, "model": head["model"],
                "error": {"reason": reason, "message": failure["message"], **extra},
                "cache_hit": False, "retryable": may_retry, "attempt_index": attempt, "max_attempts": max_attempts,
                "latency_seconds": failure["latency_seconds"], "cost_usd": "0"}  # fmt: skip
        responded = self.record("llm.responded", payload, request)
        if not may_retry or attempt + 1 >= max_attempts:
            if may_retry:
                extra |= {"attempts": attempt + 1, "max_attempts": max_attempts, "retry_exhausted": True}
            raise _make_failure(failure["type"], failure["message"], reason, extra) from raised
        await self.asking.wait(self.work, attempt, extra)
        return responded

    def _check_cost(self, known: Any) -> dict[str, Any]:
        """Return the cost fields that the log records for a request if the run has a cost limit.

        Raises:
            LLMBehaviorError: it would cost more than the run or the behavior has left.
        """
        event = self._get_next_event()
        if event is not None:
            return {name: event.payload[name] for name in ESTIMATED if name in event.payload}
        max_cost, run, own = self.turn.config.limits().get("max_cost_usd"), self.work.run, self.behavior.budget or {}
        costs_left = []
        if max_cost is not None:
            paid = [Decimal(str(call.cost_usd)) for call in self.work.calls if call.cost_usd is not None]
            costs_left.append(max_cost - measure_usage(run.current_history, run.position).attempts.cost - sum(paid))
        if "max_cost_usd" in own:
            costs_left.append(
                own["max_cost_usd"] - measure_behavior_usage(run, self.behavior.name, own)["max_cost_usd"]
            )
        details = {} if max_cost is None else {"budget_remaining_usd": str(max(costs_left[0], Decimal(0)))}
        estimated = None if known is not None or not costs_left else self.asking.estimate(self.words)
        if estimated is None:
            return details
        tokens, cost = estimated
        if cost > min(costs_left):
            remaining = str(max(min(costs_left), Decimal(0)))
            raise _make_failure("RuntimeError", "max_cost_usd would be exceeded", "budget.cost_exhausted",
                          {"estimated_cost_usd": str(cost), "budget_remaining_usd": remaining,
                           "model": self.words["model"]})  # fmt: skip
        return (
            {} if max_cost is None else {"estimated_input_tokens": tokens, "estimated_cost_usd": str(cost), **details}
        )

    async def _call_tool(self, call: ToolCall) -> LLMMessage:
        """Call a tool that the model requested, and return the message for the model."""
        behavior, turn, cause = self.behavior, self.turn, self.cause
        tool = self.asking.tool_of(behavior, call.name)
        turn.config.check(behavior.name, "can_call_tool", tool.name)
        self._check_run(("tool",), "the budget is used up before another call of a tool", tool=tool.name)
        hash_ = hash_args(tool.name, call.args)
        known = self.asking.find_cached_result(tool, hash_)
        if known is None:
            self._check_own("max_tool_calls", "tool_calls")
        head = {"behavior": behavior.name, "tool": tool.name, "args_hash": hash_}
        tool_request = {**head, "args": call.args, "call_id": call.id, "cache_hit": known is not None}
        if tool.takes(call.args):
            tool_request["deterministic"] = tool.deterministic
        request = self.record("tool.requested", tool_request, cause)
        turn.actor.provenance.setdefault("tool_request_event_ids", []).append(request)
        result: Mapping[str, Any]
        raised: Exception | None = None
        if known is not None:
            result = {"output": known["output"], "latency_seconds": 0.0}
        else:
            context = ToolContext(behavior.name, turn.event_row.id, turn.config.frame, f"{turn.event_row.id}:{call.id}",
                                  tool.timeout_seconds)  # fmt: skip
            result, raised = await self.asking.use(self.work, tool, call.args, context)
        failed = result.get("failed")
        if failed is not None:
            error = {"reason": failed["reason"], "message": failed["message"], **failed["extra"]}
            took = result.get("latency_seconds", 0.0)
            payload = {**head, "error": error, "cache_hit": False, "latency_seconds": took, "cost_usd": "0"}
            self.record("tool.responded", payload, request)
            extra = {"tool": tool.name, **failed["extra"]}
            if failed["is_invalid"]:
                extra["validation_errors"] = failed["message"]
            raise _make_failure(failed["type"], failed["message"], failed["reason"], extra, ToolError) from raised
        self.calls += 1
        turn.extra_fields["tool_calls"] = self.calls
        cost = "0" if known is not None else str(tool.cost_per_call)
        response = {"output": result["output"], "error": None, "cache_hit": known is not None,
                    "latency_seconds": result["latency_seconds"], "cost_usd": cost,
                    "deterministic": tool.deterministic}  # fmt: skip
        self.record("tool.responded", {**head, **response}, request)
        return LLMMessage("tool", to_json(to_canonical(result["output"])), call.id, tool.name)

    def _read(self, fields: Mapping[str, Any]) -> Any:
        """Return an answer parsed by its schema; None without a schema."""
        schema = self.behavior.output_schema
        if schema is None:
            return None
        details = {"raw_text": fields["raw_text"], "schema": schema.__name__}
        parsed = read(fields["raw_text"]) if fields["parsed"] is None else fields["parsed"]
        if parsed is None:
            raise LLMBehaviorError("llm.parse_error", "the answer contains no JSON object", payload_extras=details)
        try:
            return schema.model_validate(parsed)
        except ValueError as error:
            raise LLMBehaviorError("llm.schema_violation", str(error), payload_extras=details) from None


def _make_failure(
    type_: str, message: str, reason: str, extra: Mapping[str, Any], base: type[Exception] = LLMBehaviorError
) -> Exception:
    """Return a failure with the name and message that it has in other systems."""
    known = {"LLMBehaviorError": LLMBehaviorError, "ToolError": ToolError}
    cls: Any = known.get(type_) or type(type_, (base,), {})
    failure: Any = cls(reason, message, payload_extras=extra)
    failure.args = (message,)
    return failure  # type: ignore[no-any-return]  # one of the errors above


__all__ = ["LLMBehavior", "LLMDelivery", "llm_behavior"]
