from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from agentnb.clock import Clock, FrozenClock, TickingClock
from agentnb.engine.core.interfaces import StepAbandoned
from agentnb.engine.core.run import DONE, EXHAUSTED, FAILED
from agentnb.engine.replay.recorded_effects import RecordedClock, StepRecording, UnrecordedCall
from agentnb.engine.replay.step_record import Record
from agentnb.errors import BoardError
from agentnb.world.effect import Effect
from tests.engine.graph_shapes import go_on
from tests.engine.small_runs import data, run_of


def never(*_, **__):
    raise AssertionError("nothing goes out")


def calling(*effects, then=None, **inputs):
    """Return a run of one node that does effects and writes what they answered."""

    async def node(work):
        results = []
        for kind, name, arguments, target in effects:
            try:
                results.append(await work.call(Effect(kind, name, arguments, attempts=2, target=target)))
            except LookupError as error:
                results.append(f"{type(error).__name__} {error}")
        return {"found": results, **(then(work) if then else {})}

    return run_of(node, inputs=inputs)


def taped(run, *effects, level="values", changes=(), **inputs):
    """Return a run of other effects that is answered by what the first step of a run is known to have done."""
    if run.frontier() and not run.position:
        go_on(run)
    second = calling(*effects, **inputs)
    second.recorded = StepRecording(Record(run).read_step(1), "n0", level, changes)
    return second, second.recorded


def list_divergences(recording):
    return [(row.what, row.path, row.recorded, row.replayed, row.ends) for row in recording.divergences]


def test_calls_are_answered_from_their_rows_and_none_is_sent():
    run = calling(("tool", "one", {"a": 1}, lambda a: {"n": [a]}), ("tool", "two", {}, lambda: 2))
    replayed, recording = taped(run, ("tool", "one", {"a": 1}, never), ("tool", "two", {}, never))
    assert (go_on(replayed), data(replayed)) == (DONE, {"found": [{"n": [1]}, 2]})
    assert (recording.divergences, recording.missing()) == ([], [])
    assert [row._replace(seconds=0.0) for row in replayed.history.calls] == [
        row._replace(seconds=0.0) for row in run.history.calls
    ]


def test_a_failed_call_fails_after_all_its_attempts_with_the_same_message():
    def gone():
        raise KeyError("gone")

    run = calling(("tool", "one", {}, gone))
    replayed, recording = taped(run, ("tool", "one", {}, never))
    assert (go_on(replayed), data(replayed)) == (DONE, {"found": ["KeyError 'gone'"]})
    assert [(row.attempt, row.error) for row in replayed.history.calls] == [
        (1, "KeyError: 'gone'"),
        (2, "KeyError: 'gone'"),
    ]
    assert recording.divergences == []


def test_a_final_failure_is_final_in_a_replay():
    run = calling(("tool", "one", {}, never))
    assert go_on(run) == FAILED
    replayed, _ = taped(run, ("tool", "one", {}, lambda: "it went out"))
    assert (go_on(replayed), replayed.history.errors[1].message) == (FAILED, "nothing goes out")


def test_different_arguments_are_reported_and_still_answered():
    run = calling(("tool", "one", {"a": {"b": 1}}, lambda a: 5))
    replayed, recording = taped(run, ("tool", "one", {"a": {"b": 2}}, never))
    assert (go_on(replayed), data(replayed)) == (DONE, {"found": [5]})
    assert list_divergences(recording) == [("call", "one.a.b", 1, 2, False)]


def test_at_the_level_path_arguments_are_not_compared():
    run = calling(("tool", "one", {"a": 1}, lambda a: 5))
    replayed, recording = taped(run, ("tool", "one", {"a": 2}, never), level="path")
    assert (go_on(replayed), list_divergences(recording)) == (DONE, [])


@pytest.mark.parametrize(
    ("effect", "recorded", "replayed"),
    [
        (("tool", "two", {"a": 1}, never), "tool 'one'", "tool 'two'"),
        (("agent", "one", {"a": 1}, never), "tool 'one'", "agent 'one'"),
    ],
)
def test_a_different_call_is_not_answered(effect, recorded, replayed):
    tape_run, recording = taped(calling(("tool", "one", {"a": 1}, lambda a: 5)), effect)
    assert (go_on(tape_run), tape_run.position) == (EXHAUSTED, 0)
    assert list_divergences(recording) == [("call", effect[1], recorded, replayed, True)]


def test_a_call_beyond_the_record_is_not_made():
    run = calling(("tool", "one", {}, lambda: 5))
    replayed, recording = taped(run, ("tool", "one", {}, never), ("llm", "more", {"prompt": "x"}, None))
    assert (go_on(replayed), replayed.position) == (EXHAUSTED, 0)
    (row,) = recording.divergences
    assert "calls llm 'more', and the record has no further call; nothing was sent" in str(row)


def test_a_node_cannot_catch_that_a_call_is_unknown():
    assert issubclass(UnrecordedCall, StepAbandoned)
    assert not issubclass(UnrecordedCall, Exception)


def test_recorded_calls_that_are_not_repeated_are_missing():
    run = calling(("tool", "one", {}, lambda: 5), ("tool", "two", {}, lambda: 6))
    replayed, recording = taped(run, ("tool", "one", {}, never))
    go_on(replayed)
    assert [(row.path, row.recorded, row.ends) for row in recording.missing()] == [("two", "tool 'two'", False)]


def test_arguments_given_by_a_person_are_not_a_difference():
    run = calling(("tool", "one", {"a": "edited"}, lambda a: 5))
    replayed, recording = taped(run, ("tool", "one", {"a": "own"}, never), changes=[{"a": "edited"}])
    assert (go_on(replayed), list_divergences(recording)) == (DONE, [])
    replayed, recording = taped(run, ("tool", "one", {"a": "own"}, never), changes=[{"a": "else"}])
    go_on(replayed)
    assert list_divergences(recording) == [("call", "one.a", "edited", "own", False)]


def test_a_call_that_cannot_be_sent_fails_the_node_before_any_row():
    endless = []
    endless.append(endless)
    run = calling(("tool", "one", {"a": endless}, never))
    replayed, recording = taped(run, ("tool", "one", {"a": endless}, never))
    assert (go_on(replayed), recording.divergences) == (FAILED, [])
    assert isinstance(replayed.history.errors[1].error, BoardError)


def test_in_place_changes_by_a_callable_are_repeated():
    def touch(log):
        log.append("touched")

    async def node(work):
        log_copy = work.arg(("log",))
        await work.call(Effect("tool", "touch", {"log": log_copy}, target=touch))
        return {"sees": work.board["log"][-1]}

    run = run_of(node, inputs={"log": ["old"]})
    go_on(run)
    second = run_of(node, inputs={"log": ["old"]})
    second.recorded = recording = StepRecording(Record(run).read_step(1), "n0", "values")
    go_on(second)
    assert data(second) == data(run) == {"log": ["old", "touched"], "sees": "touched"}
    assert (recording.compares_reads, recording.divergences) == (False, [])


def test_events_have_the_recorded_number_id_and_time():
    def emits(work):
        work.emit("one", {"a": 1})
        return {"ids": [event.id for event in work.events]}

    run = run_of(emits, emits)
    run.clock = TickingClock()
    go_on(run)
    second = run_of(emits, emits)
    second.recorded = StepRecording(Record(run).read_step(1), "n0", "values")
    second.stop_at, second.next_due = 1, 1
    go_on(second)
    first, then = run.history.events[0], second.history.events[0]
    assert (then.seq, then.id, then.time) == (first.seq, first.id, first.time)
    second.recorded = StepRecording(Record(run).read_step(1), "n0", "values")  # of an event that is there already
    second.stop_at, second.next_due = 2, 2
    go_on(second)
    assert [(event.seq, event.id) for event in second.history.events] == [(1, "evt_001"), (2, "evt_002")]


def test_new_events_are_not_compared_and_no_record_is_lost():
    run = run_of(lambda work: {})
    go_on(run)
    recording = StepRecording(Record(run).read_step(1), "n0", "values")
    work = run.make_work(run.get_activation(0, run.root))
    recording.forget_step(None, 0)
    recording.leave(None)
    assert (recording.find_emitted(work, "x", None, {}), recording.get_sent_time(work, 0)) == (None, None)


def test_interventions_during_a_step_are_repeated_at_the_same_point():
    run = calling(("tool", "one", {}, lambda: 1), ("tool", "two", {}, lambda: 2))
    replayed, recording = taped(run, ("tool", "one", {}, never), ("tool", "two", {}, never))
    done = []
    work = next(iter(replayed.live_activations.values())).work
    recording.during = [(calls, 0, lambda: done.append((work.call_count, len(work.calls)))) for calls in (1, 2, 2, 3)]
    go_on(replayed)
    assert (done, len(recording.during)) == ([(1, 0), (2, 1), (2, 1)], 1)


@pytest.mark.parametrize(("clock", "ticks"), [(Clock(), 0), (FrozenClock(), 0), (TickingClock(step_seconds=2), 2)])
def test_the_clock_has_the_recorded_time_and_ticks_alike(clock, ticks):
    then = RecordedClock(clock)
    then.set_time(1_500_000_000)
    assert then.ns() == 1_500_000_000
    start = datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=UTC)
    assert [then.now(), then.now()] == [start, start + timedelta(seconds=ticks)]
