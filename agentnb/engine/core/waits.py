"""What changes when a run in supersteps has waited for a person: untracked keys are lost, and limits start over.

A run that waits continues from the state in which its superstep began. Untracked keys are not part of it: a node that
has asked runs again without them, and so do the nodes behind a breakpoint of the recipe. Nodes that ran before the
others asked have their writes to such keys lost as well; so only what is written after a superstep's last wait stays.
The same holds for such keys of the input that a node sends to another one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agentnb.board.scopes import DELETED
from agentnb.board.values import ABSENT, FrozenDict, freeze
from agentnb.engine.core.history import PARKED, RESUME, ActivationRow

if TYPE_CHECKING:
    from agentnb.engine.core.frames import Activation, Frame
    from agentnb.engine.core.history import Event
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
    """Hide the untracked keys, also those of the input that was sent to it, from a step that continues after a wait."""
    keys = get_untracked_keys(work.run.plan, work.activation)
    if keys:
        work.scope = work.scope.make_view()
        work.scope.data.update(dict.fromkeys(keys, DELETED))
        if reads_input_from_board(work.activation) and work.event is not None:
            work.scope.data["input"] = get_sent_input(work, work.event)


def reads_input_from_board(activation: Activation) -> bool:
    """Return True if the input that was sent to a node is on its board."""
    return activation.event >= 0 and not activation.purpose and not activation.node.kind.returns_reduced


def get_sent_input(work: Work, event: Event) -> Any:
    """Return the frozen input in an event that was sent to a node of this superstep.

    If the run has waited since it was sent, the untracked keys are missing from it.
    """
    value = event.payload["input"]
    keys = get_untracked_keys(work.run.plan, work.activation)
    if keys and type(value) is FrozenDict and (_has_waited_since(work, event.at) or continues_after_wait(work)):
        return freeze({key: part for key, part in value.items() if key not in keys})
    return value


def _has_waited_since(work: Work, step: int) -> bool:
    """Return True if the superstep before that of a step has waited after this step of it, or one inside, had ended."""
    run, frame, about = work.run, work.activation.frame, work.activation.row.about
    if not may_have_waited(run, work.activation):
        return False
    rows = list[Row]()
    for number, row in run.iter_activations_back(frame.row.opened_at):
        if rows and row.frame == frame.id and row.about == about:
            break
        if rows or (row.frame == frame.id and row.about != about):
            rows.append((number, row))
    if not rows:
        return False
    superstep = _list_supersteps(run, rows[::-1])[-1]
    waits = next((count for ended, count in superstep.waits.items() if ended >= step), superstep.most)
    return waits < superstep.most


def get_untracked_keys(plan: Plan, activation: Activation) -> Sequence[str]:
    """Return the untracked keys of an activation's frame."""
    return plan.untracked.get(activation.frame.row.region, ()) if plan.supersteps else ()


def _stops_between(plan: Plan, ended: Iterable[int], due: Iterable[int]) -> bool:
    """Return True if a session stops between two supersteps, by the breakpoints of the recipe at their nodes."""
    stops = plan.stops
    return any("after" in stops.get(node, ()) for node in ended) or any("before" in stops.get(node, ()) for node in due)


def count_waits_inside(run: Run, rows: Sequence[Row], opening: ActivationRow, end: ActivationRow) -> list[int]:
    """Return how often the inside of a composite node has waited in each superstep and before it, then after the last.

    Nodes of one superstep wait together.

    Args:
        rows: the steps inside, first to last.
        opening: the activation in which the node opened its inside.
        end: the activation in which it continues. Breakpoints after the last superstep count only if the inside has run
            to its end: if no node in it has failed or left it.
    """
    is_complete = end.purpose == RESUME and end.event == opening.event
    supersteps = _list_supersteps(run, rows)
    final = is_complete and bool(supersteps) and _stops_between(run.plan, supersteps[-1].nodes, ())
    return [*_count_in_each(run.plan, supersteps), int(final)]


def _count_in_each(plan: Plan, supersteps: Sequence[_Superstep]) -> Iterator[int]:
    """Yield how often a frame has waited in each superstep and before it."""
    ended = set[int]()
    for superstep in supersteps:
        yield superstep.most + _stops_between(plan, ended, superstep.nodes)
        ended = superstep.nodes


def find_last_wait(run: Run, rows: Sequence[Row], activation: Activation | None = None) -> int:
    """Return the number of the last superstep that has waited; 0 if none has.

    Args:
        rows: the steps of a frame, and of those inside it, first to last.
        activation: if not None, its step is the last of them, and is being committed.
    """
    counts = _count_in_each(run.plan, _list_supersteps(run, rows, activation))
    return max((number for number, count in enumerate(counts, 1) if count), default=0)


def count_supersteps(run: Run, rows: Sequence[Row]) -> int:
    """Return the number of supersteps in these steps of a frame, and of those inside it."""
    return len(_list_supersteps(run, rows))


def may_have_waited(run: Run, activation: Activation) -> bool:
    """Return False if a run has not waited for a person yet; this is quick."""
    calls = (call for history, _ in run.parts() for call in history.calls)
    return bool(run.plan.stops) or _has_asked(activation) or any(call.kind == "human" for call in calls)


def _has_asked(activation: Activation) -> bool:
    """Return True if the step of an activation has asked a person."""
    return any(call.kind == "human" for call in activation.work.calls)


def began_with_stop(run: Run, activation: Activation, *, after_only: bool = False) -> bool:
    """Return True if a breakpoint of the recipe lies between an activation's superstep and the one before it.

    Args:
        after_only: only those on the side `after` count.
    """
    if not run.plan.stops:
        return False
    frame, about = activation.row.frame, activation.row.about
    due = [run.tables.activations[number] for number in run.frontier()]
    now = {row.node for row in due if row.frame == frame and row.about == about and row.purpose != PARKED}
    ended = set[int]()
    for _, row in run.iter_activations_back(activation.frame.row.opened_at):
        if ended and row.frame == frame and row.about == about:
            break
        if row.frame == frame:
            (now if row.about == about else ended).add(row.node)
    return _stops_between(run.plan, ended, () if after_only else now)


def continues_after_wait(work: Work) -> bool:
    """Return True if a step continues after a wait: its own, one inside of it, or a breakpoint before its superstep."""
    run, activation = work.run, work.activation
    return _has_asked(activation) or began_with_stop(run, activation) or any(
        sum(count_waits_inside(run, list_rows(run, inner), run.get_opening_activation(inner), activation.row))
        for inner in (work.frames if activation.purpose else ())
    )  # fmt: skip


def clear_untracked(run: Run, activation: Activation, rows: Sequence[Row], *, ends_frame: bool) -> None:
    """Delete the untracked keys of a superstep that has waited, except for what was written after its last wait.

    Args:
        rows: the steps of the superstep and those inside its composite nodes, first to last; the last one is being
            committed.
        ends_frame: it is the last superstep of its frame. If it ends at a breakpoint, the composite node of the frame
            continues after a wait, and nothing is kept.
    """
    keys, data = get_untracked_keys(run.plan, activation), activation.scope.data
    superstep = _list_supersteps(run, rows, activation)[-1]
    ends_with_stop = ends_frame and bool(activation.frame.parent) and _stops_between(run.plan, superstep.nodes, ())
    if not (superstep.most or ends_with_stop or began_with_stop(run, activation)):
        return
    values = dict.fromkeys(keys, ABSENT)
    for step, count in superstep.waits.items():
        if count == superstep.most and not ends_with_stop:
            values |= {key: new for key, _, new in run.iter_writes(activation.scope, step) if key in values}
    for key, value in values.items():
        if data.get(key, ABSENT) is not value:
            run.write(activation.scope, (key,), value)


def list_rows(run: Run, frame: Frame, about: int | None = None) -> list[Row]:
    """Return the steps of a frame and of those inside it, first to last: all, or those of the last superstep."""
    rows = []
    for step, row in run.iter_activations_back(frame.row.opened_at):
        if about is not None and row.frame == frame.id and row.about != about:
            break
        rows.append((step, row))
    return rows[::-1]


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
    opening: ActivationRow | None = None
    for step, row in rows:
        if row.frame != frame:
            inside.append((step, row))
            continue
        if not supersteps or supersteps[-1].about != row.about:
            supersteps.append(_Superstep(row.about))
        supersteps[-1].nodes.add(row.node)
        supersteps[-1].waits[step] = waits.get(step, 0) + (
            sum(count_waits_inside(run, inside, opening, row)) if opening else 0
        )
        opening, inside = row, []
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
    "began_with_stop",
    "clear_untracked",
    "continues_after_wait",
    "count_supersteps",
    "count_waits_inside",
    "find_last_wait",
    "get_sent_input",
    "get_untracked_keys",
    "hide_untracked",
    "list_rows",
    "may_have_waited",
    "reads_input_from_board",
]
