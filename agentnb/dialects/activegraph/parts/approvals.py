"""Pending approvals of a graph, for objects and patches, and the decisions about them.

Each decision is recorded as events, whether a Runtime, a Session or the cockpit makes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from agentnb.board.values import thaw
from agentnb.dialects.activegraph.errors import ApprovalNotFoundError
from agentnb.dialects.activegraph.parts.graph_mutations import SessionActor, check_own
from agentnb.dialects.activegraph.parts.ledger import Ledger, get_ledger
from agentnb.dialects.activegraph.parts.objects import PendingApproval, to_approval
from agentnb.dialects.activegraph.parts.run_config import RuntimeConfig
from agentnb.engine.core.history import Event, History
from agentnb.errors import ExecutionError, Problem
from agentnb.recipe.model import ApprovalRequest
from agentnb.session.state import get_state
from agentnb.text import safe_repr

if TYPE_CHECKING:
    from agentnb.dialects.activegraph.parts.graph import Graph
    from agentnb.engine.core.run import Run
    from agentnb.session import Session

DEFAULT_ACTOR = "user"
_PROPOSALS: Final = frozenset({"approval.proposed", "patch.proposed"})
_looked: Final[WeakKeyDictionary[History, tuple[int, bool]]] = WeakKeyDictionary()


def _has_proposals(run: Run) -> bool:
    """Return True if anything was ever proposed in the histories of a run. Each event is read only once."""
    found = False
    for history in run.chain:
        count, known = _looked.get(history, (0, False))
        known = known or any(event.type in _PROPOSALS for event in history.events[count:])
        _looked[history] = (len(history.events), known)
        found = found or known
    return found


class Approvals:
    """The pending objects and patches of the runs that share one configuration."""

    def __init__(self, config: RuntimeConfig) -> None:
        self.config = config

    # -- pending requests ----------------------------------------------------------------------------------------

    def waiting(self, run: Run) -> Sequence[ApprovalRequest]:
        """Return the pending approvals at the current step.

        A request of a step in flight becomes pending when the step has ended.
        """
        # nearly always; otherwise the ledger may have to be rebuilt
        if not run.pending_steps and not _has_proposals(run):
            return ()
        ledger = get_ledger(run).sync()
        data = run.root.scope.data
        ids = {id_ for id_ in (*ledger.approvals, *ledger.proposed) if id_ in data}
        if not ids:
            return ()
        requests = _find_requests(ledger, ids)
        return [_leave(id_, thaw(data[id_]), _find_requester(run, requests.get(id_)), data)
                for id_ in sorted(ids, key=lambda id_: requests[id_].seq if id_ in requests else -1)]  # fmt: skip

    # -- decisions -----------------------------------------------------------------------------------------------

    def decide(self, session: Session, approval: ApprovalRequest, verdict: Mapping[str, Any]) -> None:
        """Approve or deny a request.

        Raises:
            PackSchemaViolation: R323, an object does not fit its pack's type; then nothing is decided.
        """
        by, reason = verdict["by"], verdict["reason"]
        if approval.arguments["what"] == "object":
            if verdict["approved"]:
                self.grant(session, approval.id, by)
            else:
                self.refuse(session, approval.id, reason, by)
            return
        hand = self._get_actor(session, approval.id)
        if verdict["approved"]:
            hand.apply_patch(approval.id, by or DEFAULT_ACTOR)
        else:
            hand.actor = by or DEFAULT_ACTOR
            hand.reject_patch(approval.id, reason)

    def grant(self, session: Session, approval_id: str, by: str | None) -> str:
        """Create a requested object, and return its id."""
        hand = self._get_actor(session, approval_id)
        request = thaw(hand.ledger.get(approval_id))
        type_, data = request["object_type"], request["data"]
        data = hand.validate("object", type_, data)
        payload = {"approval_id": approval_id, "object_type": type_, "approved_by": by or DEFAULT_ACTOR}
        granted = hand.record("approval.granted", payload, actor="runtime", cause=hand.cause, frame=hand.frame)
        hand.actor, hand.cause = by or DEFAULT_ACTOR, granted.id
        return str(hand.add_object(type_, data)["id"])

    def refuse(self, session: Session, approval_id: str, reason: str, by: str | None) -> None:
        """Deny the creation of an object."""
        hand = self._get_actor(session, approval_id)
        payload = {"approval_id": approval_id, "object_type": hand.ledger.get(approval_id)["object_type"],
                "denied_by": by or DEFAULT_ACTOR, "reason": reason}  # fmt: skip
        hand.record("approval.denied", payload, actor="runtime", cause=hand.cause, frame=hand.frame)

    def change(self, session: Session, approval: ApprovalRequest, arguments: Mapping[str, Any]) -> None:
        """Replace the data, or the value of a patch, in a request for approval; recorded as an event.

        Raises:
            ExecutionError: X126, another part of it is changed, or the data is not a mapping.
            ReservedFieldError: X506, the data has a field of the graph's own.
        """
        what, (word,) = approval.arguments["what"], approval.free
        _check_changed(approval, word, arguments)
        check_own(arguments[word], "change")
        hand = self._get_actor(session, approval.id)
        if what == "patch":
            patch = {**thaw(hand.ledger.get(approval.id)), "value": arguments[word]}
            payload = {"patch": patch, "target": patch["target"], "changed_by": DEFAULT_ACTOR}
        else:
            payload = {
                "approval_id": approval.id,
                "object_type": approval.name,
                "data": arguments[word],
                "changed_by": DEFAULT_ACTOR,
            }
        type_ = "patch.changed" if what == "patch" else "approval.changed"
        hand.record(type_, payload, actor=DEFAULT_ACTOR, cause=hand.cause, frame=hand.frame)

    def _get_actor(self, session: Session, id_: str) -> SessionActor:
        """Return the actor of a decision, caused by the requesting event."""
        ledger = get_ledger(get_state(session).run).sync()
        request = _find_requests(ledger, {id_}).get(id_)
        hand = SessionActor(
            session, ledger, DEFAULT_ACTOR, None if request is None else request.id, self.config.frame_id
        )
        hand.checks = self.config.checks
        return hand


def _find_requests(ledger: Ledger, ids: set[str]) -> dict[str, Event]:
    """Return the requesting events by the ids of what they request."""
    requests: dict[str, Event] = {}
    for event in reversed(ledger.events()):
        if event.type == "approval.proposed":
            id_ = str(event.payload["approval_id"])
        elif event.type == "patch.proposed":
            id_ = str(event.payload["patch"]["id"])
        else:
            continue
        if id_ in ids:
            requests[id_] = event
            if len(requests) == len(ids):
                break
    return requests


def _find_requester(run: Run, event: Event | None) -> str:
    """Return the behavior that requested it or, if there is none, the actor."""
    if event is None:
        return DEFAULT_ACTOR
    if event.step is None:
        return event.actor or DEFAULT_ACTOR
    history = next(history for history in reversed(run.chain) if history.base < event.step)
    return run.get_node_id(history.step_activations[event.step - history.base])


def _leave(id_: str, request: Mapping[str, Any], node: str, board: Mapping[str, Any]) -> ApprovalRequest:
    if "approval_id" in request:
        type_ = request["object_type"]
        question = f"May this {safe_repr(type_)} be created?"
        arguments = {"what": "object", "object_type": type_, "data": request["data"],
                     "reason": request.get("reason") or "", "pack": request.get("pack") or ""}  # fmt: skip
        return ApprovalRequest(
            id_, node, type_, {"prompt": _format_prompt(question, request.get("reason")), **arguments}, ("data",)
        )
    action = "be replaced" if request["op"] == "replace" else "be changed"
    arguments = {"what": "patch", "target": request["target"], "op": request["op"], "value": request["value"],
                 "evidence": request.get("evidence") or []}  # fmt: skip
    question = f"May the data of {safe_repr(request['target'])} {action}?"
    return ApprovalRequest(
        id_,
        node,
        request["target"],
        {"prompt": _format_prompt(question, request.get("rationale")), **arguments},
        ("value",),
        {"value": _get_replaced_data(request, board)},
    )


def _get_replaced_data(patch: Mapping[str, Any], board: Mapping[str, Any]) -> dict[str, Any]:
    """Return the current data that a patch would replace: all data of an object, or the fields that it changes."""
    data = thaw(board.get(patch["target"].removeprefix("object:"), {})).get("data") or {}
    return {name: value for name, value in data.items() if patch["op"] == "replace" or name in patch["value"]}


def _format_prompt(question: str, why: str | None) -> str:
    return f"{question} {why}" if why else question


def _check_changed(approval: ApprovalRequest, word: str, arguments: Mapping[str, Any]) -> None:
    """X126: a change of a request for approval affects more than its data, or the data is not valid.

    Raises:
        ExecutionError: X126.
    """
    other = [name for name, value in arguments.items() if name != word and approval.arguments.get(name) != value]
    if other or not isinstance(arguments.get(word), Mapping):
        what = f"{other[0]!r} cannot be changed" if other else f"{word!r} is not a mapping of fields"
        raise ExecutionError(
            Problem("X126", f"{what} in an approval of {approval.name!r}", f"{approval.id!r} of {approval.node!r}",
                    f"a person decides on this {approval.arguments['what']}: only its {word!r} may be changed",
                    f"change only {word!r}, or deny({approval.id!r}) and let the agent request it again")
        )  # fmt: skip


class ApprovalMethods:
    """The approval methods of a Runtime."""

    graph: Graph
    config: RuntimeConfig
    session: Any

    def pending_approvals(self) -> list[PendingApproval]:
        """Return the pending approvals, in the order of the requests."""
        ledger = self.graph.ledger
        return [to_approval(ledger.get(id_)) for id_ in ledger.approvals]

    def approve(self, approval_id: str, approved_by: str | None = None) -> str:
        """Approve a request: create the object, and return its id.

        Raises:
            ApprovalNotFoundError: X513, no pending approval has that id.
        """
        self._find_pending(approval_id)
        return Approvals(self.config).grant(self.session, approval_id, approved_by)

    def deny(self, approval_id: str, reason: str = "", denied_by: str | None = None) -> None:
        """Deny a request; a behavior may listen to `approval.denied`.

        Raises:
            ApprovalNotFoundError: X513, no pending approval has that id.
        """
        self._find_pending(approval_id)
        Approvals(self.config).refuse(self.session, approval_id, reason, denied_by)

    def _find_pending(self, approval_id: str) -> PendingApproval:
        """Return a pending approval.

        X513: an approval is not pending: it was already decided, or never requested.
        """
        approval = next((each for each in self.pending_approvals() if each.id == approval_id), None)
        if approval is None:
            waiting = ", ".join(each.id for each in self.pending_approvals()) or "none"
            raise ApprovalNotFoundError(
                Problem("X513", f"no approval {approval_id!r} is pending", "Runtime", f"pending approvals: {waiting}",
                        "see runtime.pending_approvals()")
            )  # fmt: skip
        return approval


__all__ = ["ApprovalMethods", "Approvals"]
