from __future__ import annotations

import networkx as nx

from tests.session.small_sessions import counter, fan, path, session


def test_it_runs_once_after_all_its_incoming_branches():
    run = session(fan("a", "b", "c"))
    run.run()
    assert path(run) == ["open", "a", "b", "c", "meet", "after"]
    assert dict(run.board) == {"a": 1, "b": 1, "c": 1, "after": 1}


def test_it_waits_for_a_longer_branch():
    graph = fan("a", "b")
    graph.add_node("b2", function=counter("b2"))
    graph.remove_edge("b", "meet")
    graph.add_edge("b", "b2")
    graph.add_edge("b2", "meet")
    run = session(graph)
    run.run()
    assert path(run)[-3:] == ["b2", "meet", "after"]


def test_it_does_not_wait_for_an_untaken_branch():
    graph = fan("a", "b")
    graph.edges["open", "b", 0]["when"] = "go_b"
    run = session(graph, {"go_b": False})
    run.run()
    assert path(run) == ["open", "a", "meet", "after"]


def test_two_consecutive_joins_run_once_each():
    graph = fan("a", "b")
    graph.add_node("c", function=counter("c"))
    graph.add_node("last", kind="join")
    graph.add_edge("open", "c", kind="parallel")
    graph.add_edge("c", "last")
    graph.add_edge("after", "last")
    run = session(graph)
    run.run()
    assert path(run).count("meet") == path(run).count("last") == 1
    assert path(run)[-1] == "last"


def test_in_a_cycle_it_runs_once_per_iteration():
    graph = fan("a", "b")
    graph.add_edge("after", "open", when="after < 2")
    run = session(nx.MultiDiGraph(graph, entry="open"))
    run.run()
    assert path(run) == ["open", "a", "b", "meet", "after"] * 2
    assert (run.board["a"], run.board["b"]) == (2, 2)


def test_each_step_can_be_undone():
    run = session(fan("a", "b"))
    run.run()
    run.back(2)
    assert (run.current, [each.node for each in run.frontier]) == ("meet", ["meet"])
    run.back(2)
    assert [each.node for each in run.frontier] == ["a", "b"]
