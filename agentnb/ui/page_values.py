"""The values of the board for an exported page, which evaluates conditions of its search on them without a kernel.

A value is as in JSON. In place of one that JSON does not have, or that is too large for a page, stands {"~": why}.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import isfinite
from typing import Any, Final

from agentnb.board.values import FrozenDict, FrozenList
from agentnb.errors import with_article
from agentnb.ui.board_view import type_of

PARTS: Final = 2_000  # of a value, in all
LONGEST: Final = 4_000  # characters of a text
_EXACT: Final = 2**53  # whole numbers up to here are exact in JavaScript
Values = Mapping[str, Any]
Change = list[Any]


def value_changes(before: Values | None, after: Values) -> list[Change]:
    """Return what turns the values of one position into those of the next; `before` is None at the first one.

    A change is [path] for a value that is gone, [path, value] for one that was set, and [path, items, 1] for items that
    were appended.

    Args:
        before: the frozen values of the board, by key.

    Example:
        >>> value_changes({"n": 1, "gone": 0}, {"n": 2})
        [[['gone']], [['n'], 2]]
    """
    return [*_differences([], before or {}, after)]


def _differences(path: list[Any], before: Mapping[Any, Any], after: Mapping[Any, Any]) -> Iterator[Change]:
    yield from ([[*path, key]] for key in before if key not in after)
    for key, value in after.items():
        if key not in before:
            yield [[*path, key], plain_value(value)]
        elif before[key] is not value:
            yield from _change([*path, key], before[key], value)


def _change(path: list[Any], old: Any, new: Any) -> Iterator[Change]:
    kind = type(new)
    if type(old) is not kind or kind not in (FrozenDict, FrozenList):
        if type(old) is not kind or old != new:
            yield [path, plain_value(new)]
    elif kind is FrozenDict:
        if len(new) <= PARTS and _has_plain_keys(old) and _has_plain_keys(new):
            yield from _differences(path, old, new)
        else:
            yield [path, plain_value(new)]
    elif new.items is old.items and new.size >= old.size:
        if new.size > old.size:
            yield [path, [plain_value(item) for item in new.items[old.size : new.size]], 1]
    elif old.size > new.size or new.size > PARTS:
        yield [path, plain_value(new)]
    else:
        for place, item in enumerate(old):
            if new[place] is not item:
                yield from _change([*path, place], item, new[place])
        if new.size > old.size:
            yield [path, [plain_value(item) for item in new[old.size :]], 1]


def _has_plain_keys(mapping: Mapping[Any, Any]) -> bool:
    return all(type(key) is str for key in mapping) and "~" not in mapping


def plain_value(value: Any) -> Any:
    """Return a frozen value as JSON has it, with {"~": why} in place of what a page cannot compare.

    Example:
        >>> plain_value(1.5), plain_value(2**60)
        (1.5, {'~': 'a whole number beyond 2**53'})
    """
    return _plain(value, iter(range(PARTS)))


def _plain(value: Any, room: Iterator[int]) -> Any:
    if next(room, None) is None:
        return {"~": f"a value of more than {PARTS:,} parts"}
    match value:
        case None | bool():
            return value
        case str() if type(value) is str:
            return value if len(value) <= LONGEST else {"~": f"a text of more than {LONGEST:,} characters"}
        case int() if type(value) is int:
            return value if abs(value) <= _EXACT else {"~": "a whole number beyond 2**53"}
        case float() if type(value) is float:
            return value if isfinite(value) else {"~": "a number that is not finite"}
        case FrozenDict() if _has_plain_keys(value):
            found = {key: _plain(item, room) for key, item in value.items()}
            return found if next(room, None) is not None else {"~": f"a value of more than {PARTS:,} parts"}
        case FrozenList():
            items = [_plain(item, room) for item in value]
            return items if next(room, None) is not None else {"~": f"a value of more than {PARTS:,} parts"}
        case FrozenDict():
            return {"~": "a dict whose keys are not all texts"}
    return {"~": with_article(type_of(value))}


__all__ = ["Change", "plain_value", "value_changes"]
