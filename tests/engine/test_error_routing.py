from __future__ import annotations

import asyncio

import pytest

from agentnb.engine.core.run import DONE, FAILED
from agentnb.engine.core.work import Body, Enter
from agentnb.recipe.model import Edge, Node, Region, Rescue
from agentnb.world.effect import Effect
from tests.engine.graph_shapes import Meeting, branches, go_on, leaf, path, step
from tests.engine.small_runs import data, run_of
from tests.engine.test_scheduler import When, nothing
from tests.session.small_sessions import graph, looping, session
from tests.session.small_sessions import path as steps_of

WAITING = ("on", "handler", "waits")


def fails(work):
    work.write(("half",), 1)
    raise ValueError


def failing(rescue, *edges):
    """Return a run of `f`, which fails, with nodes `on` and `aside` to go to."""
    nodes = [Node("f", "do", params={"do": fails}, rescue=rescue), leaf("on", nothing), leaf("aside", nothing)]
    return run_of(nothing, nodes=nodes, edges=[Edge("n0", "f"), Edge("f", "on"), *edges])


def test_a_node_with_a_recovery_follows_its_edges_after_a_failure():
    def fails(work):
        raise ValueError

    nodes = [Node("f", "do", params={"do": fails}, rescue=Rescue()), leaf("rescue", nothing), leaf("on", nothing)]
    run = run_of(nothing, nodes=nodes, edges=[Edge("n0", "f"), Edge("f", "rescue", "error"), Edge("f", "on")])
    go_on(run)
    assert path(run) == ["n0", "f error", "rescue", "on"]


def test_only_the_writes_of_the_recovery_remain_of_a_failed_step():
    run = failing(Rescue({"answer": [1]}))
    go_on(run)
    assert path(run) == ["n0", "f error", "on"]
    assert data(run) == {"answer": [1]}


@pytest.mark.parametrize(("route", "follows"), [(("aside",), ["aside"]), ((), []), (("aside", "on"), ["aside", "on"])])
def test_a_recovery_may_choose_the_next_node(route, follows):
    run = failing(Rescue(route=route))
    go_on(run)
    assert path(run) == ["n0", "f error", *follows]


@pytest.mark.parametrize("route", [None, ("on",)])
def test_the_target_of_a_recovery_precedes_scheduled_nodes(route):
    nodes = [
        Node("f", "do", params={"do": fails}, rescue=Rescue(route=route)),
        *(leaf(name, nothing) for name in WAITING),
    ]
    edges = [Edge("n0", "f"), Edge("n0", "waits"), Edge("f", "on"), Edge("f", "handler", "error")]
    run = run_of(nothing, nodes=nodes, edges=edges, routing="all")
    go_on(run)
    assert path(run) == ["n0", "f error", "handler", "on", "waits"]


def test_a_condition_after_a_recovery_sees_its_writes():
    nodes = [Node("f", "do", params={"do": fails}, rescue=Rescue({"a": 1})), leaf("yes", nothing)]
    edges = [Edge("n0", "f"), Edge("f", "yes", when=When(lambda board: board["a"] == 1))]
    run = run_of(nothing, nodes=nodes, edges=edges)
    go_on(run)
    assert path(run) == ["n0", "f error", "yes"]


@pytest.mark.parametrize("rescue", [Rescue({"a": 1}, ("nowhere",)), Rescue({"a": 1, 2: 3})])
def test_a_failing_recovery_counts_as_none_and_leaves_nothing(rescue):
    run = failing(rescue)
    assert go_on(run) == FAILED
    assert path(run) == ["n0", "f error"]
    assert data(run) == {}


def test_the_recovery_of_a_composite_node_leaves_it_after_an_inner_failure():
    def opens(work):
        return Enter([Body("r", "child")]) if work.phase == "start" else {}

    nodes = [
        Node("nest", "do", params={"do": opens}, bodies=("r",), rescue=Rescue({"a": 1})),
        Node("f", "do", scope="r", params={"do": fails}),
        leaf("on", nothing),
    ]
    run = run_of(nodes=nodes, edges=[Edge("nest", "on")], regions=[Region("r", ("f",), owner="nest")])
    go_on(run)
    assert path(run) == ["nest enter", "f error", "nest leave error", "on"]
    assert data(run) == {"a": 1}
    assert len(run.frames) == 1


@pytest.mark.parametrize("rescue", [Rescue({"a": 1}, ("nowhere",)), Rescue({"a": 1, 2: 3})])
@pytest.mark.parametrize("handled", [False, True])
def test_a_failing_recovery_of_a_composite_node_counts_as_none(rescue, handled):
    def opens(work):
        return Enter([Body("r", "child")]) if work.phase == "start" else {}

    nodes = [
        Node("nest", "do", params={"do": opens}, bodies=("r",), rescue=rescue),
        Node("f", "do", scope="r", params={"do": fails}),
        leaf("on", nothing),
        leaf("aside", nothing),
    ]
    edges = [Edge("nest", "on"), *([Edge("nest", "aside", "error")] if handled else [])]
    run = run_of(nodes=nodes, edges=edges, regions=[Region("r", ("f",), owner="nest")])
    assert go_on(run) == (DONE if handled else FAILED)
    assert path(run) == ["nest enter", "f error", *(["nest leave error", "aside"] if handled else ["nest error"])]
    assert data(run) == {}
    assert run.history.errors[3] is run.history.errors[2]  # what failed inside is told


def test_the_error_edge_of_the_nearest_enclosing_node_is_taken():
    def breaks():
        raise ValueError

    inner = looping(graph("x", "y", y=breaks), times=2)
    outer = graph("rescue")
    outer.graph["entry"] = "sub"
    outer.add_node("sub", kind="subgraph", graph=inner)
    outer.add_edge("sub", "rescue", kind="error")
    run = session(outer)
    run.run()
    assert steps_of(run) == ["sub enter", "again enter", "x", "y error", "sub leave error", "rescue"]
    for k in reversed(range(run.position)):
        run.goto(k)
    run.run()
    assert (run.status, len(run.stack)) == ("finished", 1)


def test_a_failure_in_one_branch_cancels_the_others_in_queue_order():
    from tests.engine.graph_shapes import branches

    run = branches().run()
    for _ in range(3):
        step(run)
    assert path(run)[-1] == "second cancelled"


def test_calls_of_a_cancelled_step_are_recorded():
    meeting = Meeting()

    async def asks(work):
        await work.call(Effect("llm", "model", {"messages": [{"role": "user", "content": "hi"}]}))
        meeting.begun.add("asked")
        await asyncio.Event().wait()

    async def breaks(work):
        await work.loop()
        await meeting.wait_for("asked")
        raise ValueError("left breaks")

    shape = branches()
    shape.llm = lambda request: "hello"
    for node in shape.nodes:
        if node.id in ("left", "right"):
            node.params["do"] = breaks if node.id == "left" else asks
    run = shape.run()
    go_on(run)
    assert "right cancelled" in path(run)
    (call,) = run.history.calls
    assert (path(run)[call.step - 1], call.error) == ("right cancelled", None)
