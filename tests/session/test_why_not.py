from __future__ import annotations

import pytest

from agentnb.errors import ExecutionError
from agentnb.recipe.model import Edge
from agentnb.samples import samples
from agentnb.session import Session
from agentnb.world.effect import Effect
from tests.engine.graph_shapes import Shape, leaf
from tests.session.shape_sessions import session_of
from tests.session.small_sessions import counting, fan, looping, session
from tests.session.small_sessions import graph as line
from tests.session.test_reactive import listening


def explain(run, *words):
    return run.why_not(*words).reason


def test_a_condition_that_did_not_hold_is_reported_with_what_it_read():
    run = session(counting(), {"n": 0})
    run.step(2)
    why = run.why_not("done")
    (edge,) = why.incoming_edges
    assert (edge.source, edge.kind, edge.step, edge.result) == (
        "check", "conditional", 2, "its condition did not hold in step 2",
    )  # fmt: skip
    assert repr(why).splitlines() == [
        "after step 2, 'done': no incoming edge is open now",
        "  from 'check' (conditional): its condition did not hold in step 2",
        "       done: n >= 3 is False  (n = 1)",
    ]
    assert why._repr_html_().startswith("<pre>after step 2, &#x27;done&#x27;")


def test_an_edge_after_a_taken_one_is_explained():
    run = session(counting(1), {"n": 0})
    run.step(2)
    assert run.why_not("add").incoming_edges[0].result == "in step 2 it led to 'done'"


def test_next_waiting_and_executed_nodes_are_explained():
    run = session(fan("x", "y"))
    run.step(2)
    assert [explain(run, node) for node in ("y", "meet", "x", "after", "open")] == [
        "it is next",
        "it waits: 1 step is before it, and it joins 'y'",
        "no incoming edge is open now; it ran in step 2",
        "no incoming edge is open now",
        "it is the entry of its region; it ran in step 1",
    ]
    assert run.why_not("after").incoming_edges[0].result == "'meet' has not run"


def test_nested_nodes_are_explained():
    run = session(looping(line("x"), times=2))
    assert explain(run, "x") == "it is inside 'again', which is not open here"
    run.step(2)
    assert explain(run, "again").startswith("it is next; it ran in step 1")
    assert explain(run, "done") == "no incoming edge is open now"
    assert run.why_not("done").incoming_edges[0].result == "step 1 went into it, and it has not been left"
    run.step()
    assert explain(run, "again") == "it was entered, and its inner nodes are still running; it ran in step 3"


def test_error_edges_and_failures_are_explained():
    def fails(work):
        raise ValueError("it broke")

    nodes = [leaf("a", fails), leaf("b", fails), leaf("late", fails), leaf("fix", lambda work: {})]
    edges = [Edge("a", "fix", "error"), Edge("fix", "b"), Edge("b", "late", "timeout"), Edge("b", "a")]
    run = session_of("fails", Shape(nodes, edges, ("a",), [], {}))
    run.step(3)
    assert (run.status, run.why_not("fix").incoming_edges[0].result) == ("failed", "taken in step 1")
    assert run.why_not("late").incoming_edges[0].result == "step 3 did not take too long"
    assert run.why_not("a").incoming_edges[0].result == "step 3 failed: it broke"
    assert run.why_not("fix", 0).incoming_edges[0].result == "'a' has not run"
    run.goto(2)
    assert explain(run, "b") == "it is next"


def test_a_node_unscheduled_by_a_person_is_explained():
    run = session(line("a", "b", "c"))
    run.step()
    run.set_next("c")
    assert explain(run, "b") == "it has been removed from the frontier: set_next 'c' after step 1"


def test_the_routes_of_a_router_are_reported_by_their_values():
    run = Session(samples("triage"), answers=["approve"])
    run.run()
    never = next(edge.target for edge in run.recipe.edges if run.why_not(edge.target).fired is None)
    why = run.why_not(never)
    assert [condition.value for edge in why.incoming_edges for condition in edge.conditions] == [False]


def test_a_missing_event_is_the_reason():
    run = listening()
    assert (
        explain(run, "greet") == "no event of its types has been emitted: it listens to 'hello'; emitted: none at all"
    )
    run.emit("bye").run()
    assert explain(run, "greet").endswith("emitted: evt_001 'bye'")
    assert explain(run, "greet", "evt_001") == "event evt_001 is a 'bye', and it listens to 'hello'"
    assert explain(run, "log", "evt_001") == "it fired for event evt_001 'bye' in step 2"


def test_waiting_and_unmatched_deliveries_are_explained():
    run = listening()
    run.emit("hello").emit("hello")
    assert explain(run, "greet") == "event evt_001 'hello' is delivered to it next"
    assert explain(run, "log") == "the delivery of event evt_001 'hello' waits: 1 step is before it"
    assert explain(run, "log", "evt_002") == "event evt_002 'hello' has not been matched yet: 2 steps are before it"
    run.step(2)
    assert (run.why_not("log", "evt_001").fired, run.why_not("log").event) == (3, "evt_002")
    assert explain(run, "log", 2) == "event evt_001 'hello' is delivered to it next"  # as it stood then


def test_a_delivery_skipped_by_a_person_is_explained():
    run = listening()
    run.emit("hello")
    run.skip()
    why = run.why_not("greet")
    assert (why.fired, why.reason) == (None, "a person skipped it for event evt_001 'hello' in step 2")
    run.set_next("begin")
    taken = "the delivery of event evt_001 'hello' was removed from the frontier: set_next 'begin' after step 2"
    assert explain(run, "log") == taken


def test_an_event_of_a_step_in_flight_is_explained():
    async def emits(work):
        work.emit("heard")
        return {"out": await work.call(Effect("human", "ask", {}))}

    nodes = [leaf("emits", emits), leaf("hears", lambda work: {}, on=("heard",))]
    run = session_of("flies", Shape(nodes, [], ("emits",), [], {}))
    run.run()
    assert explain(run, "hears") == "event evt_001 'heard' was emitted by 'emits', whose step has not finished"
    run.answer("yes")
    assert explain(run, "hears") == "event evt_001 'heard' is delivered to it next"


@pytest.mark.parametrize(("words", "code"), [(("nobody",), "X101"), (("a", 9), "X111"), (("a", "evt_009"), "X111"),
                                             (("a", True), "X111")])  # fmt: skip
def test_an_unknown_node_is_a_problem(words, code):
    run = session(line("a"))
    with pytest.raises(ExecutionError, match=code):
        run.why_not(*words)
