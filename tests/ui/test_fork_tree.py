from __future__ import annotations

import pytest

from agentnb.errors import AgentNbError
from agentnb.ui.fork_tree import ROWS, find_session, list_forks, run_of
from tests.ui import ticket_recipe


@pytest.fixture
def session():
    session = ticket_recipe.session("hello")
    session.run()
    return session


def list_rows(session):
    return [
        (row["name"], row["depth"], row["from"], row["position"], row["length"]) for row in list_forks(session)["rows"]
    ]


def test_a_single_run_is_a_tree_of_one(session):
    (row,) = list_forks(session)["rows"]
    assert row == {
        "id": session.run_id, "name": "triage", "depth": 0, "from": None, "position": 3, "length": 3,
        "status": "finished", "shown": True, "note": "", "expected": "", "holds": None,
    }  # fmt: skip


def test_an_expectation_is_reported_with_its_verdict(session):
    session.fork(at=0, name="again", expect="reply == 'no'", note="refused").run()
    row = list_forks(session)["rows"][-1]
    assert (row["note"], row["expected"], row["holds"]) == ("refused", "reply == 'no'", True)


def test_each_fork_is_below_its_parent(session):
    one = session.fork(at=1, name="one")
    session.fork(at=2, name="two")
    one.step()
    one.fork(name="inner")
    assert list_rows(session) == [
        ("triage", 0, None, 3, 3), ("one", 1, 1, 2, 2), ("inner", 2, 2, 2, 2), ("two", 1, 2, 2, 2),
    ]  # fmt: skip
    assert list_rows(one) == list_rows(session)
    assert [row["name"] for row in list_forks(one)["rows"] if row["shown"]] == ["one"]


def test_abandoned_steps_of_a_run_are_listed_as_a_fork(session):
    session.goto(1)
    session.step()
    (shown, original) = list_forks(session)["rows"]
    assert (shown["length"], shown["name"]) == (2, "triage")
    assert (original["from"], original["length"], original["name"]) == (1, 3, "triage, original")
    assert "triage, original from step 1: 3 steps" in session.tree()


def test_runs_before_a_reset_share_no_step(session):
    session.reset()
    assert list_rows(session) == [("triage", 0, None, 0, 0), ("triage, before reset", 1, None, 3, 3)]


def test_a_run_is_found_by_id_from_anywhere_in_the_tree(session):
    one = session.fork(at=1, name="one")
    two = session.fork(at=2, name="two")
    assert find_session(one, two.run_id) is two
    assert find_session(two, session.run_id) is session
    with pytest.raises(AgentNbError) as caught:
        find_session(one, "gone")
    assert caught.value.problems[0].code == "U310"


def test_among_many_forks_those_near_the_shown_one_are_listed(session):
    many_forks = [session.fork(at=1, name=f"f{number}") for number in range(ROWS + 50)]
    forks = list_forks(many_forks[-1])
    assert (len(forks["rows"]), forks["more"], forks["rows"][-1]["shown"]) == (ROWS, 51, True)


def test_the_header_names_the_shown_run_and_its_parent(session):
    fork = session.fork(at=1, name="one")
    assert run_of(session) == {"name": "triage", "id": session.run_id[-6:], "of": None}
    assert run_of(fork) == {"name": "one", "id": fork.run_id[-6:], "of": "triage"}
