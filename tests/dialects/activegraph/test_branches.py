"""A branch in which the same is done again is the same. The `diff` of the package says it differs."""

from __future__ import annotations

import pytest

from tests.dialects.activegraph.runtimes import log, research, runtime

__all__ = ["research"]


def boards(team):
    """Return all that a graph holds, but for the run that it says it was made in."""
    graph = team.graph
    return [
        [each.to_dict() | {"provenance": {**each.provenance, "run_id": None}} for each in items]
        for items in (graph.all_objects(), graph.all_relations())
    ]


@pytest.fixture
def whole(research):
    team = runtime(*research, seed=5)
    team.run_goal("go")
    return team


def test_a_fork_that_does_the_same_is_identical_except_for_its_run(whole):
    for event in whole.graph.events[:-1:5]:
        fork = whole.fork(event.id)
        assert fork.run_id != whole.run_id
        fork.run_until_idle()
        assert (log(fork), boards(fork)) == (log(whole), boards(whole)), event.id
        report = fork.replay("reads")
        assert report.ok, report


def test_a_branch_of_the_same_run_is_identical(whole):
    events, held, steps = whole.graph.events, boards(whole), whole.session.position
    for step in range(0, steps, 4):
        whole.session.goto(step)
        before = whole.session._parts.run.history
        whole.run_until_idle()
        assert whole.session._parts.run.history is not before, "it was made again"
        assert (whole.graph.events, boards(whole)) == (events, held), step


def test_a_branch_that_does_something_different_is_not_identical(whole):
    fork = whole.fork("evt_001")
    fork.graph.add_object("task", {"n": 99})
    fork.run_until_idle()
    assert log(fork) != log(whole)
    assert boards(fork) != boards(whole)
