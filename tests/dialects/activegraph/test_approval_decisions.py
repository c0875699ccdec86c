from __future__ import annotations

import pytest

from agentnb.dialects.activegraph.errors import ApprovalNotFoundError
from tests.dialects.activegraph.runtimes import on, runtime


@pytest.fixture
def team():
    @on("go")
    def asks(event, graph, ctx):
        ctx.propose_object("memo", {"n": event.payload["n"]}, reason="why not")
        graph.propose_patch("memo#9", "update", {"n": 1})

    found = runtime(asks)
    for number in range(2):
        found.session.emit("go", {"n": number})
    found.run_until_idle()
    return found


def test_only_objects_are_approvals_of_the_runtime(team):
    asked = team.pending_approvals()
    assert [(each.id, each.kind, each.object_type, each.data) for each in asked] == [
        ("approval_001", "object", "memo", {"n": 0}),
        ("approval_002", "object", "memo", {"n": 1}),
    ]
    with pytest.raises(LookupError):
        team.approve("patch_001")


def test_a_grant_names_its_cause_and_who_gave_it(team):
    assert team.approve("approval_002", "ann") == "memo#1"
    granted, created = team.graph.events[-2:]
    proposed = [event for event in team.graph.events if event.type == "approval.proposed"][1]
    assert (granted.caused_by, granted.actor, granted.payload["approved_by"]) == (proposed.id, "runtime", "ann")
    assert (created.caused_by, created.actor) == (granted.id, "ann")


def test_who_is_not_named_is_the_user(team):
    team.approve("approval_001")
    team.deny("approval_002")
    granted, created, denied = team.graph.events[-3:]
    assert (granted.payload["approved_by"], created.actor) == ("user", "user")
    assert denied.payload["denied_by"] == "user"


def test_what_is_decided_is_no_more_decided(team):
    team.deny("approval_001", "no", "ann")
    for decide in (team.approve, team.deny):
        with pytest.raises(ApprovalNotFoundError, match="X513") as raised:
            decide("approval_001")
        assert "approval_002" in raised.value.problems[0].why
