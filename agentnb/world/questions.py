"""Questions asked from inside a function: it stops there, and runs again with the answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any, Final

from agentnb.errors import ExecutionError, Problem
from agentnb.text import safe_repr


class QuestionPending(BaseException):
    """Raised through a function that has asked a question without an answer."""

    def __init__(self, prompt: Any) -> None:
        self.prompt = prompt


class _Answers:
    """The answers to the questions of a function, in the order in which it asks them."""

    def __init__(self, answers: Sequence[Any]) -> None:
        self.answers, self.count = answers, 0


_ANSWERS: Final[ContextVar[_Answers | None]] = ContextVar("_ANSWERS", default=None)


def ask(prompt: Any) -> Any:
    """Ask a person from inside the function of a node declared with `asks=True`, and return the answer.

    The session waits for `session.answer`. Then the function runs again from its beginning, and this call returns the
    answer; several questions are answered one after another.

    Raises:
        ExecutionError: L534, no such function is running.
    """
    known = _ANSWERS.get()
    if known is None:
        raise ExecutionError(
            Problem("L534", "a question was asked outside of a node with asks=True", f"ask({safe_repr(prompt, 200)})",
                    "only the function of a node is run again with the answer", "declare the node with asks=True")
        )  # fmt: skip
    known.count += 1
    if known.count > len(known.answers):
        raise QuestionPending(prompt)
    return known.answers[known.count - 1]


def call_with_answers(function: Callable[[], Any], answers: Sequence[Any]) -> Any:
    """Call a function with answers to its questions; raise QuestionPending at the first one without an answer."""
    token = _ANSWERS.set(_Answers(answers))
    try:
        return function()
    finally:
        _ANSWERS.reset(token)
