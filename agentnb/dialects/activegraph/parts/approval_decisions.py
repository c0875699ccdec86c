"""Decisions of people about pending approvals: approve, deny."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentnb.dialects.activegraph.errors import ApprovalNotFoundError
from agentnb.dialects.activegraph.parts.approvals import Approvals
from agentnb.dialects.activegraph.parts.objects import PendingApproval, to_approval
from agentnb.errors import Problem

if TYPE_CHECKING:
    from agentnb.dialects.activegraph.parts.graph import Graph
    from agentnb.dialects.activegraph.parts.run_config import RuntimeConfig


class ApprovalMethods:
    """The approval methods of a Runtime."""

    graph: Graph
    party: RuntimeConfig
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
        return Approvals(self.party).grant(self.session, approval_id, approved_by)

    def deny(self, approval_id: str, reason: str = "", denied_by: str | None = None) -> None:
        """Deny a request; a behavior may listen to `approval.denied`.

        Raises:
            ApprovalNotFoundError: X513, no pending approval has that id.
        """
        self._find_pending(approval_id)
        Approvals(self.party).refuse(self.session, approval_id, reason, denied_by)

    def _find_pending(self, approval_id: str) -> PendingApproval:
        """Return a pending approval.

        X513: an approval is not pending: it was decided before, or never requested.
        """
        found = next((each for each in self.pending_approvals() if each.id == approval_id), None)
        if found is None:
            waiting = ", ".join(each.id for each in self.pending_approvals()) or "none"
            raise ApprovalNotFoundError(
                Problem("X513", f"no approval {approval_id!r} is pending", "Runtime", f"pending approvals: {waiting}",
                        "look at runtime.pending_approvals()")
            )  # fmt: skip
        return found


__all__ = ["ApprovalMethods"]
