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


def combine(old, new):
    return new


TEMPLATE = "{{ a.b }} and {{ c }}"
# a kind and its attributes -> what its node reads and writes
ACCESSES = [
    ({}, (), ()),
    ({"function": len, "output": "o"}, (), ("o",)),
    ({"inputs": {"n": "a.b", "m": "c", "k": "a.b"}}, ("a.b", "c"), ()),
    ({"reads": ["r"], "inputs": {"n": "a"}, "writes": ["w"], "output": "o"}, ("r",), ("w",)),
    ({"kind": "tool", "output": "o"}, (), ("o",)),
    ({"kind": "tool"}, (), ()),
    ({"kind": "agent", "prompt": TEMPLATE, "output": "o"}, ("a.b", "c"), ()),
    ({"kind": "llm", "prompt": TEMPLATE, "system": "{{ d }}"}, ("a.b", "c", "d"), ("a",)),
    ({"kind": "llm", "prompt": "plain", "output": "o"}, (), ("o",)),
    (
        {"kind": "llm", "prompt": [("user", TEMPLATE), ("assistant", "{{ d }}")], "output": "o"},
        ("a.b", "c", "d"),
        ("o",),
    ),
    ({"kind": "human", "prompt": "{{ d }}?"}, ("d",), ("a",)),
    ({"kind": "human", "output": "o"}, (), ("o",)),
    ({"kind": "router", "input_key": "a.b", "routes": {}}, ("a.b",), ()),
    ({"kind": "evaluator", "target": "a.b", "threshold": 1}, ("a.b",), ("feedback",)),
    ({"kind": "evaluator", "target": "a", "threshold": 1, "feedback": "f"}, ("a",), ("f",)),
    ({"kind": "generative", "goal": TEMPLATE}, ("a.b", "c"), ()),
    ({"kind": "generative", "goal": "g", "schema": {"properties": {"x": {}, "y": {}}}}, (), ("x", "y")),
    ({"kind": "noop"}, (), ()),
    ({"kind": "join"}, (), ()),
]


@pytest.mark.parametrize(("attributes", "reads", "writes"), ACCESSES)
def test_each_kind_of_node_has_its_reads_and_writes(attributes, reads, writes):
    custom_node = node(**attributes)
    assert (custom_node.reads, custom_node.writes) == (reads, writes)
    assert (custom_node.id, custom_node.label, custom_node.scope) == ("a", "", "root")
    assert custom_node.place.path == "nodes['a']"


@pytest.mark.parametrize(
    ("attributes", "params"),
    [
        ({"function": len, "output": "o"}, {"function": len, "output": "o", "whole": True}),
        ({"function": len}, {"function": len, "output": "a"}),
        ({"kind": "tool", "output": "o"}, {"function": "a", "output": "o", "whole": True}),
        ({"kind": "agent", "output": "o"}, {"ref": "a", "output": "o"}),
        ({"kind": "evaluator", "target": "t", "threshold": 0}, {
            "target": ("t",), "threshold": 0, "ref": "a", "pass_route": "", "fail_route": ""}),
        ({"kind": "human"}, {"output": "a"}),
        ({"kind": "noop", "reducers": {"k": combine}, "choose": len, "defer": True}, {
            "reducers": {"k": combine}, "choose": len, "defer": True}),
        ({"kind": "join", "label": "J"}, {}),
        ({"kind": "llm", "prompt": "p", "map": {"set": 1}}, {"prompt": [("user", "p")], "map": {"set": 1}}),
        ({"kind": "llm", "prompt": "p", "system": "s"}, {"prompt": [("system", "s"), ("user", "p")], "output": "a"}),
        ({"kind": "llm", "prompt": [("user", "p"), ("assistant", "q")], "system": "s"}, {
            "prompt": [("system", "s"), ("user", "p"), ("assistant", "q")], "output": "a"}),
        ({"kind": "llm", "prompt": [{"content": "p", "role": "user"}, ["assistant", "q"]]}, {
            "prompt": [("user", "p"), ("assistant", "q")], "output": "a"}),
    ],
)  # fmt: skip
def test_each_kind_of_node_has_its_params(attributes, params):
    made = dict(node(**attributes).params)
    if attributes.get("kind") == "llm":
        made["prompt"] = [(role, text.render({})) for role, text in made["prompt"]]
    assert made == params


def test_a_breakpoint_is_kept_with_the_recipe():
    graph = one(breakpoint="before")
    graph.add_node("b", breakpoint="after")
    graph.add_node("c")
    assert load(graph).meta["stops"] == (("a", "before"), ("b", "after"))
    assert "breakpoint" not in load(graph).nodes["a"].params


def test_a_graph_in_supersteps_has_its_own_settings():
    graph = one(reducers={"k": max}, function=len)
    graph.add_node("s", kind="subgraph", graph=nx.DiGraph([("b", "c")]))
    assert load(graph).routing == "first"
    graph.graph |= {"supersteps": True, "reducers": {"k": min, "l": min}, "transient": ["t"], "untracked": ["u"]}
    recipe = load(graph)
    assert recipe.routing == "supersteps"
    assert recipe.nodes["a"].params["reducers"] == {"k": max, "l": min}  # its own take precedence
    assert recipe.nodes["b"].params["reducers"] == {"k": min, "l": min}
    assert {(region.transient, region.untracked) for region in recipe.regions.values()} == {(("t",), ("u",))}
    del graph.graph["transient"], graph.graph["supersteps"]
    recipe = load(graph)
    assert {(region.transient, region.untracked) for region in recipe.regions.values()} == {((), ("u",))}
    graph.graph["supersteps"] = False
    assert load(graph).routing == "first"


@pytest.mark.parametrize(
    ("attributes", "isolated"),
    [
        ({"kind": "subgraph"}, False),
        ({"kind": "subgraph", "inputs": {"x": "y"}}, True),
        ({"kind": "subgraph", "outputs": {"x": "y"}}, True),
        ({"kind": "loop", "times": 2}, False),
    ],
)
def test_a_subgraph_with_inputs_or_outputs_is_isolated(attributes, isolated):
    recipe = load(one(graph=inner(), **attributes))
    assert (recipe.regions["a"].isolated, recipe.regions["root"].isolated) == (isolated, False)


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({}, ("sequential", None, "", "")),
        ({"when": "n > 1"}, ("conditional", True, "n > 1", "")),
        ({"when": "n > 1", "label": "L"}, ("conditional", True, "n > 1", "")),
        ({"when": len, "label": "L"}, ("conditional", True, "len", "")),
        ({"label": "L"}, ("sequential", None, "L", "")),
        ({"kind": "parallel"}, ("parallel", None, "", "")),
        ({"kind": "error", "label": "L", "join": "j"}, ("error", None, "L", "j")),
        ({"value": 3}, ("route", None, "3", "")),
        ({"value": "x", "when": "n > 1"}, ("route", True, "x", "")),
        ({"value": None, "weight": 3}, ("sequential", None, "", "")),
    ],
)
def test_an_edge_has_its_kind_and_its_label(attributes, expected):
    graph = nx.DiGraph(name="g")
    graph.add_edge("a", "b", **attributes)
    (edge,) = load(graph).edges
    assert (edge.kind, edge.when and True, edge.condition, edge.join) == expected
    assert edge.place.path == "edges['a', 'b']"


@pytest.mark.parametrize(
    ("entry", "found"),
    [
        ("a", ("a",)),
        (["b", "a", "b"], ("b", "a")),
        (("a", "b"), ("a", "b")),
        ((1, 2), ("(1, 2)",)),
        ([(1, 2), "a"], ("(1, 2)", "a")),
        (None, ("a", "(1, 2)")),
    ],
)
def test_an_entry_is_a_node_or_several(entry, found):
    graph = nx.DiGraph(name="g", entry=entry)
    graph.add_edge("a", "b")
    graph.add_node((1, 2))
    assert load(graph).entry == found


def test_the_target_of_an_ignored_edge_is_no_entry():
    graph = nx.DiGraph(name="g")
    graph.add_node("r", kind="router", input_key="k", routes={"x": "a"})
    graph.add_nodes_from("ab")
    graph.add_edge("r", "b")
    assert load(graph).entry == ("r",)


def test_a_graph_without_a_name_is_called_a_graph():
    for name in (None, ""):
        assert load(nx.DiGraph([("a", "b")], name=name)).name == "graph"
    assert load(nx.DiGraph([("a", "b")], name=5)).name == "5"


@pytest.mark.parametrize(
    ("attributes", "missing", "do"),
    [
        ({"kind": "router", "routes": {}}, "input_key", "add input_key='...', the value's path"),
        ({"kind": "router", "routes": {}, "input_key": None}, "input_key", "add input_key='...', the value's path"),
        ({"kind": "evaluator", "threshold": 1}, "target", "add target='...', the value's path"),
        ({"kind": "evaluator", "target": "t"}, "threshold", "add 'threshold'"),
        ({"kind": "generative"}, "goal", "add 'goal'"),
        ({"kind": "loop", "graph": nx.DiGraph([("b", "c")])}, "until", "add one of the three"),
    ],
)
def test_a_missing_attribute_is_reported_with_the_remedy(attributes, missing, do):
    with pytest.raises(RecipeError) as caught:
        load(one(**attributes))
    (problem,) = [problem for problem in caught.value.problems if problem.code == "R113"]
    assert (problem.what, problem.do) == (f"attribute {missing!r} is missing", do)
    assert problem.where == "<graph 'g'>, nodes['a']"


@pytest.mark.parametrize("end", [{"times": 0}, {"while": "n"}, {"until": "n"}])
def test_a_loop_ends_by_a_number_or_a_condition(end):
    assert list_problems(one(kind="loop", graph=inner(), **end)) == []
