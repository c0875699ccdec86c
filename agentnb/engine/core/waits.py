"""What changes when a run in supersteps has waited for a person: untracked keys are lost, and limits start over.

A run that waits continues from the state in which its superstep began. Untracked keys are not part of it: a node that
has asked runs again without them, and so do the nodes behind a breakpoint of the recipe. Nodes that ran before the
others asked have their writes to such keys lost as well; so only what is written after a superstep's last wait stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agentnb.board.scopes import DELETED, Scope
from agentnb.board.values import ABSENT
from agentnb.engine.core.history import ActivationRow

if TYPE_CHECKING:
    from agentnb.engine.core.frames import Activation
    from agentnb.engine.core.plan import Plan
    from agentnb.engine.core.run import Run
    from agentnb.engine.core.work import Work

Row = tuple[int, ActivationRow]


@dataclass
class _Superstep:
    """A superstep of one frame: its nodes, and how often each of its steps has waited for a person."""

    about: int
    nodes: set[int] = field(default_factory=set)
    waits: dict[int, int] = field(default_factory=dict)

    @property
    def most(self) -> int:
        return max(self.waits.values())


def hide_untracked(work: Work) -> None:
    """Hide the untracked keys from a step that continues after a wait."""
    keys = get_untracked_keys(work.run.plan, work.activation)
    if keys:
        scope = work.scope
        work.scope = Scope(-1, scope.name, scope)
        work.scope.data.update(dict.fromkeys(keys, DELETED))


def get_untracked_keys(plan: Plan, activation: Activation) -> Sequence[str]:
    """Return the untracked keys of an activation's frame."""
    return plan.untracked.get(activation.frame.row.region, ()) if plan.supersteps else ()


def stops_between(plan: Plan, ended: Iterable[int], due: Iterable[int]) -> bool:
    """Return True if a session stops between two supersteps, by the breakpoints of the recipe at their nodes."""
    stops = plan.stops
    return any("after" in stops.get(node, ()) for node in ended) or any("before" in stops.get(node, ()) for node in due)


def count_waits(run: Run, rows: Sequence[Row]) -> int:
    """Return how often the inside of a composite node has waited, where nodes of one superstep wait together."""
    count, ended = 0, set[int]()
    for superstep in _list_supersteps(run, rows):
        count += superstep.most + stops_between(run.plan, ended, superstep.nodes)
        ended = superstep.nodes
    return count + stops_between(run.plan, ended, ())


def find_last_wait(run: Run, rows: Sequence[Row], activation: Activation | None = None) -> int:
    """Return the number of the last superstep that has waited; 0 if none has.

    Args:
        rows: the steps of a frame, and of those inside it, first to last.
        activation: if not None, its step is the last of them, and is being committed.
    """
    last, ended = 0, set[int]()
    for number, superstep in enumerate(_list_supersteps(run, rows, activation), 1):
        if superstep.most or stops_between(run.plan, ended, superstep.nodes):
            last = number
        ended = superstep.nodes
    return last


def count_supersteps(run: Run, rows: Sequence[Row]) -> int:
    """Return the number of supersteps in these steps of a frame, and of those inside it."""
    return len(_list_supersteps(run, rows))


def may_have_waited(run: Run, activation: Activation) -> bool:
    """Return False if a run has not waited for a person yet; this is quick."""
    calls = (call for history, _ in run.parts() for call in history.calls)
    return bool(run.plan.stops) or has_asked(activation) or any(call.kind == "human" for call in calls)


def has_asked(activation: Activation) -> bool:
    """Return True if the step of an activation has asked a person."""
    return any(call.kind == "human" for call in activation.work.calls)


def clear_untracked(
    run: Run, activation: Activation, rows: Sequence[Row], *, began_with_stop: bool, ends_frame: bool
) -> None:
    """Delete the untracked keys of a superstep that has waited, except for what was written after its last wait.

    Args:
        rows: the steps of the superstep and those inside its composite nodes, first to last; the last one is being
            committed.
        began_with_stop: a breakpoint of the recipe lies before the superstep.
        ends_frame: it is the last superstep of its frame. If it ends at a breakpoint, the composite node of the frame
            continues after a wait, and nothing is kept.
    """
    keys, data = get_untracked_keys(run.plan, activation), activation.scope.data
    superstep = _list_supersteps(run, rows, activation)[-1]
    ends_with_stop = ends_frame and activation.frame.parent is not None and stops_between(run.plan, superstep.nodes, ())
    if not (superstep.most or began_with_stop or ends_with_stop):
        return
    values = dict.fromkeys(keys, ABSENT)
    for step, count in superstep.waits.items():
        if count == superstep.most and not ends_with_stop:
            values |= {key: new for key, _, new in run.iter_writes(activation.scope, step) if key in values}
    for key, value in values.items():
        if data.get(key, ABSENT) is not value:
            run.write(activation.scope, (key,), value)


def _list_supersteps(run: Run, rows: Sequence[Row], activation: Activation | None = None) -> list[_Superstep]:
    """Return the supersteps of a frame whose steps, and those inside its composite nodes, are `rows`.

    The step of `activation` is the last of them, and is being committed.
    """
    supersteps: list[_Superstep] = []
    if not rows:
        return supersteps
    frame, inside = rows[0][1].frame, list[Row]()
    waits = _count_questions(run, rows[0][0])
    if activation is not None:
        waits[rows[-1][0]] = sum(call.kind == "human" for call in activation.work.calls)
    for step, row in rows:
        if row.frame != frame:
            inside.append((step, row))
            continue
        if not supersteps or supersteps[-1].about != row.about:
            supersteps.append(_Superstep(row.about))
        supersteps[-1].nodes.add(row.node)
        supersteps[-1].waits[step] = waits.get(step, 0) + count_waits(run, inside)
        inside = []
    return supersteps


def _count_questions(run: Run, first: int) -> dict[int, int]:
    """Return how many questions each step from `first` on has asked."""
    counts: dict[int, int] = {}
    for history, _ in reversed(run.parts()):
        for call in reversed(history.calls):
            if call.step < first:
                return counts
            if call.kind == "human":
                counts[call.step] = counts.get(call.step, 0) + 1
    return counts


__all__ = [
    "Row",
    "clear_untracked",
    "count_supersteps",
    "count_waits",
    "find_last_wait",
    "get_untracked_keys",
    "has_asked",
    "hide_untracked",
    "may_have_waited",
    "stops_between",
]
