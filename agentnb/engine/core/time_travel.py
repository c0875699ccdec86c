"""Time travel: undo a step, restore any step, repair an interrupted one, branch."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Final

from agentnb.board.paths import OPS, SET, apply_change
from agentnb.board.scopes import Scope, put
from agentnb.board.values import ABSENT
from agentnb.engine.core.history import AGAIN, COUNTED, NO_ACTIVATION, Checkpoint, History, carry
from agentnb.engine.core.run import CHECKPOINT_ROWS, NEVER, Run

if TYPE_CHECKING:
    from agentnb.engine.core.frames import Activation
    from agentnb.engine.core.plan import Plan

NEAR: Final = 32
_BRANCH_NAME: Final = re.compile(r"branch ([0-9]{1,9})")
_UNCOUNTED: Final = bytes(number for number in range(256) if not number & COUNTED)


def repair(run: Run) -> None:
    """Roll back uncommitted changes, left by an interrupt or an error. Idempotent."""
    run.queue_index = None
    if run.joinless_since > run.position:  # noted by a step that is undone
        run.joinless_since = NEVER
    if run.is_rewound or run.current_history is not run.history:  # the rows beyond the position are committed steps
        if run.dirty:
            restore(run, run.position)
        return
    history = run.history
    row = run.position - history.base
    writes = history.write_ends[row]
    number = run.position + 1
    if (
        (history.rare and history.rare[-1] >= number)
        or number in history.opened_frames
        or number in history.closed_frames
    ):
        run.dirty = True
    filled = min(len(history.write_codes), len(history.new_values), len(history.old_values))
    if filled > writes and not run.dirty:
        _undo_writes(run, history, writes, filled)
    history.truncate(run.position)
    if run.dirty:
        restore(run, run.position)
        run.is_rewound = False


def _undo_writes(run: Run, history: History, start: int, end: int) -> None:
    codes, old, order = run.tables.codes, history.old_values, history.order
    scopes = get_scopes(run)
    for row in range(end - 1, start - 1, -1):
        number, path = codes[history.write_codes[row] >> 2]
        data, key, was = scopes[number].own_data(), path[0], old[row]
        if was is ABSENT:
            data.pop(key, None)  # type: ignore[arg-type]  # a first key is text
            continue
        if row in order:
            data.pop(key, None)  # type: ignore[arg-type]  # an interrupt may have come before it was deleted
        data[key] = was  # type: ignore[index]  # a first key is text
        if row in order:
            for other in reversed(list(islice(reversed(data), 1, order[row] + 1))):
                data[other] = data.pop(other)


def get_scopes(run: Run) -> dict[int, Scope]:
    """Return the open scopes of a run by number."""
    if len(run.frames) == 1:
        return {0: run.root.scope}
    return {frame.scope.id: frame.scope for frame in run.frames.values()}


def undo(run: Run) -> None:
    """Move one step back."""
    at, position = run.current_history, run.position
    row = position - at.base
    run.is_rewound = True
    if row == 0 or (at.rare and _has_changed_frames(at, position)):
        restore(run, position - 1)
        return
    run.dirty = True
    start, end = at.write_ends[row - 1], at.write_ends[row]
    if end == start + 1:
        number, path = run.tables.codes[at.write_codes[start] >> 2]
        if number == 0 and start not in at.order:
            key, was, data = path[0], at.old_values[start], run.root.scope.own_data()
            if was is ABSENT:
                data.pop(key, None)  # type: ignore[arg-type]  # a first key is text
            else:
                data[key] = was  # type: ignore[index]  # a first key is text
            end = start
    if end > start:
        _undo_writes(run, at, start, end)
    run.queue_start = at.queue_starts[row - 1]
    run.counted_steps -= at.step_flags[row] & COUNTED > 0
    run.position = position - 1
    run.dirty = False


def _has_changed_frames(at: History, step: int) -> bool:
    index = bisect_left(at.rare, step)
    return index < len(at.rare) and at.rare[index] == step


def find_history(run: Run, step: int) -> History:
    """Return the history of the chain that contains a step number."""
    last = run.chain[-1]
    return last if last.base <= step else next(history for history in reversed(run.chain) if history.base <= step)


def goto(run: Run, step: int) -> None:
    """Move to the position after step `step`, anywhere in this run's chain."""
    if 0 < run.position - step <= NEAR:
        while run.position > step:
            undo(run)
    elif step != run.position:
        restore(run, step)


def restore(run: Run, step: int) -> None:
    """Rebuild the state after a step: from the last checkpoint before it, and the rows since."""
    run.dirty = True
    target = find_history(run, step)
    segments: list[tuple[History, int]] = [(target, step)]
    checkpoint = target.state_before(step)
    for child, parent in zip(reversed(run.chain), list(reversed(run.chain))[1:], strict=False):
        if child.base > step or checkpoint is not None:
            continue
        segments.append((parent, child.base))
        checkpoint = parent.checkpoint_before(child.base)
    assert checkpoint is not None
    _load_checkpoint(run, checkpoint)
    start = checkpoint.step
    for history, end in reversed(segments):
        if history is segments[-1][0]:
            _apply_steps(run, history, start, end, checkpoint.writes)
        else:
            _apply_steps(run, history, history.base, end, 0)
    if step - checkpoint.step > NEAR and step < target.tip:
        _remember(run, target, step)
    start = target.queue_starts[step - target.base]
    for number in target.queue_after(step):
        if run.tables.activations[number].node >= 0:
            run.find_activation(number)
    past = target is not run.history or step < target.tip
    # No call in between: an interrupt finds the run at the old position or at the new one.
    run.current_history = target
    run.queue_start = start
    run.position = step
    run.is_rewound = past
    run.dirty = False
    run.set_next_due()


def _remember(run: Run, history: History, step: int) -> None:
    """Keep the state after a restored step: people repeatedly go back to the same step and fork there.

    Every scope is marked as shared before the state is published, so its data is not changed from then on.
    """
    scopes = get_scopes(run)
    for scope in scopes.values():
        scope.shared = True
    data = {number: scope.data for number, scope in scopes.items()}
    frames = tuple((frame.id, frame.iteration) for frame in run.frames.values())
    history.restored_state = Checkpoint(step, history.write_ends[step - history.base], run.counted_steps, data, frames)


def _load_checkpoint(run: Run, checkpoint: Checkpoint) -> None:
    root = run.root
    run.frames = {0: root}
    run.live_activations = dict(root.activations)
    root.scope.open = 0
    root.scope.data, root.scope.shared = checkpoint.data[0], True
    for number, iteration in checkpoint.frames:
        if number:
            run.open_frame(run.tables.frames[number]).iteration = iteration
    for frame in run.frames.values():
        if frame.row.policy != "shared" and frame.id:
            frame.scope.data, frame.scope.shared = checkpoint.data[frame.scope.id], True
    run.counted_steps = checkpoint.counted_steps


def _apply_steps(run: Run, history: History, start: int, end: int, writes: int) -> None:
    """Apply the rows of a history after step `start` (including the interventions after it) up to step `end`."""
    base = history.base
    for step in history.rare[bisect_right(history.rare, start - 1) : bisect_right(history.rare, end)]:
        row = step - base
        if step == start and start != base:
            # Only the interventions after this step and its checkpoint are still to be applied.
            writes = _apply(run, history, writes, history.write_ends[row])
            for number in history.closed_frames.get(step, ()):
                if number in run.frames:
                    run.close_frame(number)
            continue
        if row:
            writes = _apply(run, history, writes, history.write_ends[row - 1])
        for number in history.opened_frames.get(step, ()):
            run.open_frame(run.tables.frames[number])
        if row and history.step_flags[row] & 3 == AGAIN:
            for frame in run.list_inner_frames(run.find_activation(history.step_activations[row])):
                frame.iteration += 1
        writes = _apply(run, history, writes, history.write_ends[row])
        for number in history.closed_frames.get(step, ()):
            if number in run.frames:
                run.close_frame(number)
    _apply(run, history, writes, history.write_ends[end - base])
    flags = history.step_flags[start - base + 1 : end - base + 1].tobytes()
    run.counted_steps += len(flags.translate(None, _UNCOUNTED))


def _apply(run: Run, history: History, start: int, end: int) -> int:
    """Apply write rows to the open scopes; return `end`."""
    codes, scopes, plain = run.tables.codes, get_scopes(run), run.tables.plain
    if start == end:
        return end
    written = history.write_codes[start:end]
    last_values = dict(zip(written, history.new_values[start:end], strict=True))
    if plain.keys() >= last_values.keys():  # only whole keys of the root were set: their last values suffice
        run.root.scope.own_data().update(zip(map(plain.__getitem__, last_values), last_values.values(), strict=True))
        return end
    last, path, data = -1, ("",), run.root.scope.own_data()
    for code, new in zip(written, islice(history.new_values, start, end), strict=True):
        if code >> 2 != last:
            last = code >> 2
            number, path = codes[last]  # type: ignore[assignment]  # a path of one key or more
            scope = scopes[number]
            data = scope.own_data()
        if code & 3 == SET and len(path) == 1:
            data[path[0]] = new
        else:
            put(scope, path[0], apply_change(scope.get(path[0]), path[1:], code & 3, new, path))
    return end


def open_tip(run: Run, *, amend: bool = False) -> bool:
    """Make sure that a step can be appended at the run's position; return True if a branch was started for it.

    With `amend`, the last step may be changed, but only if no run was forked from it: shared steps never change.
    """
    repair(run)
    history = run.history
    if (
        run.current_history is history
        and run.position == history.tip
        and not (amend and history.sealed_step >= run.position)
    ):
        run.is_rewound = False
        return False
    start_branch(run)
    return True


def start_branch(run: Run, name: str | None = None) -> History:
    """Start a new history at the run's position; its steps are separate from its parent's.

    Return the new history. The steps after this point stay in the old one.
    """
    old, abandoned = run.current_history, run.abandoned_branches
    leaves = run.position < run.history.tip or old is not run.history
    if leaves:
        abandoned = (*abandoned, (tuple(run.chain), run.history.tip))
        if run.recorded is not None:
            run.recorded.leave(run)
        name = name or _make_branch_name(run)
    new = History(run.tables, base=run.position, parent=old, name=name, plan=run.plan)
    shared = run.chain if run.chain[-1] is old else run.chain[: run.chain.index(old) + 1]
    sealed = max(old.sealed_step, run.position)
    new.set_first_row(run.frontier(), run.ns())
    new.uncommitted_calls = () if leaves else old.uncommitted_calls
    # No call in between: an interrupt leaves either the whole branch or nothing.
    old.sealed_step = sealed
    run.abandoned_branches = abandoned
    run.chain = [*shared, new]
    run.history = run.current_history = new
    run.queue_start = 0
    run.is_rewound = False
    run.stop_at = NEVER
    last = _get_last_checkpoint(shared, run.position)
    run.next_checkpoint = last.step + CHECKPOINT_ROWS + sum(map(len, last.data.values()))
    if run.next_checkpoint <= run.position:
        run.checkpoint()
    run.set_next_due()
    return new


def _make_branch_name(run: Run) -> str:
    """Return the name of a new branch, unique within its run because step ids depend on it.

    The branch that a run leaves is its newest one, so no other branch of the run has a higher number.
    """
    found = (_BRANCH_NAME.fullmatch(history.name or "") for history in run.chain)
    return f"branch {max((int(match[1]) for match in found if match), default=0) + 1}"


def _get_last_checkpoint(chain: list[History], step: int) -> Checkpoint:
    """Return the last checkpoint before a step along the chain: a branch does not need its own if one is near."""
    for history in reversed(chain):
        checkpoint = history.checkpoint_before(step)
        if checkpoint is not None:
            return checkpoint
        step = min(step, history.base)
    raise AssertionError("every run has a checkpoint before its first step")


def fork_run(run: Run, plan: Plan, step: int, name: str | None = None) -> Run:
    """Return a new run positioned after `step` that shares this run's steps up to there and has its own history."""
    origin = find_history(run, step)
    new = _make_run(run, plan, origin)
    # A branch starts its own chain
    new.chain = run.chain if origin is run.chain[-1] else run.chain[: run.chain.index(origin) + 1]
    if step == run.position and not run.dirty:
        _copy_state(new, run)
    else:
        restore(new, step)
    start_branch(new, name)
    new.abandoned_branches = ()  # later branches belong to the parent only
    return new


@contextmanager
def inspect_at(run: Run, step: int) -> Iterator[Run]:
    """Yield a run positioned after a step of this one, for inspection only; this run does not change."""
    origin = find_history(run, step)
    sealed = origin.sealed_step
    try:
        yield fork_run(run, run.plan, step)
    finally:
        origin.sealed_step = sealed


def reopen_branch(run: Run, chain: tuple[History, ...], tip: int) -> Run:
    """Return a run positioned at the end of a branch that this one has left."""
    new = _make_run(run, run.plan, chain[-1])
    new.chain = list(chain)
    restore(new, tip)
    return new


def _make_run(run: Run, plan: Plan, history: History) -> Run:
    """Return a new run, without state, in a history of this one."""
    new = Run(plan, run.dispatcher, clock=run.clock, seed=run.seed, history=history)
    new.root.scope.codes = run.root.scope.codes
    new.limit, new.max_frames, new.chaos, new.inputs = run.limit, run.max_frames, run.chaos, run.inputs
    new.salt = run.salt
    return new


def _copy_state(new: Run, run: Run) -> None:
    """Copy a run's current state: the data of its scopes, and the open frames."""
    new.root.scope.share_data(run.root.scope)
    for frame in run.frames.values():
        if frame.id:
            opened = new.open_frame(frame.row)
            opened.iteration = frame.iteration
            if frame.row.policy != "shared":
                opened.scope.share_data(frame.scope)
    new.position, new.queue_start, new.counted_steps = run.position, run.queue_start, run.counted_steps


def amend(run: Run, queue: list[int]) -> None:
    """Replace the frontier of the last step (an intervention)."""
    history = run.history
    row, pos = run.position - history.base, len(history.push_activations)
    history.push(carry(queue))
    end = len(history.push_activations)
    history.push_ends[row] = end
    history.queue_starts[row] = pos
    run.queue_start = pos


def move_to_front(run: Run, activation: Activation) -> None:
    """Move a queued activation in front of those of other branches."""
    queue = run.frontier()
    if queue[0] != activation.id:
        queue.remove(activation.id)
        amend(run, [activation.id, *queue])


__all__ = [
    "CHECKPOINT_ROWS",
    "NO_ACTIVATION",
    "OPS",
    "amend",
    "goto",
    "move_to_front",
    "repair",
    "restore",
    "start_branch",
    "undo",
]
