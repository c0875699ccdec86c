from __future__ import annotations

from math import isfinite

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

import agentnb as nb
from agentnb.dialects.networkx import schema as words
from agentnb.errors import Place

PLACE = Place("<graph 'g'>", path="nodes['a']")


def list_problems(given, known):
    problems: list = []
    reported = words.read(given, known, PLACE, problems)
    return reported, [(problem.code, problem.severity, problem.where) for problem in problems]


@pytest.mark.parametrize(
    ("name", "reader", "good", "bad"),
    [
        ("label", words.parse_text, "a", 3),
        ("reads", words.parse_texts, ["a"], "a"),
        ("function", words.parse_function, len, 3),
        ("input_key", words.convert_path, ("a", 0), [1, "a"]),
        ("inputs", words.parse_paths, {"x": "a.b"}, {"x": 3}),
        ("inputs", words.parse_paths, {"x": ["a"]}, {3: "a"}),
        ("times", words.parse_rounds, 0, True),
        ("max", words.parse_count, 1, 0),
        ("timeout", words.parse_seconds, 0.5, float("inf")),
        ("blocking", words.parse_flag, False, 1),
        ("repeatable", words.parse_flag, True, "yes"),
        ("options", words.parse_options, ["yes"], "yes"),
        ("init", words.parse_mapping, {"a": 1}, {1: "a"}),
        ("inputs", words.parse_schemas, ["a", "b"], [1]),
        ("while", words.parse_condition, "n > 1", 7),
    ],
)
def test_an_invalid_value_is_reported(name, reader, good, bad):
    actual, problems = list_problems({name: good}, {name: reader})
    assert name in actual
    assert problems == []
    actual, problems = list_problems({name: bad}, {name: reader})
    assert name not in actual
    ((code, severity, place),) = problems
    assert code == ("R310" if reader is words.parse_condition else "R114")
    assert (severity, place) == ("error", f"<graph 'g'>, nodes['a'].{name}")


def test_none_counts_as_omitted():
    assert list_problems({"label": None}, {"label": words.parse_text}) == ({}, [])


def test_paths_are_parsed():
    assert words.convert_path("order.lines.0") == ("order", "lines", "0")
    assert words.convert_path(["order.id", 0]) == ("order.id", 0)


def test_an_attribute_similar_to_a_known_one_has_a_suggestion():
    _, problems = list_problems({"funtion": 1, "color": "red", 7: 8}, {**words.COMMON, **words.BY_KIND["function"]})
    assert problems == [("R112", "warning", "<graph 'g'>, nodes['a'].funtion")]


def test_an_attribute_of_another_kind_is_reported():
    _, problems = list_problems({"prompt": "Hi"}, {**words.COMMON, **words.BY_KIND["function"]})
    assert problems == [("R112", "warning", "<graph 'g'>, nodes['a'].prompt")]


def test_a_condition_reports_its_own_problems():
    _, problems = list_problems({"when": "a <"}, words.EDGE)
    assert [code for code, _, _ in problems] == ["R301"]


def test_a_value_is_abbreviated():
    assert len(words.shorten_value("x" * 500)) == 60
    assert (words.shorten_value([]), words.shorten_value({}), words.shorten_value(object())) == (
        "a list",
        "a dict",
        "an object",
    )


@pytest.mark.parametrize("word", ["tools", "messages", "prompt"])
def test_settings_of_a_model_may_not_contain_messages_or_tools(word):
    graph = nx.DiGraph(name="g")
    graph.add_node("a", kind="llm", prompt="Hi", model={"model": "m", word: [{"name": "x"}]})
    with pytest.raises(nb.RecipeError, match=rf"R114(.|\n)*{word!r}"):
        nb.load(graph)


@given(
    st.one_of(st.integers(-3, 3), st.floats(), st.booleans(), st.none(), st.text(max_size=3), st.lists(st.integers()))
)
def test_numbers_are_checked_against_their_bounds(value):
    is_integer = type(value) is int
    finite = type(value) in {int, float} and isfinite(value)
    meant = {
        words.parse_rounds: is_integer and value >= 0,
        words.parse_count: is_integer and value >= 1,
        words.parse_seconds: finite and value >= 0,
        words.parse_number: finite,
        words.parse_flag: type(value) is bool,
    }
    for reader, fits in meant.items():
        try:
            actual = reader(value)
        except words.InvalidValue:
            assert not fits, reader
        else:
            assert fits, reader
            assert actual == value
