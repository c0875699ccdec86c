"""Small values of all shapes, a naive measure of a value, and what freezing one after another must give."""

from __future__ import annotations

from ast import literal_eval
from collections.abc import Collection
from typing import Any

from agentnb.board.values import freeze, is_unchanged, measure_extent, thaw

SHAPES = [
    *("1", "True", "1.0", "0.0", "-0.0", "1000", "'text'", "b'text'", "None", "()", "(1000,)", "(True,)"),
    *("[]", "[1]", "[True]", "[1000]", "[1000, 2000]", "[1000, 2000, 3000]", "[2000, 1000]", "[['text', 'more'], []]"),
    *("[[1000], 2000]", "[2000, [1000]]", "[[1000], [2000]]", "(1, [2000])", "[[[[1000]]]]", "[[[]], 1000]", "[{}]"),
    "[{'a': 'x'}]",
    *("[{'a': 'x', 'b': 'y'}, {'a': 'z'}]", "[{'a': 'x', 'b': 'y'}, {'a': 'w'}]", "[{1: 'x'}]", "[{'a': b'x'}]"),
    *("[{'a': [1000]}, {'b': {}}]", "[{'a': [1000]}, {'b': {}}, [2000]]", "{}", "{'a': 'x'}", "{'a': 'y'}"),
    "{'b': 'x'}",
    *("{'a': 'x', 'b': 'y'}", "{'b': 'y', 'a': 'x'}", "{'a': 1000, 'b': [1000]}", "{'b': [1000], 'a': 1000}"),
    *("{1: 'x'}", "{True: 'x'}", "{'a': [{'b': [1000]}], 'c': [[2000]]}", "{'a': [{'b': [3000]}], 'c': [[2000]]}"),
    *("((1000,), [])", "({'a': (1000,)}, 2)", "{1, 2}", "{True, 2}", "{1.0}", "{'a': {1000}, 'b': (1, 2)}", "[({5},)]"),
]  # fmt: skip


def fresh(shape: str) -> Any:
    """Return a value none of whose parts are the same objects as those of another call, as far as Python allows."""
    return literal_eval(shape)


def measure(value: Any) -> tuple[int, int, int]:
    """Return the levels, the number of containers, and this number plus the number of atoms."""
    if isinstance(value, set):
        return 1, 1, len(value)
    if not isinstance(value, list | tuple | dict):
        return 0, 0, 0
    parts: Collection[Any] = value.values() if isinstance(value, dict) else value
    inner = [measure(part) for part in parts]
    return (
        1 + max((part[0] for part in inner), default=0),
        1 + sum(part[1] for part in inner),
        1 + len(parts) + sum(part[2] for part in inner),
    )


def is_plain(value: Any) -> bool:
    """Return True if code in C finds the same parts in the frozen form of a value."""
    if isinstance(value, tuple):
        return not any(isinstance(part, list | tuple | dict | set) for part in value)
    if isinstance(value, list | dict):
        return all(map(is_plain, value.values() if isinstance(value, dict) else value))
    return not isinstance(value, set)


def check_measured(frozen: Any, value: Any, *, levels: int = 0) -> None:
    """Check the extents of a frozen value and its parts; `levels` is how many a list may count that it had before."""
    depth, *sizes, plain = measure_extent(frozen)
    expected, *expected_sizes = measure(value)
    assert sizes == expected_sizes, value
    assert expected <= depth <= max(expected, levels), value
    assert plain == is_plain(value) or (levels > 0 and not plain), value
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        check_measured(frozen[key], part, levels=levels - 1)


def check_shared(new: Any, old: Any) -> None:
    """Check that equal lists, mappings and sets at the same places in two frozen values are the same objects."""
    if not isinstance(old, list | tuple | dict | set | frozenset):
        return
    if repr(thaw(new)) == repr(thaw(old)):
        assert new is old
    elif isinstance(new, dict) and isinstance(old, dict):
        for key in new.keys() & old.keys():
            check_shared(new[key], old[key])
    elif (isinstance(new, list) and isinstance(old, list)) or (
        isinstance(new, tuple) and isinstance(old, tuple) and len(new) == len(old)
    ):
        for part, was in zip(new, old, strict=False):
            check_shared(part, was)


def check_frozen_after(new: Any, value: Any, old: Any, before: Any) -> None:
    """Check the frozen form of a value that was written over another one, `old`, the frozen form of `before`."""
    assert repr(thaw(new)) == repr(value)
    assert repr(thaw(old)) == repr(before)
    assert (new is old) == (repr(value) == repr(before))
    check_measured(new, value, levels=measure(before)[0])
    check_shared(new, old)
    assert freeze(thaw(new), new) is new
    assert is_unchanged(thaw(new), new)
