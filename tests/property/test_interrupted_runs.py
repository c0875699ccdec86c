"""A run that was cut at any entry of its log goes on, and becomes the run that was never cut, event for event."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentnb.session.reopen import reopen_run
from agentnb.store import MemoryLog, open_log
from tests.engine.graph_shapes import SHAPES
from tests.property.interrupted_runs import cut, facts, finished, kept_session
from tests.property.modelled_sessions import session_of
from tests.property.strategies import drawn

ROOT = Path(__file__).parent.parent.parent


@given(drawn(), st.integers(0, 100))
def test_a_generated_run_continues_from_any_entry(what, share):
    session, log = session_of(what.recipe, what.inputs, what.limit), MemoryLog()
    session._parts.persistence.record_new_run(log, "step")
    expected = facts(finished(session))
    at = 1 + share * (log.last(session.run_id) - 1) // 100
    shorter = cut(log, session.run_id, at)
    reopened = reopen_run(shorter, shorter.run(session.run_id), session._parts.run.plan)
    assert facts(finished(reopened)) == expected


@pytest.fixture(scope="module")
def cut_runs(tmp_path_factory):
    """A run of each shape, the files with its first entries, and what another process made of each file."""
    runs, files = {}, {}
    for name in SHAPES:
        log, folder = MemoryLog(), tmp_path_factory.mktemp(name)
        session, requests = kept_session(name, log)
        expected = json.loads(json.dumps(facts(finished(session)), default=repr))
        runs[name] = (session, len(requests), expected)
        files[name] = [str(folder / f"{at}.db") for at in range(1, log.last("r") + 1)]
        for at, file in enumerate(files[name], start=1):
            cut(log, "r", at, open_log(file)).close()
    done = subprocess.run(
        [sys.executable, "-m", "tests.property.interrupted_runs"],
        input=json.dumps(files),
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    ends: dict[str, list[Any]] = json.loads(done.stdout)
    return {name: (*runs[name], files[name], ends[name]) for name in SHAPES}


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.starts_programs
def test_a_shape_continues_from_any_entry_in_another_process(name, cut_runs):
    session, requests, expected, files, ends = cut_runs[name]
    assert len(ends) == len(files) > len(session.trace)
    for at, end in enumerate(ends, start=1):
        assert end["facts"] == expected, at
    answered = [end["asked"] for end in ends]
    assert answered[0] == requests
    assert answered[-1] == 0
    assert sorted(answered, reverse=True) == answered  # what was answered before the cut is never asked for again
