"""The details pane: data on the selected node or step, sent on request when the pane is opened.

All data is plain JSON, truncated and masked. A truncated cell is requested by name: see `whole`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from agentnb.session.parts import parts_of
from agentnb.ui.details.cells import Cells, line
from agentnb.ui.details.node import node_details
from agentnb.ui.details.step import step_details

if TYPE_CHECKING:
    from agentnb.session import Session
    from agentnb.trace.row_index import StepIndex

_EVENTS: Final = 20  # recent events to select from


def of_node(session: Session, name: Any, cells: Cells | None = None) -> dict[str, Any]:
    """Return a node's definition and its last step up to the current one."""
    return _details(session, str(name), last_of(session, str(name)), cells or Cells())


def of_step(session: Session, number: Any, cells: Cells | None = None) -> dict[str, Any]:
    """Return what a step did and the definition of its node; empty if the step does not exist."""
    if isinstance(number, bool) or not isinstance(number, int) or not 0 < number <= len(session.trace):
        return {"node": None, "step": None}
    return _details(session, session.trace.steps[number - 1].node_id, number, cells or Cells())


def whole(session: Session, which: Any) -> dict[str, Any]:
    """Return one cell in full; `which` is [node or step, its id, the cell's `at`]. Empty if it no longer exists."""
    kind, name, at = which
    cells = Cells(str(at))
    (of_node if kind == "node" else of_step)(session, name, cells)
    return cells.found


def last_of(session: Session, name: str) -> int | None:
    """Return the last step of a node up to the current step; None if it has not run."""
    return _before(session.trace.reading(), name, session.position + 1)


def _details(session: Session, name: str, number: int | None, cells: Cells) -> dict[str, Any]:
    reading = session.trace.reading()
    found: dict[str, Any] = {"node": node_details(session, name, cells), "step": None, "before": None, "after": None}
    found["runs"] = parts_of(session).pictures.view().visited.get(name, 0)
    if number is not None:
        found["step"] = step_details(session, number, cells)
        found["before"], found["after"] = _before(reading, name, number), _after(reading, name, number)
    if found["node"].get("listens"):
        found["events"] = [[line(event.id), line(event.type)] for event in session.events[-_EVENTS:]]
    return found


def _activations_of(reading: StepIndex, name: str) -> set[int]:
    """Return the numbers of the activations of a node."""
    return {number for number, act in enumerate(reading.tables.acts) if reading.nodes[act.node].id == name}


def _before(reading: StepIndex, name: str, number: int) -> int | None:
    """Return the last step of a node before a step."""
    turns = _activations_of(reading, name)
    for history, last in reversed(reading.parts()):
        acts = history.s_act
        for row in range(min(last, number - 1 - history.base), 0, -1):
            if acts[row] in turns:
                return history.base + row
    return None


def _after(reading: StepIndex, name: str, number: int) -> int | None:
    """Return the first step of a node after a step."""
    turns = _activations_of(reading, name)
    for history, last in reading.parts():
        acts = history.s_act
        for row in range(max(1, number + 1 - history.base), last + 1):
            if acts[row] in turns:
                return history.base + row
    return None
