"""A reader's copies behave as plain lists and dicts, and freezing one costs and keeps what it should."""

from __future__ import annotations

import copy
import heapq
import inspect
import json
import operator
import pickle
import sys
import threading
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from itertools import pairwise, product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentnb import bounds
from agentnb.board import copies
from agentnb.board.copies import make_reader_copy
from agentnb.board.values import ABSENT, freeze, is_unchanged, thaw
from agentnb.errors import BoardError
from tests.board.naive_values import SHAPES, check_frozen_after, fresh, measure

MESSAGES = [{"role": "user", "n": n, "calls": [{"name": "f", "args": {"n": n}}]} for n in range(5)]
VALUES: list[Any] = [
    MESSAGES,
    [1, 2.0, True, None, "a"],
    [[1], [2, [3]], {"a": {"b": [4]}}],
    {"a": 1, "b": [1, {"c": 2}], "d": {"e": {}}},
    {"tuple": (1, [2], {"a": 3}), "set": {1, 2}, "none": None},
    [(1, "a"), (0, "b")],
    [{"n": 1}, {"n": 2}, 3, [4]],
]


@dataclass
class Point:
    x: int
    tags: list[str]


@pytest.fixture(autouse=True, scope="module")
def no_value_is_small():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(copies, "SMALL", 0)
        yield


@pytest.mark.parametrize("value", VALUES)
def test_a_copy_reads_like_the_value(value):
    frozen = freeze(value)
    for read in (lambda v: v, copy.copy, copy.deepcopy, type(value), lambda v: pickle.loads(pickle.dumps(v)),
                 lambda v: v.copy(), lambda v: [*v] if isinstance(v, list) else {**v}):  # fmt: skip
        assert read(make_reader_copy(frozen)) == value
        assert value == read(make_reader_copy(frozen))
        assert (read(make_reader_copy(frozen)) != value) is False
        assert repr(read(make_reader_copy(frozen))) == repr(value)
    assert isinstance(make_reader_copy(frozen), type(value))
    assert is_unchanged(make_reader_copy(frozen), frozen)
    assert freeze(make_reader_copy(frozen)) is frozen


@pytest.mark.parametrize("value", [*VALUES, [(1, [2]), ({"a": 3}, 4)]])
def test_a_part_is_the_same_object_each_time_it_is_read(value):
    copied = make_reader_copy(freeze(value))
    for key in range(len(value)) if isinstance(value, list) else value:
        part = copied[key]
        assert copied[key] is part
        assert any(each is part for each in (copied if isinstance(value, list) else copied.values()))
        assert copied[key] is part


METHODS = {name for kind in (list, dict) for name in dir(kind) if not name.startswith("_")}
OPERATORS = (
    *(operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge, operator.add, operator.mul),
    *(operator.or_, operator.iadd, operator.imul, operator.ior, operator.contains, operator.getitem, operator.delitem),
)


@pytest.mark.parametrize("value", VALUES)
def test_each_operation_gives_what_it_gives_for_the_value(value):
    def attempt(perform: Callable[..., Any], target: Any, *arguments: Any) -> str:
        try:
            outcome = perform(target, *copy.deepcopy(arguments))
        except (TypeError, LookupError, ValueError) as error:
            outcome = type(error)
        shown = [*outcome] if isinstance(outcome, Iterable) and not isinstance(outcome, str) else outcome
        return f"{shown!r}; {target!r}"

    frozen, missing = freeze(value), [[], {}, [7], {"a": 7}, {"new": [8]}, (9,), None, "a", "new", slice(1, None)]
    parts = [0, 1, -1, 99, *(value if isinstance(value, list) else value.values())]
    operands = [*missing, *parts, value]
    arguments = [(), *[(one,) for one in operands], *product(["new", "a", 0, -1, 99], [5])]
    names = sorted(METHODS & {*dir(value)})
    methods = [operator.methodcaller(name, *arguments) for name, arguments in product(names, arguments)]
    for method in methods:
        assert attempt(method, make_reader_copy(frozen)) == attempt(method, copy.deepcopy(value)), method
    for apply, operand in product(OPERATORS, operands):
        for swapped in (apply, lambda one, other, apply=apply: apply(other, one)):
            expected = attempt(swapped, copy.deepcopy(value), operand)
            assert attempt(swapped, make_reader_copy(frozen), operand) == expected, (apply, operand)
    assert attempt(operator.add, make_reader_copy(frozen), make_reader_copy(frozen)) == attempt(
        operator.add, copy.deepcopy(value), value
    )


@pytest.mark.parametrize("value", VALUES[:4])
def test_a_copy_can_be_dumped_as_json(value):
    frozen = freeze(value)
    assert json.dumps(make_reader_copy(frozen)) == json.dumps(value)
    assert json.dumps(make_reader_copy(frozen), indent=1, sort_keys=True) == json.dumps(value, indent=1, sort_keys=True)


def pickled(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


@pytest.mark.parametrize("take", [copy.copy, copy.deepcopy, pickled, lambda v: v.copy()])
def test_a_copy_of_a_copy_is_plain(take):
    assert type(take(make_reader_copy(freeze(MESSAGES)))) is list
    assert type(take(make_reader_copy(freeze(VALUES[3])))) is dict
    assert type(take(make_reader_copy(freeze([1, 2])))) is list


def test_a_deep_copy_shares_nothing_with_the_copy():
    reader_copy = make_reader_copy(freeze(MESSAGES))
    deep = copy.deepcopy(reader_copy)
    deep[0]["calls"][0]["args"]["n"] = 99
    assert reader_copy == MESSAGES
    assert type(deep[0]["calls"]) is list


def test_copies_of_other_packages_read_the_parts():
    pandas = pytest.importorskip("pandas")
    numpy = pytest.importorskip("numpy")
    assert pandas.DataFrame(make_reader_copy(freeze(MESSAGES))).to_dict("records") == MESSAGES
    assert numpy.array(make_reader_copy(freeze([[1, 2], [3, 4]]))).sum() == 10
    assert pandas.Series(make_reader_copy(freeze(MESSAGES))).tolist() == MESSAGES


def test_pydantic_reads_a_copy():
    pydantic = pytest.importorskip("pydantic")

    class Message(pydantic.BaseModel):
        role: str
        n: int
        calls: list[dict[str, Any]]

    parsed = pydantic.TypeAdapter(list[Message]).validate_python(make_reader_copy(freeze(MESSAGES)))
    assert [message.model_dump() for message in parsed] == MESSAGES


def test_constructing_from_the_type_of_a_copy_gives_plain_values():
    @dataclass
    class Holder:
        items: Any

    assert asdict(Holder(make_reader_copy(freeze(MESSAGES)))) == {"items": MESSAGES}


def test_a_structural_pattern_matches():
    match make_reader_copy(freeze({"a": [1, {"b": 2}]})):
        case {"a": [1, {"b": item}]}:
            assert item == 2
        case _:
            raise AssertionError


CHANGES = [
    lambda v: v.append({"n": 9}),
    lambda v: v.extend([1, 2]),
    lambda v: v.insert(0, 1),
    lambda v: v.pop(),
    lambda v: v.pop(0),
    lambda v: v.remove(v[2]),
    lambda v: v.reverse(),
    lambda v: v.sort(key=lambda item: -item["n"]),
    lambda v: v.clear(),
    lambda v: v.__setitem__(1, 5),
    lambda v: v.__setitem__(-1, {"n": 4}),
    lambda v: v.__setitem__(slice(1, 3), []),
    lambda v: v.__delitem__(0),
    lambda v: v.__iadd__([1]),
    lambda v: v.extend(v),
    lambda v: v.__imul__(2),
    lambda v: v[0].update(x=1),
    lambda v: v[0].pop("n"),
    lambda v: v[0].popitem(),
    lambda v: v[0].clear(),
    lambda v: v[0].setdefault("new", []).append(1),
    lambda v: v[0].__ior__({"n": 3}),
    lambda v: v[1].__delitem__("role"),
    lambda v: v[1]["calls"].append(1),
    lambda v: v[1]["calls"][0]["args"].update(n=-1),
    lambda v: v[1].get("calls").clear(),
    lambda v: [m.update(seen=True) for m in v],
    lambda v: [m["calls"].append(0) for m in v if m["n"] == 3],
    lambda v: v[2].__setitem__("n", 2.0),
    lambda v: v[1].update(n=True),
    lambda v: list(v[3].values())[2].append(5),
    lambda v: v[:2][0].update(y=2),
    lambda v: reversed(v).__next__().update(z=2),
    lambda v: next(iter(v[0].items())) and v[0].update({}, q=1),
    lambda v: v[1].__setitem__("role", v[1].pop("role")),
    lambda v: v[1]["calls"][0].__setitem__("name", v[1]["calls"][0].pop("name")),
]


@pytest.mark.parametrize("before", [None, len, list, lambda v: v[1], lambda v: [m["calls"] for m in v]])
@pytest.mark.parametrize("small", [0, 64])
def test_each_change_in_place_is_detected(before, small, monkeypatch):
    monkeypatch.setattr(copies, "SMALL", small)
    for change in CHANGES:
        frozen, expected = freeze(MESSAGES), copy.deepcopy(MESSAGES)
        reader_copy = make_reader_copy(frozen)
        if before:
            before(reader_copy)
        change(reader_copy)
        change(expected)
        assert repr(reader_copy) == repr(expected)
        assert not is_unchanged(reader_copy, frozen), inspect.getsource(change)
        assert repr(thaw(freeze(reader_copy, frozen))) == repr(expected)
        assert thaw(frozen) == MESSAGES
        assert repr([*make_reader_copy(frozen)]) == repr(MESSAGES), "the next reader sees the value as it was"


def replace_all(container: Any, value: Any) -> None:
    """Make a list or dict equal to another one in one go."""
    container.clear()
    container.extend(value) if isinstance(container, list) else container.update(value)


def replace_each(container: Any, value: Any) -> None:
    """Make a list or dict equal to another one, one part after the other."""
    if isinstance(container, dict):
        for key in [*container]:
            if key not in value:
                del container[key]
        for key in value:
            container[key] = value[key]
        return
    for index, part in enumerate(value[: len(container)]):
        container[index] = part
    del container[len(value) :]
    for part in value[len(container) :]:
        container.append(part)


LOOKS: list[Callable[[Any], Any]] = [
    lambda value: None,
    lambda value: [*(value.values() if isinstance(value, dict) else value)],
    lambda value: [repr(part) for part in containers(value)],
]
INSIDE: list[tuple[Callable[[Any], Any], Callable[[Any, Any], Any]]] = [
    (lambda value: {"k": value, "n": [[0], 1]}, lambda copied, value: copied.__setitem__("k", value)),
    (lambda value: [{"n": [1]}, value, {}], lambda copied, value: copied.__setitem__(1, value)),
    (lambda value: [{"n": [1]}, value], lambda copied, value: copied.__setitem__(-1, value)),
    (lambda value: [{"n": {"k": value}}, {"n": 2}], lambda copied, value: copied[0]["n"].update(k=value)),
    (lambda value: [{"n": 1}, {"n": value}], lambda copied, value: [*copied][1].update(n=value)),
    (lambda value: [[[value, 0]], 0], lambda copied, value: copied[0][0].__setitem__(0, value)),
]


@pytest.mark.parametrize("first", SHAPES)
def test_a_part_set_in_a_copy_shares_what_is_equal_and_nothing_else(first):
    for (around, change), look in product(INSIDE, LOOKS):
        before = around(fresh(first))
        old = freeze(before)
        for second in SHAPES[::4] if look is LOOKS[1] else SHAPES[1::4]:
            copied, value = make_reader_copy(old), around(fresh(second))
            look(copied)
            change(copied, fresh(second))
            assert is_unchanged(copied, old) == (first == second)
            check_frozen_after(freeze(copied, old), value, old, before)


@pytest.mark.parametrize("replace", [replace_all, replace_each])
@pytest.mark.parametrize("kind", [list, dict])
def test_a_copy_changed_to_any_other_value_shares_what_is_equal_and_nothing_else(kind, replace):
    shapes = [shape for shape in SHAPES if isinstance(fresh(shape), kind)]
    for first, second, look in product(shapes, shapes, LOOKS):
        before, value = fresh(first), fresh(first)
        replace(value, fresh(second))
        old = freeze(before)
        copied = make_reader_copy(old)
        look(copied)
        replace(copied, fresh(second))
        assert is_unchanged(copied, old) == (repr(value) == repr(before))
        check_frozen_after(freeze(copied, old), value, old, before)


WRITES: list[Callable[[Any, Any], Any]] = [
    lambda value, frozen: value,
    lambda value, frozen: frozen,
    lambda value, frozen: make_reader_copy(frozen),
    lambda value, frozen: [*make_reader_copy(frozen)] if isinstance(value, list) else {**make_reader_copy(frozen)},
    *(lambda value, frozen, look=look: [copied := make_reader_copy(frozen), look(copied)][0] for look in LOOKS),
]
BOUNDED = [shape for shape in SHAPES if isinstance(fresh(shape), list | dict)]
MORE = ["[{'a': [1]}, {'a': [2]}, {'a': [3]}]", "{'a': {'b': [1]}, 'c': [[2]]}"]


@pytest.mark.parametrize("shape", BOUNDED + MORE)
def test_a_copy_counts_as_the_value_it_is_a_copy_of(shape, monkeypatch):
    frozen = freeze(fresh(shape))
    for write, like, added in product(WRITES, (ABSENT, freeze({"inside": fresh(shape)})), (None, [], {"a": [{}]})):
        value, written = fresh(shape), write(fresh(shape), frozen)
        if added is not None and written is not frozen:
            for container in (value, written):
                container.append(added) if isinstance(container, list) else container.update(new=added)
        levels, total, _ = measure({"inside": value, "n": []})
        for deepest, largest in ((levels, total), (levels - 1, total), (levels, total - 1)):
            with monkeypatch.context() as patch:
                patch.setattr(bounds, "DEPTH_LIMIT", deepest)
                patch.setattr(bounds, "SIZE_LIMIT", largest)
                if (deepest, largest) == (levels, total):
                    freeze({"inside": written, "n": []}, like)
                else:
                    with pytest.raises(BoardError, match="B102"):
                        freeze({"inside": written, "n": []}, like)


SURROUNDINGS: list[Any] = [
    (lambda part: [part], lambda v, part: v.__setitem__(0, part)),
    (lambda part: {"k": part}, lambda v, part: v.update(k=part)),
    (lambda part: [{"k": [part, "end"]}], lambda v, part: v[0]["k"].__setitem__(0, part)),
]


@pytest.mark.parametrize("small", [0, 64])
@pytest.mark.parametrize(("was", "now"), [
    ({"a": "1", "b": "2"}, {"b": "2", "a": "1"}), ({"a": 1, "b": [2]}, {"b": [2], "a": 1}), ({1: "a"}, {True: "a"}),
    ({1, 2}, {True, 2}), ({1}, {1.0}), (frozenset({1}), frozenset({True})), (1, True), (0.0, -0.0), ("a", b"a"),
])  # fmt: skip
def test_an_equal_but_distinct_value_is_a_change(was, now, small, monkeypatch):
    monkeypatch.setattr(copies, "SMALL", small)
    for around, replace in SURROUNDINGS:
        frozen, expected = freeze(around(was)), repr(around(now))
        reader_copy = make_reader_copy(frozen)
        replace(reader_copy, now)
        assert not is_unchanged(reader_copy, frozen)
        assert repr(thaw(freeze(reader_copy, frozen))) == expected
        assert repr(thaw(freeze(around(now), frozen))) == expected


@pytest.mark.parametrize("change", [heapq.heapify, lambda q: heapq.heappush(q, (0, "c")), heapq.heappop])
@pytest.mark.parametrize("queue", [[(3, "a"), (1, "b")], [3, 1, 2]])
def test_changes_by_c_code_to_a_list_are_detected(queue, change):
    if change is not heapq.heapify and not isinstance(queue[0], tuple):
        queue = [(3, "x"), *[(n, "y") for n in queue]]
    frozen, expected = freeze(queue), [*queue]
    reader_copy = make_reader_copy(frozen)
    change(reader_copy)
    change(expected)
    assert not is_unchanged(reader_copy, frozen)
    assert thaw(freeze(reader_copy, frozen)) == expected


@pytest.mark.parametrize("add", [lambda items: items.extend(items), lambda items: items.__iadd__(items)])
def test_a_list_that_is_added_to_itself_has_each_item_twice(add):
    copied = make_reader_copy(freeze(MESSAGES * 20))
    add(copied)
    copied[0]["calls"].append("more")
    plain = copy.deepcopy(MESSAGES) + copy.deepcopy(MESSAGES * 19)
    plain[0]["calls"].append("more")
    assert copied == plain * 2
    assert copied[100] is copied[0]


def test_a_changed_value_that_is_equal_again_is_unchanged():
    frozen = freeze(MESSAGES)
    reader_copy = make_reader_copy(frozen)
    reader_copy[0]["n"], reader_copy[1] = reader_copy[0]["n"], copy.deepcopy(MESSAGES[1])
    assert is_unchanged(reader_copy, frozen)


def test_unchanged_parts_are_shared_wherever_they_go():
    frozen = freeze(MESSAGES)
    reader_copy = make_reader_copy(frozen)
    grown = freeze([*reader_copy, {"n": 5}], frozen)
    assert grown.items is frozen.items
    shorter = freeze({"kept": reader_copy[1:3], "first": reader_copy[0]})
    assert shorter["kept"].items[0] is frozen.items[1]
    assert shorter["first"] is frozen.items[0]
    last = freeze([*make_reader_copy(frozen)[:-1], {"n": 7}], frozen)
    assert all(one is other for one, other in zip(last.items[:4], frozen.items[:4], strict=True))


def test_copies_without_references_are_reused():
    frozen = freeze(MESSAGES)
    first = {id(item) for item in make_reader_copy(frozen)}
    assert {id(item) for item in make_reader_copy(frozen)} == first


@pytest.mark.skipif(copies._HELD_ONCE == 0, reason="copies are reused only where references are counted exactly")
@pytest.mark.parametrize("index", range(5))
def test_only_the_copies_that_were_changed_or_are_referenced_are_replaced(index):
    held: list[Any] = []
    for change in (lambda item: item.update(n=-1), lambda item: item["calls"], held.append):
        frozen = freeze(MESSAGES)
        first = [id(item) for item in make_reader_copy(frozen)]
        change([*make_reader_copy(frozen)][index])
        again = make_reader_copy(frozen)
        assert [id(item) == known for item, known in zip(again, first, strict=True)] == [at != index for at in range(5)]
        assert repr([*again]) == repr(MESSAGES)
        assert is_unchanged(again, frozen)
        held.clear()


@pytest.mark.parametrize("array_at", range(5))
def test_an_array_in_place_of_a_copied_item_is_a_change(array_at):
    numpy = pytest.importorskip("numpy")
    frozen = freeze(MESSAGES)
    items = [*make_reader_copy(frozen)]
    items[array_at] = numpy.arange(3)
    new = freeze(items, frozen)
    assert thaw(new)[array_at].tolist() == [0, 1, 2]
    assert all(new[index] is frozen[index] for index in range(5) if index != array_at)


@pytest.mark.skipif(copies._HELD_ONCE == 0, reason="copies are reused only where references are counted exactly")
def test_copies_of_lists_read_long_ago_are_not_kept():
    text = "-".join(["held by the board"] * 3)
    frozen = freeze([{"text": text}])
    before = sys.getrefcount(text)
    assert [*make_reader_copy(frozen)] == [{"text": text}]
    assert sys.getrefcount(text) == before + 1
    for number in range(40):
        assert [*make_reader_copy(freeze([{"n": number}]))] == [{"n": number}]
    assert sys.getrefcount(text) == before
    assert [*make_reader_copy(frozen)] == [{"text": text}]


@pytest.mark.parametrize("weight", [1, 2, copies.SMALL - 1, copies.SMALL, copies.SMALL + 1, 300])
@pytest.mark.parametrize("make", [list, dict.fromkeys])
def test_a_small_value_is_copied_to_plain_lists_and_dicts(weight, make, monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr(copies, "SMALL", 64)
    value = make(range(weight - 1))
    copied = make_reader_copy(freeze(value))
    assert copied == value
    assert (type(copied) is type(value)) == (weight <= copies.SMALL)


@pytest.mark.parametrize("name", ["popitem", "pop", "__delitem__", "__getitem__"])
@pytest.mark.parametrize("value", [{}, {"a": [1]}, [], [[1]]])
def test_what_is_missing_in_a_copy_raises_as_it_does_in_the_value(value, name):
    arguments = () if name == "popitem" else ("b",) if isinstance(value, dict) else (1,)
    if hasattr(value, name) and not (value and name == "popitem"):
        errors = []
        for target in (value, make_reader_copy(freeze(value))):
            with pytest.raises((LookupError, TypeError)) as caught:
                getattr(target, name)(*arguments)
            errors.append((caught.type, str(caught.value)))
        assert errors[0] == errors[1]


def test_a_referenced_copy_is_not_reused():
    frozen = freeze(MESSAGES)
    held = [*make_reader_copy(frozen)][2]
    again = [*make_reader_copy(frozen)]
    held["n"] = "changed by an earlier reader"
    assert repr(again) == repr(MESSAGES)
    assert is_unchanged(again, thaw(frozen)) or again == MESSAGES
    reader_copy = make_reader_copy(frozen)
    list(reader_copy)
    held["n"] = "and again"
    assert is_unchanged(reader_copy, frozen)


def test_a_referenced_part_of_a_copy_is_not_reused():
    frozen = freeze(MESSAGES)
    held = next(iter(make_reader_copy(frozen)))["calls"]
    reader_copy = make_reader_copy(frozen)
    inner = next(iter(reader_copy))["calls"]
    held.append("changed by an earlier reader")
    assert inner == MESSAGES[0]["calls"]
    assert is_unchanged(reader_copy, frozen)


def test_readers_of_shorter_and_longer_versions_have_their_own_copies():
    lengths, changes = (1, 2, 3, 5), (lambda item: item.update(n=-1), lambda item: item["calls"].append(1))
    for changed, read, change in product(lengths, lengths, changes):
        versions = {1: freeze(MESSAGES[:1])}
        for shorter, longer in pairwise(lengths):
            added = [*make_reader_copy(versions[shorter]), *MESSAGES[shorter:longer]]
            versions[longer] = freeze(added, versions[shorter])
        for index in range(changed):
            change([*make_reader_copy(versions[changed])][index])
            reader_copy = make_reader_copy(versions[read])
            assert repr([*reader_copy]) == repr(MESSAGES[:read]), (changed, index, read)
            assert is_unchanged(reader_copy, versions[read])
            change(reader_copy[-1])
            expected = copy.deepcopy(MESSAGES[:read])
            change(expected[-1])
            assert repr(thaw(freeze(reader_copy, versions[read]))) == repr(expected)


def test_two_readers_at_once_have_their_own_copies():
    frozen = freeze(MESSAGES)
    one, other = make_reader_copy(frozen), make_reader_copy(frozen)
    for reader_copy in (one, other):
        for item in reader_copy:
            item["by"] = "me" if reader_copy is one else "you"
    assert {item["by"] for item in one} == {"me"}
    assert {item["by"] for item in other} == {"you"}


def test_threads_of_one_reader_copy_a_part_once():
    reader_copy = make_reader_copy(freeze([{"n": [number]} for number in range(200)]))
    barrier = threading.Barrier(4)

    def add() -> None:
        barrier.wait()
        for item in reader_copy:
            item["n"].append(0)

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {len(item["n"]) for item in reader_copy} == {5}


def test_objects_in_a_copy_are_copies_too():
    frozen = freeze([Point(1, ["a"]), {"at": Point(2, [])}])
    reader_copy = make_reader_copy(frozen)
    assert reader_copy == [Point(1, ["a"]), {"at": Point(2, [])}]
    assert is_unchanged(reader_copy, frozen)
    reader_copy[0].tags.append("b")
    assert not is_unchanged(reader_copy, frozen)
    assert make_reader_copy(frozen)[0] == Point(1, ["a"])
    deep = make_reader_copy(frozen)
    deep[1]["at"].x = 3
    assert thaw(freeze(deep, frozen))[1] == {"at": Point(3, [])}


def test_a_value_that_grows_to_contain_itself_is_rejected():
    def wrap(value: Any) -> None:
        for _ in range(300):
            value = freeze({"inner": make_reader_copy(value)})

    def double(value: Any) -> None:
        for _ in range(30):
            value = freeze([make_reader_copy(value), make_reader_copy(value)])

    with pytest.raises(BoardError, match="B102"):
        wrap(freeze({"n": [1]}))
    with pytest.raises(BoardError, match="B102"):
        double(freeze([{"n": [1]}]))


def test_a_copy_that_contains_itself_is_rejected():
    reader_copy = make_reader_copy(freeze(MESSAGES))
    reader_copy[0]["self"] = reader_copy
    with pytest.raises(BoardError, match="B102"):
        freeze(reader_copy)


# -- beside a naive copy ---------------------------------------------------------------------------------------------

atoms = st.sampled_from([0, 1, True, False, 1.0, 0.0, -0.0, float("nan"), "a", "", None, (1, 2), b"x"])
values = st.recursive(
    atoms,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["a", "b", "c"]), inner, max_size=3)
        | st.lists(st.dictionaries(st.sampled_from("ab"), inner, max_size=2), min_size=1, max_size=4)
        | st.tuples(inner, inner)
    ),
    max_leaves=12,
)


def containers(value: Any) -> list[Any]:
    """Return every list and dict in a value, in the order of a walk."""
    parts = value if isinstance(value, list | tuple) else value.values() if isinstance(value, dict) else ()
    own_containers = [value] if isinstance(value, list | dict) else []
    return own_containers + [container for part in parts for container in containers(part)]


def change_one(value: Any, place: int, way: int, new: Any) -> None:
    """Change one container in a value, chosen by number."""
    lists_and_dicts = containers(value)
    if not lists_and_dicts:
        return
    part = lists_and_dicts[place % len(lists_and_dicts)]
    if isinstance(part, dict):
        key = sorted(part)[way % len(part)] if part and way % 2 else "abcd"[way % 4]
        match way % 5:
            case 0 | 1:
                part[key] = new
            case 2:
                part.pop(key, None)
            case 3:
                part.update({key: new})
            case _:
                part.setdefault(key, new)
        return
    at = way % (len(part) + 1)
    match way % 7:
        case 0:
            part.append(new)
        case 1 if at < len(part):
            part[at] = new
        case 2 if at < len(part):
            del part[at]
        case 3:
            part.insert(at, new)
        case 4:
            part.reverse()
        case 5:
            part[at:] = [new]
        case _:
            part += [new]


steps = st.lists(
    st.tuples(st.sampled_from(["read", "change", "keep", "late", "write", "look"]), st.integers(0, 50),
              st.integers(0, 50), atoms | st.builds(list) | st.builds(dict)),
    max_size=12,
)  # fmt: skip


@settings(max_examples=settings.default.max_examples * 6)
@given(values, st.lists(steps, max_size=4))
def test_alternating_readers_see_what_deep_copies_would_show(value, readers):
    frozen, oracle = freeze(value), copy.deepcopy(value)
    stored: list[tuple[Any, Any]] = []
    for moves in readers:
        reader_copies, theirs = make_reader_copy(frozen), copy.deepcopy(oracle)
        for move, place, method, new in moves:
            match move:
                case "read":
                    assert repr(containers(reader_copies)) == repr(containers(theirs))
                case "look" if isinstance(reader_copies, list) and reader_copies:
                    assert repr(reader_copies[place % len(reader_copies)]) == repr(theirs[place % len(reader_copies)])
                case "change":
                    change_one(reader_copies, place, method, copy.deepcopy(new))
                    change_one(theirs, place, method, copy.deepcopy(new))
                case "keep":
                    our_containers, other = containers(reader_copies), containers(theirs)
                    if our_containers:
                        stored.append((our_containers[place % len(our_containers)], other[place % len(other)]))
                case "late" if stored:
                    held = stored[place % len(stored)]
                    change_one(held[0], 0, method, copy.deepcopy(new))
                    change_one(held[1], 0, method, copy.deepcopy(new))
                case "write" if isinstance(reader_copies, list):
                    reader_copies, theirs = [*reader_copies, copy.deepcopy(new)], [*theirs, copy.deepcopy(new)]
        if isinstance(reader_copies, list | dict | tuple):
            assert is_unchanged(reader_copies, frozen) == (repr(theirs) == repr(oracle)), (reader_copies, frozen)
        frozen, oracle = freeze(reader_copies, frozen), copy.deepcopy(theirs)
        assert repr(thaw(frozen)) == repr(oracle)
