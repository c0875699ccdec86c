from __future__ import annotations

from agentnb.dialects.polaris import Graph
from agentnb.dialects.polaris.parts.available_outputs import Flow, Outputs
from agentnb.dialects.polaris.parts.levels import Levels
from tests.dialects.polaris.polaris_graphs import Plan, Result, fail, fix, note, plan, tell


def flow_of(graph):
    return Flow(graph, Levels(graph))


def kinds(flow):
    return {id: set(outputs.kinds) for id, outputs in flow.available.items()}


def test_outputs_available_before_a_node_are_those_of_any_path_to_it():
    graph = Graph().given(int).add_system(plan).add_conditional_branch("ask", Plan, bool, tell, note).add_system(fix)
    assert kinds(flow_of(graph)) == {
        "plan": {int}, "ask": {int, Plan}, "tell": {int, Plan}, "note": {int, Plan},
        "fix": {int, Plan, Result, str},
    }  # fmt: skip


def test_in_a_loop_they_include_the_outputs_of_the_body():
    flow = flow_of(Graph().add_loop_n("again", 2, lambda g: g.add_system(note).add_system(plan)).add_system(tell))
    assert kinds(flow) == {"again": set(), "note": {str, Plan}, "plan": {str, Plan}, "tell": {str, Plan}}


def test_branches_do_not_see_each_other_and_later_nodes_see_both():
    flow = flow_of(Graph().add_parallel("both", [plan, note]).add_system(tell))
    assert kinds(flow)["plan"] == kinds(flow)["note"] == set()
    assert kinds(flow)["tell"] == {Plan, str}


def test_the_inside_of_a_node_includes_nested_nodes_and_handlers():
    def body(graph):
        graph.add_error_handler(graph.add_system_node(fail), note)
        graph.add_conditional_branch("ask", Plan, bool, plan)

    graph = Graph().add_loop_n("again", 2, body)
    assert flow_of(graph).inside(graph.get_node("again").body_entry) == Outputs(frozenset({Result, str, Plan}))
    assert flow_of(graph).inside(None) == Outputs()
