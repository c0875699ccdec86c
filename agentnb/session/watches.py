"""Watches: conditions whose values are shown, evaluated on access at the current position."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from agentnb.errors import ExecutionError, Problem
from agentnb.secrets import masks_by, remember_masking
from agentnb.text import safe_repr


@masks_by(lambda shown: shown.masking())
class Watches(Mapping[str, Any]):
    """The watched conditions: text -> value on the current board, or the error as text."""

    def __init__(
        self,
        board: Callable[[], Mapping[str, Any]],
        check_keys: Callable[[Iterable[Sequence[str | int]], str], Iterable[Problem]],
    ) -> None:
        self._board, self._check_keys, self.masking = board, check_keys, remember_masking()
        self._conditions: dict[str, Callable[[Mapping[str, Any]], Any]] = {}

    def add(self, expression: Any) -> str:
        """Watch a path of the board, a condition text, JsonLogic, or a callable; return the watch's name.

        Raises:
            ExecutionError: X145, it reads a key that nothing writes.
            RecipeError: the condition is invalid.
        """
        from agentnb.expressions.board_queries import compile_question

        condition = compile_question(expression, self._board())
        if problems := [*self._check_keys(condition.reads, "session.watch()")]:
            raise ExecutionError(*problems)
        text = str(getattr(condition, "text", "") or getattr(expression, "__name__", "watch"))
        self._conditions[text] = condition
        return text

    def sources(self) -> list[Any]:
        """Return the watches that can be saved: texts and JsonLogic, not functions."""
        texts = (getattr(condition, "source", None) for condition in self._conditions.values())
        return [source for source in texts if isinstance(source, str | Mapping)]

    def remove(self, text: str) -> None:
        """Remove a watch."""
        self._conditions.pop(text, None)

    def __getitem__(self, text: str) -> Any:
        """Return the value of one watch."""
        condition = self._conditions[text]
        try:
            return condition(self._board())
        except Exception as error:  # noqa: BLE001  (an error is shown in place of the value)
            return f"{type(error).__name__}: {error}"

    def __iter__(self) -> Iterator[str]:
        return iter(self._conditions)

    def __len__(self) -> int:
        return len(self._conditions)

    def __repr__(self) -> str:
        """Return one line per watch."""
        return "\n".join(f"{text}: {safe_repr(value, key=text)}" for text, value in self.items()) or "no watches"
