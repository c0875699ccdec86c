from __future__ import annotations

import pytest

import agentnb as nb
from agentnb.recipe.model import Node, Recipe
from agentnb.session.checks import check_answers, inputs_of
from tests.session.making import asking, graph, session


def codes(caught):
    return [problem.code for problem in caught.value.problems]


@pytest.mark.parametrize("recipe", [None, "triage", {"nodes": []}, object])
def test_a_session_runs_a_recipe_and_nothing_else(recipe):
    with pytest.raises(nb.ExecutionError, match="X117"):
        nb.Session(recipe)


def test_a_recipe_with_errors_does_not_run_and_all_of_them_are_told():
    nodes = {"a": Node("a", "noop"), "b": Node("b", "unheard")}
    recipe = Recipe("bad", "test", nodes, (), ("gone",))
    with pytest.raises(nb.RecipeError) as caught:
        nb.Session(recipe)
    wanted = [problem.code for problem in recipe.check() if problem.severity == "error"]
    assert codes(caught) == wanted
    assert len(wanted) > 1


def declared(**inputs):
    made = graph("a")
    made.graph["inputs"] = inputs
    return made


def test_inputs_must_have_the_type_that_is_declared():
    made = declared(text={"type": "string"}, count={"type": "integer"}, flag={"type": ["boolean", "null"]})
    with pytest.raises(nb.RecipeError) as caught:
        session(made, {"text": 5, "count": True, "flag": 0})
    assert codes(caught) == ["R206"] * 3
    assert "a bool" in str(caught.value)
    session(made, {"text": "x", "count": 3, "flag": None, "more": 5}, validate_inputs=False)
    session(made, {"text": "x", "count": 3, "flag": None, "more": 1})


@pytest.mark.parametrize(
    ("kind", "value"),
    [("number", 1), ("number", 1.5), ("array", (1,)), ("object", {}), ("unheard", 5), (None, 5), ("null", None)],
)
def test_inputs_that_fit(kind, value):
    run = session(declared(x={"type": kind}), {"x": value})
    assert "x" in run.board


def test_a_required_input_must_be_given():
    nodes = {"a": Node("a", "noop")}
    recipe = Recipe("r", "test", nodes, (), ("a",), inputs={"ticket": {}}, meta={"required": ["ticket"]})
    with pytest.raises(nb.RecipeError, match="did you mean 'tickets'") as caught:
        nb.Session(recipe, {"tickets": "x"})
    assert codes(caught) == ["R205"]
    nb.Session(recipe, {"ticket": None})
    nb.Session(recipe, {}, validate_inputs=False)


def test_a_default_of_the_recipe_counts_as_given():
    run = session(declared(x={"type": "integer", "default": 3}))
    assert run.board["x"] == 3
    assert session(declared(x={"type": "integer", "default": 3}), {"x": 4}).board["x"] == 4


@pytest.mark.parametrize("inputs", [[1], [], "text", 5, object()])
def test_inputs_that_are_no_mapping(inputs):
    with pytest.raises(nb.RecipeError, match="pass a dict") as caught:
        inputs_of(inputs)
    assert codes(caught) == ["R207"]


def test_inputs_are_a_dict_of_their_own():
    given = {"a": 1}
    assert inputs_of(None) == {}
    assert inputs_of(given) == given
    assert inputs_of(given) is not given


def test_scripts_by_node_name_nodes_of_the_recipe():
    recipe = nb.load(asking())
    with pytest.raises(nb.ExecutionError) as caught:
        check_answers(recipe, {"ask": 1, "aks": 2}, {"befor": ["x"], 5: "y"})
    assert codes(caught) == ["X101"] * 3
    assert [problem.where for problem in caught.value.problems] == ["Session(answers=...)"] + ["Session(llm=...)"] * 2
    assert [problem.do for problem in caught.value.problems[:2]] == ["did you mean 'ask'?", "did you mean 'before'?"]


class Client(dict):
    def complete(self, request):
        return request


@pytest.mark.parametrize("llm", [None, ["x"], {"after": "x"}, Client(gone=1), lambda request: request.prompt])
def test_other_scripts_name_no_nodes(llm):
    check_answers(nb.load(asking()), ["yes"], llm)
    check_answers(nb.load(asking()), None, llm)
