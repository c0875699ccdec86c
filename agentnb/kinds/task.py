"""An agent as one node: its inside is a recipe of its own with its own board, stepped like any other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from agentnb.board.values import thaw
from agentnb.engine.core.work import Body, Enter, Kind, Outcome, Perform, Repeat, Work
from agentnb.errors import ExecutionError, Problem
from agentnb.kinds.context import find_oddity, make_context, make_strict
from agentnb.kinds.directives import Directives
from agentnb.kinds.typed_values import get_inputs
from agentnb.recipe.model import Node
from agentnb.world.call_arguments import compile_arguments, get_options
from agentnb.world.llm.text import to_text

TASK: Final = "task"


class AgentFailed(ExecutionError):
    """An agent did not succeed; `result` is its whole result."""

    def __init__(self, *problems: Problem | str, result: Mapping[str, Any]) -> None:
        super().__init__(*problems)
        self.result = dict(result)


def bind(node: Node, world: Any) -> Perform:
    """Return the function that passes the task to the agent and collects its answer when its inside has ended.

    The task is the input of that name, otherwise all inputs as text, otherwise the board's own `task`. The answer is
    written under `params["output"]`; with `params["given"]` (templates) and `params["map"]` it is rendered like a
    tool's. An agent without success starts over as often as the node's `attempts` allow; then the node fails. If a
    person runs the failed node again, the agent starts over as well.
    """
    params = node.params
    rendered = make_strict(params["given"], world.strict) if "given" in params else None
    arguments, directives = _compile_arguments(node), Directives(node, world)
    key, attempts = str(params.get("output", node.id)), int(get_options(node).get("attempts", 1))

    def perform(work: Work) -> Any:
        if work.phase == "start":
            inputs = rendered.render(make_context(work)) if rendered is not None else arguments(work)
            return Enter([Body(region, "isolated", {TASK: _format_task(work, inputs)}) for region in node.bodies])
        result = thaw(work.frames[0].scope.data.get("result")) or {}
        if not result.get("success"):
            if work.iteration < attempts or _has_failed(work):
                return Repeat()
            raise AgentFailed(_make_failure_problem(node, result), result=result)
        if rendered is None:
            return Outcome({key: result["response"]}, observation=result, result=result)
        outcome = {**result, "text": result["response"], "result": result["response"]}
        return Outcome(
            nested_writes=directives(work, outcome),
            thought=find_oddity(rendered, directives),
            observation=outcome,
            result=outcome,
        )

    return perform


def _compile_arguments(node: Node) -> Callable[[Work], dict[str, Any]]:
    """Return the function that reads a node's inputs from the board: by their paths, or by their types."""
    if "takes" not in node.params:
        return compile_arguments(node.inputs or {})
    return lambda work: get_inputs(work, node.params["takes"], node.params["keys"], node.label or node.id)


def _format_task(work: Work, inputs: Mapping[str, Any]) -> str:
    """Return the task as text."""
    if not inputs:
        return to_text(work.board.get(TASK, ""))
    if TASK in inputs:
        return to_text(inputs[TASK])
    return "\n".join(f"{name}: {to_text(value)}" for name, value in inputs.items())


def _has_failed(work: Work) -> bool:
    """Return True if the current step is this node's own failure: then a person is running it again."""
    for history, end in reversed(work.run.parts()):
        if end > history.base:
            return end in history.errors and history.step_activations[end - history.base] == work.activation.id
    return False


def _make_failure_problem(node: Node, result: Mapping[str, Any]) -> Problem:
    """X441: an agent that is a node did not succeed."""
    return Problem("X441", f"the agent of node {node.id!r} failed", str(node.place or f"node {node.id!r}"),
                   str(result.get("error") or "it ended without a result"),
                   "see the steps inside it, or handle its failure with an error edge")  # fmt: skip


KIND = Kind("task", bind, step_type="REASONING")
