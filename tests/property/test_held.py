"""What people change while a step is held inside is done again in its replay at its place: it finds no difference."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentnb.engine.chance import drawn
from agentnb.session.opening import reopened
from agentnb.store import MemoryLog
from tests.engine.shapes import SHAPES
from tests.property.held import done, ended, finds_nothing, kept
from tests.property.resumed import facts

ASKED = st.lists(st.sampled_from(["tool", "llm", "human", "emit"]), min_size=1, max_size=3)
SENT = st.fixed_dictionaries({"prompt": st.sampled_from(["one", "two"])})
ACT = st.one_of(
    st.tuples(st.just("go"), st.sampled_from(["step", "step_into", "run"])),
    st.tuples(st.just("arguments"), SENT),
    st.tuples(st.just("answer"), st.sampled_from(["mine", {"n": 1}, [1, "two"]])),
    st.tuples(st.just("edit"), st.integers(0, 3).map(lambda n: {"told": n, "other": [n]})),
    st.tuples(st.just("emit"), st.sampled_from(["outside", "greeting.done"])),
    st.tuples(st.sampled_from(["stop", "fork", "back", "reopen"]), st.none()),
)
PLAYS = st.lists(st.one_of(st.just(("go", "step_into")), ACT), min_size=4, max_size=20)


@pytest.mark.parametrize("name", SHAPES)
@given(doing=ASKED, play=PLAYS, lasts=st.booleans())
def test_a_replay_finds_nothing_of_what_was_changed_inside(name, doing, play, lasts):
    session = kept(name, doing, MemoryLog() if lasts else None)
    for verb, word in known(name, play):
        session = done(session, verb, word)
        finds_nothing(session)
    finds_nothing(ended(session))


def known(name, play):
    """Return a play without what a replay does at another place: some events that a person emits amid a held step.

    Beside other branches it is not known which of their steps came before them. And where a held step was cut, it has
    not begun yet when the run is opened again; its replay takes it up where it was held, so the queue is another one.
    """
    cut = [verb for verb, _ in play].index("reopen") if ("reopen", None) in play else len(play)
    until = {"branches": 0, "reactive": cut}.get(name, len(play))
    return [act for at, act in enumerate(play) if at < until or act[0] != "emit"]


@pytest.mark.parametrize("name", SHAPES)
@given(doing=ASKED, play=PLAYS)
def test_a_copy_stands_inside_a_step_as_the_original_does(name, doing, play):
    log, copy = MemoryLog(), MemoryLog()
    session = kept(name, doing, log)
    for verb, word in play:
        if verb != "reopen":
            session = done(session, verb, word)
        session.save(copy)
    session.close()
    first, second = (reopened(where, where.run("r"), session.engine.plan) for where in (log, copy))
    for _ in range(2):
        assert (second.pending, second.position, facts(second)) == (first.pending, first.position, facts(first))
        assert drawn(first.engine) == drawn(second.engine)
        ended(first)
        ended(second)
