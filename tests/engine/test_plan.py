from __future__ import annotations

import gc
import importlib
import inspect
import pickle
import sys
import weakref
from typing import TypedDict

import pytest
from langgraph.graph import START, StateGraph

from agentnb.engine.core.plan import Plan
from agentnb.errors import ExecutionError, RecipeError
from agentnb.kinds import KINDS
from agentnb.load import load
from agentnb.recipe.model import Edge, Node, Recipe
from agentnb.session import Session
from agentnb.world.world import World
from tests.session.small_sessions import counting, fan, graph


def plan_of(made, **words):
    return Plan(load(made), KINDS, World(**words))


def test_nodes_are_numbered_in_their_order():
    plan = plan_of(counting())
    assert [(node.index, node.id) for node in plan.nodes] == [(0, "add"), (1, "check"), (2, "done")]
    assert plan.number("done") == 2
    with pytest.raises(ExecutionError, match="did you mean 'done'"):
        plan.number("don")


def test_outgoing_edges_are_sorted_by_kind():
    edges = (
        Edge("a", "b"),
        Edge("a", "c", "error"),
        Edge("a", "d", "timeout"),
        Edge("a", "e", "route"),
        Edge("a", "e", "event"),
        Edge("a", "c", "parallel"),
    )
    nodes = {name: Node(name, "noop") for name in "abcde"}
    a = Plan(Recipe("r", "test", nodes, edges, ("a",)), KINDS, World()).nodes[0]
    assert [edge[1] for edge in a.outgoing_edges] == [1, 2]
    assert [edge[3] for edge in a.outgoing_edges] == [0, 5]
    assert (a.errors, a.timeouts, a.routes) == (((2, 1),), ((3, 2),), {(4, ""): 3})


def test_a_join_knows_which_nodes_can_reach_it():
    plan = plan_of(fan("x", "y"))
    (join,) = plan.joins
    assert {plan.nodes[number].id for number in plan.nodes_before_join[join]} == {"open", "x", "y"}


def test_listeners_are_indexed_by_event_type():
    nodes = {"a": Node("a", "noop", on=("x", "y")), "b": Node("b", "noop", on=("x",))}
    plan = Plan(Recipe("r", "test", nodes, (), ()), KINDS, World())
    assert {kind: [node.id for node in listeners] for kind, listeners in plan.listeners.items()} == {
        "x": ["a", "b"],
        "y": ["a"],
    }


def test_an_unknown_kind_is_a_problem():
    nodes = {"a": Node("a", "rooter"), "b": Node("b", "other")}
    with pytest.raises(RecipeError, match="did you mean 'router'") as caught:
        Plan(Recipe("r", "test", nodes, (), ("a",)), KINDS, World())
    assert [problem.code for problem in caught.value.problems] == ["R204", "R204"]


def test_all_unbound_nodes_are_reported_at_once():
    with pytest.raises(RecipeError) as caught:
        plan_of(graph("a", "b", a="one", b="two"))
    assert len(caught.value.problems) == 2


def test_a_plan_based_on_another_has_its_numbers_of_nodes():
    def plan(*names, like=None):
        nodes = {name: Node(name, "noop", on=("x",)) for name in names}
        return Plan(Recipe("r", "test", nodes, (), names[:1]), KINDS, World(), like)

    first = plan("a", "b", "c")
    second = plan("new", "c", "a", like=first)
    assert (first.index, second.index) == ({"a": 0, "b": 1, "c": 2}, {"new": 3, "c": 2, "a": 0})
    assert [node.id for node in second.nodes] == ["a", "b", "c", "new"]
    assert [node.id for node in second.listeners["x"]] == ["new", "c", "a"]
    assert second.entries["root"] == (3,)
    assert (second.nodes[1].node.scope, second.nodes[1].outgoing_edges) == ("", ())
    third = plan("b", "c", like=second)
    assert (third.index, [node.id for node in third.nodes]) == ({"b": 1, "c": 2}, ["a", "b", "c", "new"])
    assert third.nodes[1].node.scope == "root"


def test_no_join_waits_for_a_removed_node():
    first = plan_of(fan("x", "y"))
    second = Plan(load(graph("x", "y")), KINDS, World(), first)
    assert (second.joins, [node.id for node in second.nodes if node.node.scope == "root"]) == (frozenset(), ["x", "y"])


# -- what depends on the recipe alone is computed once


class Inspected:
    """A function of the board that counts how often its signature is inspected."""

    def __init__(self):
        self.times = 0

    @property
    def __signature__(self):
        self.times += 1
        return inspect.Signature([inspect.Parameter("board", inspect.Parameter.POSITIONAL_OR_KEYWORD)])

    def __call__(self, board):
        return {"n": board["n"] + 1}


def test_a_recipe_is_compiled_once_for_all_its_sessions():
    function = Inspected()
    recipe = load(graph("a", a=function))
    first = Session(recipe, {"n": 1})
    times = function.times
    assert times
    second = Session(recipe, {"n": 5})
    for session in (first, second):
        session.run()
    assert (first.board["n"], second.board["n"], function.times) == (2, 6, times)


def test_each_session_has_its_own_tools():
    recipe = load(graph("a", a="step"))
    sessions = [Session(recipe, {"n": 1}, tools={"step": lambda _, by=number: {"n": by}}) for number in (1, 2)]
    for session in sessions:
        session.run()
    assert [session.board["n"] for session in sessions] == [1, 2]
    with pytest.raises(RecipeError, match="there is no function 'step'"):
        Session(recipe, {"n": 1})


def test_a_recipe_does_not_store_the_tools_of_its_sessions():
    def step(_):
        return {}

    recipe = load(graph("a", "b", a="step", b=lambda _: {}))
    Session(recipe, {}, tools={"step": step}).run()
    step_ref = weakref.ref(step)
    del step
    gc.collect()
    assert step_ref() is None
    assert recipe.nodes


def test_problems_of_bound_and_unbound_nodes_are_reported_at_once():
    recipe = load(graph("a", "b", a=lambda x, y: {}, b="nowhere"))
    for _ in range(2):
        with pytest.raises(RecipeError) as caught:
            Session(recipe, {})
        assert [problem.code for problem in caught.value.problems] == ["R202", "R203"]


def test_replaced_code_is_called_according_to_its_new_signature():
    def function(board):
        return {"n": board["n"] + 1}

    def later():
        return {"n": 7}

    recipe = load(graph("a", a=function))
    before, session = Session(recipe, {"n": 1}), Session(recipe, {"n": 1})
    before.run()
    function.__code__ = later.__code__  # as autoreload does
    session = Session(recipe, {"n": 1})
    session.run()
    assert (before.board["n"], session.board["n"], session.status) == (2, 7, "finished")


class State(TypedDict):
    n: int


def state_graph(name, **functions):
    """Return a LangGraph program of one node."""
    made = StateGraph(State)
    made.add_node(name, functions[name])
    made.add_edge(START, name)
    return made


@pytest.mark.parametrize("make", [graph, state_graph], ids=["networkx", "langgraph"])
def test_a_node_calls_the_code_that_its_module_was_reloaded_with(make, tmp_path, monkeypatch):
    source = "def count(state):\n    return {'n': state['n'] + %s}\n"
    file = tmp_path / f"nodes_of_{make.__name__}.py"
    file.write_text(source % "unknown")
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module(file.stem)
    session = Session(load(make("a", a=module.count)), {"n": 1})
    session.run()
    assert session.status == "failed"
    file.write_text(source % "1")
    importlib.reload(module)
    session.retry()
    assert session.board["n"] == 2
    file.write_text(source % "10")
    importlib.reload(module)
    session.back()
    session.run()
    assert (session.status, session.board["n"]) == ("finished", 11)


def test_a_recipe_with_a_mutable_part_is_compiled_for_each_session():
    params = {"function": lambda board: {"n": board["n"] + 1}}
    recipe = Recipe("r", "test", {"a": Node("a", "function", params=params)}, (), ("a",))
    first = Session(recipe, {"n": 1})
    params["function"] = lambda: {"n": 7}
    second = Session(recipe, {"n": 1})
    for session in (first, second):
        session.run()
    assert [session.board["n"] for session in (first, second)] == [2, 7]


def test_the_problems_of_a_recipe_are_a_new_list_on_each_access():
    recipe = load(graph("a"))
    recipe.check().append("mine")
    assert "mine" not in recipe.check()


def step_of_a_module(board):
    return {"n": board["n"] + 1}


def test_a_pickled_recipe_contains_no_derived_data():
    recipe = load(graph("a", a=step_of_a_module))
    size = len(pickle.dumps(recipe))
    Session(recipe, {"n": 1}).run()
    restored = pickle.loads(pickle.dumps(recipe))
    session = Session(restored, {"n": 1})
    session.run()
    assert (session.board["n"], len(pickle.dumps(recipe))) == (2, size)
