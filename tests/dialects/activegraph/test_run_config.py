"""What a policy lets behaviors do, right by right; a frame is stamped on what is done."""

from __future__ import annotations

import pytest

from agentnb.dialects.activegraph import Frame, Policy
from tests.dialects.activegraph.judge import assert_same_signatures
from tests.dialects.activegraph.runtimes import on, runtime

ACTS = {
    "can_create": lambda graph: graph.add_object("note", {}),
    "can_create_relation": lambda graph: graph.add_relation("task#1", "task#1", "next"),
    "can_propose": lambda graph: graph.propose_patch("task#1", "update", {"n": 1}),
    "can_apply": lambda graph: graph.patch_object("task#1", {"n": 1}),
}
ALLOWED = {"can_create": "note", "can_create_relation": "next", "can_propose": "task", "can_apply": "task"}


def acting(right, policy):
    @on("go")
    def acts(event, graph, ctx):
        ACTS[right](graph)
        graph.emit("done", {})

    team = runtime(acts, policy=policy)
    team.graph.add_object("task", {})
    before = team.graph.get_object("task#1").version, len(team.graph.all_objects()), len(team.graph.all_relations())
    team.session.emit("go", {})
    team.run_until_idle()
    after = team.graph.get_object("task#1").version, len(team.graph.all_objects()), len(team.graph.all_relations())
    return [error.reason for error in team.errors], after == before and team.graph.get_patch("patch_001") is None


@pytest.mark.parametrize("right", ACTS)
def test_a_right_for_others_forbids_the_action_and_changes_nothing(right):
    assert acting(right, Policy(**{right: ["something else"]})) == (["policy.denied"], True)


@pytest.mark.parametrize("right", ACTS)
@pytest.mark.parametrize("sort", ["named", "empty", "another's"])
def test_a_right_that_names_the_behavior_or_nobody_allows_the_action(right, sort):
    policy = {
        "named": Policy(**{right: [ALLOWED[right]]}),
        "empty": Policy(),
        "another's": Policy(behavior="another", **{right: ["something else"]}),
    }[sort]
    assert acting(right, policy) == ([], False)


def test_a_frame_has_an_id_that_is_stamped_on_events_and_objects():
    @on("goal.created")
    def makes(event, graph, ctx):
        graph.add_object("task", {"for": ctx.frame.goal})

    team = runtime(makes, frame=Frame("find out"))
    team.run_goal("go")
    assert {event.frame_id for event in team.graph.events} == {"frame_001"}
    item = team.graph.get_object("task#1")
    assert (item.provenance["frame_id"], item.data) == ("frame_001", {"for": "find out"})


def test_signatures_are_those_of_the_package():
    assert_same_signatures("Frame", "Policy")
