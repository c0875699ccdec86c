from __future__ import annotations

import pytest

from agentnb.dialects.activegraph import Event, Graph, IDGen
from agentnb.dialects.activegraph.errors import GraphError, InvalidPatchLifecycleState
from tests.dialects.activegraph.judge import assert_same_signatures, same
from tests.dialects.activegraph.runtimes import graph


@pytest.fixture
def shelf():
    """Three books and a reader: the reader lent two of them, of which one is torn."""
    built_graph = graph()
    books = [built_graph.add_object("book", {"title": title, "copies": number}) for number, title in enumerate("abc")]
    reader = built_graph.add_object("reader", {"name": "Kim"})
    for book in books[:2]:
        built_graph.add_relation(reader.id, book.id, "lent", {"days": 3})
    built_graph.patch_object("book#1", {"torn": True})
    return built_graph


def ids(things):
    return [item.id for item in things]


def test_objects_are_found_by_type_and_by_condition(shelf):
    assert ids(shelf.objects("book")) == ["book#1", "book#2", "book#3"]
    assert ids(shelf.objects("book", where={"data.copies": {">": 0}})) == ["book#2", "book#3"]
    assert ids(shelf.query("reader")) == ["reader#4"]
    assert ids(shelf.objects_in_types(["reader", "book"])) == ids(shelf.all_objects())
    assert (shelf.has_object_of_type("book"), shelf.has_object_of_type("desk")) == (True, False)
    assert shelf.has_object_of_type(None)
    assert shelf.get_object("desk#1") is None


def test_relations_are_found_by_their_ends_and_type(shelf):
    assert ids(shelf.relations(source="reader#4")) == ["rel_001", "rel_002"]
    assert ids(shelf.relations(target="book#2", type="lent")) == ["rel_002"]
    assert shelf.relations(type="owns") == []
    for leading, leaving in (("in", "out"), ("incoming", "outgoing")):
        assert ids(shelf.get_relations("book#1", direction=leading)) == ["rel_001"]
        assert shelf.get_relations("book#1", direction=leaving) == []
    with pytest.raises(GraphError, match=r"X517.*'upwards'"):
        shelf.get_relations("book#1", direction="upwards")
    assert ids(shelf.get_relations(type="lent")) == ids(shelf.all_relations()) == ["rel_001", "rel_002"]
    assert (shelf.get_relation("rel_001").data, shelf.get_relation("rel_009")) == ({"days": 3}, None)


def test_neighbors_are_found_in_both_directions(shelf):
    objects, relations = shelf.neighborhood("book#1", depth=2)
    assert (ids(objects), ids(relations)) == (["book#1", "book#2", "reader#4"], ["rel_001", "rel_002"])
    assert ids(shelf.neighborhood("book#1")[0]) == ["book#1", "reader#4"]
    assert shelf.neighborhood("desk#1") == ([], [])
    chains = shelf.match_chain(["book", "reader", "book"], [("lent", "in"), ("lent", "out")])
    assert [ids(chain.objects) for chain in chains][1] == ["book#1", "reader#4", "book#2"]


def test_removing_an_object_removes_its_relations(shelf):
    shelf.remove_object("reader#4")
    assert shelf.all_relations() == []
    assert [event.type for event in shelf.events[-3:]] == ["relation.removed", "relation.removed", "object.removed"]
    shelf.remove_object("reader#4")
    shelf.remove_relation("rel_001")
    assert shelf.events[-1].type == "object.removed"


def test_a_patch_is_decided_once_and_only_for_its_version(shelf):
    late = shelf.propose_patch("book#2", "update", {"torn": False}, proposed_by="ann")
    first = shelf.propose_patch("object:book#2", "replace", {"title": "B"}, proposed_by="ben")
    shelf.apply_patch(first.id, approved_by="cleo")
    assert shelf.get_object("book#2").data == {"title": "B"}
    rejected = shelf.apply_patch(late.id)
    assert (rejected.type, rejected.payload["reason"]) == ("patch.rejected", "version mismatch: expected 1, got 2")
    with pytest.raises(InvalidPatchLifecycleState, match="X505"):
        shelf.reject_patch(first.id, "too late")
    for decide in (shelf.apply_patch, lambda patch: shelf.reject_patch(patch, "no")):
        with pytest.raises(InvalidPatchLifecycleState, match="it is rejected"):
            decide(late.id)
    with pytest.raises(KeyError):
        shelf.apply_patch("patch_099")
    assert (shelf.get_patch(late.id).status, shelf.get_patch("patch_099")) == ("rejected", None)


def test_an_event_without_the_data_of_its_type_is_not_stored(shelf):
    before = shelf.events
    wrong = {"object.created": {"object": {"id": "x#1"}}, "patch.applied": {}, "relation.created": []}
    for type_, payload in wrong.items():
        with pytest.raises(GraphError, match="X502"):
            shelf.emit(Event(shelf.ids.event(), type_, payload))
    assert shelf.events == before


def test_its_repr_counts_its_objects_and_it_shares_a_given_id_counter(shelf):
    assert repr(shelf) == "<Graph: 4 objects, 2 relations>"
    count = IDGen()
    one, other = Graph(ids=count), Graph(ids=count)
    assert [one.add_object("a", {}).id, other.add_object("a", {}).id] == ["a#1", "a#2"]


def test_keys_that_are_not_strings_become_json_keys_as_in_the_package():
    (created,) = same(lambda p: p.graph.add_object("odd", {True: 1, False: 2, None: 3, 4: 5}))
    assert created["payload"]["object"]["data"] == {"true": 1, "false": 2, "null": 3, "4": 5}


def test_signatures_are_those_of_the_package():
    assert_same_signatures(
        "Graph",
        "Graph.add_object",
        "Graph.add_relation",
        "Graph.remove_object",
        "Graph.remove_relation",
        "Graph.patch_object",
        "Graph.propose_patch",
        "Graph.apply_patch",
        "Graph.reject_patch",
        "Graph.emit",
        "Graph.events",
        "Graph.get_object",
        "Graph.get_relation",
        "Graph.get_patch",
        "Graph.all_objects",
        "Graph.all_relations",
        "Graph.objects",
        "Graph.query",
        "Graph.relations",
        "Graph.get_relations",
        "Graph.neighborhood",
        "Graph.match_chain",
        "Graph.objects_in_types",
        "Graph.has_object_of_type",
        "Graph.add_listener",
    )
