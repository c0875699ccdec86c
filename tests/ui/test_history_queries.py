"""What a page asks of the history: search, the values of a key, slices, and whether an expression is valid."""

from __future__ import annotations

import pytest

import agentnb as nb
from agentnb.ui.page_queries import run_query


@pytest.fixture
def session():
    session = nb.Session(nb.samples("refine"), {"number": 2.0})
    session.run()
    return session


def test_a_search_returns_the_steps_before_and_after_the_position(session):
    session.goto(9)
    result = run_query(session, "find", "error < 0.5")
    assert result["hits"] == session.find("error < 0.5")
    assert (result["before"], result["after"], result["rank"]) == (8, 11, 2)
    session.step()  # another branch: what was found before no longer counts
    assert run_query(session, "find", "error < 0.5")["total"] < result["total"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("error <", "The expression 'error <' cannot be read: it is incomplete after '<'. Complete it."),
        ("error = 1", "compare with =="),
        ("'x", "the quote at character 1 is not closed"),
        ("eror < 1", "Did you mean 'error'?"),
    ],
)
def test_a_mistake_is_reported_in_terms_of_the_expression(session, text, told):
    assert told.casefold() in run_query(session, "find", text)["wrong"].casefold()
    assert told.casefold() in run_query(session, "condition", {"text": text}).casefold()
    assert run_query(session, "condition", {"text": "error < 1"}) == ""


def test_the_history_of_a_key_has_its_latest_values_with_readers_and_writers(session):
    result = run_query(session, "history", "error")
    writes = session.trace.frames.writes
    steps = writes[(writes.key == "error") & (writes.scope == "root")].step.tolist()
    assert [row[0] for row in result["rows"]] == steps[::-1][: len(result["rows"])]
    assert result["rows"][0][3] == session.board["error"]
    assert (result["writers"], "start" in result["readers"]) == (["start", "measure"], False)


def test_the_slice_of_a_key_has_its_steps_and_marks_its_nodes(session):
    result, expected = run_query(session, "slice", "error"), session.slice("error")
    assert (result["steps"], set(result["nodes"])) == (expected.steps, set(expected.nodes))
    assert result["rows"][0][:4] == [25, "measure", "error", "write"]
    assert "nothing writes" in run_query(session, "slice", "nix")["wrong"]
