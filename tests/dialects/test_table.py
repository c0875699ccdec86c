from __future__ import annotations

import pytest

import agentnb as nb
from agentnb.dialects.table import DIALECTS, load_recipe, sort_problems
from agentnb.errors import MOST_SUGGESTIONS, Problem, RecipeError
from agentnb.sources import read_text


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
