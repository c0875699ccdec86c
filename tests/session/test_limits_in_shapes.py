"""The limits of what events set off, and every limit in every shape."""

from __future__ import annotations

from dataclasses import fields
from decimal import Decimal

import pytest

from agentnb.board.values import ABSENT
from agentnb.engine.control.budget import Budget
from agentnb.recipe.model import Edge, Node, Region
from tests.engine.graph_shapes import SHAPES, leaf, shape_of
from tests.session.budget_sessions import budgeted, listening
from tests.session.small_sessions import graph, path, session
from tests.session.test_limits import ended, limited

LIMITS = [field.name for field in fields(Budget)]

# ------------------------------------------------------------------------------------------- what events set off


@pytest.mark.parametrize(
    ("name", "limit", "steps"),
    [
        *[("max_events", limit, steps) for limit, steps in enumerate([0, 2, 4, 5])],
        *[("max_behavior_calls", limit, limit) for limit in range(6)],
        *[("max_depth", limit, steps) for limit, steps in enumerate([0, 4])],
        *[("max_steps", limit, limit) for limit in range(6)],
    ],
)
def test_a_reactive_run_ends_before_exceeding_a_limit(name, limit, steps):
    run, all_steps = budgeted("reactive", {name: limit}), shape_of("reactive").steps
    run.run()
    assert ended(run) == (steps, "exhausted", name)
    assert path(run) == all_steps[:steps]
    assert (run.step(), run.position, run.status.limit) == (None, steps, name)
    run.set_budget(**{name: limit + 1}).run()
    assert run.position > steps
    run.set_budget(**{name: None}).run()
    assert (path(run), run.status) == (all_steps, "idle")


@pytest.mark.parametrize(("name", "limit"), [("max_events", 4), ("max_behavior_calls", 6), ("max_depth", 2)])
def test_a_reactive_run_within_its_limit_is_idle(name, limit):
    run = budgeted("reactive", {name: limit})
    run.run()
    assert (ended(run), run.status.left[name]) == ((6, "idle", None), 0)
    run.emit("hello", "cid")
    assert run.status == ("paused" if name == "max_depth" else "exhausted")


def test_a_started_event_reaches_all_listeners():
    names = "abc"
    run = listening(*(leaf(name, lambda work: {}, kind="keep", on=("go",)) for name in names), budget={"max_events": 1})
    run.emit("go").emit("go")
    assert [run.step().node_id for _ in names] == list(names)
    assert (run.step(), run.status.limit, run.current) == (None, "max_events", "a")


def test_events_without_listeners_count_when_emitted():
    run = session(graph("a", "b", "c"), budget={"max_events": 2})
    run.emit("x")
    assert run.status == "ready"
    run.emit("y")
    assert ended(run) == (0, "exhausted", "max_events")


def test_a_cycle_that_emits_unheard_events_ends():
    def tick(work):
        work.emit("tick")

    run = listening(
        leaf("on", tick), leaf("ear", tick, on=("never",)), budget={"max_events": 5}, edges=[Edge("on", "on")],
        entry=["on"],
    )  # fmt: skip
    run.run()
    assert ended(run) == (6, "exhausted", "max_events")  # the turn of the last one has not come yet


def answering(work):
    work.emit("go", (work.event.payload or 0) + 1)


def test_an_endless_causal_chain_of_events_ends_at_max_depth():
    run = listening(leaf("on", answering, kind="keep", on=("go",)), budget={"max_depth": 7})
    run.emit("go")
    run.run()
    assert (ended(run), run.status.used["max_depth"]) == ((7, "exhausted", "max_depth"), 7)
    for step in (3, 6, 0, 7):
        assert run.goto(step).status.used["max_depth"] == step


def test_inner_events_are_caused_by_the_event_of_their_node():
    nest = Node("nest", "nest", bodies=("in",), params={"policy": "shared"}, on=("go",))
    run = listening(
        nest, leaf("deep", lambda work: work.emit("go") and {}, scope="in"),
        regions=[Region("in", ("deep",), owner="nest")], budget={"max_depth": 3},
    )  # fmt: skip
    run.emit("go")
    run.run()
    assert ended(run) == (9, "exhausted", "max_depth")


def test_depth_counts_along_a_fork_and_not_along_abandoned_steps():
    run = listening(leaf("on", answering, kind="keep", on=("go",)), budget={"max_depth": 5})
    run.emit("go")
    run.run(max_steps=3)
    fork = run.fork()
    fork.run()
    assert ended(fork) == (5, "exhausted", "max_depth")
    run.goto(1).emit("go", 100)  # evt_003 here is another than evt_003 there: one from outside
    run.run(max_steps=2)
    assert [event.cause for event in run._parts.run.events()] == [None, "evt_001", None, "evt_002", "evt_003"]
    assert run.status.used["max_depth"] == 2


def test_an_event_of_an_abandoned_branch_does_not_count_here():
    def fails(work):
        return {"seen": work.board["fixed"]}

    run = listening(leaf("on", fails, on=("go",)), budget={"max_events": 2})
    run.edit({"fixed": 1}).emit("go").emit("go")
    run.run()
    assert (run.position, run.status.used["max_events"]) == (2, 2)
    fork = run.fork(at=0, edit={"fixed": ABSENT})
    assert [fork.retry().status for _ in range(3)] == ["error"] * 3
    fork.skip()
    assert fork.status.used["max_events"] == 1  # there the second one began in step 2
    fork.edit({"fixed": 1}).run()
    assert (path(fork)[3:], dict(fork.status.left)) == (["on skipped", "on"], {"max_events": 0})


def patching(count):
    def patch(work):
        for _ in range(count):
            work.emit("patch.applied", {})

    return leaf("patch", patch, kind="keep", on=("go",))


@pytest.mark.parametrize(("limit", "each", "steps"), [(0, 1, 0), (2, 1, 2), (3, 2, 2), (1, 5, 1)])
def test_max_patches_ends_a_run(limit, each, steps):
    run = listening(patching(each), budget={"max_patches": limit})
    for _ in range(4):
        run.emit("go")
    run.run()
    assert ended(run) == (steps, "exhausted", "max_patches")
    assert run.status.used["max_patches"] == steps * each  # what has begun ends
    run.set_budget(max_patches=None).run()
    assert run.position == 4


def test_patches_of_a_graph_count_too():
    built_graph = graph("a", "b")
    run = session(built_graph, budget={"max_patches": 1})
    run.step()
    run.emit("patch.applied")
    assert ended(run) == (1, "exhausted", "max_patches")


def test_nodes_without_events_do_not_count_as_behavior_calls():
    run = limited(graph("a", "b"), {"max_behavior_calls": 0, "max_depth": 0})
    assert (run.status, run.status.used["max_behavior_calls"]) == ("finished", 0)


# --------------------------------------------------------------------------------------- every limit, in every shape


# The model inside the nested agent has no price, which a limit of costs warns of.
UNPRICED = pytest.mark.filterwarnings("ignore:max_cost_usd")


@UNPRICED
@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_limit_stops_a_shape_or_does_not_affect_it(shape, name):
    orders = [shape_of(shape).ran or shape_of(shape).steps, shape_of(shape).steps]
    orders.append([{"first": "second", "second": "first"}.get(step, step) for step in orders[0]])  # as threads end
    for limit in range(10):
        run = budgeted(shape, {name: limit} if name != "max_seconds" else {name: limit * 10**6})
        run.run()
        assert run.error is None or name == "max_subgraph_depth"
        assert (run.status == "exhausted") == (run.status.limit is not None) == (run.status.limit == name)
        if name in ("max_steps", "max_events", "max_behavior_calls", "max_depth", "max_frames"):
            assert run.status.used[name] <= limit
        if run.status == "exhausted":
            position = run.position
            assert any(path(run) == steps[:position] for steps in orders)
            assert (run.step(), run.position) == (None, position)
            run.set_budget(**{name: None}).run()
            assert run.position > position
        assert run.status in ("finished", "idle")
        assert dict(run.board) == shape_of(shape).end


@UNPRICED
@pytest.mark.parametrize("shape", SHAPES)
def test_used_and_remaining_amounts_add_up_to_the_limit_everywhere(shape):
    budget = {**dict.fromkeys(LIMITS, 100), "max_cost_usd": Decimal("0.7"), "max_seconds": 10**6}
    run = budgeted(shape, budget)
    run.run()
    results = {}
    for position in (*range(run.position + 1), *reversed(range(run.position + 1))):
        status = run.goto(position).status
        assert list(status.used) == list(status.left) == LIMITS
        for name in LIMITS:
            assert status.used[name] + status.left[name] == pytest.approx(budget[name])
            if name not in ("max_frames", "max_subgraph_depth"):  # how deep it stands there
                later = results.setdefault((name, position), status.used[name])
                assert later == status.used[name]
                assert status.used[name] >= results.get((name, position - 1), 0)
    assert results["max_steps", run._parts.run.history.tip] == sum(
        step.phase in ("run", "enter") and step.status != "cancelled" for step in run.trace.steps
    )


@pytest.mark.parametrize("shape", SHAPES)
def test_a_fork_has_used_the_amounts_of_its_earlier_steps(shape):
    run = budgeted(shape)
    run.run()
    for position in range(len(run.trace) + 1):
        fork = run.fork(at=position)
        assert dict(fork.status.used) == dict(run.goto(position).status.used)
        fork.run()
        again = fork.goto(position).status.used
        assert {**again, "max_seconds": 0} == {**run.status.used, "max_seconds": 0}
