"""deliveries: the frontier of a reactive run: a queue of events, each with the turns of those that it sets off.

An event is either known at once to set some nodes off, and then their turns are queued, or it is queued itself and
matched when its turn comes: `unfold` puts the turns of those that it sets off in its place. Nothing but the front of
the queue is looked at, so that a long queue costs a step no more than a short one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agentnb.engine.history import CARRIED, LATE, ActRow

if TYPE_CHECKING:
    from agentnb.engine.frames import Activation
    from agentnb.engine.history import Event
    from agentnb.engine.run import Run
    from agentnb.recipe.model import Reactive


def queued(run: Run, events: Sequence[Event]) -> list[int]:
    """Return what stands for these events at the end of the queue."""
    reactive, found = _reactive(run), list[int]()
    act, index = run.tables.act, run.plan.index
    for event in events:
        if not reactive.waits(event):
            continue
        names = reactive.at_once(run, event)
        if names:
            found += [act(ActRow(index[name], 0, 0, event.seq)) for name in names]
        else:
            found.append(act(ActRow(-1, 0, 0, event.seq)))
    return found


def advance(run: Run, act: Activation) -> int:
    """Queue what a step has emitted, let its own turn go, and return where the queue begins then."""
    history, emitted = run.history, act.work.emitted
    if emitted:
        new = queued(run, emitted)
        history.p_act.extend(new)
        history.p_val.extend([CARRIED] * len(new))
    _let_go(run, act)
    here = run.pos
    if history.p_act[here] == act.id:
        at = history.after(here)
    else:  # a person has let another turn come first
        rest = history.queue(here, len(history.p_act))
        rest.remove(act.id)
        at = _written(run, rest)
    over = None if act.event < 0 or act.row.about <= LATE else act.event
    return unfold(run, at, over, emitted)


def unfold(run: Run, at: int, over: int | None = None, emitted: Sequence[Event] = ()) -> int:
    """Match the events at the front of the queue, until a turn stands there; return where the queue begins then.

    Args:
        at: where the queue begins.
        over: the number of the event whose last turn may just have ended.
        emitted: the events of the step that is being committed: they are in no history yet.
    """
    history, reactive, acts = run.history, _reactive(run), run.tables.acts
    while True:
        row = acts[history.p_act[at]] if at < len(history.p_act) else None
        if over is not None and (row is None or row.event != over or row.about <= LATE):
            late = reactive.late(run, _event(run, over, emitted))
            if late:
                return _put_before(run, at, [_number(run, node, event, about) for node, about, event in late])
        if row is None or row.node >= 0:
            return at
        over = row.event
        found = reactive.turns(run, _event(run, over, emitted))
        if found:
            return _put_before(run, history.after(at), [_number(run, name, over, about) for name, about in found])
        at = history.after(at)


def settle(run: Run) -> None:
    """Match the events from outside that stand at the front where the run stands, as part of its last step."""
    history = run.history
    if run.plan.recipe.reactive is None or run.at is not history or run.position != history.tip:
        return
    row = run.position - history.base
    if run.pos >= history.s_pend[row] or run.tables.acts[history.p_act[run.pos]].node >= 0:
        return
    at = unfold(run, run.pos)
    history.s_pend[row] = len(history.p_act)
    history.s_pos[row] = run.pos = at


def append(run: Run, event: Event) -> None:
    """Queue an event from outside, as part of the last step; it is matched when its turn comes."""
    history, new = run.history, queued(run, [event])
    row = run.position - history.base
    history.p_act.extend(new)
    history.p_val.extend([CARRIED] * len(new))
    history.s_pend[row] = len(history.p_act)


def _put_before(run: Run, at: int, turns: Sequence[int]) -> int:
    """Let turns come before what waits from `at` on, which is not written again; return where the queue begins."""
    start = _written(run, turns)
    run.history.put_before(at, start)
    return start


def _written(run: Run, queue: Sequence[int]) -> int:
    """Write turns behind what is there; return where they begin."""
    history = run.history
    start = len(history.p_act)
    history.p_act.extend(queue)
    history.p_val.extend([CARRIED] * len(queue))
    return start


def _number(run: Run, name: str, event: int, about: int) -> int:
    return run.tables.act(ActRow(run.plan.index[name], 0, 0, event, about))


def _let_go(run: Run, act: Activation) -> None:
    """Forget the activation of a turn that is over: a reactive run has as many as steps."""
    if act.event >= 0:
        run.live.pop(act.id, None)
        act.frame.acts.pop(act.row, None)


def _event(run: Run, seq: int, emitted: Sequence[Event]) -> Event:
    found = next((event for event in emitted if event.seq == seq), None) or run.event(seq)
    assert found is not None
    return found


def _reactive(run: Run) -> Reactive:
    reactive = run.plan.recipe.reactive
    assert reactive is not None
    return reactive


__all__ = ["advance", "append", "queued", "settle", "unfold"]
