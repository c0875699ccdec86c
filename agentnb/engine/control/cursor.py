"""The cursor: the position of a run as an immutable value: what is next and why, and the open frames."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from agentnb.engine.core.history import CARRIED, FAIL, RESUME
from agentnb.text import safe_repr

if TYPE_CHECKING:
    from agentnb.engine.core.frames import Activation, Frame
    from agentnb.engine.core.history import History
    from agentnb.engine.core.run import Run

Turn = Literal["start", "resume", "fail", "event"]
LOOK_BACK = 2_000


@dataclass(frozen=True, slots=True)
class FrontierEntry:
    """One entry of the frontier: a scheduled node, its frame, and the reason.

    `phase` is `start`, `resume` (the inside of the node has ended), `fail` (its inside has failed) or `event` (not yet
    matched to nodes).
    """

    node: str
    frame: int
    depth: int
    why: str
    phase: Turn = "start"
    branch: int | None = None

    def __repr__(self) -> str:
        """Return one line: the node and why it is next."""
        branch = "" if self.branch is None else f", branch {self.branch}"
        return f"<next {safe_repr(self.node, 200)}{branch}: {self.why}>"


@dataclass(frozen=True, slots=True)
class OpenFrame:
    """One open frame: the node that opened it (None for the root), its region, and the iteration of its body."""

    id: int
    node: str | None
    region: str
    depth: int
    iteration: int
    scope: str
    branch: int | None = None

    def __repr__(self) -> str:
        """Return one line: the region, the node that opened it, and how often its body has started."""
        opened = "" if self.node is None else f" of {safe_repr(self.node, 200)}"
        branch = "" if self.branch is None else f", branch {self.branch}"
        suffix = "" if self.iteration < 2 else f", iteration {self.iteration}"
        return f"<frame {safe_repr(self.region, 200)}{opened}{branch}{suffix}>"


@dataclass(frozen=True, slots=True)
class Cursor:
    """The position of a run: the last step, the next activations (front first), and the open frames."""

    position: int
    frontier: tuple[FrontierEntry, ...]
    frames: tuple[OpenFrame, ...]


def get_cursor(run: Run) -> Cursor:
    """Return the position of a run."""
    return Cursor(
        run.position, get_frontier(run), tuple(map(_open_frame, run.frames.values(), [run] * len(run.frames)))
    )


def get_frontier(run: Run) -> tuple[FrontierEntry, ...]:
    """Return the next activations, front first, each with the reason."""
    at = run.current_history
    rows = at.queue_rows(run.queue_start, at.push_ends[run.position - at.base], run.position)
    entries = [_describe_next(run, at.push_activations[row], row) for row in rows]
    deliveries, matched = preview_deliveries(run)
    first = []
    for name, number in deliveries:
        event = run.get_event(number)
        first.append(FrontierEntry(name, 0, 0, "" if event is None else f"event {event.id} of type {event.type!r}"))
    return (*first, *entries[matched:])


def preview_deliveries(run: Run) -> tuple[list[tuple[str, int]], int]:
    """Return what `match_events` would put at the front of the queue, and how many of its events it would match.

    A delivery is (node id, number of its event). Nothing changes: whether an event activates a node is decided when it
    is delivered.
    """
    reactive, matched = run.plan.recipe.reactive, 0
    if reactive is None:
        return [], 0
    for number in run.frontier():
        row = run.tables.activations[number]
        if row.node >= 0:
            break
        matched += 1
        event = run.get_event(row.event)
        deliveries = [(name, row.event) for name, _ in reactive.list_deliveries(run, event)]
        deliveries = deliveries or [(name, own) for name, _, own in reactive.list_delayed(run, event)]
        if deliveries:
            return deliveries, matched
    return [], matched


def get_stack(run: Run) -> tuple[OpenFrame, ...]:
    """Return the frames around the next activation, outermost first."""
    queue = run.frontier()
    frame: Frame | None = run.frames[run.tables.activations[queue[0]].frame] if queue else run.root
    stack = []
    while frame is not None:
        stack.append(_open_frame(frame, run))
        frame = frame.parent
    return tuple(reversed(stack))


def _open_frame(frame: Frame, run: Run) -> OpenFrame:
    row = frame.row
    owner = run.plan.nodes[row.owner].id if row.owner >= 0 else None
    branch = row.branch if row.branch >= 0 else None
    return OpenFrame(frame.id, owner, row.region, frame.depth, frame.iteration, frame.scope.name, branch)


def _describe_next(run: Run, number: int, push: int) -> FrontierEntry:
    row = run.tables.activations[number]
    if row.node < 0:
        event = run.get_event(row.event)
        name = event.type if event else "an event"
        return FrontierEntry(name, 0, 0, f"event {name!r} is not matched yet", "event")
    activation = run.find_activation(number)
    turn: Turn = "resume" if row.purpose == RESUME else "fail" if row.purpose == FAIL else "start"
    branch = activation.frame.row.branch if activation.frame.row.branch >= 0 else None
    return FrontierEntry(
        activation.node.id,
        activation.frame.id,
        activation.frame.depth,
        _explain_reason(run, activation, push, turn),
        turn,
        branch,
    )


def _explain_reason(run: Run, activation: Activation, push: int, turn: Turn) -> str:
    if turn == "resume":
        return "its inside has ended"
    if turn == "fail":
        return "its inside has failed"
    event = run.get_event(activation.event)
    if event is not None:
        return f"event {event.id} of type {event.type!r}"
    origin = _find_push(run, activation.id, push)
    if origin is None:
        entry = activation.node.id in _find_entries(run, activation)
        inside = "the recipe" if activation.frame.parent is None else repr(activation.frame.row.region)
        return f"entry of {inside}" if entry else "it waits in the queue"
    source, value = origin
    reason = "" if value is None or value is True else f", as {safe_repr(value)}"
    return f"edge {source!r} -> {activation.node.id!r}{reason}"


def _find_entries(run: Run, activation: Activation) -> list[str]:
    return [run.plan.nodes[number].id for number in run.plan.entries.get(activation.frame.row.region, ())]


def _find_push(run: Run, number: int, at: int) -> tuple[str, Any] | None:
    """Return the node whose step pushed an activation, and the value of the condition. Moved entries are skipped.

    The first entries of a branch were pushed in the parent's history.
    """
    history: History | None = run.current_history
    while history is not None:
        for row in range(at, max(at - LOOK_BACK, -1), -1):
            if history.push_activations[row] != number or history.push_values[row] is CARRIED:
                continue
            step = bisect_right(history.push_ends, row)
            if step in (0, len(history.step_activations)):
                return None
            return run.get_node_id(history.step_activations[step]), history.push_values[row]
        above = history.parent
        at = -1 if above is None else above.push_ends[history.base - above.base] - 1
        history = above
    return None
