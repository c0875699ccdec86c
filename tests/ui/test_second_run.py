"""A second run beside the shown one: aligned, at the corresponding step, with what differs."""

from __future__ import annotations

import pytest

import agentnb as nb
from agentnb.errors import AgentNbError
from agentnb.ui.graph_view import get_drawing
from agentnb.ui.page_queries import run_query
from agentnb.ui.second_run import open_beside
from agentnb.ui.view_model import make_screen


@pytest.fixture
def two():
    """Return a run, and a fork of it that needs more rounds."""
    session = nb.Session(nb.samples("refine"), {"number": 2.0})
    session.run()
    fork = session.fork(at=6, edit={"guess": 40.0}, name="high", expect="error < 1")
    fork.run()
    return session, fork


def beside(session):
    return make_screen(session, get_drawing(session))["beside"]


def test_the_second_run_is_at_the_same_step_as_the_first(two):
    session, fork = two
    open_beside(session, fork)
    before = fork.position
    places = [(session.goto(k), beside(session)["position"])[1] for k in (0, 3, 9, 26, 27)]
    assert places == [0, 3, 9, 56, 57]
    assert fork.position == before  # it is looked at, not moved


def test_differences_are_reported_for_graph_board_and_timeline(two):
    session, fork = two
    open_beside(session, fork)
    session.goto(8)
    now = beside(session)
    assert now["parted"]["a"] == now["parted"]["b"] == 6
    assert now["board"] == {"guess": "40.0", "error": "1598.0"}
    result = run_query(session, "second", {"around": 1})
    assert result["nodes"]["better"] == ["differs", "parted"]
    assert "start" not in result["nodes"]
    assert (result["steps"]["7"], "8" in result["steps"]) == ("differs", False)
    assert result["counts"] == {"differs": 17, "only_a": 0, "only_b": 30}
    assert result["rows"][25][1:] == ["ok", "only_b", None]
    assert result["verdict"] == [f"{fork.name!r} satisfies its expectation"]


def test_a_stored_trace_can_be_the_second_run_and_none_closes_it(two, tmp_path):
    session, fork = two
    fork.trace.to_json(tmp_path / "fork.json")
    cockpit = nb.Debugger(session)
    cockpit.beside(nb.open(tmp_path / "fork.json"))
    assert cockpit.state["beside"]["length"] == 57
    cockpit.beside(None)
    assert cockpit.state["beside"] is None
    cockpit.close()


def test_the_alignment_follows_a_running_session(two):
    session, _ = two
    fork = session.fork(at=1, name="later")
    open_beside(session, fork)
    assert beside(session)["length"] == 1
    fork.step(3)
    assert beside(session)["length"] == 4


def test_a_run_beside_itself_is_rejected(two):
    with pytest.raises(AgentNbError, match="U593"):
        open_beside(two[0], two[0])
