from __future__ import annotations

import types

import pytest

from agentnb.engine.core.history import ERROR, UNCAUGHT
from agentnb.engine.core.run import DONE, FAILED, GO
from agentnb.engine.core.work import Outcome
from tests.engine.small_runs import data, one, run_of


@pytest.mark.parametrize(
    ("result", "wrote"),
    [
        ({"a": 1}, {"a": 1}),
        (None, {}),
        (Outcome({"a": 1}), {"a": 1}),
        (Outcome(nested_writes=[(("d", "x"), 1)]), {"d": {"x": 1}}),
        (types.MappingProxyType({"a": 1}), {"a": 1}),
    ],
)
def test_a_node_may_return_an_outcome_a_mapping_or_none(result, wrote):
    run = run_of(lambda work: result)
    assert (one(run), data(run)) == (DONE, wrote)


@pytest.mark.parametrize(
    "said", [{}, {"thought": "t"}, {"action": {"a": 1}}, {"observation": [1]}, {"inputs": {"b": 2}}], ids=str
)
def test_a_step_has_a_note_of_what_its_outcome_says(said):
    run = run_of(lambda work: Outcome({"a": 1}, **said))
    one(run)
    notes = {
        step: {name: value for name, value in note._asdict().items() if value is not None}
        for step, note in run.history.notes.items()
    }
    assert notes == ({1: said} if said else {})


def test_any_other_return_value_is_a_failure():
    run = run_of(lambda work: 5)
    assert one(run) == FAILED
    assert "returned an int" in run.history.errors[1].message


def test_any_awaitable_is_awaited():
    class Later:
        def __await__(self):
            return {"a": 1}
            yield

    from tests.engine.graph_shapes import go_on

    run = run_of(lambda work: Later())
    assert go_on(run) == DONE
    assert data(run) == {"a": 1}


def test_a_node_sees_its_own_writes_at_once_and_others_after_the_step():
    seen = []

    def writes(work):
        work.write("a", 1)
        work.write(("d", "x"), 2)
        seen.append((work.board["a"], work.board.get("a"), work.board["d.x"], work.scope.get("a")))
        return {"a": 3}

    run = run_of(writes, inputs={"a": 0})
    one(run)
    assert (seen, data(run)) == ([(1, 1, 2, 0)], {"a": 3, "d": {"x": 2}})


def test_a_failed_step_is_a_row_that_wrote_nothing_and_the_node_stays_next():
    def fails(work):
        work.write("a", 1)
        work.emit("x")
        raise ValueError("no")

    run = run_of(lambda work: {"before": 1}, fails)
    assert one(run) == GO
    assert one(run) == FAILED
    assert (run.position, data(run), [run.get_node_id(activation) for activation in run.frontier()]) == (
        2,
        {"before": 1},
        ["n1"],
    )
    assert run.history.step_flags[2] & (12 | UNCAUGHT) == ERROR | UNCAUGHT
    assert run.events() == []


def test_a_step_with_a_rejected_write_fails_as_a_whole():
    run = run_of(lambda work: Outcome({"a": 1}, nested_writes=[(("n", "x"), 1)]), inputs={"n": 5})
    assert (one(run), data(run)) == (FAILED, {"n": 5})
    run = run_of(lambda work: {"a": 1, 5: 2})
    assert (one(run), data(run)) == (FAILED, {})
    run = run_of(lambda work: Outcome({"a": 1, 5: 2}, thought="it will work"))
    assert (one(run), run.history.notes) == (FAILED, {})


def test_reads_are_stored_with_their_step():
    run = run_of(lambda work: {"a": work.board["x"]}, lambda work: {"b": work.board.get("gone")}, inputs={"x": 1})
    one(run)
    one(run)
    actual = [
        (step, run.tables.codes[code >> 2][1])
        for step, code in zip(run.history.read_steps, run.history.read_codes, strict=True)
    ]
    assert actual == [(1, ("x",)), (2, ("gone",))]


def test_times_are_those_of_the_clock():
    run = run_of(lambda work: {})
    ticks = iter((10, 25))
    run.ns = lambda: next(ticks)
    one(run)
    assert (run.history.start_times[1], run.history.end_times[1]) == (10, 25)


def test_an_interrupt_is_not_a_failure_and_leaves_no_row():
    from agentnb.engine.core.time_travel import repair

    def stops(work):
        work.write("a", 1)
        raise KeyboardInterrupt

    run = run_of(stops)
    with pytest.raises(KeyboardInterrupt):
        one(run)
    repair(run)
    assert (run.position, data(run), run.history.errors) == (0, {}, {})
