from __future__ import annotations

import pandas as pd
import pytest
from pandas.tests.extension import base

from agentnb.trace.columns import to_objects
from agentnb.trace.value_column import ValueArray, ValueDtype


class Words:
    def __init__(self, values):
        self.held = values

    def __len__(self):
        return len(self.held)

    def get_value(self, row):
        return self.held[row]

    def get_values(self):
        return to_objects(self.held)


def lazily(*values):
    return ValueArray(Words(list(values)))


# -- what pandas itself asks of a column type -------------------------------------------------------------------------


@pytest.fixture
def dtype():
    return ValueDtype()


@pytest.fixture
def data():
    return lazily(*(f"word {number:03d}" for number in range(10 if pd.__version__ >= "3" else 100)))


@pytest.fixture
def data_missing():
    return lazily(pd.NA, "b")


@pytest.fixture
def data_for_sorting():
    return lazily("b", "c", "a")


@pytest.fixture
def data_missing_for_sorting():
    return lazily("b", pd.NA, "a")


@pytest.fixture
def data_for_grouping():
    return lazily("b", "b", pd.NA, pd.NA, "a", "a", "b", "c")


@pytest.fixture
def data_for_twos():
    pytest.skip("the values are no numbers")


@pytest.fixture
def data_repeated(data):
    return lambda count: (data for _ in range(count))


@pytest.fixture
def na_value():
    return pd.NA


@pytest.fixture
def na_cmp():
    return lambda one, other: one is pd.NA and other is pd.NA


@pytest.fixture(params=[True, False])
def box_in_series(request):
    return request.param


@pytest.fixture(params=[True, False])
def as_series(request):
    return request.param


@pytest.fixture(params=[True, False])
def as_frame(request):
    return request.param


@pytest.fixture(params=[True, False])
def as_array(request):
    return request.param


@pytest.fixture(params=["ffill", "bfill"])
def fillna_method(request):
    return request.param


@pytest.fixture(params=["data", "data_missing"])
def all_data(request):
    return request.getfixturevalue(request.param)


@pytest.fixture(params=[lambda x: 1, lambda x: [1] * len(x), lambda x: pd.Series([1] * len(x)), lambda x: x])
def groupby_apply_op(request):
    return request.param


@pytest.fixture
def invalid_scalar():
    pytest.skip("a value may be anything")


@pytest.fixture
def using_nan_is_na():
    return True


class TestCasting(base.BaseCastingTests):
    pass


class TestConstructors(base.BaseConstructorsTests):
    pass


class TestDtype(base.BaseDtypeTests):
    pass


class TestGetitem(base.BaseGetitemTests):
    pass


class TestGroupby(base.BaseGroupbyTests):
    pass


class TestIndex(base.BaseIndexTests):
    pass


class TestInterface(base.BaseInterfaceTests):
    pass


class TestMissing(base.BaseMissingTests):
    pass


class TestPrinting(base.BasePrintingTests):
    pass


class TestReshaping(base.BaseReshapingTests):
    pass


class TestSetitem(base.BaseSetitemTests):
    pass
