from __future__ import annotations

import pytest

from agentnb.board.values import ABSENT
from agentnb.errors import RecipeError
from agentnb.recipe.model import Node
from agentnb.world.call_arguments import (
    check_signature,
    find_options,
    get_options,
    make_settings,
    takes_board,
    to_writes,
)
from agentnb.world.llm.simulated import SimulatedClient
from agentnb.world.world import World
from tests.session.small_sessions import graph, session


def wrong(function, inputs=None):
    with pytest.raises(RecipeError) as caught:
        check_signature(Node("n", "function", inputs=inputs), function)
    return [problem.code for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("function", "takes"),
    [
        (lambda board: None, True),
        (lambda board, /: None, True),
        (lambda *boards: None, True),
        (lambda: None, False),
        (lambda *, board: None, False),
        (lambda **words: None, False),
        (lambda board=None: None, False),
        (len, True),
        (iter, True),  # a builtin that does not tell its signature
    ],
)
def test_a_function_with_a_board_parameter_receives_the_board(function, takes):
    assert takes_board(function) is takes


def test_inputs_must_be_parameters_and_required_ones_must_be_given():
    assert wrong(lambda a: None, {"b": ("b",)}) == ["R201", "R202"]
    assert wrong(lambda a, b: None, {"a": ("a",)}) == ["R202"]
    assert wrong(lambda a, /: None, {"a": ("a",)}) == ["R201"]
    assert wrong(lambda a, *, b: None) == ["R202"]


@pytest.mark.parametrize(
    ("function", "inputs"),
    [
        (lambda a, b=2: None, {"a": ("a",)}),
        (lambda **words: None, {"a": ("a",)}),
        (lambda *, a: None, {"a": ("a",)}),
        (lambda board, other=1: None, None),
        (lambda: None, None),
        (iter, {"a": ("a",)}),
    ],
)
def test_a_matching_signature_is_accepted(function, inputs):
    check_signature(Node("n", "function", inputs=inputs), function)


def test_invalid_signatures_are_reported_at_once_before_anything_runs():
    built_graph = graph("a", "b", a=lambda x, y: None, b=lambda p, q: None)
    with pytest.raises(RecipeError) as caught:
        session(built_graph)
    assert [problem.code for problem in caught.value.problems] == ["R202", "R202"]
    assert "'x', 'y'" in caught.value.problems[0].what


def test_returned_values_are_converted_to_writes():
    assert to_writes("n", {"a": 1}) == {"a": 1}
    assert to_writes("n", None) == {}
    assert to_writes("n", [1]) == {"n": [1]}
    assert to_writes("n", 0) == {"n": 0}


def given_by(inputs, board):
    seen = {}

    def take(**words):
        seen.update(words)

    built_graph = graph("take", take=take)
    built_graph.nodes["take"]["inputs"] = inputs
    session(built_graph, board).step()
    return seen


def test_inputs_are_read_by_path_and_absent_ones_are_omitted():
    board = {"a": 1, "deep": {"list": [10, {"x": 20}]}, "none": None, "dotted.key": 5}
    inputs = {"a": "a", "x": "deep.list.1.x", "first": ("deep", "list", 0), "none": "none", "gone": "b", "far": "a.b.c"}
    assert given_by(inputs, board) == {"a": 1, "x": 20, "first": 10, "none": None}


def test_each_step_receives_its_own_copy():
    lists = []

    def grow(items):
        lists.append(items)
        return {"seen": len(items)}

    built_graph = graph("grow", grow=grow)
    built_graph.nodes["grow"]["inputs"] = {"items": "items"}
    run = session(built_graph, {"items": [1]})
    run.step()
    lists[0].append(2)
    assert run.board["items"] == [1]


def test_absent_deletes():
    run = session(graph("clear", clear=lambda board: {"a": ABSENT, "b.c": 1}), {"a": 1})
    run.step()
    assert dict(run.board) == {"b.c": 1}


@pytest.mark.parametrize(
    ("params", "options"),
    [
        ({}, {}),
        ({"prompt": "x", "timeout": None, "attempts": None}, {}),
        ({"timeout": 0}, {}),
        ({"timeout": -1, "attempts": 2}, {"attempts": 2}),
        ({"timeout": 0.5, "backoff": 0, "blocking": False}, {"timeout": 0.5, "backoff": 0, "blocking": False}),
        ({"repeatable": True, "attempts": 1}, {"repeatable": True, "attempts": 1}),
    ],
)
def test_the_options_of_a_call_are_the_given_ones(params, options):
    assert get_options(Node("n", "tool", params=params)) == options


@pytest.mark.parametrize(
    ("model", "settings"),
    [
        (None, {}),
        ("big", {"model": "big"}),
        ({}, {}),
        ({"model": "big", "temperature": 0, "seed": None}, {"model": "big", "temperature": 0}),
        ({"messages": [], "prompt": "x", "tools": [1], "top_p": 1}, {"top_p": 1}),
    ],
)
def test_settings_of_a_model_never_contain_messages(model, settings):
    assert make_settings(model) == settings


@pytest.mark.parametrize(
    ("llm", "is_simulated"),
    [
        (None, False),
        (SimulatedClient(), True),
        (["yes", "no"], True),
        ({"ask": "yes"}, True),
        (lambda request: "yes", False),  # it may ask anybody
    ],
)
def test_an_effect_of_a_model_is_marked_if_simulated(llm, is_simulated):
    options = {"timeout": 3}
    assert find_options(World(llm=llm), options) == ({"timeout": 3, "is_simulated": True} if is_simulated else options)
