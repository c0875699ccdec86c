"""The list of the runs in a store: filters, pages, and arguments that make no sense."""

from __future__ import annotations

import gc
import sqlite3
from contextlib import closing
from datetime import UTC, date, datetime, timedelta, timezone

import networkx as nx
import pandas as pd
import pytest

import agentnb as nb
from agentnb.errors import StoreError
from agentnb.store import MemoryLog


def counting(name="count"):
    graph = nx.DiGraph(name=name)
    graph.add_node("add", function=lambda n: {"n": n + 1}, inputs={"n": "n"})
    return nb.load(graph)


def store(place, names=("a", "b", "c")):
    for name in names:
        with closing(
            nb.Session(counting(f"recipe {name}"), {"n": 0}, store=place, run_id=name, name=f"run {name}")
        ) as run:
            if name != "c":
                run.run()
            else:
                run.step()
    return place


@pytest.fixture(params=["memory", "file"])
def where(request, tmp_path):
    return store(MemoryLog() if request.param == "memory" else tmp_path / "runs.db")


def ids(frame):
    return frame["run_id"].tolist()


def test_each_filter_leaves_the_runs_that_match(where):
    frame = nb.runs(where)
    assert ids(frame) == ["c", "b", "a"]
    assert ids(nb.runs(where, recipe="recipe b")) == ["b"]
    assert ids(nb.runs(where, fingerprint=frame["fingerprint"][2])) == ["a"]
    assert ids(nb.runs(where, status="finished")) == ids(frame[frame["status"] == "finished"])
    assert ids(nb.runs(where, contains="run a")) == ["a"]
    assert ids(nb.runs(where, contains="c")) == ["c"]
    assert ids(nb.runs(where, limit=2)) == ["c", "b"]
    assert ids(nb.runs(where, limit=2, after="b")) == ["a"]
    assert nb.runs(where, after="a").empty
    assert list(nb.runs(where, after="a").columns) == list(frame.columns)


def test_times_are_those_of_the_column_created_however_they_are_written(where):
    frame = nb.runs(where)
    middle = frame["created"][1]
    for time in (middle, middle.to_pydatetime(), middle.isoformat(), middle.tz_localize(None).isoformat(),
                 middle.to_pydatetime().astimezone(timezone(timedelta(hours=5)))):  # fmt: skip
        assert ids(nb.runs(where, since=time)) == ["c", "b"]
        assert ids(nb.runs(where, until=time)) == ["b", "a"]
    today = datetime.now(UTC).date()
    days = (today - timedelta(days=1), today + timedelta(days=1))
    assert ids(nb.runs(where, since=days[0], until=days[1])) == ["c", "b", "a"]
    assert nb.runs(where, until=str(days[0])).empty
    assert len(nb.runs(where, until=date(9999, 12, 31))) == 3


def test_a_date_includes_the_whole_day(where):
    created = nb.runs(where)["created"]
    assert set(ids(nb.runs(where, since=created[2].date(), until=created[0].date()))) == {"a", "b", "c"}


@pytest.mark.parametrize(
    ("words", "code", "hint"),
    [
        ({"status": "finnished"}, "L546", "finished"),
        ({"status": ""}, "L546", "interrupted"),
        ({"since": "yesterday"}, "L547", "2026-01-31"),
        ({"until": 17}, "L547", "int"),
        ({"since": pd.NaT}, "L547", "not a time"),
        ({"since": "2026-02-01", "until": "2026-01-01"}, "L547", "swap"),
        ({"limit": 0}, "L548", "positive integer"),
        ({"limit": True}, "L548", "positive integer"),
        ({"after": "bb"}, "L413", "its runs are"),
    ],
    ids=str,
)
def test_an_invalid_argument_is_a_problem(where, words, code, hint):
    with pytest.raises(StoreError, match=code) as caught:
        nb.runs(where, **words)
    assert hint in str(caught.value)


def test_a_store_without_indexes_is_listed_and_gets_them_when_it_is_written(tmp_path):
    place = store(tmp_path / "runs.db")
    gc.collect()  # the sessions are gone, and with them the open connection
    with closing(sqlite3.connect(place)) as connection, connection:
        names = [
            name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE name LIKE 'agentnb_runs_by%'")
        ]
        for name in names:
            connection.execute(f"DROP INDEX {name}")
    assert names
    before = place.read_bytes()
    assert ids(nb.runs(place, recipe="recipe a")) == ["a"]
    assert place.read_bytes() == before
    store(place, ("d",))
    with closing(sqlite3.connect(place)) as connection:
        actual = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'index'")}
    assert actual >= {*names}
    assert ids(nb.runs(place, limit=2)) == ["d", "c"]


def test_a_page_of_a_file_is_found_by_an_index(tmp_path):
    from agentnb.store.tables import build_listing

    place = store(tmp_path / "runs.db")
    for filters in ({"limit"}, {"limit", "after"}, {"limit", "recipe"}, {"limit", "fingerprint"}, {"limit", "parent"},
                    {"limit", "since", "until"}, {"limit", "status"}, {"limit", "status", "after"},
                    {"limit", "status", "recipe"}, {"limit", "contains"}):  # fmt: skip
        names = dict.fromkeys((*filters, "after_created", "after_number"))
        with closing(sqlite3.connect(place)) as connection:
            plan = [
                row[3]
                for row in connection.execute(
                    f"EXPLAIN QUERY PLAN {build_listing('sqlite', frozenset(filters))}", names
                )
            ]
        assert "agentnb_runs_by" in plan[0], (filters, plan)
        assert not any("TEMP B-TREE" in line for line in plan), (filters, plan)
