"""Value deltas: a value as JSON, as its difference from the previous one.

For a list that grew or a mapping with one changed key, the size of the record depends on the change, not on the value.
"""

from __future__ import annotations

from typing import Any

from agentnb.board.codec import TAG, decode, encode, is_json
from agentnb.board.values import ABSENT, ATOMS, FrozenDict, FrozenList, freeze, make_frozen_dict
from agentnb.secrets import has_secret, is_secret


def encode_difference(new: Any, old: Any, *, lenient: bool = False) -> Any:
    """Return a frozen value as JSON, without the parts that it shares with `old`.

    Raises:
        StoreError: L401, no codec accepts the value, and `lenient` is False.
    """
    if new is old and type(new) not in ATOMS:
        return {TAG: "same"}
    if type(new) is FrozenList and type(old) is FrozenList and new.items is old.items and new.size >= old.size:
        return {TAG: "grown", "v": [encode(item, lenient=lenient) for item in new.items[old.size : new.size]]}
    if (
        type(new) is FrozenDict
        and type(old) is FrozenDict
        and new.template is None is old.template
        and _extends(new, old)
    ):
        changed = {key: item for key, item in new.items() if item is not old.get(key, ABSENT)}
        if len(changed) < len(new):
            return {TAG: "merged", "v": {key: encode(item, key, lenient=lenient) if is_secret(key) else
                                         encode_difference(item, old.get(key, ABSENT), lenient=lenient)
                                         for key, item in changed.items()}}  # fmt: skip
    return encode(new, lenient=lenient)


def _extends(new: FrozenDict, old: FrozenDict) -> bool:
    """Return True if merging the changed keys into the old mapping gives the new one, in the same order."""
    names = list(new)
    return (
        bool(old)
        and names[: len(old)] == list(old)
        and all(type(name) is str and is_json(name) and not has_secret(name) for name in names)
    )


def decode_difference(document: Any, old: Any) -> Any:
    """Return the frozen value of a document made by `encode_difference`, given the previous value."""
    tag = document.get(TAG) if type(document) is dict else None
    if tag == "same":
        return old
    if tag == "grown":
        for item in document["v"]:
            old = old.with_item(decode_value(item))
        return old
    if tag == "merged":
        parts = {key: decode_difference(item, old.get(key, ABSENT)) for key, item in document["v"].items()}
        return make_frozen_dict({**old, **parts})
    return freeze(decode(document), old)


def decode_value(document: Any) -> Any:
    """Return the frozen value of a JSON document."""
    return document if type(document) in ATOMS else freeze(decode(document))


__all__ = ["decode_difference", "decode_value", "encode_difference"]
