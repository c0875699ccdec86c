"""Spans of OpenTelemetry (OTLP JSON) as recordings: frames from parents, branches from overlap, calls from GenAI spans.

The board has `messages` (of the last model call, with its answer), `usage` (tokens so far), and the last result of each
tool under the tool's name.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from agentnb.errors import Problem, StoreError, did_you_mean
from agentnb.recordings.builder import LATEST, NodeIds, RecordedCall, RecordedStep, build, reading
from agentnb.recordings.formats import read_text
from agentnb.session.recording import Recording

MOST: Final = 200_000  # spans of one trace
DEEPEST: Final = 200  # spans inside each other
_MOST_TOKENS: Final = 2**53
_ERROR: Final = (2, "STATUS_CODE_ERROR")
_MODEL: Final = {"chat", "generate_content", "text_completion", "embeddings"}
_AGENT: Final = {"invoke_agent", "create_agent", "invoke_workflow"}
_EVENTS: Final = {"gen_ai.system.message": "system", "gen_ai.user.message": "user", "gen_ai.tool.message": "tool",
                  "gen_ai.assistant.message": "assistant", "gen_ai.choice": "assistant"}  # fmt: skip


@dataclass(slots=True)
class Span:
    """One span, and the spans inside it. Times are nanoseconds since 1970."""

    id: str
    parent: str
    name: str
    began: int
    ended: int
    attributes: dict[str, Any]
    events: list[tuple[str, dict[str, Any]]]
    error: str | None
    inside: list[Span] = field(default_factory=list)
    depth: int = 0

    @property
    def operation(self) -> str:
        """The GenAI operation, as in `chat` or `execute_tool`; empty for any other span."""
        return str(self.attributes.get("gen_ai.operation.name") or "")

    @property
    def label(self) -> str:
        """The name of the node: that of the tool or the agent, else the span's."""
        kind = {"execute_tool": "gen_ai.tool.name"}.get(self.operation)
        kind = "gen_ai.agent.name" if self.operation in _AGENT else kind
        return str((kind and self.attributes.get(kind)) or self.name or self.id)


def open_otel(where: str | os.PathLike[str], run_id: str | None = None) -> Recording:
    """Return a trace of an OTLP JSON file as a session, at its end.

    Args:
        where: the file: one JSON document, or one per line.
        run_id: the id of a trace; by default the one that ended last.

    Raises:
        StoreError: L571, L576, the file is not OTLP JSON; L572, it is too large; L577, there is no such trace.
    """
    place = os.fspath(where)
    traces = _traces(place)
    if run_id is None and traces:
        run_id = max(traces, key=lambda name: max(span.ended for span in traces[name]))
    if run_id not in traces:
        raise StoreError(
            Problem("L577", f"there is no trace {run_id!r}" if run_id else "there is no trace in this file", place,
                    f"its traces are: {', '.join(map(repr, list(traces)[:5])) or 'none'}",
                    did_you_mean(run_id or "", list(traces), "leave run_id out for the trace that ended last"))
        )  # fmt: skip
    spans = traces[run_id]
    roots = _nest(place, spans)
    with reading(place):
        steps = _Steps(roots).steps
    name = roots[0].label if roots else run_id
    about = {"otel": {"file": place, "trace": run_id, "spans": len(spans)}}
    run = build(name, "otel", steps, {}, about=about)
    ended = "failed" if any(span.error is not None for span in roots) else "finished"
    return Recording.of_run(run, name, run_id, _read_only(place, run_id), ended)


def _read_only(where: str, run_id: str) -> Problem:
    """L450: this run can only be read."""
    return Problem("L450", "this run can only be read: it is a trace of OpenTelemetry", f"{where}, trace {run_id!r}",
                   "spans say what has happened; the code that made them is in another program",
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
        moments = [moment for span in roots for moment in self._moments(span, "")]
        moments.sort(key=lambda moment: moment[:3])
        entered: dict[str, int] = {}
        last: dict[tuple[str, int], int] = {}  # the span around it, and the lane -> the last step there
        for _time, _order, _depth, phase, span in moments:
            around, lane = span.parent, self.lane[span.id]
            inside = entered.get(around)
            came_from = last.get((around, lane), inside if inside is not None else (-1 if self.steps else None))
            if phase == "leave":
                came_from = max(last.get((span.id, each), entered[span.id]) for each in range(-1, len(span.inside)))
            step = RecordedStep(self.paths[span.id], _kind(span), phase, inside, lane=lane, came_from=came_from,
                                began=span.began, ended=span.ended, shared=True, label=span.name)  # fmt: skip
            if phase == "enter":
                entered[span.id] = len(self.steps)
                step.ended = span.began
                step.lanes = max((self.lane[each.id] + 1 for each in span.inside), default=0)
            else:
                self._finish(step, span)
                step.entered = entered.get(span.id)
            last[around, lane] = len(self.steps)
            self.steps.append(step)

    def _moments(self, span: Span, prefix: str) -> Iterator[tuple[int, int, int, str, Span]]:
        self.paths[span.id] = path = self.ids.id_of(prefix, span.label)
        if not span.inside:
            yield span.ended, 0, -span.depth, "run", span
            return
        self.lane.update(_lanes(span.inside))
        yield span.began, -1, span.depth, "enter", span
        for each in span.inside:
            yield from self._moments(each, path)
        yield span.ended, 1, -span.depth, "leave", span

    def _finish(self, step: RecordedStep, span: Span) -> None:
        said = span.attributes
        if span.operation in _MODEL:
            asked, answered = _messages(span)
            tokens_in, tokens_out = (_whole(said.get(f"gen_ai.usage.{side}_tokens")) for side in ("input", "output"))
            reasons = said.get("gen_ai.response.finish_reasons")
            model = said.get("gen_ai.response.model") or said.get("gen_ai.request.model")
            provider = said.get("gen_ai.provider.name") or said.get("gen_ai.system")
            for side, number in zip(self.usage, (tokens_in, tokens_out), strict=True):
                self.usage[side] += number or 0
            step.calls = [
                RecordedCall("llm", str(model or span.name), {"messages": asked}, answered or None, span.error,
                             (span.ended - span.began) / 1e9, tokens_in, tokens_out, _text(provider), _text(model),
                             _text(reasons[0] if isinstance(reasons, list) and reasons else reasons))
            ]  # fmt: skip
            step.writes = {"messages": [*asked, *answered], "usage": dict(self.usage)}
        elif span.operation == "execute_tool":
            result = _json(said.get("gen_ai.tool.call.result"))
            arguments = _json(said.get("gen_ai.tool.call.arguments"))
            step.calls = [RecordedCall("tool", span.label, arguments, result, span.error,
                                       (span.ended - span.began) / 1e9)]  # fmt: skip
            step.inputs = arguments if isinstance(arguments, dict) else None
            step.writes = {} if span.error is not None else {span.label: result}
        elif said:
            step.inputs = said
        if span.error is not None:
            step.failure = (str(said.get("error.type") or "Error"), span.error)


def _kind(span: Span) -> str:
    if span.operation in _MODEL:
        return "llm"
    if span.operation == "execute_tool":
        return "tool"
    return "agent" if span.operation in _AGENT else "function"


def _lanes(spans: Sequence[Span]) -> dict[str, int]:
    """Return the branch of each of some siblings: -1 for all if none overlaps another; else the first free one."""
    ends: list[int] = []
    found = {}
    for span in sorted(spans, key=lambda span: (span.began, span.ended)):
        free = next((lane for lane, end in enumerate(ends) if end <= span.began), len(ends))
        ends[free : free + 1] = [span.ended]
        found[span.id] = free
    return found if len(ends) > 1 else dict.fromkeys(found, -1)


def _messages(span: Span) -> tuple[list[Any], list[Any]]:
    """Return the messages of a model call, and its answers: from attributes, numbered attributes, or events."""
    found: dict[str, list[Any]] = {}
    for side, old in (("input", "prompt"), ("output", "completion")):
        given = _json(span.attributes.get(f"gen_ai.{side}.messages"))
        found[side] = given if isinstance(given, list) else _collect_numbered(span.attributes, f"gen_ai.{old}.")
    if not any(found.values()):
        for name, said in span.events:
            if name in _EVENTS:
                content = _json(said.get("content") or said.get("message"))
                found["output" if name == "gen_ai.choice" else "input"].append(
                    {"role": str(said.get("role") or _EVENTS[name]), "content": content}
                )
    return found["input"], found["output"]


def _collect_numbered(attributes: Mapping[str, Any], prefix: str) -> list[Any]:
    """Return messages that were written as attributes PREFIX0.role, PREFIX0.content ..."""
    rows: dict[int, dict[str, Any]] = {}
    for key, value in attributes.items():
        number, _, part = key.removeprefix(prefix).partition(".")
        if key.startswith(prefix) and number.isdecimal() and len(number) < 10 and part:
            rows.setdefault(int(number), {})[part] = value
    return [rows[number] for number in sorted(rows)]


def _json(value: Any) -> Any:
    """Return what a text holds as JSON, else the text."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _whole(value: Any) -> int | None:
    """Return a number of tokens; None for what cannot be one."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST_TOKENS else None


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


# -- reading -----------------------------------------------------------------------------------------------------------


def _traces(where: str) -> dict[str, list[Span]]:
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
        found: dict[str, list[Span]] = {}
        for document in documents:
            for resource in document["resourceSpans"]:
                for scope in resource.get("scopeSpans") or resource.get("instrumentationLibrarySpans") or ():
                    for row in scope.get("spans", ()):
                        found.setdefault(str(row["traceId"]), []).append(_span(row))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError) as error:
        raise StoreError(
            Problem("L576", "this is not a file of OTLP JSON, or it is damaged", where,
                    f"{type(error).__name__}: {error}", "export spans with the JSON encoding of OTLP")
        ) from None  # fmt: skip
    return found


def _span(row: Mapping[str, Any]) -> Span:
    attributes = _attributes(row.get("attributes"))
    events = [(str(event.get("name")), _attributes(event.get("attributes"))) for event in row.get("events") or ()]
    status = row.get("status") or {}
    error = None
    if status.get("code") in _ERROR:
        raised = next((said for name, said in events if name == "exception"), {})
        error = str(status.get("message") or raised.get("exception.message") or "it failed")
        attributes.setdefault("error.type", raised.get("exception.type") or "Error")
    began, ended = int(row.get("startTimeUnixNano", 0)), int(row.get("endTimeUnixNano", 0))
    if not 0 <= began <= LATEST or not 0 <= ended <= LATEST:
        raise ValueError("a time is out of range")
    return Span(str(row["spanId"]), str(row.get("parentSpanId") or ""), str(row.get("name", "")), began,
                max(began, ended), attributes, events, error)  # fmt: skip


def _attributes(rows: Any) -> dict[str, Any]:
    return {str(row["key"]): _value(row.get("value") or {}) for row in rows or ()}


def _value(value: Mapping[str, Any], depth: int = 0) -> Any:
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
                return [_value(each, depth + 1) for each in item.get("values", ())]
            case "kvlistValue":
                return {str(each["key"]): _value(each.get("value") or {}, depth + 1) for each in item.get("values", ())}
    return None


def _nest(where: str, spans: Sequence[Span]) -> list[Span]:
    """Return the spans without a parent in the file, each with those inside it, in the order of their begin.

    Raises:
        StoreError: L576, spans lie in themselves, or are too many or nested too deeply.
    """
    by_id = {span.id: span for span in spans}
    roots = []
    for span in sorted(by_id.values(), key=lambda span: (span.began, span.id)):
        around = by_id.get(span.parent)
        if around is None:
            span.parent = ""
            roots.append(span)
        else:
            around.inside.append(span)
    reached, waiting = list[Span](), list(roots)
    while waiting:
        span = waiting.pop()
        reached.append(span)
        for each in span.inside:
            each.depth = span.depth + 1
        waiting += span.inside
        if span.depth > DEEPEST:
            break
    if len(reached) != len(by_id) or len(reached) > MOST:
        why = f"it has {len(by_id)} spans, at most {MOST} can be read, {DEEPEST} inside each other and none in itself"
        raise StoreError(Problem("L576", "this is not a file of OTLP JSON, or it is damaged", where, why,
                                 "export the spans of one run to a file"))  # fmt: skip
    for span in reversed(reached):  # what is inside a span may be timed by another machine's clock
        span.began = min([span.began, *(each.began for each in span.inside)])
        span.ended = max([span.ended, *(each.ended for each in span.inside)])
        span.inside.sort(key=lambda each: (each.began, each.id))
    return sorted(roots, key=lambda span: (span.began, span.id))


__all__ = ["open_otel"]
