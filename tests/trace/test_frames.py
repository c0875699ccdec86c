from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentnb.board.masking import to_display
from agentnb.board.values import ABSENT, freeze
from agentnb.engine.core.history import Call, Event
from agentnb.secrets import hide
from agentnb.trace import SimulationTrace
from agentnb.trace.export import parse_trace_text, to_json_text
from agentnb.trace.frames import NAMES, make_table
from tests.session.small_sessions import graph, session
from tests.trace.random_runs import counter, go, node, odyssey, started

COLUMNS = {
    "steps": "step node kind phase frame depth branch type status timestamp seconds inputs outputs error",
    "writes": "step node frame scope key op old new in_place changed paths",
    "reads": "step node scope key",
    "edges": "step source target kind condition value",
    "calls": "step node call kind name provider model attempt backoff_seconds arguments result finish_reason "
    "error seconds tokens_in tokens_out cost_usd cost_usd_exact",
    "interventions": "step action target old new actor time",
    "events": "seq step id type actor cause time payload",
}


def out(value):
    return pd.NA if value is ABSENT else to_display(freeze(value))


def text(rows):
    return [[repr(cell) for cell in row] for row in rows]


@pytest.mark.parametrize("steps", [0, 1, 60])
def test_every_table_has_its_columns_and_types(steps):
    frames = SimulationTrace.of(go(started(), steps)).frames
    assert list(frames) == list(NAMES)
    for name, frame in frames.items():
        assert list(frame.columns) == COLUMNS[name].split()
        assert frame.index.equals(pd.RangeIndex(len(frame)))
    for column in ("node", "kind", "phase", "frame", "type", "status"):
        assert isinstance(frames.steps[column].dtype, pd.CategoricalDtype)
    assert isinstance(frames.writes["key"].dtype, pd.CategoricalDtype)
    assert str(frames.steps["timestamp"].dtype) == "datetime64[ns, UTC]"
    assert str(frames.events["step"].dtype) == str(frames.steps["branch"].dtype) == "Int64"
    assert frames.steps["node"].dtype == frames.reads["node"].dtype == frames.edges["source"].dtype


@given(st.integers(0, 10_000))
def test_tables_of_any_run_equal_its_steps(seed):
    trace = SimulationTrace.of(odyssey(seed))
    steps, frames = list(trace.steps), trace.frames
    naive = [
        [s.step, s.node_id, s.kind, s.phase, s.frame, s.depth, s.branch, s.type.value, s.status, s.seconds, s.error]
        for s in steps
    ]
    columns = ["step", "node", "kind", "phase", "frame", "depth", "branch", "type", "status", "seconds", "error"]
    frame = frames.steps[columns].astype(object)
    assert frame.where(frame.notna(), None).to_numpy().tolist() == naive
    assert frames.steps.inputs.tolist() == [to_display(freeze(step.inputs)) for step in steps]
    assert frames.steps.outputs.tolist() == [to_display(freeze(step.outputs)) for step in steps]
    rows = [(s.step, w.scope, w.key, w.op, w.in_place) for s in steps for w in s.writes]
    after = frames.writes[frames.writes.step > 0]
    assert list(zip(after.step, after.scope, after.key, after.op, after.in_place, strict=True)) == rows
    values = [
        (out(w.old), out(w.new)) for s in steps for w in s.writes if "password" not in w.key and "api_key" not in w.key
    ]
    open_ = after[~after.key.isin(["password", "api_key"])]
    assert text(zip(open_.old, open_.new, strict=True)) == text(values)
    reads = [(s.step, s.node_id, r.scope, r.key) for s in steps for r in s.reads]
    assert list(frames.reads.itertuples(index=False, name=None)) == reads


@given(st.integers(0, 10_000))
def test_tables_built_separately_and_together_are_equal(seed):
    steps = SimulationTrace.of(odyssey(seed)).frames.steps
    for name in ("inputs", "outputs"):
        alone = [steps[name].iloc[row] for row in range(len(steps))]
        assert alone == [dict(row) for row in steps[name].array.get_storage().source.get_values()]


@given(st.integers(0, 10_000))
def test_wide_has_the_values_after_each_step(seed):
    trace = SimulationTrace.of(odyssey(seed))
    wide = trace.wide(["n", "m.a", "log.0.n", "nothing"])
    states = [trace.state_at(step) for step in range(1, len(trace) + 1)]
    assert wide["step"].tolist() == list(range(1, len(trace) + 1))
    assert text([wide["n"]]) == text([[state.get("n", pd.NA) for state in states]])
    assert text([wide["m.a"]]) == text([[state.get("m", {}).get("a", pd.NA) for state in states]])
    assert text([wide["log.0.n"]]) == text([[log[0]["n"] if (log := state.get("log")) else pd.NA for state in states]])
    assert wide["nothing"].isna().all()


def test_wide_reads_through_an_inner_scope():
    trace = SimulationTrace.of(go(started(), 9))
    wide = trace.wide(["n", "password"], scope="body@7")
    assert wide["n"].tolist()[6:] == [3, 4, 4]
    assert set(wide["password"]) == {"********"}
    assert trace.wide("n")["n"].tolist()[6:] == [3, 3, 3]


def test_edges_name_the_condition_and_its_value():
    edges = SimulationTrace.of(go(started(), 22)).frames.edges.set_index("step")
    assert edges.loc[2, ["source", "target", "kind", "value"]].tolist() == ["route", "count", "route", 1]
    assert edges.loc[9, ["kind", "condition", "value"]].tolist() == ["conditional", "n < 1000", True]
    assert edges.loc[21, ["target", "kind"]].tolist() == ["fix", "error"]
    assert edges.loc[1, "value"] is pd.NA
    assert [value is pd.NA for value in edges.condition] == [not isinstance(value, str) for value in edges.condition]
    assert edges.loc[1, "condition"] is pd.NA


@pytest.mark.parametrize("rows", [[pd.NA, "a"], [pd.NA], ["a", None], [pd.NA, 1.5], [True, pd.NA], []])
def test_absent_values_are_na_and_none_remains_none(rows):
    table = make_table([{"any": value, "count": 1} for value in rows], {"any": object, "count": "Int64"})
    assert [type(value) for value in table["any"]] == [type(value) for value in rows]
    assert table["any"].dtype == object


def test_secrets_are_masked_by_name_and_by_value(none_hidden):
    run = go(started(greeting="hello s3cr3t-4711", none=None, token=None), 30)
    assert "s3cret" not in " ".join(frame.astype(str).to_string() for frame in SimulationTrace.of(run).frames.values())
    assert "4711" in SimulationTrace.of(run).frames.writes.astype(str).to_string()
    hide("s3cr3t-4711")
    frames = SimulationTrace.of(run).frames
    assert "4711" not in " ".join(frame.astype(str).to_string() for frame in frames.values())
    new = frames.writes.set_index("key").new
    assert new["none"] is None
    assert new["token"] is None
    assert new["greeting"] == "hello ********"


def test_none_remains_none_and_absent_values_are_na():
    run = started(counter(), a=None, b="text", c=2**70)
    writes = SimulationTrace.of(run).frames.writes
    assert writes.new.dtype == writes.old.dtype == "value"
    assert writes.new.tolist() == [0, "********", None, "text", 2**70]
    assert all(value is pd.NA for value in writes.old)


def test_a_person_is_not_a_node():
    from agentnb.engine.control import interventions

    run = go(started(), 3)
    interventions.edit(run, {"n": 5, "gone": ABSENT})
    frames = SimulationTrace.of(run).frames
    last = frames.writes.iloc[-1]
    assert (last.step, last.key, last.new) == (3, "n", 5)
    assert pd.isna(last.node)
    assert frames.interventions.action.tolist() == ["edit", "edit"]
    assert frames.steps.outputs.iloc[-1] == {"n": 2, "log": {"n": 1}}


def test_frames_do_not_change_while_the_run_continues():
    run = go(started(), 10)
    trace = SimulationTrace.of(run)
    early = trace.frames
    go(run, 10)
    assert len(early.steps) == len(early.steps.outputs.tolist()) == 10
    assert len(trace.frames.steps) == 20
    assert trace.frames is trace.frames


@pytest.mark.parametrize("name", NAMES)
def test_changes_to_a_table_do_not_affect_the_next_access(name):
    trace = SimulationTrace.of(go(started(), 10))
    fresh = trace.frames[name].copy(deep=True)
    table = trace.frames[name]
    table["more"] = 1
    table.index.name = "row"
    del table[table.columns[0]]
    table.columns = [*table.columns[:-1], "last"]
    pd.testing.assert_frame_equal(trace.frames[name], fresh)


def test_changes_to_cells_do_not_affect_the_next_access():
    trace = SimulationTrace.of(go(started(), 10))
    first = trace.to_frame().outputs.iloc[0]
    table = trace.to_frame()
    table.loc[0, "seconds"] = 99.0
    table.loc[0, "error"] = "mine"
    table["outputs"] = [{"mine": 1}, *table.outputs[1:]]
    inside = trace.to_frame()
    inside.loc[0, "outputs"] = "mine"
    table.loc[:, "step"] = 0
    writes = trace.frames.writes
    writes.loc[:, "step"] = 77
    second = trace.to_frame()
    assert second.step.tolist() == list(range(1, 11))
    assert second.seconds[0] != 99.0
    assert second.error[0] is pd.NA
    assert second.outputs[0] == first
    assert 77 not in trace.frames.writes.step.tolist()
    assert (table.outputs[0], inside.outputs[0]) == ({"mine": 1}, "mine")


def test_pandas_verbs_work_on_dict_columns():
    steps = SimulationTrace.of(go(started(), 30)).frames.steps
    assert steps.sort_values("step", ascending=False).inputs.iloc[0] == steps.inputs.iloc[-1]
    assert (
        steps.merge(steps[["step", "outputs"]], on="step", suffixes=("", "_again")).outputs_again.tolist()
        == steps.outputs.tolist()
    )
    assert pd.concat([steps, steps]).outputs.tolist() == steps.outputs.tolist() * 2
    assert steps.outputs.apply(len).sum() == sum(map(len, steps.outputs))
    assert steps.groupby("node", observed=True).outputs.first()["count"] == {"n": 1, "log": {"n": 0}}
    assert json.loads(steps[["outputs"]].to_json(orient="records"))[0] == {"outputs": {"n": 1, "log": {"n": 0}}}
    copied = steps.copy()
    copied.loc[0, "error"] = "mine"
    copied["outputs"].array[0] = {"mine": 1}
    assert steps.outputs.iloc[0] == {"n": 1, "log": {"n": 0}}
    assert copied.outputs.iloc[0] == {"mine": 1}
    assert "outputs" in repr(steps[["step", "outputs"]])
    assert steps.iloc[3:5].outputs.tolist() == steps.outputs.tolist()[3:5]


def test_rows_are_converted_to_a_table():
    assert make_table([{"a": 1, "b": None}])["a"].tolist() == [1]
    assert make_table([]).empty
    assert node("x", print).id == "x"


def test_calls_and_events_are_rows():
    moment = datetime(2020, 1, 1, tzinfo=UTC)
    run = go(started(), 2)
    arguments = freeze({"q": 1, "api_key": "s3cret"})
    run.history.calls += [
        Call(1, 0, 0, "tool", "ask", 1, 0.0, arguments, None, "OSError: no", 0.5),
        Call(1, 0, 0, "tool", "ask", 2, 1.5, arguments, freeze([1]), None, 0.5, 10, 20, 0.01),
    ]
    run.history.events += [
        Event(1, None, "evt_001", "asked", "user", None, moment, freeze({"token": "s3cret"}), 0),
        Event(2, 1, "evt_002", "done", "count", "evt_001", moment, None, 1),
    ]
    frames = SimulationTrace.of(run).frames
    assert frames.calls.node.tolist() == ["count", "count"]
    assert frames.calls.arguments[0] == {"q": 1, "api_key": "********"}
    assert frames.calls.result.tolist() == [None, [1]]
    assert frames.calls.error[0] == "OSError: no"
    assert frames.calls.error[1] is frames.calls.tokens_in[0] is frames.calls.cost_usd_exact[0] is pd.NA
    assert np.isnan(frames.calls.cost_usd[0])
    assert (frames.calls.cost_usd[1], frames.calls.cost_usd_exact[1]) == (0.01, Decimal("0.01"))
    assert frames.calls.tokens_out[1] == 20
    assert frames.events.step[0] is frames.events.cause[0] is pd.NA
    assert frames.events.payload.tolist() == [{"token": "********"}, None]
    assert frames.events.time[0] == moment
    loaded = parse_trace_text(to_json_text(SimulationTrace.of(run))).frames
    pd.testing.assert_frame_equal(loaded.calls, frames.calls)
    pd.testing.assert_frame_equal(loaded.events, frames.events)


def test_the_old_value_of_a_write_is_masked_too(none_hidden):
    hide("s3cr3t-4711")
    run = session(graph("a"), {"note": "it is s3cr3t-4711"})
    run.edit({"note": "clean"})
    run.run()
    writes = run.trace.frames.writes
    assert writes[writes["key"] == "note"]["old"].tolist()[1:] == ["it is ********"]
    assert "s3cr3t-4711" not in writes.to_string()


@pytest.mark.parametrize("name", ["calls", "interventions", "events"])
def test_tables_without_rows_are_independent_and_have_the_dtypes_of_those_with_rows(name):
    one, other = (SimulationTrace.of(go(started(), 3)).frames[name] for _ in range(2))
    one["extra"] = "x"
    del one["step"]
    second = SimulationTrace.of(go(started(), 3)).frames[name]
    assert (len(other), len(second), list(second)) == (0, 0, list(other))
    assert list(second.dtypes) == list(other.dtypes)
