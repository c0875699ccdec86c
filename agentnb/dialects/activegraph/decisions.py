"""decisions: what behaviours ask leave for, and what people decide: approve, deny."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentnb.dialects.activegraph.approvals import Approvals
from agentnb.dialects.activegraph.errors import ApprovalNotFoundError
from agentnb.dialects.activegraph.objects import PendingApproval, approval_of
from agentnb.errors import Problem

if TYPE_CHECKING:
    from agentnb.dialects.activegraph.graph import Graph
    from agentnb.dialects.activegraph.party import Party


class Decisions:
    """The part of a Runtime that people decide with."""

    graph: Graph
    party: Party
    session: Any

    def pending_approvals(self) -> list[PendingApproval]:
        """Return what waits for a decision, in the order in which it was asked for."""
        ledger = self.graph.ledger
        return [approval_of(ledger.get(id_)) for id_ in ledger.approvals]

    def approve(self, approval_id: str, approved_by: str | None = None) -> str:
        """Create what was asked for, and return the id of the object.

        Raises:
            ApprovalNotFoundError: X513, nothing of that id waits.
        """
        self._asked(approval_id)
        return Approvals(self.party).grant(self.session, approval_id, approved_by)

    def deny(self, approval_id: str, reason: str = "", denied_by: str | None = None) -> None:
        """Refuse what was asked for; a behaviour may listen to `approval.denied`.

        Raises:
            ApprovalNotFoundError: X513, nothing of that id waits.
        """
        self._asked(approval_id)
        Approvals(self.party).refuse(self.session, approval_id, reason, denied_by)

    def _asked(self, approval_id: str) -> PendingApproval:
        """Return an approval that waits.

        X513: what is decided is not waited for: it was decided before, or never asked.
        """
        found = next((each for each in self.pending_approvals() if each.id == approval_id), None)
        if found is None:
            waiting = ", ".join(each.id for each in self.pending_approvals()) or "none"
            raise ApprovalNotFoundError(
                Problem("X513", f"no approval {approval_id!r} waits", "Runtime", f"those that wait are: {waiting}",
                        "look at runtime.pending_approvals()")
            )  # fmt: skip
        return found


__all__ = ["Decisions"]
