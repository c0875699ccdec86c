"""test_errors: a Problem has four answers, and every error carries some."""

from __future__ import annotations

import pickle

import pytest

from agentnb.errors import (
    AgentNbError,
    AgentRuntimeError,
    ExecutionError,
    NodeExecutionError,
    Place,
    Problem,
    RecipeError,
    did_you_mean,
)

ONE = Problem("R104", "edge 'a' -> 'b' leads nowhere", "a.yaml:3:5", "the nodes are: a", "add a node 'b'")
TWO = Problem("R115", "node 'c' is never reached", "a.yaml:9:1", "no way leads to it", "remove it", "warning")


def test_a_problem_is_told_in_four_lines():
    assert str(ONE) == (
        "R104: edge 'a' -> 'b' leads nowhere\n  where: a.yaml:3:5\n  why:   the nodes are: a\n  do:    add a node 'b'"
    )
    assert str(TWO).startswith("warning R115: ")


def test_an_error_tells_every_problem_and_survives_pickling():
    error = RecipeError(ONE, TWO)
    assert str(error) == f"{ONE}\n{TWO}"
    assert pickle.loads(pickle.dumps(error)).problems == (ONE, TWO)


def test_what_a_notebook_prints_has_no_stack():
    lines = RecipeError(ONE)._render_traceback_()
    assert lines == ["RecipeError: 1 problem(s)", str(ONE)]


def test_problems_become_a_table():
    table = RecipeError(ONE, TWO).to_frame()
    assert table["code"].tolist() == ["R104", "R115"]
    assert table["severity"].tolist() == ["error", "warning"]
    assert list(table.columns) == ["code", "what", "where", "why", "do", "severity"]


@pytest.mark.parametrize(
    ("child", "parent"),
    [
        (RecipeError, ValueError),
        (RecipeError, AgentNbError),
        (AgentRuntimeError, ExecutionError),
        (NodeExecutionError, AgentRuntimeError),
    ],
)
def test_the_tree(child, parent):
    assert issubclass(child, parent)


@pytest.mark.parametrize(
    ("place", "text"),
    [
        (Place("a.yaml", 3, 5, "nodes[0].id"), "a.yaml:3:5, nodes[0].id"),
        (Place("a.yaml", 3, 5), "a.yaml:3:5"),
        (Place("<dict>", path="nodes"), "<dict>, nodes"),
        (Place("<dict>"), "<dict>"),
    ],
)
def test_a_place_can_be_clicked(place, text):
    assert str(place) == text


def test_a_near_word_is_proposed_and_a_strange_one_is_not():
    assert did_you_mean("refnd", ["refund", "answer"], "add it") == "did you mean 'refund'?"
    assert did_you_mean("xyz", ["refund"], "add it") == "add it"
