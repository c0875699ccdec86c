"""Random graphs run as they do in LangGraph: every state after a superstep is the same."""

from __future__ import annotations

from hypothesis import given

from tests.dialects.langgraph.judge import compare
from tests.dialects.langgraph.programs import awaits, build, leaves, plans


@given(plan=plans())
def test_random_graphs_run_as_in_langgraph(plan):
    ways = {"is_async": awaits(plan), "leaves": leaves(plan)}
    compare(build(plan), {"last": "in"}, answers=lambda question: f"re {question}", **ways)
