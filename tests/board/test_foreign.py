from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import pydantic
import pytest

from agentnb.board import foreign


class Person(pydantic.BaseModel):
    name: str


def test_kinds_of_values_are_told_apart():
    assert foreign.is_scalar(np.int64(1))
    assert not foreign.is_scalar(1)
    assert all(map(foreign.is_array, (np.arange(2), pd.Series([1]), pd.DataFrame())))
    assert not foreign.is_array([1])
    assert foreign.model_fields(Person(name="a")) == ["name"]
    assert foreign.model_fields("a") is None
    assert foreign.is_model(Person)
    assert not foreign.is_model(dict)
    assert foreign.is_scalar_of_pandas(pd.NaT)
    assert not foreign.is_scalar_of_pandas(None)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (np.array([1.0, np.nan]), np.array([1.0, np.nan]), True),
        (np.array([1]), np.array([1.0]), False),
        (np.array([1, 2]), np.array([[1, 2]]), False),
        (np.array(["a", None], dtype=object), np.array(["a", None], dtype=object), True),
        (pd.Series([1, None]), pd.Series([1, None]), True),
        (pd.Series([1]), pd.DataFrame({"a": [1]}), False),
    ],
)
def test_arrays_are_compared_by_values_and_type(one, other, same):
    assert foreign.same_array(one, other) is same


def test_no_library_is_imported_to_look_at_a_value():
    program = (
        "import sys\nfrom agentnb.board import foreign\nfrom agentnb.board.codec import encode\n"
        "foreign.is_array(1), foreign.is_scalar(1), foreign.model_fields(1), encode({'a': [1, (2,)]})\n"
        "print(*sorted({'numpy', 'pandas', 'pydantic'} & set(sys.modules)))"
    )
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == ""


@pytest.mark.parametrize("value", [pd.arrays.SparseArray([0, 1]), pd.arrays.IntervalArray.from_breaks([0, 1, 2])])
def test_a_column_type_that_cannot_be_kept_exactly_is_not_kept(value):
    assert foreign.dump_array(pd.Series(value), lambda item, name=None: item) is None


def test_a_structured_array_is_not_kept():
    assert foreign.dump_array(np.zeros(1, dtype=[("a", "i4")]), lambda item, name=None: item) is None
