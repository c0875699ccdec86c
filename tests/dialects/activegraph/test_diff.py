"""What two runs have in common, and where they differ."""

from __future__ import annotations

import pytest

from agentnb.dialects.activegraph import Diff, DivergentObject, InvalidArgumentType
from tests.dialects.activegraph.judge import assert_same_signatures
from tests.dialects.activegraph.runtimes import on, runtime


@pytest.fixture
def team():
    @on("goal.created")
    def plan(event, graph, ctx):
        first = graph.add_object("task", {"title": "a"})
        second = graph.add_object("task", {"title": "b"})
        graph.add_relation(first.id, second.id, "before")

    team = runtime(plan)
    team.run_goal("go")
    return team


def test_a_fork_that_does_the_same_again_is_identical(team):
    fork = team.fork(team.graph.events[0].id)
    fork.session.goto(0)
    fork.run_until_idle()
    difference = team.diff(fork)
    assert (difference.is_identical, len(difference.shared_events)) == (True, 4)
    assert (difference.parent_run_id, difference.fork_run_id) == (team.run_id, fork.run_id)
    assert not [event for event in difference.shared_events if event.type.startswith(("behavior.", "runtime."))]


def test_differences_are_named(team):
    fork = team.fork(team.graph.events[-1].id)
    fork.graph.patch_object("task#1", {"title": "other"})
    extra = fork.graph.add_object("note", {})
    fork.graph.remove_relation("rel_001")
    team.graph.add_object("claim", {})
    difference = team.diff(fork)
    assert {each.id: (each.in_parent is None, each.in_fork is None) for each in difference.divergent_objects} == {
        "task#1": (False, False),
        "claim#3": (False, True),
        extra.id: (True, False),
    }
    assert [each.id for each in difference.divergent_relations] == ["rel_001"]
    assert [event.type for event in difference.parent_only_events] == ["object.created"]
    assert [event.type for event in difference.fork_only_events] == [
        "patch.applied",
        "object.created",
        "relation.removed",
    ]
    assert not difference.is_identical
    assert "task#1: title: 'a' -> 'other'" in str(difference)


def test_a_diff_can_be_built_manually():
    diff = Diff("a", "b")
    assert diff.is_identical
    diff.divergent_objects.append(DivergentObject("task#1", {"id": "task#1"}, None))
    assert not diff.is_identical


def test_a_run_is_compared_with_a_run(team):
    with pytest.raises(InvalidArgumentType, match="X519"):
        team.diff(team.graph)


def test_signatures_are_those_of_the_package():
    assert_same_signatures("Diff")
