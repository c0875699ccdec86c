from __future__ import annotations

import networkx as nx
import pytest

from agentnb.errors import ExecutionError
from agentnb.load import load
from agentnb.samples import samples
from agentnb.session import Session
from agentnb.session.forks import find_parting
from agentnb.store import MemoryLog
from tests.kinds.test_loop import body
from tests.session.small_sessions import boards, broken, calling, counting, looping, path, session


def test_a_fork_shares_the_earlier_steps_and_continues_independently():
    run = session(counting(), {"n": 0})
    seen = boards(run)
    for k in range(run.position + 1):
        fork = run.fork(at=k)
        assert (fork.position, dict(fork.board), path(fork)) == (k, seen[k], path(run)[:k])
        assert fork.parent is run
        fork.run()
        assert (path(fork), dict(fork.board)) == (path(run), seen[-1])
    assert len(run.forks) == run.position + 1


def test_a_fork_with_an_edit():
    run = session(counting(), {"n": 0})
    run.run()
    fork = run.fork(at=2, name="what if", edit={"n": 2})
    fork.run()
    assert (fork.name, fork.position, fork.board["end"]) == ("what if", 5, 3)
    assert (run.position, run.board["n"]) == (7, 3)
    assert run.trace.state_at(2) == {"n": 1}
    assert fork.trace.state_at(2) == {"n": 2}


def test_two_forks_at_one_step_do_not_see_each_other():
    run = session(counting(), {"n": 0})
    run.step(2)
    one, two = run.fork(edit={"n": 2}), run.fork(edit={"n": 10})
    run.edit({"n": -1})
    assert (one.board["n"], two.board["n"], run.board["n"]) == (2, 10, -1)
    one.run()
    two.run()
    assert (one.board["n"], two.board["n"]) == (3, 11)


def test_a_fork_of_a_fork_can_go_back_before_its_start():
    run = session(counting(), {"n": 0})
    run.run()
    fork = run.fork(at=4).fork(at=2)
    assert [fork.goto(k).board["n"] for k in (2, 1, 0)] == [1, 1, 0]
    fork.run()
    assert (fork.status, fork.position) == ("finished", 7)


def test_a_fork_with_other_tools_runs_them_from_there_on():
    run = session(calling("look"), {"word": "rain"}, tools={"look": lambda word: "one"})
    run.run()
    fork = run.fork(at=1, tools={"look": lambda word: "two"})
    fork.run()
    assert (run.board["look"], fork.board["look"]) == ("one", "two")
    second_fork = fork.fork(at=1)
    second_fork.run()
    assert second_fork.board["look"] == "two"


def test_a_fork_with_another_model():
    graph = nx.DiGraph()
    graph.add_node("write", kind="agent")
    run = session(graph, llm=["one"])
    run.run()
    fork = run.fork(at=0, llm=lambda request: "two")
    fork.run()
    assert (run.board["write"], fork.board["write"]) == ("one", "two")


def test_a_fork_at_an_event():
    run = session(counting(), {"n": 0})
    run.step()
    run.emit("note")
    run.step(3)
    (event,) = run.trace.frames.events["id"].tolist()
    assert run.fork(at=event).position == 1
    with pytest.raises(ExecutionError, match="X111"):
        run.fork(at="evt_999")


@pytest.mark.parametrize("at", [-1, 99, 1.5, True])
def test_a_fork_at_a_missing_step_is_a_problem(at):
    run = session(counting(), {"n": 0})
    run.step(2)
    with pytest.raises(ExecutionError, match="X111"):
        run.fork(at=at)


def test_a_fork_inside_a_loop_keeps_its_iteration():
    run = session(looping(body(), times=3), {"n": 0})
    run.step(4)
    fork = run.fork()
    assert [frame.iteration for frame in fork.stack] == [frame.iteration for frame in run.stack]
    fork.run()
    run.run()
    assert (fork.board["n"], path(fork)) == (3, path(run))


def test_each_abandoned_branch_is_kept():
    run = session(counting(), {"n": 0})
    run.run()
    run.goto(2).step()
    run.goto(1).step()
    olds = run.forks
    assert [old.position for old in olds] == [7, 3]
    assert run.forks == olds
    olds[0].goto(3).run()
    assert olds[0].status == "finished"


def test_going_back_and_to_the_end_again_creates_no_branch():
    run = session(counting(), {"n": 0})
    run.run()
    run.goto(0).goto(7)
    assert run.forks == ()


def test_the_tree_shows_all_sessions_and_the_current_position():
    run = session(counting(), {"n": 0}, name="trunk")
    run.run()
    fork = run.fork(at=2, name="branch")
    fork.fork(name="twig")
    lines = fork.tree().splitlines()
    assert lines[0] == "trunk: 7 steps, finished"
    assert lines[1] == "  branch from step 2: 2 steps, paused <- here"
    assert lines[2].startswith("    twig from step 2")
    run.goto(3).step()
    assert len(run.tree().splitlines()) == 4


def test_a_fork_of_a_failed_run_can_be_fixed_alone():
    run = session(broken())
    run.run()
    fork = run.fork(edit={"fixed": True})
    fork.run()
    assert (fork.status, run.status) == ("finished", "failed")


def test_a_fork_answers_from_the_same_script():
    run = Session(samples("triage"), answers=["later", "approve"])
    run.run()
    first = next(step.step for step in run.trace.steps if step.node_id == "review")
    fork = run.fork(at=first - 1)
    fork.run()
    assert (path(fork), fork.status) == (path(run), "finished")


def test_a_run_can_be_forked_many_times():
    run = Session(load(counting()), {"n": 0})
    run.step(2)
    for _ in range(50):
        run = run.fork(edit={"n": 1})
    run.run()
    assert (run.status, run.board["end"]) == ("finished", 3)


@pytest.mark.parametrize("asked_before", [False, True])
@pytest.mark.parametrize("log", [None, MemoryLog()])
def test_after_a_reset_an_abandoned_branch_is_reported_once(log, asked_before):
    run = Session(load(counting()), {"n": 0}, store=log, run_id=f"r{asked_before}")
    run.step(4)
    run.goto(2)
    run.edit({"n": 5})
    run.step()
    if asked_before:
        assert run.tree().count(", original") == 1
    run.reset()
    for _ in range(2):
        assert (run.tree().count(", original"), len(run.tree().splitlines())) == (1, 3)
    run.step(2)
    run.reset()
    assert (run.tree().count(", original"), len(run.tree().splitlines())) == (1, 4)


def test_two_runs_diverge_where_their_steps_differ():
    run = session(counting(), {"n": 0})
    run.run()
    fork = run.fork(at=2)
    assert (find_parting(run, fork), find_parting(fork, run), find_parting(run, run)) == (2, 2, 7)
    run.goto(1).step()
    (left,) = [one for one in run.forks if one is not fork]
    assert (find_parting(run, left), find_parting(run, fork), find_parting(fork, left)) == (1, 1, 2)
    assert find_parting(run, session(counting(), {"n": 0})) is None


def test_the_trace_of_a_run_keeps_its_id_when_the_session_is_reset():
    run = Session(load(counting()), {"n": 1})
    trace = run.run()  # nobody has asked for its id yet
    run.reset()
    assert trace.run_id != run.run_id
