"""Spans of OpenTelemetry (OTLP JSON) as recordings: frames from parents, branches from overlap, calls from GenAI spans.

The board has `messages` (of the last model call, with its answer), `usage` (tokens so far), and the last result of each
tool under the tool's name.

Spans of libraries with attributes of their own are read too: OpenInference (`openinference.span.kind`, `llm.*`),
OpenLLMetry (`traceloop.*`, numbered `gen_ai.prompt.N.*`) and LangSmith (`langsmith.span.kind`). `_ALIASES` lists
their names for the attributes of the conventions.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from agentnb.errors import Problem, StoreError, did_you_mean
from agentnb.recordings.builder import LATEST, NodeIds, RecordedCall, RecordedStep, build, reading
from agentnb.recordings.formats import read_text
from agentnb.recordings.plain_messages import to_plain_message
from agentnb.session.recording import Recording

MOST: Final = 200_000  # spans of one trace
DEEPEST: Final = 200  # spans inside each other
_MOST_TOKENS: Final = 2**53
_ERROR: Final = (2, "STATUS_CODE_ERROR")
_MODEL: Final = {"chat", "generate_content", "text_completion", "embeddings"}
_AGENT: Final = {"invoke_agent", "create_agent", "invoke_workflow"}
# Operations named after what they execute
_NAMED: Final[Mapping[str, str]] = MappingProxyType({"execute_tool": "tool", "execute_task": "task"})
# How libraries name the kind of a span, and the operations that it stands for; of several, the first.
_KINDS: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType({
    "openinference.span.kind": {"llm": "chat", "tool": "execute_tool", "agent": "invoke_agent",
                                "embedding": "embeddings"},
    "traceloop.span.kind": {"tool": "execute_tool", "agent": "invoke_agent", "workflow": "invoke_workflow"},
    "langsmith.span.kind": {"llm": "chat", "tool": "execute_tool", "embedding": "embeddings"},
    "llm.request.type": {"chat": "chat", "completion": "text_completion", "embedding": "embeddings"},
})  # fmt: skip
_OF_MODELS: Final = ("gen_ai.request.model", "gen_ai.prompt.0.content", "gen_ai.input.messages")
# The conventions' name first, then the ones of libraries.
_ALIASES: Final[Mapping[str, Sequence[str]]] = MappingProxyType({
    "agent": ("gen_ai.agent.name", "agent.name", "traceloop.entity.name"),
    "tool": ("gen_ai.tool.name", "tool.name", "traceloop.entity.name"),
    "task": ("gen_ai.task.name", "traceloop.entity.name"),
    "system": ("gen_ai.system_instructions",),
    "arguments": ("gen_ai.tool.call.arguments", "input.value", "tool.parameters", "traceloop.entity.input",
                  "gen_ai.prompt"),
    "result": ("gen_ai.tool.call.result", "output.value", "traceloop.entity.output", "gen_ai.completion"),
    "model": ("gen_ai.response.model", "gen_ai.request.model", "llm.model_name", "llm.response.model_name",
              "llm.request.model_name"),
    # LangChain is a `gen_ai.system` of its own for some: what it calls is named beside it.
    "provider": ("langsmith.metadata.ls_provider", "traceloop.association.properties.ls_provider",
                 "gen_ai.provider.name", "gen_ai.system", "llm.provider", "llm.system"),
    "input_tokens": ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt",
                     "llm.usage.prompt_tokens"),
    "output_tokens": ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.token_count.completion",
                      "llm.usage.completion_tokens"),
    "reasons": ("gen_ai.response.finish_reasons", "gen_ai.response.finish_reason", "gen_ai.completion.0.finish_reason",
                "llm.finish_reason", "llm.response.finish_reason"),
    "input": ("gen_ai.input.messages", "gen_ai.prompt", "input.value", "traceloop.entity.input"),
    "output": ("gen_ai.output.messages", "gen_ai.completion", "output.value", "traceloop.entity.output"),
})  # fmt: skip
_NUMBERED: Final = {"input": ("gen_ai.prompt.", "llm.input_messages."),
                    "output": ("gen_ai.completion.", "llm.output_messages.")}  # fmt: skip
_WRAPPERS: Final = ("message", "tool_call", "message_content")  # of OpenInference: a mapping around each item of a list
_MOST_PARTS: Final = 12  # of the name of an attribute
# The repr of an exception
_REPR: Final = re.compile(r"(?P<type>[A-Za-z_]\w*)\((?P<quote>['\"])(?P<message>.*)(?P=quote)\)", re.DOTALL)
_TRACEBACK: Final = "Traceback (most recent call last)"  # of OpenInference and LangSmith, behind a failure's message
_DETAILS: Final = "gen_ai.client.inference.operation.details"  # an event with the messages as attributes
_EVENTS: Final = {"gen_ai.system.message": "system", "gen_ai.user.message": "user", "gen_ai.tool.message": "tool",
                  "gen_ai.assistant.message": "assistant", "gen_ai.choice": "assistant"}  # fmt: skip


@dataclass(slots=True)
class Span:
    """One span, and the spans inside it. Times are nanoseconds since 1970."""

    id: str
    parent: str
    name: str
    started_at: int
    ended_at: int
    attributes: dict[str, Any]
    events: list[tuple[str, dict[str, Any]]]
    error: str | None
    children: list[Span] = field(default_factory=list)
    depth: int = 0

    @property
    def operation(self) -> str:
        """The GenAI operation, as in `chat` or `execute_tool`; empty for any other span."""
        operation = self.attributes.get("gen_ai.operation.name")
        if operation is not None and operation != "":
            return str(operation)
        for attribute, operations in _KINDS.items():
            kind = self.attributes.get(attribute)
            if isinstance(kind, str) and kind:
                return operations.get(kind.lower(), "")
        return "chat" if any(name in self.attributes for name in _OF_MODELS) else ""

    @property
    def label(self) -> str:
        """The name of the node: that of the tool or the agent, else the span's."""
        kind = _NAMED.get(self.operation, "agent" if self.operation in _AGENT else "")
        return str((kind and self.find(kind)) or self.name or self.id)

    def find(self, what: str) -> Any:
        """Return what the span says of itself, under the first name of `_ALIASES` that it has; None if nothing."""
        values = (self.attributes.get(name) for name in _ALIASES[what])
        return next((value for value in values if value is not None), None)


def open_otel(where: str | os.PathLike[str], run_id: str | None = None) -> Recording:
    """Return a trace of an OTLP JSON file as a session, at its end.

    Args:
        where: the file: one JSON document, or one per line.
        run_id: the id of a trace; by default the one that ended last.

    Raises:
        StoreError: L571, L576, the file is not OTLP JSON; L572, it is too large; L577, there is no such trace.
    """
    path = os.fspath(where)
    traces = _read_traces(path)
    if run_id is None and traces:
        run_id = max(traces, key=lambda name: max(span.ended_at for span in traces[name]))
    if run_id not in traces:
        raise StoreError(
            Problem("L577", f"there is no trace {run_id!r}" if run_id else "there is no trace in this file", path,
                    f"its traces are: {', '.join(map(repr, list(traces)[:5])) or 'none'}",
                    did_you_mean(run_id or "", list(traces), "leave run_id out for the trace that ended last"))
        )  # fmt: skip
    spans = traces[run_id]
    roots = _nest(path, spans)
    with reading(path):
        steps = _Steps(roots).steps
    name = roots[0].label if roots else run_id
    origin = {"otel": {"file": path, "trace": run_id, "spans": len(spans)}}
    run = build(name, "otel", steps, {}, about=origin)
    ended = "failed" if any(span.error is not None for span in roots) else "finished"
    return Recording.of_run(run, name, run_id, _read_only(path, run_id), ended)


def _read_only(where: str, run_id: str) -> Problem:
    """L450: this run can only be read."""
    return Problem("L450", "this run can only be read: it is a trace of OpenTelemetry", f"{where}, trace {run_id!r}",
                   "spans are a record; the code is in the program that sent them",
                   "go through it with step(), back() and goto()")  # fmt: skip


# -- steps -------------------------------------------------------------------------------------------------------------


class _Steps:
    """The steps of nested spans, in the order of time: a span with others inside is entered and left."""

    def __init__(self, roots: Sequence[Span]) -> None:
        self.steps: list[RecordedStep] = []
        self.usage = {"input_tokens": 0, "output_tokens": 0}
        self.lane = dict.fromkeys((span.id for span in roots), -1)
        self.ids = NodeIds()
        self.paths: dict[str, str] = {}
        moments = [moment for span in roots for moment in self._iter_moments(span, "")]
        moments.sort(key=lambda moment: moment[:3])
        entered: dict[str, int] = {}
        last: dict[tuple[str, int], int] = {}  # the span around it, and the lane -> the last step there
        for _time, _order, _depth, phase, span in moments:
            around, lane = span.parent, self.lane[span.id]
            inside = entered.get(around)
            came_from = last.get((around, lane), inside if inside is not None else (-1 if self.steps else None))
            if phase == "leave":
                came_from = max(last.get((span.id, each), entered[span.id]) for each in range(-1, len(span.children)))
            step = RecordedStep(self.paths[span.id], _get_kind(span), phase, inside, lane=lane, triggered_by=came_from,
                                started_at=span.started_at, ended_at=span.ended_at, shared=True,
                                label=span.label)  # fmt: skip
            if phase == "enter":
                entered[span.id] = len(self.steps)
                step.ended_at = span.started_at
                step.lanes = max((self.lane[each.id] + 1 for each in span.children), default=0)
            else:
                self._finish(step, span)
                step.enter_place = entered.get(span.id)
            last[around, lane] = len(self.steps)
            self.steps.append(step)

    def _iter_moments(self, span: Span, prefix: str) -> Iterator[tuple[int, int, int, str, Span]]:
        self.paths[span.id] = path = self.ids.id_of(prefix, span.label)
        if not span.children:
            yield span.ended_at, 0, -span.depth, "run", span
            return
        self.lane.update(_assign_lanes(span.children))
        yield span.started_at, -1, span.depth, "enter", span
        for each in span.children:
            yield from self._iter_moments(each, path)
        yield span.ended_at, 1, -span.depth, "leave", span

    def _finish(self, step: RecordedStep, span: Span) -> None:
        attributes = span.attributes
        if span.operation in _MODEL:
            request_messages, answered = _parse_messages(span)
            tokens_in, tokens_out = (_parse_count(span.find(f"{side}_tokens")) for side in ("input", "output"))
            reasons, model, provider = span.find("reasons"), span.find("model"), span.find("provider")
            if reasons is None and answered and isinstance(answered[0], dict):
                reasons = answered[0].get("finish_reason")
            for side, number in zip(self.usage, (tokens_in, tokens_out), strict=True):
                self.usage[side] += number or 0
            step.calls = [
                RecordedCall(
                    "llm",
                    str(model or span.name),
                    {"messages": request_messages},
                    answered or None,
                    span.error,
                    (span.ended_at - span.started_at) / 1e9,
                    tokens_in,
                    tokens_out,
                    _parse_text(provider),
                    _parse_text(model),
                    _parse_text(reasons[0] if isinstance(reasons, list) and reasons else reasons),
                )
            ]
            step.writes = {"messages": [*request_messages, *answered], "usage": dict(self.usage)}
        elif span.operation == "execute_tool":
            result, arguments = _parse_result(span), _parse_arguments(span)
            step.calls = [RecordedCall("tool", span.label, arguments, result, span.error,
                                       (span.ended_at - span.started_at) / 1e9)]  # fmt: skip
            step.inputs = arguments if isinstance(arguments, dict) else None
            step.writes = {} if span.error is not None else {span.label: result}
        elif attributes:
            step.inputs = attributes
        if span.error is not None:
            step.failure = (str(attributes.get("error.type") or "Error"), span.error)


def _get_kind(span: Span) -> str:
    if span.operation in _MODEL:
        return "llm"
    if span.operation == "execute_tool":
        return "tool"
    return "agent" if span.operation in _AGENT else "function"


def _assign_lanes(spans: Sequence[Span]) -> dict[str, int]:
    """Return the branch of each of some siblings: -1 for all if none overlaps another; else the first free one."""
    ends: list[int] = []
    lanes = {}
    for span in sorted(spans, key=lambda span: (span.started_at, span.ended_at)):
        free = next((lane for lane, end in enumerate(ends) if end <= span.started_at), len(ends))
        ends[free : free + 1] = [span.ended_at]
        lanes[span.id] = free
    return lanes if len(ends) > 1 else dict.fromkeys(lanes, -1)


def _parse_messages(span: Span) -> tuple[list[Any], list[Any]]:
    """Return the messages of a model call, and its answers: from events, numbered attributes, or one attribute."""
    collected: dict[str, list[Any]] = {"input": [], "output": []}
    for name, event_attributes in span.events:
        if name == _DETAILS:
            for side in collected:
                collected[side] += _list_messages(_parse_json(event_attributes.get(f"gen_ai.{side}.messages")), side)
        elif name in _EVENTS:
            content = _parse_json(event_attributes.get("content") or event_attributes.get("message"))
            row = {"role": str(event_attributes.get("role") or _EVENTS[name]), "content": content}
            collected["output" if name == "gen_ai.choice" else "input"].append(row)
    for side, prefixes in _NUMBERED.items():
        messages = _list_messages(_parse_json(span.attributes.get(f"gen_ai.{side}.messages")), side)
        numbered = (_collect_numbered(span.attributes, prefix) for prefix in prefixes)
        collected[side] = (
            messages
            or next(filter(None, numbered), collected[side])
            or _list_messages(_parse_json(span.find(side)), side)
        )
    request_messages, answered = ([to_plain_message(each) for each in rows] for rows in collected.values())
    system = _parse_json(span.find("system"))
    if system and not any(isinstance(each, dict) and each.get("role") == "system" for each in request_messages):
        request_messages.insert(0, {"role": "system", "parts" if isinstance(system, list) else "content": system})
    return request_messages, answered


def _parse_arguments(span: Span) -> Any:
    """Return the arguments of a tool, without what OpenLLMetry records of LangChain's callback beside them."""
    arguments = _parse_json(span.find("arguments"))
    if isinstance(arguments, dict) and {"input_str", "inputs"} <= arguments.keys():
        arguments = arguments["inputs"] if arguments["inputs"] is not None else arguments["input_str"]
    return arguments


def _parse_result(span: Span) -> Any:
    """Return the result of a tool: what a tool message of LangChain contains, without the message around it."""
    result = _parse_json(span.find("result"))
    if isinstance(result, dict) and "output" in result and result.keys() <= {"output", "kwargs"}:
        result = _parse_json(result["output"])
    message = to_plain_message(result)
    is_wrapped = message is not result and isinstance(message, dict) and message.get("role") == "tool"
    return _parse_json(message.get("content")) if is_wrapped else result


def _list_messages(value: Any, side: str) -> list[Any]:
    """Return the messages in a value: a list, a mapping that has one, or one message or text."""
    if value is None or value == "":
        return []
    if isinstance(value, dict):
        inner = next((value[name] for name in ("messages", "generations") if isinstance(value.get(name), list)), None)
        value = value if inner is None else inner
    while isinstance(value, list) and len(value) == 1 and isinstance(value[0], list):  # a batch of one
        value = value[0]
    if isinstance(value, list):
        return value
    is_message = isinstance(value, dict) and "role" in value
    return [value if is_message else {"role": "user" if side == "input" else "assistant", "content": value}]


def _collect_numbered(attributes: Mapping[str, Any], prefix: str) -> list[Any]:
    """Return messages that were written as attributes PREFIX0.role, PREFIX0.content, PREFIX0.tool_calls.0.name ..."""
    tree: dict[Any, Any] = {}
    for key, value in attributes.items():
        parts = key.removeprefix(prefix).split(".")
        if not key.startswith(prefix) or not 2 <= len(parts) <= _MOST_PARTS or not _is_place(parts[0]):
            continue
        at = tree
        for part in parts[:-1]:
            at = at.setdefault(int(part) if _is_place(part) else part, {})
            if not isinstance(at, dict):
                break
        else:
            at.setdefault(parts[-1], value)
    items = _unwrap(tree)
    return items if isinstance(items, list) else []


def _is_place(text: str) -> bool:
    return text.isdecimal() and text.isascii() and len(text) < 10


def _unwrap(tree: Any) -> Any:
    """Return a tree with numbers for keys as lists, and without the mappings with which OpenInference wraps items."""
    if not isinstance(tree, dict):
        return tree
    if tree and all(type(key) is int for key in tree):
        return [_unwrap(tree[number]) for number in sorted(tree)]
    if len(tree) == 1 and (name := next(iter(tree))) in _WRAPPERS:
        return _unwrap(tree[name])
    return {str(key): _unwrap(value) for key, value in tree.items()}


def _parse_json(value: Any) -> Any:
    """Return what a text holds as JSON, else the text."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _parse_count(value: Any) -> int | None:
    """Return a number of tokens; None for what cannot be one."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST_TOKENS else None


def _parse_text(value: Any) -> str | None:
    return None if value is None else str(value)


# -- reading -----------------------------------------------------------------------------------------------------------


def _read_traces(where: str) -> dict[str, list[Span]]:
    """Return the spans of each trace of a file.

    L576: a file of spans is damaged.

    Raises:
        StoreError: L572, L576, R340.
    """
    data = read_text(where)
    try:
        text = data.decode("utf-8")
        try:
            documents = [json.loads(text)]
        except json.JSONDecodeError:
            documents = [json.loads(line) for line in text.splitlines() if line.strip()]
        traces: dict[str, list[Span]] = {}
        for document in documents:
            for resource in document["resourceSpans"]:
                for scope in resource.get("scopeSpans") or resource.get("instrumentationLibrarySpans") or ():
                    for row in scope.get("spans", ()):
                        traces.setdefault(str(row["traceId"]), []).append(_parse_span(row))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError) as error:
        raise StoreError(
            Problem("L576", "this is not a file of OTLP JSON, or it is damaged", where,
                    f"{type(error).__name__}: {error}", "export spans with the JSON encoding of OTLP")
        ) from None  # fmt: skip
    return traces


def _parse_span(row: Mapping[str, Any]) -> Span:
    attributes = _parse_attributes(row.get("attributes"))
    events = [(str(event.get("name")), _parse_attributes(event.get("attributes"))) for event in row.get("events") or ()]
    status = row.get("status") or {}
    error = None
    if status.get("code") in _ERROR:
        raised = next((fields for name, fields in events if name == "exception"), {})
        type, error = _parse_failure(
            status.get("message"), raised.get("exception.type"), raised.get("exception.message")
        )
        attributes.setdefault("error.type", type)
    start, ended = int(row.get("startTimeUnixNano", 0)), int(row.get("endTimeUnixNano", 0))
    if not 0 <= start <= LATEST or not 0 <= ended <= LATEST:
        raise ValueError("a time is out of range")
    return Span(str(row["spanId"]), str(row.get("parentSpanId") or ""), str(row.get("name", "")), start,
                max(start, ended), attributes, events, error)  # fmt: skip


def _parse_failure(status: Any, type: Any, message: Any) -> tuple[str, str]:
    """Return the type and the message of a failure, from a status and the exception recorded beside it.

    OpenInference and LangSmith write the exception's repr and its traceback into the status.
    """
    summary, traced, _ = str(status or "").partition(_TRACEBACK)
    known, also, _ = str(message or "").partition(_TRACEBACK)
    text = (known if traced and known else summary or known).strip()
    shown = _REPR.fullmatch(text) if traced or also else None
    if shown is not None:
        return shown["type"], shown["message"]
    return str(type or "Error"), text or "it failed"


def _parse_attributes(rows: Any) -> dict[str, Any]:
    return {str(row["key"]): _parse_value(row.get("value") or {}) for row in rows or ()}


def _parse_value(value: Mapping[str, Any], depth: int = 0) -> Any:
    """Return a value of OTLP: whole numbers are written as text, lists and mappings in their own wrappers."""
    if depth > DEEPEST:
        raise ValueError("a value is nested too deeply")
    for name, item in value.items():
        match name:
            case "stringValue" | "boolValue" | "doubleValue" | "bytesValue":
                return item
            case "intValue":
                return int(item)
            case "arrayValue":
                return [_parse_value(each, depth + 1) for each in item.get("values", ())]
            case "kvlistValue":
                return {
                    str(each["key"]): _parse_value(each.get("value") or {}, depth + 1)
                    for each in item.get("values", ())
                }
    return None


def _nest(where: str, spans: Sequence[Span]) -> list[Span]:
    """Return the spans without a parent in the file, each with those inside it, in the order of their begin.

    Raises:
        StoreError: L576, spans lie in themselves, or are too many or nested too deeply.
    """
    by_id = {span.id: span for span in spans}
    roots = []
    for span in sorted(by_id.values(), key=lambda span: (span.started_at, span.id)):
        around = by_id.get(span.parent)
        if around is None:
            span.parent = ""
            roots.append(span)
        else:
            around.children.append(span)
    reached, waiting = list[Span](), list(roots)
    while waiting:
        span = waiting.pop()
        reached.append(span)
        for each in span.children:
            each.depth = span.depth + 1
        waiting += span.children
        if span.depth > DEEPEST:
            break
    if len(reached) != len(by_id) or len(reached) > MOST:
        why = f"it has {len(by_id)} spans, at most {MOST} can be read, {DEEPEST} inside each other and none in itself"
        raise StoreError(Problem("L576", "this is not a file of OTLP JSON, or it is damaged", where, why,
                                 "export the spans of one run to a file"))  # fmt: skip
    for span in reversed(reached):  # what is inside a span may be timed by another machine's clock
        span.started_at = min([span.started_at, *(each.started_at for each in span.children)])
        span.ended_at = max([span.ended_at, *(each.ended_at for each in span.children)])
        span.children.sort(key=lambda each: (each.started_at, each.id))
    return sorted(roots, key=lambda span: (span.started_at, span.id))


__all__ = ["open_otel"]
