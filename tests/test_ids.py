from __future__ import annotations

import random
import time

from agentnb.ids import IDGen, make_run_id, make_step_id


def test_ids_are_counted_per_prefix():
    ids = IDGen()
    assert [ids("event"), ids("call"), ids("event")] == ["event_001", "call_001", "event_002"]
    ids.counters["event"] = 999
    assert ids("event") == "event_1000"


def test_a_steps_id_follows_from_its_run_and_number():
    assert make_step_id("r", 1) == make_step_id("r", 1)
    assert len({make_step_id("r", 1), make_step_id("r", 2), make_step_id("s", 1)}) == 3
    assert make_step_id("r", 1).version == 5


def test_run_ids_are_new_and_sort_by_time(monkeypatch):
    moments = iter([1_000.0, 1_000.001, 5_000.0])
    monkeypatch.setattr(time, "time", lambda: next(moments))
    actual = [make_run_id() for _ in range(3)]
    assert actual == sorted(actual)
    assert {len(run_id) for run_id in actual} == {20}


def test_run_ids_of_a_seed_repeat():
    assert make_run_id(random.Random(1)) == make_run_id(random.Random(1)) != make_run_id(random.Random(2))
