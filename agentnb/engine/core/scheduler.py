"""The scheduler: what runs next. Where pushes lead, and how frames open and close."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from agentnb.board.values import freeze
from agentnb.engine.core import event_queue, queue_index, supersteps
from agentnb.engine.core.frames import UNKNOWN, Activation, Frame
from agentnb.engine.core.history import (
    AGAIN,
    CARRIED,
    ENTER,
    RESUME,
    UNKNOWN_EDGE,
    ActivationRow,
    Event,
    FrameRow,
    Push,
    carry,
)
from agentnb.engine.core.interfaces import StepAbandoned
from agentnb.engine.core.plan import EVERY, FIRST, NO_EDGE
from agentnb.engine.core.run import GO, LANES, Run
from agentnb.engine.core.work import Enter, SendTarget, Target
from agentnb.errors import AgentNbError, ExecutionError, Problem, did_you_mean
from agentnb.recipe.model import Edge, RouteTarget

_new_row = tuple.__new__  # the constructor of a named tuple costs twice as much

Pushes = list[Push]
SHORT: Final = 16  # a queue of up to this many entries is rewritten as a whole when it changes in the middle


# -- where a step leads --------------------------------------------------------------------------------------------


def find_next_activations(run: Run, activation: Activation) -> Pushes:
    """Return the activations that a node's ordinary edges lead to, each with its condition's value and its edge."""
    pushes: Pushes = []
    taken = False
    for call, target, edge, number in activation.node.outgoing_edges:
        parallel = edge.kind == "parallel"
        if taken and run.plan.first and not parallel:
            continue
        value = None if call is None else _evaluate(activation, call, edge)
        if call is None or value:
            pushes.append((get_target(run, activation, target, edge), value, number))
            taken = taken or not parallel
    return pushes


def get_target(run: Run, activation: Activation, target: int, edge: Edge | None = None, event: int = -1) -> int:
    """Return the number of the activation that a step leads to; `event` carries the input of a target with its own."""
    if run.plan.supersteps:
        return supersteps.get_target(run, activation, target, edge, event)
    number = activation.next_activations.get(target)
    if number is None:
        number = activation.next_activations[target] = run.get_activation(target, activation.frame).id
    return number


def find_handler(run: Run, activation: Activation, target: int) -> int:
    """Return the number of the activation that a failed step leads to."""
    return (
        supersteps.find_handler(run, activation, target) if run.plan.supersteps else get_target(run, activation, target)
    )


def _evaluate(activation: Activation, call: Any, edge: Any) -> Any:
    """Evaluate a condition; an exception becomes the step's failure and names the edge."""
    try:
        return call(activation.work.board)
    except AgentNbError:
        raise
    except Exception as error:
        raise _make_condition_error(edge, error) from error


def _make_condition_error(edge: Any, error: Exception) -> ExecutionError:
    return ExecutionError(
        Problem(
            "X104",
            f"the condition {edge.condition or 'of the edge'!r} failed: {type(error).__name__}: {error}",
            str(edge.place or f"edge {edge.source!r} -> {edge.target!r}"),
            "an edge is followed only if its condition can be evaluated",
            "make sure the keys it reads are on the board, or fix the condition",
        )
    )


def follow(run: Run, activation: Activation) -> Pushes | None:
    """Push the activation that follows a quick one, and cache it if it is always the same.

    Return the activations instead if one of them is a join.
    """
    history, joins = run.history, run.plan.joins
    if activation.next == UNKNOWN:
        always = activation.node.always
        if always >= 0 and always not in joins:
            activation.next = run.get_activation(always, activation.frame).id
            history.push_activations.append(activation.next)
            history.push_values.append(None)
            history.push_edges.append(activation.node.always_edge)
            return None
        activation.next = always if always < 0 else EVERY
        if always == NO_EDGE:
            return None
    if activation.next == FIRST:
        push = _find_first(run, activation)
        if push is None:
            return None
        number, value, edge = push
        if joins and run.tables.activations[number].node in joins:
            return [push]
        history.push_activations.append(number)
        history.push_values.append(value)
        history.push_edges.append(edge)
        return None
    pushes = find_next_activations(run, activation)
    if joins and not joins.isdisjoint([run.tables.activations[number].node for number, _, _ in pushes]):
        return pushes
    history.push(pushes)
    return None


def _find_first(run: Run, activation: Activation) -> Push | None:
    """Return the activation that the first edge whose condition holds leads to; None if none holds."""
    board, outgoing_edges = activation.work.board, activation.node.outgoing_edges
    for call, target, edge, edge_number in outgoing_edges:
        value = None
        if call is not None:
            try:
                value = call(board)
            except AgentNbError:
                raise
            except Exception as error:
                raise _make_condition_error(edge, error) from error
            if not value:
                continue
        number = activation.next_activations.get(target)
        return (get_target(run, activation, target, edge) if number is None else number), value, edge_number
    return None


def advance_past(run: Run, activation: Activation, joins: Pushes | None) -> int:
    """Return the new start of the frontier after a quick activation; if it leads to joins, they are pushed first."""
    history = run.history
    if joins is not None:
        return advance(run, activation, joins)
    return history.find_queue_start(history.row_after(run.queue_start))


def choose_targets(run: Run, activation: Activation, targets: Sequence[Target], value: Any) -> Pushes:
    """Return the activations of the targets that a node chose itself, each with this value and its edge.

    Raises:
        ExecutionError: X105, a target does not exist, or is in another region.
    """
    pushes: Pushes = []
    for to in targets:
        target, event = to if type(to) is SendTarget else (to if type(to) is str else to[0], -1)
        if event >= 0 and not target and activation.frame.parent is not None:
            pushes.append((supersteps.resume(run, activation.frame, event), value, UNKNOWN_EDGE))
            continue
        number = run.plan.index.get(target)
        if number is None or run.plan.nodes[number].node.scope != activation.node.node.scope:
            raise ExecutionError(
                Problem(
                    "X105",
                    f"node {activation.node.id!r} leads to {target!r}, which is not a node of its region",
                    str(activation.node.node.place or f"node {activation.node.id!r}"),
                    f"the nodes of this region are: {', '.join(_list_region_nodes(run, activation))}",
                    did_you_mean(target, _list_region_nodes(run, activation), "add the node, or change the route"),
                )
            )
        pushes.append((get_target(run, activation, number, event=event), value, _find_route(activation, number, to)))
    return pushes


def _find_route(activation: Activation, target: int, to: Target) -> int:
    """Return the number of the route edge that a node chose; UNKNOWN_EDGE if there is none, or several may be meant."""
    routes = activation.node.routes
    if type(to) is RouteTarget:
        return routes.get((target, to.condition), UNKNOWN_EDGE)
    if type(to) is SendTarget:
        return UNKNOWN_EDGE
    leading = [number for (node, _), number in routes.items() if node == target]
    return leading[0] if len(leading) == 1 else UNKNOWN_EDGE


def _list_region_nodes(run: Run, activation: Activation) -> list[str]:
    return [node.id for node in run.plan.nodes if node.node.scope == activation.node.node.scope]


# -- advancing the frontier ----------------------------------------------------------------------------------------


def append_next_activations(run: Run, activation: Activation, chosen: Pushes | None, front: Pushes) -> int:
    """Append the activations that a step leads to (`chosen`, if not None); return the new start of the frontier.

    `front` goes to the front.
    """
    if chosen is None and run.plan.recipe.reactive is not None:  # only events schedule nodes
        return event_queue.advance(run, activation)
    pushes = (
        find_next_activations(run, activation)
        if chosen is None
        else [*chosen, *find_next_activations(run, activation)]
        if run.plan.supersteps
        else chosen
    )
    return advance(run, activation, pushes + make_event_entries(run, activation.work), front)


def advance(run: Run, activation: Activation, pushes: Pushes, front: Pushes = []) -> int:  # noqa: B006  (never changed)
    """Append the pushes of a step and return the new start of the frontier.

    `front` goes to the front (error targets, the entry of a body), `pushes` behind this frame's activations. If the
    queue only grew at its end, nothing is moved; otherwise the new queue is written as a whole.
    """
    if run.plan.recipe.reactive is not None:
        return event_queue.advance(run, activation)
    if run.plan.supersteps:
        return supersteps.advance(run, activation, pushes, front)
    history, index, joins = run.history, run.queue_index, run.plan.joins
    if (
        (index is not None and index.is_current(run)) or len(history.push_activations) - run.queue_start > SHORT
    ) and not run.plan.listeners:
        moved = queue_index.advance(run, activation, pushes, front)
        if moved >= 0:
            return moved
    run.queue_index = None
    queue = run.frontier()
    own_place = queue.index(activation.id) if activation.id in queue else 0
    rest = [number for place, number in enumerate(queue) if place != own_place or number != activation.id]
    last = max(
        (i for i, number in enumerate(rest) if get_frame(run, number).is_within(activation.frame)),
        default=own_place - 1,
    )
    at = last + 1
    plain = own_place == 0 and not history.replacements
    new: Pushes = [*front, *carry(rest[:at]), *pushes, *carry(rest[at:])]
    if own_place:
        new = [*carry(rest[:own_place]), *front, *carry(rest[own_place:at]), *pushes, *carry(rest[at:])]
    new = _schedule_resume(run, activation, expand(run, _queue_joins(run, new), activation.work.emitted), own_place)
    if joins:
        run.note_joins(queued=any(run.tables.activations[number].node in joins for number, _, _ in new))
    unchanged = zip(new, rest, strict=False)
    if plain and len(new) >= len(rest) and all(push[0] == number and push[1] is CARRIED for push, number in unchanged):
        new = new[len(rest) :]
        pos = run.queue_start + 1
    else:
        pos = len(history.push_activations)
    history.push(new)
    return pos


def get_frame(run: Run, number: int) -> Frame:
    """Return the frame of a frontier entry; an event not yet matched belongs to the root frame."""
    return run.root if run.tables.activations[number].node < 0 else run.find_activation(number).frame


def _queue_joins(run: Run, queue: Pushes) -> Pushes:
    """Queue each join once, behind all activations of its own frame that can still reach it."""
    joins, activations = run.plan.joins, run.tables.activations
    for number in dict.fromkeys(number for number, _, _ in queue if activations[number].node in joins):
        pushes = [push for push in queue if push[0] == number]
        position, others = queue.index(pushes[0]), [push for push in queue if push[0] != number]
        # a followed edge is recorded only once
        push = next((push for push in pushes if push[1] is not CARRIED), pushes[0])
        node, frame = activations[number].node, activations[number].frame
        if any(
            activations[other].frame == frame and activations[other].node in run.plan.nodes_before_join[node]
            for other, _, _ in others
        ):
            own = get_frame(run, number)
            position = max(n for n, (other, _, _) in enumerate(others) if get_frame(run, other).is_within(own)) + 1
        queue = [*others[:position], push, *others[position:]]
    return queue


def expand(run: Run, queue: Pushes, emitted: Sequence[Event] = ()) -> Pushes:
    """Match the event at the front against its listeners until an activation is at the front.

    `emitted` are the events of the step being committed, which are not in the history yet.
    """
    if not run.plan.listeners:
        return queue
    while queue and run.tables.activations[queue[0][0]].node < 0:
        seq = run.tables.activations[queue[0][0]].event
        event = next((event for event in emitted if event.seq == seq), None) or run.get_event(seq)
        nodes = run.plan.listeners.get(event.type, ()) if event else ()
        queue = carry([run.get_activation(node.index, run.root, 0, seq).id for node in nodes]) + queue[1:]
    return queue


def _schedule_resume(run: Run, activation: Activation, queue: Pushes, own_place: int) -> Pushes:
    """Schedule a composite node to resume when nothing inside it is left in the queue."""
    frame = activation.frame
    if frame.parent is None:
        return queue
    group = [
        other for other in run.frames.values() if other.parent is frame.parent and other.row.owner == frame.row.owner
    ]
    for number, _, _ in queue:
        inner = get_frame(run, number)
        if any(inner.is_within(other) for other in group):
            return queue
    owner = run.get_activation(frame.row.owner, frame.parent, RESUME)
    return [*queue[:own_place], *carry([owner.id]), *queue[own_place:]]


def make_event_entries(run: Run, work: Any) -> Pushes:
    """Return the queue entries for the events that a node emitted."""
    if not run.plan.listeners or run.plan.recipe.reactive is not None:  # a reactive run queues the events themselves
        return []
    return carry(
        [run.tables.add_activation(_new_row(ActivationRow, (-1, 0, 0, event.seq, -1))) for event in work.emitted]
    )


# -- opening and closing frames --------------------------------------------------------------------------------------


def enter(run: Run, activation: Activation, opening: Enter, started_at: int) -> int:
    """Open the bodies of a composite node; their entry nodes come next.

    X103: frames are nested too deeply.
    """
    from agentnb.engine.core.step import finish

    if activation.frame.depth + 1 > run.max_frames:
        if run.limiter is not None and not run.limiter.admit_frame(run, activation):
            raise StepAbandoned
        raise ExecutionError(
            Problem(
                "X103",
                f"node {activation.node.id!r} would open frame {activation.frame.depth + 1}: nested too deeply",
                str(activation.node.node.place or f"node {activation.node.id!r}"),
                f"frames may be nested {run.max_frames} deep",
                "allow more: budget={'max_frames': ...} or GraphExecutor(max_recursion_depth=...); or nest less",
            )
        )
    number, front, opened, frames = run.position + 1, [], [], run.tables.frames
    if opening.bodies:
        run.history.opened_frames[number] = ()  # known to `repair` before the first frame is open
        run.history.mark_rare(number)
    for (
        path,
        value,
    ) in activation.work.own_writes:  # before a child scope is open: afterwards this scope cannot be written
        run.write(activation.scope, path, value)
    for body in opening.bodies:
        id_, inputs = len(frames), None if body.inputs is None else freeze(dict(body.inputs))
        own = id_ if body.policy != "shared" else activation.frame.row.scope
        fields = (
            id_,
            activation.frame.id,
            activation.node.index,
            body.region,
            body.policy,
            body.branch,
            own,
            number,
            inputs,
        )
        row = _new_row(FrameRow, fields)
        frames.append(row)
        opened.append(id_)
        frame = run.open_frame(row)
        for key, value in body.values.items():
            run.write(frame.scope, (key,), value)
        front += carry([run.get_activation(node, frame).id for node in run.plan.entries[body.region]])
    if opened:
        run.history.opened_frames[number] = tuple(opened)
    if not front:
        front = carry([run.get_activation(activation.node.index, activation.frame, RESUME).id])
    code = finish(run, activation, started_at, ENTER, advance(run, activation, [], front))
    return LANES if code == GO and any(body.branch >= 0 for body in opening.bodies) else code


def repeat_body(run: Run, activation: Activation, started_at: int) -> int:
    """Run the body of a composite node once more, in the open frame."""
    from agentnb.engine.core.step import finish

    run.history.mark_rare(run.position + 1)
    for path, value in activation.work.own_writes:
        run.write(activation.scope, path, value)
    front: Pushes = []
    for frame in run.list_inner_frames(activation):
        frame.iteration += 1
        front += carry([run.get_activation(node, frame).id for node in run.plan.entries[frame.row.region]])
    return finish(run, activation, started_at, AGAIN, advance(run, activation, [], front))


def leave(run: Run, activation: Activation) -> None:
    """Close all frames that an activation's node opened, the innermost first, and record it."""
    inside = {frame.id for frame in run.list_inner_frames(activation)}
    nested = [frame for frame in run.frames.values() if any(outer.id in inside for outer in frame.iter_enclosing())]
    close_frames(run, nested, run.position + 1)


def close_frames(run: Run, frames: Sequence[Frame], step: int) -> None:
    """Close frames as part of a step."""
    closing = sorted(frames, key=lambda frame: -frame.depth)
    if not closing:
        return
    run.history.closed_frames[step] = run.history.closed_frames.get(step, ()) + tuple(frame.id for frame in closing)
    run.history.mark_rare(step)
    for frame in closing:
        run.close_frame(frame.id)


__all__ = [
    "Pushes",
    "advance",
    "advance_past",
    "append_next_activations",
    "choose_targets",
    "close_frames",
    "enter",
    "find_next_activations",
    "follow",
    "get_frame",
    "get_target",
    "leave",
    "make_event_entries",
    "repeat_body",
]  # fmt: skip
