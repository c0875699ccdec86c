"""test_ids: ids count or come from a seed, so that a run can be repeated."""

from __future__ import annotations

import random

from agentnb.ids import IDGen, new_run_id, uuid_of


def test_each_prefix_counts_for_itself():
    ids = IDGen()
    assert [ids("a"), ids("b"), ids("a")] == ["a_001", "b_001", "a_002"]
    ids.counters["a"] = 999
    assert ids("a") == "a_1000"


def test_the_id_of_a_step_is_the_same_in_every_process():
    assert uuid_of("run", 1) == uuid_of("run", 1)
    assert len({uuid_of("run", 1), uuid_of("run", 2), uuid_of("other", 1)}) == 3


def test_run_ids_from_a_seed_repeat_and_others_do_not():
    assert new_run_id(random.Random(1)) == new_run_id(random.Random(1))
    assert len({new_run_id() for _ in range(100)}) == 100


def test_run_ids_sort_by_time():
    first = new_run_id()
    assert first[:8] <= new_run_id()[:8]
    assert len(first) == 20
