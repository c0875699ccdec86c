"""The contents of a graph as users see them, as copies: objects, relations, patches, pending approvals."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from agentnb.board.values import thaw


class _PlainDataclass:
    """A dataclass that converts to a dict."""

    def to_dict(self) -> dict[str, Any]:
        """Return its fields."""
        return {each.name: thaw(getattr(self, each.name)) for each in fields(self)}  # type: ignore[arg-type]  # see above


@dataclass(frozen=True)
class Object(_PlainDataclass):
    """An object with a type and data; its version increases by one with each patch."""

    id: str
    type: str
    data: dict[str, Any]
    version: int
    provenance: dict[str, Any]


@dataclass(frozen=True)
class Relation(_PlainDataclass):
    """A relation from one object to another; either may be missing."""

    id: str
    source: str
    target: str
    type: str
    data: dict[str, Any]
    provenance: dict[str, Any]


@dataclass(frozen=True)
class Patch(_PlainDataclass):
    """A change of an object: `update` merges fields, `replace` replaces all of them. It applies to one version only."""

    id: str
    target: str
    op: str
    value: dict[str, Any]
    expected_version: int
    proposed_by: str
    rationale: str | None = None
    evidence: list[str] = field(default_factory=list)
    status: str = "proposed"
    rejection_reason: str | None = None
    provenance: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class PendingApproval:
    """An object whose creation awaits approval."""

    id: str
    kind: str
    object_type: str
    data: dict[str, Any]
    reason: str
    pack: str


def to_object(record: Any) -> Object:
    """Return an object from its value on the board."""
    return Object(record["id"], record["type"], thaw(record["data"]), record["version"], thaw(record["provenance"]))


def to_relation(record: Any) -> Relation:
    """Return a relation from its value on the board."""
    return Relation(record["id"], record["source"], record["target"], record["type"], thaw(record["data"]),
                    thaw(record["provenance"]))  # fmt: skip


def patch_of(record: Any) -> Patch:
    """Return a patch from its value on the board."""
    return Patch(**thaw(record))


def to_approval(record: Any) -> PendingApproval:
    """Return an approval from its value on the board."""
    return PendingApproval(record["approval_id"], "object", record["object_type"], thaw(record["data"]),
                           record["reason"], record["pack"])  # fmt: skip


__all__ = ["Object", "Patch", "PendingApproval", "Relation", "patch_of", "to_approval", "to_object", "to_relation"]
