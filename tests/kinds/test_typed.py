from __future__ import annotations

from dataclasses import make_dataclass
from typing import TypedDict

import pytest

from agentnb.board.revived import Record
from agentnb.errors import ExecutionError
from agentnb.kinds.typed import Asked, SystemContext, key_of, keys_of, members, stored_under, type_name


class Outer:
    class Inner:
        pass


class Words(TypedDict):
    text: str


def test_a_key_is_the_module_and_the_qualified_name():
    assert key_of(Outer.Inner) == f"{__name__}.Outer.Inner"
    assert (key_of(str), key_of(dict[str, list[int]])) == ("builtins.str", "builtins.dict[str, list[int]]")
    assert (type_name(Outer.Inner), type_name(list[Outer])) == ("Outer.Inner", "list[Outer]")


def test_types_of_one_name_get_keys_of_their_own_in_their_order():
    first, second, third = (make_dataclass("Same", ["n"]) for _ in range(3))
    assert list(keys_of([first, second, first, third]).values()) == ["types.Same", "types.Same~2", "types.Same~3"]


def test_a_value_is_stored_under_the_declared_type_that_it_is_of_else_under_its_own():
    keys = {bool: "b", int: "i", list[int]: "l", Words: "w"}
    yes = True
    assert stored_under(yes, (int,), keys) == "i"
    assert stored_under(yes, (), keys) == "b"
    assert stored_under([1], (list[int],), keys) == "l"
    assert stored_under({"text": ""}, (Words,), keys) == "w"
    assert stored_under(2.5, (int, Words), keys) == "builtins.float"
    assert stored_under(Record("dataclass", {"type": "shop:Order", "v": {}}), (int,), keys) == "shop.Order"


def test_a_union_is_its_members_without_none():
    assert members(int | None) == (int,)
    assert members(int | str) == (int, str)
    assert members(int) == (int,)


def test_a_question_is_asked_of_any_board_and_until_turns_its_answer_round():
    asked = Asked("done", int, "n", lambda n: n > 2)
    until = Asked("done", int, "n", lambda n: n > 2, until=True)
    assert [asked({"n": 3}), until({"n": 3}), until({"n": 1})] == [True, False, True]
    assert (asked.text, until.text, asked.reads) == ("done(int)", "not done(int)", (("n",),))


def test_a_context_that_is_made_by_hand_has_resources_and_outputs():
    ctx = SystemContext(3, "text").insert(2.5).insert_output([1]).insert_output(7, kind=str)
    assert (ctx.resource(int), ctx.resource(str), ctx.resource(float)) == (3, "text", 2.5)
    assert (ctx.output(list), ctx.output(str), ctx.output(int), ctx.output(int, 0)) == ([1], 7, None, 0)
    with pytest.raises(ExecutionError, match="X451"):
        ctx.resource(dict)


def test_a_closed_context_takes_nothing_more():
    ctx = SystemContext()
    ctx.close()
    with pytest.raises(ExecutionError, match="X455"):
        ctx.insert(3)
