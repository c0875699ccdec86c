"""One promise for every store of graphs, and a graph that lies in another store than usual."""

from __future__ import annotations

import json

import pytest

from agentnb.board.values import ABSENT, freeze, thaw
from agentnb.dialects.activegraph import Graph, IDGen, Runtime, TickingClock
from agentnb.dialects.activegraph.errors import GraphError
from agentnb.dialects.activegraph.parts.graph_stores import GraphStore, InMemoryGraphStore
from tests.dialects.activegraph.runtimes import log, on, research, runtime, tell

__all__ = ["research"]


class Lines:
    """A store that somebody else might write: it keeps lines of JSON, as one in another process would."""

    def __init__(self):
        self.lines, self.cleared = {}, 0

    def _put(self, sort, id_, value):
        self.lines[id_] = json.dumps([sort, thaw(freeze(value))])

    def _get(self, sort, id_):
        stored_sort, value = json.loads(self.lines.get(id_, '["", 0]'))
        return freeze(value) if stored_sort == sort else ABSENT

    def _remove(self, sort, id_):
        if self._get(sort, id_) is not ABSENT:
            del self.lines[id_]

    def _all(self, sort):
        return iter(
            [freeze(value) for stored_sort, value in map(json.loads, self.lines.values()) if stored_sort == sort]
        )

    def put_object(self, id_, value):
        self._put("object", id_, value)

    def get_object(self, id_):
        return self._get("object", id_)

    def remove_object(self, id_):
        self._remove("object", id_)

    def all_objects(self, type_=None):
        return (value for value in self._all("object") if type_ in (None, value["type"]))

    def put_relation(self, id_, value):
        self._put("relation", id_, value)

    def get_relation(self, id_):
        return self._get("relation", id_)

    def remove_relation(self, id_):
        self._remove("relation", id_)

    def all_relations(self):
        return self._all("relation")

    def touching(self, id_):
        return [each["id"] for each in self._all("relation") if id_ in (each["source"], each["target"])]

    def put_patch(self, id_, value):
        self._put("patch", id_, value)

    def get_patch(self, id_):
        return self._get("patch", id_)

    def all_patches(self):
        return self._all("patch")

    def clear(self):
        self.cleared += 1
        self.lines.clear()


STORES = (InMemoryGraphStore, Lines)


@pytest.fixture(params=STORES)
def store(request):
    return request.param()


def thing(id_, type_="book", **data):
    return freeze({"id": id_, "type": type_, "data": data, "version": 1})


def way(id_, source, target):
    return freeze({"id": id_, "source": source, "target": target, "type": "near", "data": {}})


def ids(values):
    return [value["id"] for value in values]


# -- the promise of every store -----------------------------------------------------------------------------------


def test_it_is_a_graph_store(store):
    assert isinstance(store, GraphStore)


def test_a_stored_object_is_found_and_a_missing_one_is_absent(store):
    store.put_object("book#1", thing("book#1", n=1))
    store.put_relation("rel_001", way("rel_001", "book#1", "book#9"))
    store.put_patch("patch_001", freeze({"id": "patch_001", "op": "update"}))
    assert store.get_object("book#1")["data"] == {"n": 1}
    assert store.get_relation("rel_001")["target"] == "book#9"
    assert ids(store.all_patches()) == [store.get_patch("patch_001")["id"]] == ["patch_001"]
    for get in (store.get_object, store.get_relation, store.get_patch):
        assert get("none") is ABSENT


def test_objects_come_in_the_order_of_creation_and_an_update_keeps_the_position(store):
    for number, type_ in enumerate(("book", "desk", "book"), 1):
        store.put_object(f"x#{number}", thing(f"x#{number}", type_))
    store.put_object("x#1", thing("x#1", n=2))
    assert ids(store.all_objects()) == ["x#1", "x#2", "x#3"]
    assert ids(store.all_objects("book")) == ["x#1", "x#3"]
    assert ids(store.all_objects("none")) == []
    assert store.get_object("x#1")["data"] == {"n": 2}


def test_an_object_with_a_changed_type_is_found_by_the_new_one(store):
    store.put_object("x#1", thing("x#1", "book"))
    store.put_object("x#1", thing("x#1", "desk"))
    assert (ids(store.all_objects("book")), ids(store.all_objects("desk"))) == ([], ["x#1"])


def test_relations_are_found_at_both_ends(store):
    store.put_relation("rel_001", way("rel_001", "a#1", "b#2"))
    store.put_relation("rel_002", way("rel_002", "b#2", "a#1"))
    store.put_relation("rel_003", way("rel_003", "b#2", "b#2"))
    assert store.touching("b#2") == ["rel_001", "rel_002", "rel_003"]
    store.remove_relation("rel_001")
    store.remove_relation("rel_003")
    assert (store.touching("a#1"), store.touching("b#2"), store.touching("c#3")) == (["rel_002"], ["rel_002"], [])
    assert ids(store.all_relations()) == ["rel_002"]


def test_removed_objects_are_gone_and_removing_a_missing_one_does_nothing(store):
    store.put_object("book#1", thing("book#1"))
    for remove in (store.remove_object, store.remove_relation):
        remove("none")
    store.remove_object("book#1")
    assert (store.get_object("book#1"), ids(store.all_objects("book"))) == (ABSENT, [])
    store.put_object("book#1", thing("book#1"))
    store.clear()
    assert ids(store.all_objects()) == ids(store.all_relations()) == ids(store.all_patches()) == []


def test_an_iteration_is_not_affected_by_later_writes(store):
    store.put_object("x#1", thing("x#1"))
    store.put_relation("rel_001", way("rel_001", "x#1", "x#1"))
    for number, _ in enumerate(store.all_objects(), 2):
        store.put_object(f"x#{number}", thing(f"x#{number}"))
    for _ in store.all_relations():
        store.put_relation("rel_002", way("rel_002", "x#1", "x#1"))
    assert (len(ids(store.all_objects())), len(ids(store.all_relations()))) == (2, 2)


# -- a graph that lies there --------------------------------------------------------------------------------------


def kept_in(store):
    return Graph(IDGen(), TickingClock("2026-01-01T00:00:00Z"), "RUN", store)


def list_contents(graph):
    return [each.to_dict() for each in (*graph.all_objects(), *graph.all_relations())]


def test_a_run_is_the_same_with_any_graph_store(store, research):
    usual = runtime(*research)
    other = Runtime(kept_in(store), behaviors=research)
    for team in (usual, other):
        team.run_goal("find out")
        team.graph.propose_patch("task#1", "update", {"n": 9}, proposed_by="ann")
        team.session.approve(by="ben")
    assert log(other) == log(usual)
    assert ids(store.all_objects()) == [each.id for each in usual.graph.all_objects()]
    assert list_contents(other.graph) == list_contents(usual.graph)
    assert other.replay().ok


def test_going_back_and_forth_restores_the_content_of_the_store(store, research):
    team = Runtime(kept_in(store), behaviors=research)
    team.run_goal("find out")
    session, states = team.session, []
    for step in range(len(session.trace) + 1):
        session.goto(step)
        states.append(list_contents(team.graph))
        assert len(ids(store.all_objects())) == len(team.graph.all_objects())
    for step in (0, len(states) - 1, 2):
        session.goto(step)
        assert list_contents(team.graph) == states[step]
    session.reset()
    assert (list_contents(team.graph), ids(store.all_objects())) == ([], [])


def test_a_loaded_or_forked_run_uses_the_given_store(store, research, tmp_path):
    team = runtime(*research, persist_to=tmp_path / "run.db")
    team.run_goal("find out")
    forked = team.fork(team.graph.events[-1].id, graph_store=store)
    assert list_contents(forked.graph) == list_contents(team.graph)
    assert len(ids(store.all_objects())) == len(team.graph.all_objects())
    team.session.close()
    other = type(store)()
    other.put_object("stale#1", thing("stale#1"))
    loaded = Runtime.load(tmp_path / "run.db", "RUN", behaviors=research, graph_store=other)
    assert list_contents(loaded.graph) == list_contents(forked.graph)
    assert other.get_object("stale#1") is ABSENT
    loaded.session.close()


def test_an_edit_of_the_board_is_found_in_the_store(store):
    graph = kept_in(store)
    graph.add_object("book", {"n": 1})
    graph.session.edit({"book#1.data.n": 5})
    assert graph.get_object("book#1").data == {"n": 5}
    assert store.get_object("book#1")["data"] == {"n": 5}


def test_the_changes_of_a_behavior_are_visible_within_its_step(store):
    results = []

    @on("go")
    def makes(event, graph, ctx):
        item = graph.add_object("book", {"n": 1})
        graph.patch_object(item.id, {"n": 2})
        results.append((graph.get_object(item.id).data, [each.id for each in ctx.view.objects()]))

    team = Runtime(kept_in(store), behaviors=[makes])
    tell(team, "go")
    team.run_until_idle()
    assert (team.errors, results) == ([], [({"n": 2}, [])])


@pytest.mark.parametrize("given", [object(), {}, InMemoryGraphStore, "falkordb://here"])
def test_an_object_that_is_not_a_store_is_rejected(given):
    with pytest.raises(GraphError, match="X516"):
        Graph(graph_store=given)
