"""A list of named tuples that is displayed as a table, in a terminal and in a notebook."""

from __future__ import annotations

from html import escape
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T", bound=NamedTuple)


class Listing(list[T]):
    """A list of NamedTuples of one type, displayed with their fields as columns.

    Example:
        >>> from typing import NamedTuple
        >>> Pet = NamedTuple("Pet", [("name", str), ("legs", int)])
        >>> Listing([Pet("cat", 4), Pet("canary", 2)])
        name    legs
        cat     4
        canary  2
    """

    def _list_rows(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        head: tuple[str, ...] = getattr(self[0], "_fields", ()) if self else ()
        return head, [tuple(map(str, row)) for row in self]

    def __repr__(self) -> str:
        head, rows = self._list_rows()
        lines = [head, *rows]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join(
            "  ".join(word.ljust(width) for word, width in zip(line, widths, strict=True)).rstrip() for line in lines
        )

    def _repr_html_(self) -> str:
        head, rows = self._list_rows()
        body = "".join(_format_line("td", row) for row in rows)
        return f"<table><thead>{_format_line('th', head)}</thead><tbody>{body}</tbody></table>"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text("..." if cycle else repr(self))  # IPython would print a plain list


def _format_line(tag: str, cells: tuple[str, ...]) -> str:
    return "<tr>" + "".join(f'<{tag} style="text-align:left">{escape(word)}</{tag}>' for word in cells) + "</tr>"
