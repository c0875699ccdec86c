from __future__ import annotations

from array import array

import numpy as np
import pytest

from agentnb.trace import SimulationTrace
from agentnb.trace.columns import Columns, choose_int_type, find_firsts, find_used, mask_identical, to_array, to_objects
from tests.trace.random_runs import go, odyssey, started


def test_a_copied_column_does_not_block_the_run():
    column = array("I", [1, 2, 3])
    copied = to_array(column, 2)
    column.append(4)
    assert copied.tolist() == [1, 2]


def test_lists_remain_lists():
    objects = to_objects([[1, 2], [3, 4], None])
    assert objects.shape == (3,)
    assert objects[0] == [1, 2]
    assert to_objects([1, 2, 3], 2).tolist() == [1, 2]
    assert mask_identical([1, None, 2], None).tolist() == [False, True, False]


def test_first_occurrences_are_found_in_windows():
    numbers = np.array([3] * 5000 + [1] * 30_000 + [2])
    assert find_used(numbers, 5) == [1, 2, 3]
    assert sorted(find_firsts(numbers, [1, 2, 3])) == [0, 5000, 35_000]


@pytest.mark.parametrize(("size", "kind"), [(0, np.int8), (127, np.int8), (128, np.int16), (40_000, np.int32)])
def test_columns_have_the_smallest_sufficient_dtype(size, kind):
    assert choose_int_type(size) is kind


@pytest.mark.parametrize("seed", range(10))
def test_columns_equal_the_rows(seed):
    reading = SimulationTrace.of(odyssey(seed)).reading()
    columns = Columns(reading)
    steps = range(1, reading.tip + 1)
    assert columns.node.tolist() == [reading.activation(step).node for step in steps]
    assert columns.frame.tolist() == [reading.activation(step).frame for step in steps]
    rows = [(step, by_person) for step in steps for _, _, by_person in reading.rows(step)]
    after = columns.write_steps > 0
    assert columns.write_steps[after].tolist() == [step for step, _ in rows]
    assert columns.written_by_node[after].tolist() == [not by_person for _, by_person in rows]
    assert list(columns.inputs()) == [reading.inputs(step) for step in steps]
    assert list(columns.outputs()) == [reading.outputs(step) for step in steps]


def test_columns_are_snapshots():
    run = go(started(), 10)
    columns = Columns(SimulationTrace.of(run).reading())
    go(run, 10)
    assert columns.tip == len(columns.activations) == len(list(columns.outputs())) == 10
