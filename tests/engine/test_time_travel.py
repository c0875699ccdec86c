from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentnb.board.values import ABSENT
from agentnb.engine.core.drivers import run_plain
from agentnb.engine.core.time_travel import (
    find_history,
    fork_run,
    goto,
    open_tip,
    reopen_branch,
    repair,
    start_branch,
    undo,
)
from agentnb.engine.core.work import Append, Outcome
from agentnb.recipe.model import Edge
from tests.engine.graph_shapes import board, leaf, path
from tests.engine.small_runs import data, one, run_of
from tests.session.small_sessions import add, graph, looping, session


def mixed(work):
    """A node that writes in many ways, by its number."""
    n = work.board.get("n", 0)
    writes = {"n": n + 1, "log": Append(n), **({"even": n} if n % 2 == 0 else {"even": ABSENT})}
    return Outcome(writes, nested_writes=[(("d", str(n % 3), "x"), n)])


def long_run(steps):
    run = run_of(mixed, edges=[Edge("n0", "n0")], inputs={"even": -1, "last": 0})
    seen = [data(run)]
    for _ in range(steps):
        one(run)
        seen.append(data(run))
    return run, seen


def test_one_step_back_at_a_time():
    run, seen = long_run(20)
    for k in reversed(range(20)):
        undo(run)
        assert list(data(run).items()) == list(seen[k].items())
        assert (run.position, run.counted_steps) == (k, k)


def test_goto_works_across_many_checkpoints():
    run, seen = long_run(1500)
    for k in (1500, 3, 1499, 512, 513, 511, 0, 1020, 1500, 700):
        goto(run, k)
        assert (data(run), run.counted_steps, run.position) == (seen[k], k, k)


def test_a_step_from_the_past_starts_a_branch():
    run, seen = long_run(10)
    old = run.history
    goto(run, 4)
    assert open_tip(run)
    one(run)
    assert (run.history is not old, run.chain, run.position) == (True, [old, run.history], 5)
    assert data(run) == seen[5]
    assert [tip for _, tip in run.abandoned_branches] == [10]
    goto(run, 2)
    assert (data(run), find_history(run, 2)) == (seen[2], old)


def test_a_step_at_the_tip_starts_no_branch():
    run, _ = long_run(3)
    assert not open_tip(run)
    assert not open_tip(run, amend=True)
    goto(run, 1)
    goto(run, 3)
    assert not open_tip(run)


def test_the_last_step_is_not_amended_after_a_fork():
    run, _ = long_run(3)
    fork_run(run, run.plan, 3)
    assert not open_tip(run)
    assert open_tip(run, amend=True)
    assert run.history.base == 3


def test_nested_branches_go_back_to_the_start():
    run, seen = long_run(6)
    rng = random.Random(5)
    for _ in range(30):
        goto(run, rng.randrange(run.position + 1))
        start_branch(run)
        for _ in range(rng.randrange(1, 6)):
            one(run)
        for k in rng.sample(range(run.position + 1), min(4, run.position + 1)):
            goto(run, k)
            assert data(run)["n" if k else "last"] == (k or 0)
        goto(run, run.history.tip)
    goto(run, 0)
    assert data(run) == seen[0]


def test_an_abandoned_branch_can_be_visited_again():
    run, seen = long_run(6)
    goto(run, 2)
    open_tip(run)
    one(run)
    reopened = reopen_branch(run, *run.abandoned_branches[0])
    assert (reopened.position, data(reopened), data(run)) == (6, seen[6], seen[3])
    one(reopened)
    assert reopened.position == 7


def test_a_fork_at_the_position_copies_the_current_state():
    run, seen = long_run(5)
    new = fork_run(run, run.plan, 5, "mine")
    one(new)
    assert (data(new)["n"], data(run), new.history.name) == (6, seen[5], "mine")
    undo(new)
    undo(new)
    assert (data(new), new.position) == (seen[4], 4)


MOVES = st.lists(
    st.tuples(st.integers(0, 5), st.sampled_from(["step", "undo", "fork", "goto"])), min_size=3, max_size=40
)


@given(moves=MOVES)
def test_forks_share_their_data_and_never_their_changes(moves):
    first, seen = long_run(6)
    runs = [first]
    for number, move in moves:
        run = runs[number % len(runs)]
        if move == "fork":
            runs.append(fork_run(run, run.plan, run.position))
        elif move == "step":
            open_tip(run)
            one(run)
            seen = seen if run.position < len(seen) else [*seen, data(run)]
        elif move == "undo" and run.position:
            undo(run)
        elif move == "goto":
            goto(run, number * run.position // 5)
        for each in runs:  # all of them do the same steps, so the position alone tells the board
            assert list(data(each).items()) == list(seen[each.position].items())


def test_a_fork_inside_frames_keeps_them_apart():
    counting = session(looping(graph("add", add=lambda board: add(board["n"])), times=4), {"n": 0})
    counting.step(4)
    run = counting._parts.run
    new = fork_run(run, run.plan, 4)
    counting.run()
    while not run_plain(new, once=True):
        pass
    assert (board(new), board(run)) == ({"n": 4, "done": 1},) * 2
    assert len(new.frames) == len(run.frames) == 1


@pytest.mark.parametrize("times", [1, 2])
def test_repair_undoes_rows_beyond_the_position_and_is_idempotent(times):
    run, seen = long_run(4)
    scope = run.root.scope
    run.write(scope, ("n",), 99)
    run.write(scope, ("last",), ABSENT)
    run.write(scope, ("d", "new"), 1)
    run.history.push_activations.append(0)
    run.history.step_activations.append(0)
    for _ in range(times):
        repair(run)
    assert list(data(run).items()) == list(seen[4].items())
    one(run)
    assert (path(run)[-1], data(run)["n"]) == ("n0", 5)


def test_repair_in_the_past_keeps_the_later_steps():
    run, seen = long_run(4)
    goto(run, 2)
    repair(run)
    goto(run, 4)
    assert data(run) == seen[4]


@given(st.lists(st.tuples(st.sampled_from(["goto", "fork", "step", "write"]), st.integers(0, 120)), max_size=12))
def test_a_restored_state_changes_with_no_other_run(moves):
    counting_run, seen = long_run(120)
    runs = [counting_run]
    for number, (verb, at) in enumerate(moves):
        run = runs[at % len(runs)]
        if verb == "goto":
            goto(counting_run, at)
        elif verb == "fork":
            runs.append(fork_run(counting_run, counting_run.plan, at))
        elif verb == "write" and run is not counting_run:
            open_tip(run, amend=True)
            run.write(run.root.scope, ("n",), f"of {number}")
            repair(run)
        elif run is not counting_run:
            one(run)
        assert data(counting_run) == seen[counting_run.position]
        assert data(fork_run(counting_run, counting_run.plan, at)) == seen[at]


def test_frames_that_are_open_at_a_checkpoint_are_open_again():
    run = session(looping(graph("one", "two"), times=400), budget={"max_steps": 10**6})
    run.run()
    nodes = [step.node_id for step in run.trace.steps]
    checkpoints = [checkpoint.step for checkpoint in run._parts.run.history.checkpoints][1:]
    assert len(checkpoints) > 1
    for at in (checkpoint + 40 + n for checkpoint in checkpoints for n in range(3)):
        run.goto(at)
        assert (run.current, len(run.stack)) == (nodes[at], 1 if nodes[at] == "again" else 2)


def test_going_back_restores_the_count_of_steps():
    nodes = [replace(leaf(f"m{n}", lambda work: {"n": 1}), counted=n % 2 == 0) for n in range(4)]
    edges = [Edge("n0", "m0"), *(Edge(f"m{n}", f"m{n + 1}") for n in range(3))]
    run = run_of(lambda work: {"n": 0}, nodes=nodes, edges=edges)
    counts = [run.counted_steps]
    for _ in range(5):
        one(run)
        counts.append(run.counted_steps)
    assert counts == [0, 1, 2, 2, 3, 3]
    for at in (4, 3, 2, 1, 0):
        undo(run)
        assert (run.position, run.counted_steps) == (at, counts[at])
    for at in (2, 5, 3, 0, 4):
        goto(run, at)
        assert run.counted_steps == counts[at]
