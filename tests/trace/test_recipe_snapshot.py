from __future__ import annotations

import json

import networkx as nx
import pytest

import agentnb as nb
from agentnb.engine.core.plan import Plan
from agentnb.trace.recipe_snapshot import describe_changes, make_readable_kinds, rebuild_recipe, to_snapshot
from agentnb.world.world import World
from tests.samples.installed import NAMES


@pytest.mark.parametrize("name", NAMES)
def test_every_sample_survives_json_with_the_same_drawing(name):
    recipe = nb.samples(name)
    document = json.loads(json.dumps(to_snapshot(recipe)))
    restored = rebuild_recipe(document)
    assert restored.draw().dot == recipe.draw().dot
    assert (restored.name, restored.dialect, restored.entry, restored.outputs) == (
        recipe.name,
        recipe.dialect,
        recipe.entry,
        recipe.outputs,
    )
    assert document["text"] == recipe.text
    Plan(restored, make_readable_kinds(restored), World())
    assert describe_changes(document, recipe) == []


def make_graph(limit=3, **attributes):
    graph = nx.DiGraph(name="g", entry="a")
    graph.add_node("a", function=lambda n: {"n": n + 1}, inputs={"n": "n"}, **attributes)
    graph.add_node("b", kind="noop")
    graph.add_edge("a", "b", when=f"n > {limit}")
    return graph


def list_changes(graph):
    return describe_changes(json.loads(json.dumps(to_snapshot(nb.load(make_graph())))), nb.load(graph))


def test_changes_are_reported_line_by_line():
    assert list_changes(make_graph()) == []
    more = make_graph()
    more.add_node("c", kind="noop")
    more.add_edge("b", "c")
    assert list_changes(more) == ["node 'c' is new", "edge 'b' -> 'c' (sequential) is new"]
    assert list_changes(make_graph(4)) == [
        "edge 'a' -> 'b' (conditional when n > 3) is gone",
        "edge 'a' -> 'b' (conditional when n > 4) is new",
    ]
    other = make_graph()
    other.nodes["a"]["function"] = lambda n: {"n": n + 2}
    (line,) = list_changes(other)
    assert line.startswith("node 'a', params.")
    assert "was" in line


def test_no_secret_of_a_recipe_is_stored():
    graph = make_graph()
    graph.nodes["a"]["headers"] = {"authorization": "Bearer abcd-1234"}
    assert "abcd-1234" not in json.dumps(to_snapshot(nb.load(graph)))


def test_results_of_conditions_are_available_without_the_recipe(tmp_path):
    graph = nx.DiGraph(name="asks", entry="add")
    graph.add_node("add", function=lambda n: {"n": n + 1}, inputs={"n": "n"})
    graph.add_node("end", function=lambda n: {"end": n}, inputs={"n": "n"})
    graph.add_edge("add", "add", when="n < 3")
    graph.add_edge("add", "end", when=lambda board: board["n"] * 2)
    session = nb.Session(nb.load(graph), {"n": 1}, store=tmp_path / "runs.db", run_id="run")
    session.run()
    session.close()
    read = nb.open(tmp_path / "runs.db", "run")
    assert read.trace.frames.edges["value"].tolist() == session.trace.frames.edges["value"].tolist() == [True, 6]
    assert read.goto(1).why() is not None
    with pytest.raises(nb.AgentNbError, match="L450"):
        read.recipe.edges[0].when({"n": 1})
