"""The start of a graph: its input as the first state, and the conditional edges from START as a separate node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agentnb.board.values import thaw
from agentnb.dialects.langgraph.parts.node_call import NodeCall, NodePlan, Updates, read_updates
from agentnb.dialects.langgraph.parts.package import Command, RunnableCallable

if TYPE_CHECKING:
    from agentnb.dialects.langgraph.parts.inner_calls import NodeCalls


def refuse_command(value: Any) -> None:
    """Raise TypeError for a Command as the input of a session."""
    if isinstance(value, Command):
        raise TypeError("a Command continues a thread: use answer(), edit() or set_next() of its session")


class StartCall(NodeCall):
    """The function of the node START, which a graph with a conditional entry has; and the graph's first state."""

    def __init__(self, plan: NodePlan, id: str) -> None:
        self.id, self.keys = id, plan.keys
        super().__init__(plan, RunnableCallable(self._write_transient, name=id, trace=False))

    def read_inputs(self, value: Any) -> dict[str, Any]:
        """Return the inputs for a value that is not a mapping: an object's fields, pairs, or the value of "__root__".

        Raises:
            InvalidUpdateError: LangGraph does not accept the value.
            TypeError: the value is a Command.
        """
        refuse_command(value)
        return dict(read_updates(self.plan, value))

    def begin(self, graph_input: Any, earlier: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the first state for an input, continuing from an earlier state."""
        channels = self.plan.channels
        value: Any = graph_input
        if isinstance(graph_input, Mapping):  # a subgraph may be given an object of a schema
            value = (
                graph_input["__root__"]
                if "__root__" in channels.channels and "__root__" in graph_input
                else dict(graph_input)
            )
        updates = [(key, thaw(item)) for key, item in read_updates(self.plan, value) if key in self.keys]
        return channels.make_first_values(updates, earlier)

    def select_for_branches(self, calls: NodeCalls, result: Any, updates: Updates) -> tuple[Updates, Any]:
        """Return the input of this graph; conditions also see keys outside the state."""
        frame = calls.work.activation.frame.row
        return [], calls.work.inputs if frame.parent < 0 else thaw(frame.inputs)

    def _write_transient(self, state: dict[str, Any]) -> dict[str, Any]:
        """Return the transient keys of the input, which last for the superstep after this node's."""
        return {key: state[key] for key in self.plan.channels.transient if key in state}
