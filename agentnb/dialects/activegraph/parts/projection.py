"""The effect of events on the board. The log is the source of truth; the board is derived from it.

Each object, relation, patch and pending approval is on the board under its id, as its events describe it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from agentnb.board.values import ABSENT, freeze
from agentnb.dialects.activegraph.errors import GraphError, InvalidPatchOperation
from agentnb.errors import Problem
from agentnb.text import safe_repr

if TYPE_CHECKING:
    from agentnb.dialects.activegraph.parts.ledger import Ledger

Writes = list[tuple[str, Any]]
OPS: Final = ("update", "replace")
CHANCE: Final = "chance"  # the board key with the position of the run's random generator
# The field that identifies the kind of an entry, tried in this order, and the fields of an entry of this kind.
_SHAPES: Final[Mapping[str, Mapping[str, type]]] = {
    "version": {"type": str, "data": Mapping, "version": int},
    "source": {"source": str, "target": str, "type": str, "data": Mapping},
    "op": {"target": str, "value": Mapping},
    "approval_id": {"object_type": str, "data": Mapping},
}


def project(ledger: Ledger, type_: str, payload: Any) -> Writes:
    """Return what an event writes to the board: id and frozen value; ABSENT means a removal.

    Raises:
        GraphError: X502, the payload lacks fields that its type requires.
    """
    projector = _BY_TYPE.get(type_)
    return [] if projector is None else projector(ledger, payload)


def _get_part(payload: Any, name: str, *keys: str) -> Any:
    """Return a part of a payload with these keys.

    X502: an event of one of the graph's own types lacks a required field.
    """
    part = payload.get(name) if isinstance(payload, Mapping) else None
    if isinstance(part, Mapping) and all(key in part for key in keys):
        return part
    raise GraphError(
        Problem("X502", f"its payload has no {name!r} with {', '.join(keys) or 'any field'}",
        "an event of the graph itself",
                "the graph is built from its events",
                f"pass {{{name!r}: {{...}}}}, or call the graph's own method")
    )  # fmt: skip


def _get_id(payload: Any, name: str = "id") -> str:
    """Return the id in a payload."""
    value = payload.get(name) if isinstance(payload, Mapping) else None
    if not isinstance(value, str):
        raise GraphError(
            Problem("X502", f"its payload has no {name!r}", "an event of the graph itself",
                    "the graph is built from its events",
                    f"pass {{{name!r}: 'the id of its subject'}}, or call the graph's own method")
        )  # fmt: skip
    return value


def _apply_object_created(_: Ledger, payload: Any) -> Writes:
    record = _get_part(payload, "object", "id", "type", "data", "version", "provenance")
    check_board_value(str(record["id"]), record)
    return [(record["id"], record)]


def _apply_object_removed(ledger: Ledger, payload: Any) -> Writes:
    id = _get_id(payload)
    writes: Writes = [] if ledger.object(id) is ABSENT else [(id, ABSENT)]
    return [*((each, ABSENT) for each in ledger.touching(id)), *writes]


def _apply_relation_created(_: Ledger, payload: Any) -> Writes:
    record = _get_part(payload, "relation", "id", "source", "target", "type", "data")
    return [(record["id"], record)]


def _apply_relation_removed(ledger: Ledger, payload: Any) -> Writes:
    id = _get_id(payload)
    return [] if ledger.relation(id) is ABSENT else [(id, ABSENT)]


def _patch_proposed(_: Ledger, payload: Any) -> Writes:
    patch = _get_part(payload, "patch", "id", "target", "op", "value")
    check_op(patch["op"])
    return [(patch["id"], patch)]


def _patch_applied(ledger: Ledger, payload: Any) -> Writes:
    patch = _get_part(payload, "patch", "id", "target", "op", "value")
    check_op(patch["op"])
    current = ledger.object(patch["target"])
    return (
        [(patch["id"], patch)]
        if current is ABSENT
        else [(patch["id"], patch), (current["id"], apply_patch(current, patch))]
    )


def _patch_rejected(ledger: Ledger, payload: Any) -> Writes:
    patch = ledger.patch(_get_id(payload, "patch_id"))
    if patch is ABSENT:
        return []
    return [(patch["id"], freeze({**patch, "status": "rejected", "rejection_reason": payload.get("reason")}))]


def _apply_approval_proposed(_: Ledger, payload: Any) -> Writes:
    return [(_get_id(payload, "approval_id"), payload)]


def _apply_approval_changed(ledger: Ledger, payload: Any) -> Writes:
    changed = _get_id(payload, "approval_id")
    current = ledger.get(changed)
    return [] if current is ABSENT else [(changed, freeze({**current, "data": payload["data"]}))]


def _apply_approval_decided(ledger: Ledger, payload: Any) -> Writes:
    decided = _get_id(payload, "approval_id")
    return [] if ledger.get(decided) is ABSENT else [(decided, ABSENT)]


def apply_patch(current: Any, patch: Any) -> Any:
    """Return an object after a patch, frozen."""
    data = patch["value"] if patch["op"] == "replace" else {**current["data"], **patch["value"]}
    return freeze({**current, "data": data, "version": current["version"] + 1})


def check_board_value(key: str, value: Any) -> None:
    """Raise an error for a board value that is not part of a graph.

    X518: a value written to the board of behaviors is not an object, relation, patch or approval.

    Raises:
        GraphError: X518, the value is of another type.
    """
    known = value if isinstance(value, Mapping) else {}
    shape = next((shape for sign, shape in _SHAPES.items() if sign in known), None)
    if value is ABSENT or key == CHANCE or (
        shape is not None
        and known.get("id", key) == key
        and all(isinstance(known.get(name), kind) for name, kind in shape.items())
    ):  # fmt: skip
        return
    raise GraphError(
        Problem("X518", f"{key!r} would not be an object, relation, patch or approval", f"the board, {key!r}",
                "the board contains whole objects, relations, patches and approvals, each under its id",
                "change a field of an object, {'task#1.data.state': 'open'}, or create one: runtime.graph.add_object()")
    )  # fmt: skip


def diff_data(data: Mapping[str, Any], value: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the fields of an object's data that a patch changes, each with the old and the new value."""
    return {name: {"old": data.get(name), "new": new} for name, new in value.items()
            if name not in data or data[name] != new}  # fmt: skip


def check_op(op: Any) -> None:
    """Raise an error for a patch with an unknown operation.

    X503: the operation of a patch is neither 'update' nor 'replace'.

    Raises:
        InvalidPatchOperation: X503, the patch has another op.
    """
    if op not in OPS:
        raise InvalidPatchOperation(
            Problem("X503", f"a patch cannot {safe_repr(op)}", "a patch's op",
                    "a patch either updates or replaces data",
                    "write 'update' to merge fields, 'replace' to replace all data")
        )  # fmt: skip


_BY_TYPE: Final[Mapping[str, Callable[[Any, Any], Writes]]] = {
    "object.created": _apply_object_created,
    "object.removed": _apply_object_removed,
    "relation.created": _apply_relation_created,
    "relation.removed": _apply_relation_removed,
    "patch.proposed": _patch_proposed,
    "patch.changed": _patch_proposed,
    "patch.applied": _patch_applied,
    "patch.rejected": _patch_rejected,
    "approval.proposed": _apply_approval_proposed,
    "approval.changed": _apply_approval_changed,
    "approval.granted": _apply_approval_decided,
    "approval.denied": _apply_approval_decided,
}

__all__ = ["CHANCE", "OPS", "Writes", "apply_patch", "check_board_value", "check_op", "diff_data", "project"]
