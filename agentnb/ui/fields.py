"""Form fields: values as a person reads and edits them, and the value that an edited field means.

A field is plain JSON: `path` is its path within the value, `text` is what is shown, and `as` states how it is parsed:
`text` as it is, `number`, `flag` (true or false), `none` and `json` parsed, `secret` as a text that is never shown,
`fixed` not at all, with a `note` that explains why. Typed input is a text, or {text, as} to change the type of the
value. A masked text never replaces the true one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields as dataclass_fields
from dataclasses import is_dataclass, replace
from math import isfinite
from typing import Any, Final

from agentnb.board.masking import mask_value
from agentnb.board.values import ABSENT, thaw
from agentnb.errors import AgentNbError, Problem, with_article
from agentnb.secrets import MASK, has_secret
from agentnb.text import safe_repr

LONGEST: Final = 20_000  # characters of an editable field; a longer value is shown in part
_FIXED_WIDTH: Final = 2_000
_KEPT_BACK: Final = "it contains a secret; change it in a cell"
_GONE: Final = "the question has changed in the meantime and no longer has this part"
_KINDS: Final = {str: "text", int: "number", float: "number", bool: "flag", type(None): "none"}
_HOW: Final = {
    "number": ("a number", "write a number such as 3 or -0.5"),
    "flag": ("true or false", "choose one of them"),
    "none": ("nothing", "choose another kind to write a value"),
    "json": ("JSON", 'write numbers as 3, strings as "three", and true, false or null'),
}
Field = dict[str, Any]


def make_fields(value: Any, name: str = "") -> list[Field]:
    """Return the fields of a value: one per key of a mapping or dataclass, one per message, otherwise one in all."""
    value = thaw(value)
    parts = _find_parts(value)
    if not parts or not all(isinstance(key, str) for key in parts):
        return [make_field(value, [], name)]
    fields: list[Field] = []
    for key, item in parts.items():
        if has_secret(key):
            fields.append({**make_field(MASK, [], ""), "label": key, "as": "fixed", "note": _KEPT_BACK})
        else:
            fields += _iter_message_fields(key, item) if _is_talk(item) else [make_field(item, [key], key)]
    return fields


def _find_parts(value: Any) -> dict[Any, Any]:
    """Return the items of a mapping, or of a dataclass (such as a model's response) those that are not None."""
    if isinstance(value, dict):
        return value
    if not is_dataclass(value) or isinstance(value, type):
        return {}
    fields = {each.name: getattr(value, each.name) for each in dataclass_fields(value) if each.init}
    return {name: item for name, item in fields.items() if item is not None}


def make_field(value: Any, path: list[str | int], name: str) -> Field:
    """Return the single field of a value; its name determines whether it is a secret."""
    text, kind, note = _to_text(value, name)
    return {"path": path, "label": name, "text": _to_sendable(text), "as": kind, "note": note}


def _to_text(value: Any, name: str) -> tuple[str, str, str]:
    if value is ABSENT:
        return "", "json", ""
    if not _is_plain(value):
        return (
            safe_repr(value, key=name, limit=_FIXED_WIDTH),
            "fixed",
            f"{with_article(type(value).__name__)}, which can be changed only in a cell",
        )
    if mask_value(value, name) != value:
        return _format_text(mask_value(value, name)), "fixed", _KEPT_BACK
    text = _format_text(value)
    if len(text) > LONGEST:
        return f"{text[:LONGEST]}…", "fixed", f"shortened from {len(text)} characters; change it in a cell"
    return text, _KINDS.get(type(value), "json"), ""


def _format_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)


def _to_sendable(text: str) -> str:
    """Return a text that can be sent: lone surrogates are replaced."""
    return text.encode("utf-8", "replace").decode()


def _is_plain(value: Any) -> bool:
    """Return True if JSON represents a value completely."""
    if value is None or type(value) in (str, bool, int):
        return True
    if type(value) is float:
        return isfinite(value)
    if type(value) is list:
        return all(map(_is_plain, value))
    return type(value) is dict and all(type(key) is str and _is_plain(item) for key, item in value.items())


def _is_talk(value: Any) -> bool:
    """Return True if a value is a conversation: messages, each with a role and content."""
    return isinstance(value, list) and bool(value) and all(
        isinstance(item, dict) and isinstance(item.get("role"), str) and "content" in item for item in value
    )  # fmt: skip


def _iter_message_fields(key: str, messages: list[dict[str, Any]]) -> Iterator[Field]:
    """Yield a field for the content of each message, under its role; its other items follow as fixed fields."""
    for number, message in enumerate(messages):
        role = message["role"]
        field = make_field(message["content"], [key, number, "content"], key)
        yield {**field, "label": f"{role} message", "role": role}
        rest = {name: item for name, item in message.items() if name not in ("role", "content")}
        if rest:
            more = make_field(rest, [key, number], f"with this {role} message")
            yield {**more, "as": "fixed", "note": "", "role": role}


def apply_changes(value: Any, changes: Any) -> Any:
    """Return a copy of a value with typed changes: pairs of a field's path and the typed input.

    Raises:
        AgentNbError: U305, the input does not parse as its type; U306, the field does not exist or cannot be changed
            here.
    """
    value = thaw(value)
    known = {tuple(field["path"]): field for field in make_fields(value)}
    for path, typed in _parse_changes(changes):
        field = known.get(tuple(path), {"label": ".".join(map(str, path)), "as": "fixed", "note": _GONE})
        value = _put(value, list(path), parse_typed_value(field, typed))
    return value


def parse_typed_value(field: Field, typed: Any) -> Any:
    """Return the value that input typed into a field means.

    Raises:
        AgentNbError: U305, the input does not parse as its type; U306, the field is fixed.
    """
    if field["as"] == "fixed":
        raise AgentNbError(
            Problem("U306", f"{field['label'] or 'this value'!r} cannot be changed here", "the cockpit's editor",
                    field["note"] or "it cannot be shown as a whole",
                    "session.change(...) or session.edit(...) in a cell changes it")
        )  # fmt: skip
    if isinstance(typed, dict):
        return parse(str(typed.get("text", "")), str(typed.get("as") or field["as"]), field["label"])
    return parse(str(typed), field["as"], field["label"])


def _parse_changes(changes: Any) -> list[tuple[list[Any], Any]]:
    """Return the valid pairs among what the page has sent."""
    rows = changes if isinstance(changes, list) else []
    return [(row[0], row[1]) for row in rows if isinstance(row, list) and len(row) == 2 and _is_path(row[0])]


def _is_path(path: Any) -> bool:
    return isinstance(path, list) and all(isinstance(part, str | int) for part in path)


def parse(text: str, kind: str, name: str = "") -> Any:
    """Parse a typed text as a value of a kind.

    Raises:
        AgentNbError: U305, the text does not parse.
    """
    if kind in ("text", "secret"):
        return text
    if kind == "none":
        return None
    expected, parse_text = _HOW.get(kind, _HOW["json"])
    try:
        value = json.loads(text, parse_constant=_parse_non_number)
        if kind not in ("number", "flag") or (_KINDS.get(type(value)) == kind and isfinite(value)):
            return value
        reason = f"it is {safe_repr(value, key=name)}"
    except (ValueError, RecursionError) as error:  # RecursionError: the parser's own depth limit
        reason = str(error) or type(error).__name__
    raise AgentNbError(
        Problem("U305", f"the value of {name!r} is not {expected}" if name else f"the value is not {expected}",
                "the cockpit's editor", reason, f"{parse_text}; nothing was changed")
    )  # fmt: skip


def _parse_non_number(word: str) -> Any:
    raise ValueError(f"{word} is not a JSON number")


def _put(value: Any, path: list[Any], new: Any) -> Any:
    if not path:
        return new
    head, rest = path[0], path[1:]
    if isinstance(value, list):
        return [_put(item, rest, new) if number == head else item for number, item in enumerate(value)]
    if isinstance(value, dict):
        return {**value, head: _put(value[head], rest, new)}
    return replace(value, **{head: _put(getattr(value, head), rest, new)})
