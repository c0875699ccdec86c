from __future__ import annotations

import asyncio
import threading

import networkx as nx
import pytest

import agentnb as nb
from agentnb.dialects.polaris import (
    AllGraphSchedules,
    DevToolsPlugin,
    Graph,
    HooksAPI,
    Res,
    SystemContext,
    SystemInfo,
    system,
)
from tests.dialects.polaris.polaris_graphs import Plan, Result, execute, fail, fix, note, plan, refused, tell, work


def recorded():
    """Return a registry and the list in which it notes every event."""
    api, seen = HooksAPI(), []
    api.register(AllGraphSchedules, "recorded", seen.append)
    return api, seen


def run(graph, **options):
    api, seen = recorded()
    session = nb.Session(nb.load(graph), hooks=api, **options)
    session.run()
    return session, seen


def lines(seen):
    return [" ".join(filter(None, [event.schedule.removeprefix("On"), event.node_id])) for event in seen]


def test_hooks_of_a_chain():
    session, seen = run(Graph("line").add_system(plan).add_system(tell))
    assert lines(seen) == [
        "GraphStart", "SystemStart plan", "SystemComplete plan", "SystemStart tell", "SystemComplete tell",
        "GraphComplete",
    ]  # fmt: skip
    assert {event.run_id for event in seen} == {session.run_id}
    assert (seen[0].node_count, seen[0].node_map) == (2, (("plan", "plan"), ("tell", "tell")))
    assert (seen[-1].nodes_executed, seen[2].duration > 0, seen[-1].duration > 0) == (2, True, True)


def test_hooks_of_a_loop():
    _, seen = run(Graph().add_system(plan).add_loop("again", Plan, lambda plan: plan.done == 2, work))
    assert lines(seen)[3:-1] == [
        "LoopStart again", "LoopIteration again", "SystemStart work", "SystemComplete work", "LoopIteration again",
        "SystemStart work", "SystemComplete work", "LoopEnd again",
    ]  # fmt: skip
    assert [event.iteration for event in seen if event.iteration is not None] == [0, 1]
    assert seen[3].max_iterations == 1000
    assert (seen[-2].iterations, seen[-2].nodes_executed) == (2, 2)


def test_nested_loops_count_their_own_iterations():
    _, seen = run(Graph().add_loop_n("outer", 2, lambda g: g.add_loop_n("inner", 3, note)))
    ends = [(event.node_id, event.iterations, event.nodes_executed) for event in seen if event.iterations is not None]
    assert ends == [("inner", 3, 3), ("inner", 3, 3), ("outer", 2, 8)]
    assert [event.iteration for event in seen if event.iteration is not None] == [0, 0, 1, 2, 1, 0, 1, 2]


def test_a_loop_without_iterations_starts_and_ends():
    _, seen = run(Graph().add_loop_n("never", 0, note))
    assert lines(seen)[1:-1] == ["LoopStart never", "LoopEnd never"]
    assert seen[-2].iterations == 0


@pytest.mark.parametrize("says", [True, False])
def test_hooks_of_a_decision(says):
    _, seen = run(Graph().add_system(plan).add_conditional_branch("ask", Plan, lambda _: says, tell))
    inside = ["SystemStart tell", "SystemComplete tell"] if says else []
    assert lines(seen)[3:-1] == ["DecisionStart ask", *inside, "DecisionComplete ask"]
    assert seen[-2].selected_branch == str(says).lower()


def test_hooks_of_a_switch():
    _, seen = run(Graph().add_system(plan).add_switch("route", Plan, lambda _: "z", {"a": note, "b": note}, tell))
    assert lines(seen)[3:-1] == ["SwitchStart route", "SystemStart tell", "SystemComplete tell", "SwitchComplete route"]
    for event in (seen[3], seen[-2]):
        assert (event.case_count, event.has_default) == (2, True)
    assert (seen[-2].selected_case, seen[-2].used_default) == ("default", True)


def test_parallel_branches_have_hooks_and_their_join_has_none():
    _, seen = run(Graph().add_system(plan).add_parallel("both", [tell, lambda g: g.add_system(note).add_system(work)]))
    hook_lines = lines(seen)
    assert hook_lines[3] == "ParallelStart both"
    assert sorted(hook_lines[4:10]) == sorted(
        f"System{when} {id}" for when in ("Start", "Complete") for id in ("tell", "note", "work")
    )
    assert hook_lines[10:] == ["ParallelComplete both", "GraphComplete"]
    assert (seen[3].branch_count, seen[10].branch_count, seen[10].total_nodes_executed) == (2, 2, 3)
    assert {event.node_id: event.branch for event in seen[4:10]} == {"tell": 0, "note": 1, "work": 1}


def test_hooks_of_handled_and_unhandled_failures():
    graph = Graph().add_system(plan)
    graph.add_error_handler(graph.add_system_node(fail), fix, resume=True).add_system(fail)
    _, seen = run(graph)
    assert lines(seen)[3:] == [
        "SystemStart fail", "SystemError fail", "SystemStart fix", "SystemComplete fix", "SystemStart fail_2",
        "SystemError fail_2", "GraphFailure fail_2",
    ]  # fmt: skip
    assert [event.error for event in seen if event.error] == ["ValueError: it broke"] * 3


def test_hooks_of_timeouts_and_retries():
    @system
    async def slow():
        await asyncio.sleep(60)

    graph = Graph()
    id = graph.add_system_node(slow)
    graph.set_timeout(id, 0.01).set_retry(id, 2).add_timeout_handler(id, note)
    _, seen = run(graph)
    assert lines(seen)[1:4] == ["SystemStart slow", "SystemRetry slow", "SystemTimeout slow"]
    assert (seen[2].attempt, seen[3].timeout) == (2, 0.01)


def test_hooks_of_cancelled_branches():
    started = threading.Event()

    @system
    async def waits():
        started.set()
        await asyncio.sleep(60)

    @system
    def breaks():
        started.wait(30)
        raise ValueError("it broke")

    api, seen = recorded()
    assert refused(Graph().add_parallel("both", [waits, breaks]), hooks=api) == ("SystemError", "breaks")
    assert lines(seen)[-3:] == ["SystemError breaks", "BranchCancelled waits", "GraphFailure breaks"]
    assert seen[-2].branch == 0


def test_an_empty_graph_calls_no_node_hooks():
    api, seen = recorded()
    assert refused(Graph(), hooks=api) == ("EmptyGraph", None)
    assert seen == []


def test_going_back_and_forward_repeats_the_hooks():
    api, seen = recorded()
    session = nb.Session(nb.load(Graph().add_system(plan).add_loop_n("again", 2, note)), hooks=api)
    session.run()
    before = lines(seen)
    seen.clear()
    session.goto(3).run()
    assert lines(seen) == before[7:]
    seen.clear()
    session.reset()
    session.run()
    assert lines(seen) == before


def test_a_replay_and_a_fork_call_no_hooks():
    session, seen = run(Graph().add_system(plan).add_system(tell))
    seen.clear()
    assert session.replay().ok
    session.fork(at=1).run()
    assert seen == []


def test_nodes_of_a_fork_receive_the_values_of_providers():
    @system
    def who(info: Res[SystemInfo]) -> str:
        return info.node_id

    session = nb.Session(nb.load(Graph().add_system(who).add_system(who)), hooks=DevToolsPlugin().build())
    session.run()
    fork = session.fork(at=0)
    fork.step()
    assert fork.board["builtins.str"] == "who"


def test_a_reopened_run_has_hooks_from_there_on(tmp_path):
    graph = Graph().add_system(plan).add_system(work).add_system(tell)
    session = nb.Session(nb.load(graph), store=tmp_path / "runs.db")
    session.step()
    session.close()
    api, seen = recorded()
    nb.open(tmp_path / "runs.db", recipe=nb.load(graph), hooks=api).run()
    assert lines(seen) == [
        "SystemStart work", "SystemComplete work", "SystemStart tell", "SystemComplete tell", "GraphComplete",
    ]  # fmt: skip


def test_a_provider_that_raises_at_the_end_stops_nothing():
    api = HooksAPI()
    api.register_provider(["OnSystemComplete", "OnGraphComplete"], "broken", lambda event: 1 / 0)
    with pytest.warns(UserWarning, match="was removed"):
        assert execute(Graph().add_system(plan).add_system(tell), hooks=api).nodes_executed == 2


def test_an_empty_fixed_loop_counts_its_iterations():
    api, seen = recorded()
    execute(Graph().add_loop_n("again", 3, lambda graph: None), hooks=api)
    assert lines(seen)[1:-1] == ["LoopStart again", "LoopEnd again"]
    assert (seen[2].iterations, seen[2].nodes_executed) == (3, 0)


def test_hooks_serve_every_dialect():
    graph = nx.DiGraph(name="other")
    graph.add_node("add", function=lambda n: {"n": n + 1}, inputs={"n": "n"})
    graph.add_node("again", kind="loop", times=2, graph=nx.DiGraph([]))
    graph.nodes["again"]["graph"].add_node("inner", function=lambda: {"m": 1})
    graph.add_node("route", kind="router", input_key="n", routes={"2": "add2"}, default="add2")
    graph.add_node("add2", kind="noop")
    nx.add_path(graph, ["add", "again", "route"])
    api, seen = recorded()
    session = nb.Session(nb.load(graph), {"n": 1}, hooks=api)
    session.run()
    assert lines(seen) == [
        "GraphStart", "SystemStart add", "SystemComplete add", "LoopStart again", "LoopIteration again",
        "SystemStart inner", "SystemComplete inner", "LoopIteration again", "SystemStart inner",
        "SystemComplete inner", "LoopEnd again", "SwitchStart route", "SwitchComplete route", "SystemStart add2",
        "SystemComplete add2", "GraphComplete",
    ]  # fmt: skip
    assert [event.selected_case for event in seen if event.selected_case] == ["add2"]


def test_a_provider_supplies_resources_and_those_of_a_branch_stay_there():
    @system
    def takes(name: Res[str]) -> Result:
        return Result(name)

    api = HooksAPI()
    api.register_provider("OnSystemStart", "name", lambda event: f"{event.node_id} {event.branch}")
    ctx = SystemContext()
    result = execute(Graph().add_parallel("both", [note, takes]), ctx, api)
    assert result.output(Result) == Result("takes 1")
    assert list(ctx.resources) == []
    execute(Graph().add_system(note), ctx, api)
    assert ctx.resource(str) == "note None"


def test_a_provider_that_raises_fails_the_next_node():
    api = HooksAPI()
    api.register_provider("OnSystemStart", "broken", lambda event: 1 / 0)
    session = nb.Session(nb.load(Graph().add_system(plan).add_system(tell)), hooks=api)
    session.run()
    assert (session.status, session.current, session.position) == ("failed", "plan", 1)
    assert isinstance(session.cause.__cause__, ZeroDivisionError)
    assert session.error.code == "X471"
    assert session.error.what == "hook 'broken' of OnSystemStart failed: ZeroDivisionError: division by zero"


def test_a_hook_sees_outputs_through_its_context():
    api, seen = HooksAPI(), []
    api.register("OnSystemComplete", "seen", lambda event, ctx: seen.append(ctx.output(Plan)))
    execute(Graph().add_system(plan).add_system(work), hooks=api)
    assert seen == [Plan("tea", 0), Plan("tea", 1)]


def test_without_hooks_there_is_no_overhead():
    session = nb.Session(nb.load(Graph().add_system(plan)))
    assert session._parts.run.wrap_perform is None
    assert not session._parts.run.armed
