"""Paths: reading and writing below a key. Pure functions: each returns a new frozen value that shares the rest."""

from __future__ import annotations

from typing import Any

from agentnb.board.decoders import get_fields
from agentnb.board.values import (
    ABSENT,
    FrozenDict,
    FrozenList,
    FrozenRecord,
    are_alike,
    freeze,
    make_frozen_dict,
    make_frozen_list,
    with_template,
)
from agentnb.errors import BoardError, Problem, with_article

SET, DELETE, APPEND = 0, 1, 2
OPS = ("set", "delete", "append")
Path = tuple[str | int, ...]


def get_at(value: Any, rest: Path) -> Any:
    """Return the value at `rest` inside a frozen value; ABSENT if there is none."""
    for key in rest:
        value = _get_part(value, key)
        if value is ABSENT:
            return ABSENT
    return value


def changes(written: Path, op: int, old: Any, new: Any, path: Path) -> bool:
    """Return True if a write changed the value at a path: a container whose other parts are equal has not changed it.

    Args:
        written: the path of the write.
        old: the frozen value of the first key of `written` before the write.
        new: what was written there, frozen; for an append, the item.
        path: the path of the value in question. A value above the written one has changed if that has.
    """
    size = min(len(written), len(path))
    if written[:size] != path[:size] and [*map(str, written[:size])] != [*map(str, path[:size])]:
        return False
    before, below = get_at(old, written[1:]), path[len(written) :]
    if op == APPEND:
        if not below:
            return True
        new = _append(before, new, written)  # shares the items with the list before
    return not are_alike(get_at(before, below), get_at(new, below))


def _get_part(value: Any, key: str | int) -> Any:
    if isinstance(value, FrozenRecord):
        value = get_fields(value) or value.parts
    if isinstance(value, dict):
        if key in value:
            return value[key]
        return value.get(int(key), ABSENT) if isinstance(key, str) and key.isdecimal() else ABSENT
    if isinstance(value, FrozenList | list | tuple):
        index = _index(key)
        return value[index] if index is not None and -len(value) <= index < len(value) else ABSENT
    return ABSENT


def _index(key: str | int) -> int | None:
    if isinstance(key, int):
        return key
    return int(key) if key.removeprefix("-").isdecimal() else None


def apply_change(value: Any, rest: Path, op: int, new: Any, path: Path) -> Any:
    """Return a frozen value like `value` with `op` applied at `rest`; ABSENT if nothing is left of it.

    Missing parts, or None, along the path become mappings; deleting a missing part changes nothing. `path` is the whole
    path, for the message.

    Raises:
        BoardError: B103, the path leads through a value that is neither a mapping nor a list.
    """
    if not rest:
        if op == SET:
            return freeze(new, value)
        return ABSENT if op == DELETE else _append(value, new, path)
    inner = _get_part(value, rest[0])
    if op == DELETE and inner is ABSENT:
        return value
    part = apply_change(inner, rest[1:], op, new, path)
    if op == DELETE and part is inner:  # the part to delete further down is missing
        return value
    if isinstance(value, FrozenRecord):
        return FrozenRecord(value.template, _check_in_dict(value.parts, rest[0], part))
    if isinstance(value, FrozenDict):
        return _check_in_dict(value, rest[0], part)
    if isinstance(value, FrozenList):
        return _check_in_list(value, rest[0], part, path)
    if value is None or value is ABSENT:
        return make_frozen_dict({rest[0]: part})
    raise _make_container_error(path, value)


def _check_in_dict(value: FrozenDict, key: str | int, part: Any) -> FrozenDict:
    parts = dict(value)
    if key not in parts and isinstance(key, str) and key.isdecimal() and int(key) in parts:
        key = int(key)
    if part is ABSENT:
        parts.pop(key, None)
    else:
        parts[key] = part
    changed = make_frozen_dict(parts)
    return changed if value.template is None else with_template(changed, value.template)


def _check_in_list(value: FrozenList, key: str | int, part: Any, path: Path) -> FrozenList:
    index = _index(key)
    if index is not None and index < 0:
        index += len(value)
    if index is None or not 0 <= index <= len(value):
        raise BoardError(
            Problem(
                "B104",
                f"the path {'.'.join(map(str, path))!r} leads to item {key!r} of a list, which does not exist",
                f"board key {path[0]!r}",
                f"the list has {len(value)} items, which are addressed by their index",
                f"use a number from 0 to {len(value)}",
            )
        )
    if part is ABSENT:
        changed = make_frozen_list(value.items[:index] + value.items[index + 1 : value.size])
        return changed if value.template is None else with_template(changed, value.template)
    return value.with_item(part) if index == len(value) else value.replace_items({index: part})


def _append(value: Any, new: Any, path: Path) -> FrozenList:
    item = freeze(new)
    if isinstance(value, FrozenList):
        return value.with_item(item)
    if value is None or value is ABSENT:
        return make_frozen_list([item])
    raise _make_container_error(path, value, "append to")


def _make_container_error(path: Path, value: Any, verb: str = "write") -> BoardError:
    text = ".".join(map(str, path))
    needed = "a list" if verb == "append to" else "a mapping or a list"
    return BoardError(
        Problem(
            "B103",
            f"cannot {verb} {text!r}",
            f"board key {path[0]!r}",
            f"the path crosses {_format_value(value, path)}, {with_article(type(value).__name__)}, but needs {needed}",
            f"write {path[0]!r} as a whole first, or choose another path",
        )
    )


def _format_value(value: Any, path: Path) -> str:
    from agentnb.text import safe_repr

    return safe_repr(value, key=path[0], limit=40)
