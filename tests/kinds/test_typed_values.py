from __future__ import annotations

import asyncio
import typing
from dataclasses import dataclass
from typing import TypedDict

import numpy as np
import pytest

import agentnb as nb
from agentnb.board.decoders import Record
from agentnb.dialects.polaris import Graph, GraphExecutor, Out
from agentnb.errors import ExecutionError, with_article
from agentnb.kinds.typed_values import (
    SystemContext,
    TypedCondition,
    find_key,
    get_key,
    get_keys,
    get_type_name,
    is_of,
    list_members,
)


class Outer:
    class Inner:
        pass


class Words(TypedDict):
    text: str


def test_a_key_is_the_module_and_the_qualified_name():
    assert get_key(Outer.Inner) == f"{__name__}.Outer.Inner"
    assert (get_key(str), get_key(dict[str, list[int]])) == ("builtins.str", "builtins.dict[str, list[int]]")
    assert (get_type_name(Outer.Inner), get_type_name(list[Outer])) == ("Outer.Inner", "list[Outer]")


def test_types_with_one_name_get_numbered_keys_in_order():
    first, second, third = (type("Same", (), {"__module__": "types"}) for _ in range(3))
    assert list(get_keys([first, second, first, third]).values()) == ["types.Same", "types.Same~2", "types.Same~3"]


def test_a_value_is_stored_under_its_declared_type_or_else_its_own():
    keys = {bool: "b", int: "i", list[int]: "l", Words: "w"}
    yes = True
    assert find_key(yes, (int,), keys) == "i"
    assert find_key(yes, (), keys) == "b"
    assert find_key([1], (list[int],), keys) == "l"
    assert find_key({"text": ""}, (Words,), keys) == "w"
    assert find_key(2.5, (int, Words), keys) == "builtins.float"
    assert find_key(Record("dataclass", {"type": "shop:Order", "v": {}}), (int,), keys) == "shop.Order"


def test_a_union_is_its_members_except_none():
    assert list_members(int | None) == (int,)
    assert list_members(int | str) == (int, str)
    assert list_members(int) == (int,)


def test_a_predicate_is_evaluated_on_any_board_and_until_negates_it():
    condition = TypedCondition("done", int, "n", lambda n: n > 2)
    until = TypedCondition("done", int, "n", lambda n: n > 2, until=True)
    assert [condition({"n": 3}), until({"n": 3}), until({"n": 1})] == [True, False, True]
    assert (condition.text, until.text, condition.reads) == ("done(int)", "not done(int)", (("n",),))


def test_a_manually_created_context_has_resources_and_outputs():
    ctx = SystemContext(3, "text").insert(2.5).insert_output([1]).insert_output(7, kind=str)
    assert (ctx.resource(int), ctx.resource(str), ctx.resource(float)) == (3, "text", 2.5)
    assert (ctx.output(list), ctx.output(str), ctx.output(int), ctx.output(int, 0)) == ([1], 7, None, 0)
    with pytest.raises(ExecutionError, match="X451"):
        ctx.resource(dict)


def test_a_closed_context_accepts_nothing():
    ctx = SystemContext()
    ctx.close()
    with pytest.raises(ExecutionError, match="X455"):
        ctx.insert(3)


class Row(typing.TypedDict):
    n: int


class Sized(typing.Protocol):
    def size(self) -> int: ...


@dataclass
class Base: ...


@dataclass
class Child(Base): ...


Number = typing.NewType("Number", int)


@pytest.mark.parametrize(
    ("value", "kind", "fits"),
    [
        *(
            (1, int, True),
            (True, int, True),
            (1, bool, False),
            (1, float, True),
            (1.5, int, False),
            (True, float, False),
        ),
        *((1, complex, True), (np.int64(1), int, True), (np.float32(1), float, True), ("1", int, False)),
        *((np.int64(1), np.int64, True), (np.int64(1), np.number, True), (np.int64(1), np.int32, False)),
        *(
            (np.bool_(1), np.bool_, True),
            (np.str_("a"), np.str_, True),
            (np.datetime64(1, "s"), np.datetime64, True),
        ),
        *((Child(), Base, True), (Base(), Child, False), (1, Number, True), ("1", Number, False)),
        *(({"n": 1}, Row, True), ([], Row, False), ([1], list[str], True), ((1,), list[int], False)),
        *(
            (1, int | str, True),
            (1.5, int | str, False),
            ("a", typing.Literal["a", "b"], True),
            ("c", typing.Literal["a"], False),
        ),
        *(
            (1, Sized, True),
            (1, typing.TypeVar("T"), True),
            (1, typing.Any, True),
            (len, typing.Callable[[int], int], True),
        ),
        *((1, typing.Annotated[int, "m"], True), ("1", typing.Annotated[int, "m"], False)),
    ],
)
def test_annotations_are_resolved(value, kind, fits):
    assert is_of(value, kind) is fits


@pytest.mark.parametrize(
    ("declared", "returned", "code"),
    [
        *(
            (int, "1", "X472"),
            (Base, {"a": 1}, "X472"),
            (list[int], (1,), "X472"),
            (int | None, "1", "X472"),
            (None, 5, "X472"),
        ),
        *((int, 1, None), (Base, Child(), None), (int | None, None, None), (int, None, None), (float, 1, None)),
        (typing.Any, "x", None),
    ],
)
def test_a_system_that_returns_another_type_than_it_declares_fails(declared, returned, code):
    def system():
        return returned

    system.__annotations__["return"] = declared
    for kind in (system, later_of(system)):
        session = nb.Session(nb.load(Graph().add_system(kind)))
        session.run()
        assert (session.error.code if session.error else None) == code
        if code:
            assert (session.status, dict(session.board)) == ("failed", {})
            assert f"returned {with_article(type(returned).__name__)}, but declares" in session.error.what


def later_of(function):
    async def system():
        return function()

    system.__annotations__["return"] = function.__annotations__["return"]
    return system


def test_the_failure_of_another_type_goes_to_the_error_handler():
    def system() -> int:
        return "one"

    graph = Graph()
    graph.add_error_handler(graph.add_system_node(system), lambda g: g.add_system(lambda: 2.5))
    assert asyncio.run(GraphExecutor().execute(graph)).output(float) == 2.5


def test_an_int_is_stored_as_the_float_that_is_declared():
    def half() -> float:
        return 1

    def use(number: Out[float]) -> str:
        return str(number)

    assert asyncio.run(GraphExecutor().execute(Graph().add_system(half).add_system(use))).output(str) == "1"


@pytest.mark.parametrize(("returned", "kind"), [(True, bool), (1, int), (1.5, float)])
def test_of_several_declared_types_that_of_the_value_comes_first(returned, kind):
    def measured() -> float | int | bool:
        return returned

    result = asyncio.run(GraphExecutor().execute(Graph().add_system(measured)))
    assert [each for each in (float, int, bool) if result.has_output(each)] == [kind]


def test_a_node_is_not_named_as_the_source_of_its_own_input():
    def refine(draft: Out[str]) -> str:
        return draft

    graph = Graph().add_system(refine).add_system(lambda: 1)
    with pytest.raises(ExecutionError) as caught:
        asyncio.run(GraphExecutor().execute(graph))
    problem = caught.value.problems[0]
    assert (problem.code, problem.do) == ("X450", "add a system that returns one")
    assert "it could come from" not in problem.why
