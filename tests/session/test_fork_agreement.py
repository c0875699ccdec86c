"""A fork at any step is where its parent was there, and what looks back over its start finds what the parent finds."""

from __future__ import annotations

import networkx as nx
import pytest

from tests.session.small_sessions import calling, counting, fan, graph, looping, path, session

RUNS = {
    "line": lambda: session(graph("a", "b", "c")),
    "cycle": lambda: session(counting(), {"n": 0}),
    "loop": lambda: session(looping(graph("x", "y"), times=2)),
    "branches": lambda: session(fan("x", "y")),
    "call": lambda: session(calling(), {"word": "w"}),
}


def standing(run):
    """Return where a run stands, as its public members say."""
    writers = {key: run.who_wrote(key) for key in run.board}
    return (run.position, run.current, repr(run.frontier), repr(run.stack), run.status, dict(run.board), writers)


def stops(run, clauses):
    """Return where a run stops on its way back to the start."""
    run.breakpoints.clear()
    run.breakpoints.add(**clauses)
    results = []
    while run.position:
        run.run_back()
        results.append(run.position)
    run.goto(len(run.trace.steps))
    return results


def clauses_of(run):
    """Return a breakpoint for every key, edge and node that a run has met."""
    frames = run.trace.frames
    yield from ({"key": key} for key in frames.writes["key"].unique())
    pairs = dict.fromkeys(zip(frames.edges["source"], frames.edges["target"], strict=True))
    yield from ({"edge": edge} for edge in pairs)
    for name in frames.steps["node"].unique():
        yield from ({"node": name, "side": side} for side in ("before", "after"))
    yield from ({"step": number} for number in range(1, run.position + 1))


@pytest.mark.parametrize("made", RUNS.values(), ids=RUNS)
def test_a_fork_starts_where_its_parent_was(made):
    run = made()
    run.run()
    for step in range(run.position + 1):
        before = standing(run.goto(step))
        fork = run.fork()
        assert standing(fork) == before
        fork.run()
        run.goto(len(run.trace.steps))
        assert path(fork) == path(run)
        assert standing(fork) == standing(run)


@pytest.mark.parametrize("made", RUNS.values(), ids=RUNS)
def test_a_fork_going_back_stops_where_its_parent_does(made):
    run = made()
    run.run()
    every = [*clauses_of(run)]
    expected = [stops(run, clauses) for clauses in every]
    assert any(len(each) > 1 for each in expected)
    for step in range(run.position + 1):
        fork = run.fork(at=step)
        fork.run()
        assert [stops(fork, clauses) for clauses in every] == expected


@pytest.mark.parametrize("made", RUNS.values(), ids=RUNS)
def test_a_repeated_step_is_the_same_however_often(made):
    run = made()
    run.run()
    last, steps = path(run), len(run.trace.steps)
    for step in range(steps, -1, -1):
        run.goto(step)
        run.edit({"nothing": step})  # begins a new line of steps
        run.run()
        assert path(run) == last
        assert len(run.trace.steps) == steps


def drawn_numbers(fails, rounds=4):
    """Return the numbers that the rounds of a loop draw, each of which may fail and be retried."""
    left = list(fails)

    def draw(rng, drawn):
        number = rng.random()
        if len(drawn) + 1 in left:
            left.remove(len(drawn) + 1)
            raise ValueError(number)
        return {"drawn": [*drawn, number]}

    built_graph = nx.DiGraph(name="drawing")
    built_graph.add_node("draw", function=draw, inputs={"drawn": "drawn"})
    run = session(looping(built_graph, times=rounds), {"drawn": []}, seed=7)
    run.run()
    while run.status == "failed":
        run.retry()
        run.run()
    assert run.status == "finished"
    return run.board["drawn"]


@pytest.mark.parametrize("fails", [(1,), (2, 3), (1, 2, 3, 4)])
def test_each_attempt_of_a_step_draws_the_next_random_number(fails):
    numbers = drawn_numbers((), rounds=8)
    assert len(set(numbers)) == 8
    for number in fails:  # a round that fails uses one up
        del numbers[number - 1]
    assert drawn_numbers(fails) == numbers[:4]
