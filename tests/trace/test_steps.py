from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentnb.board.values import ABSENT
from agentnb.trace import SimulationStep, SimulationTrace, StepType
from agentnb.trace.row_index import Read, Write
from agentnb.trace.steps import FIELDS
from tests.trace.random_runs import go, odyssey, started


@pytest.fixture
def trace():
    return SimulationTrace.of(go(started(), 22), run_id="r1")


def test_a_step_has_all_its_fields(trace):
    step = trace.steps[0]
    assert (step.step, step.node_id, step.kind, step.phase, step.frame) == (1, "count", "function", "run", "root")
    assert (step.type, step.status, step.depth, step.branch, step.error) == (
        StepType.TOOL_EXECUTION,
        "ok",
        0,
        None,
        None,
    )
    assert step.timestamp == datetime(2000, 1, 1, tzinfo=UTC)
    assert step.seconds == 0.0
    assert step.inputs == {"n": 0}
    assert step.outputs == {"n": 1, "log": {"n": 0}}
    assert step.reads == (Read("root", "n"),)
    assert step.writes == (Write("root", "n", "set", 0, 1), Write("root", "log", "append", ABSENT, {"n": 0}))
    assert step.snapshot == {"n": 1, "password": "s3cret", "log": [{"n": 0}]}
    assert list(step.to_dict()) == list(FIELDS)


def test_a_step_has_an_explanation(trace):
    step = trace.steps[1]
    assert (step.type, step.thought, step.inputs) == (StepType.REASONING, "n is 1", {"n": 1})
    assert step.action is step.observation is None
    assert trace.steps[0].thought is None


def test_a_composite_node_has_phases(trace):
    assert [(step.node_id, step.phase, step.frame, step.depth) for step in trace.steps[6:9]] == [
        ("inside", "enter", "root", 0),
        ("leaf", "run", "body@7", 1),
        ("inside", "leave", "root", 0),
    ]
    assert trace.steps[6].outputs == {}
    assert trace.steps[7].writes[1] == Write("body@7", "deep", "set", {"x": [3]}, {"x": [3, 1]}, in_place=True)


def test_a_failed_step_is_of_type_error(trace):
    step = trace.steps[20]
    assert (step.type, step.status) == (StepType.ERROR, "error")
    assert step.error.startswith("ValueError: seven (")
    assert step.error.endswith("random_runs.py:33)")
    assert step.outputs == {}


def test_step_types_are_lower_case_words():
    assert [kind.value for kind in StepType] == ["interaction", "system_event", "tool_execution", "reasoning", "error"]
    assert StepType.ERROR == "error"


def test_ids_of_steps_are_the_same_in_every_process(trace):
    second = SimulationTrace.of(go(started(), 2), run_id="r1")
    assert trace.steps[0].step_id == second.steps[0].step_id
    assert len({step.step_id for step in trace.steps}) == 22
    assert str(trace.steps[0].step_id) == "0e10f5a5" or trace.steps[0].step_id.version == 5


def test_steps_are_a_sequence(trace):
    assert len(trace.steps) == 22
    assert [step.step for step in trace.steps[2:5]] == [3, 4, 5]
    assert trace.steps[-1].step == 22
    assert trace.steps[::-1][0].step == 22
    assert trace.steps[2:5][1] == trace.steps[3]
    assert trace.steps[:2] == [trace.steps[0], trace.steps[1]]
    assert trace.steps[3] in trace.steps
    assert isinstance(trace.steps[0], SimulationStep)
    assert len({trace.steps[0], trace.steps[0]}) == 1
    with pytest.raises(IndexError):
        trace.steps[22]


def test_a_slice_does_not_grow():
    run = go(started(), 4)
    part = SimulationTrace.of(run).steps[:]
    go(run, 2)
    assert len(part) == 4


def test_the_repr_of_a_step_is_one_masked_line(trace):
    assert repr(trace.steps[0]) == "<step 1 'count' ok: {'n': 1, 'log': {'n': 0}}, 0 s>"
    assert repr(trace.steps[20]) == f"<step 21 'count' error: {trace.steps[20].error}, 0 s>"
    assert "enter" in repr(trace.steps[6])
    assert repr(trace.steps).endswith("... 12 more]")
    assert "s3cret" not in repr(trace.steps)


@given(st.integers(0, 10_000))
def test_iterated_steps_equal_indexed_steps(seed):
    run = odyssey(seed, acts=6)
    in_order = [(step.inputs, step.outputs) for step in SimulationTrace.of(run).steps]
    backwards = [(step.inputs, step.outputs) for step in reversed(SimulationTrace.of(run).steps)]
    assert in_order == backwards[::-1]
    frame = SimulationTrace.of(run).frames.steps
    assert [*frame.outputs] == [outputs for _, outputs in in_order]
    live = SimulationTrace.of(run)
    seen = [step.outputs for step in live.steps]
    go(run, 3)
    assert [step.outputs for step in live.steps][: len(seen)] == seen
    assert len(live) >= len(seen)
