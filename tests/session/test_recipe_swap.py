from __future__ import annotations

from decimal import Decimal

import networkx as nx
import pytest

import agentnb as nb
from agentnb.engine.control.budget import Budget
from agentnb.errors import ExecutionError, RecipeError, StoreError
from agentnb.load import load
from agentnb.session.recipe_swap import check_shared, convert_budget, make_continued_plan, make_replay_plan
from tests.session.small_sessions import calling, counting, fan, graph, looping, path, session


def line(*names, **functions):
    return load(graph(*names, **functions))


def refused(run, recipe, step):
    """Return why the steps of a run do not fit a recipe; None where they do."""
    try:
        check_shared(run._parts.run, recipe, step)
    except StoreError as error:
        (problem,) = error.problems
        assert problem.code == "L433"
        return problem.why
    return None


def test_nodes_of_earlier_and_scheduled_steps_are_required():
    run = session(graph("a", "b", "c", "d"))
    run.step(2)
    assert refused(run, line("a", "b", "c", "new"), 2) is None
    assert refused(run, line("b", "c", "d"), 2) == "it has no 'a'"
    assert refused(run, line("a", "b", "d"), 2) == "it has no 'c'"
    assert refused(run, line("a", "b", "d"), 0) is None
    assert refused(run, line("x"), 1) == "it has no 'a', 'b'"


def test_a_node_must_stay_in_its_region():
    run = session(looping(graph("x"), times=2))
    run.step(2)
    outside = looping(graph("y"), times=2)
    outside.add_node("x")
    assert "'x' ran in region 'again' and is now in 'root'" in refused(run, load(outside), 2)
    assert refused(run, load(outside), 0) is None


def test_an_open_frame_requires_its_owner():
    run = session(looping(graph("x"), times=2))
    run.step()
    flat = graph("again", "done")
    flat.add_node("x")
    assert "is open and no longer part of 'again'" in refused(run, load(flat), 1)
    run.run()
    assert "is open" not in refused(run, load(flat), run.position)


def test_steps_of_other_branches_do_not_matter():
    run = session(graph("a", "b", "c"))
    run.run()
    run.goto(1)
    run.set_next("c")
    run.run()
    assert refused(run, line("a", "c"), run.position) is None
    assert refused(run.forks[0], line("a", "c"), 3) == "it has no 'b'"


def test_open_branches_require_their_nodes():
    run = session(fan("x", "y"))
    run.step(2)
    assert refused(run, load(fan("x", "y", "z")), 2) is None
    assert "'y'" in refused(run, load(fan("x")), 2)


def test_a_plan_for_a_replay_needs_no_tools():
    run = session(graph("a"))
    built_graph = graph("a", "b")
    built_graph.nodes["b"].update(kind="tool", function="nobody", inputs={"n": "n"})
    plan = make_replay_plan(run._parts.run, load(built_graph))
    with pytest.raises(RecipeError, match="R203"):
        plan.world.tool("nobody", plan.recipe.nodes["b"])(n=1)
    assert plan.index == {"a": 0, "b": 1}
    with pytest.raises(RecipeError, match="R203"):
        make_continued_plan(run._parts.run, load(built_graph), None, None)
    assert (
        make_continued_plan(run._parts.run, load(built_graph), None, {"nobody": lambda n: n}).world.tools["nobody"](3)
        == 3
    )


def test_omitted_arguments_keep_their_values():
    run = session(graph("a"))
    assert make_continued_plan(run._parts.run, None, None, None) is run._parts.run.plan
    assert make_continued_plan(run._parts.run, None, ["said"], None).recipe is run.recipe
    with pytest.raises(ExecutionError, match="X117"):
        make_continued_plan(run._parts.run, "no recipe", None, None)


def test_limits_of_the_recipe_change_and_those_of_the_session_stay():
    before, now = load(counting()), load(counting())
    object.__setattr__(before, "limits", {"max_steps": 50, "max_cost_usd": 2})
    object.__setattr__(now, "limits", {"max_steps": 80, "max_tokens": 9})
    own_budget = Budget.of(None, before.limits)
    assert convert_budget(own_budget, before, now) == Budget(max_steps=80, max_tokens=9)
    budget = Budget.of({"max_steps": 7, "max_cost_usd": Decimal("1.5")}, before.limits)
    assert convert_budget(budget, before, now) == Budget(max_steps=7, max_cost_usd=Decimal("1.5"), max_tokens=9)
    lifted = Budget.of({"max_steps": None}, before.limits)
    assert convert_budget(lifted, before, now).max_steps is None


# --------------------------------------------------------------------------------------------- forks that go on with it


def test_a_fork_continues_with_another_recipe_and_keeps_its_first_steps():
    run = session(counting(), {"n": 0})
    run.run()
    built_graph = counting(2)
    built_graph.add_node("more", function=lambda board: {"more": board["end"]})
    built_graph.add_edge("done", "more")
    fork = run.fork(2, "longer", recipe=load(built_graph))
    assert (fork.recipe.nodes.keys() - run.recipe.nodes.keys(), path(fork)) == ({"more"}, path(run)[:2])
    fork.run()
    assert path(fork) == ["add", "check", "add", "check", "done", "more"]
    assert (fork.board["more"], run.board["n"]) == (2, 3)
    assert fork.trace.frames.steps.node.tolist() == path(fork)
    assert fork.trace.frames.edges.target.tolist()[-1] == "more"
    fork.goto(1)
    fork.run()
    assert fork.board["more"] == 2
    assert fork.status == "finished"


def test_the_nodes_of_the_other_recipe_may_be_in_any_order():
    run = session(graph("a", "b", "c"))
    run.step(2)
    fork = run.fork(recipe=load(_reordered()))
    fork.run()
    assert path(fork) == ["a", "b", "c", "first"]
    assert [step.node_id for step in fork.trace.steps] == ["a", "b", "c", "first"]


def _reordered():
    built_graph = nx.MultiDiGraph(name="made")
    built_graph.add_node("first", function=lambda board: {"first": sorted(board)})
    for name in ("c", "b", "a"):
        built_graph.add_node(name, function=lambda board, name=name: {name: 7})
    nx.add_path(built_graph, ["a", "b", "c", "first"])
    built_graph.graph["entry"] = "a"
    return built_graph


def test_a_fork_in_the_middle_of_a_loop_and_of_branches_continues():
    run = session(looping(graph("x"), times=3))
    run.step(2)
    fork = run.fork(recipe=load(looping(graph("x", "y"), times=2)))
    fork.run()
    assert path(fork) == ["again enter", "x", "again again", "x", "y", "again leave", "done"]
    run = session(fan("x", "y"))
    run.step(2)
    fork = run.fork(recipe=load(fan("x", "y", y=lambda board: {"y": "new"})))
    fork.run()
    assert (fork.board["x"], fork.board["y"]) == (1, "new")


def test_an_incompatible_fork_is_rejected_and_leaves_nothing():
    run = session(graph("a", "b"))
    run.run()
    with pytest.raises(StoreError, match="it has no 'a'"):
        run.fork(1, recipe=line("b"))
    broken = graph("a", "b")
    broken.nodes["b"].update(kind="agnt")
    with pytest.raises(RecipeError):
        run.fork(1, recipe=load(broken))
    assert (run.forks, run.position) == ((), 2)


def test_a_fork_has_the_previous_and_the_new_tools():
    run = session(calling("look"), {"word": "rain"}, tools={"look": lambda word: "one"})
    run.run()
    built_graph = calling("look")
    built_graph.add_node("also", kind="tool", function="other", inputs={"word": "word"})
    built_graph.add_edge("after", "also")
    fork = run.fork(1, recipe=load(built_graph), tools={"other": lambda word: "two"})
    fork.run()
    assert (fork.board["look"], fork.board["also"]) == ("one", "two")


def test_a_fork_may_restore_a_removed_node():
    run = session(graph("a", "b", "c"))
    run.step()
    less = run.fork(recipe=line("a", "b"))
    less.run()
    second_fork = less.fork(1, recipe=line("a", "b", "c"))
    second_fork.run()
    assert (path(less), path(second_fork)) == (["a", "b"], ["a", "b", "c"])
    assert [step.node_id for step in second_fork.trace.steps] == ["a", "b", "c"]


def test_a_fork_with_an_edit_and_another_recipe_is_replayed_with_the_recipe_of_each_step():
    run = session(counting(), {"n": 0})
    run.run()
    fork = run.fork(2, edit={"n": 5}, recipe=load(counting(9)))
    fork.run()
    assert (fork.board["end"], fork.replay(strict="reads").ok, run.replay().ok) == (9, True, True)
    for start in range(fork.position + 1):
        assert fork.replay(start).ok
    report = fork.replay(recipe=load(counting(1)))
    assert (report.first_divergence.step, report.first_divergence.what) == (2, "edge")
    once_more = fork.fork(recipe=load(counting(9)), tools={"add": lambda n: {"n": n + 1}})
    assert once_more.replay().ok


def test_a_fork_with_another_recipe_is_stored_and_reopened(tmp_path):
    run = session(counting(), {"n": 0}, store=tmp_path / "runs.db")
    run.run()
    built_graph = counting(5)
    built_graph.add_node("more", function=lambda board: {"more": board["end"]})
    built_graph.add_edge("done", "more")
    fork = run.fork(2, recipe=load(built_graph))
    fork.run()
    known, shown = fork.run_id, (path(fork), dict(fork.board))
    fork.close()
    run.close()
    reopened = nb.open(tmp_path / "runs.db", known, recipe=load(built_graph))
    assert (path(reopened), dict(reopened.board)) == shown
