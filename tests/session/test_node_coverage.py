from __future__ import annotations

from tests.session.small_sessions import counting, session


def visited(run):
    return dict(run._parts.pictures.view().visited)


def test_counts_follow_the_run_forwards_and_back():
    run = session(counting(), {"n": 0})
    seen = [visited(run)]
    while run.step() is not None:
        seen.append(visited(run))
    assert seen[0] == {}
    assert seen[-1] == {"add": 3, "check": 3, "done": 1}
    for k in [*reversed(range(len(seen))), 4, 0, 6]:
        assert visited(run.goto(k)) == seen[k]


def test_later_visits_are_not_shown_at_earlier_steps():
    run = session(counting(), {"n": 0})
    run.run()
    assert "done" in run._parts.pictures.view().seen_writes
    run.back()
    assert "done" not in run._parts.pictures.view().seen_writes
    edges = {
        (run.recipe.edges[place].source, run.recipe.edges[place].target) for place in run._parts.pictures.view().taken
    }
    assert edges == {("add", "check"), ("check", "add"), ("check", "done")}
    run.goto(1)
    edges = {
        (run.recipe.edges[place].source, run.recipe.edges[place].target) for place in run._parts.pictures.view().taken
    }
    assert edges == {("add", "check")}


def test_a_fork_counts_shared_visits():
    run = session(counting(), {"n": 0})
    run.run()
    fork = run.fork(at=3)
    assert visited(fork) == {"add": 2, "check": 1}
    fork.step()
    assert visited(fork) == {"add": 2, "check": 2}
    assert visited(run) == {"add": 3, "check": 3, "done": 1}
