"""Errors: a Problem states what is wrong, where, why and what to do; every error of agentnb has at least one.

The tree:

    AgentNbError
    +-- RecipeError (also a ValueError)      a recipe cannot be loaded or is invalid
    +-- BoardError                           a value or a path that the blackboard does not accept
    +-- ExecutionError                       a run cannot continue
    |   +-- AgentRuntimeError
    |       +-- NodeExecutionError           a node failed: names its id, kind, prompt or tool, and the message
    +-- ReplayDivergence                     a replay differs from its record
    +-- StoreError                           a record cannot be saved or read
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from html import escape
from itertools import islice, zip_longest
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from agentnb.display import get_view
from agentnb.secrets import has_secret
from agentnb.text import LONGEST_TEXT, get_class_name, safe_str

if TYPE_CHECKING:
    import pandas as pd

_COLORS: Final = {"error": "var(--jp-error-color1, #d32f2f)", "warning": "var(--jp-warn-color1, #f57c00)"}
_CARD: Final = "border-left:4px solid {color};padding:.4em .8em;margin:.4em 0;overflow-wrap:anywhere;"
_WORD: Final = "opacity:.65;padding-right:.8em;text-align:left;vertical-align:top;white-space:nowrap"
Severity = Literal["error", "warning"]


class Place(NamedTuple):
    """A position in a source: file (or "<text>"), line and column from 1, and the path of keys.

    `block` is the line and column of the first line of a text whose lines are lines of the file, as in a YAML block
    (`|`); else None.
    """

    file: str
    line: int = 0
    column: int = 0
    path: str = ""
    block: tuple[int, int] | None = None

    def of_line(self, line: int) -> Place:
        """Return the place of a line, from 1, of the text at this place; the whole place if the line is unknown."""
        if self.block is None:
            return self
        return self._replace(line=self.block[0] + line - 1, column=self.block[1])

    def __str__(self) -> str:
        """Return `file:line:column, path`, without unknown parts."""
        position = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        return f"{position}, {self.path}" if self.path else position


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem, described so that it can be fixed: what, where, why, and what to do.

    Codes: R recipe, B blackboard, X run, L log, A analysis, U screen; docs/errors.md lists them. Secrets in its texts
    are masked, and texts of more than 20,000 characters cut, so that callers need not do so.
    """

    code: str
    what: str
    where: str
    why: str
    do: str
    severity: Severity = "error"

    def __post_init__(self) -> None:
        """Mask the secrets in the texts, and cut long ones."""
        for name in ("what", "where", "why", "do"):
            object.__setattr__(self, name, safe_str(getattr(self, name), LONGEST_TEXT))

    def __str__(self) -> str:
        """Return the four parts as four lines."""
        mark = "warning " if self.severity == "warning" else ""
        return f"{mark}{self.code}: {self.what}\n  where: {self.where}\n  why:   {self.why}\n  do:    {self.do}"

    def _repr_html_(self) -> str:
        return render_problems([self])


def render_problems(problems: Iterable[Problem]) -> str:
    """Return problems as HTML cards: code and what, then where, why and what to do. Everything is escaped."""
    return "".join(map(_render_card, problems))


def _render_card(problem: Problem) -> str:
    rows = "".join(
        f'<tr style="background:none"><td style="{_WORD}">{word}</td>'
        f'<td style="text-align:left;white-space:pre-wrap">{escape(text)}</td></tr>'
        for word, text in (("where", problem.where), ("why", problem.why), ("do", problem.do))
    )
    style = _CARD.format(color=_COLORS[problem.severity])
    head = f"<b>{escape(problem.code)}</b> {escape(problem.what)}"
    return f'<div role="alert" style="{style}">{head}<table style="margin:.2em 0 0;border:none">{rows}</table></div>'


class AgentNbError(Exception):
    """The base class of all errors of agentnb; `problems` holds all problems.

    Other code, such as a tool, may raise one with a plain text, which is then its message.
    """

    def __init__(self, *problems: Problem | str) -> None:
        self._given = problems
        self.problems: tuple[Problem, ...] = tuple(each for each in problems if isinstance(each, Problem))
        super().__init__("\n".join(safe_str(each, 5 * LONGEST_TEXT) for each in problems))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by the problems, so that an error survives a worker process."""
        return (type(self), self._given)

    def to_frame(self) -> pd.DataFrame:
        """Return the problems as a DataFrame: code, what, where, why, do, severity."""
        frame: pd.DataFrame = get_view("table")([asdict(problem) for problem in self.problems])
        return frame

    def _render_traceback_(self) -> list[str]:
        """Return what IPython prints instead of a traceback: only the problems (an invalid recipe has no stack)."""
        return [f"{type(self).__name__}: {len(self.problems)} problem(s)", *map(str, self.problems)]


class RecipeError(AgentNbError, ValueError):
    """A recipe cannot be loaded; `problems` holds everything that was found."""


class BoardError(AgentNbError):
    """The blackboard does not accept this value, or has no such path."""


class ExecutionError(AgentNbError):
    """A run cannot continue."""


class AgentRuntimeError(ExecutionError):
    """A run of an agent broke one of its rules (a limit, a missing client, an invalid target)."""


class NodeExecutionError(AgentRuntimeError):
    """A node failed and nothing in the recipe handles it; `__cause__` is the node's exception."""


class ReplayDivergence(AgentNbError):
    """A replay differs from its record."""


class StoreError(AgentNbError):
    """A record cannot be saved or read; what was saved before is intact."""


MOST_NAMES: Final = 500  # known words compared with an unknown one
MOST_SUGGESTIONS: Final = 100  # per load
_suggestions_left: ContextVar[Iterator[int] | None] = ContextVar("suggestions_left", default=None)
_LONG_WORD: Final = 6  # letters
_NEAR: Final = 0.7  # the minimum similarity ratio of two long words
_PAIR: Final = 2


@contextmanager
def require_library(library: str, extra: str, where: str) -> Iterator[None]:
    """Raise a Problem with the remedy if the import inside the block fails.

    L590: a feature needs a package that is not installed.

    Raises:
        ExecutionError: L590.
    """
    try:
        yield
    except ImportError:
        raise ExecutionError(
            Problem("L590", f"{where} needs the package {library}", where, "it is not installed",
                    f'run: pip install "agentnb-kit[{extra}]"')
        ) from None  # fmt: skip


def did_you_mean(word: str, known: Iterable[str], fallback: str) -> str:
    """Return "did you mean 'x'?" for the known word most similar to `word`, else `fallback`."""
    similar = close_match(word, known)
    return fallback if similar is None else f"did you mean {similar!r}?"


def close_match(word: str, known: Iterable[str]) -> str | None:
    """Return the known word most similar to another one, ignoring case; None if none is similar.

    Short words are similar by chance ("foo" and "floor"), so they may differ by one slip only: an extra or missing
    letter, a different one, or two that are swapped. Words of six letters or more may differ more.

    Example:
        >>> close_match("Costumer", ["order", "customer"])
        'customer'
        >>> close_match("foo", ["floor", "abs"])
    """
    remaining = _suggestions_left.get()
    if remaining is not None and next(remaining, None) is None:
        return None
    names: dict[str, str] = {}
    for name in islice(known, MOST_NAMES):
        names.setdefault((name[:200] if type(name) is str else safe_str(name, 200)).casefold(), name)
    target = safe_str(word, 200).casefold().strip("[](){}'\" ")  # one name in a list, or quoted
    for similar in get_close_matches(target, names, n=3):
        is_long = min(len(similar), len(target)) >= _LONG_WORD
        if (is_long and get_close_matches(target, [similar], cutoff=_NEAR)) or _is_one_slip(target, similar):
            return safe_str(names[similar], 200)
    return None


@contextmanager
def limit_suggestions() -> Iterator[None]:
    """Limit suggestions to the first hundred unknown words: with thousands of words, the search is slow."""
    if _suggestions_left.get() is not None:
        yield
        return
    token = _suggestions_left.set(iter(range(MOST_SUGGESTIONS)))
    try:
        yield
    finally:
        _suggestions_left.reset(token)


def _measure_common_prefix(word: str, other: str) -> int:
    """Return the length of the common prefix of two words."""
    return next(
        (at for at, (one, two) in enumerate(zip(word, other, strict=False)) if one != two), min(len(word), len(other))
    )


def _is_one_slip(word: str, other: str) -> bool:
    start = _measure_common_prefix(word, other)
    end = _measure_common_prefix(word[start:][::-1], other[start:][::-1])
    one, two = word[start : len(word) - end], other[start : len(other) - end]
    return max(len(one), len(two)) <= 1 or (len(one) == len(two) == _PAIR and one == two[::-1])


def with_article(noun: str) -> str:
    """Return a noun with its indefinite article.

    Example:
        >>> with_article("int"), with_article("list"), with_article("URL")
        ('an int', 'a list', 'a URL')
    """
    return f"an {noun}" if noun[:1] in "aeiouAEIO" else f"a {noun}"


def pluralize(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless it is 1.

    Example:
        >>> pluralize(1, "edge"), pluralize(2, "key")
        ('1 edge', '2 keys')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def set_known(owner: object, name: str, value: Any) -> None:
    """Set an existing attribute of an object.

    Raises:
        AttributeError: it has no attribute of this name.
    """
    try:
        object.__setattr__(owner, name, value)
    except AttributeError:
        if hasattr(type(owner), name):  # it can only be read
            raise
        raise make_attribute_error(owner, name) from None


def make_attribute_error(owner: object, name: str) -> AttributeError:
    """Return the error for setting an attribute that an object does not have; it suggests the most similar one."""
    public = [each for each in dir(owner) if not each.startswith("_")]
    noun = with_article(type(owner).__name__)
    hint = did_you_mean(name, public, "set only existing attributes, or use a variable")
    return AttributeError(f"{noun} has no attribute {name!r}; {hint}")


def find_misspelling(word: str, known: Collection[str]) -> str | None:
    """Return the known word that an unknown one is very likely a misspelling of; None for a known or a new word.

    Names that differ in their number, plural or a short part ("note" and "notes", "input_a" and "input_b") are usually
    two names, so they do not count; neither does a part of two letters, in which no typo can be recognized.

    Example:
        >>> find_misspelling("bugdet", ["budget", "order"])
        'budget'
        >>> find_misspelling("orders", ["budget", "order"])
    """
    if word in known:
        return None
    for similar in get_close_matches(word, known, n=1, cutoff=0.8):
        parts = [(a, b) for a, b in zip_longest(word.split("_"), similar.split("_"), fillvalue="") if a != b]
        stems = [(a.rstrip("s0123456789"), b.rstrip("s0123456789")) for a, b in parts]
        if all(a != b and min(len(a), len(b)) > 2 for a, b in stems):
            return similar
    return None


def format_error(error: BaseException) -> str:
    """Return the message of an exception, masked: what is wrong for errors of agentnb, else its own text."""
    if isinstance(error, AgentNbError) and error.problems:
        return "; ".join(problem.what for problem in error.problems)
    return safe_str(error, LONGEST_TEXT)


def format_advice(error: BaseException) -> str:
    """Return the message of an exception, masked; for errors of agentnb also why, and what to do."""
    if isinstance(error, AgentNbError) and error.problems:
        return "; ".join(f"{problem.what}: {problem.why}; {problem.do}" for problem in error.problems)
    return format_error(error)


def format_error_line(error: BaseException) -> str:
    """Return the class and the message of an exception, masked: `ValueError: no such city`."""
    return f"{get_class_name(error)}: {format_error(error)}"


def to_printable(error: BaseException | None) -> BaseException | None:
    """Return an error if it can be printed as the cause of another one; None if it would reveal a secret."""
    current = error
    while current is not None:
        for text in (_print_error(current, str), _print_error(current, repr)):
            if text is None or has_secret(text):
                return None
        current = current.__cause__ or current.__context__
    return error


def warn_caller(message: str) -> None:
    """Issue a warning that names the line outside of agentnb that led here."""
    level, frame = 1, sys._getframe()  # noqa: SLF001  (there is no other way to it in Python 3.11)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("agentnb."):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, stacklevel=level)


def _print_error(error: BaseException, function: Any) -> str | None:
    """Return the printed form of an error; None if that fails or is too long."""
    try:
        text: str = function(error)
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001  (an error's own methods may raise anything)
        return None
    return text if len(text) <= 50 * LONGEST_TEXT else None
