"""A run as OpenTelemetry spans, following the semantic conventions for generative AI: afterwards, or while it runs.

A run is a span `invoke_agent NAME`. It contains a span per step (for a composite node, one from `enter` to `leave`),
and those contain a span per call: `chat MODEL`, `execute_tool NAME`, `invoke_agent NAME`, or the kind and the name of
another call. Messages have the form of the conventions' JSON schemas: a role and parts. The time that a step waited for
a person is not included.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from agentnb.board.codec import encode
from agentnb.board.masking import mask_value
from agentnb.engine.core.history import OUTSIDE, Call
from agentnb.errors import require_library
from agentnb.session.session import Session
from agentnb.text import LONGEST_TEXT, safe_str
from agentnb.trace.trace import SimulationTrace

if TYPE_CHECKING:
    from opentelemetry.trace import Span, TracerProvider

_OPERATIONS = {"llm": "chat", "tool": "execute_tool"}
_ROLES = {"human": "user", "ai": "assistant", "AIMessageChunk": "assistant"}  # LangChain's names
_UNKNOWN = "unknown"  # in place of an attribute that the conventions require but the run does not have


def to_otel(trace: SimulationTrace, tracer_provider: TracerProvider) -> int:
    """Send a trace to a tracer provider; return the number of spans.

    Raises:
        ExecutionError: L590, opentelemetry is not installed.
    """
    writer = _Writer(trace, tracer_provider)
    for step in range(1, len(trace) + 1):
        writer.write(step)
    writer.end()
    return writer.count


def send_live(session: Session, tracer_provider: TracerProvider) -> Callable[[], None]:
    """Send the steps of a session to a tracer provider as they are committed; return a function that ends its span.

    A step that runs again after `session.back()` is sent again: spans cannot be withdrawn.

    Raises:
        ExecutionError: L590, opentelemetry is not installed.
    """
    writer = _Writer(session.trace, tracer_provider)
    leave = session.subscribe(lambda step: writer.write(step.step))
    end = session.subscribe(lambda _what: writer.end(), to="end")

    def stop() -> None:
        leave()
        end()
        writer.end()

    return stop


class _Writer:
    """Sends steps in order; spans of composite nodes stay open until the nodes are left."""

    def __init__(self, trace: SimulationTrace, provider: TracerProvider) -> None:
        with require_library("opentelemetry-sdk", "otel", "trace.to_otel()"):
            from opentelemetry.trace import SpanKind, Status, StatusCode, set_span_in_context

        self._kind, self._in = SpanKind, set_span_in_context
        self._error: Callable[[str], Any] = lambda text: Status(StatusCode.ERROR, text)
        self.trace, self.tracer, self.count = trace, provider.get_tracer("agentnb"), 0
        self.root: Span | None = None
        self.open: dict[int, Span] = {}  # frame -> the span of the node that opened it
        self.last = 0

    def write(self, step: int) -> None:
        """Send one step and its calls."""
        reading = self.trace.reading()
        history, row = reading.owner(step)
        step_row, activation = self.trace.steps[step - 1], reading.activation(step)
        start = history.start_times[row]
        ended = start + history.working_time(row)
        if self.root is None:
            name = safe_str(self.trace.agent_id, 200)
            attributes: dict[str, Any] = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name,
                    "gen_ai.conversation.id": self.trace.run_id}  # fmt: skip
            self.root = self._begin(f"invoke_agent {name}", None, start, attributes)
        self.last = max(self.last, history.end_times[row])
        around = self._around(activation.frame)
        attributes = {"agentnb.step": step, "agentnb.node": step_row.node_id, "agentnb.kind": step_row.kind}
        span = None
        if step_row.phase == "leave":
            inside = [frame for frame in (*history.closed_frames.get(step, ()),) if frame in self.open]
            spans = {id(self.open[frame]): self.open.pop(frame) for frame in inside}
            span = next(iter(spans.values()), None)
        if span is None:
            span = self._begin(safe_str(step_row.node_id, 200), around, start, attributes)
        if step_row.inputs:
            span.set_attribute("agentnb.inputs", _to_json_text(step_row.inputs))
        if step_row.outputs:
            span.set_attribute("agentnb.outputs", _to_json_text(step_row.outputs))
        self._write_calls(span, [call for call in history.calls if call.step == step and call.call != OUTSIDE], start)
        failure = reading.failure(step)
        if failure is not None:
            span.set_attribute("error.type", failure.type)
            if failure.line:
                span.set_attribute("agentnb.line", safe_str(failure.line, LONGEST_TEXT))
            span.set_status(self._error(failure.text))
        opened = history.opened_frames.get(step, ())
        if opened and step_row.phase in {"enter", "again"}:
            for frame in opened:
                self.open[frame] = span
        else:
            span.end(max(start, ended))

    def end(self) -> None:
        """End the span of the run, and those of nodes that it has not left."""
        for span in {id(span): span for span in self.open.values()}.values():
            span.end(self.last)
        self.open.clear()
        if self.root is not None:
            outcome = self.trace.outcome or {}
            if outcome.get("status") == "failed":
                self.root.set_status(self._error(safe_str(outcome.get("error", "failed"), LONGEST_TEXT)))
            self.root.end(self.last)
            self.root = None

    def _around(self, frame: int) -> Span | None:
        frames = self.trace.reading().tables.frames
        while frame and frame not in self.open:
            frame = frames[frame].parent
        return self.open.get(frame, self.root)

    def _begin(
        self, name: str, around: Span | None, start: int, attributes: dict[str, Any], *, call: bool = False
    ) -> Span:
        self.count += 1
        context = None if around is None else self._in(around)
        kind = self._kind.CLIENT if call else self._kind.INTERNAL
        return self.tracer.start_span(name, context, kind, attributes, start_time=start)

    def _write_calls(self, around: Span, calls: list[Call], start: int) -> None:
        """Send the calls of a step one after the other, because only the duration of a call is recorded."""
        for call in calls:
            ended = start + int(call.seconds * 1e9)
            operation, name = _get_operation(call), safe_str(call.name, 200)
            subject = safe_str(call.model, 200) if operation == "chat" and call.model else name
            span = self._begin(f"{operation or call.kind} {subject}", around, start,
                               _call_attributes(call, operation, name), call=operation == "chat")  # fmt: skip
            if call.error is not None:
                span.set_attribute("error.type", call.error.partition(":")[0])
                span.set_status(self._error(safe_str(call.error, LONGEST_TEXT)))
            span.end(ended)
            start = ended


def _get_operation(call: Call) -> str:
    """Return the GenAI operation of a call; empty if the conventions do not cover it, such as a question to a person.

    An agent that is called with messages is a model with a role; one with named inputs is another agent.
    """
    if call.kind == "agent":
        return "chat" if isinstance(call.arguments, Mapping) and "messages" in call.arguments else "invoke_agent"
    return _OPERATIONS.get(call.kind, "")


def _call_attributes(call: Call, operation: str, name: str) -> dict[str, Any]:
    """Return the attributes of a call; those without a value are left out."""
    attributes: dict[str, Any] = {"agentnb.attempt": call.attempt, "agentnb.call.kind": call.kind}
    if not operation:
        attributes["agentnb.arguments"] = _to_json_text(call.arguments)
        return attributes | ({} if call.error is not None else {"agentnb.result": _to_json_text(call.result)})
    attributes["gen_ai.operation.name"] = operation
    if operation == "execute_tool":
        attributes |= {"gen_ai.tool.name": name, "gen_ai.tool.type": "function"}
        attributes["gen_ai.tool.call.arguments"] = _to_json_text(call.arguments)
        if call.error is None:
            attributes["gen_ai.tool.call.result"] = _to_json_text(call.result)
        return attributes
    arguments: Any = mask_value(call.arguments)
    messages = arguments.get("messages") if isinstance(arguments, dict) else None
    attributes["gen_ai.input.messages"] = _to_json_text(
        [_to_message(each, "user") for each in _to_list(messages or arguments)]
    )
    if call.error is None:
        answer = _to_message(mask_value(call.result), "assistant")
        attributes["gen_ai.output.messages"] = _to_json_text(
            [{**answer, "finish_reason": call.finish_reason or _UNKNOWN}]
        )
    attributes |= {
        "gen_ai.agent.name": name if operation == "invoke_agent" else None,
        "gen_ai.provider.name": call.provider or _UNKNOWN,
        "gen_ai.request.model": call.model,
        "gen_ai.response.model": call.model,
        "gen_ai.usage.input_tokens": call.tokens_in,
        "gen_ai.usage.output_tokens": call.tokens_out,
        "gen_ai.response.finish_reasons": None if call.finish_reason is None else [call.finish_reason],
        "agentnb.cost_usd": None if call.cost_usd is None else float(call.cost_usd),
    }
    return {key: value for key, value in attributes.items() if value is not None}


# -- messages, in the form of the schemas gen_ai.input.messages and gen_ai.output.messages --------------------------


def _to_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _to_message(value: Any, role: str) -> dict[str, Any]:
    """Return a message of any library, or a value, as a role and parts."""
    if not isinstance(value, dict) or not ({"content", "parts", "tool_calls", "data"} & value.keys()):
        return {"role": role, "parts": [_to_text_part(value)]}
    data = value["data"] if isinstance(value.get("data"), dict) else value  # LangChain's form
    kind = str(data.get("role") or value.get("type") or data.get("type") or role)
    role = _ROLES.get(kind, kind)
    if isinstance(data.get("parts"), list):
        return {"role": role, "parts": data["parts"]}
    content = data.get("content")
    if role == "tool":
        id = data.get("tool_call_id")
        return {"role": role, "parts": [{"type": "tool_call_response", "id": id, "response": content}]}
    texts = [] if content in (None, "", []) else _to_list(content)
    parts = [part if isinstance(part, dict) and "type" in part and "text" not in part else _to_text_part(part)
             for part in texts]  # fmt: skip
    calls = data.get("tool_calls")
    return {"role": role, "parts": [*parts, *map(_to_tool_call, calls if isinstance(calls, list) else ())]}


def _to_text_part(value: Any) -> dict[str, Any]:
    if isinstance(value, dict) and isinstance(value.get("text"), str):
        value = value["text"]
    return {"type": "text", "content": value if isinstance(value, str) else _to_json_text(value)}


def _to_tool_call(call: Any) -> dict[str, Any]:
    """Return a part for a tool request, in OpenAI's form or LangChain's."""
    fields: dict[Any, Any] = call if isinstance(call, dict) else {"name": call}
    inner = fields.get("function")
    function = inner if isinstance(inner, dict) else fields
    arguments = function.get("arguments", function.get("args"))
    return {
        "type": "tool_call",
        "id": fields.get("id"),
        "name": str(function.get("name") or ""),
        "arguments": arguments,
    }


def _to_json_text(value: Any) -> str:
    """Return a masked value as JSON."""
    plain = mask_value(value)
    try:
        return json.dumps(plain, allow_nan=False)
    except (TypeError, ValueError):
        return json.dumps(encode(value, lenient=True))


__all__ = ["send_live", "to_otel"]
