"""Text of values: `safe_repr` and `safe_str` never raise, are bounded, and mask secrets."""

from __future__ import annotations

import enum
from collections import defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from agentnb.board.values import freeze
from agentnb.secrets import hide
from agentnb.text import get_class_name, safe_repr, safe_str

RAISES = [RuntimeError, SystemExit, GeneratorExit, RecursionError, MemoryError]


def hostile(error, *bases):
    """Return an object of which everything raises, but for what Python itself needs to make one."""

    def refuse(self, *_, **__):
        raise error

    names = ("repr", "str", "eq", "hash", "len", "iter", "getattribute", "bool", "format", "contains", "getitem", "lt")
    body = {f"__{name}__": refuse for name in names} | {"__class__": property(refuse), "items": refuse}
    kind = type("Hostile", bases or (object,), body)
    return kind(*([{"a": 1}] if bases == (dict,) else [[1]] if bases in ((list,), (tuple,), (set,)) else []))


@pytest.mark.parametrize("error", RAISES)
@pytest.mark.parametrize("bases", [(), (dict,), (list,), (tuple,), (set,), (str,), (int,), (bytes,), (Exception,)])
def test_errors_of_an_object_are_contained(error, bases):
    value = hostile(error, *bases)
    around = [value, (value,), {"key": value}]
    assert all(isinstance(text, str) for text in (safe_repr(value), safe_str(value), safe_repr(around, 300)))
    assert safe_repr(freeze([1, 2])) == "[1, 2]"


def test_a_value_that_cannot_be_formatted_is_named():
    assert safe_repr(hostile(SystemExit)) == "<Hostile that cannot be shown: SystemExit>"
    assert safe_repr([1, hostile(ValueError)]) == "[1, <Hostile that cannot be shown: ValueError>]"


def test_an_interrupt_is_not_suppressed():
    with pytest.raises(KeyboardInterrupt):
        safe_repr(hostile(KeyboardInterrupt))


def test_recursive_values_end_and_shared_parts_cost_nothing():
    inside = []
    inside += [inside, inside]
    assert safe_repr(inside) == "[…, …]"
    shared = []
    for _ in range(200):
        shared = [shared, shared]
    assert len(safe_repr(shared, 1000)) <= 1000
    loop = {}
    loop["self"] = (loop, [loop])
    assert safe_repr(loop) == "{'self': (…, […])}"


def test_only_the_shown_part_of_a_huge_collection_is_read():
    seen = []

    class Counted:
        def __repr__(self):
            seen.append(self)
            return "c"

    assert safe_repr([Counted()] * 1_000_000) == f"[{'c, ' * 20}"[:59] + "…"
    assert len(seen) < 100
    assert safe_repr([""] * 1_000_000, 1_000_000).endswith("'', …")


def test_the_repr_of_an_object_is_truncated_before_it_is_processed():
    class Loud:
        def __repr__(self):
            return "x" * 50_000_000

    assert safe_repr(Loud(), 20) == "x" * 19 + "…"
    assert safe_str(Loud(), 20) == "x" * 19 + "…"


@dataclass
class Login:
    user: str
    password: str
    seen: int = field(default=0, repr=False)


class Model(BaseModel):
    user: str
    api_key: str


class Color(enum.Enum):
    RED = 1


class Pair(NamedTuple):
    name: str
    token: str


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Login("ann", "hunter"), "Login(user='ann', password='********')"),
        (freeze(Login("ann", "hunter")), "Login(user='ann', password='********', seen=0)"),
        (Model(user="ann", api_key="k"), "Model(user='ann', api_key='********')"),
        (Pair("a", "b"), "Pair(name='a', token='********')"), (Color.RED, "<Color.RED: 1>"),
        ((1,), "(1,)"), ((), "()"), (set(), "set()"), (frozenset(), "frozenset()"), (frozenset({1}), "frozenset({1})"),
        ({1}, "{1}"), ({}, "{}"), (defaultdict(list, a=[1]), "{'a': [1]}"), ({(1, 2): "x"}, "{(1, 2): 'x'}"),
        (b"ab", "b'ab'"), (True, "True"), (None, "None"), (1.5, "1.5"), (10**20, "100000000000000000000"),
        ("it's", '"it\'s"'),
    ],
)  # fmt: skip
def test_a_value_is_formatted_like_python(value, text):
    assert safe_repr(value, 100) == text


@given(st.recursive(st.none() | st.integers() | st.text() | st.floats(), lambda parts: st.lists(parts) |
                    st.dictionaries(st.integers() | st.just("name"), parts) | st.tuples(parts, parts)),
       st.integers(1, 200))  # fmt: skip
def test_plain_values_have_their_repr_within_the_limit(value, limit):
    text, full_repr = safe_repr(value, limit), repr(value)
    assert len(text) <= limit
    assert text == full_repr or (text.endswith("…") and "…" not in text[:-1]) or "':" in full_repr or len(text) == limit
    if "…" not in text and "********" not in text:
        assert text == full_repr


def test_a_huge_integer_is_shown_by_its_first_digits():
    assert safe_repr(-(1 << 20000)) == "-0x80000000… (20001 bits)"
    assert safe_repr({"n": 1 << 20000}) == "{'n': 0x80000000… (20001 bits)}"


def test_a_secret_is_not_cut_in_two_by_the_limit():
    hide("first line of a key\nsecond line of a key\n" + "0123456789abcdef" * 200)
    secret = "first line of a key\nsecond line of a key\n" + "0123456789abcdef" * 200
    for limit in range(5, 120):
        for text in (safe_repr({"note": f"it is {secret} there"}, limit), safe_str(f"it is {secret} there", limit)):
            assert "first" not in text
            assert "second" not in text


def test_a_class_is_named_despite_its_metaclass():
    class Meta(type):
        def __getattribute__(cls, name):
            raise RuntimeError(name)

    metaclassed = Meta("Odd", (), {})
    assert get_class_name(type.__call__(metaclassed)) == "Odd"
    assert safe_repr(type.__call__(metaclassed)).startswith("<")
