"""Entrypoints of the functional API: a graph of one node, whose state is its input, its result and its saved value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentnb.board.values import thaw
from agentnb.dialects.langgraph.parts.channels import Channels
from agentnb.dialects.langgraph.parts.functions import unwrap_function
from agentnb.dialects.langgraph.parts.node_call import NodeCall, NodePlan
from agentnb.dialects.langgraph.parts.retries import to_policies
from agentnb.dialects.langgraph.parts.runtime import Settings
from agentnb.dialects.langgraph.parts.start_call import refuse_command
from agentnb.dialects.langgraph.parts.task_calls import TaskRules
from agentnb.dialects.langgraph.parts.time_limit import to_plain_limits
from agentnb.dialects.langgraph.schema import PREVIOUS, START


class EntrypointCall(NodeCall):
    """The node of an entrypoint, and its first state."""

    keys = ()  # any input is accepted

    def __init__(self, graph: Any, prefix: str, channels: Channels, settings: Settings) -> None:
        [(name, process)] = graph.nodes.items()
        self.id, self.entries = prefix + name, process.writers[0].writes
        rules = TaskRules(to_policies(graph.retry_policy), graph.cache, graph.cache_policy)
        plan = NodePlan(
            name=name, prefix=prefix, channels=channels, keys=START, mapper=None, updates=self._list_updates,
            control=_select_no_targets, settings=settings, names=(), retries=rules.retries, tasks=rules,
            timeout=to_plain_limits(process.timeout),
        )  # fmt: skip
        super().__init__(plan, process.bound)
        self.function = unwrap_function(process.bound)

    def read_inputs(self, value: Any) -> dict[str, Any]:
        """Return inputs with this value under START, for an input that is not a mapping.

        Raises:
            TypeError: the value is a Command.
        """
        refuse_command(value)
        return {START: value}

    def begin(self, inputs: Mapping[str, Any], earlier: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the first state: the input, and the value saved by an earlier run.

        If `inputs` has no key START, the whole mapping is the input.
        """
        values = {key: thaw(inputs[key]) for key in (START, PREVIOUS) if key in inputs}
        if START not in values:
            values[START] = {key: thaw(value) for key, value in inputs.items() if key != PREVIOUS}
        return self.plan.channels.make_first_values(list(values.items()), earlier)

    def _list_updates(self, result: Any) -> list[tuple[str, Any]]:
        return [(entry.channel, entry.mapper(result)) for entry in self.entries]


def _select_no_targets(_result: Any) -> tuple[()]:
    return ()
