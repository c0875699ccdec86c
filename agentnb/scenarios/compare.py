"""Comparison of expected values with those on the board, exact or by text similarity."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from difflib import SequenceMatcher
from enum import Enum
from itertools import islice
from types import NoneType
from typing import Any, Final, NamedTuple

from agentnb.board.masking import mask_value
from agentnb.board.values import ABSENT
from agentnb.secrets import is_secret
from agentnb.text import safe_repr, safe_str
from agentnb.world.llm.text import to_json_text

COMPARES: Final = ("exact_match", "fuzzy", "llm_judge")
LIKE: Final = 0.8  # the default minimum similarity, and minimum score of a judge
MOST_TOLD: Final = 100  # mismatches reported of a list in which everything differs
Path = tuple[Any, ...]
_KEYS: Final = (str, int, float, NoneType)  # what JSON can write as a key


class Mismatch(NamedTuple):
    """A place whose value differs from the expected one: its path and both values.

    `actual` is ABSENT if there is no value, `expected` if there should be none. `similarity` is from 0 to 1, or
    None if it was not computed.
    """

    path: Path
    expected: Any
    actual: Any
    similarity: float | None = None

    def __str__(self) -> str:
        """Return one line, with secrets masked and long values truncated."""
        secret = next(filter(is_secret, map(str, self.path)), None)
        where = safe_str(".".join(map(str, self.path)))
        if self.expected is ABSENT:
            return f"{where}: {safe_repr(to_plain(self.actual), key=secret)} is unexpected"
        expectation = f"{where}: expected {safe_repr(to_plain(self.expected), key=secret)}"
        if self.actual is ABSENT:
            return f"{expectation}, but it is not there"
        alike = "" if self.similarity is None else f", {self.similarity:.2f} alike"
        return f"{expectation}, found {safe_repr(to_plain(self.actual), key=secret)}{alike}"

    def __repr__(self) -> str:
        """Return the same line: the values themselves may be secrets."""
        return f"<Mismatch {self}>"


class ComparisonResult(NamedTuple):
    """The result of a comparison: whether it passed, its score (0 to 1), and every mismatch."""

    passed: bool
    score: float | None
    mismatches: tuple[Mismatch, ...] = ()


def find_values(keys: Mapping[str, Any], board: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values on the board at these keys (dotted text is read as a path), without missing ones."""
    return {key: board[key] for key in keys if key in board}


def compare_exactly(expected: Mapping[str, Any], result: Mapping[str, Any]) -> ComparisonResult:
    """Compare each expected key with the value found; 1 and 1.0 are equal, True and 1 are not, tuples equal lists.

    Example:
        >>> compare_exactly({"n": 1, "ok": True}, {"n": 1.0, "ok": 1}).mismatches
        (<Mismatch ok: expected True, found 1>,)
    """
    every = (row for key, value in expected.items() for row in _iter_mismatches((key,), value, result.get(key, ABSENT)))
    mismatches = tuple(islice(every, MOST_TOLD))
    return ComparisonResult(not mismatches, 0.0 if mismatches else 1.0, mismatches)


def compare_texts(expected: Mapping[str, Any], result: Mapping[str, Any], threshold: float) -> ComparisonResult:
    """Compare the texts of each expected key with those found; the score is the lowest similarity.

    A value that is not text is compared as its JSON with sorted keys.
    """
    rows = [
        Mismatch((key,), value, actual, 0.0 if actual is ABSENT else measure_likeness(value, actual))
        for key, value in expected.items()
        for actual in (result.get(key, ABSENT),)
    ]
    score = min((row.similarity or 0.0 for row in rows), default=1.0)
    return ComparisonResult(
        score >= threshold, score, tuple(row for row in rows if (row.similarity or 0.0) < threshold)
    )


def measure_likeness(left: Any, right: Any) -> float:
    """Return the similarity of two values, 0 to 1: the share of characters that both have in the same order.

    Example:
        >>> measure_likeness("Good morning", "Good evening")
        0.75
    """
    if next(_iter_mismatches((), left, right), None) is None:
        return 1.0
    try:
        from rapidfuzz import fuzz
    except ImportError:  # WebAssembly has no wheel of it
        return SequenceMatcher(None, _to_text(left), _to_text(right), autojunk=False).ratio()
    return float(fuzz.ratio(_to_text(left), _to_text(right))) / 100


def to_plain(value: Any) -> Any:
    """Return a value in JSON's types as far as it can be converted: mappings, lists and other values."""
    value = _get_content(value)
    if isinstance(value, Mapping):
        return {name if isinstance(name, _KEYS) else str(name): to_plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(item) for item in value]
    return value


def to_displayed(value: Any) -> Any:
    """Return a value for display: converted, with its secrets masked."""
    return mask_value(to_plain(value))


def _get_content(value: Any) -> Any:
    """Return the content of an object: a model's or a dataclass's fields, an array's items, an Enum's value."""
    if isinstance(value, Enum):
        return value.value
    if hasattr(value, "dtype") and hasattr(value, "tolist"):  # a numpy array, number or text, or a column
        return value.tolist()
    if isinstance(value, str | int | float | Mapping | list | tuple | type | None):
        return value
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, set | frozenset):
        return sorted(value, key=repr)
    return value.model_dump() if callable(getattr(value, "model_dump", None)) else value


def _iter_mismatches(path: Path, expected: Any, actual: Any) -> Iterator[Mismatch]:
    """Yield the innermost places where two values differ."""
    left, right = _get_content(expected), _get_content(actual)
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        for key in {**left, **right}:
            if key in left and key in right:
                yield from _iter_mismatches((*path, key), left[key], right[key])
            else:
                yield Mismatch((*path, key), left.get(key, ABSENT), right.get(key, ABSENT))
    elif isinstance(left, list | tuple) and isinstance(right, list | tuple):
        for at in range(max(len(left), len(right))):
            if at < len(left) and at < len(right):
                yield from _iter_mismatches((*path, at), left[at], right[at])
            else:
                theirs, other_part = (side[at] if at < len(side) else ABSENT for side in (left, right))
                yield Mismatch((*path, at), theirs, other_part)
    elif isinstance(left, bool) != isinstance(right, bool) or not _are_equal(left, right):
        yield Mismatch(path, expected, actual)


def _are_equal(left: Any, right: Any) -> bool:
    try:
        return bool(left == right) or bool(left != left and right != right)  # noqa: PLR0124  (NaN is what was expected)
    except Exception:  # noqa: BLE001  (what cannot be compared, a table for one, is not the same)
        return type(left) is type(right) and callable(getattr(left, "equals", None)) and bool(left.equals(right))


def _to_text(value: Any) -> str:
    value = to_plain(value)
    if isinstance(value, str):
        return value
    try:
        return to_json_text(value, ordered=True)
    except (TypeError, ValueError):  # keys of different types
        return repr(value)
