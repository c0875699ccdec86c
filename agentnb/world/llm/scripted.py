"""scripted: a model that answers from a script: a list, a mapping by node, or a function of the request."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from agentnb.errors import ExecutionError, Problem
from agentnb.world.llm.base import LLMRequest, LLMResponse, told


class ScriptedClient:
    """Answers from a script. It keeps no place of its own: the request says how many came before.

    So a run that goes back and on again gets the same answers again. A text of a list or a mapping is told as one piece
    to who listens; a function may call `request.tell` itself.

    A list is taken in the order in which the calls begin, those of parallel branches that are still out among them: no
    two of them get the same answer. Where branches ask more than once, that order depends on how they go: `run()`,
    which runs them at the same time, may then give them other answers than `step()`. A mapping by node has no such
    order.
    """

    def __init__(self, script: Any) -> None:
        self.script = script
        self.made_up = not callable(script)  # what a function does is its own matter

    def complete(self, request: LLMRequest) -> Any:
        """Return the script's answer.

        Raises:
            ExecutionError: X304, the script has no answer left for this node.
        """
        script = self.script
        if callable(script):
            answer = script(request)
            return _later(answer) if inspect.isawaitable(answer) else _response(answer)
        if isinstance(script, Mapping):
            of_node = script.get(request.node, ())
            answers = of_node if isinstance(of_node, list | tuple) else [of_node]
            return told(_response(_at(answers, request.of_node, request)), request)
        return told(_response(_at(script, request.number, request)), request)


async def _later(answer: Any) -> LLMResponse:
    return _response(await answer)


def _response(answer: Any) -> LLMResponse:
    return answer if isinstance(answer, LLMResponse) else LLMResponse(answer, model="scripted")


def _at(answers: Sequence[Any], number: int, request: LLMRequest) -> Any:
    if number < len(answers):
        return answers[number]
    raise ExecutionError(
        Problem(
            "X304",
            f"the script has no answer left for node {request.node!r}",
            "Session(llm=...)",
            f"it was asked {number + 1} times and has {len(answers)} answers",
            "add an answer, or go back and change the run",
        )
    )
