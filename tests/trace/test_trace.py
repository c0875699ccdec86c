from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentnb.board.values import ABSENT
from agentnb.engine.core.time_travel import goto, start_branch
from agentnb.errors import ExecutionError
from agentnb.trace import SimulationTrace
from tests.trace.random_runs import go, odyssey, started


def test_a_trace_is_live_up_to_the_tip_of_its_branch():
    run = go(started(), 10)
    trace = SimulationTrace.of(lambda: run)
    steps = trace.steps
    assert len(trace) == len(steps) == 10
    go(run, 2)
    assert len(steps) == 12
    goto(run, 5)
    assert len(trace) == 12
    old = trace.steps[6]
    start_branch(run)
    go(run, 1)
    assert len(trace) == 6
    assert old.step == 7
    assert old.snapshot["n"] == 3
    run = started()
    assert len(trace) == 0


@given(st.integers(0, 10_000), st.data())
def test_past_states_equal_those_of_the_run(seed, data):
    run = odyssey(seed)
    trace = SimulationTrace.of(run)
    for _ in range(3):
        step = data.draw(st.integers(0, len(trace)))
        goto(run, step)
        state = trace.state_at(step)
        assert list(state) == list(run.root.scope.data)
        assert trace.diff(step, step) == {}
        assert len(trace) >= step
        if step:
            assert trace.steps[step - 1].snapshot == state


def test_differences_of_two_states_are_listed():
    trace = SimulationTrace.of(go(started(), 3))
    assert trace.diff(0, 1) == {"n": (0, 1), "log": (ABSENT, [{"n": 0}])}
    assert trace.diff(1, 0) == {"n": (1, 0), "log": ([{"n": 0}], ABSENT)}
    assert trace.diff(1, 3) == {"n": (1, 2), "log.1": (ABSENT, {"n": 1})}


def test_a_state_is_a_separate_copy():
    trace = SimulationTrace.of(go(started(), 3))
    trace.state_at(3)["log"].clear()
    assert len(trace.state_at(3)["log"]) == 2


@pytest.mark.parametrize("step", [-1, 4])
def test_a_missing_step_is_a_problem(step):
    with pytest.raises(ExecutionError, match="L405"):
        SimulationTrace.of(go(started(), 3)).state_at(step)


def test_a_missing_scope_is_a_problem():
    with pytest.raises(ExecutionError, match=r"L406[\s\S]*did you mean 'root'"):
        SimulationTrace.of(go(started(), 3)).wide("n", scope="rot")


def test_a_trace_has_an_outcome_and_a_text_form():
    outcome = {"status": "exhausted", "api_key": "s3cret"}
    trace = SimulationTrace.of(
        go(started(), 3), outcome=lambda: outcome, run_id="r1", metadata={"recipe_kind": "Recipe"}
    )
    assert trace.outcome == outcome
    assert (trace.agent_id, trace.agent_version, trace.score) == ("counter", "v2", None)
    assert trace.trace_id == SimulationTrace.of(started(), run_id="r1").trace_id
    assert repr(trace) == "<SimulationTrace of 'counter': 3 steps, exhausted, api_key '********'>"
    assert SimulationTrace.of(started()).outcome is None
    assert bool(SimulationTrace.of(started()))


def test_the_html_repr_of_a_trace_is_small_and_escaped():
    run = go(started(note="<script>"), 30)
    html = SimulationTrace.of(run, agent_id="<b>", outcome=lambda: {"status": "paused"})._repr_html_()
    assert html.count("<tr") == 11
    assert "20 more steps" in html
    assert "paused" in html
    assert "<script>" not in html
    assert "<b><b>" not in html
    assert "s3cret" not in html


def test_a_trace_can_be_inspected_without_pandas():
    program = (
        "import sys; sys.path.insert(0, '.')\nfrom tests.trace.random_runs import *\n"
        "from agentnb.trace import SimulationTrace\n"
        "trace = SimulationTrace.of(go(started(), 9)); repr(trace); trace.steps[3].to_dict(); trace.diff(0, 3)\n"
        "print(*sorted({'numpy', 'pandas'} & set(sys.modules)))"
    )
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == ""
