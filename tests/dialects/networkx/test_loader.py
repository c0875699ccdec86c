from __future__ import annotations

import networkx as nx
import pytest

from agentnb.errors import RecipeError
from agentnb.load import load


def one(**attributes):
    graph = nx.DiGraph(name="g")
    graph.add_node("a", **attributes)
    return graph


def node(**attributes):
    return load(one(**attributes)).nodes["a"]


def list_problems(graph):
    try:
        problems = load(graph).check()
    except RecipeError as error:
        problems = error.problems
    return [(problem.code, problem.where) for problem in problems]


def never(*args, **kwargs):
    raise AssertionError("it was called while loading")


def test_a_function_is_stored_and_not_called():
    custom_node = node(function=never, inputs={"n": "order.total"}, writes=["sum"])
    assert (custom_node.kind, custom_node.inputs, custom_node.reads, custom_node.writes) == (
        "function",
        {"n": ("order", "total")},
        ("order.total",),
        ("sum",),
    )
    assert custom_node.params["function"] is never


def test_a_function_may_be_bound_later_by_the_node_id():
    assert node().params["function"] == "a"
    assert node(function="other").params["function"] == "other"
    assert node().inputs is None


def test_a_tool_declares_how_it_is_called():
    options = {"timeout": 2, "attempts": 3, "backoff": 0.1, "blocking": True, "repeatable": True}
    assert dict(node(kind="tool", function=never, **options).params) == {"function": never, **options, "output": "a"}
    others = {"agent": {}, "evaluator": {"target": "x", "threshold": 0}, "generative": {"goal": "g"}}
    assert all(node(kind=kind, **options, **more).params["repeatable"] for kind, more in others.items())


def test_an_agent_is_named():
    assert dict(node(kind="agent").params) == {"ref": "a", "output": "a"}
    assert dict(node(kind="agent", agent_ref="x", prompt="Be kind.", output="out").params) == {
        "ref": "x", "prompt": "Be kind.", "output": "out",
    }  # fmt: skip
    assert node(kind="agent", ref="y", agent_ref="x").params["ref"] == "y"


def test_a_person_is_asked():
    custom_node = node(kind="human", prompt="Well?", options=["yes", "no"], timeout=60)
    assert dict(custom_node.params) == {"prompt": "Well?", "options": ("yes", "no"), "timeout": 60, "output": "a"}
    assert custom_node.writes == ("a",)


def test_a_router_needs_an_input():
    assert ("R113", "<graph 'g'>, nodes['a']") in list_problems(one(kind="router", routes={}))
    assert node(kind="router", input_key="x.y", default="").params["input_key"] == ("x", "y")


def inner():
    graph = nx.DiGraph(name="inside")
    graph.add_edge("b", "c")
    return graph


def test_a_loop_has_its_body_and_its_conditions():
    recipe = load(
        one(kind="loop", graph=inner(), **{"while": "n < 3", "until": {"==": [{"var": "done"}, True]}}, max=9)
    )
    loop, body = recipe.nodes["a"], recipe.regions["a"]
    assert (loop.bodies, body.entry, body.owner, body.title) == (("a",), ("b",), "a", "inside")
    assert (recipe.nodes["b"].scope, recipe.nodes["c"].scope) == ("a", "a")
    assert (loop.params["while"].text, loop.params["max"], loop.reads) == ("n < 3", 9, ("n", "done"))
    assert loop.params["until"]({"done": True})


def test_a_loop_must_have_an_end():
    assert list_problems(one(kind="loop", graph=inner())) == [("R113", "<graph 'g'>, nodes['a']")]
    assert list_problems(one(kind="loop", graph=inner(), times=3)) == []
    assert list_problems(one(kind="loop", graph=inner(), until="n <")) == [("R301", "<graph 'g'>, nodes['a'].until")]


def test_a_subgraph_shares_the_board_or_has_one_of_its_own():
    shared = node(kind="subgraph", graph=inner())
    isolated = node(kind="subgraph", graph=inner(), inputs={"x": "order.id"}, outputs={"y": "b.z"})
    assert dict(shared.params) == {}
    assert {key: dict(value) for key, value in isolated.params.items()} == {
        "inputs": {"x": ("order", "id")},
        "outputs": {"y": ("b", "z")},
    }
    assert (isolated.inputs, isolated.reads, isolated.writes) == (None, ("order.id",), ("y",))


@pytest.mark.parametrize("kind", ["loop", "subgraph"])
def test_a_composite_node_needs_a_nested_graph(kind):
    assert ("R121", "<graph 'g'>, nodes['a']") in list_problems(
        one(kind=kind, **({"times": 1} if kind == "loop" else {}))
    )


def test_a_nested_graph_starts_at_its_declared_entry():
    graph = inner()
    graph.graph["entry"] = "c"
    assert load(one(kind="subgraph", graph=graph)).regions["a"].entry == ("c",)
    graph.graph["entry"] = "gone"
    assert [code for code, _ in list_problems(one(kind="subgraph", graph=graph))] == ["R116"]


def test_a_nested_node_keeps_its_own_name_for_calls_and_outputs():
    outer = one(kind="subgraph", graph=inner())
    outer.add_node("b")
    recipe = load(outer).nodes["a/b"]
    assert (recipe.label, recipe.params["function"], recipe.params["output"]) == ("b", "b", "b")


def test_edges_have_conditions_and_kinds():
    graph = nx.MultiDiGraph()
    graph.add_edge("a", "b", when="n > 1")
    graph.add_edge("a", "b", kind="error")
    graph.add_edge("a", "c", label="else")
    graph.add_edge("a", "d", kind="parallel", when={"var": "n"})
    recipe = load(graph)
    assert [(edge.target, edge.kind, edge.condition, edge.when is None) for edge in recipe.edges] == [
        ("b", "conditional", "n > 1", False),
        ("b", "error", "", True),
        ("c", "sequential", "else", True),
        ("d", "parallel", "n", False),
    ]
    assert recipe.routing == "first"


def test_a_condition_may_be_a_callable_and_is_not_called():
    graph = nx.DiGraph()
    graph.add_edge("a", "b", when=never)
    with pytest.raises(Exception, match="it was called"):
        load(graph).edges[0].when({})


def test_an_invalid_condition_is_reported_at_its_edge():
    graph = nx.DiGraph(name="g")
    graph.add_edge("a", "b", when="n >")
    assert list_problems(graph) == [("R301", "<graph 'g'>, edges['a', 'b'].when")]


def test_a_graph_starts_at_its_entry_or_at_nodes_without_incoming_edges():
    graph = nx.DiGraph([(1, 2), (3, 2), (2, 4)])
    assert load(graph).entry == ("1", "3")
    graph.graph["entry"] = 3
    assert load(graph).entry == ("3",)
    graph.graph["entry"] = [3, 1]
    assert load(graph).entry == ("3", "1")
    graph.graph["entry"] = "gone"
    assert [code for code, _ in list_problems(graph)] == ["R105"]


def test_the_entry_may_be_a_tuple():
    graph = nx.DiGraph([((0, 0), (0, 1))], entry=(0, 0))
    assert load(graph).entry == ("(0, 0)",)


def test_a_cycle_has_no_entry():
    assert list_problems(nx.DiGraph([(1, 1)], name="g")) == [("R105", "<graph 'g'>, entry")]


def test_a_graph_declares_its_inputs_and_outputs():
    graph = one()
    graph.graph |= {
        "inputs": {"n": {"default": 3}, "m": {}},
        "outputs": ["r"],
        "init": {"x": 1, "n": 0},
        "limits": {"max_steps": 9},
    }
    recipe = load(graph)
    assert (recipe.name, recipe.dialect, list(recipe.inputs), recipe.outputs) == ("g", "networkx", ["n", "m"], ("r",))
    assert (dict(recipe.init), dict(recipe.limits)) == ({"x": 1, "n": 3}, {"max_steps": 9})
    graph.graph["inputs"] = ["n", "m"]
    assert list(load(graph).inputs) == ["n", "m"]
    graph.graph["outputs"] = "r"
    assert list_problems(graph) == [("R114", "<graph 'g'>, outputs")]


def test_a_graph_without_nodes_is_rejected():
    assert [code for code, _ in list_problems(nx.DiGraph())] == ["R105"]


def test_an_unknown_kind_is_reported_where_it_is():
    assert list_problems(one(kind="agnet")) == [("R117", "<graph 'g'>, nodes['a']")]


def test_foreign_attributes_of_a_graph_are_ignored():
    graph = one(function=never, color="red", pos=(1, 2))
    graph.add_edge("a", "b", weight=3, capacity=1)
    graph.graph["layout"] = "dot"
    recipe = load(graph)
    assert recipe.check() == []
    assert set(recipe.nodes["a"].params) == {"function", "output"}


def test_changing_the_graph_changes_no_recipe():
    graph = one()
    recipe = load(graph)
    graph.add_node("b")
    graph.nodes["a"]["kind"] = "noop"
    assert [(each.id, each.kind) for each in recipe.nodes.values()] == [("a", "function")]
