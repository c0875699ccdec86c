"""Supersteps: all scheduled nodes run on the board as it was when the superstep began.

Their successors form the next one. The activations of a superstep run one after another, ordered by node id and then by
the number of the event that carries their input. Their writes are committed immediately, so that each belongs to its
node, but a node reads a view of the board without the writes of the others. When the last one has run, the next
superstep consists of everything they led to.

All of this is kept in the frontier. The activations of successive supersteps differ in `ActivationRow.about`, which
alternates between -1 and 0. Behind them are parked entries (`purpose` is PARKED): arrivals at a join (`about` is the
number of the arrival in the plan) and deferred nodes (`about` is -1), which run when nothing else is scheduled.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agentnb.board.scopes import DELETED, Scope, put
from agentnb.board.values import ABSENT, freeze
from agentnb.engine.core.history import CARRIED, FAIL, PARKED, RESUME, UNKNOWN_EDGE, Push, carry
from agentnb.engine.core.reducers import ReducedWrite, replaces_value
from agentnb.engine.core.waits import (
    began_with_stop,
    clear_untracked,
    continues_after_wait,
    count_supersteps,
    find_last_wait,
    get_sent_input,
    get_untracked_keys,
    hide_untracked,
    list_rows,
    may_have_waited,
    reads_input_from_board,
)
from agentnb.engine.core.work import Append, Outcome
from agentnb.errors import ExecutionError, Problem
from agentnb.recipe.descriptions import END
from agentnb.recipe.model import Send

if TYPE_CHECKING:
    from agentnb.engine.core.frames import Activation, Frame
    from agentnb.engine.core.history import Failure, History
    from agentnb.engine.core.plan import Plan, PlanNode
    from agentnb.engine.core.run import Run
    from agentnb.engine.core.work import Perform, Target, Work
    from agentnb.recipe.model import Edge

Pushes = list[Push]
DEFERRED: Final = -1  # `ActivationRow.about` of a parked node that runs when nothing else is scheduled


class SuperstepError(ExecutionError):
    """The failure of a superstep rather than of the node that was running: the node's own error edges do not apply.

    If the error has a cause, the failure has the name of its class: the class that the recipe's own framework raises. A
    dialect maps problem codes to such classes in the parameter `error_classes` of its nodes.
    """

    @property
    def named(self) -> BaseException:
        """The exception that gives the failure its name."""
        return self.__cause__ or self


class Gate(NamedTuple):
    """A join in the plan: its target, and the number of sources that must arrive."""

    target: int
    sources: int


class Joins:
    """The joins of a recipe: `arrivals` maps (source, target, join) to a number, `gates` maps this to the gate."""

    def __init__(self, nodes: Sequence[PlanNode]) -> None:
        names: dict[tuple[int, str], list[int]] = {}
        for node in nodes:
            for _, target, edge, _ in node.outgoing_edges:
                if edge.join:
                    names.setdefault((target, edge.join), []).append(node.index)
        self.arrivals: dict[tuple[int, int, str], int] = {}
        self.gates: list[tuple[Gate, int]] = []
        for number, ((target, name), sources) in enumerate(names.items()):
            for source in dict.fromkeys(sources):
                self.arrivals[source, target, name] = len(self.gates)
                self.gates.append((Gate(target, len(set(sources))), number))


# -- where a step leads --------------------------------------------------------------------------------------------


def get_target(run: Run, activation: Activation, target: int, edge: Edge | None, event: int) -> int:
    """Return the number of the activation in the next superstep that a step leads to.

    It is an arrival if the edge is part of a join; it is parked if the target is deferred.
    """
    if edge is not None and edge.join:
        code = run.plan.waiting.arrivals[activation.node.index, target, edge.join]
        return run.get_activation(target, activation.frame, PARKED, -1, code).id
    if event < 0 and target in run.plan.deferred_nodes:
        return run.get_activation(target, activation.frame, PARKED).id
    return run.get_activation(target, activation.frame, 0, event, -1 - activation.row.about).id


def find_handler(run: Run, activation: Activation, target: int) -> int:
    """Return the number of the activation that handles a failed step; it belongs to the same superstep.

    It runs next and sees what the failed node saw, with the same input.
    """
    return run.get_activation(target, activation.frame, 0, activation.row.event, activation.row.about).id


def find_handled_failure(run: Run, activation: Activation, source: str) -> Failure | None:
    """Return the failure of `source` that an activation handles: the last one in the same superstep."""
    for step in iter_superstep_steps(run, activation):
        history = next(history for history, end in run.parts() if history.base < step <= end)
        row = run.tables.activations[history.step_activations[step - history.base]]
        if row.event == activation.row.event and run.plan.nodes[row.node].id == source:
            return history.errors.get(step)
    return None


def iter_superstep_steps(run: Run, activation: Activation) -> Iterator[int]:
    """Yield the steps so far of an activation's superstep, last first."""
    for step, row in run.iter_activations_back():
        if row.frame == activation.frame.id:
            if row.about != activation.row.about:
                return
            yield step


def list_events_of_node(run: Run, activation: Activation) -> list[int]:
    """Return the numbers of the events for which a node runs in an activation's superstep; -1: through its edges.

    Activations that have already run come first.
    """
    activations, ran = run.tables.activations, []
    for _, row in run.iter_activations_back():
        if row.frame == activation.row.frame:
            if row.about != activation.row.about:
                break
            ran.append(row)
    due = [activations[number] for number in run.frontier()]
    return [
        row.event
        for row in [*reversed(ran), *due]
        if row.node == activation.row.node
        and row.frame == activation.row.frame
        and row.about == activation.row.about
        and not row.purpose
    ]  # fmt: skip  (it begins; it is neither parked nor does it resume)


def iter_supersteps_back(run: Run, frame: Frame) -> Iterator[list[int]]:
    """Yield the steps of each superstep of a frame; the last superstep and the last step come first."""
    steps = ((step, row.about) for step, row in run.iter_activations_back() if row.frame == frame.id)
    for _, group in groupby(steps, key=lambda step: step[1]):
        yield [step for step, _ in group]


def make_superstep_activation(run: Run, number: int, frame: Frame) -> Activation:
    """Return the activation of a node in the current superstep of a frame, for a node that a person sets next."""
    activations = run.tables.activations
    about = next((activations[entry].about for entry in run.frontier()
                  if activations[entry].frame == frame.id and activations[entry].purpose != PARKED), None)  # fmt: skip
    if about is None:  # the run has ended: the node begins another superstep
        about = -1 - next((row.about for _, row in run.iter_activations_back() if row.frame == frame.id), 0)
    return run.get_activation(number, frame, 0, -1, about)


def advance(run: Run, activation: Activation, pushes: Pushes, front: Pushes) -> int:
    """Append the pushes of a step and return the new start of the frontier."""
    history, activations, frame = run.history, run.tables.activations, activation.frame
    position = run.queue_start
    if not front and frame.parent is None and history.push_activations[position] == activation.id:
        next_position = position + 1
        if next_position == len(history.push_activations):
            history.push(_plan_next_superstep(run, frame, activation, pushes))
            return next_position
        row = activations[history.push_activations[next_position]]  # of the root frame, too: no other one is open
        if row.about == activation.row.about and row.purpose != PARKED:
            history.push(pushes)
            return next_position
    queue = history.push_activations[position:].tolist()
    if activation.id in queue:
        queue.remove(activation.id)
    if front and run.tables.activations[front[0][0]].frame != frame.id:  # a composite node opens its inside
        return _rewrite(history, [*front, *carry(queue)])
    resumes = [push for push in pushes if activations[push[0]].frame != frame.id]  # the step has ended its frame
    if resumes:
        return _rewrite(history, [*resumes, *carry([n for n in queue if activations[n].frame != frame.id])])
    own = [number for number in queue if activations[number].frame == frame.id]
    outer = carry([number for number in queue if activations[number].frame != frame.id])
    current = [
        number
        for number in own
        if activations[number].about == activation.row.about and activations[number].purpose != PARKED
    ]
    if front or current:  # `front`: the handler of a failed step
        later = [number for number in own if number not in set(current)]
        return _rewrite(history, [*front, *carry(current), *carry(later), *pushes, *outer])
    return _rewrite(history, [*_plan_next_superstep(run, frame, activation, [*carry(own), *pushes]), *outer])


def _rewrite(history: History, queue: Pushes) -> int:
    start = len(history.push_activations)
    history.push(queue)
    return start


def _plan_next_superstep(run: Run, frame: Frame, activation: Activation, pushes: Pushes) -> Pushes:
    """Return the next superstep of a frame; if there is none, what its composite node does next."""
    _clear_transients(run, activation)
    scheduled = _schedule(run, frame, activation, pushes)
    if get_untracked_keys(run.plan, activation):
        rows = [*list_rows(run, frame, activation.row.about), (run.position + 1, activation.row)]
        clear_untracked(run, activation, rows, ends_frame=not scheduled)
    return scheduled or _end_supersteps(run, frame, activation)


def _schedule(run: Run, frame: Frame, activation: Activation, pushes: Pushes) -> Pushes:
    """Return the activations of the next superstep in their order, and what stays parked; empty if none is due."""
    activations, plan = run.tables.activations, run.plan
    if len(pushes) == 1:
        row = activations[pushes[0][0]]
        if row.purpose != PARKED:
            return pushes
    due: dict[int, Push] = {}
    parked: dict[int, Push] = {}
    for push in pushes:
        number = push[0]
        next_pushes = parked if activations[number].purpose == PARKED else due
        known = next_pushes.get(number)
        if known is None or known[1] is CARRIED or (known[2] == UNKNOWN_EDGE and push[2] != UNKNOWN_EDGE):
            next_pushes[number] = push
    about = -1 - activation.row.about
    _open_gates(run, frame, due, parked, about, deferred=False)
    if not any(activations[number].event < 0 for number in due):
        _open_gates(run, frame, due, parked, about, deferred=True)
        for number in [number for number in parked if activations[number].about == DEFERRED]:
            target = run.get_activation(activations[number].node, frame, 0, -1, about).id
            due.setdefault(target, (target, *parked.pop(number)[1:]))
    if not due:
        return []
    rank = plan.ranks
    order = sorted(
        due, key=lambda number: ((event := activations[number].event) >= 0, event, rank[activations[number].node])
    )
    return [*(due[number] for number in order), *parked.values()]


def _open_gates(
    run: Run, frame: Frame, due: dict[int, Push], parked: dict[int, Push], about: int, *, deferred: bool
) -> None:
    """Replace the arrivals at each complete join by its target."""
    activations, gates = run.tables.activations, run.plan.waiting.gates
    arrived: dict[int, list[int]] = {}
    for number in parked:
        if activations[number].about >= 0:
            arrived.setdefault(gates[activations[number].about][1], []).append(number)
    for numbers in arrived.values():
        gate, _ = gates[activations[numbers[0]].about]
        if len(numbers) == gate.sources and (deferred or gate.target not in run.plan.deferred_nodes):
            _, value, edge = [parked.pop(number) for number in numbers][-1]
            target = run.get_activation(gate.target, frame, 0, -1, about).id
            due.setdefault(target, (target, value, edge))


def _end_supersteps(run: Run, frame: Frame, activation: Activation) -> Pushes:
    """Return what follows the last superstep of a frame: its composite node resumes.

    If the limit of supersteps is reached, the node that ran last is next, and fails.
    """
    if _reaches_limit(run, activation, get_stage(run, activation).number, ends=True):
        return carry([run.get_activation(activation.node.index, frame, 0, -1, -1 - activation.row.about).id])
    if frame.parent is None:
        return []
    return carry([resume(run, frame)])


def resume(run: Run, frame: Frame, event: int | None = None) -> int:
    """Return the activation in which the composite node of a frame resumes: on an event, or in the way it started."""
    assert frame.parent is not None
    owner = run.get_opening_activation(frame)
    event = owner.event if event is None else event
    return run.get_activation(owner.node, frame.parent, RESUME, event, owner.about).id


def find_failed_activation(run: Run, frame: Frame) -> int:
    """Return the activation in which the composite node of a frame fails because a step inside it failed."""
    assert frame.parent is not None
    owner = run.get_opening_activation(frame)
    return run.get_activation(owner.node, frame.parent, FAIL, owner.event, owner.about).id


def _clear_transients(run: Run, activation: Activation) -> None:
    """Delete the keys that last for one superstep and were not written in this one."""
    keys, scope = run.plan.transient.get(activation.frame.row.region), activation.scope
    if keys is None:
        return
    seen = {key for key in keys if key in scope.data}
    if seen:
        row = run.history.write_ends[run.position - run.history.base]
        written = {str(run.tables.codes[code >> 2][1][0]) for code in run.history.write_codes[row:]}
        for key in sorted(seen - written - set(get_stage(run, activation).scope.data)):
            run.write(scope, (key,), ABSENT)


# -- what a node sees ------------------------------------------------------------------------------------------------


class Stage:
    """The part of a superstep that has run: its number, and a scope that shows the board without its writes.

    `replaced` are the keys whose value a node has replaced regardless of reducers; additions by others are dropped.

    A stage is valid for one history up to a position. It is derived from the rows of the run and not part of its state.
    """

    __slots__ = ("about", "history", "number", "position", "replaced", "scope")

    def __init__(self, history: History, about: int, number: int, outer: Scope) -> None:
        self.history, self.about, self.number, self.position = history, about, number, 0
        self.scope = outer.make_view()
        self.replaced: set[str] = set()


def get_stage(run: Run, activation: Activation) -> Stage:
    """Return the superstep of the next activation, as far as it has run."""
    frame, about = activation.frame, activation.row.about
    stage = frame.stage
    if stage is not None and (stage.history is not run.history or stage.position > run.position):
        stage = None  # the run has since gone back or elsewhere
    if stage is not None and stage.position == run.position and stage.about == about:
        return stage
    number, last_about = (0, None) if stage is None else (stage.number, stage.about)
    steps: list[int] = []  # of the last superstep, not yet in the stage
    rows = [step for step in run.iter_activations_back(stage.position if stage else 0) if step[1].frame == frame.id]
    for step, row in [*reversed(rows), (0, activation.row)]:
        if row.about != last_about:
            number, last_about, stage, steps = number + 1, row.about, None, []
        steps.append(step)
    if stage is None:
        stage = Stage(run.history, about, number, frame.scope)
    for step in steps[:-1]:
        _record_writes(run, stage, frame.scope.id, step)
    stage.position = run.position
    frame.stage = stage
    return stage


def show_edit(run: Run, scope: Scope, key: str) -> None:
    """Show a key that a person has edited to all nodes of the superstep, also to one that has begun and waits."""
    for frame in run.frames.values():
        if frame.stage is not None and frame.scope is scope:
            frame.stage.scope.data.pop(key, None)


def _record_writes(run: Run, stage: Stage, number: int, step: int) -> None:
    """Add the previous values of the keys that a step has written. Edits made by a person after it are visible."""
    data, codes = stage.scope.data, run.tables.codes
    for history, at, is_edit in run.iter_write_rows(step):
        owner, path = codes[history.write_codes[at] >> 2]
        key = str(path[0])
        if owner != number:
            continue
        if is_edit:
            data.pop(key, None)
            continue
        if replaces_value(history.reduced_parts.get(at, ())):
            stage.replaced.add(key)
        old = history.old_values[at]
        data.setdefault(key, DELETED if old is ABSENT else old)


def isolate(node: PlanNode, perform: Perform) -> Perform:
    """Wrap a node's function so that it does not see the writes of its superstep.

    The conditions of its edges, and `choose` (a function from the board to targets), also see its own writes.
    """
    choose = node.node.params.get("choose")
    limit: int | None = node.node.params.get("max_supersteps")
    asks = choose is not None or any(condition is not None for condition, *_ in node.outgoing_edges)

    def finish(work: Work, result: Any) -> Any:
        if type(result) is Outcome:  # first, because the other checks use abstract classes, which takes 1 µs
            outcome = result
        elif isinstance(result, Awaitable):
            return await_and_finish(work, result)
        elif result is not None and not isinstance(result, Outcome | Mapping):
            return result  # it opens its inside
        else:
            outcome = result if isinstance(result, Outcome) else Outcome(result or {})
        if _drop_overwritten_additions(work, outcome):
            result = outcome
        if not asks:
            return result
        work.scope = _make_scope_with_writes(work, outcome)
        if choose is not None:
            outcome.route = [*(outcome.route or ()), *_to_route(work, choose(work.board))]
        return outcome

    async def await_and_finish(work: Work, result: Awaitable[Any]) -> Any:
        return finish(work, await result)

    def run_isolated(work: Work) -> Any:
        activation = work.activation
        stage = get_stage(work.run, activation)
        if limit is not None and stage.number > limit and _reaches_limit(work.run, activation, stage.number - 1):
            raise _make_limit_error(work, stage.number - 1)
        work.scope = stage.scope if stage.scope.data else activation.scope
        if activation.purpose or activation.event >= 0 or work.run.plan.untracked:
            _adapt_scope(work)
        return finish(work, perform(work))

    return run_isolated


def _adapt_scope(work: Work) -> None:
    """Add the input that was sent to a node; hide the untracked keys if the run has waited."""
    activation = work.activation
    if reads_input_from_board(activation):
        work.scope = _make_scope_with_input(work)
    if get_untracked_keys(work.run.plan, activation) and continues_after_wait(work):
        hide_untracked(work)


def get_superstep_limit(run: Run, activation: Activation, *, begins: bool = False, ends: bool = False) -> int | None:
    """Return the number of the last superstep that the frame of an activation may reach; None if there is no limit.

    The parameter `supersteps_after_wait` of its node is how many more are allowed after one that has waited for a
    person; without it, `max_supersteps` limits all of them.

    Args:
        begins: True to ask whether the superstep of the activation may begin; then breakpoints before it come after
            the limit.
        ends: the step of the activation is being committed, and ends its superstep.
    """
    params = activation.node.node.params
    limit: int | None = params.get("max_supersteps")
    more: int | None = params.get("supersteps_after_wait")
    if limit is None or more is None or not may_have_waited(run, activation):
        return limit
    frame, about = activation.frame, activation.row.about
    rows = list_rows(run, frame)
    if ends:
        last = find_last_wait(run, [*rows, (run.position + 1, activation.row)], activation)
    else:
        rows = rows[: len(rows) - len(list_rows(run, frame, about))]
        waits = began_with_stop(run, activation, after_only=True) if begins else continues_after_wait(activation.work)
        last = count_supersteps(run, rows) + 1 if waits else find_last_wait(run, rows)
    return last + more if last else limit


def _reaches_limit(run: Run, activation: Activation, number: int, *, ends: bool = False) -> bool:
    """Return True if no superstep may follow the one of this number."""
    most = activation.node.node.params.get("max_supersteps")
    if most is None or number < most:
        return False
    limit = get_superstep_limit(run, activation, begins=not ends, ends=ends)
    return limit is not None and number >= limit


def choose_after_skip(run: Run, activation: Activation, writes: Mapping[str, Any]) -> Sequence[Target]:
    """Return the targets that a skipped node's `choose`, or its kind, chooses, as if it had written these values."""
    choose, choose_of_kind = activation.node.node.params.get("choose"), activation.node.kind.choose_after_skip
    if choose is None and choose_of_kind is None:
        return ()
    work, stage = activation.work, get_stage(run, activation)
    try:
        work.scope = stage.scope if stage.scope.data else activation.scope
        work.scope = _make_scope_with_writes(work, Outcome(dict(writes)))
        if choose is not None:
            return _to_route(work, choose(work.board))
        return () if choose_of_kind is None else choose_of_kind(work)
    finally:
        work.scope = activation.scope


def _to_route(work: Work, choice: Any) -> list[Target]:
    """Return what `choose` has returned as a route: one target, several, or None."""
    targets = list(choice) if isinstance(choice, list | tuple) else [] if choice is None else [choice]
    return [work.send(*to) if isinstance(to, Send) else to for to in targets if to != END]


def _make_scope_with_input(work: Work) -> Scope:
    """Return the scope of a node that was sent an input, which it reads as `input`."""
    seen, event = work.scope.make_view(), work.event
    assert event is not None
    seen.data["input"] = get_sent_input(work, event)
    return seen


def _make_limit_error(work: Work, limit: int) -> SuperstepError:
    """L533: a graph has reached its limit of supersteps."""
    return _make_error(
        work, "L533", f"the limit of {limit} supersteps is reached",
        "a run that reaches its limit fails, even if nothing is left to run",
        "make sure that it ends earlier, or allow more: config={'recursion_limit': ...}",
    )  # fmt: skip


def _make_error(work: Work, code: str, what: str, why: str, do: str) -> SuperstepError:
    error = SuperstepError(Problem(code, what, str(work.node.place or f"node {work.node.id!r}"), why, do))
    cls = work.node.params.get("error_classes", {}).get(code)
    if cls is not None:
        error.__cause__ = cls(what)
    return error


def _drop_overwritten_additions(work: Work, outcome: Outcome) -> bool:
    """Drop what a node adds to keys that a sibling has replaced; return True if there was anything to drop.

    L530: two nodes of a superstep write a key that no reducer combines, or both replace its value.

    Raises:
        SuperstepError: L530.
    """
    stage = work.activation.frame.stage
    written = {} if stage is None else stage.scope.data
    if stage is None or not written:
        return False
    dropped = set()
    for key, value in [
        *outcome.writes.items(),
        *((path[0], value) for path, value in [*outcome.nested_writes, *work.own_writes]),
    ]:
        if key not in written:
            continue
        combined = type(value) is ReducedWrite
        if combined and key in stage.replaced and not replaces_value(value.parts):
            dropped.add(key)
        elif not combined or key in stage.replaced:
            raise _make_error(
                work, "L530", f"{key!r} is written by two nodes of the same superstep",
                "the nodes of a superstep do not see each other's writes, and no reducer combines them",
                f"declare a reducer for {key!r}, or let one node lead to the other",
            )  # fmt: skip
    if dropped:
        outcome.writes = {key: value for key, value in outcome.writes.items() if key not in dropped}
    return bool(dropped)


def _make_scope_with_writes(work: Work, outcome: Outcome) -> Scope:
    """Return the scope that the node sees, including its own writes."""
    seen, plan = work.scope.make_view(), work.run.plan
    for key, value in outcome.writes.items():
        put(seen, key, apply_write(seen.get(key), key, value, plan))
    if outcome.nested_writes or work.own_writes:
        work.scope, own = seen, work.own_writes
        work.own_writes = [*own, *outcome.nested_writes]
        seen = work.run.make_preview(work)
        work.own_writes = own
    return seen


def apply_write(old: Any, key: str, value: Any, plan: Plan) -> Any:
    """Return the frozen value of a key after a write; `old` is the frozen value before, or ABSENT."""
    if type(value) is ReducedWrite:
        return value.apply_to(old, key, plan)
    if type(value) is Append:
        return freeze([*(() if old is ABSENT else old), value.item])
    return value if value is ABSENT else freeze(value)
