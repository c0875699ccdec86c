"""`where` conditions on a payload or an object: dotted path -> value, a list of alternatives, or {operator: value}.

A list matches any of its items, or itself if the value is a list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from operator import ge, gt, le, lt
from typing import Any, Final

from agentnb.board.values import FrozenList
from agentnb.dialects.activegraph.errors import InternalEvaluatorError
from agentnb.dialects.activegraph.parts.argument_checks import check_type
from agentnb.errors import Problem, did_you_mean
from agentnb.text import safe_repr

Where = Mapping[str, Any]


def _make_ordering(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def holds(value: Any, expected: Any) -> bool:
        try:
            return value is not None and compare(value, expected)
        except TypeError:
            return False

    return holds


def _is_among(value: Any, allowed: Any) -> bool:
    return any(value == each for each in allowed)


OPERATORS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    ">": _make_ordering(gt),
    "<": _make_ordering(lt),
    ">=": _make_ordering(ge),
    "<=": _make_ordering(le),
    "==": lambda value, wanted: bool(value == wanted),
    "!=": lambda value, wanted: bool(value != wanted),
    "in": _is_among,
    "not in": lambda value, wanted: not _is_among(value, wanted),
}


def find_failing_clause(where: Where | None, record: Any) -> tuple[str, Any, Any] | None:
    """Return the first clause that does not match: path, expected, actual; None if all match."""
    for path, expected in (where or {}).items():
        value = get_at(record, _split_path(path))
        if not _holds(value, expected):
            return path, expected, value
    return None


def check(where: Where | None) -> None:
    """Raise an error for a clause with an unknown operator.

    X504: a clause of `where` has an unknown operator.

    Raises:
        InternalEvaluatorError: X504, there is no such operator.
    """
    check_type(where, Mapping, "where=...", "a mapping: dotted path -> value, or {operator: value}")
    for expected in (where or {}).values():
        for name in ("in", "not in") if isinstance(expected, Mapping) else ():
            check_type(expected.get(name), Iterable, f"where, {name!r}", "a list of values")
    operators = (name for expected in (where or {}).values() if isinstance(expected, Mapping) for name in expected)
    unknown = next((name for name in operators if name not in OPERATORS), None)
    if unknown is not None:
        raise InternalEvaluatorError(
            Problem("X504", f"`where` has no operator {safe_repr(unknown)}", "a where clause",
                    f"its operators are: {' '.join(OPERATORS)}",
                    did_you_mean(str(unknown), OPERATORS, "use the path itself: {'a.b': value}"))
        )  # fmt: skip


def holds(where: Where | None, value: Any) -> bool:
    """Return True if all clauses match."""
    return not where or find_failing_clause(where, value) is None


def get_object_values(record: Any) -> Mapping[str, Any]:
    """Return the values of an object for matching: its data, overridden by its own fields."""
    return {**record, **record["data"]}


@lru_cache(maxsize=4096)
def _split_path(path: str) -> tuple[str, ...]:
    return tuple(path.split("."))


def get_at(value: Any, path: Sequence[str]) -> Any:
    """Return the value at a path; None if there is none."""
    for name in path:
        if not isinstance(value, Mapping):
            return None
        value = value.get(name)
    return value


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple | FrozenList)


def _holds(actual: Any, expected: Any) -> bool:
    """Return True if one clause matches.

    Raises:
        InternalEvaluatorError: X504, there is no such operator.
    """
    if isinstance(expected, list | tuple):
        return (_is_list(actual) and list(actual) == list(expected)) or (
            not _is_list(actual) and _is_among(actual, expected)
        )
    if not isinstance(expected, Mapping):
        return bool(actual == expected)
    if not expected.keys() <= OPERATORS.keys():
        check({"": expected})
    return all(OPERATORS[name](actual, value) for name, value in expected.items())


__all__ = ["OPERATORS", "Where", "check", "find_failing_clause", "get_at", "get_object_values", "holds"]
