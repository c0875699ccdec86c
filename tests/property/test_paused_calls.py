"""What people change while a step is held inside is done again in its replay at its place: it finds no difference."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentnb.board.values import thaw
from agentnb.engine.core.rng import get_draws
from agentnb.engine.replay.step_record import Record
from agentnb.session.reopen import reopen_run
from agentnb.store import MemoryLog
from tests.engine.graph_shapes import SHAPES
from tests.property.interrupted_runs import facts
from tests.property.paused_calls import done, ended, finds_nothing, make_session

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
@settings(max_examples=settings.default.max_examples // 2)  # there are several shapes
@given(doing=ASKED, play=PLAYS, lasts=st.booleans())
def test_a_replay_reports_no_difference_for_edits_inside_a_step(name, doing, play, lasts):
    session = make_session(name, doing, MemoryLog() if lasts else None)
    for verb, word in play:
        session = done(session, verb, word)
        finds_nothing(session)
    finds_nothing(ended(session))


def test_a_step_of_another_branch_sees_an_external_event_only_after_its_arrival():
    session = make_session("branches", ["human"])
    for verb, word in (("go", "step"), ("go", "step_into"), ("emit", "outside"), ("go", "step_into"), ("go", "step")):
        session = done(session, verb, word)
    ended(session)
    record = Record(session._parts.run)
    assert record.run.plan.nodes[record.read_step(3).activation.node].id == "first"
    ((before, _, after),) = (thaw(wrote.new) for wrote in record.read_step(3).writes if wrote.path == ("seen first",))
    assert (before[2], after[2]) == (0, 1)
    finds_nothing(session)


def test_an_event_with_a_number_that_was_used_before_going_back_is_delivered():
    session = make_session("reactive", ["tool"])
    held = [("go", "step_into"), ("emit", "outside")]
    for verb, word in (*held, *held, ("back", None), *held):
        session = done(session, verb, word)
    ended(session)
    emitted = [event.id for event in session._parts.run.events() if event.type == "greeting.done"]
    edges = session.trace.frames.edges
    assert edges.value[edges.condition == "greeting.done"].tolist() == emitted
    finds_nothing(session)


def test_an_external_event_takes_no_number_of_an_interrupted_step():
    session = make_session("reactive", ["emit"], MemoryLog())
    for verb, word in (("go", "step_into"), ("reopen", None), ("emit", "outside")):
        session = done(session, verb, word)
    ended(session)
    events = session.events
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert {event.id: event.type for event in events}["evt_003"] == "greeting.done"
    finds_nothing(session)


def test_a_replay_from_the_middle_gives_each_event_its_own_number():
    session = make_session("reactive", ["emit", "human"], MemoryLog())
    for verb, word in (("go", "run"), ("emit", "greeting.done"), ("reopen", None)):
        session = done(session, verb, word)
    ended(session)
    for start in range(session.position):
        assert session.replay(start, strict="values").ok


@pytest.mark.parametrize("after", list(permutations([("go", "run"), ("branch off", 1), ("reopen", None)])))
def test_the_answer_to_an_edited_call_is_used_wherever_the_run_continues(after):
    before = [("go", "step_into"), ("arguments", {"prompt": "mine"}), ("go", "step_into"), ("go", "step_into")]
    session = make_session("branches", ["tool", "human"], MemoryLog())
    for verb, word in (("go", "step"), *before, ("go", "step"), *after):
        session = done(session, verb, word)
    calls = ended(session).trace.frames.calls
    assert calls.step.notna().all()  # what was answered is not asked again


@pytest.mark.parametrize("name", SHAPES)
@settings(max_examples=settings.default.max_examples // 2)  # there are several shapes
@given(doing=ASKED, play=PLAYS)
def test_a_copy_is_in_the_middle_of_a_step_like_the_original(name, doing, play):
    log, copy = MemoryLog(), MemoryLog()
    session = make_session(name, doing, log)
    for verb, word in play:
        if verb != "reopen":
            session = done(session, verb, word)
        session.save(copy)
        entries = copy.last("r")
        session.save(copy)
        assert copy.last("r") == entries  # nothing is recorded twice
    session.close()
    first, second = (reopen_run(run_log, run_log.run("r"), session._parts.run.plan) for run_log in (log, copy))
    for _ in range(2):
        assert (second.pending, second.position, facts(second)) == (first.pending, first.position, facts(first))
        assert get_draws(first._parts.run) == get_draws(second._parts.run)
        ended(first)
        ended(second)


def test_a_copy_has_nothing_of_a_restarted_step_with_another_request():
    log, copy = MemoryLog(), MemoryLog()
    session = make_session("diamond", ["tool", "emit"], log)
    into = ("go", "step_into")
    for verb, word in (into, into, ("stop", None), ("edit", {"told": 1}), into, into):
        session = done(session, verb, word)
        session.save(copy)
    session.close()
    first, second = (reopen_run(run_log, run_log.run("r"), session._parts.run.plan) for run_log in (log, copy))
    assert facts(ended(second)) == facts(ended(first))


def test_an_entered_step_is_saved_if_the_run_went_back_before_its_frame():
    session = make_session("branches", ["emit", "tool"], MemoryLog())
    for _ in range(3):
        session = done(session, "go", "step_into")
    session = done(session, "back", None)
    copy = MemoryLog()
    session.save(copy)
    second = reopen_run(copy, copy.run("r"), session._parts.run.plan)
    assert (second.position, facts(second)) == (session.position, facts(session))


def test_a_withdrawn_question_is_withdrawn_in_a_copy_too():
    log, copy = MemoryLog(), MemoryLog()
    session = make_session("branches", ["tool", "human"], log)
    for verb in ("step_into", "step_into", "step_into", "step_into", "step_into", "stop"):
        session = done(session, "stop", None) if verb == "stop" else done(session, "go", verb)
        session.save(copy)
    session.close()
    first, second = (reopen_run(run_log, run_log.run("r"), session._parts.run.plan) for run_log in (log, copy))
    assert (second.pending, facts(second)) == (first.pending, facts(first))
    assert second.pending == ()


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("steps", [["step_into"] * 3, ["step", "step_into", "step_into"], ["step", "step"]])
def test_an_edit_and_an_event_during_a_step_keep_their_place_in_a_replay(name, steps):
    session = make_session(name, ["tool", "human"])
    for verb, word in (*(("go", step) for step in steps), ("edit", {"told": 1}), ("emit", "outside"), ("go", "step")):
        session = done(session, verb, word)
    finds_nothing(ended(session))
