"""Every table of a run goes where analysts take it: Parquet, Feather, SQL, pickle, text methods, sums and plots."""

from __future__ import annotations

import json
import pickle
import sqlite3
from contextlib import closing
from decimal import Decimal

import pandas as pd
import pytest
from pyarrow import feather, parquet

import agentnb as nb
from agentnb.trace.frames import NAMES
from agentnb.world.llm.base import LLMResponse, Usage

ANSWER = {"mixed": [1, "two", None, {"three": 3.5}], "n": 2**70, "pair": (1, Decimal("0.10"))}


@pytest.fixture(scope="module")
def frames():
    import networkx as nx

    graph = nx.DiGraph(name="mixed", entry="make", inputs={"word": {"default": "rain"}})
    graph.add_node("make", function=lambda board: ANSWER)
    graph.add_node("ask", kind="agent", prompt="about {{ word }}")
    graph.add_node("look", kind="tool", function=lambda word: {"found": [word, 1]}, inputs={"word": "word"})
    graph.add_edge("make", "ask")
    graph.add_edge("ask", "look")
    session = nb.Session(nb.load(graph), llm=lambda _: LLMResponse("fine", usage=Usage(3, 4, Decimal("0.01"))))
    session.step()
    session.edit({"word": {"deep": [1]}})
    session.emit("noted", {"by": ["ada"]})
    session.run()
    return session.trace.frames


@pytest.mark.parametrize("name", NAMES)
def test_parquet_and_feather_keep_every_row_and_each_value_as_json(frames, name, tmp_path):
    frame = frames[name]
    frame.to_parquet(tmp_path / "table.parquet")
    frame.to_feather(tmp_path / "table.feather")
    for table in (parquet.read_table(tmp_path / "table.parquet"), feather.read_table(tmp_path / "table.feather")):
        assert (table.column_names, table.num_rows) == (list(frame.columns), len(frame))
    values = [column for column in frame.columns if frame[column].dtype == "value"]
    back = parquet.read_table(tmp_path / "table.parquet").to_pydict()
    for column in values:
        for text, value in zip(back[column], frame[column], strict=True):
            assert (text is None) == (value is pd.NA)
            if isinstance(value, dict | list):
                assert json.loads(text) == json.loads(json.dumps(value, default=str))


@pytest.mark.parametrize("name", NAMES)
def test_a_database_takes_every_table(frames, name):
    frame = frames[name]
    with closing(sqlite3.connect(":memory:")) as connection:
        storable = frame if name != "writes" else frame[frame["key"] != "n"]  # SQLite's integers have 64 bits
        storable.to_sql(name, connection, index=False)
        back = pd.read_sql(f"SELECT * FROM {name}", connection)
    assert (list(back.columns), len(back)) == (list(frame.columns), len(storable))


@pytest.mark.parametrize("name", NAMES)
def test_every_table_can_be_pickled(frames, name):
    frame = frames[name]
    back = pickle.loads(pickle.dumps(frame))
    pd.testing.assert_frame_equal(back.astype(object), frame.astype(object))
    assert back.dtypes.equals(frame.dtypes)


@pytest.mark.parametrize("name", NAMES)
def test_columns_of_texts_are_one_dtype_with_text_methods(frames, name):
    frame = frames[name]
    for column in frame.columns:
        assert frame[column].dtype != object
        if isinstance(frame[column].dtype, pd.StringDtype):
            assert frame[column].str.upper().isna().equals(frame[column].isna())


def test_costs_and_seconds_are_summed_and_plotted(frames):
    sums = frames.calls.groupby("node", observed=True)[["cost_usd", "seconds", "tokens_in"]].sum()
    assert sums.loc["ask", "cost_usd"] == 0.01
    assert sums.select_dtypes("number").shape == sums.shape
    (exact,) = frames.calls["cost_usd_exact"].dropna()
    assert exact == Decimal("0.01")


def test_tables_of_two_runs_join_without_losing_their_dtypes(frames):
    for name in NAMES:
        joined = pd.concat([frames[name], frames[name]], ignore_index=True)
        assert joined.dtypes.equals(frames[name].dtypes)
