"""The five shapes run, step, go back, fork, and go on in another process, through the one engine."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from agentnb.engine.core import time_travel
from agentnb.engine.core.run import DONE, LANES, SUSPENDED
from agentnb.engine.core.step import step as engine_step
from agentnb.engine.persistence.snapshot import dump, restore_run
from tests.engine.graph_shapes import NESTED, SHAPES, Meeting, begun, board, branches, go_on, path, shape_of, step

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(params=SHAPES)
def name(request) -> str:
    return request.param


def stepped(run) -> list[dict]:
    """Step to the end and return the root board after each step, the start first."""
    boards = [board(run)]
    while run.queue_start < run.current_history.push_ends[run.position - run.current_history.base]:
        before = run.position
        step(run)
        boards += [board(run)] * (run.position - before)
    return boards


def acted(steps: list[str]) -> list[str]:
    """Leave out what a failure cancelled: from between the two, nothing is left that could be cancelled again."""
    return [step for step in steps if not step.endswith("cancelled")]


def test_a_shape_takes_the_expected_steps(name):
    run = begun(name)
    stepped(run)
    assert path(run) == shape_of(name).steps
    assert board(run) == shape_of(name).end


def test_running_has_the_same_result_as_stepping(name):
    run = begun(name)
    while go_on(run) == LANES:
        pass
    assert board(run) == shape_of(name).end
    shape = shape_of(name)
    assert sorted(path(run)) in (sorted(shape.steps), sorted(shape.ran or []))


def test_going_back_restores_each_board_and_continuing_has_the_same_result(name):
    run = begun(name)
    boards = stepped(run)
    tip = run.position
    for k in reversed(range(tip)):
        time_travel.undo(run)
        assert (run.position, board(run)) == (k, boards[k])
    for k in [*range(tip + 1), 0, tip]:
        time_travel.goto(run, k)
        assert board(run) == boards[k]


def test_a_fork_shares_the_first_steps_and_has_the_same_result(name):
    run = begun(name)
    boards = stepped(run)
    steps, tip = path(run), run.position
    for k in range(tip):
        fork = time_travel.fork_run(run, run.plan, k)
        assert (board(fork), path(fork)) == (boards[k], steps[:k])
        stepped(fork)
        assert (board(fork), acted(path(fork))) == (boards[-1], acted(steps))
    assert (run.position, board(run), path(run)) == (tip, boards[-1], steps)


@pytest.mark.starts_programs
def test_a_run_continues_from_json_in_another_process(name):
    run = begun(name)
    stepped(run)
    documents = []
    for k in range(run.position):
        time_travel.goto(run, k)
        documents.append(dump(run))
    report = json.dumps({"name": name, "runs": documents})
    done = subprocess.run(
        [sys.executable, "-m", "tests.engine.resuming_process"],
        input=report,
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    ends = json.loads(done.stdout)
    assert len(ends) == len(documents)
    for end in ends:
        assert (acted(end["path"]), end["board"]) == (acted(shape_of(name).steps), shape_of(name).end)


def test_a_restored_run_can_go_back(name):
    run = begun(name)
    boards = stepped(run)
    restored = restore_run(shape_of(name).plan(), json.loads(json.dumps(dump(run))))
    for k in reversed(range(run.position + 1)):
        time_travel.goto(restored, k)
        assert board(restored) == boards[k]


# -- what is special in each ------------------------------------------------------------------------------------------


def test_the_prompt_of_a_paused_call_is_edited_before_it_is_sent():
    run = begun("nested")
    run.holds_call = lambda work, effect, moment: moment == "before" and effect.kind == "llm"
    assert go_on(run) == SUSPENDED
    (pending_step,) = run.pending_steps.values()
    assert pending_step.hold.effect.arguments["messages"][0]["content"] == "Say yes"
    pending_step.hold.effect.arguments["messages"][0]["content"] = "Say no"
    pending_step.hold.is_resumed = True
    assert go_on(run) == DONE
    assert board(run)["said"] == "SAY NO"
    (call,) = run.history.calls
    assert call.arguments["messages"][0]["content"] == "Say no"


def test_an_answer_to_a_paused_call_replaces_it():
    requests = []
    shape = shape_of("nested")
    run = begun("nested")
    run.world.llm.script = requests.append
    run.holds_call = lambda work, effect, moment: moment == "before"
    go_on(run)
    (pending_step,) = run.pending_steps.values()
    pending_step.hold.answer, pending_step.hold.has_answer, pending_step.hold.is_resumed = (
        type("Said", (), {"content": "mine"})(),
        True,
        True,
    )
    assert go_on(run) == DONE
    assert board(run)["said"] == "mine"
    assert requests == []
    assert shape is NESTED


def test_branches_are_in_flight_concurrently_when_running():
    shape = branches(Meeting())
    run = shape.run()
    while go_on(run) == LANES:
        pass
    assert sorted(path(run)) == sorted(shape.ran)
    assert board(run) == shape.end


def test_an_isolated_scope_sees_only_its_inputs():
    run = begun("nested")
    for _ in range(4):
        step(run)
    inside = next(frame for frame in run.frames.values() if frame.id)
    assert inside.scope.data["sees"] == ["out", "word"]


def test_a_child_scope_reads_through_and_its_writes_stay_inside():
    run = begun("branches")
    step(run)
    step(run)
    chosen = run.find_activation(run.frontier()[-1])  # a step of another branch than the first
    engine_step(run, chosen)
    assert path(run) == ["both enter", "first", "second"]
    one, two = (frame.scope for frame in run.frames.values() if frame.id)
    assert (one.get("x"), one.get("seen"), two.get("x"), run.root.scope.get("x")) == (
        "root's",
        "root's",
        "mine",
        "root's",
    )


def test_a_scope_is_not_written_while_a_child_scope_is_open():
    from agentnb.errors import BoardError

    run = begun("branches")
    step(run)
    with pytest.raises(BoardError, match="B106"):
        run.write(run.root.scope, ("x",), 1)


def test_writes_and_events_of_a_node_that_keeps_them_survive_its_failure():
    run = begun("reactive")
    step(run)
    assert board(run) == {"greeted": "ada", "seen": ["evt_003"]}
    assert [(event.id, event.type, event.cause, event.step) for event in run.events()] == [
        ("evt_001", "hello", None, None),
        ("evt_002", "hello", None, None),
        ("evt_003", "greeting.done", "evt_001", 1),
    ]


def test_the_error_target_precedes_scheduled_nodes():
    run = begun("diamond")
    for _ in range(3):
        step(run)
    assert [run.get_node_id(number) for number in run.frontier()] == ["fix", "b", "d"]
