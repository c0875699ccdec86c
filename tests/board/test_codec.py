from __future__ import annotations

import ast
import json
import sys
import uuid
import warnings
from collections import namedtuple
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, Flag, IntEnum
from fractions import Fraction
from pathlib import Path, PurePosixPath, PureWindowsPath
from types import ModuleType
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentnb.board import codec
from agentnb.board.codec import Record, decode, encode, is_known
from agentnb.board.values import ABSENT, freeze, thaw
from agentnb.errors import StoreError
from agentnb.secrets import MASK, Masked, is_secret
from agentnb.text import WIDE

Pair = namedtuple("Pair", "left right")  # noqa: PYI024  (the untyped one is what is tested)


@dataclass
class Order:
    number: int
    lines: list[str] = field(default_factory=list)


@dataclass
class Client:
    api_key: str


@dataclass(frozen=True, slots=True)
class Point:
    x: int
    y: object = None


class Color(Enum):
    RED = "r"


class Level(IntEnum):
    HIGH = 3


class Rights(Flag):
    READ = 1
    WRITE = 2


class Person(pydantic.BaseModel):
    model_config = {"extra": "allow"}
    name: str
    tags: list[str] = []


class Odd:
    def __repr__(self):
        return "Odd!"


def there_and_back(value):
    return decode(json.loads(json.dumps(encode(value))))


def alike(one, other):
    if one is other or type(one) is not type(other):
        return one is other
    if isinstance(one, pd.DataFrame | pd.Series):
        return one.equals(other) and str(getattr(one, "dtypes", "")) == str(getattr(other, "dtypes", ""))
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and one.shape == other.shape and one.tolist() == other.tolist()
    if isinstance(one, dict):
        return list(one) == list(other) and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(alike, one, other))
    return (
        repr(one) == repr(other) if isinstance(one, float | complex) else bool(one == other) or repr(one) == repr(other)
    )


VALUES = [
    *(None, True, 1, 10**30, 1.5, -0.0, float("inf"), float("-inf"), float("nan"), "text", "\ud800", b"\x00\xff"),
    *(
        (),
        (1, [2, (3,)]),
        {1, 2},
        frozenset("ab"),
        {"a": {"b": [1]}},
        {1: 2, (1, 2): 3, None: 4},
        {"$": 1},
        {"$": "tuple"},
    ),
    *(Decimal("1.20"), Fraction(1, 3), complex(1, -2), range(1, 9, 2), uuid.UUID(int=7), Level.HIGH, Color.RED),
    *(Rights.READ, Rights.READ | Rights.WRITE, Pair(1, [2]), Order(1, ["a"]), Point(1, {"a": (1,)})),
    *(datetime(2020, 1, 1), datetime(2020, 1, 1, tzinfo=UTC), date(2020, 2, 3), time(1, 2, 3), timedelta(-1, 2, 3)),  # noqa: DTZ001
    datetime(2020, 10, 25, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"), fold=1),
    *(time(1, tzinfo=ZoneInfo("Europe/Berlin")), timezone(timedelta(hours=2), "summer"), UTC),
    *(Path("a/b"), PurePosixPath("/x"), PureWindowsPath("c:/x"), Person(name="Ann", tags=["x"], age=3)),
    *(np.float32(1.5), np.int64(3), np.datetime64("2020-01-01"), np.arange(6).reshape(2, 3), np.array([], dtype=">i2")),
    *(np.array(["a", "bb"]), np.array([1, "a", None], dtype=object), pd.NA, pd.NaT, pd.Timedelta("1D")),
    *(pd.Timestamp("2020-01-01T00:00:00.123456789"), pd.Timestamp("2020-06-01", tz="Europe/Berlin")),
    pd.Series([1.5, None], index=["a", "b"], name="q"),
    pd.Series([1, 2], index=pd.MultiIndex.from_tuples([(1, "a"), (2, "b")], names=["n", None])),
    pd.DataFrame(
        {
            "text": ["x", None],
            "category": pd.Categorical(["u", None], ["v", "u"], ordered=True),
            "number": pd.array([1, None], dtype="Int64"),
            "flag": pd.array([True, None], dtype="boolean"),
            "string": pd.array(["a", None], dtype="string"),
            "time": pd.to_datetime(["2020-01-01", None]).tz_localize("Europe/Berlin"),
            "anything": [{"a": 1}, (1, 2)],
        }
    ),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_every_value_survives_a_round_trip(value):
    assert alike(there_and_back(value), value)
    assert alike(there_and_back(freeze(value)), thaw(freeze(value)))


ATOMS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary()
    | st.decimals(allow_nan=False) | st.fractions() | st.uuids() | st.complex_numbers(allow_nan=False)
    | st.datetimes() | st.datetimes(timezones=st.timezones()) | st.dates() | st.times() | st.timedeltas()
    | st.sampled_from([Color.RED, Level.HIGH, Rights.READ, ABSENT])
)  # fmt: skip
HASHABLE = st.integers() | st.text() | st.tuples(st.integers(), st.text())
ANY = st.recursive(
    ATOMS,
    lambda inner: (
        st.lists(inner)
        | st.tuples(inner, inner)
        | st.dictionaries(HASHABLE.filter(lambda key: not is_secret(key)), inner)
        | st.dictionaries(st.sampled_from(["$", "v", "a", "x.y"]), inner)
        | st.sets(HASHABLE)
        | st.builds(Point, st.integers(), inner)
    ),
    max_leaves=20,
)


@given(ANY)
def test_any_value_survives(value):
    assert there_and_back(value) == value
    assert thaw(freeze(there_and_back(freeze(value)))) == value


@given(ANY)
def test_equal_texts_for_equal_values(value):
    assert encode(there_and_back(value)) == json.loads(json.dumps(encode(value)))


@pytest.mark.parametrize("plain", ["ann", 3, 1.5, b"x", (1, 2), frozenset({1}), {1}, [1], {"ann": 1}])
def test_a_subclass_of_a_plain_type_comes_back_as_the_plain_one(plain):
    special = type("Special", (type(plain),), {})(plain)
    restored = there_and_back(special)
    assert (type(restored), restored) == (type(plain), plain)
    if plain.__hash__:
        assert there_and_back({special: 1}) == {plain: 1}


@pytest.mark.parametrize("value", [Odd(), ast.Constant(1)], ids=["any object", "an object with _fields"])
def test_a_value_without_a_codec_is_rejected_with_the_remedy(value):
    with pytest.raises(StoreError) as caught:
        encode([value])
    assert caught.value.problems[0].code == "L401"
    assert f"register({type(value).__name__}" in caught.value.problems[0].do


def test_in_lenient_mode_it_is_stored_as_text_and_opens_as_a_record():
    opened = there_and_back_leniently({"a": [Odd()]})
    assert isinstance(opened["a"][0], Record)
    assert "Odd!" in repr(opened["a"][0])
    assert encode(opened) == encode({"a": [Odd()]}, lenient=True)


def there_and_back_leniently(value):
    return decode(json.loads(json.dumps(encode(value, lenient=True))))


def test_a_frozen_opaque_value_is_opaque_too():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        frozen = freeze(Odd())
    assert encode(frozen, lenient=True)["$"] == "opaque"


def test_a_registered_class_survives_with_its_subclasses(monkeypatch):
    monkeypatch.setattr(codec, "_BY_TYPE", {})
    monkeypatch.setattr(codec, "_BY_NAME", {})

    class Money:
        def __init__(self, cents):
            self.cents = cents

    class Euro(Money):
        pass

    codec.register(Money, lambda money: money.cents, Money, name="money")
    assert there_and_back([Euro(5)])[0].cents == 5
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert there_and_back(freeze(Money(7))).cents == 7


@pytest.mark.parametrize(
    "document",
    [
        {"$": "from the future", "v": 1},
        {"$": "dataclass", "type": "no_such_module:Thing", "v": {"x": 1}},
        {"$": "dataclass", "type": "subprocess:Popen", "v": {"args": "ls"}},
        {"$": "dataclass", "type": f"{__name__}:Order", "v": {"unknown": 1}},
        {"$": "enum", "type": f"{__name__}:Color", "name": "GREEN", "v": "g"},
        {"$": "enum", "type": "os:system", "name": "x", "v": "ls"},
        {"$": "namedtuple", "type": f"{__name__}:Pair", "v": {"left": 1}},
        {"$": "model", "type": f"{__name__}:Order", "v": {}, "set": []},
        {"$": "registered", "type": "nobody:here", "v": 1},
        {"$": "decimal", "v": "no number"},
        {"$": "tuple"},
        {"$": ["odd"]},
    ],
    ids=str,
)
def test_an_unknown_type_opens_as_a_record_and_is_written_unchanged(document):
    opened = decode(document)
    assert isinstance(opened, Record)
    assert repr(opened).startswith("<")
    assert encode(opened) == document
    assert encode(freeze(opened)) == document


def test_a_value_that_json_cannot_represent_has_a_tag():
    huge, pair = 7**9_000, "\ud83d\ude00"
    for value in (huge, -huge, {huge: [huge]}, pair, {pair: "\ud83d"}, Fraction(huge, 5), range(huge)):
        assert there_and_back(value) == value
        assert there_and_back({"a": [value]}) == {"a": [value]}


def test_fractions_and_ranges_of_earlier_files_open():
    assert decode({"$": "fraction", "v": "1/3"}) == Fraction(1, 3)
    assert decode({"$": "range", "v": [1, 9, 2]}) == range(1, 9, 2)


@pytest.mark.parametrize("document", [{"$": "int", "v": "no hex"}, {"$": "int", "v": None}, {"$": "text", "v": "?"}])
def test_a_damaged_number_or_text_opens_as_a_record(document):
    assert isinstance(decode(document), Record)


def test_reading_imports_nothing():
    before = set(sys.modules)
    decode({"$": "dataclass", "type": "this:Zen", "v": {}})
    decode({"$": "enum", "type": "antigravity:Fly", "name": "x", "v": 1})
    assert "this" not in set(sys.modules) - before
    assert "antigravity" not in sys.modules


def test_the_attributes_of_a_lazily_importing_module_are_not_read(monkeypatch):
    lazy = ModuleType("lazy_for_a_test")
    lazy.__getattr__ = lambda name: pytest.fail("was asked")
    monkeypatch.setitem(sys.modules, "lazy_for_a_test", lazy)
    assert isinstance(decode({"$": "dataclass", "type": "lazy_for_a_test:X", "v": {}}), Record)


def test_a_dataclass_is_restored_without_running_its_code():
    @dataclass
    class Loud:
        x: int

        def __post_init__(self):
            pytest.fail("its code ran")

    Loud.__qualname__ = "Loud"
    sys.modules[__name__].Loud = Loud
    decoded = decode({"$": "dataclass", "type": f"{__name__}:Loud", "v": {"x": 1}})
    assert decoded.x == 1


def test_secrets_are_masked():
    text = json.dumps(encode({"api_key": "s3cret", "client": Client("s3cret"), "token": None}))
    assert "s3cret" not in text
    opened = decode(json.loads(text))
    assert isinstance(opened["api_key"], Masked)
    assert opened["client"].api_key == MASK
    assert opened["token"] is None


@pytest.mark.parametrize("text", [MASK, Masked("Bearer ********"), Masked("https://h/?key=********")])
def test_a_masked_text_is_restored_as_masked(text):
    back = there_and_back({"a": text})["a"]
    assert (type(back), back) == (Masked, text)


def test_a_secret_column_of_a_frame_is_masked():
    frame = pd.DataFrame({"user": ["ann"], "password": ["s3cret"]})
    assert there_and_back(frame)["password"].tolist() == [MASK]


@pytest.mark.parametrize("document", [{"$": "nope", "v": [1, {"a": [2]}]}, {"$": ["a"], "deep": [[1]]}])
def test_a_value_of_an_unknown_class_encodes_to_the_same_json(document):
    encoded = encode(freeze(decode(document)))
    assert json.loads(json.dumps(encoded)) == document


class Codecless:
    """An object whose codec is registered by a test."""


def _deep() -> object:
    value: object = []
    for _ in range(100_000):
        value = [value]
    return value


def _raise(_: object) -> object:
    raise RuntimeError("no")


@pytest.mark.parametrize("to", [lambda _: _deep(), lambda value: [value], _raise])
def test_a_codec_that_fails_or_gives_deep_values_is_a_store_error(monkeypatch, to):
    monkeypatch.setattr(codec, "_BY_TYPE", {})
    monkeypatch.setattr(codec, "_BY_NAME", {})
    codec.register(Codecless, to, _raise, "codecless")
    with pytest.raises(StoreError, match="L437"):
        encode(Codecless())
    assert encode(Codecless(), lenient=True)["$"] in ("opaque", "registered")
    assert isinstance(decode({"$": "registered", "type": "codecless", "v": 1}), Record)


class Wrapped:
    """An object whose codec, registered by a test, returns what it holds."""

    def __init__(self, held):
        self.held = held


@pytest.mark.parametrize("levels", range(1, codec.MOST_CODECS + 3))
def test_codecs_may_return_objects_with_codecs_to_some_depth(levels, monkeypatch):
    monkeypatch.setattr(codec, "_BY_TYPE", {})
    monkeypatch.setattr(codec, "_BY_NAME", {})
    codec.register(Wrapped, lambda wrapped: {"held": wrapped.held}, lambda data: Wrapped(data["held"]))
    value = "x"
    for _ in range(levels):
        value = Wrapped(value)
    for _ in range(2):  # one beside the other is no deeper
        if levels > codec.MOST_CODECS:
            with pytest.raises(StoreError, match="L437"):
                encode([value, value])
        else:
            first, second = there_and_back([value, value])
            for _ in range(levels):
                first, second = first.held, second.held
            assert (first, second) == ("x", "x")


@pytest.mark.parametrize(
    "zoned",
    [
        datetime(2020, 1, 1, tzinfo=timezone(timedelta(hours=2), "Home")),
        datetime(2020, 1, 1, tzinfo=timezone(timedelta(0), "GMT")),
        time(1, 2, tzinfo=timezone(timedelta(hours=-2, microseconds=1), "X")),
    ],
)
def test_the_name_of_a_fixed_time_zone_is_stored(zoned):
    decoded = decode(json.loads(json.dumps(encode(zoned))))
    assert (decoded, decoded.tzinfo.tzname(None)) == (zoned, zoned.tzinfo.tzname(None))


@pytest.mark.parametrize("value", [WIDE - 1, 1 - WIDE, WIDE, -WIDE, WIDE + 1, -WIDE - 1])
def test_integers_are_plain_json_as_far_as_every_reader_preserves_them(value):
    assert (encode(value) == value, encode([value]) == [value]) == ((abs(value) < WIDE,) * 2)
    assert decode(encode(value)) == value


def test_only_an_address_with_a_password_is_stored_as_masked():
    assert encode("https://example.com/a?b=1") == "https://example.com/a?b=1"
    stored = encode("https://ann:pw-4711@example.com/a")
    assert (stored["$"], "pw-4711" in stored["v"], "example.com" in stored["v"]) == ("masked", False, True)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda value: value,
        lambda value: [1, value],
        lambda value: (1, value),
        lambda value: {"a": [{"b": value}]},
        lambda value: Pair(1, value),
        lambda value: Order(1, [value]),
    ],
)
def test_a_value_is_known_if_all_parts_are(wrap):
    unknown = decode({"$": "of a later version", "v": 1})
    assert is_known(freeze(wrap("known")))
    assert is_known(freeze(wrap([1, ("a", None)])))
    assert not is_known(freeze(wrap(unknown)))
    assert not is_known(freeze(wrap([unknown])))
    assert not is_known(freeze(wrap(Masked("***"))))
