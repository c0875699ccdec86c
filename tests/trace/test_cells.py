"""The cells of a run's DataFrames can be written in every format, and changed without an effect on the run."""

from __future__ import annotations

from fractions import Fraction

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import agentnb as nb

LARGE = 10**5000  # Python refuses to write its digits
AS_INDEX = pd.Index([LARGE], dtype=object)


class Hostile:
    def __init__(self) -> None:
        self.items = [1]

    def __repr__(self) -> str:
        raise RuntimeError("no repr")

    __str__ = __repr__

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no comparison")

    __hash__ = None


def make_array(*items):
    return np.fromiter(items, object, len(items))


def run(value):
    graph = nx.DiGraph()
    graph.add_node("tool", kind="tool", function="get")
    graph.add_node("copy", function=lambda key: {"copied": key}, inputs={"key": "key"})
    graph.add_edge("tool", "copy")
    session = nb.Session(nb.load(graph), tools={"get": lambda board: {"key": value}})
    session.edit({"edited": value})
    session.run()
    return session


def list_frames(session):
    return [*session.trace.frames.values(), session.trace.wide(["key", "copied"]), nb.frames([session]).writes]


@pytest.mark.parametrize(
    "value",
    [
        LARGE, -LARGE, 2**1500,
        [LARGE], (LARGE,), {LARGE}, frozenset({LARGE}), {LARGE: {"a": LARGE}}, Fraction(1, LARGE),
        make_array(LARGE, 1), make_array(Hostile(), 1), make_array([1], [2]), pd.Series([LARGE, 1], dtype=object),
        pd.DataFrame({"a": [LARGE]}, dtype=object), pd.DataFrame([[1]], columns=AS_INDEX),
        pd.DataFrame({"a": [1]}, index=AS_INDEX),
        pd.DataFrame({"a": [Hostile(), 1]}), pd.Series([[Hostile()], {"a": Hostile()}]), [pd.Series([Hostile()])],
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:.*by reference")
def test_a_cell_with_a_large_number_or_a_hostile_object_can_be_written(value, tmp_path):
    for frame in list_frames(run(value)):
        assert repr(frame)
        assert frame.to_csv()
        assert frame.to_html()
        assert frame.to_string()


def test_a_large_number_in_a_cell_is_the_number():
    session = run(LARGE)
    cell = session.trace.frames.writes["new"].iloc[-1]
    assert cell == LARGE
    assert int(str(cell), 16) == LARGE
    assert type(session.board["key"]) is int


@pytest.mark.filterwarnings("ignore:.*by reference")
def test_a_change_of_an_object_in_a_cell_of_a_cell_has_no_effect_on_the_run():
    session = run(pd.DataFrame({"a": [Hostile(), 1]}))
    for frame in list_frames(session):
        for cell in frame.astype(object).to_numpy().ravel():
            for part in cell.values() if isinstance(cell, dict) else [cell]:
                items = getattr(part.iloc[0, 0], "items", None) if isinstance(part, pd.DataFrame) else None
                if isinstance(items, list):
                    items.append(2)
    assert session.board["key"].iloc[0, 0].items == [1]
