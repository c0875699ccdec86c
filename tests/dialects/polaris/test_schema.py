from __future__ import annotations

from agentnb.dialects.polaris import Graph
from agentnb.dialects.polaris.schema import list_children
from tests.dialects.polaris.polaris_graphs import Plan, note, plan, tell, work


def test_the_subgraphs_of_a_node_have_readable_names():
    graph = Graph().add_conditional_branch("ask", Plan, bool, plan).add_switch("route", Plan, str, {"a": work}, tell)
    graph.add_parallel("both", [note, plan]).add_loop_n("again", 2, tell)
    actual = {node.id: list_children(node) for node in graph.nodes}
    assert actual["ask"] == [("true", "plan")]
    assert actual["route"] == [("case 'a'", "work"), ("default", "tell")]
    assert actual["both"] == [("branch 1", "note"), ("branch 2", "plan_2")]
    assert actual["again"] == [("body", "tell_2")]
    assert actual["plan"] == actual["both_join"] == []
