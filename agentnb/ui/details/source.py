"""The source of a node: its part of the recipe's text, and the source of its function."""

from __future__ import annotations

import functools
import inspect
import linecache
import re
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agentnb.recipe.user_functions import NO_FILE, UNKNOWN_SOURCE, get_own_attribute, read_source_lines
from agentnb.secrets import MASK, is_secret
from agentnb.user_code import find_location, format_place

if TYPE_CHECKING:
    from agentnb.recipe.model import Node, Recipe

_AROUND: Final = 4  # lines shown before and after that of an exception
_TRACEBACK_LINES: Final = 200
_MOST: Final = 400  # lines of one definition
_CLOSING: Final = re.compile(r"\s*[\]}]")
_NAMED: Final = re.compile(r"""(["']?)([A-Za-z_][\w.-]*)\1(\s*[:=]\s*)""")
_OWN: Final = "agentnb."  # the package's own code is not shown as the user's source


class SourceExcerpt(NamedTuple):
    """A part of a source: its first line in `file`, counted from 1, and its text with secrets masked."""

    file: str
    line: int
    text: str

    @property
    def place(self) -> str:
        """Return `file:line`, as editors accept it, or the cell of a notebook."""
        return format_place(self.file, self.line)


def find_text(recipe: Recipe, node: Node) -> SourceExcerpt | None:
    """Return the part of the recipe's text that defines a node; None if its text is not available."""
    place = node.place
    if place is None or not place.line or _unwrap_function(node.params.get("function")) is not None:
        return None  # a recipe built in Python is shown by its functions
    name = str(node.id).rsplit("/", 1)[-1].rsplit(".", 1)[-1]
    for lines in _iter_texts(recipe, place.file):
        if place.line > len(lines):
            continue
        first, end = _find_block(lines, place.line - 1, own_line=place.path.endswith((".id", ".name")))
        text = "\n".join(mask_lines(_dedent(lines[first:end])))
        others = [each for each in recipe.nodes.values() if each.place and each.place.file == place.file]
        alone = not any(each.id != node.id and each.place and first < each.place.line <= end for each in others)
        if name in text and alone:
            return SourceExcerpt(place.file, first + 1, text)
    return None


def find_function(called: Any) -> SourceExcerpt | None:
    """Return the source of a function that a node calls; None if it is unavailable or part of this package."""
    function = _unwrap_function(called)
    if function is None or _is_ours(function):
        return None
    try:
        lines, first = read_source_lines(function)
    except UNKNOWN_SOURCE:
        return None
    text = "\n".join(mask_lines(_dedent([line.rstrip("\n") for line in lines[:_MOST]]), code=True))
    return SourceExcerpt(function.__code__.co_filename, max(first, 1), text)


def _unwrap_function(function: Any) -> Callable[..., Any] | None:
    """Return the Python function behind a callable: what a partial, a wrapper or a method finally calls."""
    while isinstance(function, functools.partial):
        function = function.func
    function = inspect.unwrap(function) if callable(function) else None
    function = get_own_attribute(function, "__func__", function)
    if not inspect.isfunction(function):
        return None
    if _is_ours(function) and "function" in function.__code__.co_freevars:  # a tool is wrapped with its config
        return _unwrap_function(inspect.getclosurevars(function).nonlocals.get("function"))
    return function


def _is_ours(function: Callable[..., Any]) -> bool:
    return f"{function.__module__}.".startswith(_OWN) and ".samples." not in function.__module__


def _iter_texts(recipe: Recipe, file: str) -> Iterator[Sequence[str]]:
    """Yield candidate texts of a file: the recipe's own text as loaded, then the file's present content."""
    if recipe.text is not None:
        yield recipe.text.splitlines()
    if not file.startswith("<"):
        linecache.checkcache(file)
        yield [line.rstrip("\n") for line in linecache.getlines(file)]


def _measure_indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _find_column(line: str) -> int:
    """Return the column of the first word of a line, after the dashes of a list."""
    return len(line) - len(line.lstrip(" -")) if line.lstrip().startswith("- ") else _measure_indent(line)


def _find_block(lines: Sequence[str], at: int, *, own_line: bool) -> tuple[int, int]:
    """Return the first line of the block around a line and the line after its last one, both counted from 0.

    With `own_line` the line is one of the block's keys, so its neighbors belong to it; otherwise the block begins
    there.
    """
    column, first = _find_column(lines[at]), at
    while own_line and first > 0 and not lines[first].lstrip().startswith("- "):
        previous_line = lines[first - 1]
        if previous_line.strip() and _find_column(previous_line) < column and not previous_line.strip().endswith("{"):
            break
        first -= 1
        if previous_line.strip().endswith("{") and _measure_indent(previous_line) < column:
            break
    inner = _measure_indent(lines[first]) + (0 if _CLOSING.match(lines[first]) else 1)
    end = first + 1
    while end < len(lines) and end - first < _MOST and (not lines[end].strip() or _measure_indent(lines[end]) >= inner):
        end += 1
    if end < len(lines) and _CLOSING.match(lines[end]) and _measure_indent(lines[end]) == _measure_indent(lines[first]):
        end += 1
    while end > first + 1 and (not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#")):
        end -= 1
    return first, end


def _dedent(lines: Sequence[str]) -> list[str]:
    away = min((_measure_indent(line) for line in lines if line.strip()), default=0)
    return [line[away:].rstrip() for line in lines]


def mask_lines(lines: Sequence[str], *, code: bool = False) -> Iterator[str]:
    """Yield lines with values under a secret's name masked; except in code, nested values are masked too."""
    under: int | None = None
    for line in lines:
        inside = under is not None and (not line.strip() or _measure_indent(line) > under)
        if inside or (under is not None and _measure_indent(line) == under and line.lstrip().startswith("- ")):
            continue
        masked = _mask_line(line, code=code)
        under = _find_column(line) if masked != line and not code else None
        yield masked


def _mask_line(line: str, *, code: bool) -> str:
    """Return a line with the values of its secrets masked; in code only string literals count as values."""
    out, start = list[str](), 0
    while (match := _NAMED.search(line, start)) is not None:
        end = match.end()
        if is_secret(match[2]) and (not code or line[end : end + 1] in ("'", '"')):
            end = _find_value_end(line, end)
            out += [line[start : match.end()].rstrip(), " " if match[3].strip() == ":" else "", MASK]
        else:
            out.append(line[start:end])
        start = end
    return "".join(out) + line[start:]


def _find_value_end(line: str, at: int) -> int:
    """Return the end of the value that begins at a column: a quoted text, a bracket with its content, or a word."""
    first = line[at : at + 1]
    if first in ("'", '"'):
        end = line.find(first, at + 1)
        return len(line) if end < 0 else end + 1
    depth = 0
    for index in range(at, len(line)):
        depth += (line[index] in "{[") - (line[index] in "}]")
        if depth < 0 or (depth == 0 and line[index] == ","):
            return index
    return len(line)


def find_raise(error: BaseException | None) -> dict[str, Any] | None:
    """Return the last line of the user's code in an exception's traceback; None if it has none.

    Its texts are not masked here, but with the whole message. `place` is `file:line`, or the cell as IPython names it,
    `line` the number of the line, `lines` are [number, text], `traceback` is all of it.
    """
    location = find_location(error)
    if error is None or location is None:
        return None
    file, number = location
    first = max(number - _AROUND, 1)
    numbers = range(first, number + _AROUND + 1) if file != NO_FILE else ()
    texts = [linecache.getline(file, each).rstrip("\n") for each in numbers]
    while texts and not texts[-1].strip():
        texts.pop()
    # whole lines: half a secret would not be masked
    lines = "".join(traceback.format_exception(error)).splitlines()[-_TRACEBACK_LINES:]
    return {
        "place": format_place(file, number),
        "line": number,
        "lines": [[first + at, text] for at, text in enumerate(mask_lines(texts))],
        "traceback": "\n".join(lines),
    }
