from __future__ import annotations

import pytest

from agentnb.errors import ExecutionError
from tests.session.small_sessions import boards, counting, graph, session


def test_back_and_goto_stop_anywhere_and_nothing_is_lost():
    run = session(counting(), {"n": 0})
    seen = boards(run)
    tip = run.position
    for k in [*reversed(range(tip + 1)), 3, 0, tip, 1]:
        assert run.goto(k) is run
        assert (run.position, dict(run.board), len(run.trace)) == (k, seen[k], tip)
    run.goto(tip)
    assert run.back(2).position == tip - 2
    assert run.back(99).position == 0
    assert run.back().position == 0


@pytest.mark.parametrize("k", [-1, 99, True, "2", 1.0, None])
def test_a_missing_step_is_a_problem(k):
    run = session(graph("a", "b"))
    run.run()
    with pytest.raises(ExecutionError, match="X111"):
        run.goto(k)
    assert run.position == 2


def test_run_back_goes_back_to_a_condition():
    run = session(counting(), {"n": 0})
    run.run()
    for until, position in (("check", 5), ("n == 1", 2), (1, 1), (None, 0)):
        run.run_back(until=until)
        assert run.position == position
    run.run_back()
    assert run.position == 0


def test_run_back_accepts_json_logic_and_callables():
    run = session(counting(), {"n": 0})
    run.run()
    run.run_back({"<": [{"var": "n"}, 3]})
    assert run.position == 4
    run.run_back(lambda board: board["n"] == 0)
    assert run.position == 0


def walked(**clauses):
    """Run to the end with one breakpoint that is new then, and walk back; return where it stopped each time."""
    run, results = session(counting(), {"n": 0}), []
    run.run()
    point = run.breakpoints.add(**clauses)
    while run.position:
        run.run_back()
        results.append(run.position)
    assert point.hits == 0
    return results


@pytest.mark.parametrize(
    ("clauses", "where"),
    [
        ({"node": "check"}, [5, 3, 1, 0]),
        ({"node": "check", "side": "after"}, [6, 4, 2, 0]),
        ({"node": "check", "once": True, "on_hit": 3}, [5, 3, 1, 0]),
        ({"edge": ("check", "add")}, [4, 2, 0]),
        ({"key": "n"}, [5, 3, 1, 0]),
        ({"when": "n == 2"}, [4, 3, 0]),
        ({"step": 4}, [4, 0]),
        ({"error": True}, [0]),
        ({"call": "*"}, [0]),
    ],
)
def test_run_back_stops_at_breakpoints_and_counts_no_hit(clauses, where):
    assert walked(**clauses) == where


def test_a_breakpoint_stops_run_back_before_its_target():
    run = session(counting(), {"n": 0})
    run.run()
    point = run.breakpoints.add("check")
    assert (run.run_back(2).steps[0].step, run.position, run.stopped_by) == (1, 5, point)
    point.enabled = False
    run.run_back(2)
    assert (run.position, run.stopped_by) == (2, None)


def test_run_back_to_a_later_step_does_not_move():
    run = session(counting(), {"n": 0})
    run.run()
    run.goto(3)
    for until in (3, 5, 99):
        run.run_back(until)
        assert run.position == 3
    run.run_back(0)
    assert run.position == 0


def test_in_a_fork_a_breakpoint_at_the_previous_step_is_found():
    run = session(counting(), {"n": 0})
    run.step(4)
    fork = run.fork(at=2)
    fork.step(2)
    fork.breakpoints.add(key="n")
    places = []
    while fork.position:
        fork.run_back()
        places.append(fork.position)
    assert places == [3, 1, 0]
    fork.goto(4).breakpoints.clear()
    fork.breakpoints.add(edge=("check", "add"))
    fork.run_back()
    assert fork.position == 2
