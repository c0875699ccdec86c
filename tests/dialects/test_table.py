from __future__ import annotations

from dataclasses import replace

import pytest

import agentnb as nb
from agentnb.dialects.agentruntime import AgentRuntime
from agentnb.dialects.table import DIALECTS, load_recipe, sort_problems
from agentnb.errors import MOST_SUGGESTIONS, Problem, RecipeError
from agentnb.sources import Source, read_text
from agentnb.world.tools.allow_list import to_allow_entries


def problem(code, where="here", severity="error"):
    return Problem(code, "what", where, "why", "do", severity)


def test_a_row_is_found_by_its_name():
    assert all(dialect.name == name for name, dialect in DIALECTS.items())


def test_problems_come_in_the_order_of_the_text_errors_first():
    inputs = [
        problem("A", "a.yaml:9:1, x", "warning"),
        problem("B", "a.yaml:10:2, x"),
        problem("C", "a.yaml:10:1"),
        problem("D", "a.yaml:2:30, x"),
        problem("D", "a.yaml:2:30, x"),
        problem("E", "the recipe"),
    ]
    assert [each.code for each in sort_problems(inputs)] == ["E", "D", "C", "B", "A"]


def test_warnings_are_kept_with_the_recipe():
    text = "metadata: {name: t}\ninterface: {}\nidentity: {}\ntopology: [{id: a, type: agent, agent_ref: x}]"
    recipe = load_recipe(read_text(text), DIALECTS["coreason"])
    assert [each.code for each in recipe.notes] == ["R127"]
    assert recipe.text == text


def test_suggestions_are_made_for_the_first_misspelled_words_only():
    steps = [f"{{id: a{n}, type: agent, agent_ref: x, agent_reff: y}}" for n in range(MOST_SUGGESTIONS + 50)]
    text = f"metadata: {{name: t}}\ninterface: {{}}\nidentity: {{}}\ntopology: [{', '.join(steps)}]"
    with pytest.raises(RecipeError) as caught:
        load_recipe(read_text(text), DIALECTS["coreason"])
    guesses = [each.do.startswith("did you mean 'agent_ref'") for each in caught.value.problems]
    assert guesses == [True] * MOST_SUGGESTIONS + [False] * 50


def test_errors_are_raised_with_the_warnings():
    router = "{id: a, type: router, input_key: x, routes: {}, default_route: b}"
    text = f"metadata: {{name: t}}\ninterface: {{}}\nidentity: {{}}\ntopology: [{router}]"
    with pytest.raises(RecipeError) as caught:
        load_recipe(read_text(text), DIALECTS["coreason"])
    assert [each.code for each in caught.value.problems] == ["R104", "R127"]


@pytest.mark.parametrize("name", DIALECTS)
def test_a_mapping_is_read_as_a_dialect_of_documents_only(name):
    with pytest.raises(RecipeError) as caught:
        nb.load({"x": 1}, dialect=name)
    if name in {"agentruntime", "coreason", "symphony"}:
        assert "R107" not in {each.code for each in caught.value.problems}
        with pytest.raises(RecipeError) as caught:
            nb.load(object(), dialect=name)
        assert caught.value.problems[0].do == f"pass a mapping with {DIALECTS[name].identified_by}"
    else:
        [problem] = caught.value.problems
        assert (problem.code, problem.do) == ("R107", f"pass {DIALECTS[name].sources}")


@pytest.mark.parametrize(
    ("given", "noun"),
    [
        ("", "an empty text"),
        (None, "None"),
        ([1], "a list"),
        (3, "one value"),
        (True, "one value"),
        (object(), "an object"),
    ],
)
def test_unsupported_input_of_a_dialect_is_named(given, noun):
    with pytest.raises(RecipeError, match=f"R107: {noun} cannot be read as coreason"):
        nb.load(given, dialect="coreason")


def test_of_several_problems_each_comes_once_and_in_the_order_of_lines_and_columns():
    inputs = [
        problem("A", "a.yaml:2:10, x"),
        problem("B", "a.yaml:2:9, x"),
        problem("C", "a.yaml:12:1"),
        problem("D", "step 3:4, b"),
        problem("E", "a.yaml:1:1, x:2:3"),
        problem("F", "a.yaml:1:2", "warning"),
        problem("B", "a.yaml:2:9, x"),
    ]
    assert [each.code for each in sort_problems(inputs)] == ["D", "E", "B", "A", "C", "F"]


AGENT = """
meta: {name: t}
state: {shape: {x: any}}
tools: [{id: one, kind: python, impl: "m#f"}]
graph: {inputs: [x], outputs: [x], nodes: [{id: a, uses: one, nme: b}], edges: [{from: a, to: %s}]}
"""


def test_problems_of_tools_are_warnings_and_kept_once():
    recipe = load_recipe(read_text(AGENT.replace("edges: [{from: a, to: %s}]", "edges: []")), DIALECTS["agentruntime"])
    notes = [(note.code, note.severity) for note in recipe.notes]
    assert notes == [("R112", "warning"), ("R158", "warning")]
    assert [each.code for each in recipe.check()] == ["R112", "R158"]
    with pytest.raises(RecipeError) as caught:
        load_recipe(read_text(AGENT % "gone"), DIALECTS["agentruntime"])
    assert [each.code for each in caught.value.problems] == ["R104", "R158", "R112"]


def test_what_a_source_allows_is_added_to_what_its_recipe_allows(tmp_path):
    allowed = to_allow_entries([tmp_path])
    source = replace(read_text(AGENT.replace("{from: a, to: %s}", "")), allow=allowed)
    recipe = load_recipe(source, DIALECTS["agentruntime"])
    assert recipe.meta["allow"] == allowed
    again = load_recipe(Source(AgentRuntime(recipe), "it", allow=allowed), DIALECTS["agentruntime"])
    assert again.meta["allow"] == (*allowed, *allowed)


@pytest.mark.parametrize(
    ("content", "noun"),
    [
        ({1}, "a set"),
        (b"x", "a bytes"),
        (1.5, "one value"),
        ([], "a list"),
        ("text", "one text"),
    ],
)
def test_a_dialect_of_objects_does_not_take_plain_values(content, noun):
    for name in ("networkx", "polaris"):
        with pytest.raises(RecipeError) as caught:
            load_recipe(Source(content, "it"), DIALECTS[name])
        (found,) = caught.value.problems
        assert found.what == f"{noun} cannot be read as {name}"
        assert found.do == f"pass {DIALECTS[name].sources}"


def test_problems_of_a_source_come_before_that_it_does_not_fit():
    source = replace(read_text("- a\n"), problems=(problem("S"),))
    with pytest.raises(RecipeError) as caught:
        load_recipe(source, DIALECTS["coreason"])
    assert [each.code for each in caught.value.problems] == ["S", "R107"]
    with pytest.raises(RecipeError) as caught:
        load_recipe(replace(source, content=None), DIALECTS["coreason"])
    assert [each.code for each in caught.value.problems] == ["S"]
