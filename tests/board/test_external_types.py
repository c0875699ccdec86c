from __future__ import annotations

import subprocess
import sys
from decimal import Decimal
from itertools import product

import networkx as nx
import numpy as np
import pandas as pd
import pydantic
import pytest
from dateutil import tz

import agentnb as nb
from agentnb.board import external_types
from agentnb.board.codec import Record, decode, encode


class Person(pydantic.BaseModel):
    name: str


def test_kinds_of_values_are_distinguished():
    assert external_types.is_scalar(np.int64(1))
    assert not external_types.is_scalar(1)
    assert all(map(external_types.is_array, (np.arange(2), pd.Series([1]), pd.DataFrame())))
    assert not external_types.is_array([1])
    assert external_types.is_model(Person)
    assert not external_types.is_model(dict)
    assert external_types.is_scalar_of_pandas(pd.NaT)
    assert not external_types.is_scalar_of_pandas(None)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (np.array([1.0, np.nan]), np.array([1.0, np.nan]), True),
        (np.array([1]), np.array([1.0]), False),
        (np.array([1, 2]), np.array([[1, 2]]), False),
        (np.zeros((2, 3)), np.zeros((3, 2)), False),
        (np.zeros((3, 2)), np.zeros((2, 3)), False),
        (np.array([None, "a"]), np.array([None]), False),
        (np.array([None]), np.array([None, "a"]), False),
        (pd.Series([1]), pd.Series([1, 2]), False),
        (pd.Series([1, 2]), pd.Series([1]), False),
        (pd.DataFrame({"a": [1]}), pd.DataFrame({"b": [1]}), False),
        (np.array(["a", None], dtype=object), np.array(["a", None], dtype=object), True),
        (np.array(["a", 10**30], dtype=object), np.array(["a", 10**30 + 1], dtype=object), False),
        (np.array(["a", 1], dtype=object), np.array(["a", True], dtype=object), False),
        (np.array(["a", (1,)], dtype=object), np.array(["a", (2,)], dtype=object), False),
        (pd.Series([1, None]), pd.Series([1, None]), True),
        (pd.Series([1]), pd.DataFrame({"a": [1]}), False),
        (pd.Series([0.0]), pd.Series([-0.0]), False),
        (pd.Series([1, "a"]), pd.Series([True, "a"]), False),
        (pd.Series([np.nan, "a"], dtype=object), pd.Series([None, "a"], dtype=object), False),
        (pd.Series([[1], {"a": (1,)}]), pd.Series([[1], {"a": (1,)}]), True),
        (pd.Series([[1], {"a": (1,)}]), pd.Series([[1], {"a": (True,)}]), False),
        (pd.Series([Decimal("1.0"), None]), pd.Series([Decimal("1.00"), None]), False),
        (pd.Series([1, None], dtype="Float64"), pd.Series([1, None], dtype="Float64"), True),
        (pd.DataFrame({"a": [1.5], "b": ["x"], "c": [1]}), pd.DataFrame({"a": [1.5], "b": ["x"], "c": [1]}), True),
        (pd.DataFrame({"a": [1.5], "b": [0.0]}), pd.DataFrame({"a": [1.5], "b": [-0.0]}), False),
    ],
)
def test_arrays_are_compared_by_values_and_type(one, other, same):
    assert external_types.are_same_arrays(one, other) is same


def rename(data):
    data.name = "other"


def rename_index(data):
    data.index.name = "other"


def describe(data):
    data.attrs["unit"] = "m"


def forbid_duplicates(data):
    data.flags.allows_duplicate_labels = False


def forget_frequency(data):
    data.index.freq = None


def index_by_number(data):
    data.index = pd.Index([*range(len(data))])


def rename_columns(data):
    data.columns.name = "other"


DAYS = pd.date_range("2024-10-26", periods=2, tz="Europe/Berlin")


@pytest.mark.parametrize(
    ("make", "change"),
    [
        (lambda: pd.Series([1, 2], name="n"), rename),
        (lambda: pd.Series([1, 2]), rename_index),
        (lambda: pd.Series([1, 2]), index_by_number),
        (lambda: pd.Series([1, 2]), describe),
        (lambda: pd.Series([1, 2]), forbid_duplicates),
        (lambda: pd.Series(["a", None], dtype=pd.StringDtype("python")), rename),
        (lambda: pd.Series([1, 2], index=DAYS), forget_frequency),
        (lambda: pd.DataFrame({"a": [1, 2]}), rename_index),
        (lambda: pd.DataFrame({"a": [1, 2]}), rename_columns),
        (lambda: pd.DataFrame({"a": [1, 2]}), describe),
        (lambda: pd.DataFrame({"a": [1, 2]}), forbid_duplicates),
    ],
)
def test_a_change_of_names_or_attributes_is_a_change(make, change, tmp_path):
    expected, graph = make(), nx.DiGraph()
    change(expected)
    graph.add_node("change", function=change, inputs={"data": "data"})
    graph.add_node("return", function=lambda data: {"data": data}, inputs={"data": "data"})
    graph.add_edge("change", "return")
    session = nb.Session(nb.load(graph), {"data": make()}, store=tmp_path / "runs.db", run_id="r")
    session.run()
    assert session.replay().ok
    session.close()
    reopened = nb.open(tmp_path / "runs.db", "r", recipe=nb.load(graph))
    assert reopened.replay().ok
    for data in (session.board["data"], reopened.board["data"]):
        if isinstance(data, pd.DataFrame):
            pd.testing.assert_frame_equal(data, expected, check_exact=True, check_freq=True)
        else:
            pd.testing.assert_series_equal(data, expected, check_exact=True, check_freq=True)
        assert data.attrs == expected.attrs
        assert type(data.index) is type(expected.index)
    reopened.close()


def test_no_library_is_imported_to_look_at_a_value():
    program = (
        "import sys\nfrom agentnb.board import external_types\nfrom agentnb.board.codec import encode\n"
        "external_types.is_array(1), external_types.is_scalar(1), external_types.is_model(int)\n"
        "encode({'a': [1, (2,)]})\n"
        "print(*sorted({'numpy', 'pandas', 'pydantic'} & set(sys.modules)))"
    )
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == ""


@pytest.mark.parametrize("value", [pd.arrays.SparseArray([0, 1]), pd.arrays.IntervalArray.from_breaks([0, 1, 2])])
def test_a_column_type_that_cannot_be_stored_exactly_is_not_stored(value):
    assert external_types.dump_array(pd.Series(value), lambda item, name=None: item) is None


@pytest.mark.parametrize(
    "value",
    [
        np.zeros(1, dtype=[("a", "i4")]), np.ma.array([1, 2], mask=[False, True]), np.array([[1]]).view(np.matrix),
        pd.Series(pd.date_range("2024-01-01", periods=2, tz=tz.tzoffset("Home", 3600))),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_an_array_that_would_be_restored_as_another_one_is_not_stored(value):
    assert external_types.dump_array(value, lambda item, name=None: item) is None


@pytest.mark.parametrize(
    ("year", "zone"),
    [*product([-5, 1, 2024, 9999, 12000], [None, "UTC"]), (2024, "Europe/Berlin"), (9998, "Europe/Berlin")],
)
def test_a_timestamp_of_any_year_survives_a_round_trip(year, zone):
    moment = pd.Timestamp(np.datetime64(year - 1970, "Y").astype("M8[s]")).tz_localize("UTC" if zone else None)
    moment = moment.tz_convert(zone) if zone else moment
    decoded = decode(encode(moment))
    assert (type(decoded), decoded, decoded.unit, decoded.tz) == (pd.Timestamp, moment, "s", moment.tz)


def test_a_timestamp_in_a_zone_without_a_name_keeps_its_offset():
    moment = pd.Timestamp("2024-07-01", tz=tz.tzoffset("Home", 3600))
    assert decode(encode(moment)).isoformat() == moment.isoformat()


@pytest.mark.parametrize(
    "document",
    [
        {"type": "array", "v": {"secret": 10**12}},
        {"type": "series", "index": {"range": [0, 10**9, 1], "name": None}, "name": None, "v": {"secret": 10**9}},
        {"type": "array", "v": {"shape": [10**12], "items": []}},
        {"type": "array", "v": {"shape": [2], "dtype": "<U500000000", "items": ["a", "b"]}},
    ],
)
def test_sizes_in_a_file_are_bounded(document):
    assert isinstance(decode({"$": "array", **document}), Record)


@pytest.mark.parametrize("count", [0, 2, 3, 4, None])
def test_a_masked_column_is_read_only_with_its_number_of_rows(count):
    series = {"type": "series", "index": {"range": [0, 3, 1], "name": None}, "name": None, "v": {"secret": count}}
    assert isinstance(decode({"$": "array", **series}), pd.Series if count == 3 else Record)


@pytest.mark.parametrize("value", [np.float32(1.5), np.array(1.5), np.array([1.5]), np.array([["a"]]), np.str_("a")])
def test_a_scalar_and_an_array_survive_a_round_trip(value):
    decoded = decode(encode(value))
    assert type(decoded) is type(value)
    assert (decoded.shape, decoded.dtype) == (value.shape, value.dtype)
    assert np.array_equal(decoded, value)


@pytest.mark.parametrize(
    "index",
    [
        pd.RangeIndex(3, 9, 2, name="n"),
        pd.Index(["a", "b", "c"], name="n"),
        pd.MultiIndex.from_tuples([("a", 1), ("b", 2), ("c", 3)], names=["x", "y"]),
        pd.DatetimeIndex(["2020-01-01", "2020-01-02", "2020-01-03"], tz="Europe/Berlin"),
        pd.date_range("2024-10-26", periods=3, tz="Europe/Berlin"),
        pd.timedelta_range("1h", periods=3, freq="90min"),
        pd.CategoricalIndex(["a", "b", "a"], categories=["b", "a"], ordered=True),
    ],
    ids=lambda index: type(index).__name__,
)
def test_an_index_survives_a_round_trip(index):
    series = pd.Series([1.5, None, 3.0], index=index, name="s")
    decoded = decode(encode(series))
    pd.testing.assert_series_equal(decoded, series, check_exact=True, check_freq=True)
    frame = pd.DataFrame({"a": [1, 2, 3], "b": pd.array([1, None, 3], dtype="Int64")}, index=index)
    pd.testing.assert_frame_equal(decode(encode(frame)), frame, check_exact=True)


def test_only_the_cells_of_a_secret_column_are_masked():
    frame = pd.DataFrame({"n": [1, 2], "token": ["a", None], "text": ["x", "y"]})
    masked = external_types.mask_array(frame, lambda item, name=None: "***" if name == "token" and item else item)
    assert masked["token"].tolist()[0] == "***"
    assert masked["n"].tolist() == [1, 2]
    assert masked["text"].tolist() == ["x", "y"]
    assert frame["token"].tolist()[0] == "a"


def load(document):
    return decode({"$": "array", **document})


def masked_frame(rows, columns):
    labels = [f"password{number}" for number in range(columns)]
    return encode(pd.DataFrame({label: ["pw"] * rows for label in labels} | {"n": range(rows)}))


@pytest.mark.parametrize(
    ("rows", "columns", "is_loaded"),
    [(6, 2, True), (12, 1, True), (1, 12, True), (13, 1, False), (1, 13, False), (5, 3, False), (0, 20, True)],
)
def test_a_file_may_ask_for_so_many_masked_cells(rows, columns, is_loaded, monkeypatch):
    monkeypatch.setattr(external_types, "LARGEST_SECRET", 12)
    loaded = decode(masked_frame(rows, columns))
    assert isinstance(loaded, pd.DataFrame if is_loaded else Record)
    if is_loaded:
        assert loaded.shape == (rows, columns + 1)
        assert loaded.iloc[:, :-1].isin(["********"]).all().all()
    series = {"type": "series", "index": {"range": [0, rows, 1], "name": None}, "name": None, "v": {"secret": rows}}
    assert isinstance(load(series), pd.Series if rows <= 12 else Record)


@pytest.mark.parametrize(("width", "is_loaded"), [(25, True), (26, False), (1, True)])
def test_the_strings_in_a_file_may_be_so_much_shorter_than_their_type(width, is_loaded, monkeypatch):
    monkeypatch.setattr(external_types, "LARGEST_TEXTS", 300)
    document = {"type": "array", "v": {"shape": [3], "dtype": f"<U{width}", "items": ["", "", ""]}}
    assert isinstance(load(document), np.ndarray if is_loaded else Record)
    monkeypatch.setattr(external_types, "LARGEST_TEXTS", 0)
    document["v"]["items"] = ["a"] * 3  # 4 bytes a character; up to 100 times the characters are accepted
    assert isinstance(load(document), np.ndarray if is_loaded else Record)


@pytest.mark.parametrize("rows", [0, 2, 3, 4])
def test_secret_rows_are_found_in_frames_that_are_small_enough_to_be_settings(rows, monkeypatch):
    monkeypatch.setattr(external_types, "MOST_LABELS", 3)
    index = ["password", "host", "token", "port"][:rows]
    frame = pd.DataFrame({"value": [f"v{number}" for number in range(rows)], "api_key": ["k"] * rows}, index=index)
    expected = [("api_key", ["k"] * rows)]
    if rows <= 3:
        expected += [(label, [f"v{at}", "k"]) for at, label in enumerate(index) if label in ("password", "token")]
    assert list(external_types.iter_secret_columns(frame)) == expected
    series = pd.Series([f"v{number}" for number in range(rows)], index=index, name="secret", dtype=object)
    expected = [("secret", series.tolist())]
    if rows <= 3:
        expected += [(label, [f"v{at}"]) for at, label in enumerate(index) if label in ("password", "token")]
    assert list(external_types.iter_secret_columns(series)) == expected


@pytest.mark.parametrize(
    "make",
    [
        lambda cell: np.array([[1, cell], [None, "a"]], dtype=object),
        lambda cell: np.array([[1, cell], [None, "a"]], dtype=object).T,
        lambda cell: pd.Series([1, cell, None], index=["x", "y", "z"]),
        lambda cell: pd.DataFrame({"n": [1, 2], "o": [None, cell], "p": [cell, 1]}, index=["x", "y"]),
        lambda cell: pd.DataFrame([[cell, cell]], columns=["same", "same"]),
    ],
)
def test_a_copy_of_an_array_shares_no_object_in_its_cells(make):
    cell = {"a": [1]}
    copied = external_types.copy_array(make(cell), lambda item: {"a": [*item["a"]]} if item is cell else item)
    assert repr(copied) == repr(make(cell))
    cell["a"].append(2)
    assert repr(copied) == repr(make({"a": [1]}))
