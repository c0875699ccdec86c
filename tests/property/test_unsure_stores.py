"""A store that fails before or after it has saved an entry, at any entry: nothing is lost, and nothing done twice."""

from __future__ import annotations

import contextlib
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentnb.errors import Problem, StoreError
from agentnb.session.reopen import reopen_run
from agentnb.store import MemoryLog
from tests.engine.graph_shapes import SHAPES
from tests.property.interrupted_runs import facts, finished, kept_session

MOODS = st.lists(st.sampled_from(["saves", "saves", "refuses", "saves, and the reply is lost"]), max_size=12)


class UnsureLog(MemoryLog):
    """A log in memory whose next entries are saved or not, and confirmed or not, as the moods say."""

    def __init__(self) -> None:
        super().__init__()
        self.moods: list[str] = []

    def append(self, run_id: str, entries: Any, **changed: Any) -> None:
        mood = self.moods.pop(0) if self.moods else "saves"
        if mood != "refuses":
            super().append(run_id, entries, **changed)
        if mood != "saves":
            raise StoreError(Problem("L421", "the server does not answer", "the test's log", mood, "try again"))


@cache
def uncut(name: str) -> tuple[Any, int]:
    """Return all that a run of a shape does, and how often it asks."""
    session, requests = kept_session(name, MemoryLog())
    return facts(finished(session)), len(requests)


@pytest.mark.parametrize("name", SHAPES)
@settings(max_examples=settings.default.max_examples // 3)  # there are several shapes
@given(moods=MOODS)
def test_a_run_is_stored_completely_by_an_unreliable_store(name, moods):
    log = UnsureLog()
    session, requests = kept_session(name, log)
    log.moods = list(moods)
    for _ in range(len(moods) + 1):  # whatever the store says
        with contextlib.suppress(StoreError):
            finished(session)
            session.save()
    assert [entry.seq for entry in log.entries("r")] == [*range(1, log.last("r") + 1)]
    reopened = reopen_run(log, log.run("r"), session._parts.run.plan)
    assert (facts(reopened), len(requests)) == uncut(name)
