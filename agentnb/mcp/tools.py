"""What an assistant can do with a run: one row per tool, over the verbs of a session."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Literal

from agentnb.board.masking import find_secret_word, to_display
from agentnb.board.paths import get_at
from agentnb.board.values import ABSENT
from agentnb.engine.control.interventions import get_current_activation
from agentnb.errors import ExecutionError, Problem
from agentnb.expressions.paths import resolve_path
from agentnb.mcp.answers import list_rows, shorten_error, shorten_items, shorten_value, to_line
from agentnb.session.checks import refuse_step
from agentnb.session.run_list import run_query
from agentnb.session.state import get_state

if TYPE_CHECKING:
    from agentnb.engine.control.breakpoints import Breakpoint
    from agentnb.mcp.open_runs import OpenRuns
    from agentnb.session import Session
    from agentnb.trace.trace import SimulationStep

MOST_STEPS: Final = 10_000  # of one call
SECONDS: Final = 10.0  # the time limit of one call, if the assistant names none
MOST_SECONDS: Final = 60.0
_LONG: Final = 6_000  # characters of a value that was asked for by its path
_LINES: Final = 40  # lines of an explanation

Needs = Literal["nothing", "own", "changes"]
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Tool:
    """A row: its name, which is a method of `Tools`, and what it needs.

    `own`: that changes are allowed, or that the run is a recording, which the server has opened for itself.
    """

    name: str
    needs: Needs = "nothing"


TOOLS: Final = (
    Tool("list_runs"),
    Tool("open_run"),
    Tool("where"),
    Tool("steps"),
    Tool("step_details"),
    Tool("board"),
    Tool("why"),
    Tool("why_not"),
    Tool("who_wrote"),
    Tool("slice"),
    Tool("find"),
    Tool("compare"),
    Tool("breakpoints"),
    Tool("step", "own"),
    Tool("back", "own"),
    Tool("goto", "own"),
    Tool("run_until", "own"),
    Tool("run_back_until", "own"),
    Tool("pause", "own"),
    Tool("add_breakpoint", "own"),
    Tool("remove_breakpoint", "own"),
    Tool("fork", "changes"),
    Tool("edit", "changes"),
    Tool("answer", "changes"),
)


class Tools:
    """The tools. Each method's docstring is what the assistant reads; `run` is always the id of a run."""

    def __init__(self, runs: OpenRuns) -> None:
        self._runs = runs

    # -- runs ---------------------------------------------------------------------------------------------------------

    def list_runs(self, contains: str = "", status: str = "", recipe: str = "", since: str = "", until: str = "",
                  after: str = "") -> Json:  # fmt: skip
        """List the runs: the open ones, then those of the stores, the newest first. `open_run` opens one.

        Args:
            contains: only runs whose id or name contains this.
            status: only runs of this status, such as failed, finished, waiting or interrupted.
            recipe: only runs of the recipe of this name.
            since: only runs created then or later, such as 2026-01-31 or 2026-01-31T18:30; UTC.
            until: only runs created then or earlier.
            after: the id of a run: only runs listed after it.
        """
        every = {"contains": contains, "status": status, "recipe": recipe, "since": since, "until": until,
                 "after": after}  # fmt: skip
        filters: dict[str, Any] = {name: value for name, value in every.items() if value}
        rows = self._runs.rows(run_query(**filters))
        listed = ({name: to_line(value, 200) if isinstance(value, str) else value for name, value in row.items()}
                 for row in rows)  # fmt: skip
        answer = list_rows(listed, lambda _: "")
        if "more" in answer:
            last = answer["rows"][-1]["run"]
            options = ", ".join(f"{name}={value!r}" for name, value in (filters | {"after": last}).items())
            answer["more"] = f"list_runs({options})"
        return answer

    def open_run(self, run: str) -> Json:
        """Open a run and describe its recipe: nodes, edges, inputs. It is then the run that other tools use by default.

        Args:
            run: the id that list_runs shows.
        """
        session = self._runs.get(run)
        recipe = session.recipe
        nodes = ({"id": to_line(node.id, 100), "kind": node.kind} for node in recipe.nodes.values())
        edges = (f"{to_line(edge.source, 100)} -> {to_line(edge.target or 'the end', 100)}"
                 + (f" if {to_line(edge.condition, 100)}" if edge.condition else "")
                 for edge in recipe.edges)  # fmt: skip
        return {
            **self._describe_status(session),
            "recipe": to_line(recipe.name, 200),
            "dialect": recipe.dialect,
            "inputs": shorten_items(session.inputs, limit=20),
            "nodes": list_rows(nodes, lambda more: f"{len(recipe.nodes) - more} more", limit=60),
            "edges": list_rows(edges, lambda more: f"{len(recipe.edges) - more} more", limit=60),
            "read_only": not self._runs.changes or self._runs.is_free(session),
        }

    def where(self, run: str = "") -> Json:
        """Report the state of a run: position, status, next nodes, open questions, error, what stopped it.

        Args:
            run: its id; by default the run used last.
        """
        return self._describe_status(self._runs.get(run))

    # -- the record ---------------------------------------------------------------------------------------------------

    def steps(self, first: int = 1, node: str = "", run: str = "") -> Json:
        """List recorded steps: number, node, status, the keys that were written. `step_details` shows one of them.

        Args:
            first: the number of the first step.
            node: only steps of this node.
            run: the run's id; by default the run used last.
        """
        session = self._runs.get(run)
        all_steps = session.trace.steps
        rows = (
            _make_row(step) for step in islice(all_steps, max(first, 1) - 1, None) if not node or step.node_id == node
        )
        answer = list_rows(rows, lambda _: "")
        if "more" in answer:
            answer["more"] = f"steps(first={answer['rows'][-1]['step'] + 1})"
        return {"run": session.run_id, "last_step": len(all_steps), **answer}

    def step_details(self, step: int, run: str = "") -> Json:
        """Show one step: inputs, outputs, writes with the values before, reads, error, thought, its calls.

        Args:
            step: its number, from 1.
            run: the run's id; by default the run used last.
        """
        session = self._runs.get(run)
        details = _get_step(session, step)
        writes = ({"path": to_line(write.key, 200), "op": write.op, "scope": to_line(write.scope, 100),
                   "old": "(absent)" if write.old is ABSENT else shorten_value(write.old, 150, key=write.key),
                   "new": "(absent)" if write.new is ABSENT else shorten_value(write.new, 150, key=write.key)}
                  for write in details.writes)  # fmt: skip
        calls = (
            {
                "kind": call.kind,
                "name": to_line(call.name, 100),
                "arguments": shorten_value(to_display(call.arguments), 300),
                **(
                    {"error": to_line(call.error, 300)}
                    if call.error
                    else {"result": shorten_value(to_display(call.result), 300)}
                ),
            }
            for call in _iter_calls(session, step)
        )
        return {
            "run": session.run_id,
            **_make_row(details),
            "frame": to_line(details.frame, 100),
            "seconds": round(details.seconds, 6),
            "inputs": shorten_items(details.inputs, limit=15),
            "writes": list_rows(
                writes, lambda more: f"writes {more + 1} and later: board(path=..., at={step})", limit=15
            ),
            "reads": [to_line(read.key, 100) for read in islice(details.reads, 30)],
            "calls": list_rows(calls, lambda more: f"calls {more + 1} and later are not shown", limit=5),
            **({"thought": to_line(details.thought, 600)} if details.thought else {}),
        }

    def board(self, path: str = "", at: int | None = None, run: str = "") -> Json:
        """Show the blackboard, or the value at a path, after a step.

        Args:
            path: such as `order.total` or `items.0`; empty for all keys, each cut.
            at: after which step (0: the start); by default the current position.
            run: the run's id; by default the run used last.
        """
        session = self._runs.get(run)
        state = get_state(session)
        if at is None:
            head = get_current_activation(state.run)
            data = state.run.root.scope.visible_items() if head is None else head.scope.visible_items()
        else:
            refuse_step(get_state(session), at)
            data = session.trace.reading().replica(at).data[0]
        answer: Json = {"run": session.run_id, "at": session.position if at is None else at}
        if not path:
            keys = ({"key": to_line(key, 100), "value": shorten_value(to_display(value, key), 200, key=key)}
                    for key, value in data.items())  # fmt: skip
            return answer | list_rows(keys, lambda more: f"{len(data) - more} more keys: board(path=KEY)", limit=60)
        parts = resolve_path(path, data)
        value: Any = data.get(parts[0], ABSENT)
        value = get_at(value, parts[1:]) if len(parts) > 1 and value is not ABSENT else value
        if value is ABSENT:
            raise ExecutionError(
                Problem("X524", f"the board has no value at {path!r}", f"after step {answer['at']} of {session.run_id}",
                        f"its keys are: {', '.join(to_line(key, 60) for key in islice(data, 20)) or 'none'}",
                        "use one of them, or a path inside it")
            )  # fmt: skip
        secret = find_secret_word(parts)
        return answer | {"path": path, "value": shorten_value(to_display(value, secret), _LONG, key=secret)}

    # -- explained ----------------------------------------------------------------------------------------------------

    def why(self, at: int | None = None, run: str = "") -> Json:
        """Explain why a step led to the next: each condition of its edges, with the values that it read.

        Args:
            at: the number of the step; by default the last one.
            run: the run's id; by default the run used last.
        """
        session = self._runs.get(run)
        return {"run": session.run_id, "why": _split_lines(repr(session.why(at)))}

    def why_not(self, node: str, at: int | None = None, run: str = "") -> Json:
        """Explain why a node did not run up to a step.

        Args:
            node: its id.
            at: up to which step; by default the current position.
            run: the run's id; by default the run used last.
        """
        session = self._runs.get(run)
        return {"run": session.run_id, "why_not": _split_lines(repr(session.why_not(node, at)))}

    def who_wrote(self, path: str, at: int | None = None, run: str = "") -> Json:
        """Return the step that last wrote the value at a path of the board; 0 stands for the inputs.

        Args:
            path: such as `order.total`.
            at: after which step; by default the current position.
            run: the run's id; by default the run used last.
        """
        session = self._runs.get(run)
        step = session.who_wrote(path, at)
        row = {} if not step else _make_row(session.trace.steps[step - 1])
        return {"run": session.run_id, "path": path, "step": step, **row}

    def slice(self, path: str, at: int | None = None, run: str = "") -> Json:
        """Return what led to a value: the writes, reads, conditions and calls it depends on, the nearest first.

        Args:
            path: such as `order.total`.
            at: after which step; by default the current position.
            run: the run's id; by default the run used last.
        """
        session = self._runs.get(run)
        value_slice = session.slice(path, at)
        rows = ({"step": row.step, "node": to_line(row.node or "", 100), "key": to_line(row.key, 200), "via": row.via,
                 "distance": row.distance} for row in value_slice.rows)  # fmt: skip
        steps = value_slice.steps[:200]
        return {"run": session.run_id, "path": path, "at": value_slice.at, "steps": steps,
                **list_rows(rows, lambda more: f"{len(value_slice) - more} more, at a greater distance")}  # fmt: skip

    def find(self, condition: str, first: int = 0, run: str = "") -> Json:
        """Return the steps after which a condition holds; nothing runs.

        Args:
            condition: an expression of the board, such as `total > 100` or `"refund" in reply`.
            first: the first step of interest.
            run: the run's id; by default the run used last.
        """
        session = self._runs.get(run)
        matching = [step for step in session.find(condition) if step >= first]
        answer = {"run": session.run_id, "holds_after": matching[:200], "count": len(matching)}
        return answer | ({"more": f"find({condition!r}, first={matching[200]})"} if len(matching) > 200 else {})

    def compare(self, run_a: str, run_b: str) -> Json:
        """Compare two runs: the first divergence with what led to it, and the steps that differ.

        Args:
            run_a: the id of one run.
            run_b: the id of the other.
        """
        from agentnb.analysis.compare import compare

        comparison = compare(self._runs.get(run_a), self._runs.get(run_b))
        first = comparison.first_divergence
        if first is None:
            return {"same": True, "steps": len(comparison.rows)}
        rows = (to_line(each, 300) for each in comparison.differences)
        slices = [None if part is None else part.lines(8) for part in comparison.slices]
        return {
            "same": False,
            "first_divergence": {"step_a": first.step_a, "step_b": first.step_b, "node": to_line(first.node or "", 100),
                                 "path": to_line(first.path, 200), "reason": to_line(first.reason, 600)},
            "led_to_it": {"a": slices[0], "b": slices[1]},
            "differences": list_rows(rows, lambda more: f"{len(comparison.differences) - more} more", limit=30),
        }  # fmt: skip

    # -- moved --------------------------------------------------------------------------------------------------------

    async def step(self, n: int = 1, run: str = "", seconds: float = SECONDS) -> Json:
        """Run the next nodes; in a recording, move along its steps. After going back, this begins a new branch.

        Args:
            n: how many steps.
            run: the run's id; by default the run used last.
            seconds: the time limit; at most 60.
        """
        session = self._runs.get(run)
        start = session.position
        await session.astep(min(max(n, 1), MOST_STEPS))
        return self._describe_move(session, start)

    def back(self, n: int = 1, run: str = "") -> Json:
        """Go back; no step is lost.

        Args:
            n: how many steps.
            run: the run's id; by default the run used last.
        """
        session = self._runs.get(run)
        session.back(n)
        return self._describe_status(session)

    def goto(self, step: int, run: str = "") -> Json:
        """Go to the position after a recorded step; 0 is the start.

        Args:
            step: its number.
            run: the run's id; by default the run used last.
        """
        session = self._runs.get(run)
        session.goto(step)
        return self._describe_status(session)

    async def run_until(self, until: str = "", max_steps: int = 100, run: str = "", seconds: float = SECONDS) -> Json:
        """Run until a node is next, a condition holds, a breakpoint, a question to a person, or the end.

        In a recording this moves along the recorded steps.

        Args:
            until: the id of a node, or a condition such as `total > 100`; empty: to the end.
            max_steps: the most steps of this call.
            run: the run's id; by default the run used last.
            seconds: the time limit; at most 60. The run then stops after the node at work.
        """
        session = self._runs.get(run)
        start = session.position
        await session.arun(until or None, min(max(max_steps, 1), MOST_STEPS))
        return self._describe_move(session, start)

    async def run_back_until(self, until: str = "", run: str = "", seconds: float = SECONDS) -> Json:
        """Go back until a node is next, a condition holds, a breakpoint is met, or the start is reached.

        Args:
            until: the id of a node, or a condition; empty: to a breakpoint or the start.
            run: the run's id; by default the run used last.
            seconds: the time limit; at most 60.
        """
        session = self._runs.get(run)
        await session.arun_back(until or None)
        return self._describe_status(session)

    def pause(self, run: str = "") -> Json:
        """Pause a run that is moving: no further node starts; the one at work ends first.

        Args:
            run: the run's id; by default the run used last.
        """
        session = self._runs.get(run)
        session.pause()
        return self._describe_status(session)

    def breakpoints(self, run: str = "") -> Json:
        """List the breakpoints of a run, with their hits.

        Args:
            run: the run's id; by default the run used last.
        """
        session = self._runs.get(run)
        rows = ({**_describe_breakpoint(row), "hits": row.hits, "enabled": row.enabled} for row in session.breakpoints)
        return {
            "run": session.run_id,
            **list_rows(rows, lambda more: f"breakpoints {more + 1} and later are not shown"),
        }

    def add_breakpoint(self, node: str | None = None, edge: list[str] | None = None, key: str | None = None,
                       when: str | Json | None = None, error: bool | str | None = None, step: int | None = None,
                       event: str | None = None, call: str | None = None, in_place: bool = False,
                       no_progress: bool = False, budget: float | None = None,
                       side: Literal["before", "after"] = "before", on_hit: int = 1, once: bool = False,
                       log: str = "", run: str = "") -> Json:  # fmt: skip
        """Add a breakpoint: runs stop where all of its clauses hold. With `log` it writes a message instead.

        Args:
            node: the id of a node.
            edge: the ids of the two nodes of an edge, such as ["sort", "reply"]; where the edge is taken.
            key: a path of the board, whenever it is written.
            when: a condition, such as `total > 100`, or a JsonLogic rule.
            error: true for any failure, or the name of an exception class.
            step: the number of a step.
            event: the type of an event.
            call: the kind or name of what a node calls, such as `llm`, `tool`, or `*` for any.
            in_place: true for a step that changed a value in place that it had read.
            no_progress: true for a node that sees the same board as at an earlier visit.
            budget: the used share of a limit, such as 0.8.
            side: before or after the node.
            on_hit: stop at this hit.
            once: whether it is removed after the first stop.
            log: a template of the board, such as `total is {{ total }}`. The message is logged; runs do not stop.
            run: the run's id; by default the run used last.
        """
        session = self._runs.get(run)
        clauses: dict[str, Any] = {
            "edge": None if edge is None else tuple(edge), "key": key, "when": when, "error": error, "step": step,
            "event": event, "call": call, "in_place": in_place, "no_progress": no_progress, "budget": budget,
            "side": side, "on_hit": on_hit,
        }  # fmt: skip
        if log:
            row = session.breakpoints.log(log, node, **clauses)
        else:
            row = session.breakpoints.add(node, **clauses, once=once)
        return {"run": session.run_id, **_describe_breakpoint(row)}

    def remove_breakpoint(self, id: int, run: str = "") -> Json:
        """Remove a breakpoint.

        Args:
            id: its number, as `breakpoints` shows.
            run: the run's id; by default the run used last.
        """
        session = self._runs.get(run)
        session.breakpoints.remove(id)
        return {"run": session.run_id, "removed": id}

    # -- changed ------------------------------------------------------------------------------------------------------

    def fork(self, at: int | None = None, edit: dict[str, Any] | None = None, name: str = "", note: str = "",
             expect: str = "", run: str = "") -> Json:  # fmt: skip
        """Fork a run: a new run that shares the steps so far, to try a change without touching the original.

        The fork is then the run that other tools use by default.

        Args:
            at: the last step that is shared; by default the current position.
            edit: values to set in the fork, by path.
            name: its name.
            note: why it is made: the hypothesis.
            expect: a condition that the fork should satisfy; `where` and `compare` say whether it does.
            run: the run's id; by default the run used last.
        """
        session = self._runs.get(run)
        child = session.fork(at, name or None, edit, note=note, expect=expect or None)
        self._runs.add(child)
        return {"parent": session.run_id, **self._describe_status(child)}

    def edit(self, changes: dict[str, Any], run: str = "") -> Json:
        """Write values on the board at the current position. The edit is recorded under the assistant's name.

        Args:
            changes: path -> value.
            run: the run's id; by default the run used last.
        """
        session = self._runs.get(run)
        session.edit(changes)
        return self._describe_status(session)

    def answer(self, value: Any, node: str | None = None, run: str = "") -> Json:
        """Answer the question that a node waits for. Approvals are not answered here: they belong to a person.

        Args:
            value: the answer.
            node: which of the waiting nodes, if there are several; the path of a masked value.
            run: the run's id; by default the run used last.
        """
        session = self._runs.get(run)
        start = session.position
        session.answer(value, node)
        return self._describe_move(session, start)

    # -- shared -------------------------------------------------------------------------------------------------------

    def _describe_status(self, session: Session) -> Json:
        state = get_state(session)
        pending = [{"kind": each.kind, "node": to_line(each.node, 100), "name": to_line(each.name, 100),
                    "about": shorten_value(each.arguments, 300)} for each in session.pending[:5]]  # fmt: skip
        problem, stopped, holds = session.error, session.stopped_by, session.expectation_holds
        return {
            "run": session.run_id,
            "position": session.position,
            "last_step": state.run.history.tip,
            "status": str(session.status),
            "next": [to_line(each.node, 100) for each in islice(session.frontier, 10)],
            **({"pending": pending} if pending else {}),
            **({"error": _format_problem(problem)} if problem is not None else {}),
            **({"stopped_by": to_line(stopped)} if stopped is not None else {}),
            **({"expectation_holds": holds} if holds is not None else {}),
        }

    def _describe_move(self, session: Session, before: int) -> Json:
        steps = session.trace.steps
        count = session.position - before
        last = [
            _make_row(steps[number - 1])
            for number in range(max(session.position - 4, before + 1), session.position + 1)
        ]
        return {**self._describe_status(session), "moved": count, "last": last}


def _format_problem(problem: Problem) -> str:
    """Return a Problem, cut: a long text of what happened leaves room for the other parts."""
    return to_line(replace(problem, what=to_line(problem.what, 700)), 1500)


def _describe_breakpoint(row: Breakpoint) -> Json:
    return {"id": row.id, "breakpoint": to_line(row), **({"log": to_line(row.log, 200)} if row.log else {})}


def _make_row(step: SimulationStep) -> Json:
    """Return a step in a few words."""
    written_keys = [to_line(key, 60) for key in islice(step.outputs, 8)]
    return {
        "step": step.step,
        "node": to_line(step.node_id, 100),
        "status": step.status,
        **({"phase": step.phase} if step.phase != "run" else {}),
        **({"wrote": written_keys} if written_keys else {}),
        **({"error": shorten_error(step.error)} if step.error else {}),
    }


def _get_step(session: Session, number: int) -> SimulationStep:
    """Return a step by its number.

    Raises:
        ExecutionError: X111, there is no such step.
    """
    refuse_step(get_state(session), number)
    return session.trace.steps[max(number, 1) - 1]


def _iter_calls(session: Session, step: int) -> Iterator[Any]:
    """Yield the calls of a step."""
    history, _ = session.trace.reading().owner(step)
    return (call for call in history.calls if call.step == step)


def _split_lines(text: str) -> list[str]:
    lines = text.splitlines()
    more = [f"{len(lines) - _LINES} more lines"] if len(lines) > _LINES else []
    return [to_line(each, 300) for each in lines[:_LINES]] + more


def parse_seconds(arguments: Mapping[str, Any]) -> float:
    """Return the time limit of a call."""
    seconds = arguments.get("seconds", SECONDS)
    return min(max(float(seconds), 0.1), MOST_SECONDS) if isinstance(seconds, int | float) else SECONDS


__all__ = ["TOOLS", "Tool", "Tools", "parse_seconds"]
