"""test_behaviors: what no run could go by is told where a behaviour is made, or given to a runtime."""

from __future__ import annotations

import pytest

from agentnb.dialects import activegraph as ag
from agentnb.dialects.activegraph import Behavior, Graph, LLMBehavior, Runtime
from agentnb.errors import AgentNbError


def nothing(event, graph, ctx):
    """Do nothing."""


async def later(event, graph, ctx):
    """Do nothing."""


def bit_by_bit(event, graph, ctx):
    yield


class Later:
    async def __call__(self, event, graph, ctx):
        """Do nothing."""


def test_two_behaviours_of_one_name_are_refused():
    with pytest.raises(AgentNbError, match="R329"):
        Runtime(Graph(), behaviors=[Behavior("same", nothing, on=["go"]), Behavior("same", nothing, on=["come"])])


def test_a_cell_that_runs_again_registers_its_behaviour_once():
    ag.clear_registry()
    for priority in (1, 2):

        @ag.behavior(on=["go"], priority=priority)
        def answers(event, graph, ctx):
            graph.add_object("answer", {})

    assert [made.priority for made in ag.clear_registry()] == [2]


@pytest.mark.parametrize("fn", [later, bit_by_bit, Later()])
def test_a_function_that_a_call_does_not_run_is_refused(fn):
    with pytest.raises(AgentNbError, match="R330"):
        Behavior("a", fn, on=["go"])
    with pytest.raises(AgentNbError, match="R330"):
        LLMBehavior("a", nothing, on=["go"], handler=fn)


def test_an_unknown_operator_of_where_is_told_where_it_is_written():
    with pytest.raises(AgentNbError, match="X504"):
        Behavior("a", nothing, on=["go"], where={"n": {"~": 1}})
