from __future__ import annotations

import networkx as nx
import pytest

from agentnb import ABSENT
from agentnb.session.run_queries import get_first_keys
from tests.session.small_sessions import add, asking, broken, counting, fan, graph, path, session


def test_a_failure_is_reported_at_its_step_alone():
    run = session(broken())
    run.run()
    assert [run.goto(k).status for k in range(3)] == ["ready", "paused", "failed"]
    run.edit({"fixed": True})
    assert run.status == "failed"
    run.retry()
    assert run.status == "paused"


def test_a_fork_of_a_failed_run_is_at_the_same_failure():
    run = session(broken())
    run.run()
    fork = run.fork()
    assert (fork.status, fork.error.code, type(fork.cause)) == ("failed", "X100", ValueError)
    fork.edit({"fixed": True}).run()
    assert (fork.status, run.status) == ("finished", "failed")


def test_a_failure_in_a_parallel_branch_takes_precedence_over_cancelled_ones():
    def breaks():
        raise ValueError("b broke")

    run = session(fan("a", "b", "c", b=breaks))
    run.run()
    assert (run.status, run.current) == ("failed", "b")
    assert "b broke" in run.error.what


def test_a_question_without_a_person_is_a_problem_but_not_a_failure():
    run = session(asking())
    run.run()
    assert (run.status, run.error.code) == ("waiting", "X110")
    assert "'ask'" in run.error.what
    assert run.trace.outcome["error"] == run.error.what
    run.answer("yes")
    assert run.error is None


def test_the_outcome_of_a_run_that_has_not_started_is_none():
    run = session(graph("a"))
    assert run.trace.outcome is None
    run.step()
    assert run.trace.outcome == {"status": "finished", "steps": 1}


@pytest.mark.parametrize("deleted", ["d", "d.x"])
def test_a_delete_counts_as_a_write(deleted):
    run = session(graph("a", "b", a=lambda: {"d": {"x": 1}}, b=lambda: {deleted: ABSENT}))
    run.run()
    if deleted == "d":
        assert run.who_wrote("d.x") == 2
        assert run.who_wrote("d.x", at=1) == 1
    else:  # a key of that name was never there: nothing was written
        assert run.who_wrote("d.x") == 1


def test_who_wrote_in_a_fork_includes_shared_steps():
    run = session(counting(), {"n": 0})
    run.run()
    fork = run.fork(at=4)
    assert (fork.who_wrote("n"), fork.who_wrote("end")) == (3, None)
    fork.run()
    assert (fork.who_wrote("n"), fork.who_wrote("end")) == (5, 7)


def test_who_wrote_works_inside_an_isolated_subgraph():
    inner = graph("a", "b")
    built_graph = nx.DiGraph()
    built_graph.add_node("sub", kind="subgraph", graph=inner, inputs={}, outputs={"a": "a"})
    run = session(built_graph)
    run.step(2)
    assert (run.current, run.who_wrote("a")) == ("b", 2)
    run.run()
    assert (run.who_wrote("a"), run.who_wrote("b")) == (4, None)


def test_the_view_for_a_drawing_has_values_and_marks():
    run = session(counting(), {"n": 0})
    run.step(2)
    view = run._parts.pictures.view()
    assert (view.current, dict(view.visited)) == ("add", {"add": 1, "check": 1})
    assert (dict(view.seen_reads)["add"], dict(view.seen_writes)["add"]) == ({"n"}, {"n"})
    run.step()
    assert (run._parts.pictures.view().written, run._parts.pictures.view().read) == ({"n"}, {"n"})
    assert run.goto(0)._parts.pictures.view().visited == {}


def test_the_view_inside_a_frame_marks_the_owners():
    built_graph = nx.DiGraph()
    built_graph.add_node("loop", kind="loop", graph=graph("a", "b"), times=2)
    run = session(built_graph)
    run.step(2)
    view = run._parts.pictures.view()
    assert (view.current, view.next) == ("b", {"loop"})


def test_keys_that_inputs_read_are_listed():
    run = session(counting(), {"n": 0})
    assert get_first_keys(run.recipe.nodes["add"]) == ["n"]
    assert get_first_keys(run.recipe.nodes["check"]) == []
    assert add(1) == {"n": 2}
    assert path(run) == []


def test_writes_in_other_scopes_are_not_marked():
    inner = nx.DiGraph()
    inner.add_node("deep", function=lambda: {"n": 7})
    outer = nx.DiGraph()
    outer.add_node("inner", graph=inner, inputs={}, outputs={"m": "n"})
    run = session(outer, {"n": 1})
    run.step(2)
    assert (run.current, run.board["n"], run._parts.pictures.view().written) == ("inner", 1, frozenset())
    run.step()
    assert run._parts.pictures.view().written == {"m"}
