"""people: what a person does to a run, recorded as acts: edits, another next node, a step skipped.

An act made where the history ends belongs to its last step. Made in the past, or where a fork has begun, it starts a
branch of its own, so that what others rely on never changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentnb.board.places import changed
from agentnb.board.scopes import Scope
from agentnb.board.values import ABSENT, freeze
from agentnb.engine import frontier
from agentnb.engine.events import enqueue
from agentnb.engine.flight import under_way
from agentnb.engine.frames import Activation, Frame
from agentnb.engine.history import CARRIED, LEAVE, SKIPPED, Act, Event
from agentnb.engine.numbering import numbered
from agentnb.engine.run import Run
from agentnb.engine.step import finish
from agentnb.engine.travel import open_tip, repair
from agentnb.engine.work import op_of
from agentnb.engine.writing import closed, put
from agentnb.errors import ExecutionError, Problem
from agentnb.expressions.paths import path_text, resolve_path


def here(run: Run) -> Scope:
    """Return the scope where the run stands: that of the next activation, or the root's."""
    if len(run.frames) == 1:
        return run.root.scope
    head = current(run)
    return run.root.scope if head is None else head.scope


def current(run: Run) -> Activation | None:
    """Return the next activation; None at the end."""
    at = run.at
    if run.pos >= at.s_pend[run.position - at.base]:
        return None
    number = at.p_act[run.pos]
    return run.activation(number) if run.tables.acts[number].node >= 0 else None


def note(run: Run, act: str, target: str, old: Any = ABSENT, new: Any = ABSENT, actor: str = "user") -> None:
    """Record an act of a person where the run stands; what it was done with is kept as it is now."""
    run.history.people.append(Act(run.position, act, target, freeze(old), freeze(new), actor, run.clock.seen()))


def note_held(run: Run) -> None:
    """Record which steps are under way while a person does something, and how far: the rest of them comes after it."""
    _keep(run, _held(run))


def _held(run: Run) -> list[Act]:
    return [under_way(run, flight, "held", run.position) for flight in run.flights.values()]


def _keep(run: Run, acts: list[Act]) -> None:
    run.history.people += acts
    for flight in run.flights.values():
        flight.noted += 1


def edit(run: Run, changes: Mapping[str, Any]) -> None:
    """Write values by dotted text where the run stands; all of them or, on a problem, none.

    Raises:
        BoardError: a value or a path that the board cannot take.
    """
    repair(run)
    _try(run, here(run), changes)
    open_tip(run, amend=True)
    scope, history, acts = here(run), run.history, _held(run)
    row, now = run.position - history.base, run.clock.seen()
    for text, value in changes.items():
        path = resolve_path(text, scope.seen())
        old = scope.look(path)
        run.write(scope, path, value)
        acts.append(Act(run.position, "edit", path_text(path), old, scope.look(path), "user", now))
    end = len(history.w_new)
    # With no call between: an interrupt finds the whole edit, or none.
    history.s_wend[row] = end
    _keep(run, acts)


def _try(run: Run, scope: Scope, changes: Mapping[str, Any]) -> None:
    """Raise what these changes would raise: an edit that is refused leaves no branch behind either."""
    seen, reactive = Scope(-1, "trial", scope), run.plan.recipe.reactive
    for text, value in changes.items():
        path = resolve_path(text, seen.seen())
        if scope.open:
            raise closed(scope, path)
        op, new = op_of(value)
        put(seen, path[0], changed(seen.get(path[0]), path[1:], op, freeze(new), path))
        if reactive is not None:
            reactive.edited(str(path[0]), seen.get(path[0]))


def emit(run: Run, type_: str, payload: Any, actor: str, **words: Any) -> Event:
    """Keep an event from outside, queue it for those that it sets off, and write what it means for the board."""
    reactive, scope, history = run.plan.recipe.reactive, run.root.scope, run.history
    event = numbered(run, None, type_, payload, actor, words)
    writes = () if reactive is None else reactive.projected(run, event)  # what is told wrongly is not kept
    history.events.append(event)
    enqueue(run, event)
    note(run, "emit", type_, ABSENT, event.payload, actor)
    for path, value in writes:  # edits, as part of what somebody did
        old = scope.look(path)
        run.write(scope, path, value)
        new = scope.look(path)
        if old is not new:
            history.people.append(Act(run.position, "edit", path_text(path), old, new, actor, run.clock.seen()))
    history.s_wend[run.position - history.base] = len(history.w_new)
    return event


def set_next(run: Run, node: str) -> None:
    """Make `node` the next one, in place of the one that is; frames that it does not stand in are left.

    Raises:
        ExecutionError: X101, there is no such node; X107, it stands in a region that is not open; X123, it runs on
            events, and none waits for it.
    """
    number = run.plan.number(node)
    region = run.plan.nodes[number].node.scope
    repair(run)
    queue, head = run.frontier(), current(run)
    frame: Frame | None = run.root if head is None else head.frame
    while frame is not None and frame.row.region != region:
        frame = frame.parent
    if frame is None:  # in another branch it may wait already
        frame = next((run.activation(entry).frame for entry in queue if run.tables.acts[entry].node == number), None)
    if frame is None:
        raise ExecutionError(
            Problem(
                "X107",
                f"{node!r} cannot be next here",
                f"region {region!r}",
                "it stands inside a node whose frame is not open, so it would have no board",
                f"set the next node to {run.plan.recipe.regions[region].owner!r}, and step into it",
            )
        )
    act = run.turn(number, frame) if run.plan.recipe.reactive is None else _set_off(run, number)
    left = _left(run, head, frame)
    if act.id in queue and not left:  # it waits already (another branch, or further back): it only comes first
        rest = list(queue)
        rest.remove(act.id)
    else:
        rest = [entry for entry in queue[1:] if entry != act.id and frontier.frame_of(run, entry) not in left]
    open_tip(run, amend=True)
    new = Act(run.position, "set_next", node, None if head is None else head.node.id, node, "user", run.clock.seen())
    _stand_before(run, [act.id, *rest], left, new)


def _set_off(run: Run, number: int) -> Activation:
    """Return the first waiting turn of a node of a reactive run.

    X123: a node that only events set off is to be the next one, and none waits for it.
    """
    found = next((entry for entry in run.frontier() if run.tables.acts[entry].node == number), None)
    if found is None:
        node = run.plan.nodes[number].node.id
        raise ExecutionError(
            Problem("X123", f"{node!r} cannot be next here", f"node {node!r}",
                    "events set it off, and no event waits for it where the run stands",
                    "emit the event: session.emit(type, payload)")
        )  # fmt: skip
    return run.activation(found)


def _stand_before(run: Run, queue: list[int], left: list[Frame], act: Act) -> None:
    """Give the last step another frontier, and close the frames that are left thereby."""
    history, step = run.history, run.position
    row, start = step - history.base, len(history.p_act)
    history.p_act.extend(queue)
    history.p_val.extend([CARRIED] * len(queue))
    end = len(history.p_act)
    closing = tuple(frame.id for frame in sorted(left, key=lambda frame: -frame.depth))
    shut = history.closed.get(step, ()) + closing
    if closing:
        history.mark_rare(step)
    # With no call between: an interrupt finds the whole act, or none.
    if closing:
        history.closed[step] = shut
        run.dirty = True
    history.s_pend[row] = end
    history.s_pos[row] = run.pos = start
    history.people += [act]
    for number in closing:
        run.close_frame(number)
    run.dirty = False


def _left(run: Run, head: Activation | None, frame: Frame) -> list[Frame]:
    """Return the frames that are left when the run goes on in `frame`: what its current node opened, and all inside."""
    if head is None:
        return []
    owner = head.node.index if head.what else -1
    step_in = head.frame
    while step_in is not frame and step_in.parent is not None:
        owner = step_in.row.owner if step_in.parent is frame else owner
        step_in = step_in.parent
    tops = [top for top in run.frames.values() if top.parent is frame and top.row.owner == owner]
    return [other for other in run.frames.values() if any(other.within(top) for top in tops)]


def skip(run: Run, writes: Mapping[str, Any]) -> int:
    """Go on as if the next node had written this.

    Raises:
        ExecutionError: X108, there is no next node.
    """
    act = current(run)
    if act is None:
        raise ExecutionError(
            Problem("X108", "there is nothing to skip", "the end of the run", "no node is next", "go back first")
        )
    open_tip(run, amend=True)
    step, now = run.position, run.ns()
    if act.what:
        frontier.leave(run, act)
    for key, value in writes.items():
        run.write(act.scope, (key,), value)
    pos = frontier.advance(run, act, frontier.ways(run, act))
    run.history.people.append(Act(step, "skip", act.node.id, ABSENT, dict(writes), "user", run.clock.seen()))
    return finish(run, act, now, SKIPPED | (LEAVE if act.what else 0), pos)
