"""Ad-hoc queries of the board: a condition, or the path of a value to show.

Conditions in recipes are always expressions. A person's query is first looked up as `board[text]`, because keys may
have any name, such as "task#1" or "my-key"; if there is a value, it is the result. Otherwise the query is compiled as
an expression.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from agentnb.errors import ExecutionError, Problem, RecipeError
from agentnb.expressions.conditions import Condition, to_condition
from agentnb.expressions.lookup import NOTHING, get_value

_PLAIN = re.compile(r"[^\W\d]\w*")  # as an expression, it means the same key
_NUMBERED = re.compile(r"[\w.:/-]*#[\w.:/#-]*")  # not an expression: ids of graph objects look like this
_NAME = re.compile(r"\S+")


class BoardQuery(Condition):
    """A query that is a path of the board if that path has a value, otherwise an expression if it compiles.

    X314: a condition has no truth value; here: the path has no value, and the text is not an expression
    """

    __slots__ = ("_keys", "_otherwise")

    def __init__(self, text: str, otherwise: Condition | None) -> None:
        super().__init__(self._answer, None, strict=True)
        self._keys, self._otherwise = tuple(text.split(".")), otherwise
        self.source, self.kind, self.text, self.reads_all = text, "text", text, False
        self.reads = (self._keys, *(() if otherwise is None else otherwise.reads))

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy by source."""
        return BoardQuery, (self.text, self._otherwise)

    def with_strictness(self, strict: bool) -> BoardQuery:
        """Return the query with a different strictness about values missing in its expression."""
        return self if self._otherwise is None else BoardQuery(self.text, self._otherwise.with_strictness(strict))

    def _answer(self, board: Mapping[str, Any]) -> Any:
        value = get_value(board, self._keys)
        if value is not NOTHING:
            return value
        if self._otherwise is not None:
            return self._otherwise(board)
        raise ExecutionError(
            Problem("X314", f"{self.text!r} is not on the board", "<condition>", "the board has no value at this path",
                    "wait until it is written, or use another path")
        )  # fmt: skip


def compile_question(value: Any, board: Mapping[str, Any] | None = None) -> Condition:
    """Return the Condition for a text, JsonLogic rule or callable; a text may be a path of the board.

    Args:
        board: the current board: a text that is not an expression is then a path if the path has a value. Names
            containing "#" are paths even without a board.

    Raises:
        RecipeError: it is neither; see `to_condition`.
    """
    text = value.strip() if isinstance(value, str) else ""
    if not text or _PLAIN.fullmatch(text):
        return to_condition(value)
    otherwise = None
    if not _NUMBERED.fullmatch(text):
        try:
            otherwise = to_condition(value)
        except RecipeError:
            if get_value(board or {}, text.split(".")) is NOTHING:
                raise
    return BoardQuery(text, otherwise) if otherwise is None or _NAME.fullmatch(text) else otherwise


__all__ = ["BoardQuery", "compile_question"]
