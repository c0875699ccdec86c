"""differences: a value as JSON, by what it does not share with the one before it.

A list that grew, a mapping with one key changed: what is kept grows with the changes and not with the board.
"""

from __future__ import annotations

from typing import Any

from agentnb.board.codec import TAG, decode, encode
from agentnb.board.secrets import hidden, is_secret
from agentnb.board.values import ABSENT, ATOMS, FrozenDict, FrozenList, freeze, frozen_dict


def difference(new: Any, old: Any, *, lenient: bool = False) -> Any:
    """Return a frozen value as JSON, by what it does not share with `old`.

    Raises:
        StoreError: L401, no codec takes the value, and it is not `lenient`.
    """
    if new is old and new.__class__ not in ATOMS:
        return {TAG: "same"}
    if new.__class__ is FrozenList and old.__class__ is FrozenList and new.items is old.items and new.size >= old.size:
        return {TAG: "grown", "v": [encode(item, lenient=lenient) for item in new.items[old.size : new.size]]}
    if new.__class__ is FrozenDict and old.__class__ is FrozenDict and old and _extends(new, old):
        changed = {key: item for key, item in new.items() if item is not old.get(key, ABSENT)}
        if len(changed) < len(new):
            return {TAG: "merged", "v": {key: encode(item, key, lenient=lenient) if is_secret(key) else
                                         difference(item, old.get(key, ABSENT), lenient=lenient)
                                         for key, item in changed.items()}}  # fmt: skip
    return encode(new, lenient=lenient)


def _extends(new: FrozenDict, old: FrozenDict) -> bool:
    """Say whether merging the changed keys into the old mapping gives the new one, in its order."""
    names = list(new)
    return names[: len(old)] == list(old) and all(name.__class__ is str and hidden(name) == name for name in names)


def put_back(document: Any, old: Any) -> Any:
    """Return the frozen value that `difference` gave, from what stood there before."""
    tag = document.get(TAG) if document.__class__ is dict else None
    if tag == "same":
        return old
    if tag == "grown":
        for item in document["v"]:
            old = old.grown(unfrozen(item))
        return old
    if tag == "merged":
        parts = {key: put_back(item, old.get(key, ABSENT)) for key, item in document["v"].items()}
        return frozen_dict({**old, **parts})
    return freeze(decode(document), old)


def unfrozen(document: Any) -> Any:
    """Return the frozen value that a JSON document stands for."""
    return document if document.__class__ in ATOMS else freeze(decode(document))


__all__ = ["difference", "put_back", "unfrozen"]
