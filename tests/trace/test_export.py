from __future__ import annotations

import json
import warnings

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentnb.board.codec import Record
from agentnb.errors import StoreError
from agentnb.trace import SimulationTrace
from agentnb.trace.export import parse_trace_text, to_json_text
from tests.trace.random_runs import go, odyssey, started


def secret_free(state):
    return {key: value for key, value in state.items() if key != "password"}


@given(st.integers(0, 10_000))
def test_a_loaded_trace_gives_the_same_results(seed):
    trace = SimulationTrace.of(odyssey(seed), run_id="r", outcome=lambda: {"status": "paused"})
    loaded = parse_trace_text(to_json_text(trace))
    assert len(loaded) == len(trace)
    assert loaded.outcome == trace.outcome
    assert loaded.trace_id == trace.trace_id
    for step in range(len(trace) + 1):
        assert secret_free(loaded.state_at(step)) == secret_free(trace.state_at(step))
        assert list(loaded.state_at(step)) == list(trace.state_at(step))
    for name, frame in trace.frames.items():
        pd.testing.assert_frame_equal(loaded.frames[name].astype(object), frame.astype(object))
    pd.testing.assert_frame_equal(loaded.wide(["n", "m"]).astype(object), trace.wide(["n", "m"]).astype(object))
    assert repr(loaded) == repr(trace)
    assert repr(loaded.steps) == repr(trace.steps)
    assert to_json_text(loaded) == to_json_text(trace)


def test_a_file_is_written_and_read(tmp_path):
    trace = SimulationTrace.of(go(started(), 30), metadata={"recipe_kind": "Recipe"}, score=lambda: 0.5)
    file = tmp_path / "trace.json"
    assert trace.to_json(file) is None
    loaded = SimulationTrace.read(str(file))
    assert (loaded.agent_id, loaded.metadata, loaded.score) == ("counter", {"recipe_kind": "Recipe"}, 0.5)
    assert trace.to_json() == file.read_text()
    assert "s3cret" not in file.read_text()


def test_a_value_without_a_codec_is_stored_as_text():
    class Odd:
        pass

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = started(odd=Odd())
    loaded = parse_trace_text(to_json_text(SimulationTrace.of(run)))
    assert isinstance(loaded.state_at(0)["odd"], Record)
    assert "opaque" in repr(loaded.state_at(0)["odd"])


@pytest.mark.parametrize(
    "text", ["", "no json", "[1]", "{}", '{"format": "agentnb.trace"}', "[" * 100_000], ids=range(6)
)
def test_an_invalid_trace_is_reported(text, tmp_path):
    file = tmp_path / "x.json"
    file.write_text(text)
    with pytest.raises(StoreError, match="L402"):
        SimulationTrace.read(file)


def test_a_damaged_trace_is_reported():
    document = json.loads(to_json_text(SimulationTrace.of(go(started(), 3))))
    for key in ("slices", "nodes", "outcome"):
        with pytest.raises(StoreError, match="L402"):
            parse_trace_text(json.dumps({name: value for name, value in document.items() if name != key}))


def test_a_trace_of_a_newer_version_is_reported():
    document = json.loads(to_json_text(SimulationTrace.of(started()))) | {"version": 99}
    with pytest.raises(StoreError, match="L403"):
        parse_trace_text(json.dumps(document))
