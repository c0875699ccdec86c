"""Graphs that run in supersteps, functions that ask, and breakpoints that a graph declares."""

from __future__ import annotations

import operator

import networkx as nx
import pytest

import agentnb as nb


def graph(*edges, nodes=(), **attributes):
    built_graph = nx.MultiDiGraph(
        name="made", supersteps=True, reducers={"log": operator.add}, init={"log": []}, **attributes
    )
    for name in nodes or dict.fromkeys(name for edge in edges for name in edge[:2]):
        built_graph.add_node(name, function=says(name))
    for edge in edges:
        built_graph.add_edge(*edge[:2], **(edge[2] if len(edge) > 2 else {}))
    return built_graph


def says(name):
    return lambda board: {"log": [f"{name}{len(board['log'])}"]}


def run(made, inputs=None):
    session = nb.Session(nb.load(made), inputs)
    session.run()
    return session


def test_nodes_of_a_superstep_see_the_board_from_before():
    session = run(graph(("a", "c"), ("a", "b"), ("b", "d"), ("c", "d")))
    assert session.board["log"] == ["a0", "b1", "c1", "d3"]
    assert session.replay().ok


def test_conditions_see_the_own_writes_of_the_node_alone():
    when = {"when": lambda board: len(board["log"]) == 2}
    session = run(graph(("a", "b"), ("a", "c"), ("c", "d", when)))
    assert session.board["log"] == ["a0", "b1", "c1", "d3"]


def test_a_join_waits_for_each_of_its_edges():
    join = {"join": "both"}
    session = run(graph(("a", "b"), ("a", "c"), ("b", "b2"), ("b2", "d", join), ("c", "d", join)))
    assert session.board["log"] == ["a0", "b1", "c1", "b23", "d4"]


def test_a_deferred_node_runs_when_nothing_else_is_scheduled():
    built_graph = graph(("a", "b"), ("a", "d"), ("b", "c"), ("c", "d"))
    built_graph.nodes["d"]["defer"] = True
    assert run(built_graph).board["log"] == ["a0", "b1", "c2", "d3"]


def test_a_function_chooses_targets_with_separate_inputs():
    built_graph = graph(("a", "end"), nodes=["a", "work", "end"], entry="a")
    built_graph.nodes["a"]["choose"] = lambda board: [nb.Send("work", {"n": n}) for n in range(board["count"])]
    built_graph.nodes["work"]["function"] = lambda board: {"log": [board["input"]["n"] * 10]}
    session = run(built_graph, {"count": 3})
    assert session.board["log"] == ["a0", "end1", 0, 10, 20]
    assert "input" not in session.board
    assert session.replay().ok


def test_a_transient_key_lasts_for_one_superstep():
    built_graph = graph(("a", "b"), ("b", "c"), transient=["brief"])
    built_graph.nodes["a"]["function"] = lambda board: {"brief": 1}
    built_graph.nodes["b"]["function"] = lambda board: {"log": [board.get("brief")]}
    built_graph.nodes["c"]["function"] = lambda board: {"log": [board.get("brief")]}
    assert run(built_graph).board["log"] == [1, None]


def test_an_untracked_key_is_lost_when_a_person_answers():
    built_graph = graph(("a", "b"), ("b", "c"), untracked=["brief"])
    built_graph.nodes["a"]["function"] = lambda board: {"brief": 1}
    built_graph.nodes["b"].update(function=lambda board: {"log": [nb.ask("?"), board.get("brief")]}, asks=True)
    built_graph.nodes["c"]["function"] = lambda board: {"log": [board.get("brief")]}
    session = run(built_graph)
    assert session.board["brief"] == 1
    session.answer("yes")
    session.run()
    assert session.board["log"] == ["yes", None, None]


def test_an_untracked_key_is_lost_from_what_was_sent_too():
    built_graph = graph(nodes=["a", "b"], entry="a", untracked=["brief"])
    built_graph.nodes["a"]["choose"] = lambda board: [nb.Send("b", {"brief": n, "n": n}) for n in (1, 2)]
    built_graph.nodes["b"].update(
        function=lambda board: {"log": [board["input"].get("brief"), board["input"]["n"] == 1 and nb.ask("?")]},
        asks=True,
    )
    session = run(built_graph)
    session.answer("yes")
    session.run()
    assert session.board["log"] == ["a0", None, "yes", 2, False]
    assert session.replay().ok


@pytest.mark.parametrize("supersteps", [True, False])
def test_a_reducer_adds_to_a_value_changed_in_place(supersteps):
    def change(board):
        log = board["log"]
        log.append("mine")
        return {"log": ["a"]}

    built_graph = graph(("a", "b"))
    built_graph.graph["supersteps"] = supersteps
    built_graph.nodes["a"]["function"] = change
    assert run(built_graph, {"log": ["in"]}).board["log"][:3] == ["in", "mine", "a"]


def test_two_nodes_that_write_one_key_need_a_reducer():
    built_graph = graph(("a", "b"), ("a", "c"))
    for name in "bc":
        built_graph.nodes[name]["function"] = lambda board: {"x": 1}
    session = run(built_graph)
    assert "L530" in str(session.error)
    assert session.position == 3


def test_set_next_schedules_a_node_in_the_next_superstep():
    session = nb.Session(nb.load(graph(("a", "b"), ("a", "c"), ("b", "d"), ("c", "d"))))
    session.step()
    session.set_next("d")
    session.step()
    assert session.board["log"] == ["a0", "d1"]


@pytest.mark.parametrize("node", ["a", "b", "c"])
def test_a_node_that_is_set_next_after_the_last_superstep_sees_what_it_wrote(node):
    session = run(graph(("a", "b"), ("a", "c")))
    session.set_next(node)
    session.step()
    assert session.board["log"] == ["a0", "b1", "c1", f"{node}3"]
    assert session.replay().ok


def asking(board):
    first = nb.ask("name?")
    return {"log": [first, nb.ask({"next": first})]}


@pytest.mark.parametrize("supersteps", [True, False])
def test_a_function_can_ask_a_person(supersteps):
    built_graph = graph(("a", "b"))
    built_graph.graph["supersteps"] = supersteps
    built_graph.nodes["a"].update(function=asking, asks=True)
    session = run(built_graph)
    assert (session.status, session.pending[0].arguments["prompt"]) == ("waiting", "name?")
    session.answer("Ada")
    assert session.pending[0].arguments["prompt"] == {"next": "Ada"}
    session.answer("Bob")
    session.run()
    assert session.board["log"] == ["Ada", "Bob", "b2"]
    assert session.replay().ok


def test_a_question_outside_of_an_asking_node_is_a_problem():
    with pytest.raises(nb.ExecutionError, match="L534"):
        nb.ask("?")


def test_a_graph_declares_breakpoints():
    built_graph = graph(("a", "b"), ("b", "c"))
    built_graph.nodes["b"]["breakpoint"] = "before"
    session = run(built_graph)
    assert (session.status, session.current) == ("paused", "b")
    session.run()
    assert session.board["log"] == ["a0", "b1", "c2"]


def test_a_skipped_node_chooses_by_the_writes_given_for_it():
    built_graph = nx.MultiDiGraph(name="made", supersteps=True, entry="pick")
    built_graph.add_node("pick", function=lambda board: {"to": "a"}, choose=lambda board: board["to"])
    for name in "ab":
        built_graph.add_node(name, function=lambda board, name=name: {"went": name})
    session = nb.Session(nb.load(built_graph))
    session.skip({"to": "b"})
    session.run()
    assert session.board["went"] == "b"
    assert session.replay().ok
