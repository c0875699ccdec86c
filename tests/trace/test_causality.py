from __future__ import annotations

from datetime import UTC, datetime

import pytest

from agentnb.engine.core.history import Event
from agentnb.trace.causality import find_chain, index_by_object, reports_delivery

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def event(seq, type_, cause=None, step=1, **payload):
    return Event(seq, step, f"e{seq}", type_, "somebody", None if cause is None else f"e{cause}", NOW, payload, 0)


def thing(id):
    return {"object": {"id": id, "type": "task", "data": {}}, "id": id}


def tie(id, source, target):
    return {"relation": {"id": id, "source": source, "target": target}, "id": id, "source": source, "target": target}


def patch(id, target):
    return {"patch": {"id": id, "target": target}, "target": target}


LOG = (
    event(1, "goal.created", step=None, goal="go"),
    event(2, "object.created", 1, **thing("a")),
    event(3, "object.created", 1, **thing("b")),
    event(4, "relation.created", 1, **tie("r", "a", "b")),
    event(5, "behavior.started", 2, 2, behavior="work", triggering_object_id="a"),
    event(6, "patch.proposed", 2, 2, **patch("p1", "a")),
    event(7, "patch.applied", 6, 2, **patch("p1", "a")),
    event(8, "done", 2, 2, task="a", of=["a", "nobody"]),
    event(9, "patch.rejected", 8, 3, patch_id="p2", target="a"),
    event(10, "relation.removed", 8, 3, id="r"),
    event(11, "object.removed", 8, 3, id="a"),
    event(12, "told", 11, 4, n=1),
    event(13, "goal.created", step=None, goal="other"),
    event(14, "approval.proposed", 13, 5, approval_id="ask"),
    event(15, "approval.denied", 14, None, approval_id="ask"),
)


def parts(wanted):
    ids = {"cause": [], "self": [], "effect": []}
    for link in find_chain(LOG, wanted):
        ids[link.part].append(link.event.seq)
    return ids


def test_the_chain_of_an_item_has_every_event_that_affects_it():
    assert parts("a") == {"cause": [1, 8], "self": [2, 4, 6, 7, 9, 10, 11], "effect": [5, 12]}


@pytest.mark.parametrize(
    ("wanted", "own"),
    [("b", [3, 4, 10]), ("r", [4, 10]), ("p1", [6, 7]), ("p2", [9]), ("ask", [14, 15]), ("e8", [8])],
)
def test_there_is_a_chain_for_each_kind_of_item_and_for_events(wanted, own):
    assert parts(wanted)["self"] == own


def test_a_chain_reaches_from_the_roots_to_the_end():
    assert parts("e8") == {"cause": [1, 2], "self": [8], "effect": [9, 10, 11, 12]}
    assert parts("e1")["cause"] == []
    assert parts("e12")["effect"] == []
    assert {link.event.seq: link.distance for link in find_chain(LOG, "e8")} == {
        1: -2,
        2: -1,
        8: 0,
        9: 1,
        10: 1,
        11: 1,
        12: 2,
    }


def test_a_chain_is_ordered_and_describes_each_event():
    links = find_chain(LOG, "a")
    assert [link.event.seq for link in links] == sorted(link.event.seq for link in links)
    about = index_by_object(LOG)
    assert about["e4"] == ("r", "a", "b")
    assert about["e8"] == ("a",)  # an event of one's own is about what it names
    assert about["e10"] == ("r", "a", "b")  # where the relation was, its making has told
    assert about["e1"] == ()


def test_an_unknown_item_has_no_chain():
    assert find_chain(LOG, "c") == []
    assert find_chain((), "a") == []


def test_circular_causes_terminate():
    log = (event(1, "x", 2), event(2, "x", 1), event(3, "x", 3))
    assert [link.event.seq for link in find_chain(log, "e1")] == [1, 2]
    assert [link.part for link in find_chain(log, "e3")] == ["self"]


def test_payloads_may_be_anything():
    log = (
        Event(1, None, "e1", "object.created", "x", None, NOW, None, 0),
        Event(2, None, "e2", "patch.applied", "x", "e1", NOW, {"patch": 7, "target": 3}, 0),
        Event(3, None, "e3", "own", "x", None, NOW, b"raw", 0),
    )
    assert index_by_object(log) == {"e1": (), "e2": (), "e3": ()}
    assert [link.part for link in find_chain(log, "e2")] == ["cause", "self"]


def test_delivery_events_are_recognized():
    assert reports_delivery(LOG[4])
    assert not reports_delivery(LOG[7])
