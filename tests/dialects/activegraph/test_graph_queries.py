from __future__ import annotations

from itertools import pairwise

import pytest

from agentnb.dialects.activegraph.errors import GraphError
from agentnb.dialects.activegraph.parts.graph_queries import EarlierGraph, find_chains, find_near
from tests.dialects.activegraph.runtimes import graph


@pytest.fixture(params=["as it is", "as a board told it"])
def read(request):
    """A row of four places, each leading to the next, and one that a relation leads to nothing from."""
    built_graph = graph()
    places = [built_graph.add_object("place" if number % 2 else "stop", {}) for number in range(4)]
    for source, target in pairwise(places):
        built_graph.add_relation(source.id, target.id, "to")
    built_graph.add_relation(places[3].id, "gone#9", "to")
    ledger = built_graph.ledger
    return (
        ledger
        if request.param == "as it is"
        else EarlierGraph({id_: ledger.get(id_) for id_ in built_graph.session.board})
    )


def ids(things):
    return [item["id"] for item in things]


@pytest.mark.parametrize(
    ("centre", "depth", "objects", "relations"),
    [
        ("place#2", 0, ["place#2"], []),
        ("place#2", 1, ["stop#1", "place#2", "stop#3"], ["rel_001", "rel_002"]),
        ("place#4", 9, ["stop#1", "place#2", "stop#3", "place#4"],
         ["rel_001", "rel_002", "rel_003", "rel_004"]),
        ("gone#9", 2, [], []),
    ],
)  # fmt: skip
def test_neighbors_come_in_the_order_of_creation(read, centre, depth, objects, relations):
    neighbours = find_near(read, centre, depth)
    assert (ids(neighbours[0]), ids(neighbours[1])) == (objects, relations)


def test_neighbors_through_a_missing_object_are_found():
    built_graph = graph()
    one, other = built_graph.add_object("place", {}), built_graph.add_object("place", {})
    for place in (one, other):
        built_graph.add_relation("gone#9", place.id, "to")
    assert [[each.id for each in objects] for objects in built_graph.neighborhood(one.id, depth=1)] == [
        [one.id],
        ["rel_001"],
    ]
    assert [[each.id for each in objects] for objects in built_graph.neighborhood(one.id, depth=2)] == [
        [one.id, other.id],
        ["rel_001", "rel_002"],
    ]


def test_a_chain_follows_relations_in_the_given_direction(read):
    chains = find_chains(read, ["stop", "place"], [("to", "out")])
    assert [[each.id for each in chain.objects] for chain in chains] == [["stop#1", "place#2"], ["stop#3", "place#4"]]
    assert find_chains(read, ["stop", "place"], [("to", "right")]) == chains
    back = find_chains(read, ["stop", None], [(None, "left")])
    assert [[each.id for each in chain.objects] for chain in back] == [["stop#3", "place#2"]]
    assert [each.id for each in back[0].relations] == ["rel_002"]
    assert find_chains(read, ["stop", "place"], [("from", "out")]) == find_chains(read, [], []) == []
    with pytest.raises(GraphError, match=r"X517.*'letf'[\s\S]*left"):
        find_chains(read, ["stop", "place"], [("to", "letf")])
