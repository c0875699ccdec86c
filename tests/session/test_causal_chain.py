from __future__ import annotations

import xml.etree.ElementTree as ET

import pandas as pd
import pytest

from agentnb.errors import ExecutionError
from agentnb.samples import reactive
from agentnb.secrets import hide
from tests.session.test_reactive import listening
from tests.session.test_why import incident


def team():
    runtime = reactive.team()
    runtime.run_goal("Write about swifts")
    return runtime.session


def test_the_chain_of_an_object_has_its_creation_patches_and_relations():
    frame = team().chain("task#1").to_frame()
    own_events = frame[frame.relation == "self"]
    assert own_events.type.tolist() == ["object.created", "relation.created", "relation.created", "patch.applied"]
    assert frame[frame.relation == "cause"].type.tolist() == ["goal.created"]
    assert "draft.accepted" in set(frame[frame.relation == "effect"].type)
    assert own_events.objects.tolist()[-1] == ["patch_001", "task#1"]


def test_every_version_of_an_object_is_in_its_chain():
    session = incident()
    session.approve("approval_001", "ann")
    session.run()
    frame = session.chain("incident#6").to_frame()
    own_events = frame[frame.relation == "self"]
    assert (own_events.type == "patch.applied").sum() == session.board["incident#6.version"] - 1


def test_the_table_says_who_emitted_each_event_in_which_step():
    frame = team().chain("task#1").to_frame()
    assert list(frame)[:8] == ["seq", "step", "id", "type", "actor", "cause", "node", "relation"]
    first = frame.iloc[0]
    assert (first.id, first.step is pd.NA, pd.isna(first.node), first.cause is pd.NA) == ("evt_001", True, True, True)
    event = frame[frame.id == "evt_003"].iloc[0]
    assert (event.step, event.node, event.actor, event.cause, event.distance) == (1, "plan", "plan", "evt_001", 0)
    assert frame.step.dtype == "Int64"
    assert len(frame.merge(team().trace.frames.events, on="seq")) == len(frame)


@pytest.mark.parametrize("id", ["evt_031", "patch_003", "rel_003", "approval_001", "incident#6", "evt_001"])
def test_there_is_a_chain_for_each_kind_of_item(id):
    chain = incident().chain(id)
    assert len(chain) == len(chain.events) >= 1
    assert {link.part for link in chain.links} <= {"cause", "self", "effect"}


def test_the_chain_of_an_approval_goes_from_the_alert_to_the_approved_object():
    session = incident()
    session.approve("approval_001", "ann")
    session.run()
    frame = session.chain("approval_001").to_frame()
    assert frame[frame.relation == "cause"].type.tolist() == ["alert.raised", "object.created", "patch.applied"]
    assert frame[frame.relation == "self"].type.tolist() == ["approval.proposed", "approval.granted"]
    assert set(frame[frame.relation == "effect"].type) >= {"object.created", "patch.applied"}


def test_the_chain_is_that_of_the_current_position():
    session = team()
    assert len(session.goto(1).chain("task#1")) < len(session.goto(2).chain("task#1"))
    session.goto(0)
    with pytest.raises(ExecutionError) as caught:
        session.chain("task#1")
    assert caught.value.problems[0].code == "X161"


def test_an_unknown_id_is_reported_with_a_suggestion():
    with pytest.raises(ExecutionError) as caught:
        team().chain("tusk#1")
    (problem,) = caught.value.problems
    assert (problem.code, problem.do) == ("X161", "did you mean 'task#1'?")


def test_a_chain_has_a_drawing_and_a_text_form():
    chain = team().chain("task#1")
    bundle = chain._repr_mimebundle_()
    assert ET.fromstring(bundle["image/svg+xml"]).get("aria-label") == "chain of causes: task#1"
    assert bundle["text/plain"] == repr(chain)
    lines = repr(chain).splitlines()
    assert lines[1] == "<- evt_001 goal.created: user from outside"
    assert lines[2] == "== evt_003 object.created about task#1: plan in step 1, after evt_001"
    assert not [line for line in lines if "behavior.started" in line]  # the table has those
    assert "<pre>" in chain._repr_html_()
    assert chain


def test_events_of_other_recipes_have_chains_too():
    run = listening()
    run.emit("hello", {"api_key": "sk-1"}).run()
    frame = run.chain("evt_001").to_frame()
    assert frame[["id", "type", "relation"]].to_numpy().tolist() == [["evt_001", "hello", "self"]]


def test_a_chain_contains_no_secrets():
    hide("chain-s3cret-22")
    runtime = reactive.team()
    runtime.session.emit("goal.created", {"goal": "chain-s3cret-22"}, actor="chain-s3cret-22")
    chain = runtime.session.chain("evt_001")
    assert "s3cret" not in repr(chain) + chain.draw().svg + chain.to_frame().to_string()
