"""Display of a cell's invalid recipe: its text with the wrong lines marked, and one card per problem."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from typing import Final

from agentnb.errors import Problem, RecipeError, render_problems

AROUND: Final = 2  # lines of the text shown before and after a wrong one
_PLACE: Final = re.compile(r"^<text>:(\d+):(\d+)")
_TEXT: Final = "margin:.4em 0;padding:.4em .8em;overflow-x:auto;line-height:1.4"
_WRONG: Final = "background:color-mix(in srgb, var(--jp-error-color1, #d32f2f) 18%, transparent)"


class DisplayedRecipeError(RecipeError):
    """A RecipeError whose problems are already displayed: one line replaces the traceback."""

    def _render_traceback_(self) -> list[str]:
        many = len(self.problems)
        return [f"RecipeError: {many} problem{'s' if many > 1 else ''}, shown above; nothing was loaded"]


class Faults:
    """The problems of a text for display: as cards below their lines, or as plain text."""

    def __init__(self, text: str, problems: tuple[Problem, ...]) -> None:
        self._lines, self._problems = text.splitlines(), problems

    def _find_error_columns(self) -> dict[int, int]:
        """Return the numbers of the wrong lines, each with the column of its first problem."""
        columns: dict[int, int] = {}
        for problem in self._problems:
            if match := _PLACE.match(problem.where):
                columns.setdefault(int(match[1]), int(match[2]))
        return columns

    def _iter_visible_lines(self) -> Iterator[tuple[int, str, int]]:
        """Yield the lines around the wrong ones: number, text, and the column of the error, or 0."""
        places = self._find_error_columns()
        for number, line in enumerate(self._lines, 1):
            if any(abs(number - error_line) <= AROUND for error_line in places):
                yield number, line, places.get(number, 0)

    def __repr__(self) -> str:
        """Return the text with a mark at each wrong line, and the problems below it."""
        lines = []
        for number, line, column in self._iter_visible_lines():
            lines.append(f"{'>' if column else ' '} {number:>4}  {line}")
            if column:
                lines.append(f"        {' ' * (column - 1)}^")
        return "\n".join([*lines, *map(str, self._problems)])

    def _repr_html_(self) -> str:
        rows = "".join(
            f'<div style="{_WRONG if column else ""}"><span style="opacity:.65">{number:>4}  </span>'
            f"{_underline(line, column)}</div>"
            for number, line, column in self._iter_visible_lines()
        )
        text = f'<pre style="{_TEXT}">{rows}</pre>' if rows else ""
        return f"{text}{render_problems(self._problems)}"


def _underline(line: str, column: int) -> str:
    """Return a line as HTML, underlined from the column of the error on."""
    if not column:
        return escape(line) or "&nbsp;"
    head, tail = line[: column - 1], line[column - 1 :]
    return f'{escape(head)}<span style="text-decoration:underline wavy">{escape(tail) or "&nbsp;"}</span>'
