from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest

import agentnb as nb
from agentnb.errors import ExecutionError, Place
from agentnb.load import load
from agentnb.recipe.model import Node, Recipe, Requirement
from agentnb.session import Session
from agentnb.session.checks import check_answers, check_inputs, to_inputs
from tests.session.gated_nodes import live
from tests.session.small_sessions import asking, graph, session


def codes(caught):
    return [problem.code for problem in caught.value.problems]


@pytest.mark.parametrize("recipe", [None, "triage", {"nodes": []}, object])
def test_a_session_runs_a_recipe_and_nothing_else(recipe):
    with pytest.raises(nb.ExecutionError, match="X117"):
        nb.Session(recipe)


def test_a_recipe_with_errors_does_not_run_and_all_of_them_are_reported():
    nodes = {"a": Node("a", "noop"), "b": Node("b", "unheard")}
    recipe = Recipe("bad", "test", nodes, (), ("gone",))
    with pytest.raises(nb.RecipeError) as caught:
        nb.Session(recipe)
    expected = [problem.code for problem in recipe.check() if problem.severity == "error"]
    assert codes(caught) == expected
    assert len(expected) > 1


def declared(**inputs):
    built_graph = graph("a")
    built_graph.graph["inputs"] = inputs
    return built_graph


def test_inputs_must_have_the_type_that_is_declared():
    schema = declared(text={"type": "string"}, count={"type": "integer"}, flag={"type": ["boolean", "null"]})
    with pytest.raises(nb.RecipeError) as caught:
        session(schema, {"text": 5, "count": True, "flag": 0})
    assert codes(caught) == ["R206"] * 3
    assert "a bool" in str(caught.value)
    session(schema, {"text": "x", "count": 3.5, "flag": None, "more": 5}, validate_inputs=False)


@pytest.mark.parametrize(
    ("kind", "value"),
    [("number", 1), ("number", 1.5), ("array", (1,)), ("object", {}), ("unheard", 5), (None, 5), ("null", None)],
)
def test_valid_inputs_are_accepted(kind, value):
    run = session(declared(x={"type": kind}), {"x": value})
    assert "x" in run.board


def test_a_required_input_must_be_given():
    nodes = {"a": Node("a", "noop")}
    recipe = Recipe("r", "test", nodes, (), ("a",), inputs={"ticket": {}}, meta={"required": ["ticket"]})
    with pytest.raises(nb.RecipeError, match="rename 'tickets' to 'ticket'") as caught:
        nb.Session(recipe, {"tickets": "x"})
    assert codes(caught) == ["R205"]
    nb.Session(recipe, {"ticket": None})
    nb.Session(recipe, {}, validate_inputs=False)


def test_a_default_of_the_recipe_counts_as_given():
    run = session(declared(x={"type": "integer", "default": 3}))
    assert run.board["x"] == 3
    assert session(declared(x={"type": "integer", "default": 3}), {"x": 4}).board["x"] == 4


def list_problems(inputs, given, **meta):
    """Return (code, what, why) of what is wrong with inputs."""
    recipe = Recipe("r", "test", {"a": Node("a", "noop")}, (), ("a",), inputs=inputs, meta=meta)
    try:
        check_inputs(recipe, given)
    except nb.RecipeError as error:
        return [(problem.code, problem.what, problem.why) for problem in error.problems]
    return []


@pytest.mark.parametrize(
    ("schema", "value", "what", "why"),
    [
        ({"enum": ["a", "b"]}, "c", "input 'x' is 'c'", "enum: ['a', 'b']"),
        ({"const": 1}, 2, "input 'x' is 2", "const: 1"),
        ({"type": "integer", "minimum": 3}, 1, "input 'x' is 1", "minimum: 3"),
        ({"type": "string", "pattern": "^a"}, "b", "input 'x' is 'b'", "pattern: '^a'"),
        ({"minLength": 3}, "ab" * 99, "", ""),
        ({"maxLength": 3}, "ab" * 99, "input 'x' is 'ababab", "maxLength: 3"),
        ({"items": {"type": "integer"}}, [1, "2"], "input 'x.1' is '2'", "type: 'integer'"),
        ({"properties": {"age": {"minimum": 0}}}, {"age": -1}, "input 'x.age' is -1", "minimum: 0"),
        ({"required": ["age"]}, {}, "input 'x' is {}", "'age' is a required property"),
        ({"additionalProperties": False}, {"a": 1}, "input 'x' is {'a': 1}", "('a' was unexpected)"),
        ({"anyOf": [{"type": "null"}, {"minimum": 1}]}, 0, "input 'x' is 0", "anyOf: "),
        (False, 1, "input 'x' is 1", "no value is allowed here"),
        ({"$ref": "#/nowhere"}, 1, "input 'x' cannot be checked", "its schema refers to '/nowhere'"),
    ],
)
def test_a_violated_rule_of_an_input_is_reported(schema, value, what, why):
    problems = list_problems({"x": schema}, {"x": value})
    assert len(problems) == bool(what)
    for code, message, because in problems:
        assert code == "R208"
        assert message.startswith(what)
        assert why in because


def test_every_invalid_input_is_reported():
    inputs = {
        "a": {"type": "string"},
        "b": {"minimum": 1},
        "c": {"properties": {"d": {"type": "null"}, "e": {"const": 1}}},
    }
    problems = list_problems(inputs, {"a": 1, "b": 0, "c": {"d": 1, "e": 2}}, required=["z"])
    assert [(code, message) for code, message, _ in problems] == [
        ("R205", "input 'z' is missing"),
        ("R206", "input 'a' is an int"),
        ("R208", "input 'b' is 0"),
        ("R208", "input 'c.d' is 1"),
        ("R208", "input 'c.e' is 2"),
    ]


def test_a_secret_input_is_not_shown():
    secret = "sk-4711-x"
    (named,) = list_problems({"api_key": {"minLength": 40}}, {"api_key": secret})
    (inside,) = list_problems({"user": {"properties": {"token": {"enum": [1]}}}}, {"user": {"token": secret}})
    (around,) = list_problems({"user": {"maxProperties": 0}}, {"user": {"token": secret}})
    assert not any(secret in text for text in (*named, *inside, *around))


@pytest.mark.parametrize("schema", [{"type": 42}, "string", {"type": "text"}, {"minimum": "x", "type": "integer"}])
def test_an_invalid_schema_is_not_used(schema):
    assert list_problems({"x": schema}, {"x": [1]}) == []


def test_a_schema_of_all_inputs_is_validated_as_one():
    schema = {
        "type": "object",
        "properties": {"q": {"type": "string"}, "n": {"$ref": "#/$defs/few"}, "m": {"minimum": 1}},
        "required": ["q", "more"],
        "additionalProperties": False,
        "$defs": {"few": {"maximum": 3}},
    }
    problems = list_problems(schema["properties"], {"n": 7, "other": 1, "m": 1}, input_schema=schema, required=["q"])
    assert [(code, message) for code, message, _ in problems] == [
        ("R205", "input 'q' is missing"),
        ("R208", "input 'n' is 7"),
        ("R208", "the inputs are n, other, m"),
        ("R208", "the inputs are n, other, m"),
    ]
    assert "'more' is a required property" in problems[2][2]
    assert "('other' was unexpected)" in problems[3][2]
    (typed,) = list_problems(
        schema["properties"], {"q": 5, "more": 1}, input_schema=schema | {"additionalProperties": True}
    )
    assert typed[:2] == ("R206", "input 'q' is an int")


def test_if_the_schema_of_all_inputs_is_invalid_each_is_validated_alone():
    schema = {"properties": {"q": {"type": 42}, "n": {"maximum": 3}}, "required": "q"}
    assert [
        message for _, message, _ in list_problems(schema["properties"], {"q": 1, "n": 4}, input_schema=schema)
    ] == ["input 'n' is 4"]


def test_a_whole_number_is_an_integer_however_it_is_written():
    assert list_problems({"x": {"type": "integer"}}, {"x": 3.0}) == []
    assert [code for code, _, _ in list_problems({"x": {"type": "integer"}}, {"x": 3.5})] == ["R206"]


def test_a_default_that_breaks_its_own_schema_is_reported():
    with pytest.raises(nb.RecipeError) as caught:
        session(declared(x={"minimum": 3, "default": 1}))
    assert codes(caught) == ["R208"]
    session(declared(x={"minimum": 3, "default": 1}), {"x": 4})


@pytest.mark.starts_programs
def test_simple_types_are_reported_without_jsonschema():
    code = (
        "import sys, networkx as nx, agentnb as nb\n"
        "graph = nx.DiGraph(inputs={'x': {'type': ['string', 'null'], 'default': 'a', 'description': 'd'}})\n"
        "graph.add_node('a', kind='noop')\n"
        "nb.Session(nb.load(graph), {'x': None, 'y': 3})\n"
        "sys.exit('jsonschema' in sys.modules)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("inputs", [[1], [], "text", 5, object()])
def test_inputs_that_are_not_a_mapping_are_rejected(inputs):
    with pytest.raises(nb.RecipeError, match="pass a dict") as caught:
        to_inputs(inputs)
    assert codes(caught) == ["R207"]


def test_inputs_are_a_separate_dict():
    inputs = {"a": 1}
    assert to_inputs(None) == {}
    assert to_inputs(inputs) == inputs
    assert to_inputs(inputs) is not inputs


def test_scripts_by_node_must_name_nodes_of_the_recipe():
    recipe = nb.load(asking())
    with pytest.raises(nb.ExecutionError) as caught:
        check_answers(recipe, {"ask": 1, "aks": 2}, {"befor": ["x"], 5: "y"})
    assert codes(caught) == ["X101"] * 3
    assert [problem.where for problem in caught.value.problems] == ["answers=..."] + ["llm=..."] * 2
    assert [problem.do for problem in caught.value.problems[:2]] == ["did you mean 'ask'?", "did you mean 'before'?"]


class Client(dict):
    def complete(self, request):
        return request


@pytest.mark.parametrize("llm", [None, ["x"], {"after": "x"}, Client(gone=1), lambda request: request.prompt])
def test_other_scripts_name_no_nodes(llm):
    check_answers(nb.load(asking()), ["yes"], llm)
    check_answers(nb.load(asking()), None, llm)


@pytest.mark.parametrize(("value", "kind", "said"), [(5, "array", "is an int"), ("x", "integer", "is a str")])
def test_a_type_is_named_with_its_article(value, kind, said):
    with pytest.raises(nb.RecipeError, match=said) as caught:
        session(declared(x={"type": kind}), {"x": value})
    assert f"pass an {kind}" in str(caught.value)


def rule(key, message="", required=True, place=None):
    return Requirement(lambda board: board[key] > 0, message or f"{key} is needed", required, place)


def requiring(*rules, inputs=None):
    recipe = replace(load(graph("a", "b")), requires=rules)
    return Session(recipe, inputs)


def test_a_run_with_an_unmet_requirement_does_not_start():
    run = requiring(rule("n", "give me an n", place=Place("r.yaml", 3, 1, "requirements[0]")))
    assert (run.status, run.error.code, run.error.what) == ("failed", "X121", "give me an n")
    assert "r.yaml:3:1" in run.error.where
    assert run.step() is None
    assert len(run.run()) == 0
    assert run.trace.outcome == {"status": "failed", "steps": 0, "error": "give me an n"}


def test_all_unmet_requirements_are_named_and_no_other():
    run = requiring(rule("n"), rule("m"), rule("k"), inputs={"m": 1})
    assert run.error.what == "n is needed; k is needed"


def test_an_edit_can_meet_a_requirement():
    run = requiring(rule("n"))
    run.run()
    run.edit({"n": 1})
    assert (run.status, run.error) == ("ready", None)
    run.run()
    assert (run.status, run.position) == ("finished", 2)


def test_a_requirement_is_evaluated_only_before_the_first_step():
    run = requiring(rule("n"), inputs={"n": 1})
    run.step()
    run.edit({"n": 0})
    run.run()
    assert run.status == "finished"
    run.goto(0)
    assert run.status == "ready"


def test_an_optional_requirement_warns_and_the_run_starts():
    run = requiring(rule("n", "an n would be nice", required=False))
    assert run.status == "ready"
    with pytest.warns(UserWarning, match="an n would be nice"):
        run.run()
    assert run.status == "finished"


def test_a_background_run_does_not_start_either():
    async def main():
        run = requiring(rule("n"))
        run.start()
        await run.wait()
        assert (run.status, run.position) == ("failed", 0)

    live(main)


def test_nothing_is_skipped_before_an_unmet_requirement():
    run = requiring(rule("n", "give me an n"))
    with pytest.raises(ExecutionError, match="X121: give me an n"):
        run.skip({"a": 1})
    assert (run.position, run.status, dict(run.board)) == (0, "failed", {})
    run.edit({"n": 1})
    assert run.skip({"a": 1}).status == "skipped"
