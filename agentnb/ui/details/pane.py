"""The details pane: data on the selected node or step, sent on request when the pane is opened.

All data is plain JSON, truncated and masked. A truncated cell is requested by name: see `whole`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from agentnb.session.parts import get_parts
from agentnb.ui.details.cells import Cells, to_line
from agentnb.ui.details.node import describe_node
from agentnb.ui.details.step import describe_step

if TYPE_CHECKING:
    from agentnb.session import Session
    from agentnb.trace.row_index import StepIndex

_EVENTS: Final = 20  # recent events to select from


def describe_node_pane(session: Session, name: Any, cells: Cells | None = None) -> dict[str, Any]:
    """Return a node's definition and its last step up to the current one."""
    return _describe(session, str(name), find_last_step(session, str(name)), cells or Cells())


def describe_step_pane(session: Session, number: Any, cells: Cells | None = None) -> dict[str, Any]:
    """Return what a step did and the definition of its node; empty if the step does not exist."""
    if isinstance(number, bool) or not isinstance(number, int) or not 0 < number <= len(session.trace):
        return {"node": None, "step": None}
    return _describe(session, session.trace.steps[number - 1].node_id, number, cells or Cells())


def get_whole_cell(session: Session, request: Any) -> dict[str, Any]:
    """Return one cell in full; `request` is [node or step, its id, the cell's `at`]. Empty if it no longer exists."""
    kind, name, at = request
    cells = Cells(str(at))
    (describe_node_pane if kind == "node" else describe_step_pane)(session, name, cells)
    return cells.wanted_cell


def find_last_step(session: Session, name: str) -> int | None:
    """Return the last step of a node up to the current step; None if it has not run."""
    return _find_step_before(session.trace.reading(), name, session.position + 1)


def _describe(session: Session, name: str, number: int | None, cells: Cells) -> dict[str, Any]:
    reading = session.trace.reading()
    details: dict[str, Any] = {"node": describe_node(session, name, cells), "step": None, "before": None, "after": None}
    details["runs"] = get_parts(session).pictures.view().visited.get(name, 0)
    if number is not None:
        details["step"] = describe_step(session, number, cells)
        details["before"], details["after"] = (
            _find_step_before(reading, name, number),
            _find_step_after(reading, name, number),
        )
    if details["node"].get("listens"):
        details["events"] = [[to_line(event.id), to_line(event.type)] for event in session.events[-_EVENTS:]]
    return details


def _find_activations(reading: StepIndex, name: str) -> set[int]:
    """Return the numbers of the activations of a node."""
    return {
        number
        for number, activation in enumerate(reading.tables.activations)
        if reading.nodes[activation.node].id == name
    }


def _find_step_before(reading: StepIndex, name: str, number: int) -> int | None:
    """Return the last step of a node before a step."""
    turns = _find_activations(reading, name)
    for history, last in reversed(reading.parts()):
        activations = history.step_activations
        for row in range(min(last, number - 1 - history.base), 0, -1):
            if activations[row] in turns:
                return history.base + row
    return None


def _find_step_after(reading: StepIndex, name: str, number: int) -> int | None:
    """Return the first step of a node after a step."""
    turns = _find_activations(reading, name)
    for history, last in reading.parts():
        activations = history.step_activations
        for row in range(max(1, number + 1 - history.base), last + 1):
            if activations[row] in turns:
                return history.base + row
    return None
