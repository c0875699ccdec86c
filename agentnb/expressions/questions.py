"""questions: what people ask of the board in passing: a condition, or the path of what they want to see.

A recipe's own conditions have a language of their own. A person's text is first what `board[text]` reads: a key may
have any name, "task#1" and "my-key" too, and what lies there is the answer. Else it is an expression.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from agentnb.errors import ExecutionError, Problem, RecipeError
from agentnb.expressions.conditions import Condition, as_condition
from agentnb.expressions.reading import NOTHING, found_at

_PLAIN = re.compile(r"[^\W\d]\w*")  # as an expression it is the same key
_NUMBERED = re.compile(r"[\w.:/-]*#[\w.:/#-]*")  # no expression: so objects of a graph are called
_NAME = re.compile(r"\S+")


class Question(Condition):
    """A text that is a path of the board wherever something lies there, and else an expression, if it is one.

    X314: a condition gives no answer; here: nothing lies at the path, and the text is nothing else.
    """

    __slots__ = ("_keys", "_otherwise")

    def __init__(self, text: str, otherwise: Condition | None) -> None:
        super().__init__(self._answer, None, strict=True)
        self._keys, self._otherwise = tuple(text.split(".")), otherwise
        self.source, self.kind, self.text, self.whole = text, "text", text, False
        self.reads = (self._keys, *(() if otherwise is None else otherwise.reads))

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy by what it was written as."""
        return Question, (self.text, self._otherwise)

    def strictly(self, strict: bool) -> Question:
        """Return the question with another strictness about what its expression misses."""
        return self if self._otherwise is None else Question(self.text, self._otherwise.strictly(strict))

    def _answer(self, board: Mapping[str, Any]) -> Any:
        value = found_at(board, self._keys)
        if value is not NOTHING:
            return value
        if self._otherwise is not None:
            return self._otherwise(board)
        raise ExecutionError(
            Problem("X314", f"{self.text!r} is not on the board", "<condition>", "nothing lies at this path here",
                    "wait until it is there, or name another path")
        )  # fmt: skip


def as_question(value: Any, board: Mapping[str, Any] | None = None) -> Condition:
    """Return the Condition that a person's text, JsonLogic or callable is; a text may be a path of the board.

    Args:
        board: what there is now: what is no expression is then a path, where something lies there. Names with a "#"
            in them are paths also where nothing does yet.

    Raises:
        RecipeError: it is neither; see `as_condition`.
    """
    text = value.strip() if isinstance(value, str) else ""
    if not text or _PLAIN.fullmatch(text):
        return as_condition(value)
    otherwise = None
    if not _NUMBERED.fullmatch(text):
        try:
            otherwise = as_condition(value)
        except RecipeError:
            if found_at(board or {}, text.split(".")) is NOTHING:
                raise
    return Question(text, otherwise) if otherwise is None or _NAME.fullmatch(text) else otherwise


__all__ = ["Question", "as_question"]
