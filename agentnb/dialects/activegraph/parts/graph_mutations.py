"""Changes of a graph by an actor. Each is an event that is first added to the log; the board is derived from it.

`StepActor` acts as part of the current step, `SessionActor` between two steps, as a recorded intervention.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from agentnb.board.values import ABSENT
from agentnb.dialects.activegraph.errors import InvalidPatchLifecycleState, ReservedFieldError
from agentnb.dialects.activegraph.parts.argument_checks import make_type_error
from agentnb.dialects.activegraph.parts.clocks import format_time
from agentnb.dialects.activegraph.parts.events import freeze_json, to_canonical
from agentnb.dialects.activegraph.parts.projection import check_op, diff_data, project
from agentnb.errors import Problem

if TYPE_CHECKING:
    from datetime import datetime

    from agentnb.dialects.activegraph.parts.ledger import Ledger
    from agentnb.engine.core.history import Event as Kept
    from agentnb.engine.core.run import Run
    from agentnb.engine.core.work import Keep, Work
    from agentnb.session import Session

RESERVED = "provenance"
Check = Callable[[str, str, Mapping[str, Any]], Mapping[str, Any]]
_MADE = {"object.created": "object", "relation.created": "relation", "patch.proposed": "patch",
         "patch.applied": "patch"}  # fmt: skip


class Actor(ABC):
    """An actor: a name (`actor`), the causing event (`cause`), and a frame (`frame`)."""

    def __init__(self, ledger: Ledger, actor: str | None = "system", cause: str | None = None,
                 frame: str | None = None) -> None:  # fmt: skip
        self.ledger = ledger
        self.actor, self.cause, self.frame = actor, cause, frame
        self.provenance: dict[str, Any] = {}  # additional provenance fields of everything that it creates
        self.checks: Sequence[Check] = ()  # the schemas of a runtime's packs

    @abstractmethod
    def record(self, type_: str, payload: Any, *, actor: str | None = None, cause: str | None = None,
             frame: str | None = None, id_: str | None = None, when: datetime | None = None) -> Kept:  # fmt: skip
        """Record an event exactly as passed.

        Raises:
            NonSerializableEventError: X501, it is not JSON-serializable.
            GraphError: X502, it lacks a field that events of its type have.
        """

    @abstractmethod
    def _get_now(self) -> datetime:
        """Return the visible time."""

    def _restore_id(self, event_type: str, drawn: str) -> str:
        """Return the id of what an event of this type will create: the id just drawn, unless the event is recorded."""
        return drawn

    def emit(self, type_: str, payload: Any) -> Kept:
        """Record an event by this actor."""
        return self.record(type_, payload, actor=self.actor, cause=self.cause, frame=self.frame)

    def _stamp(self, actor: str | None, evidence: Sequence[str] | None) -> dict[str, Any]:
        return {
            "created_by": actor,
            "caused_by_event": self.cause,
            "frame_id": self.frame,
            "timestamp": format_time(self._get_now()),
            "evidence": list(evidence or ()),
            "run_id": run_id_for_new(self.ledger.run),
            **self.provenance,
        }

    def validate(self, what: str, type_: str, data: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return data validated and completed by the pack of its type.

        `what` is "object" or "relation", whose data has its ends.

        Raises:
            PackSchemaViolation: R323, it does not fit.
        """
        for check in self.checks:
            data = check(what, type_, data)
        return data

    # -- objects and relations -----------------------------------------------------------------------------------

    def add_object(self, type_: str, data: Mapping[str, Any], evidence: Sequence[str] | None = None) -> Any:
        """Create an object, and return it frozen."""
        id_ = self.ledger.ids.object(type_)  # the id is drawn first, so the id of a rejected object remains unused
        data = self.validate("object", type_, check_own(data, "add_object"))
        object_ = {"id": self._restore_id("object.created", id_), "type": type_, "data": data, "version": 1}
        object_["provenance"] = self._stamp(self.actor, evidence)
        return self.emit("object.created", {"object": object_, "id": object_["id"]}).payload["object"]

    def add_relation(self, source: str, target: str, type_: str, data: Mapping[str, Any] | None = None) -> Any:
        """Create a relation, and return it frozen."""
        id_ = self._restore_id("relation.created", self.ledger.ids.relation())
        relation: dict[str, Any] = {"id": id_, "source": source, "target": target, "type": type_}
        relation["data"] = check_own(data or {}, "add_relation")
        self.validate("relation", type_, relation)
        relation["provenance"] = self._stamp(self.actor, None)
        payload = {"relation": relation, "id": relation["id"], "source": source, "target": target}
        return self.emit("relation.created", payload).payload["relation"]

    def remove_object(self, id_: str) -> None:
        """Remove an object, and first the relations that start or end there; a missing one is ignored."""
        if self.ledger.object(id_) is ABSENT:
            return
        for relation in self.ledger.touching(id_):
            self.remove_relation(relation)
        self.emit("object.removed", {"id": id_})

    def remove_relation(self, id_: str) -> None:
        """Remove a relation; a missing one is ignored."""
        if self.ledger.relation(id_) is not ABSENT:
            self.emit("relation.removed", {"id": id_})

    # -- patches -------------------------------------------------------------------------------------------------

    def _patch(self, target: str, op: str, value: Mapping[str, Any], by: str | None, rationale: str | None,
               evidence: Sequence[str] | None, status: str) -> dict[str, Any]:  # fmt: skip
        patch = self._restore_id(f"patch.{status}", self.ledger.ids.patch())
        current = self.ledger.object(target)
        return {
            "id": patch,
            "target": target,
            "op": op,
            "value": value,
            "expected_version": 0 if current is ABSENT else current["version"],
            "proposed_by": by,
            "rationale": rationale,
            "evidence": list(evidence or ()),
            "status": status,
            "rejection_reason": None,
            "provenance": self._stamp(by, evidence),
        }

    def patch_object(self, target: str, updates: Mapping[str, Any], rationale: str | None = None,
                     evidence: Sequence[str] | None = None) -> Any:  # fmt: skip
        """Merge fields into an object's data at once, and return the patch, frozen."""
        updates = check_own(updates, "patch_object")
        current = self.ledger.object(target)
        if current is ABSENT:
            raise KeyError(f"unknown object: {target}")
        patch = self._patch(target, "update", updates, self.actor, rationale, evidence, "applied")
        id_ = self.ledger.event_id()
        payload = {"patch": patch, "target": target, "diff": diff_data(current["data"], to_canonical(updates))}
        event = self.record("patch.applied", payload, actor=self.actor, cause=self.cause, frame=self.frame, id_=id_)
        return event.payload["patch"]

    def propose_patch(self, target: str, op: str, value: Mapping[str, Any], by: str | None,
                      rationale: str | None = None, evidence: Sequence[str] | None = None) -> Any:  # fmt: skip
        """Propose a change of an object in its current state, and return the patch, frozen."""
        value = check_own(value, "propose_patch")
        check_op(op)
        target = target.removeprefix("object:").removeprefix("relation:")
        patch = self._patch(target, op, value, by, rationale, evidence, "proposed")
        return self.record("patch.proposed", {"patch": patch}, actor=by, cause=self.cause, frame=self.frame).payload[
            "patch"
        ]

    def apply_patch(self, patch_id: str, approved_by: str = "system") -> Kept:
        """Apply a proposed patch if its object has not changed since; otherwise it is rejected."""
        patch, ledger = self._find_proposed(patch_id, "applied"), self.ledger
        current = ledger.object(patch["target"])
        version, tell = 0 if current is ABSENT else current["version"], partial(self.record, actor=approved_by)
        tell = partial(tell, cause=self.cause, frame=self.frame)
        if version != patch["expected_version"]:
            reason = f"version mismatch: expected {patch['expected_version']}, got {version}"
            return tell("patch.rejected", _describe_rejection(patch, reason, version))
        data = {} if current is ABSENT else current["data"]
        payload = {"patch": {**patch, "status": "applied"}, "target": patch["target"],
                   "diff": diff_data(data, patch["value"]), "approved_by": approved_by}  # fmt: skip
        return tell("patch.applied", payload)

    def reject_patch(self, patch_id: str, reason: str) -> Kept:
        """Reject a proposed patch."""
        patch = self._find_proposed(patch_id, "rejected")
        current = self.ledger.object(patch["target"])
        return self.emit(
            "patch.rejected", _describe_rejection(patch, reason, 0 if current is ABSENT else current["version"])
        )

    def _find_proposed(self, patch_id: str, what: str) -> Any:
        """Return a patch that is pending.

        X505: a patch is decided a second time.
        """
        patch: Any = self.ledger.patch(patch_id)
        if patch is ABSENT:
            raise KeyError(f"unknown patch: {patch_id}")
        if patch["status"] != "proposed":
            raise InvalidPatchLifecycleState(
                Problem("X505", f"patch {patch_id!r} cannot be {what}: it is {patch['status']}", f"patch {patch_id!r}",
                        "a proposed patch can be decided only once",
                        "see graph.get_patch(id), or propose a new patch")
            )  # fmt: skip
        return patch


class StepActor(Actor):
    """Acts as part of the current step."""

    def __init__(self, work: Work, ledger: Ledger, actor: str | None, cause: str | None, frame: str | None) -> None:
        super().__init__(ledger, actor, cause, frame)
        self.work = work

    def _get_now(self) -> datetime:
        return self.work.now()

    def _restore_id(self, event_type: str, drawn: str) -> str:
        """Return the recorded id if the step runs again: others may have drawn ids in the middle of it then."""
        recorded = self.work.run.recorded
        event = None if recorded is None else recorded.next_event(self.work)
        if event is None or event.type != event_type:
            return drawn
        id_ = str(event.payload[_MADE[event_type]]["id"])
        if id_.rstrip("0123456789") != drawn.rstrip("0123456789") or self.ledger.get(id_) is not ABSENT:
            return drawn
        self.ledger.ids.saw_in(event_type, event.payload)
        return id_

    def record(self, type_: str, payload: Any, *, actor: str | None = None, cause: str | None = None,
             frame: str | None = None, id_: str | None = None, when: datetime | None = None,
             keep: Keep = "now") -> Kept:  # fmt: skip
        """Record an event of the current step; `keep` controls when it is recorded, see `Work.emit`."""
        ledger, work = self.ledger, self.work
        id_ = ledger.event_id() if id_ is None else id_
        frozen = freeze_json(payload)
        writes = project(ledger, type_, frozen)
        event = work.emit(type_, frozen, actor or "", keep=keep, id=id_, cause=cause, mark=frame, time=when)
        for key, value in writes:
            work.write((key,), value)
        ledger.record(event, writes)
        ledger.notify(event)
        return event


class SessionActor(Actor):
    """Acts between two steps."""

    def __init__(self, session: Session, ledger: Ledger, actor: str | None, cause: str | None,
                 frame: str | None) -> None:  # fmt: skip
        super().__init__(ledger, actor, cause, frame)
        self.session = session

    def _get_now(self) -> datetime:
        return self.ledger.run.clock.now()

    def record(self, type_: str, payload: Any, *, actor: str | None = None, cause: str | None = None,
             frame: str | None = None, id_: str | None = None, when: datetime | None = None) -> Kept:  # fmt: skip
        """Record an event as an intervention between two steps."""
        ledger = self.ledger.sync()
        id_ = ledger.event_id() if id_ is None else id_
        frozen = freeze_json(payload)
        writes = project(ledger, type_, frozen)
        options = {} if when is None else {"time": when}
        drawn = dict(ledger.ids.counters)
        ledger.emitting = id_
        try:
            self.session.emit(type_, frozen, actor or "", id=id_, cause=cause, mark=frame, **options)
        finally:
            ledger.emitting = None
        ledger.ids.skip_drawn(drawn)  # the intervention may have started a fork whose log did not contain it yet
        event: Kept = ledger.run.history.events[-1]
        ledger.note(event, writes)
        ledger.record_outside()
        ledger.notify(event)
        return event


def run_id_for_new(run: Run) -> str:
    """Return the run id for new objects; in a replay that of the recorded run."""
    recorded = getattr(run.recorded, "recorded", None)  # the replayed step: the first steps of a fork are not its own
    for event in () if recorded is None else recorded.events:
        name = _MADE.get(event.type)
        if name is not None and "approved_by" not in event.payload:  # approved objects were created earlier
            return str(event.payload[name]["provenance"]["run_id"])
    return run.run_id()


def check_own(data: Mapping[str, Any], method: str) -> Mapping[str, Any]:
    """Return data after checking that it has none of the graph's own fields.

    X506: new data has a field that only the graph itself writes.

    Raises:
        ReservedFieldError: X506.
        InvalidArgumentType: X519, it is not a mapping.
    """
    if not isinstance(data, Mapping):
        raise make_type_error(data, f"graph.{method}()", "a mapping of fields")
    if RESERVED in data:
        raise ReservedFieldError(
            Problem("X506", f"the field {RESERVED!r} cannot be set", f"graph.{method}()",
                    "the graph itself writes provenance, so that it can be trusted",
                    f"pass actor=, caused_by= or evidence=, or use another field name than {RESERVED!r}")
        )  # fmt: skip
    return data


def _describe_rejection(patch: Any, reason: str, version: int) -> dict[str, Any]:
    return {"patch_id": patch["id"], "target": patch["target"], "reason": reason, "current_version": version}


__all__ = ["Actor", "SessionActor", "StepActor", "check_own", "run_id_for_new"]
