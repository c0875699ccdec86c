from __future__ import annotations

import asyncio

import pytest
from pydantic import BaseModel

import agentnb as nb
from agentnb.dialects.activegraph import ObjectType, Pack, PackPolicy, Policy, Runtime
from agentnb.dialects.activegraph.errors import ApprovalNotFoundError, PackSchemaViolation
from agentnb.errors import AgentNbError, ExecutionError
from agentnb.ui.prompts import apply_change, describe_pending, give
from agentnb.ui.status_line import format_status_line
from agentnb.ui.view_model import list_abilities
from tests.dialects.activegraph.judge import assert_same_signatures
from tests.dialects.activegraph.runtimes import graph, on, runtime, types


@on("asked")
def order(event, graph, ctx):
    ctx.propose_object("order", {"copies": 2}, reason="the last one is out")


@on("looked")
def fix(event, graph, ctx):
    graph.propose_patch(event.payload["id"], "update", {"state": "fixed"}, rationale="it is torn")


@on("object.created", where={"object.type": "order"})
def send(event, graph, ctx):
    graph.emit("sent", {"copies": event.payload["object"]["data"]["copies"]})


SHOP = {"policy": Policy(requires_approval=["order"]), "name": "shop"}


def shop(**options):
    return runtime(order, fix, send, **{**SHOP, **options})


@pytest.fixture
def waits():
    """A shop that has nothing left to do, and waits for leave: to create an order, to patch a book."""
    shop_run = shop()
    book = shop_run.graph.add_object("book", {"state": "torn"})
    shop_run.session.emit("asked", {}).emit("looked", {"id": book.id})
    shop_run.run_until_idle()
    return shop_run


def list_events(shop, *kinds):
    return [event for event in shop.graph.events if event.type in kinds]


def test_a_requested_approval_is_pending_while_the_run_is_idle(waits):
    session = waits.session
    assert session.status == "idle"
    first, second = session.pending
    assert (first.id, first.kind, first.node, first.name) == ("approval_001", "approval", "order", "order")
    assert (first.arguments["data"], first.arguments["reason"]) == ({"copies": 2}, "the last one is out")
    assert (second.id, second.kind, second.node, second.name) == ("patch_001", "approval", "fix", "book#1")
    assert (second.arguments["op"], second.arguments["value"]) == ("update", {"state": "fixed"})
    assert [one.arguments["prompt"] for one in session.pending] == [
        "May this 'order' be created? the last one is out",
        "May the data of 'book#1' be changed? it is torn",
    ]


def test_a_session_approves_as_the_runtime_does(waits):
    other = shop()
    book = other.graph.add_object("book", {"state": "torn"})
    other.session.emit("asked", {}).emit("looked", {"id": book.id})
    other.run_until_idle()
    assert waits.session.approve("approval_001", by="ann") is None
    assert other.approve("approval_001", "ann") == "order#2"
    for each in (waits, other):
        each.run_until_idle()
    assert [event.to_dict() for event in waits.graph.events] == [event.to_dict() for event in other.graph.events]
    assert (types(waits)[-3:], waits.session.status) == (["approval.granted", "object.created", "sent"], "idle")
    assert [one.id for one in waits.session.pending] == ["patch_001"]
    assert waits.replay().ok


def test_a_patch_is_applied_or_rejected(waits):
    waits.session.approve("fix", by="ann")
    assert waits.graph.get_object("book#1").data == {"state": "fixed"}
    (applied,) = list_events(waits, "patch.applied")
    assert (applied.actor, applied.payload["approved_by"], applied.caused_by) == (
        "ann",
        "ann",
        list_events(waits, "patch.proposed")[0].id,
    )
    assert waits.replay().ok


def test_a_patch_that_is_denied_changes_nothing(waits):
    waits.session.deny("patch_001", "not worth it", by="ben")
    assert waits.graph.get_patch("patch_001").rejection_reason == "not worth it"
    assert list_events(waits, "patch.rejected")[0].actor == "ben"
    assert waits.graph.get_object("book#1").data == {"state": "torn"}
    assert waits.replay().ok


def test_without_an_id_the_first_request_is_meant_and_a_denial_is_an_event(waits):
    waits.session.deny(reason="too dear", by="ben")
    (denied,) = list_events(waits, "approval.denied")
    assert denied.payload == {
        "approval_id": "approval_001",
        "object_type": "order",
        "denied_by": "ben",
        "reason": "too dear",
    }
    assert denied.caused_by == list_events(waits, "approval.proposed")[0].id
    assert waits.graph.objects("order") == []


def test_a_decided_or_unknown_request_is_not_pending(waits):
    waits.session.approve("approval_001")
    with pytest.raises(ExecutionError, match="X115"):
        waits.session.approve("approval_001")
    with pytest.raises(ExecutionError, match="X115"):
        waits.session.deny("approval_007")


@pytest.mark.parametrize(
    ("id_", "word", "value", "type_"),
    [
        ("approval_001", "data", {"copies": 5}, "approval.changed"),
        ("patch_001", "value", {"state": "new"}, "patch.changed"),
    ],
)
def test_a_requested_object_can_be_changed_before_it_is_approved(waits, id_, word, value, type_):
    waits.session.change(id_, arguments={word: value})
    assert next(one for one in waits.session.pending if one.id == id_).arguments[word] == value
    assert list_events(waits, type_)[0].caused_by == list_events(waits, type_.replace("changed", "proposed"))[0].id
    waits.session.approve(id_)
    waits.run_until_idle()
    item = waits.graph.get_object("book#1" if word == "value" else "order#2")
    assert item.data == value
    assert waits.replay().ok


def test_a_second_request_does_not_replace_the_first(waits):
    before = waits.graph.events
    for arguments in ({"object_type": "yacht"}, {"data": [1]}, {"prompt": "No?"}):
        with pytest.raises(ExecutionError, match="X126"):
            waits.session.change("approval_001", arguments=arguments)
    with pytest.raises(AgentNbError, match="X506"):
        waits.session.change("patch_001", arguments={"value": {"provenance": {}}})
    with pytest.raises(ExecutionError, match="X127"):
        waits.session.change("approval_001", answer=True)
    assert waits.graph.events == before


def test_back_and_fork_show_the_requests_pending_there(waits):
    session = waits.session
    session.approve("approval_001")
    fork = session.fork(at=1)
    assert [one.id for one in fork.pending] == ["approval_001"]
    fork.deny("approval_001")
    assert [one.id for one in session.pending] == ["patch_001"]
    session.goto(0)
    assert session.pending == ()


def test_a_stored_run_waits_for_the_same_approval(waits, tmp_path):
    path = waits.save_state(tmp_path / "shop.db")
    waits.session.change("approval_001", arguments={"data": {"copies": 9}})
    waits.session.close()
    loaded = Runtime.load(path, behaviors=[order, fix, send], **SHOP)
    assert [one.id for one in loaded.session.pending] == ["approval_001", "patch_001"]
    loaded.session.approve("approval_001", by="ann")
    loaded.run_until_idle()
    loaded.session.close()
    reopened = nb.open(path, recipe=shop().session.recipe)
    assert [one.id for one in reopened.pending] == ["patch_001"]
    assert reopened.board["order#2.data.copies"] == 9
    reopened.deny("patch_001")
    assert reopened.pending == ()
    assert reopened.replay().ok


class Fine(BaseModel):
    cents: int


def test_a_pack_requests_approval_and_its_objects_fit_their_type():
    @on("late")
    def fine(event, graph, ctx):
        ctx.propose_object("fine", {"cents": event.payload["cents"]})

    rules = (PackPolicy("fines", ("fine",)),)
    fees = Pack("fees", "1", object_types=(ObjectType("fine", Fine),), behaviors=(fine,), policies=rules)
    desk = Runtime(graph(), behaviors=[])
    desk.load_pack(fees)
    desk.session.emit("late", {"cents": "many"})
    desk.run_until_idle()
    (one,) = desk.session.pending
    assert (one.node, one.arguments["pack"]) == ("fees.fine", "fees")
    with pytest.raises(PackSchemaViolation):
        desk.session.approve()
    assert [one.id for one in desk.session.pending] == ["approval_001"]
    desk.session.change("approval_001", arguments={"data": {"cents": 20}}).approve()
    assert desk.graph.objects("fine")[0].data == {"cents": 20}


def test_the_cockpit_shows_it_and_decides_it(waits):
    session = waits.session
    can = list_abilities(session)
    assert can["answer"]
    assert can["change"]
    assert not can["step"]
    status = format_status_line(session)
    assert status.endswith("Idle: nothing is scheduled. Approval is requested for: 'order', 'book#1'.")
    shown = [describe_pending(one) for one in session.pending]
    assert [(one["kind"], one["node"], one["options"]) for one in shown] == [
        ("approval", "order", ["yes", "no"]),
        ("approval", "fix", ["yes", "no"]),
    ]
    assert [(field["label"], field["as"]) for field in shown[1]["arguments"]] == [
        ("what", "fixed"),
        ("target", "fixed"),
        ("op", "fixed"),
        ("evidence", "fixed"),
        ("value", "json"),
    ]
    apply_change(session, {"arguments": [[["data"], '{"copies": 3}']]}, "approval_001")
    give(session, "yes", "approval_001")
    give(session, "no, leave it", "patch_001")
    assert waits.graph.objects("order")[0].data == {"copies": 3}
    assert waits.graph.get_patch("patch_001").rejection_reason == "leave it"


def test_a_person_who_proposes_a_patch_is_named():
    desk = shop()
    book = desk.graph.add_object("book", {"state": "torn"})
    desk.graph.propose_patch(book.id, "replace", {"state": "gone"}, proposed_by="ann")
    (one,) = desk.session.pending
    assert (one.node, one.arguments["prompt"]) == ("ann", "May the data of 'book#1' be replaced?")


def test_a_decision_in_the_past_starts_a_fork(waits):
    session = waits.session
    session.run()
    session.goto(1)
    session.deny("approval_001")
    assert session.position == 1
    assert len(session.forks) == 1


def test_a_background_run_continues_with_the_approved_object(waits):
    async def live():
        waits.session.start()
        await waits.session.wait()
        assert (waits.session.status, len(waits.session.pending)) == ("idle", 2)
        waits.session.approve("approval_001")
        await waits.session.wait()
        return types(waits)[-1]

    assert asyncio.run(live()) == "sent"
    assert waits.session.status == "idle"


@pytest.fixture
def team():
    @on("go")
    def asks(event, graph, ctx):
        ctx.propose_object("memo", {"n": event.payload["n"]}, reason="why not")
        graph.propose_patch("memo#9", "update", {"n": 1})

    waiting_runtime = runtime(asks)
    for number in range(2):
        waiting_runtime.session.emit("go", {"n": number})
    waiting_runtime.run_until_idle()
    return waiting_runtime


def test_only_objects_are_approvals_of_the_runtime(team):
    approvals = team.pending_approvals()
    assert [(each.id, each.kind, each.object_type, each.data) for each in approvals] == [
        ("approval_001", "object", "memo", {"n": 0}),
        ("approval_002", "object", "memo", {"n": 1}),
    ]
    with pytest.raises(LookupError):
        team.approve("patch_001")


def test_an_approval_names_its_cause_and_its_author(team):
    assert team.approve("approval_002", "ann") == "memo#1"
    granted, created = team.graph.events[-2:]
    proposed = [event for event in team.graph.events if event.type == "approval.proposed"][1]
    assert (granted.caused_by, granted.actor, granted.payload["approved_by"]) == (proposed.id, "runtime", "ann")
    assert (created.caused_by, created.actor) == (granted.id, "ann")


def test_without_a_name_the_author_is_the_user(team):
    team.approve("approval_001")
    team.deny("approval_002")
    granted, created, denied = team.graph.events[-3:]
    assert (granted.payload["approved_by"], created.actor) == ("user", "user")
    assert denied.payload["denied_by"] == "user"


def test_a_decided_request_cannot_be_decided_again(team):
    team.deny("approval_001", "no", "ann")
    for decide in (team.approve, team.deny):
        with pytest.raises(ApprovalNotFoundError, match="X513") as raised:
            decide("approval_001")
        assert "approval_002" in raised.value.problems[0].why


def test_signatures_are_those_of_the_package():
    assert_same_signatures("Runtime.pending_approvals", "Runtime.approve")
