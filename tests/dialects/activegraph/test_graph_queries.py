from __future__ import annotations

from itertools import pairwise, product
from typing import Any

import pytest

from agentnb.dialects.activegraph.errors import GraphError
from agentnb.dialects.activegraph.parts.graph_queries import EarlierGraph, find_chains, find_near
from tests.dialects.activegraph.judge import ours, theirs
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
    ("center", "depth", "objects", "relations"),
    [
        ("place#2", 0, ["place#2"], []),
        ("place#2", 1, ["stop#1", "place#2", "stop#3"], ["rel_001", "rel_002"]),
        ("place#4", 9, ["stop#1", "place#2", "stop#3", "place#4"],
         ["rel_001", "rel_002", "rel_003", "rel_004"]),
        ("gone#9", 2, [], []),
    ],
)  # fmt: skip
def test_neighbors_come_in_the_order_of_creation(read, center, depth, objects, relations):
    neighbors = find_near(read, center, depth)
    assert (ids(neighbors[0]), ids(neighbors[1])) == (objects, relations)


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


def query_all(package):
    """Return what each query of one graph finds, by its arguments."""
    built_graph = package.Graph()
    objects = [built_graph.add_object("book" if number % 2 else "desk", {"n": number}).id for number in range(4)]
    pairs = [(0, 1), (1, 2), (2, 0), (1, 1), (3, 1), (2, 1)]
    for number, (source, target) in enumerate(pairs):
        built_graph.add_relation(objects[source], objects[target], "on" if number % 2 else "by")
    lookups: dict[str, Any] = {}
    ends, types = [*objects, None], ["on", "by", "other", None]
    for end, type_ in product(ends, types):
        for direction in ("outgoing", "incoming", "both"):
            lookups[f"{end} {type_} {direction}"] = built_graph.get_relations(end, type_, direction)
        for other in ends:
            lookups[f"{end} to {other} {type_}"] = built_graph.relations(source=end, target=other, type=type_)
    for type_ in ("book", "desk", "other"):
        lookups[type_] = built_graph.objects(type_)
        lookups[f"{type_} 2"] = built_graph.query(type_, {"n": 2})
        lookups[f"{type_}s"] = built_graph.objects_in_types([type_, "desk"])
        lookups[f"any {type_}"] = [built_graph.has_object_of_type(type_)]
    for end, depth in product(objects, range(4)):
        near, relations = built_graph.neighborhood(end, depth)
        lookups[f"around {end} {depth}"] = [*sorted(each.id for each in near), *sorted(each.id for each in relations)]
    steps = list(product(["on", "by", None], ["right", "left"]))
    for kinds, hops in [
        *(([kind], []) for kind in ("book", "desk", "other", None)),
        *(([*pair], [step]) for pair in product(["book", "desk", None], repeat=2) for step in steps),
        *((["book", None, "desk"], [*pair]) for pair in product(steps, repeat=2)),
    ]:
        chains = built_graph.match_chain(kinds, hops)
        lookups[f"{kinds} along {hops}"] = [
            [each.id for each in (*chain.objects, *chain.relations)] for chain in chains
        ]
    return {name: [getattr(each, "id", each) for each in result] for name, result in lookups.items()}


def test_each_query_finds_what_the_package_finds():
    actual = query_all(ours())
    assert actual == query_all(theirs())
    assert len({*map(str, actual.values())}) > 30  # they are told apart
