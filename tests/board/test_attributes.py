"""Everything that an object holds is part of its value: isolated between steps, compared, stored and restored."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import networkx as nx
import pydantic
import pytest

import agentnb as nb
from agentnb.board.attributes import read_attributes
from agentnb.board.codec import Record, decode, encode
from agentnb.board.values import freeze, is_unchanged, thaw
from agentnb.errors import StoreError

pytestmark = pytest.mark.filterwarnings("ignore:step 2, 'change', changed 'out' in place")


class Plain(pydantic.BaseModel):
    items: list = [1]


class Open(pydantic.BaseModel, extra="allow"):
    n: int = 0


class Private(pydantic.BaseModel):
    n: int = 0
    _items: list = pydantic.PrivateAttr(default_factory=lambda: [1])


class Root(pydantic.RootModel[list]):
    pass


class Cached(pydantic.BaseModel):
    n: int = 0

    @cached_property
    def items(self):
        return [self.n]


@dataclass
class Loose:
    n: int = 0


@dataclass(slots=True)
class Tight:
    items: list = field(default_factory=lambda: [1])


@dataclass
class CachedRow:
    n: int = 0

    @cached_property
    def items(self):
        return [self.n]


@dataclass
class Failure(Exception):
    n: int = 0


def loose():
    value: Any = Loose()
    value.items = [1]
    return value


def cached(cls):
    value = cls(n=1)
    assert value.items == [1]
    return value


HOLDERS = {
    "field": (Plain, "items"),
    "slot": (Tight, "items"),
    "root": (lambda: Root([1]), "root"),
    "extra": (lambda: Open(items=[1]), "items"),
    "private": (Private, "_items"),
    "undeclared": (loose, "items"),
}


@pytest.mark.parametrize(("make", "name"), HOLDERS.values(), ids=HOLDERS)
def test_a_change_inside_an_attribute_is_a_change_of_the_object(make, name, tmp_path):
    graph = nx.DiGraph()
    graph.add_node("make", function=lambda: {"out": make()}, inputs={})
    graph.add_node("change", function=lambda out: {"seen": getattr(out, name).append(2)}, inputs={"out": "out"})
    graph.add_edge("make", "change")
    session = nb.Session(nb.load(graph), store=tmp_path / "runs.db", run_id="r")
    session.run()
    before, after = (session.trace.state_at(step)["out"] for step in (1, 2))
    assert (getattr(before, name), getattr(after, name)) == ([1], [1, 2])
    assert session.replay().ok
    session.close()
    reopened = nb.open(tmp_path / "runs.db", "r", recipe=nb.load(graph))
    assert reopened.replay().ok
    assert type(reopened.board["out"]) is type(after)
    assert reopened.board["out"] == after
    assert read_attributes(reopened.board["out"]) == read_attributes(after)
    session.goto(1)
    assert getattr(session.board["out"], name) == [1]
    reopened.close()


@pytest.mark.parametrize(("make", "name"), HOLDERS.values(), ids=HOLDERS)
def test_a_frozen_object_is_independent_of_the_original(make, name):
    value = make()
    frozen = freeze(value)
    getattr(value, name).append(2)
    assert not is_unchanged(value, frozen)
    assert is_unchanged(thaw(frozen), frozen)
    assert getattr(thaw(frozen), name) == [1]


@pytest.mark.parametrize("make", [Open, Loose])
def test_a_new_attribute_is_a_change(make):
    frozen = freeze(make())
    changed = thaw(frozen)
    changed.more = 1
    assert not is_unchanged(changed, frozen)
    assert thaw(freeze(changed)).more == 1
    assert decode(encode(changed)).more == 1


@pytest.mark.parametrize("cls", [Cached, CachedRow])
def test_cached_properties_are_computed_again(cls):
    frozen = freeze(cached(cls))
    reader = thaw(frozen)
    assert reader.items == [1]
    assert is_unchanged(reader, frozen)
    reader.items.append(2)
    assert thaw(frozen).items == [1]
    restored = decode(encode(frozen))
    assert (type(restored), restored.items) == (cls, [1])


def test_a_class_that_has_declared_an_attribute_since_is_shown_as_a_record():
    document = encode(freeze(loose()))
    assert decode(document).items == [1]
    moved = {**document, "v": {**document["v"], **document["extra"]}, "extra": {}}
    assert isinstance(decode(moved), Record)
    assert isinstance(decode({**encode(Private()), "private": {}, "extra": {"_items": [1]}}), Record)


def test_a_model_of_an_older_file_has_no_private_attributes():
    document = encode(Private())
    del document["private"]
    restored = decode(document)
    assert restored.n == 0
    with pytest.raises(AttributeError):
        _ = restored._items


def test_an_error_that_is_a_dataclass_is_not_stored():
    with pytest.raises(StoreError, match="L401: a Failure cannot be stored"):
        encode(freeze(Failure(3)))


@pytest.mark.parametrize("value", [1, "a", {"a": 1}, Loose, Open, None])
def test_other_values_have_no_attributes(value):
    assert read_attributes(value) is None
