"""Reading and writing at paths of plain dicts and lists, naively: each write begins with a deepcopy."""

from __future__ import annotations

import copy
from typing import Any

from agentnb import ABSENT
from agentnb.engine.core.work import Append


class RefusedError(Exception):
    """The board cannot take this write."""


def place_of(key: Any) -> int | None:
    """Return the number that a key of a list stands for."""
    if isinstance(key, int):
        return key
    try:
        return int(key) if key.lstrip("-").isdigit() and key.count("-") <= 1 else None
    except ValueError:
        return None


def part(value: Any, key: Any) -> Any:
    if isinstance(value, dict):
        if key in value:
            return value[key]
        number = place_of(key) if isinstance(key, str) and not key.startswith("-") else None
        return value.get(number, ABSENT) if number is not None else ABSENT
    if isinstance(value, list | tuple):
        number = place_of(key)
        return value[number] if number is not None and -len(value) <= number < len(value) else ABSENT
    return ABSENT


def look(value: Any, keys: tuple[Any, ...]) -> Any:
    for key in keys:
        if value is ABSENT:
            return ABSENT
        value = part(value, key)
    return value


def meaning(text: str, board: dict[str, Any]) -> tuple[str, ...]:
    """Return the path that a dotted text means here: at each mapping the longest key there, else the first word."""
    if text in board:
        return (text,)
    words = text.split(".")
    container: Any = board
    path: list[str] = []
    while words:
        if not isinstance(container, dict):
            return (*path, *words)
        sizes = [size for size in range(len(words), 0, -1) if ".".join(words[:size]) in container]
        size = sizes[0] if sizes else 1
        path.append(".".join(words[:size]))
        container = container.get(path[-1])
        words = words[size:]
    return tuple(path)


def changed(value: Any, keys: tuple[Any, ...], new: Any) -> Any:
    """Return a copy of `value` in which `new` was written at `keys`; ABSENT where nothing is left."""
    value = copy.deepcopy(value)
    if not keys:
        return whole(value, new)
    key, inner = keys[0], part(value, keys[0])
    if new is ABSENT and look(value, keys) is ABSENT:
        return value
    if value is None or value is ABSENT:
        return {key: changed(ABSENT, keys[1:], new)}
    below = changed(inner, keys[1:], new)
    if isinstance(value, dict):
        number = place_of(key) if isinstance(key, str) and not key.startswith("-") else None
        key = number if key not in value and number in value else key
        if below is ABSENT:
            del value[key]
        else:
            value[key] = below
        return value
    if isinstance(value, list):
        return item_changed(value, key, below)
    raise RefusedError("an atom stands on the way")


def item_changed(value: list[Any], key: Any, below: Any) -> list[Any]:
    number = place_of(key)
    if number is not None and number < 0:
        number += len(value)
    if number is None or not 0 <= number <= len(value):
        raise RefusedError("no such item")
    if below is ABSENT:
        del value[number]
    else:
        value[number : number + 1] = [below]
    return value


def whole(value: Any, new: Any) -> Any:
    if not isinstance(new, Append):
        return copy.deepcopy(new)
    if value is None or value is ABSENT:
        return [copy.deepcopy(new.item)]
    if isinstance(value, list):
        return [*value, copy.deepcopy(new.item)]
    raise RefusedError("only a list can be appended to")
