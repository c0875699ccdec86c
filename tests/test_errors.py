from __future__ import annotations

import copy
import dataclasses
import pickle

import networkx as nx
import pytest

import agentnb as nb
from agentnb import errors
from agentnb.errors import (
    MOST_SUGGESTIONS,
    AgentNbError,
    ExecutionError,
    NodeExecutionError,
    Place,
    Problem,
    RecipeError,
    close_match,
    did_you_mean,
    format_error,
    limit_suggestions,
)

ONE = Problem("R104", "edge 'a' -> 'b' leads nowhere", "f.yaml:1:2", "there is no 'b'", "add it")
TWO = Problem("R105", "what", "where", "why", "do", "warning")


def test_a_problem_prints_what_where_why_and_do():
    assert str(ONE) == (
        "R104: edge 'a' -> 'b' leads nowhere\n  where: f.yaml:1:2\n  why:   there is no 'b'\n  do:    add it"
    )
    assert str(TWO).startswith("warning R105: what")
    with pytest.raises(dataclasses.FrozenInstanceError):
        ONE.code = "R1"


def test_an_error_prints_all_its_problems():
    error = RecipeError(ONE, TWO)
    assert str(error) == f"{ONE}\n{TWO}"
    assert error.problems == (ONE, TWO)
    assert isinstance(error, ValueError)


def test_problems_can_be_shown_as_a_table():
    frame = RecipeError(ONE, TWO).to_frame()
    assert list(frame.columns) == ["code", "what", "where", "why", "do", "severity"]
    assert frame["severity"].tolist() == ["error", "warning"]


@pytest.mark.parametrize("error", [RecipeError(ONE, TWO), ExecutionError(), NodeExecutionError(ONE)])
def test_an_error_survives_pickling(error):
    for restored in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert (type(restored), restored.problems, str(restored)) == (type(error), error.problems, str(error))


def test_ipython_shows_the_problems_and_no_traceback():
    assert RecipeError(ONE)._render_traceback_() == ["RecipeError: 1 problem(s)", str(ONE)]


def test_the_drawn_tree_of_errors_is_the_actual_one():
    drawn = [line.split("+-- ")[1].split()[0] for line in errors.__doc__.splitlines() if "+-- " in line]
    named = vars(errors).items()
    error_names = [name for name, value in named if isinstance(value, type) and issubclass(value, AgentNbError)]
    assert sorted(["AgentNbError", *drawn]) == sorted(error_names)


@pytest.mark.parametrize(
    ("place", "text"),
    [
        (Place("f.yaml", 3, 7, "nodes.a"), "f.yaml:3:7, nodes.a"),
        (Place("f.yaml", 3, 7), "f.yaml:3:7"),
        (Place("<dict>", path="nodes.a"), "<dict>, nodes.a"),
        (Place("<dict>"), "<dict>"),
    ],
)
def test_a_place_has_a_text_form(place, text):
    assert str(place) == text


def test_similar_names_are_suggested():
    assert did_you_mean("refnd", ["triage", "refund"], "else") == "did you mean 'refund'?"
    assert did_you_mean("x", ["triage"], "name one") == "name one"
    assert did_you_mean(5, [5], "else") == "did you mean '5'?"


def test_the_number_of_suggestions_is_limited():
    with limit_suggestions():
        with limit_suggestions():  # counts on
            actual = [did_you_mean("raed", ["read"], "no") for _ in range(MOST_SUGGESTIONS)]
        assert set(actual) == {"did you mean 'read'?"}
        assert did_you_mean("raed", ["read"], "no") == "no"
    assert did_you_mean("raed", ["read"], "no") == "did you mean 'read'?"


def test_a_suggestion_is_masked():
    assert did_you_mean("https://ann:hunter1@example.org", ["https://ann:hunter2@example.org"], "no") == (
        "did you mean 'https://ann:********@example.org'?"
    )


@pytest.mark.parametrize(
    ("child", "parent"),
    [
        (RecipeError, ValueError),
        (errors.AgentRuntimeError, ExecutionError),
        (NodeExecutionError, errors.AgentRuntimeError),
    ],
)
def test_errors_are_caught_by_their_base_classes(child, parent):
    assert issubclass(child, parent)


def test_an_error_that_cannot_be_formatted_is_reported():
    class Mute(Exception):
        def __str__(self):
            raise RuntimeError("no words")

    assert [format_error(Mute()), format_error(ValueError("no")), format_error(RecipeError(ONE, TWO))] == [
        "<Mute that cannot be shown: RuntimeError>", "no", f"{ONE.what}; {TWO.what}"
    ]  # fmt: skip


def test_a_foreign_error_has_a_text_and_no_problems():
    error = errors.AgentRuntimeError("enough")
    assert (str(error), error.problems, format_error(error)) == ("enough", (), "enough")
    assert str(pickle.loads(pickle.dumps(error))) == "enough"


@pytest.mark.parametrize(
    ("word", "near"),
    [
        ("serch", "search"), ("saerch", "search"), ("searchh", "search"), ("SEARCH", "search"),
        ("max_iter", "max_iterations"),
        ("srot", "sort"), ("sor", "sort"), ("Sort", "sort"), ("sorf", "sort"), ("ad", "add"),
        ("foo", None), ("bar", None), ("pear", None), ("x", None), ("st", None), ("iterate", None), ("", None),
    ],
)  # fmt: skip
def test_a_suggestion_differs_by_a_typo(word, near):
    known = ["floor", "sort", "search", "max_iterations", "add", "a"]
    assert close_match(word, known) == near
    assert did_you_mean(word, known, "name one") == (f"did you mean {near!r}?" if near else "name one")


@pytest.mark.parametrize(
    ("call", "article"),
    [
        (lambda: nb.load(OrderedPairs()), "an OrderedPairs is not a recipe"),
        (lambda: nb.load(nx.Graph()), "a Graph: its edges are undirected"),
        (lambda: nb.Session(nb.load(graph()), hooks=5), "an int is not a mapping of hooks"),
        (lambda: nb.Session(nb.load(graph()), llm=5), "an int was passed"),
        (lambda: nb.Session(nb.load(graph()), hooks=[5]), "it is an int"),
    ],
)
def test_names_of_classes_have_an_article(call, article):
    with pytest.raises(nb.errors.AgentNbError) as caught:
        call()
    assert any(article in str(problem) for problem in caught.value.problems)


class OrderedPairs:
    """Something that no recipe can be made of."""


def graph():
    built_graph = nx.DiGraph(name="one")
    built_graph.add_node("a", function=dict)
    return built_graph


def make_graph():
    graph = nx.DiGraph()
    graph.add_node("a", function=dict)
    return nb.load(graph)


def run_with_failing_listener():
    session = nb.Session(make_graph())
    session.subscribe(lambda step: 1 / 0)
    session.run()


def run_with_opaque_value():
    opaque = type("Opaque", (), {"__slots__": ("value",)})  # each class is reported once
    nb.Session(make_graph(), {"value": opaque()}).run()


@pytest.mark.parametrize("run", [run_with_failing_listener, run_with_opaque_value])
def test_a_warning_names_the_line_of_the_caller(run):
    with pytest.warns(UserWarning, match=r"was removed|by reference") as caught:
        run()
    (each,) = caught
    first = run.__code__.co_firstlineno
    assert each.filename == __file__
    assert first < each.lineno <= first + 3
