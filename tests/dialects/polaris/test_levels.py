from __future__ import annotations

from agentnb.dialects.polaris import Graph
from agentnb.dialects.polaris.parts.levels import Levels
from agentnb.dialects.polaris.schema import SequentialEdge
from tests.dialects.polaris.polaris_graphs import Plan, fail, fix, note, plan, tell, work


def test_each_node_is_in_the_subgraph_from_which_it_is_reached():
    def branch(graph):
        graph.add_loop_n("again", 2, work).add_system(tell)

    graph = Graph().add_system(plan).add_conditional_branch("ask", Plan, bool, branch, note)
    levels = Levels(graph)
    assert levels.of == {
        "plan": "root", "ask": "root", "again": "ask.true", "tell": "ask.true", "note": "ask.false",
        "work": "again.body",
    }  # fmt: skip
    actual = [(level.region, level.entry, level.owner) for level in levels.levels]
    assert actual == [
        ("root", "plan", ""), ("ask.true", "again", "ask"), ("ask.false", "note", "ask"),
        ("again.body", "work", "again"),
    ]  # fmt: skip


def test_a_handler_is_in_the_subgraph_of_its_system_and_only_the_first_of_a_type_counts():
    def body(graph):
        risky = graph.add_system_node(fail)
        graph.add_error_handler(risky, lambda g: g.add_system(fix).add_system(tell))
        graph.add_error_handler(risky, note).add_timeout_handler(risky, plan)

    levels = Levels(Graph().add_loop_n("again", 2, body))
    assert [(handler.edge.kind, handler.nodes) for handler in levels.handlers] == [
        ("error", ["fix", "tell"]), ("timeout", ["plan"]),
    ]  # fmt: skip
    assert {levels.of[id] for id in ("fail", "fix", "tell", "plan")} == {"again.body"}
    assert "note" not in levels.of


def test_a_join_follows_its_parallel_node():
    levels = Levels(Graph().add_parallel("both", [plan, note]).add_system(tell))
    assert [node.id for node in levels.chain("both")] == ["both", "both_join", "tell"]


def test_a_parallel_node_leads_to_its_join_even_without_an_edge():
    graph = Graph().add_parallel("both", [plan, note]).add_system(tell)
    graph.edges = [edge for edge in graph.edges if (edge.source, edge.target) != ("both", "both_join")]
    assert [node.id for node in Levels(graph).chain("both")] == ["both", "both_join", "tell"]


def test_a_walk_ends_at_visited_nodes():
    graph = Graph().add_system(plan).add_system(work)
    graph.edges.append(SequentialEdge("back", "work", "plan"))
    levels = Levels(graph)
    assert levels.repeated_steps == ["plan"]
    assert [node.id for node in levels.chain("plan")] == ["plan", "work"]
