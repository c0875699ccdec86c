"""What a session accepts into a store comes back equal; what cannot come back is refused at the write."""

from __future__ import annotations

import itertools
import tempfile
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import agentnb as nb
from tests.store.conftest import POSTGRES, SQLITE

HUGE = 7**9_000  # 7,606 digits: Python neither reads nor writes so many
PAIR = "\ud83d\ude00"  # two characters, which JSON takes for the one that they encode


@dataclass
class Link:
    next: Any = None


def nested(levels: int, wrap: Any) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = wrap(value)
    return value


EXTREMES: dict[str, Any] = {
    "huge": HUGE,
    "negative": -HUGE,
    "inside": {"a": [HUGE, (HUGE,), {HUGE}, frozenset([HUGE])]},
    "key": {HUGE: 1, "a": 2},
    "fraction": Fraction(HUGE, 11),
    "range": range(-HUGE, HUGE, 3),
    "wide": [2**63, -(2**64), 2**2048, 2**2048 - 1, -(2**2048)],
    "decimal": [Decimal("1E+999999999"), Decimal(HUGE), Decimal("-0E-7"), Decimal("NaN"), Decimal("sNaN12")],
    "float": [float("nan"), float("inf"), float("-inf"), -0.0, 5e-324, 1.7976931348623157e308],
    "complex": [complex("nan+infj"), complex(-0.0, -0.0)],
    "nan as a key": {float("inf"): 1, (1.5, None): 2},
    "time": [
        timedelta.max,
        timedelta.min,
        datetime.fromisoformat("0001-01-01"),
        datetime.fromisoformat("9999-12-31T23:59:59.999999"),
        date.min,
        time.max,
        timezone.max,
    ],
    "zone": datetime(2020, 1, 1, tzinfo=timezone(timedelta(hours=-23, seconds=1))),
    "halves": ["\ud800", PAIR, PAIR[::-1], "\\" + PAIR, {PAIR: {"\udc80": PAIR}}],
    "nul": ["a\0b", {"\0": "\0"}, b"\0\xff"],
    "text": ["\x7f\u2028\ufeff\uffff", "😀", "x" * 300_000, {"k" * 50_000: 1}],
    "tags": [{"$": "int", "v": "ff"}, {"$": 1}, {"$": "same"}, {"$": "grown", "v": [1]}],
    "mappings": nested(199, lambda value: {"a": value}),
    "numbered": nested(199, lambda value: {1: value}),
    "lists": nested(199, lambda value: [value]),
    "tuples": nested(199, lambda value: (value,)),
    "sets": nested(150, lambda value: frozenset([value])),
    "objects": nested(90, Link),
    "numpy": [np.int64(-(2**63)), np.uint64(2**64 - 1), np.longdouble("1.5"), np.array([HUGE, None, "a", [1]], object)],
    "empty": [np.empty((0, 3), object), np.zeros((2, 0)), {}, [], (), set()],
}


def recipe_for(value: Any) -> Any:
    """Return a recipe whose nodes write a value, read it, and grow a list by it."""
    graph = nx.DiGraph(name="values")
    graph.add_node("write", function=lambda: {"value": value, "items": [1]}, inputs={})
    graph.add_node("change", function=lambda items: {"items": [*items, value], "last": 1}, inputs={"items": "items"})
    graph.add_edge("write", "change")
    return nb.load(graph)


def exact(value: Any) -> Any:
    """Return what tells a value from every other one, floats by their sign and text by its code units."""
    if isinstance(value, dict):
        return dict, [(exact(key), exact(item)) for key, item in value.items()]
    if isinstance(value, list | tuple):
        return type(value), [exact(item) for item in value]
    if isinstance(value, set | frozenset):
        return type(value), sorted([exact(item) for item in value], key=str) if len(value) > 1 else [*map(exact, value)]
    if isinstance(value, Link):
        return Link, exact(value.next)
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, exact(value.tolist())
    if isinstance(value, int | Fraction | range | np.number):
        return type(value), value
    return type(value), repr(value)


def check_value(where: str, run_id: str, value: Any) -> None:
    """Run a recipe that writes a value with a store, and check that the run reads back as it was."""
    session = nb.Session(recipe_for(value), store=where, run_id=run_id)
    session.run()
    session.close()
    assert session.status == "finished", session.error
    opened = nb.open(where, run_id)
    assert opened.status == "finished"
    assert [exact(opened.trace.state_at(step)) for step in range(3)] == [
        exact(session.trace.state_at(step)) for step in range(3)
    ]
    opened.close()


@pytest.mark.parametrize("store", [SQLITE, POSTGRES])
def test_extreme_values_survive_a_store(store, tmp_path, request):
    url = request.getfixturevalue("postgres_url") if store == "postgres" else str(tmp_path / "runs.db")
    for name, value in EXTREMES.items():
        check_value(url, name, value)


@pytest.mark.parametrize("name", EXTREMES)
def test_extreme_values_survive_a_trace_file(name, tmp_path):
    session = nb.Session(recipe_for(EXTREMES[name]))
    session.run()
    session.trace.to_json(tmp_path / "trace.json")
    read = nb.SimulationTrace.read(tmp_path / "trace.json")
    assert exact(read.state_at(2)) == exact(session.trace.state_at(2))


@pytest.mark.parametrize("name", [name for name in EXTREMES if name not in ("decimal", "text")])
def test_extreme_values_are_shown(name):
    session = nb.Session(recipe_for(EXTREMES[name]))
    session.run()
    for shown in (
        session.board,
        list(session.trace.steps),
        *session.trace.frames.values(),
        session.trace.wide("value"),
    ):
        assert len(repr(shown)) < 100_000


ATOMS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-5, 5).map(lambda exponent: exponent * HUGE),
    st.floats(),
    st.decimals(allow_nan=True),
    st.fractions(),
    st.complex_numbers(),
    st.binary(max_size=8),
    st.text(st.characters(), max_size=8),
    st.text(st.sampled_from('a\0\\"$\ud83d\ude00\u2028'), max_size=6),
    st.datetimes(timezones=st.none() | st.timezones()),
    st.dates(),
    st.times(),
    st.timedeltas(),
    st.uuids(),
)
KEYS = st.one_of(st.text(st.sampled_from("ab$.\ud83d\ude00\0"), max_size=4), st.integers(), st.booleans(), st.none())
VALUES = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(KEYS, inner, max_size=4),
        st.lists(inner, max_size=3).map(tuple),
        st.builds(Link, inner),
    ),
    max_leaves=8,
)
_numbers = itertools.count()


@given(VALUES)
def test_any_value_survives_a_store(value):
    with tempfile.TemporaryDirectory() as folder:
        check_value(str(Path(folder) / "runs.db"), f"run {next(_numbers)}", value)


NAMES = st.text(st.sampled_from("ab$.\ud83d\ude00\0 "), min_size=1, max_size=4)


@given(st.dictionaries(NAMES, ATOMS, max_size=3))
def test_keys_of_the_board_survive_a_store(inputs):
    graph = nx.DiGraph(name="keys")
    graph.add_node("write", function=lambda: {"more": 1, **inputs}, inputs={})
    with tempfile.TemporaryDirectory() as folder:
        url = str(Path(folder) / "runs.db")
        session = nb.Session(nb.load(graph), store=url, run_id="keys")
        session.run()
        before = session.status, exact(session.trace.state_at(len(session.trace)))
        session.close()
        opened = nb.open(url, "keys")
        assert (opened.status, exact(opened.trace.state_at(len(opened.trace)))) == before
        opened.close()


@pytest.mark.parametrize(
    "wrap", [lambda value: {1: value}, lambda value: frozenset([value]), Link, lambda value: (value,)]
)
def test_a_value_nested_too_deep_is_rejected_at_the_write(wrap, tmp_path):
    session = nb.Session(recipe_for(nested(600, wrap)), store=tmp_path / "runs.db", run_id="deep")
    session.run()
    assert session.status == "failed"
    session.close()
    assert nb.open(tmp_path / "runs.db", "deep").status == "failed"


def test_a_huge_seed_survives_a_store(tmp_path):
    graph = nx.DiGraph(name="seed")
    graph.add_node("only", function=lambda: {"a": 1}, inputs={})
    nb.Session(nb.load(graph), store=tmp_path / "runs.db", run_id="seed", seed=HUGE).run()
    assert nb.open(tmp_path / "runs.db", "seed")._parts.run.seed == HUGE
