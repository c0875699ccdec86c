"""A graph inside a node: a region with a state of its own, stepped node by node."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agentnb.board.values import ABSENT, thaw
from agentnb.dialects.langgraph.parts.inner_calls import Calls
from agentnb.dialects.langgraph.parts.node_call import NodeCall, NodePlan, outcome, read_input
from agentnb.dialects.langgraph.parts.runtime import context_of
from agentnb.engine.core.work import Body, Enter

if TYPE_CHECKING:
    from agentnb.engine.core.work import Work

Begin = Callable[[Mapping[str, Any]], dict[str, Any]]  # returns the first state of a graph for its input


class SubgraphCall(NodeCall):
    """The function of a node that is a graph."""

    def __init__(self, plan: NodePlan, begin: Begin, outputs: Any) -> None:
        super().__init__(plan, begin)
        self.begin, self.outputs = begin, outputs

    def __call__(self, work: Work) -> Any:
        """Open the region with the input of the inner graph, or turn its output into this node's outcome."""
        if work.phase == "start":
            given = read_input(self.plan, work)
            work.copies.clear()
            return Enter([Body(body, "isolated", self.begin(given)) for body in work.node.bodies])
        result = self._result(work)
        if not self.plan.branches:
            return outcome(self.plan, work, result, ())
        calls = Calls(work)
        config = self._config(calls, 1)
        context = context_of(config, calls)
        if self.slow:
            return self.conclude(work, result, context, config)
        return self.routed(work, result, context, config)

    def _result(self, work: Work) -> Any:
        """Return the output of the inner graph, or the Command by which one of its nodes has left it."""
        event = work.event
        if event is not None and event.type == "command":
            return replace(thaw(event.payload), graph=None)
        scope = work.frames[0].scope
        if isinstance(self.outputs, str):
            value = scope.get(self.outputs)
            return None if value is ABSENT else thaw(value)
        seen = {key: scope.get(key) for key in self.outputs}
        return {key: thaw(value) for key, value in seen.items() if value is not ABSENT}
