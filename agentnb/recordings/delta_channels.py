"""Values of LangGraph's DeltaChannels, computed from the writes that a checkpoint database stores in their place.

The reducer that LangGraph applies to these writes is in the program. Here it is the one that such channels usually
have: lists are joined, a message replaces the one with its id, mappings are merged.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from agentnb.board.values import ABSENT
from agentnb.recordings.msgpack_values import OVERWRITE, Opaque

REMOVE_ALL: Final = "__remove_all__"  # the id of LangGraph's message that removes all earlier ones
_UNKNOWN: Final = Opaque("a DeltaChannel whose reducer is not in the database")


def add_write(value: Any, write: Any) -> Any:
    """Return the value of a channel after one more write; an Opaque if it depends on the reducer of the program."""
    replaces, new = _split_overwrite(write)
    if replaces:
        return type(value)() if new is None and isinstance(value, list | dict) else new
    if value is ABSENT:
        value = [] if isinstance(write, list) or _is_message(write) else {} if isinstance(write, dict) else ABSENT
    if isinstance(value, list) and isinstance(write, list):
        return _add_messages(value, write) if all(map(_is_message, write)) else [*value, *write]
    if isinstance(value, list) and _is_message(write):
        return _add_messages(value, [write])
    if isinstance(value, dict) and isinstance(write, dict) and None not in write.values():  # None may delete a key
        return {**value, **write}
    return _UNKNOWN


def _split_overwrite(write: Any) -> tuple[bool, Any]:
    """Return whether a write replaces the value, and the new value."""
    if isinstance(write, dict):
        if write.keys() == {OVERWRITE}:
            return True, write[OVERWRITE]
        if write.get("type") == OVERWRITE and "value" in write:
            return True, write["value"]
    return False, None


def _is_message(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() >= {"type", "content", "id"}


def _add_messages(messages: Sequence[Any], new: Sequence[Any]) -> list[Any]:
    """Return messages with new ones: a known id replaces a message, a message of type `remove` removes it."""
    by_id: dict[Any, Any] = {}
    for number, message in enumerate([*messages, *new]):
        id = message["id"] if _is_message(message) and isinstance(message["id"], str) else number
        if not _is_message(message) or message["type"] != "remove":
            by_id[id] = message
        elif id == REMOVE_ALL:
            by_id.clear()
        else:
            by_id.pop(id, None)
    return list(by_id.values())


__all__ = ["add_write"]
