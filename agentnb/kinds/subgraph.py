"""A graph inside a node, stepped node by node; it shares the board or has its own."""

from __future__ import annotations

from typing import Any

from agentnb.board.scopes import Policy
from agentnb.board.values import ABSENT, freeze, thaw
from agentnb.engine.core.work import Body, Enter, Kind, Outcome, Perform, Work
from agentnb.errors import AgentRuntimeError, Problem
from agentnb.kinds import tool
from agentnb.kinds.context import find_oddity, make_context, make_strict
from agentnb.kinds.directives import Directives
from agentnb.recipe.model import Node


def bind(node: Node, world: Any) -> Perform:
    """Return the function that opens the node's region.

    With `params["inputs"]` (inner key -> outer path) or `params["outputs"]` (outer key -> inner path) the inner graph
    has its own board, which begins with the inputs and ends as the outputs; without both it shares the board.

    With `params["given"]` (a structure of templates) the inner graph sees the rendered values and, below them, the
    outer board; when it ends, its `outputs` (names) are written to the outer board unchanged, then `params["map"]`. If
    the session has a tool of its name (`params["function"]`), that is called instead.
    """
    if "given" in node.params:
        return tool.bind(node, world) if node.params.get("function") in world.tools else _bind_rendering(node, world)
    inputs, outputs = node.params.get("inputs"), node.params.get("outputs")
    policy: Policy = node.params.get("policy") or ("shared" if inputs is None and outputs is None else "isolated")

    def perform(work: Work) -> Any:
        if work.phase == "start":
            values = {}
            for key, path in (inputs or {}).items():
                work.reads[path[0]] = None
                value = work.arg(path)
                if value is not ABSENT:
                    values[key] = value
            return Enter([Body(region, policy, values) for region in node.bodies])
        if not outputs:
            return {}
        inner = work.frames[0].scope
        results = {key: inner.get_at(path) for key, path in outputs.items()}
        return Outcome({key: thaw(value) for key, value in results.items() if value is not ABSENT})

    return perform


def _bind_rendering(node: Node, world: Any) -> Perform:
    inputs, outputs = make_strict(node.params["given"], world.strict), tuple(node.params.get("outputs", ()))
    directives = Directives(node, world)

    def perform(work: Work) -> Any:
        if work.phase == "start":
            _check_depth(work)
            inside = inputs.render(make_context(work))
            return Enter([Body(region, "child", inside, inputs=inside) for region in node.bodies])
        scope = work.frames[0].scope
        seen = scope.visible_items()  # frozen: the observation shares it with the board
        values = {name: seen.get(name) for name in outputs}
        outcome = {**values, "state": seen, "outputs": values}
        result = thaw(freeze(outcome))
        # what was deleted is deleted here too
        own: list[tuple[Any, Any]] = [((name,), seen.get(name, ABSENT)) for name in outputs]
        own += directives(work, result)
        return Outcome(nested_writes=own, thought=find_oddity(inputs, directives), observation=outcome, result=result)

    return perform


def _check_depth(work: Work) -> None:
    """Raise X418 if subgraphs are nested too deeply."""
    limit, depth, frame = work.run.max_subgraph_depth, 1, work.activation.frame
    while frame.parent is not None:
        depth += frame.row.inputs is not None
        frame = frame.parent
    if limit is not None and depth > limit:
        raise AgentRuntimeError(
            Problem("X418", f"subgraph {work.node.id!r} would be nested {depth} deep",
                    str(work.node.place or f"node {work.node.id!r}"), f"max_subgraph_depth is {limit}",
                    "raise the limit, or flatten the subgraphs")
        )  # fmt: skip


KIND = Kind("subgraph", bind, step_type="SYSTEM_EVENT")
