"""A model that returns the answers of a recorded run, node by node, without calling anything."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

from agentnb.board.masking import mask_value
from agentnb.board.values import thaw
from agentnb.errors import ExecutionError, Problem, did_you_mean, with_article
from agentnb.text import safe_repr
from agentnb.world.llm.base import LLMError, LLMRequest, LLMResponse, Usage, stream_whole

_WHERE: Final = "RecordedClient"


class RecordedClient:
    """Answers from a trace.

    A node's n-th request gets the n-th answer of this node in the recorded run.

    Like a script, it is stateless: a run that goes back and repeats steps gets the same answers. A call with several
    attempts returns the last answer. A failed call fails again (a timeout with a TimeoutError). Tokens and cost are the
    recorded ones.

    Args:
        trace: a SimulationTrace, live or from a file, or a session. It is read once, now.
        strict: reject requests whose messages differ from the recorded ones; otherwise they are answered anyway.

    Raises:
        ExecutionError: X343, it is not a trace
    """

    is_simulated = True  # no model is called

    def __init__(self, trace: Any, *, strict: bool = False) -> None:
        self.strict = strict
        self._calls = _group_calls(getattr(trace, "trace", trace))

    def __repr__(self) -> str:
        """Return one line with the number of answers."""
        return f"<RecordedClient of {sum(map(len, self._calls.values()))} answers>"

    def complete(self, request: LLMRequest) -> LLMResponse:
        """Return the recorded answer.

        Raises:
            ExecutionError: X340, there is no answer left; X341, other messages were recorded.
            LLMError: X342, the recorded call failed.
            TimeoutError: the recorded call took too long.
        """
        calls = self._calls.get(request.node, ())
        if request.of_node >= len(calls):
            raise _make_exhausted_error(request, len(calls), self._calls)
        call = calls[request.of_node]
        if self.strict:
            _compare(request, call)
        if call.error is not None:
            raise _make_error(request, call.error)
        usage = Usage(call.tokens_in, call.tokens_out, call.cost_usd)
        return stream_whole(LLMResponse.from_record(thaw(call.result), call.arguments, usage=usage), request)


def _group_calls(trace: Any) -> dict[str, list[Any]]:
    """Return the last attempt of each model call, by node, in order."""
    reading = getattr(trace, "reading", None)
    if not callable(reading):
        raise ExecutionError(
            Problem("X343", f"{with_article(type(trace).__name__)} is not a trace", f"{_WHERE}(trace)",
                    "recorded answers come from a trace",
                    "pass session.trace or SimulationTrace.read(path)")
        )  # fmt: skip
    read = reading()
    groups: defaultdict[str, dict[tuple[int, ...], Any]] = defaultdict(dict)
    for history, last in read.parts():
        for call in history.calls:
            if call.kind == "llm" and call.step <= history.base + last:
                node = read.nodes[read.tables.activations[call.activation].node].id
                groups[node][call.step, call.activation, call.call] = call
    return {node: list(calls.values()) for node, calls in groups.items()}


def _make_exhausted_error(request: LLMRequest, had: int, nodes: Mapping[str, Sequence[Any]]) -> ExecutionError:
    why = f"it made {request.of_node + 1} requests, and the trace has {had} of its answers"
    if not had:
        why = f"the trace has answers for: {', '.join(nodes) or 'no node'}"
    order = "record the run again, or pass another model to the session"
    return ExecutionError(
        Problem("X340", f"the trace has no answer left for node {request.node!r}", _WHERE, why,
                order if had else did_you_mean(request.node, nodes, order))
    )  # fmt: skip


def _make_error(request: LLMRequest, error: str) -> Exception:
    kind, _, message = error.splitlines()[0].partition(": ")
    if kind == "TimeoutError":
        return TimeoutError(message)
    return LLMError(
        Problem("X342", f"the recorded call of node {request.node!r} failed: {message or kind}", _WHERE,
                f"it raised {kind}; the recording is repeated",
                "record the run again, or pass another model to the session")
    )  # fmt: skip


def _compare(request: LLMRequest, call: Any) -> None:
    """Raise an error for the first message that differs from the recorded one. Masked secrets count as equal."""
    recorded_messages = LLMRequest.of(thaw(call.arguments)).messages
    for number in range(max(len(recorded_messages), len(request.messages))):
        recorded_value, current_value = (
            mask_value({"role": row[number].role, "content": row[number].content}) if number < len(row) else None
            for row in (recorded_messages, request.messages)
        )
        if recorded_value != current_value:
            was, is_now = _describe_message(recorded_value), _describe_message(current_value)
            raise ExecutionError(
                Problem("X341", f"node {request.node!r} sent a request that differs from the recording", _WHERE,
                        f"message {number + 1} was {was}, and is {is_now}",
                        "record the run again, or pass strict=False to use the answer anyway")
            )  # fmt: skip


def _describe_message(message: Mapping[str, str] | None) -> str:
    return "not there" if message is None else f"{message['role']}: {safe_repr(message['content'], limit=200)}"
