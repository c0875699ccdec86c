"""A model that answers from a script: a list, a mapping by node, or a function of the request."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from agentnb.errors import ExecutionError, Problem
from agentnb.world.llm.base import LLMRequest, LLMResponse, stream_whole


class ScriptedClient:
    """Answers from a script. It is stateless: the request states how many came before.

    A run that goes back and repeats steps therefore gets the same answers. A string in a list or a mapping is passed to
    a listener as one piece; a function may call `request.on_token` itself.

    A list is used in the order in which the calls start, including those of parallel branches that are still in flight:
    no two of them get the same answer. If branches make several requests, that order depends on their timing, so
    `run()`, which runs branches in parallel, may give them different answers than `step()`. A mapping by node has no
    such order.
    """

    def __init__(self, script: Any) -> None:
        self.script = script
        self.is_simulated = not callable(script)  # a function handles this itself

    def complete(self, request: LLMRequest) -> Any:
        """Return the script's answer.

        Raises:
            ExecutionError: X304, the script has no answer left for this node.
        """
        script = self.script
        if callable(script):
            answer = script(request)
            return _await_response(answer, request) if inspect.isawaitable(answer) else _to_response(answer, request)
        if isinstance(script, Mapping):
            of_node = script.get(request.node, ())
            answers = of_node if isinstance(of_node, list | tuple) else [of_node]
            return stream_whole(_to_response(_get_at(answers, request.of_node, request), request), request)
        return stream_whole(_to_response(_get_at(script, request.number, request), request), request)


async def _await_response(answer: Any, request: LLMRequest) -> LLMResponse:
    return _to_response(await answer, request)


def _to_response(answer: Any, request: LLMRequest) -> LLMResponse:
    """Return the response. A mapping with `tool_calls` calls tools if the request offers some."""
    if isinstance(answer, LLMResponse):
        return answer
    return LLMResponse.from_record(answer, {"tools": request.tools}, "scripted")


def _get_at(answers: Sequence[Any], number: int, request: LLMRequest) -> Any:
    if number < len(answers):
        return answers[number]
    raise ExecutionError(
        Problem(
            "X304",
            f"the script has no answer left for node {request.node!r}",
            "llm=...",
            f"it made {number + 1} requests and has {len(answers)} answers",
            "add an answer, or go back and change the run",
        )
    )
