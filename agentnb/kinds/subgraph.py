"""subgraph: a graph inside a node, stepped node by node; it shares the board, or has one of its own."""

from __future__ import annotations

from typing import Any

from agentnb.board.scopes import Policy
from agentnb.board.values import ABSENT, thaw
from agentnb.engine.work import Body, Enter, Kind, Outcome, Perform, Work
from agentnb.recipe.model import Node


def bind(node: Node, world: Any) -> Perform:
    """Return the function that opens the node's region.

    With `params["inputs"]` (inner key -> outer path) or `params["outputs"]` (outer key -> inner path) the inside has a
    board of its own, which begins with the inputs and ends as the outputs; without both it shares the board.
    """
    inputs, outputs = node.params.get("inputs"), node.params.get("outputs")
    policy: Policy = node.params.get("policy") or ("shared" if inputs is None and outputs is None else "isolated")

    def perform(work: Work) -> Any:
        if work.phase == "start":
            given = {}
            for key, path in (inputs or {}).items():
                work.reads[path[0]] = None
                value = work.arg(path)
                if value is not ABSENT:
                    given[key] = value
            return Enter([Body(region, policy, given) for region in node.bodies])
        if not outputs:
            return {}
        inner = work.frames[0].scope
        found = {key: inner.look(path) for key, path in outputs.items()}
        return Outcome({key: thaw(value) for key, value in found.items() if value is not ABSENT})

    return perform


KIND = Kind("subgraph", bind, step_type="SYSTEM_EVENT", shape="box3d")
