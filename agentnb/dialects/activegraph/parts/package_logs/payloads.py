"""Validation of the payloads in a log, and conversion of snapshots to the events that they represent."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from agentnb.errors import with_article
from agentnb.text import safe_repr

_OBJECT: Final = ("id", "type", "data", "version", "provenance")
_RELATION: Final = ("id", "source", "target", "type", "data", "provenance")
_PATCH: Final = ("id", "target", "op", "value")
# The required contents of an event's payload: a part with these fields, or one field.
_ASKED: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "object.created": ("object", _OBJECT),
    "relation.created": ("relation", _RELATION),
    "patch.proposed": ("patch", _PATCH),
    "patch.applied": ("patch", _PATCH),
    "object.removed": ("id", ()),
    "relation.removed": ("id", ()),
    "patch.rejected": ("patch_id", ()),
    "approval.proposed": ("approval_id", ()),
    "approval.granted": ("approval_id", ()),
    "approval.denied": ("approval_id", ()),
}
_MAPPINGS: Final = {"object", "relation", "patch", "data", "value", "provenance"}
_NUMBERS: Final = {"version"}


class InvalidPayload(Exception):
    """An event's payload does not fit its type: `path` leads to the faulty part, `why` describes it."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(path, why)
        self.path, self.why = path, why


def check(type: str, payload: Mapping[str, Any]) -> None:
    """Raise an error if an event lacks fields that the object graph requires for its type.

    Raises:
        InvalidPayload: a field is missing or has the wrong type.
    """
    if type not in _ASKED:
        return
    name, fields = _ASKED[type]
    content = _get_part(payload, name, "payload")
    for field in fields:
        _get_part(content, field, f"payload.{name}")
    if name == "patch" and content["op"] not in ("update", "replace"):
        raise InvalidPayload(
            "payload.patch.op", f"a patch updates or replaces, and this one is to {safe_repr(content['op'])}"
        )


def _get_part(content: Mapping[str, Any], name: str, where: str) -> Any:
    if name not in content:
        raise InvalidPayload(f"{where}.{name}", "it is missing")
    value = content[name]
    expected: type = dict if name in _MAPPINGS else int if name in _NUMBERS else str
    if not isinstance(value, expected) or isinstance(value, bool):
        raise InvalidPayload(
            f"{where}.{name}",
            f"it is {with_article(type(value).__name__)}; expected a {expected.__name__}",
        )
    return value


def iter_creation_events(state: str | None) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the type and payload of the events that would create the state of a snapshot.

    Raises:
        InvalidPayload: the snapshot does not exist or is not valid.
    """
    where = "payload.state_hash"
    if state is None:
        raise InvalidPayload(where, "the state that it names is not in the store")
    try:
        snapshot = json.loads(state)
        for each in snapshot.get("objects", ()):
            yield "object.created", {"object": {"version": 1, "provenance": {}, **each}, "id": each.get("id")}
        for each in snapshot.get("relations", ()):
            yield "relation.created", {"relation": {"data": {}, "provenance": {}, **each}, "id": each.get("id")}
    except (ValueError, AttributeError, TypeError, RecursionError) as error:
        raise InvalidPayload(where, f"the state that it names cannot be read: {error}") from None


__all__ = ["InvalidPayload", "check", "iter_creation_events"]
