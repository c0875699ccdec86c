"""The data dictionary names every column with its dtype, and the page in the docs is made of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentnb.trace import SimulationTrace
from agentnb.trace.data_dictionary import DATA_DICTIONARY, render_data_dictionary
from agentnb.trace.frames import NAMES, Frames
from tests.trace.random_runs import go, started
from tests.trace.test_table_exports import frames  # noqa: F401  (a fixture)

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "data_dictionary.md"


@pytest.mark.parametrize("name", NAMES)
def test_each_column_is_described_with_its_dtype(frames, name):  # noqa: F811
    described = {column: row.dtype for column, row in DATA_DICTIONARY[name].items()}
    assert {column: str(dtype) for column, dtype in frames[name].dtypes.items()} == described
    empty = SimulationTrace.of(go(started(), 0)).frames[name]
    assert {column: str(dtype) for column, dtype in empty.dtypes.items()} == described


@pytest.mark.parametrize("name", NAMES)
def test_numeric_measures_have_units(name):
    for column, row in DATA_DICTIONARY[name].items():
        assert row.meaning
        measures = ("seconds", "tokens", "cost", "timestamp", "time")
        assert bool(row.unit) == (column.startswith(measures) or column.endswith("seconds") or column == "depth")


def test_the_page_of_the_data_dictionary_is_generated(request):
    about = {name: getattr(Frames, name).__doc__.split(":")[0].split("\n")[0].rstrip(".") + "." for name in NAMES}
    page = render_data_dictionary(about)
    if request.config.getoption("--update-golden"):
        PAGE.write_text(page, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page, "run: pytest tests/trace/test_data_dictionary.py --update-golden"
