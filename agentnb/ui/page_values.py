"""The values of the board for an exported page, which evaluates conditions of its search on them without a kernel.

Values are JSON. One that JSON cannot represent, or that is too large for a page, is replaced by {"~": why}.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import isfinite
from typing import Any, Final

from agentnb.board.values import FrozenDict, FrozenList
from agentnb.errors import with_article
from agentnb.ui.board_view import get_type_name

PARTS: Final = 2_000  # of a value, in all
LONGEST: Final = 4_000  # characters of a text
_EXACT: Final = 2**53  # integers up to this size are exact in JavaScript
Values = Mapping[str, Any]
Change = list[Any]


def compute_changes(before: Values | None, after: Values) -> list[Change]:
    """Return the changes that turn the values of one position into those of the next.

    `before` is None at the first one. A change is [path] for a value that is gone, [path, value] for one that was set,
    and [path, items, 1] for items that were appended.

    Args:
        before: the frozen values of the board, by key.

    Example:
        >>> compute_changes({"n": 1, "gone": 0}, {"n": 2})
        [[['gone']], [['n'], 2]]
    """
    return [*_iter_changes([], before or {}, after)]


def _iter_changes(path: list[Any], before: Mapping[Any, Any], after: Mapping[Any, Any]) -> Iterator[Change]:
    yield from ([[*path, key]] for key in before if key not in after)
    for key, value in after.items():
        if key not in before:
            yield [[*path, key], to_plain(value)]
        elif before[key] is not value:
            yield from _iter_value_changes([*path, key], before[key], value)


def _iter_value_changes(path: list[Any], old: Any, new: Any) -> Iterator[Change]:
    kind = type(new)
    if type(old) is not kind or kind not in (FrozenDict, FrozenList):
        if type(old) is not kind or old != new:
            yield [path, to_plain(new)]
    elif kind is FrozenDict:
        if len(new) <= PARTS and _has_plain_keys(old) and _has_plain_keys(new):
            yield from _iter_changes(path, old, new)
        else:
            yield [path, to_plain(new)]
    elif new.items is old.items and new.size >= old.size:
        if new.size > old.size:
            yield [path, [to_plain(item) for item in new.items[old.size : new.size]], 1]
    elif old.size > new.size or new.size > PARTS:
        yield [path, to_plain(new)]
    else:
        for index, item in enumerate(old):
            if new[index] is not item:
                yield from _iter_value_changes([*path, index], item, new[index])
        if new.size > old.size:
            yield [path, [to_plain(item) for item in new[old.size :]], 1]


def _has_plain_keys(mapping: Mapping[Any, Any]) -> bool:
    return all(type(key) is str for key in mapping) and "~" not in mapping


def to_plain(value: Any) -> Any:
    """Return a frozen value as JSON, with {"~": why} in place of parts that a page cannot compare.

    Example:
        >>> to_plain(1.5), to_plain(2**60)
        (1.5, {'~': 'an integer beyond 2**53'})
    """
    return _to_plain_within(value, iter(range(PARTS)))


def _to_plain_within(value: Any, room: Iterator[int]) -> Any:
    if next(room, None) is None:
        return {"~": f"a value of more than {PARTS:,} parts"}
    match value:
        case None | bool():
            return value
        case str() if type(value) is str:
            return value if len(value) <= LONGEST else {"~": f"a string of more than {LONGEST:,} characters"}
        case int() if type(value) is int:
            return value if abs(value) <= _EXACT else {"~": "an integer beyond 2**53"}
        case float() if type(value) is float:
            return value if isfinite(value) else {"~": "a number that is not finite"}
        case FrozenDict() if _has_plain_keys(value):
            plain = {key: _to_plain_within(item, room) for key, item in value.items()}
            return plain if next(room, None) is not None else {"~": f"a value of more than {PARTS:,} parts"}
        case FrozenList():
            items = [_to_plain_within(item, room) for item in value]
            return items if next(room, None) is not None else {"~": f"a value of more than {PARTS:,} parts"}
        case FrozenDict():
            return {"~": "a dict with keys that are not strings"}
    return {"~": with_article(get_type_name(value))}


__all__ = ["Change", "compute_changes", "to_plain"]
