from __future__ import annotations

from decimal import Decimal

import pytest

import agentnb as nb
from agentnb.dialects.activegraph import get_registry
from agentnb.samples import reactive

ALERTS = (("shop", "low memory"), ("mail", "slow"), ("shop", "no memory"))


def board(alerts=ALERTS):
    runtime = reactive.incident()
    for service, text in alerts:
        runtime.session.emit("alert.raised", {"service": service, "text": text})
    runtime.run_until_idle()
    return runtime


def of(runtime, type_):
    return [each.data for each in runtime.graph.objects(type_)]


def test_the_team_writes_a_memo_of_its_notes_and_returns_one_draft():
    runtime = reactive.team()
    runtime.run_goal("Write about swifts")
    assert (runtime.status().state, runtime.errors) == ("idle", [])
    (memo,) = runtime.graph.objects("memo")
    assert memo.provenance["evidence"] == [note.id for note in runtime.graph.objects("note")]
    assert all(source in memo.data["text"] for _, source in reactive.ARCHIVE.values())
    assert {task["state"] for task in of(runtime, "task")} == {"done"}
    types = [event.type for event in runtime.graph.events]
    assert (types.count("draft.returned"), types.count("draft.accepted"), types.count("llm.responded")) == (1, 1, 2)


def test_the_memo_waits_for_every_question():
    runtime = reactive.team()
    runtime.session.emit("goal.created", {"goal": "Write about swifts"})
    runtime.run_until(lambda graph: graph.objects("task", where={"data.state": "ready"}))
    assert [task["state"] for task in of(runtime, "task")] == ["done", "done", "done", "ready"]


def test_alerts_of_one_service_are_one_incident_and_the_second_proposes_a_change():
    runtime = board()
    assert [(each["service"], each["alerts"]) for each in of(runtime, "incident")] == [("shop", 2), ("mail", 1)]
    (approvals,) = runtime.pending_approvals()
    assert approvals.data["set"] == {"workers": 2}
    assert approvals.reason == "2 alerts of shop: low memory; no memory"
    assert (of(runtime, "change"), of(runtime, "service")[0]["workers"]) == ([], 4)


def test_an_approved_change_is_rolled_out_and_closes_its_incident():
    runtime = board()
    runtime.approve("approval_001", "ann")
    runtime.run_until_idle()
    assert (of(runtime, "service")[0]["workers"], of(runtime, "incident")[0]["state"]) == (2, "closed")
    assert (runtime.errors, runtime.pending_approvals()) == ([], [])


def test_a_denied_change_pages_a_person():
    runtime = board()
    runtime.deny("approval_001", "it is the database", "bob")
    runtime.run_until_idle()
    assert of(runtime, "call") == [{"who": "on duty", "because": "it is the database"}]
    assert (of(runtime, "service")[0]["workers"], of(runtime, "incident")[0]["state"]) == (4, "open")


def test_without_a_known_fix_nothing_is_proposed():
    runtime = board([("shop", "on fire"), ("shop", "still on fire")])
    assert runtime.pending_approvals() == []
    assert of(runtime, "incident")[0]["alerts"] == 2


@pytest.mark.parametrize("make", [reactive.team, reactive.incident])
def test_creating_a_sample_registers_no_behavior(make):
    before = get_registry()
    make()
    assert get_registry() == before


@pytest.mark.parametrize("make", [reactive.team, reactive.incident])
def test_a_run_of_it_replays_and_forks_alike(make):
    runtime = board() if make is reactive.incident else make()
    if make is reactive.team:
        runtime.run_goal("Write about swifts")
    assert runtime.session.replay(strict="reads").ok
    ids = [each.id for each in runtime.graph.all_objects()]
    for event in runtime.graph.events[3::7]:
        fork = runtime.fork(event.id)
        fork.run_until_idle()
        assert [each.id for each in fork.graph.all_objects()] == ids, event.id


def test_the_trace_of_a_team_that_called_a_model_can_be_opened(tmp_path):
    runtime = reactive.team()
    runtime.run_goal("Write about swifts")
    runtime.session.trace.to_json(tmp_path / "team.json")
    calls = nb.open(tmp_path / "team.json").trace.frames.calls
    assert {type(cost) for cost in calls["cost_usd_exact"].dropna()} == {Decimal}
