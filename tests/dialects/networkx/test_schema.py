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
        *(
            ("prompt", words.parse_messages, [("user", "Hi"), {"role": "user", "content": "Hi"}], bad)
            for bad in (
                3,
                {"role": "user", "content": "Hi"},
                ["Hi", "Ho"],
                [("user", 3)],
                [("user", "Hi", "Ho")],
                [{"role": "user"}],
                [{"role": "user", "content": None}],
                [{"role": "user", "content": "Hi", "name": "Bo"}],
            )
        ),
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


def test_a_misspelled_setting_of_a_model_is_reported():
    graph = nx.DiGraph(name="g")
    graph.add_node("a", kind="llm", prompt="Hi", model={"model": "m", "tempratur": 0.5, "tone": "calm"})
    (problem,) = nb.load(graph).check()
    assert (problem.code, problem.severity, problem.do) == ("R112", "warning", "did you mean 'temperature'?")
    assert problem.where == "<graph 'g'>, nodes['a'].model.tempratur"


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


def generate():
    yield 1


READERS = {
    # reader -> (accepted, rejected)
    words.parse_text: (["", "a"], [3, ["a"], b"a"]),
    words.parse_texts: ([[], ["a", "b"], ("a",)], ["a", ["a", 3], {"a"}]),
    words.parse_function: ([len, "name"], [3, ["name"], generate]),
    words.convert_path: (["a.b", ("a", 0), ["a", "b"]], [3, (), [], (0, "a"), ("a", 1.5), {"a"}]),
    words.parse_paths: ([{}, {"x": "a"}, {"x": ("a", 0)}], [["a"], {3: "a"}, {"x": "a", 3: "b"}, {"x": ()}]),
    words.parse_options: ([[], ("yes", 1)], ["yes", {"yes"}]),
    words.parse_mapping: ([{}, {"a": 1}], [[], {1: "a"}, {"a": 1, 2: 3}]),
    words.parse_schemas: ([[], ["a"], ("a", "b"), {"a": {"type": "string"}}], ["a", [1], {1: {}}]),
    words.parse_template: (["", "{{ a }}"], [3, ["a"]]),
    words.parse_messages: (["a", [("user", "a")], ()], [3, {"user": "a"}]),
    words.parse_callables: ([{}, {"a": max}], [max, {"a": 3}, {3: max}, {"a": max, "b": None}]),
    words.parse_model_settings: (["m", {"model": "m"}, {}], [{"tools": []}, {"messages": []}]),
    words.parse_side: (["before", "after"], ["", "during", True]),
    words.parse_simulated: (["", "a", {}, ["a", {"b": 1}], ("a",)], [[], (), 3, ["a", 3], [["a"]]]),
}


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.__name__)
def test_a_reader_accepts_its_values_and_no_others(reader):
    accepted, rejected = READERS[reader]
    for value in accepted:
        reader(value)
    for value in rejected:
        with pytest.raises(words.InvalidValue) as caught:
            reader(value)
        assert all(caught.value.args)


def test_values_are_read_in_one_form():
    assert words.parse_texts(["a"]) == words.parse_texts(("a",)) == ("a",)
    assert words.parse_simulated("a") == words.parse_simulated(["a"]) == ("a",)
    assert words.parse_options(["a"]) == ("a",)
    assert words.parse_schemas(["a", "b"]) == {"a": {}, "b": {}}
    assert words.parse_paths({"x": "a.b", "y": ["c", 0]}) == {"x": ("a", "b"), "y": ("c", 0)}


def test_settings_that_belong_to_the_node_are_named_in_order():
    with pytest.raises(words.InvalidValue) as caught:
        words.parse_model_settings({"tools": [], "model": "m", "messages": []})
    assert caught.value.args[0].endswith("'messages', 'tools'")


@pytest.mark.parametrize(
    ("name", "kind", "what", "do"),
    [
        ("lable", "noop", "unknown attribute 'lable'", "did you mean 'label'?"),
        ("labels", "noop", "unknown attribute 'labels'", "did you mean 'label'?"),
        ("tabel", "noop", "unknown attribute 'tabel'", "did you mean 'label'?"),
        ("babes", "noop", None, None),
        ("threshold", "noop", "attribute 'threshold' has no meaning here", "remove it; kinds that have it: evaluator"),
        ("goal", "agent", "attribute 'goal' has no meaning here", "remove it; kinds that have it: generative"),
        ("output", "noop", "attribute 'output' has no meaning here",
         "remove it; kinds that have it: function, tool, agent, llm, human"),
        ("weight", "noop", None, None),
        (3, "noop", None, None),
    ],
)  # fmt: skip
def test_an_unknown_attribute_is_reported_if_it_may_be_meant(name, kind, what, do):
    problems: list = []
    assert words.read({name: 1}, words.list_words(kind), PLACE, problems) == {}
    if what is None:
        assert problems == []
    else:
        (problem,) = problems
        assert (problem.what, problem.do, problem.severity) == (what, do, "warning")
        assert problem.where == f"<graph 'g'>, nodes['a'].{name}"
        assert problem.why == f"the attributes here are: {', '.join(words.list_words(kind))}"


def test_attributes_of_nodes_have_no_meaning_for_edges_and_graphs():
    for known in (words.EDGE, words.GRAPH):
        assert list_problems({"threshold": 1, "prompt": "p"}, known) == ({}, [])


@pytest.mark.parametrize(
    ("value", "shown"), [("a", "'a'"), (3, "3"), (1.5, "1.5"), (None, "a NoneType"), ((1,), "a tuple")]
)
def test_a_wrong_value_is_shown_or_described(value, shown):
    assert words.shorten_value(value) == shown
