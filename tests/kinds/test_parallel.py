from __future__ import annotations

import asyncio
import threading
from itertools import pairwise

import pytest

from agentnb.board.values import ABSENT
from agentnb.engine.core.work import Append
from agentnb.recipe.model import Edge, Node, Recipe, Region, Rescue
from agentnb.session import Session
from tests.session.small_sessions import path

LONG = 30.0  # seconds after which two that wait for one another have failed to meet


def function(name, does=None, scope="root", **more):
    return Node(name, "function", scope=scope, params={"function": does or (lambda: {name: 1})}, **more)


def human(name, scope):
    return Node(name, "human", scope=scope, params={"prompt": f"{name}?", "output": name})


def branching(*branches, after=True, limits=None, errors=None):
    """Return a recipe: a section of these branches, each a line of nodes or of names; then `done`."""
    nodes = [Node("both", "parallel", bodies=tuple(f"branch{n}" for n in range(len(branches))), counted=False)]
    edges, regions = [Edge("both", "done")] if after else [], {"root": Region("root", ("both",))}
    for number, line in enumerate(branches):
        scope = f"branch{number}"
        line_nodes = [function(each) if isinstance(each, str) else each for each in line]
        line_nodes = [Node(**{**_fields(node), "scope": scope}) for node in line_nodes]
        edges += [Edge(one.id, two.id) for one, two in pairwise(line_nodes)]
        regions[scope] = Region(scope, (line_nodes[0].id,), owner="both")
        nodes += line_nodes
    nodes += [function("done")] if after else []
    edges += [Edge("both", "done", "error")] if errors else []
    by_id = {node.id: node for node in nodes}
    return Recipe("test", "test", by_id, tuple(edges), ("both",), regions=regions, limits=limits or {})


def _fields(node):
    return {name: getattr(node, name) for name in Node.__slots__}


def meeting(count=2):
    """Return a function for so many nodes that none of them leaves before all of them have come."""
    barrier = threading.Barrier(count, timeout=LONG)

    def meet():
        barrier.wait()
        return {}

    return meet


def stepped(session):
    while session.step() is not None and session.status != "failed":
        pass
    return session


# ------------------------------------------------------------------------------------------------- at the same time


@pytest.mark.parametrize("count", [2, 12])
def test_any_number_of_sync_branches_run_concurrently(count):
    meet = meeting(count)
    run = Session(branching(*([function(f"n{n}", meet)] for n in range(count))))
    run.run()
    assert (run.status, run.position) == ("finished", count + 3)


def test_async_branches_run_concurrently():
    async def main():
        barrier = asyncio.Barrier(2)

        async def meet():
            async with asyncio.timeout(LONG):
                await barrier.wait()
            return {}

        run = Session(branching([function("a", meet)], [function("b", meet)]))
        await run.arun()
        assert run.status == "finished"

    asyncio.run(main())


def test_a_run_in_an_event_loop_runs_branches_concurrently():
    async def main():
        meet = meeting()
        run = Session(branching([function("a", meet)], [function("b", meet)]))
        await run.start().wait(LONG)
        assert run.status == "finished"

    asyncio.run(main())


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_a_run_continued_in_the_middle_runs_the_rest_concurrently(steps):
    meet = meeting()
    run = Session(branching(["a1", "a2", function("a3", meet)], [function("b", meet)]))
    run.step(steps)
    run.run()
    assert run.status == "finished"


def test_a_nested_parallel_node_runs_concurrently_with_the_other_branches():
    inner, after = meeting(3), meeting()
    recipe = branching([Node("in", "parallel", bodies=("x", "y")), function("a", after)],
                       [function("b", inner), function("b2", after)])  # fmt: skip
    nodes = dict(recipe.nodes) | {name: function(name, inner, name) for name in "xy"}
    regions = dict(recipe.regions) | {name: Region(name, (name,), owner="in") for name in "xy"}
    run = Session(Recipe("nested", "test", nodes, recipe.edges, ("both",), regions=regions))
    run.run()
    assert run.status == "finished"


# ------------------------------------------------------------------------------------------------- what they leave


@pytest.mark.parametrize("first", ["a", "b"])
def test_the_later_branch_wins_whichever_ends_first(first):
    ended = threading.Event()

    def write(name):
        def do():
            if name != first:
                assert ended.wait(LONG)
            return {"both": name, name: True}

        return do

    def end():
        ended.set()
        return {}

    lines = {name: [function(name, write(name)), *([function("end", end)] if name == first else [])] for name in "ab"}
    run = Session(branching(*lines.values()))
    run.run()
    assert dict(run.board) == {"both": "b", "a": True, "b": True, "done": 1}
    order = [name for name in path(run) if name in lines]
    assert order[0] == first
    wrote = run.trace.steps[run.position - 2]
    assert (wrote.node_id, wrote.phase) == ("both", "leave")
    assert wrote.observation == {"branch0": ["both", "a"], "branch1": ["both", "b"]}


def test_stepping_and_running_leave_the_same_board():
    def count(board):
        return {"n": board["n"] + 1, "log": [*board["log"], "x"]}

    recipe = branching([function("a", count), function("a2", count)], [function("b", count)])
    inputs = {"n": 0, "log": []}
    run = Session(recipe, inputs)
    run.run()
    assert dict(run.board) == dict(stepped(Session(recipe, inputs)).board) == {"n": 1, "log": ["x"], "done": 1}


def test_a_branch_sees_the_earlier_values_and_its_own_writes():
    seen = {}

    def look(name):
        return lambda board: seen.setdefault(name, dict(board)) and {}

    run = stepped(Session(branching(["a", function("a2", look("a"))], ["b", function("b2", look("b"))]), {"x": 0}))
    assert seen == {"a": {"x": 0, "a": 1}, "b": {"x": 0, "b": 1}}
    assert dict(run.board) == {"x": 0, "a": 1, "b": 1, "done": 1}


def test_the_outer_board_does_not_change_while_branches_run():
    run = Session(branching(["a"], ["b"]), {"x": 0})
    run.step(4)
    assert [run.trace.state_at(k) for k in (2, 3)] == [{"x": 0}, {"x": 0}]
    assert run.trace.state_at(4) == {"x": 0, "a": 1, "b": 1}


def test_a_key_deleted_by_a_branch_is_gone_unless_a_later_branch_wrote_it():
    deleted = {"x": ABSENT, "y": ABSENT, "never": ABSENT}
    run = Session(branching([function("a", lambda: deleted)], [function("b", lambda: {"y": 2})]), {"x": 1, "y": 1})
    run.run()
    assert dict(run.board) == {"y": 2, "done": 1}
    run = Session(branching([function("b", lambda: {"y": 2})], [function("a", lambda: deleted)]), {"x": 1, "y": 1})
    run.run()
    assert dict(run.board) == {"done": 1}


def test_of_two_branches_that_append_to_one_list_the_later_one_is_kept():
    def adds(item):
        return [function(item, lambda: {"log": Append(item)})]

    run = Session(branching(adds("a"), adds("b")), {"log": ["start"]})
    run.run()
    assert run.board["log"] == ["start", "b"]


def test_a_parallel_node_without_nodes_ends_at_once():
    run = Session(branching(["a"], ["b"], after=False))
    run.run()
    assert (run.status, dict(run.board)) == ("finished", {"a": 1, "b": 1})


# ------------------------------------------------------------------------------------------------- moving about in it


def test_one_node_of_one_branch_is_a_step():
    run = stepped(Session(branching(["a", "a2"], ["b"])))
    assert path(run) == ["both enter", "a", "a2", "b", "both leave", "done"]


def test_every_step_can_be_gone_back_to_forked_and_run_again_from():
    run = Session(branching(["a", "a2"], ["b", "b2"]), {"x": 0})
    run.run()
    end, tip = dict(run.board), run.position
    for k in reversed(range(tip)):
        fork = run.fork(k)
        fork.run()
        assert (fork.status, dict(fork.board)) == ("finished", end)
        run.goto(k).run()
        assert (run.status, dict(run.board)) == ("finished", end)
        run.goto(k)


def test_an_edit_in_a_branch_belongs_to_the_branch():
    run = Session(branching(["a", "a2"], [function("b", lambda board: {"b": board.get("mine")})]))
    run.step(2)
    run.edit({"mine": 7})
    run.run()
    assert (run.board["mine"], run.board["b"]) == (7, None)


@pytest.mark.parametrize("node", ["a", "a2", "b", "b2"])
def test_a_breakpoint_in_any_branch_stops_before_its_node(node):
    run = Session(branching(["a", "a2"], ["b", "b2"]))
    run.breakpoints.add(node=node)
    run.run()
    assert (run.status, run.current, run.stopped_by.node) == ("paused", node, node)
    assert node not in path(run)
    run.run()
    assert (run.status, run.breakpoints.rows[1].hits) == ("finished", 1)


@pytest.mark.parametrize("node", ["a", "a2", "b", "b2"])
def test_a_breakpoint_after_a_node_reports_where_it_stopped(node):
    run = Session(branching(["a", "a2"], ["b", "b2"]))
    run.breakpoints.add(node=node, side="after")
    run.run()
    assert (run.status, run.stopped_by.node) == ("paused", node)
    assert node in path(run)
    run.run()
    assert run.status == "finished"


@pytest.mark.parametrize("node", ["a2", "b", "b2", "both", "done"])
def test_run_stops_before_a_node_of_any_branch(node):
    run = Session(branching(["a", "a2"], ["b", "b2"]))
    run.step()
    run.run(until=node)
    assert run.current == node
    run.run()
    assert run.status == "finished"


def test_a_condition_of_a_breakpoint_reads_the_board_of_the_branch():
    run = Session(branching(["a", "a2"], ["b", "b2"]))
    run.breakpoints.add(node="b2", when="b == 1 and a is undefined")
    run.run()
    assert run.current == "b2"


def test_max_steps_holds_in_branches():
    run = Session(branching(["a", "a2"], ["b", "b2"]))
    for number in range(1, 8):
        run.run(max_steps=1)
        assert run.position == number
    assert run.status == "finished"


@pytest.mark.parametrize("most", range(6))
def test_the_budget_holds_in_branches(most):
    recipe = branching(["a", "a2"], ["b", "b2"], limits={"max_steps": most})
    for run in (Session(recipe), stepped(Session(recipe))):
        run.run()
        assert run.status == ("finished" if most == 5 else "exhausted")
        assert sum(node not in ("both enter", "both leave") for node in path(run)) == most


# ------------------------------------------------------------------------------------------------- people and failures


def test_a_branch_that_waits_for_a_person_does_not_block_others():
    run = Session(branching([human("ask", "branch0"), "after"], ["b", "b2"]))
    run.run()
    assert (run.status, path(run)) == ("waiting", ["both enter", "b", "b2"])
    run.run()
    assert (run.status, run.position) == ("waiting", 3)
    run.answer("yes")
    run.run()
    assert dict(run.board) == {"ask": "yes", "after": 1, "b": 1, "b2": 1, "done": 1}


def test_stepping_continues_in_the_other_branches_too():
    run = Session(branching([human("ask", "branch0"), "after"], ["b", "b2"]))
    run.step()
    assert (run.step(), run.status) == (None, "waiting")
    assert [run.step().node_id, run.step().node_id, run.step()] == ["b", "b2", None]
    assert run.status == "waiting"
    assert run.answer("yes").node_id == "ask"
    assert stepped(run).board["ask"] == "yes"


def test_two_waiting_branches_are_answered_in_any_order_and_each_is_a_step():
    run = Session(branching([human("p", "branch0")], [human("q", "branch1"), "after"]))
    run.run()
    assert [one.node for one in run.pending] == ["p", "q"]
    assert run.answer("Q", node="q").node_id == "q"
    run.run()
    assert (run.status, path(run)) == ("waiting", ["both enter", "q", "after"])
    run.answer("P")
    run.run()
    assert dict(run.board) == {"p": "P", "q": "Q", "after": 1, "done": 1}


def test_the_budget_holds_beside_a_waiting_branch():
    run = Session(branching([human("ask", "branch0")], ["b", "b2"]), budget={"max_steps": 1})
    run.run()
    run.step()
    assert path(run) == ["both enter", "b"]


def breaking(state):
    def does():
        if state["broken"]:
            raise ValueError("it broke")
        return {"bad": 1}

    return function("bad", does)


def test_a_failure_stays_at_its_node_and_the_branches_continue_after_the_fix():
    state = {"broken": True}
    for move in (lambda run: run.run(), stepped):
        state["broken"] = True
        run = Session(branching(["a", "a2"], [breaking(state), "b"]))
        move(run)
        assert (run.status, run.current, run.error.code) == ("failed", "bad", "X100")
        state["broken"] = False
        move(run)
        assert (run.status, dict(run.board)) == ("finished", {"a": 1, "a2": 1, "bad": 1, "b": 1, "done": 1})


def test_a_failed_node_can_be_skipped():
    run = Session(branching(["a"], [breaking({"broken": True}), "b"]))
    run.run()
    run.skip({"bad": "made up"})
    run.run()
    assert dict(run.board) == {"a": 1, "bad": "made up", "b": 1, "done": 1}


@pytest.mark.parametrize(("rescue", "end"), [(Rescue({"x": 1}), {"x": 1, "b": 1}), (Rescue({"x": 1}, ()), {"x": 1})])
def test_a_recovered_node_continues_or_ends_its_branch(rescue, end):
    bad = breaking({"broken": True})
    run = Session(branching([Node(**{**_fields(bad), "rescue": rescue}), "b"], ["c"]))
    run.run()
    assert dict(run.board) == end | {"c": 1, "done": 1}


def test_a_failure_handled_by_the_parallel_node_discards_all_branches():
    run = Session(branching(["a"], [breaking({"broken": True})], errors=True))
    stepped(run)
    assert path(run) == ["both enter", "a", "bad error", "both leave error", "done"]
    assert dict(run.board) == {"done": 1}
