"""Queries about a run at its current position: status, failure, writers, view."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from agentnb.board.values import ABSENT, thaw
from agentnb.engine.control.cursor import preview_deliveries
from agentnb.engine.control.interventions import get_current_activation, get_current_scope
from agentnb.engine.core.history import CANCELLED, ERROR, STATUS, UNCAUGHT, Event, Failure, History
from agentnb.engine.effects.crash_recovery import find_unanswered
from agentnb.engine.effects.recorded_calls import ASKED
from agentnb.engine.persistence import masked_values
from agentnb.errors import AgentNbError, AgentRuntimeError, Problem
from agentnb.expressions.paths import resolve_path
from agentnb.session.checks import find_unmet_requirements, make_requirements_problem
from agentnb.session.node_coverage import NodeCoverage, get_first_keys
from agentnb.session.pending import make_missing_problem
from agentnb.world.human_input import is_in_kernel, is_on_terminal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from agentnb.draw.run_view import RunView
    from agentnb.engine.control.breakpoints import Breakpoint
    from agentnb.engine.core.frames import Activation
    from agentnb.engine.core.run import Run
    from agentnb.session.limits import Limits

AFTER_FAILURE: Final = "fix the node or edit the board, then call retry(); or call skip() or back()"
ASKS: Final = frozenset({"answer", "approval"})  # what a person is asked; all others are paused for inspection


def get_status(run: Run, limits: Limits) -> str:
    """Return the status of a run that is not running, in one word."""
    for pending_step in run.pending_steps.values():
        if pending_step.is_held and pending_step.hold is not None:
            return "waiting" if pending_step.hold.kind in ASKS else "in_flight"
    if run.has_masked_values and masked_values.find_masked_paths(run):
        return "waiting"
    if not run.pending_steps and (calls := find_unanswered(run)):
        return "waiting" if any(call.kind in ASKED for call in calls) else "in_flight"
    if get_failure(run) is not None or find_unmet_requirements(run):
        return "failed"
    if run.queue_start >= run.current_history.push_ends[run.position - run.current_history.base]:
        return "idle" if run.plan.reacts else "finished"
    if limits.find_reached(run) is not None:
        return "exhausted"
    return "paused" if run.position else "ready"


def get_outcome(run: Run, limits: Limits) -> dict[str, Any] | None:
    """Return the status or outcome of a run, for its trace; None before it began.

    It has `status` and `steps`; if applicable, the `limit` or the `error`, the `score`, and at the end the `outputs`
    that the recipe declares.
    """
    status = get_status(run, limits)
    if not run.history.tip and status not in ("exhausted", "failed", "waiting", "in_flight"):
        return None
    outcome: dict[str, Any] = {"status": status, "steps": run.position}
    problem, score = get_problem(run), find_last_score(run)
    if score is not None:
        outcome["score"] = score
    declared = run.plan.recipe.outputs if status == "finished" else ()
    if outputs := {key: thaw(value) for key in declared if (value := run.root.scope.get(key)) is not ABSENT}:
        outcome["outputs"] = outputs
    if status == "exhausted":
        outcome["limit"] = limits.find_reached(run)
    if problem is not None:
        outcome["error"] = problem.what
    return outcome


def get_next_node(run: Run) -> str | None:
    """Return the id of the next node; None at the end."""
    activation = get_current_activation(run)
    if activation is not None:
        return activation.node.id
    deliveries, matched = preview_deliveries(run)
    queued = (run.get_node_id(number) for number in run.frontier()[matched:])
    return next((name for name, _ in deliveries), next(queued, None))


def get_events(run: Run) -> tuple[Event, ...]:
    """Return the events emitted so far by nodes and people, in order, including those of a step in flight."""
    flying = (event for pending_step in run.pending_steps.values() for event in pending_step.activation.work.emitted)
    return tuple(sorted((*run.events(), *flying), key=lambda event: event.seq))


def find_last_score(run: Run) -> float | None:
    """Return the last score that a node has given up to the current position; None if there is none."""
    for history, end in reversed(run.parts()):
        for step, note in sorted(history.notes.items(), reverse=True):
            if step <= end and note.score is not None:
                return note.score
    return None


def get_failure(run: Run) -> tuple[int, Failure] | None:
    """Return the step and the failure at the current position; None if there is no failure.

    A failed node that is retried and waits for a person is not a failure.
    """
    step = run.position
    for at in reversed(run.chain[: run.chain.index(run.current_history) + 1]):
        while step > at.base and at.step_flags[step - at.base] & STATUS == CANCELLED:
            step -= 1
        if step > at.base:
            return (step, at.errors[step]) if _still_failed(run, at, step - at.base) else None
    return None


def _still_failed(run: Run, at: History, row: int) -> bool:
    """Return True if the step of a row failed, nothing handled it, and its node is still the next one."""
    head = (
        run.current_history.push_activations[run.queue_start]
        if run.queue_start < run.current_history.push_ends[run.position - run.current_history.base]
        else None
    )
    failed = (
        bool(at.step_flags[row] & UNCAUGHT)
        and at.step_flags[row] & STATUS == ERROR
        and head == at.step_activations[row]
    )
    pending_step = run.pending_steps.get(at.step_activations[row]) if failed else None
    return failed and (pending_step is None or not pending_step.is_held)


def get_problem(run: Run) -> Problem | None:
    """Return the failure, or the question that cannot be answered here, without secrets."""
    problem = _find_problem(run)
    if problem is None:
        return None
    return replace(problem)  # masked again, with all secrets known by now


def _locate(activation: Activation) -> str:
    """Return the place of an activation's node in its source or, without one, its id."""
    return str(activation.node.node.place or f"node {activation.node.id!r}")


def _add_node(where: str, activation: Activation) -> str:
    """Return the place of a failure, with that of the node unless it already names the node or its source.

    What raises in a node may not know it: the blackboard, the environment, an expression without a place.
    """
    place = activation.node.node.place
    is_known = repr(activation.node.id) in where or (place is not None and place.file in where)
    return where if is_known else f"{_locate(activation)}, {where}"


def _find_problem(run: Run) -> Problem | None:
    refused = make_requirements_problem(run)
    if refused is not None:
        return refused
    error = get_failure(run)
    if error is not None:
        step, failure = error
        activation = get_current_activation(run)
        assert activation is not None
        if isinstance(failure.error, AgentNbError) and failure.error.problems:
            first = failure.error.problems[0]
            return replace(first, where=failure.add_line(f"step {step}, {_add_node(first.where, activation)}"))
        return Problem(
            "X100",
            f"node {activation.node.id!r} ({activation.node.kind.name}) failed: {failure.type}: {failure.message}",
            failure.add_line(f"step {step}, {_locate(activation)}"),
            _explain_unhandled(run, activation, failure),
            AFTER_FAILURE,
        )
    missing = masked_values.find_masked_paths(run)
    if missing and not is_in_kernel():
        return make_missing_problem(run, missing)
    waits = [pending_step.activation.node.id for pending_step in run.pending_steps.values()
             if pending_step.is_held and pending_step.hold and pending_step.hold.kind in ASKS]  # fmt: skip
    waits += [run.get_node_id(call.activation) for call in find_unanswered(run) if call.kind in ASKED]
    if waits and not is_in_kernel() and not is_on_terminal():
        names = ", ".join(map(repr, waits))
        return Problem(
            "X110",
            f"{names} waits for a person, and no one can be asked here",
            f"after step {run.position}",
            "the script has no answer left, and this is neither a notebook nor a terminal",
            "pass answers={NODE: [...]} when you create the session, or call session.answer(value)",
        )
    return None


def _explain_unhandled(run: Run, activation: Activation, failure: Failure) -> str:
    """Return why a failure stopped the run: which handlers apply to it, and which exist that do not."""
    around = [activation.node]
    frame = activation.frame
    while frame.parent is not None:
        around.append(run.plan.nodes[frame.row.owner])
        frame = frame.parent
    on_error = next((node.id for node in around if node.errors), None)
    on_timeout = next((node.id for node in around if node.timeouts), None)
    if isinstance(failure.error, AgentRuntimeError):
        return "it breaks a rule of the run, which no error edge handles"
    if failure.timeout:
        note = "" if on_error is None else f"; the error edge of {on_error!r} does not: a timeout is another failure"
        return f"no edge of kind 'timeout' handles this timeout (in polaris: add_timeout_handler){note}"
    note = "" if on_timeout is None else f"; the timeout edge of {on_timeout!r} handles only timeouts"
    return f"nothing in the recipe handles this failure (no error edge leads on){note}"


def find_writer(run: Run, text: str, at: int) -> int | None:
    """Return the step that last changed the value at a path as of step `at`; 0 for the inputs, None if nothing did."""
    return next((step for step, _, _ in iter_changes(run, text, at)), None)


def iter_changes(run: Run, text: str, at: int) -> Iterator[tuple[int, History, int]]:
    """Yield the writes that changed the value at a path up to step `at`, last first: step, history and write number.

    A write of `a` counts for `a.b` if `a.b` differs from before, and one of `a.b.0` for `a.b`.
    """
    scope = get_current_scope(run)
    path = resolve_path(text, scope.visible_items())
    numbers = {number for number, (owner, written) in enumerate(run.tables.codes)
               if owner == scope.id and str(written[0]) == path[0]}  # fmt: skip
    end = at
    for history in reversed(run.chain):
        if history.base > at:
            continue
        row = history.write_ends[min(end, history.tip) - history.base]
        for number in range(row - 1, -1, -1):
            if history.write_codes[number] >> 2 in numbers and history.changes(number, path):
                yield _get_step_of_write(history, number), history, number
        end = history.base


def blame(run: Run, text: str, at: int) -> list[dict[str, Any]]:
    """Return a row for each change of the value at a path up to step `at`, in order; see `Session.blame`."""
    path = resolve_path(text, get_current_scope(run).visible_items())[1:]
    rows = []
    for step, history, number in iter_changes(run, text, at):
        by_person = next(edit for each, row, edit in run.iter_write_rows(step) if (each, row) == (history, number))
        by_node = step > history.base and not by_person
        old, new = history.list_values(number, path)
        rows.append({
            "step": step,
            "node": run.get_node_id(history.step_activations[step - history.base]) if by_node else None,
            "actor": "node" if by_node else "input" if step == 0 and not by_person else "person",
            "old": old,
            "new": new,
        })  # fmt: skip
    return rows[::-1]


def _get_step_of_write(history: History, number: int) -> int:
    return history.base + bisect_right(history.write_ends, number)


def make_view(run: Run, seen: NodeCoverage, stops: Sequence[Breakpoint]) -> RunView:
    """Return the state of the run for a drawing, with the breakpoints at nodes and at event types."""
    from agentnb.draw.run_view import RunView

    nodes, tables = run.plan.nodes, run.tables
    head, failure = get_current_activation(run), get_failure(run)
    visited, wrote, read, taken, reactions = seen.up_to(run)
    last_writes, last_reads = _get_last(run)
    waiting = {pending_step.activation.node.id for pending_step in run.pending_steps.values() if pending_step.is_held}
    queue = [name for name, _ in preview_deliveries(run)[0]]
    queue += (
        nodes[tables.activations[number].node].id for number in run.frontier() if tables.activations[number].node >= 0
    )
    around = [] if head is None else _get_owners(run, head.frame)
    return RunView(
        current=get_next_node(run),
        next=frozenset(queue[1:]) | frozenset(around),
        visited=visited,
        failed=frozenset() if failure is None or head is None else frozenset({head.node.id}),
        waiting=frozenset(waiting),
        breakpoints=frozenset(row.node for row in stops if row.node is not None),
        board=get_current_scope(run).visible_items(),
        written=frozenset(last_writes),
        read=frozenset(last_reads),
        seen_reads=read,
        seen_writes=wrote,
        taken=taken,
        reactions=reactions,
        stops_at=frozenset(row.event for row in stops if row.event is not None and row.node is None),
    )


def _get_owners(run: Run, frame: Any) -> list[str]:
    owners = []
    while frame.parent is not None:
        owners.append(run.plan.nodes[frame.row.owner].id)
        frame = frame.parent
    return owners


def _get_last(run: Run) -> tuple[list[str], list[str]]:
    """Return the keys that the last step changed and read, of the scopes visible from the current position."""
    if run.position == 0:
        return [], []
    codes, seen = run.tables.codes, _get_scopes(run)
    known = run.chain[: run.chain.index(run.current_history) + 1]
    at = next(history for history in reversed(known) if history.base < run.position)
    row = run.position - at.base
    made = [(at, number) for number in range(at.write_ends[row - 1], at.write_ends[row])]
    for history in known[known.index(at) + 1 :]:  # forks that begin here: edits before their first step
        made += ((history, number) for number in range(history.write_ends[0]))
    changed = (codes[history.write_codes[number] >> 2] for history, number in made if history.changes(number))
    written_keys = [str(path[0]) for scope, path in changed if scope in seen]
    reads = at.read_codes[bisect_left(at.read_steps, run.position) : bisect_right(at.read_steps, run.position)]
    read = [str(path[0]) for scope, path in (codes[code >> 2] for code in reads) if scope in seen]
    activation = run.tables.activations[at.step_activations[row]]
    if not activation.purpose:  # reads by a node's inputs are static and not recorded
        read += get_first_keys(run.plan.nodes[activation.node].node)
    return written_keys, read


def _get_scopes(run: Run) -> set[int]:
    """Return the scopes visible from the current position: its own, and those it reads through to."""
    scopes, scope = set(), get_current_scope(run)
    while scope is not None:
        scopes.add(scope.id)
        scope = scope.parent  # type: ignore[assignment]  # the loop ends where there is none
    return scopes
