"""The model requests and tool calls of a delivery as rows of calls: each request in the log with its answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from agentnb.board.values import freeze
from agentnb.dialects.activegraph.parts.package_logs.records import LogEvent
from agentnb.engine.core.history import Call

_KINDS: Final = {"llm.requested": "llm", "tool.requested": "tool", "embedding.requested": "embedding"}
_ANSWERS: Final = {"llm.responded", "tool.responded", "embedding.responded"}
_ASKED: Final = ("prompt", "model", "prompt_hash", "turn_index", "cache_hit", "inputs_hash", "input_count")


def iter_calls(events: Sequence[LogEvent], step: int, activation: int) -> Iterator[Call]:
    """Yield the calls of one delivery, one row per attempt, in the order in which they were sent.

    A request without an answer gets an error that says so.
    """
    answers = {event.caused_by: event for event in events if event.type in _ANSWERS}
    numbers: dict[str, tuple[int, int]] = {}
    count = 0
    for event in events:
        kind = _KINDS.get(event.type)
        if kind is None:
            continue
        previous = numbers.get(str(event.payload.get("retry_of")))
        number, attempt = (count, 1) if previous is None else (previous[0], previous[1] + 1)
        count += previous is None
        numbers[event.id] = number, attempt
        yield _make_row(event, kind, answers.get(event.id), (step, activation, number, attempt))


def _make_row(request: LogEvent, kind: str, answer: LogEvent | None, call_key: tuple[int, int, int, int]) -> Call:
    step, activation, number, attempt = call_key
    payload = request.payload
    name = str(payload.get("tool") or payload.get("model") or kind)
    sent = payload.get("args") if kind == "tool" else {key: payload[key] for key in _ASKED if key in payload}
    back: Mapping[str, Any] = {} if answer is None else answer.payload
    error = "no answer is in the log" if answer is None else _to_error_text(back.get("error"))
    return Call(
        step=step, activation=activation, call=number, kind=kind, name=name, attempt=attempt, wait=0.0,
        arguments=freeze(sent), result=freeze(None if error else _make_result(kind, back)), error=error,
        seconds=_number(back.get("latency_seconds")) or 0.0,
        tokens_in=_to_count(back.get("input_tokens")), tokens_out=_to_count(back.get("output_tokens")),
        cost_usd=_to_cost(back.get("cost_usd")),
    )  # fmt: skip


def _make_result(kind: str, back: Mapping[str, Any]) -> Any:
    if kind == "tool":
        return back.get("output")
    if kind == "embedding":
        return back.get("vectors")
    if back.get("tool_calls"):
        return {"tool_calls": back["tool_calls"]}
    return back.get("raw_text") if back.get("parsed") is None else back["parsed"]


def _to_error_text(error: Any) -> str | None:
    if isinstance(error, Mapping):
        texts = [str(error[key]) for key in ("reason", "message") if error.get(key)]
        return ": ".join(texts) or str(dict(error))
    return None if error is None else str(error)


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _to_count(value: Any) -> int | None:
    number = _number(value)
    return None if number is None else int(number)


def _to_cost(value: Any) -> Decimal | None:
    try:
        return None if value is None else Decimal(str(value))
    except InvalidOperation:
        return None


__all__ = ["iter_calls"]
