"""Messages of LangChain in the JSON forms in which its tracers write them, as plain messages."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

_ROLES: Final[Mapping[str, str]] = MappingProxyType({
    "human": "user", "ai": "assistant", "system": "system", "tool": "tool", "function": "function",
    "AIMessageChunk": "assistant", "HumanMessageChunk": "user",
})  # fmt: skip
_OWN: Final = frozenset({"type", "role", "content", "example"})  # fields that the role and the content stand for


def to_plain_message(value: Any) -> Any:
    """Return a message of LangChain with `role`, `content` and its other fields that are not empty.

    The forms are `dumpd` (`lc`, `type`, `id`, `kwargs`), `messages_to_dict` (`type`, `data`), the fields alone, and a
    generation with its message. Any other value is returned unchanged.

    Example:
        >>> to_plain_message({"type": "human", "data": {"content": "Hello", "name": None}})
        {'role': 'user', 'content': 'Hello'}
    """
    if not isinstance(value, dict):
        return value
    if "generation_info" in value or value.get("type") in {"ChatGeneration", "ChatGenerationChunk", "Generation"}:
        return _from_generation(value)
    fields: Any = value
    if value.get("lc") == 1 and value.get("type") == "constructor":
        fields = value.get("kwargs")
    elif isinstance(value.get("data"), dict):
        fields = {"type": value.get("type"), **value["data"]}
    kind = fields.get("type") if isinstance(fields, dict) else None
    if not isinstance(fields, dict) or not isinstance(kind, str) or kind not in _ROLES or "content" not in fields:
        return value
    rest = {key: item for key, item in fields.items() if key not in _OWN and item not in (None, "", [], {})}
    return {"role": _ROLES[kind], "content": fields["content"], **rest}


def _from_generation(value: dict[str, Any]) -> Any:
    message = to_plain_message(value.get("message"))
    if not isinstance(message, dict):
        message = {"role": "assistant", "content": value.get("text")}
    info = value.get("generation_info")
    reason = info.get("finish_reason") if isinstance(info, dict) else None
    return message if reason is None else {**message, "finish_reason": reason}


__all__ = ["to_plain_message"]
