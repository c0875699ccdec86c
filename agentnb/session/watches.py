"""watches: conditions whose value people want to see. They are worked out where the session stands, when asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from agentnb.board.secrets import short


class Watches(Mapping[str, Any]):
    """The watched conditions: text -> value on the board where the session stands, or the error as text."""

    def __init__(self, board: Callable[[], Mapping[str, Any]]) -> None:
        self._board = board
        self._asked: dict[str, Callable[[Mapping[str, Any]], Any]] = {}

    def add(self, expression: Any) -> str:
        """Watch a path of the board, a condition text, JsonLogic, or a callable; return the name that it goes by.

        Raises:
            RecipeError: the condition is wrong.
        """
        from agentnb.expressions.questions import as_question

        asked = as_question(expression, self._board())
        text = str(getattr(asked, "text", "") or getattr(expression, "__name__", "watch"))
        self._asked[text] = asked
        return text

    def sources(self) -> list[Any]:
        """Return what can be kept of them: texts and JsonLogic; a function of the board cannot be."""
        kept = (getattr(asked, "source", None) for asked in self._asked.values())
        return [source for source in kept if isinstance(source, str | Mapping)]

    def remove(self, text: str) -> None:
        """Watch it no longer."""
        self._asked.pop(text, None)

    def __getitem__(self, text: str) -> Any:
        """Return the value of one watch."""
        asked = self._asked[text]
        try:
            return asked(self._board())
        except Exception as error:  # noqa: BLE001  (what cannot be worked out here is told in its place)
            return f"{type(error).__name__}: {error}"

    def __iter__(self) -> Iterator[str]:
        return iter(self._asked)

    def __len__(self) -> int:
        return len(self._asked)

    def __repr__(self) -> str:
        """Return one line a watch."""
        return "\n".join(f"{text}: {short(value, text)}" for text, value in self.items()) or "no watches"
