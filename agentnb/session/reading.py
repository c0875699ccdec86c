"""reading: what can be said of a run where it stands: its status, what failed, who wrote what, how it looks."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from agentnb.board.secrets import hidden
from agentnb.board.values import ABSENT, thaw
from agentnb.engine import masks
from agentnb.engine.effects import ASKED
from agentnb.engine.history import CANCELLED, ERROR, STATUS, UNCAUGHT, Failure, History
from agentnb.engine.people import current, here
from agentnb.engine.resuming import unanswered
from agentnb.errors import AgentNbError, Problem
from agentnb.expressions.paths import Path, resolve_path
from agentnb.session.requirements import refusal, unmet
from agentnb.world.people import in_kernel, on_terminal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentnb.draw.view import RunView
    from agentnb.engine.breakpoints import Breakpoint
    from agentnb.engine.run import Run
    from agentnb.recipe.model import Node
    from agentnb.session.limits import Limits
    from agentnb.session.seen import Seen


ASKS: Final = frozenset({"answer", "approval"})  # what a person is asked for; all else is held to be looked at


def status_of(run: Run, limits: Limits) -> str:
    """Return where a run that is not running stands, in one word."""
    for flight in run.flights.values():
        if flight.held and flight.hold is not None:
            return "waiting" if flight.hold.kind in ASKS else "in_flight"
    if run.masks and masks.unknown(run):
        return "waiting"
    if not run.flights and (calls := unanswered(run)):
        return "waiting" if any(call.kind in ASKED for call in calls) else "in_flight"
    if failure_of(run) is not None or unmet(run):
        return "failed"
    if run.pos >= run.at.s_pend[run.position - run.at.base]:
        return "idle" if run.plan.reacts else "finished"
    if limits.reached(run) is not None:
        return "exhausted"
    return "paused" if run.position else "ready"


def outcome_of(run: Run, limits: Limits) -> dict[str, Any] | None:
    """Return how a run stands or ended, for its trace; None before it began.

    It has `status` and `steps`; also the `limit` or the `error` where there is one, the `score` where one was given,
    and at the end the `outputs` that the recipe declares.
    """
    status = status_of(run, limits)
    if not run.history.tip and status not in ("exhausted", "failed"):
        return None
    outcome: dict[str, Any] = {"status": status, "steps": run.position}
    problem, score = problem_of(run), score_of(run)
    if score is not None:
        outcome["score"] = score
    declared = run.plan.recipe.outputs if status == "finished" else ()
    if outputs := {key: thaw(value) for key in declared if (value := run.root.scope.get(key)) is not ABSENT}:
        outcome["outputs"] = outputs
    if status == "exhausted":
        outcome["limit"] = limits.reached(run)
    if problem is not None:
        outcome["error"] = problem.what
    return outcome


def score_of(run: Run) -> float | None:
    """Return the last score that a node has given up to where the run stands; None where there is none."""
    for history, end in reversed(run.parts()):
        for step, note in sorted(history.notes.items(), reverse=True):
            if step <= end and note.score is not None:
                return note.score
    return None


def failure_of(run: Run) -> tuple[int, Failure] | None:
    """Return the step and the failure at which the run stands; None where it does not stand at one.

    A failed node that is tried once more and waits for a person is no failure any more.
    """
    step = run.position
    for at in reversed(run.chain[: run.chain.index(run.at) + 1]):
        while step > at.base and at.s_flag[step - at.base] & STATUS == CANCELLED:
            step -= 1
        if step > at.base:
            return (step, at.errors[step]) if _stands(run, at, step - at.base) else None
    return None


def _stands(run: Run, at: History, row: int) -> bool:
    """Say whether the step of a row failed, nothing handled it, and its node is still the next one."""
    head = run.at.p_act[run.pos] if run.pos < run.at.s_pend[run.position - run.at.base] else None
    failed = bool(at.s_flag[row] & UNCAUGHT) and at.s_flag[row] & STATUS == ERROR and head == at.s_act[row]
    again = run.flights.get(at.s_act[row]) if failed else None
    return failed and (again is None or not again.held)


def problem_of(run: Run) -> Problem | None:
    """Return what failed, or who is asked where nobody can answer, without the secrets that it may tell."""
    problem = _problem(run)
    if problem is None:
        return None
    what, where, why, do = map(hidden, (problem.what, problem.where, problem.why, problem.do))
    return replace(problem, what=what, where=where, why=why, do=do)


def _problem(run: Run) -> Problem | None:
    refused = refusal(run)
    if refused is not None:
        return refused
    found = failure_of(run)
    if found is not None:
        step, failure = found
        act = current(run)
        assert act is not None
        if isinstance(failure.error, AgentNbError) and failure.error.problems:
            first = failure.error.problems[0]
            return Problem(first.code, first.what, f"step {step}, {first.where}", first.why, first.do)
        return Problem(
            "X100",
            f"node {act.node.id!r} ({act.node.kind.name}) failed: {failure.type}: {failure.message}",
            f"step {step}, {act.node.node.place or 'node ' + repr(act.node.id)}",
            "nothing in the recipe handles this failure (no error edge leads on)",
            "mend the node or edit the board, then retry(); or skip() it, or go back()",
        )
    missing = masks.unknown(run)
    if missing and not in_kernel():
        names = ", ".join(map(repr, missing))
        return Problem("X142", f"values that were masked when the run was kept are missing: {names}",
                       f"after step {run.position}", "what is kept of a run holds no secrets, and its nodes need them",
                       "pass secrets={PATH: VALUE} to nb.open, or call session.answer(VALUE, PATH)")  # fmt: skip
    waits = [flight.act.node.id for flight in run.flights.values()
             if flight.held and flight.hold and flight.hold.kind in ASKS]  # fmt: skip
    waits += [run.node_of(call.act) for call in unanswered(run) if call.kind in ASKED]
    if waits and not in_kernel() and not on_terminal():
        names = ", ".join(map(repr, waits))
        return Problem(
            "X110",
            f"{names} waits for a person, and nobody can be asked here",
            f"after step {run.position}",
            "no answer is left in the script, and this is neither a notebook nor a terminal",
            "pass answers={node: [...]} to the Session, or call session.answer(value)",
        )
    return None


def who_wrote(run: Run, text: str, at: int) -> int | None:
    """Return the step that wrote what stands at a path after step `at`; 0 for the inputs, None where nobody did.

    A write or a delete of `a` counts for `a.b`, and one of `a.b.0` for `a.b`.
    """
    path = tuple(map(str, resolve_path(text, here(run).seen())))
    end = at
    for history in reversed(run.chain):
        if history.base > at:
            continue
        row = history.s_wend[min(end, history.tip) - history.base]
        for number in range(row - 1, -1, -1):
            scope, written = run.tables.codes[history.w_code[number] >> 2]
            if scope == here(run).id and _touches(tuple(map(str, written)), path):
                return _step_of_write(history, number)
        end = history.base
    return None


def _touches(written: Path, path: Path) -> bool:
    size = min(len(written), len(path))
    return written[:size] == path[:size]


def _step_of_write(history: History, number: int) -> int:
    return history.base + bisect_right(history.s_wend, number)


def view_of(run: Run, seen: Seen, stops: Sequence[Breakpoint]) -> RunView:
    """Return the run as a picture shows it, with the breakpoints at nodes and at types of events."""
    from agentnb.draw.view import RunView

    nodes, tables = run.plan.nodes, run.tables
    head, found = current(run), failure_of(run)
    visited, wrote, read, taken, reactions = seen.up_to(run)
    for name in visited:
        if keys := first_keys(run.plan.recipe.nodes[name]):
            read.setdefault(name, set()).update(keys)
    last_writes, last_reads = _last(run)
    waiting = {flight.act.node.id for flight in run.flights.values() if flight.held}
    queue = [nodes[tables.acts[number].node].id for number in run.frontier() if tables.acts[number].node >= 0]
    around = [] if head is None else _owners(run, head.frame)
    return RunView(
        current=None if head is None else head.node.id,
        next=frozenset(queue[1:]) | frozenset(around),
        visited=visited,
        failed=frozenset() if found is None or head is None else frozenset({head.node.id}),
        waiting=frozenset(waiting),
        breakpoints=frozenset(row.node for row in stops if row.node is not None),
        board=here(run).seen(),
        written=frozenset(last_writes),
        read=frozenset(last_reads),
        seen_reads=read,
        seen_writes=wrote,
        taken=taken,
        reactions=reactions,
        stops_at=frozenset(row.event for row in stops if row.event is not None and row.node is None),
    )


def _owners(run: Run, frame: Any) -> list[str]:
    found = []
    while frame.parent is not None:
        found.append(run.plan.nodes[frame.row.owner].id)
        frame = frame.parent
    return found


def _last(run: Run) -> tuple[list[str], list[str]]:
    """Return the keys that the last step wrote and read, of the scopes that are seen from where the run stands."""
    at, row = run.at, run.position - run.at.base
    codes, seen = run.tables.codes, _scopes(run)
    start = at.s_wend[row - 1] if row else 0
    written = [codes[code >> 2] for code in at.w_code[start : at.s_wend[row]]]
    wrote = [str(path[0]) for scope, path in written if scope in seen]
    if run.position == 0:
        wrote = []
    reads = at.r_code[bisect_left(at.r_step, run.position) : bisect_right(at.r_step, run.position)]
    read = [str(path[0]) for scope, path in (codes[code >> 2] for code in reads) if scope in seen]
    act = run.tables.acts[at.s_act[row]] if row else None
    if act is not None and not act.what:  # what a node's inputs name is read each time, and not recorded
        read += first_keys(run.plan.nodes[act.node].node)
    return wrote, read


def _scopes(run: Run) -> set[int]:
    """Return the scopes that are seen from where a run stands: its own, and those that it reads through to."""
    found, scope = set(), here(run)
    while scope is not None:
        found.add(scope.id)
        scope = scope.parent  # type: ignore[assignment]  # the loop ends where there is none
    return found


def first_keys(node: Node) -> list[str]:
    """Return the board keys that a node's inputs read."""
    return [str(path[0]) for path in (node.inputs or {}).values()]
