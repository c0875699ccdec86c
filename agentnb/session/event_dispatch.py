"""Dispatch events to hooks: before a node begins, and after its step.

All fields of an event are read from the rows of the run, so that going back and forth again yields the same events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from inspect import iscoroutinefunction
from threading import RLock
from typing import TYPE_CHECKING, Any, Final

from agentnb.engine.control.breakpoints import get_last_step
from agentnb.engine.core.frames import Activation
from agentnb.engine.core.history import (
    AGAIN,
    CANCELLED,
    COUNTED,
    ENTER,
    ERROR,
    LEAVE,
    OK,
    RUN,
    STATUS,
    ActivationRow,
    History,
)
from agentnb.engine.core.run import DONE, FAILED, SUSPENDED, Run
from agentnb.errors import format_error_line
from agentnb.kinds.loop import MAX_ROUNDS
from agentnb.kinds.typed_values import SystemContext
from agentnb.session.schedules import GraphEvent, HooksAPI, Schedule

if TYPE_CHECKING:
    from agentnb.engine.core.work import Perform, Work
    from agentnb.recipe.model import Node
    from agentnb.session.state import State
    from agentnb.world.effect import Effect

After = Callable[[Activation, int], int]
# Kinds reported under schedules of their own instead of a system's; joins are not reported.
FAMILIES: Final = {
    "decision": "Decision",
    "switch": "Switch",
    "router": "Switch",
    "loop": "Loop",
    "parallel": "Parallel",
    "join": "",
}


def attach(state: State, after: After) -> After:
    """Return the callback for each step of a session, with calls of its hooks, if any, before nodes and after steps."""
    api, run = state.hooks.schedules, state.run
    if api is None:
        return after
    telling = HookNotifier(state, api, run)
    if run.wrap_perform is None:
        for activation in run.live_activations.values():
            activation.perform = telling.wrap_perform(activation, run.plan.performs[activation.node.index])
    run.wrap_perform, run.on_retry = telling.wrap_perform, telling.report_retry
    return lambda activation, code: telling.report_step(activation, code, after)


class HookNotifier:
    """Notifies the hooks of one session of what one of its runs does."""

    def __init__(self, state: State, api: HooksAPI, run: Run) -> None:
        self.state, self.api, self.run = state, api, run
        self.lock = RLock()  # nodes of branches may begin in separate threads

    # -- before a node -------------------------------------------------------------------------------------------

    def wrap_perform(self, activation: Activation, perform: Perform) -> Perform:
        """Return the function of a node, preceded by the notification; async functions stay async."""
        if activation.purpose or not FAMILIES.get(activation.node.kind.name, "System"):
            return perform
        call: Any = perform
        if iscoroutinefunction(call):

            async def report_and_call(work: Work) -> Any:
                self.report_start(activation)
                return await call(work)

            return report_and_call

        def report_start(work: Work) -> Any:
            self.report_start(activation)
            return call(work)

        return report_start

    def report_start(self, activation: Activation) -> None:
        """Report the start of a node, and before the first one the start of the run."""
        run = self.run
        if run.position == 0 and all(
            pending_step.activation is activation for pending_step in run.pending_steps.values()
        ):
            nodes = run.plan.recipe.nodes.values()
            names = tuple((node.id, node.label or node.id) for node in nodes)
            self._notify(GraphEvent(Schedule.OnGraphStart, self.state.run_id, node_count=len(names), node_map=names))
        node, family = activation.node.node, FAMILIES.get(activation.node.kind.name, "System")
        self._notify_node(f"On{family}Start", activation, **_get_node_fields(node, family))

    def report_retry(self, work: Work, effect: Effect, attempt: int, error: Exception) -> None:
        """Report the retry of a node's call."""
        error_text = format_error_line(error)
        self._notify_node("OnSystemRetry", work.activation, attempt=attempt, error=error_text)

    # -- after a step --------------------------------------------------------------------------------------------

    def report_step(self, activation: Activation, code: int, after: After) -> int:
        """Report what a step has done, then call the next callback."""
        if code != SUSPENDED:
            run = self.run
            history, row = get_last_step(run)
            for number in range(row, run.position - history.base + 1):
                self._step(history, number, activation)
            if code == DONE:
                took = (history.end_times[row] - run.parts()[0][0].end_times[0]) / 1e9
                self._notify(
                    GraphEvent(
                        Schedule.OnGraphComplete, self.state.run_id, nodes_executed=run.counted_steps, duration=took
                    )
                )
            elif code == FAILED:
                failure = history.errors.get(history.base + row)
                text = "" if failure is None else failure.text
                self._notify_node("OnGraphFailure", activation, error=text)
        return after(activation, code)

    def _step(self, history: History, row: int, activation: Activation) -> None:
        """Report what the step of a row has done."""
        run, flag = self.run, history.step_flags[row]
        if row <= 0 or history.step_activations[row] >= len(run.tables.activations):
            return
        of, phase, status = run.tables.activations[history.step_activations[row]], flag & 3, flag & STATUS
        node = run.plan.nodes[of.node].node
        family = FAMILIES.get(node.kind, "System")
        if status == CANCELLED:
            self._notify_row("OnBranchCancelled", of)
        elif status == ERROR and family == "System":
            self._report_failure(history, row, of, node)
        elif status == OK and family == "Loop" and phase in (ENTER, AGAIN):
            iterations = run.list_inner_frames(activation)[0].iteration - 1 if phase == AGAIN else 0
            self._notify_row("OnLoopIteration", of, iteration=iterations)
        elif status == OK and family and phase in (RUN, LEAVE):
            self._report_end(history, row, of, node, family)

    def _report_failure(self, history: History, row: int, of: ActivationRow, node: Node) -> None:
        failure = history.errors[history.base + row]
        text = failure.text
        if failure.timeout:
            self._notify_row("OnSystemTimeout", of, error=text, timeout=node.params.get("timeout"))
        else:
            self._notify_row("OnSystemError", of, error=text)

    def _report_end(self, history: History, row: int, of: ActivationRow, node: Node, family: str) -> None:
        """Report the end of a node, with what was inside it."""
        step, entered, inside = history.base + row, history.start_times[row], 0
        rounds = 0 if node.bodies else node.params.get("times") or 0  # without a body only the rounds count
        if history.step_flags[row] & 3 == LEAVE:
            entered, inside, rounds = self._get_position(of, step)
        took = (history.end_times[row] - entered) / 1e9
        note = history.notes.get(step)
        seen = note.observation if note is not None and isinstance(note.observation, dict) else {}
        match family:
            case "Decision":
                self._notify_row("OnDecisionComplete", of, selected_branch=seen.get("branch"), duration=took)
            case "Switch":
                case = seen.get("case", seen.get("decision"))
                chosen = {
                    "selected_case": None if case is None else str(case),
                    "used_default": seen.get("used_default"),
                }
                self._notify_row("OnSwitchComplete", of, **_get_node_fields(node, family), **chosen, duration=took)
            case "Loop":
                self._notify_row("OnLoopEnd", of, iterations=rounds, nodes_executed=inside, duration=took)
            case "Parallel":
                node_fields = _get_node_fields(node, family)
                self._notify_row("OnParallelComplete", of, total_nodes_executed=inside, duration=took, **node_fields)
            case _:
                self._notify_row("OnSystemComplete", of, duration=took)

    def _iter_back(self, step: int) -> Iterator[tuple[History, int]]:
        """Yield the rows of the steps before one, last first."""
        for history, end in reversed(self.run.parts()):
            for number in range(min(end, step - 1), history.base, -1):
                yield history, number - history.base

    def _get_position(self, of: ActivationRow, step: int) -> tuple[int, int, int]:
        """Return when a composite node was entered, how many nodes began inside, and how often its body did."""
        rounds, counted = 1, list[int]()
        for history, row in self._iter_back(step):
            other, flag = self.run.tables.activations[history.step_activations[row]], history.step_flags[row]
            if (other.node, other.frame) == (of.node, of.frame) and flag & STATUS == OK:
                if flag & 3 == ENTER:
                    opened = set(history.opened_frames.get(history.base + row, ()))
                    return history.start_times[row], sum(self._is_within(frame, opened) for frame in counted), rounds
                rounds += flag & 3 == AGAIN
            elif flag & COUNTED and flag & STATUS != CANCELLED:
                counted.append(other.frame)
        return self.run.ns(), len(counted), rounds

    def _is_within(self, frame: int, opened: set[int]) -> bool:
        while frame >= 0:
            if frame in opened:
                return True
            frame = self.run.tables.frames[frame].parent
        return False

    # -- notifications -------------------------------------------------------------------------------------------

    def _notify_node(self, schedule: str, activation: Activation, **rest: Any) -> None:
        """Report an event of the current node, from its frame."""
        branch = activation.frame.row.branch
        event = GraphEvent(
            Schedule(schedule), self.state.run_id, activation.node.id, activation.node.node.label or activation.node.id,
            activation.node.kind.name, activation.frame.depth, branch if branch >= 0 else None, **rest,
        )  # fmt: skip
        self._notify(event, activation)

    def _notify_row(self, schedule: str, of: ActivationRow, **rest: Any) -> None:
        """Report an event of a step, by its row; its frame may be closed."""
        frames = self.run.tables.frames
        node, frame, depth = self.run.plan.nodes[of.node], of.frame, 0
        branch = frames[frame].branch
        parent = frames[frame].parent
        while parent >= 0:
            depth, parent = depth + 1, frames[parent].parent
        name, branch_number = node.node.label or node.id, branch if branch >= 0 else None
        event = GraphEvent(
            Schedule(schedule), self.state.run_id, node.id, name, node.kind.name, depth, branch_number, **rest
        )
        self._notify(event, self.run.live_activations.get(self.run.tables.add_activation(of)))

    def _notify(self, event: GraphEvent, activation: Activation | None = None) -> None:
        run = self.run
        if not self.api.rows[event.schedule]:
            return

        def make_context() -> SystemContext:
            scope = run.root.scope if activation is None else activation.scope
            return SystemContext.at(run.world.resources, scope, run.plan.recipe.meta.get("keys"))

        with self.lock:
            self.api.notify(event, make_context)


def _get_node_fields(node: Node, family: str) -> dict[str, Any]:
    """Return the fields of a node that all of its events have."""
    params = node.params
    match family:
        case "Switch":
            cases = params.get("cases", params.get("routes", ()))
            return {"case_count": len(cases), "has_default": params.get("default") is not None}
        case "Loop":
            times = params.get("times")
            return {"max_iterations": params.get("max", MAX_ROUNDS) if times is None else times}
        case "Parallel":
            return {"branch_count": len(node.bodies)}
    return {}
