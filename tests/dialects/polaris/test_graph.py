from __future__ import annotations

from datetime import timedelta

import pytest

from agentnb.dialects.polaris import Graph
from agentnb.dialects.polaris.words import JoinNode, ParallelNode
from agentnb.errors import RecipeError
from tests.dialects.polaris.making import Plan, fail, mend, note, nothing, plan, tell, work


def edges(graph):
    return [(edge.source, edge.target, edge.sort) for edge in graph.edges]


def test_a_chain_begins_at_its_first_node_and_links_each_to_the_one_before():
    graph = Graph().add_system(plan).add_system(work).add_system(tell)
    assert (graph.entry, graph.last_node) == ("plan", "tell")
    assert edges(graph) == [("plan", "work", "sequential"), ("work", "tell", "sequential")]
    assert (graph.node_count, graph.edge_count, graph.is_empty) == (3, 2, False)
    assert Graph().is_empty


def test_ids_are_names_and_a_second_one_of_a_name_has_a_number_wherever_it_stands():
    graph = Graph().add_system(plan).add_loop_n("again", 2, lambda inner: inner.add_system(plan).add_system(plan))
    assert [node.id for node in graph.nodes] == ["plan", "again", "plan_2", "plan_3"]
    assert graph.get_node("plan_3").name == "plan"
    assert graph.get_node("plan_4") is None
    assert graph.get_edge(graph.edges[0].id) is graph.edges[0]


def test_what_follows_a_control_node_is_linked_to_it_and_not_to_its_branches():
    graph = Graph().add_system(plan)
    graph.add_conditional_branch("ask", Plan, bool, lambda g: g.add_system(work), tell).add_system(note)
    assert edges(graph) == [("plan", "ask", "sequential"), ("ask", "note", "sequential")]
    decision = graph.get_node("ask")
    assert (decision.true_branch, decision.false_branch) == ("work", "tell")


def test_what_follows_parallel_branches_is_linked_to_their_join():
    graph = Graph().add_parallel("both", [work, lambda g: g.add_system(tell)]).add_system(note)
    both = graph.get_node("both")
    assert isinstance(both, ParallelNode)
    assert both.branches == ["work", "tell"]
    join = graph.get_node(both.join)
    assert isinstance(join, JoinNode)
    assert (join.name, join.sources) == ("join", ["work", "tell"])
    assert edges(graph) == [(join.id, "note", "sequential")]


def test_builders_that_add_nothing_leave_their_branch_out():
    graph = Graph().add_conditional_branch("ask", Plan, bool, plan, nothing)
    graph.add_switch("route", Plan, str, {"a": nothing, "b": tell}, default=nothing)
    graph.add_parallel("both", [nothing, tell]).add_loop("again", Plan, bool, nothing)
    assert graph.get_node("ask").false_branch is None
    assert graph.get_node("ask").left_out == frozenset()
    assert graph.get_node("route").cases == [("b", "tell")]
    assert graph.get_node("route").default is None
    assert graph.get_node("both").branches == ["tell_2"]
    assert graph.get_node("again").body_entry is None


def test_a_branch_that_is_left_out_is_marked_as_such():
    assert Graph().add_conditional_branch("ask", Plan, bool, plan).get_node("ask").left_out == {"false"}


def test_cases_are_a_mapping_or_pairs_in_their_order():
    pairs = Graph().add_switch("route", Plan, str, [("a", plan), ("a", tell)])
    assert pairs.get_node("route").cases == [("a", "plan"), ("a", "tell")]


def test_a_handler_is_reached_by_its_edge_alone_and_what_is_added_next_follows_the_node_before():
    graph = Graph().add_system(plan)
    risky = graph.add_system_node(fail)
    graph.add_error_handler(risky, lambda g: g.add_system(mend), resume=True).add_system(tell)
    assert edges(graph)[1:] == [("fail", "mend", "error"), ("fail", "tell", "sequential")]
    assert (graph.edges[1].resume, graph.edges[1].last) == (True, "mend")


def test_an_empty_handler_is_none():
    graph = Graph()
    graph.add_error_handler(graph.add_system_node(fail), nothing)
    assert graph.edges == []


def test_time_outs_are_seconds_or_a_timedelta_and_retries_are_all_attempts():
    graph = Graph()
    slow = graph.add_system_node(work)
    graph.set_timeout(slow, timedelta(milliseconds=50)).set_retry(slow, 3, 0.5)
    node = graph.get_node(slow)
    assert (node.timeout, node.attempts, node.backoff) == (0.05, 3, 0.5)
    assert graph.set_timeout(slow, 2).get_node(slow).timeout == 2.0


@pytest.mark.parametrize("verb", ["set_timeout", "set_retry", "add_error_handler", "add_timeout_handler"])
@pytest.mark.parametrize("id", ["wrok", "again"])
def test_what_is_said_of_a_system_needs_one(verb, id):
    graph = Graph().add_system(work).add_loop_n("again", 2, tell)
    with pytest.raises(RecipeError) as caught:
        getattr(graph, verb)(id, 1 if verb.startswith("set") else mend)
    problem = caught.value.problems[0]
    assert problem.code == "R144"
    assert repr(id) in problem.what
    assert "work" in problem.why


@pytest.mark.parametrize(
    "call",
    [
        lambda graph: graph.set_timeout("work", 0),
        lambda graph: graph.set_timeout("work", "soon"),
        lambda graph: graph.set_retry("work", 0),
        lambda graph: graph.set_timeout("work", float("inf")),
        lambda graph: graph.set_retry("work", attempts=True),
        lambda graph: graph.set_retry("work", 2, -1),
        lambda graph: graph.set_retry("work", 2, "soon"),
        lambda graph: graph.add_loop_n("again", -1, tell),
        lambda graph: graph.add_loop_n("again", 1.5, tell),
        lambda graph: graph.add_parallel("both", ["tell"]),
        lambda graph: graph.add_parallel("both", tell),
        lambda graph: graph.add_switch("route", Plan, str, None),
        lambda graph: graph.add_switch("route", Plan, str, [tell, tell]),
    ],
)
def test_what_cannot_be_meant_is_refused(call):
    with pytest.raises(RecipeError, match="R145"):
        call(Graph().add_system(work))


def test_it_shows_itself_as_its_drawing_whatever_is_wrong_with_it():
    graph = Graph("broken").add_conditional_branch("ask", Plan, bool, nothing, nothing)
    assert not graph.validate().ok
    assert "ask" in graph.draw().dot
    assert "image/svg+xml" in graph._repr_mimebundle_()
    assert repr(graph) == "<Graph 'broken': 1 nodes, 0 edges>"


def test_handlers_and_branches_stand_in_clusters_and_their_edges_are_dashed_and_marked():
    graph = Graph().add_system(plan)
    risky = graph.add_system_node(fail)
    graph.set_timeout(risky, 5).add_error_handler(risky, mend)
    graph.add_timeout_handler(risky, lambda g: g.add_loop_n("again", 2, tell))
    dot = graph.draw(board=False).dot
    clusters = ['label="error of fail"', 'label="time-out of fail"', "label=body"]
    assert [cluster for cluster in clusters if cluster in dot] == clusters
    assert dot.count("dashed") == 2
    assert "◷ 5 s" in dot
    within = dot[dot.index(clusters[1]) :]
    assert within.index(clusters[2]) < within.index("\t}\n")  # the loop's body stands within the handler
