from __future__ import annotations

import networkx as nx
import pytest

from agentnb.dialects.networkx.parts import levels as module
from agentnb.dialects.networkx.parts.levels import infer_kind, is_graph, list_levels


def graph(*nodes, **inside):
    built_graph = nx.DiGraph()
    built_graph.add_nodes_from(nodes)
    for name, inner in inside.items():
        built_graph.add_node(name, kind="subgraph", graph=inner)
    return built_graph


def read(given):
    problems: list = []
    reported = list_levels(given, "g", problems)
    return [list(level.ids.values()) for level in reported], [(problem.code, problem.where) for problem in problems]


def test_ids_of_nodes_are_converted_to_text():
    assert read(graph(1, "b", ("c", 2))) == ([["1", "b", "('c', 2)"]], [])


def test_ids_with_the_same_text_conflict():
    assert read(graph(1, "1"))[1] == [("R106", "<graph 'g'>, nodes['1']")]


def test_unique_inner_ids_are_kept():
    assert read(graph("a", s=graph("b", t=graph("c"))))[0] == [["a", "s"], ["b", "t"], ["c"]]


def test_duplicate_inner_ids_are_prefixed_with_their_owner():
    assert read(graph("a", s=graph("a", "b")))[0] == [["a", "s"], ["s/a", "b"]]


def test_one_graph_may_be_nested_in_several_nodes():
    inner = graph("a", "b")
    assert read(graph(s=inner, t=inner)) == ([["s", "t"], ["s/a", "s/b"], ["t/a", "t/b"]], [])


def test_a_generated_id_may_conflict_too():
    assert [code for code, _ in read(graph("s/a", "a", s=graph("a")))[1]] == ["R106"]


def test_a_graph_cannot_contain_itself():
    built_graph = graph("a")
    built_graph.add_node("s", kind="loop", graph=built_graph)
    assert read(built_graph)[1] == [("R108", "<graph 'g'>, nodes['s'].graph")]


def test_the_nesting_of_graphs_is_limited():
    built_graph = graph("a")
    for _ in range(40):
        built_graph = graph(s=built_graph)
    assert [code for code, _ in read(built_graph)[1]] == ["R108"]


@pytest.mark.parametrize(("deep", "codes"), [(module.MAX_DEPTH, []), (module.MAX_DEPTH + 1, ["R108"])])
def test_graphs_may_be_nested_to_a_limit(deep, codes):
    built_graph = graph("a")
    for _ in range(deep - 1):
        built_graph = graph(s=built_graph)
    ids, problems = read(built_graph)
    assert [code for code, _ in problems] == codes
    assert len(ids) == module.MAX_DEPTH
    assert all(where.endswith(".graph") for _, where in problems)


@pytest.mark.parametrize(("limit", "codes"), [(5, []), (4, ["R108"])])
def test_graphs_may_have_nodes_to_a_limit(monkeypatch, limit, codes):
    monkeypatch.setattr(module, "MAX_NODES", limit)
    assert [code for code, _ in read(graph("a", s=graph("b", t=graph("c"))))[1]] == codes


def test_a_level_has_its_title_its_owner_and_its_places():
    inner = graph("b")
    inner.graph["name"] = "inside"
    outer, named, unnamed = list_levels(graph("a", s=inner, t=graph("c")), "g", [])
    assert [(level.title, level.owner, level.region) for level in (outer, named, unnamed)] == [
        ("", "", "root"),
        ("inside", "s", "s"),
        ("t", "t", "t"),
    ]
    assert str(outer.at("edges['a', 'b']")) == "<graph 'g'>, edges['a', 'b']"
    assert str(named.get_place("b")) == "<graph 'g'>, nodes['s'].graph.nodes['b']"
    assert named.around == (outer.graph, inner)


@pytest.mark.parametrize("other", [3, "text", ["a"], object()])
@pytest.mark.parametrize(
    ("kind", "codes"), [("loop", ["R114"]), ("subgraph", ["R114"]), ("function", []), ("tool", [])]
)
def test_only_loops_and_subgraphs_have_an_inner_graph(kind, codes, other):
    built_graph = nx.DiGraph()
    built_graph.add_node("a", kind=kind, graph=other)
    assert [code for code, _ in read(built_graph)[1]] == codes


def test_of_two_nodes_with_one_text_the_first_is_found_by_it():
    (level,) = list_levels(graph(1, "1"), "g", [])
    assert (level.id_of(1), level.id_of("1"), level.id_of(2)) == ("1", "1", "2")
    nested = list_levels(graph("a", s=graph("a", "b")), "g", [])[1]
    assert (nested.id_of("a"), nested.id_of("b"), nested.id_of("c")) == ("s/a", "b", "c")


def test_a_graph_used_too_often_is_rejected(monkeypatch):
    monkeypatch.setattr(module, "MAX_NODES", 100)
    built_graph = graph("a")
    for _ in range(20):
        built_graph = graph(s=built_graph, t=built_graph)
    assert [code for code, _ in read(built_graph)[1]] == ["R108"]


def test_an_undirected_graph_is_rejected():
    assert read(nx.Graph([(1, 2)]))[1] == [("R131", "<graph 'g'>")]
    assert read(graph(s=nx.Graph([(1, 2)])))[1] == [("R131", "<graph 'g'>, nodes['s'].graph")]


def test_nested_graphs_must_be_graphs():
    assert read(graph(s="other"))[1] == [("R114", "<graph 'g'>, nodes['s'].graph")]


@pytest.mark.parametrize("cls", [nx.Graph, nx.DiGraph, nx.MultiDiGraph, type("Mine", (nx.DiGraph,), {})])
def test_every_type_of_graph_is_recognized(cls):
    assert is_graph(cls())


@pytest.mark.parametrize("other", [None, {}, nx.DiGraph, object(), nx.NetworkXError()])
def test_other_objects_are_not_recognized(other):
    assert not is_graph(other)


def test_a_node_with_a_graph_is_a_subgraph():
    assert infer_kind({"graph": nx.DiGraph()}) == "subgraph"
    assert infer_kind({"graph": nx.DiGraph(), "kind": "loop"}) == "loop"
    assert infer_kind({}) == "function"


def test_a_node_is_found_by_its_object_or_its_text():
    (level,) = list_levels(graph(1, "b"), "g", [])
    assert (level.id_of(1), level.id_of("1"), level.id_of("b"), level.id_of(["x"])) == ("1", "1", "b", "['x']")
