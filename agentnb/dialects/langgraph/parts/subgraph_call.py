"""A graph inside a node: a region with its own state, stepped node by node."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, Final

from agentnb.board.values import ABSENT, thaw
from agentnb.dialects.inner_calls import CALLS
from agentnb.dialects.langgraph.parts.inner_calls import NodeCalls
from agentnb.dialects.langgraph.parts.node_call import NodeCall, NodePlan, make_outcome, read_input
from agentnb.dialects.langgraph.parts.plain_values import from_plain_command
from agentnb.dialects.langgraph.parts.runtime import make_context
from agentnb.engine.core.supersteps import iter_supersteps_back
from agentnb.engine.core.waits import count_waits_inside, list_rows
from agentnb.engine.core.work import Body, Enter

if TYPE_CHECKING:
    from agentnb.engine.core.work import Work

# Returns the first state of a graph for its input, continuing from an earlier state.
Begin = Callable[[Any, Mapping[str, Any] | None], dict[str, Any]]
_STATE: Final = "subgraph_state"


class SubgraphCall(NodeCall):
    """The function of a node that is a graph.

    `begins_early`: the inner graph has a node START, whose conditions see the graph's whole input. `keys` are the keys
    of its state if the graph continues from the state in which it last ended; each end is an event.
    """

    def __init__(
        self, plan: NodePlan, begin: Begin, outputs: Any, *, begins_early: bool, keys: Collection[str]
    ) -> None:
        super().__init__(plan, begin)
        self.begin, self.outputs, self.begins_early, self.state_keys = begin, outputs, begins_early, keys

    def __call__(self, work: Work) -> Any:
        """Open the region with the input of the inner graph, or turn its output into this node's outcome."""
        if work.phase == "start":
            graph_input = read_input(self.plan, work)
            work.copies.clear()
            context = copy_context()
            context.run(CALLS.set, NodeCalls(work))  # messages get ids that a replay draws again
            first = context.run(self.begin, graph_input, self._find_earlier(work))
            inputs = (graph_input if isinstance(graph_input, Mapping) else {}) if self.begins_early else None
            return Enter([Body(body, "isolated", first, inputs=inputs) for body in work.node.bodies])
        if self.state_keys:
            work.emit(_STATE, self._collect_values(work, self.state_keys))
        result = self._make_result(work)
        if not self.plan.branches:
            return make_outcome(self.plan, work, result, ())
        calls = NodeCalls(work)
        config = self._make_config(calls, 1)
        context = make_context(config, calls)
        form = self.choose_form(work)
        if form.slow:
            return self.await_routed_outcome(calls, form, result, context, config)
        return self.make_routed_outcome(calls, form, result, context, config)

    def _make_result(self, work: Work) -> Any:
        """Return the output of the inner graph, or the Command with which one of its nodes left the graph."""
        event = work.event
        if event is not None and event.type == "command":
            return from_plain_command({**thaw(event.payload), "graph": None})
        if isinstance(self.outputs, str):
            value = work.frames[0].scope.get(self.outputs)
            return None if value is ABSENT else thaw(value)
        return self._collect_values(work, self.outputs) | self._collect_streamed(work, self.outputs)

    def _collect_values(self, work: Work, keys: Iterable[str]) -> dict[str, Any]:
        seen = {key: work.frames[0].scope.get(key) for key in keys}
        return {key: thaw(value) for key, value in seen.items() if value is not ABSENT}

    def _collect_streamed(self, work: Work, keys: Collection[str]) -> dict[str, Any]:
        """Return the transient keys, with their values, that were in the state when LangGraph last streamed it.

        A graph's result is the state as it was streamed: after each superstep that wrote an output, and when the graph
        continues after it has waited for a person. The keys were deleted when the following supersteps ended.
        """
        run, frame = work.run, work.frames[0]
        transient = {*run.plan.transient.get(frame.row.region, ())}.intersection(keys)
        streamed: dict[str, Any] = {}
        if not transient:
            return streamed
        opening = run.get_opening_activation(frame)
        *counts, after_last = count_waits_inside(run, list_rows(run, frame), opening, work.activation.row)
        if after_last:
            return streamed
        for steps, waits in zip(iter_supersteps_back(run, frame), reversed(counts), strict=True):
            writes = [write for step in steps for write in run.iter_writes(frame.scope, step) if write[0] in keys]
            if any(new is not ABSENT for _, _, new in writes):
                break
            streamed |= {key: thaw(old) for key, old, _ in writes if key in transient}
            if waits:
                break
        return streamed

    def _find_earlier(self, work: Work) -> Any:
        """Return the state in which the graph last ended, if the graph continues from that state."""
        if not self.state_keys:
            return {}
        ends = (event for event in reversed(work.events) if event.type == _STATE and event.actor == work.node.id)
        last = next(ends, None)
        return {} if last is None else thaw(last.payload)
