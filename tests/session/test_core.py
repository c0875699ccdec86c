from __future__ import annotations

import random
import warnings

import pytest

import agentnb as nb
from agentnb.clock import FrozenClock, TickingClock
from agentnb.errors import ExecutionError
from tests.session.shape_sessions import session_of
from tests.session.small_sessions import broken, counting, graph, session


def test_hooks_are_notified_at_each_point():
    messages = []
    hooks = {
        "step": lambda step: messages.append(("step", step.node_id, step.status)),
        "error": [lambda step: messages.append(("error", step.node_id))],
        "end": lambda session: messages.append(("end", session.status)),
    }
    run = session(broken(), hooks=hooks)
    run.run()
    assert messages == [
        ("step", "first", "ok"),
        ("step", "middle", "error"),
        ("error", "middle"),
        ("end", "failed"),
    ]
    messages.clear()
    run.edit({"fixed": True})
    run.run()
    assert messages == [("step", "middle", "ok"), ("step", "last", "ok"), ("end", "finished")]


def test_every_method_notifies_of_a_change():
    messages = []
    run = session(counting(), {"n": 0}, hooks={"change": lambda each: messages.append(each.position)})
    for verb in (run.step, run.back, lambda: run.edit({"n": 1}), lambda: run.set_next("done"), lambda: run.goto(0),
                 run.skip, lambda: run.watch("n"), run.reset, lambda: run.run(max_steps=2)):  # fmt: skip
        before = len(messages)
        verb()
        assert len(messages) > before
        assert messages[-1] == run.position


def test_a_listener_that_raises_is_removed_with_a_warning_and_the_run_continues():
    messages = []

    def breaks(step):
        messages.append(step.node_id)
        raise ValueError("too much")

    run = session(graph("a", "b"), hooks={"step": breaks})
    with pytest.warns(UserWarning, match="raised ValueError and was removed: too much"):
        run.step()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run.run()
    assert (messages, run.status) == (["a"], "finished")
    assert not run._parts.run.armed


def test_an_unknown_notification_is_a_problem():
    with pytest.raises(ExecutionError, match="did you mean 'step'"):
        session(graph("a"), hooks={"steps": print})


def test_a_run_is_armed_only_with_listeners_breakpoints_or_limits():
    run = session(graph("a", "b"))
    assert not run._parts.run.armed
    stop = run.subscribe(lambda step: None)
    assert run._parts.run.armed
    stop()
    assert not run._parts.run.armed
    point = run.breakpoints.add("b")
    assert run._parts.run.armed
    run.breakpoints.remove(point)
    assert not run._parts.run.armed
    assert session(graph("a"), budget={"max_seconds": 5})._parts.run.armed


def test_runs_have_names_and_ids():
    run = session(graph("a", name="line"), name="mine", run_id="r1")
    assert (run.name, run.run_id, run.trace.run_id) == ("mine", "r1", "r1")
    other, third = session(graph("a", name="line")), session(graph("a"))
    assert other.name == "line"
    assert other.run_id != third.run_id


def test_the_same_run_id_gives_the_same_step_ids():
    runs = [session(graph("a", "b"), run_id="r1", clock=FrozenClock()) for _ in range(2)]
    for run in runs:
        run.run()
    assert [step.step_id for step in runs[0].trace.steps] == [step.step_id for step in runs[1].trace.steps]
    assert runs[0].trace.steps[0].timestamp == runs[1].trace.steps[1].timestamp


def test_steps_do_not_advance_the_visible_clock():
    clock = TickingClock()
    run = session(graph("a", "b"), clock=clock)
    run.run()
    assert clock.now() == TickingClock().now()


def test_the_inputs_are_copied():
    inputs = {"list": [1]}
    run = session(graph("a"), inputs)
    inputs["list"].append(2)
    inputs["more"] = 1
    assert dict(run.board) == {"list": [1]}
    run.step()
    run.reset()
    assert "more" not in run.board


def test_a_failure_is_reported_before_the_cancelled_steps():
    messages = []
    run = session_of("branches")
    run._parts.state.hooks.add_all({"step": lambda step: messages.append((step.node_id, step.status)),
                       "error": lambda step: messages.append(step.node_id)})  # fmt: skip
    run.step(3)
    assert messages == [("both", "ok"), ("first", "ok"), ("left", "error"), "left", ("second", "cancelled")]


def ids(run):
    return [step.step_id for step in run.trace.steps]


def test_a_step_made_after_going_back_has_a_new_id():
    runs = [session(graph("a", "b", "c"), run_id="mine") for _ in range(2)]
    results = []
    for run in runs:
        run.run()
        first = ids(run)
        run.goto(1).step()
        second = ids(run)
        run.goto(1).run()
        third = ids(run)
        assert (second[0], third[0]) == (first[0], first[0])
        assert len({first[1], second[1], third[1]}) == 3
        results.append((first, second, third))
    assert results[0] == results[1]


@pytest.mark.parametrize("seed", range(20))
def test_the_ids_of_steps_are_unique_among_all_branches_and_forks(seed, tmp_path):
    rng = random.Random(seed)
    run, known = session(counting(limit=4), {"n": 0}, store=tmp_path / "runs.db"), {}
    for _ in range(30):
        match rng.choice(["step", "step", "goto", "fork", "edit", "reopen"]):
            case "step":
                run.step(rng.choice([1, 1, 3]))
            case "goto":
                run.goto(rng.randint(0, run.position))
            case "fork":
                run = run.fork(rng.randint(0, run.position))
            case "edit":
                run.edit({"n": rng.randint(0, 3)})
            case "reopen":
                run.close()
                run = nb.open(tmp_path / "runs.db", run.run_id, recipe=run.recipe)
        for step in run.trace.steps:
            assert known.setdefault(step.step_id, (step.step, step.timestamp)) == (step.step, step.timestamp)


def test_the_ids_of_steps_are_the_same_in_a_file_and_in_a_store(tmp_path):
    run = session(graph("a", "b", "c"), run_id="mine", store=tmp_path / "runs.db")
    run.run()
    run.goto(1).run()
    run.trace.to_json(tmp_path / "trace.json")
    assert ids(nb.open(tmp_path / "runs.db")) == ids(run)
    assert [step.step_id for step in nb.SimulationTrace.read(tmp_path / "trace.json").steps] == ids(run)
