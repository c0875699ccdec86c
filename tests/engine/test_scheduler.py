from __future__ import annotations

import pytest

from agentnb.engine.core.event_queue import emit_from_outside
from agentnb.engine.core.run import EXHAUSTED, FAILED
from agentnb.engine.core.work import Body, Enter
from agentnb.recipe.model import Edge, Node, Region
from tests.engine.graph_shapes import go_on, leaf, path
from tests.engine.small_runs import data, one, run_of
from tests.session.small_sessions import fan, graph, looping, session
from tests.session.small_sessions import path as steps_of


class When:
    def __init__(self, function):
        self.call, self.text, self.reads = function, "when", ()

    def __call__(self, board):
        return self.call(board)


def nothing(work):
    return {}


def fork(routing, *conditions, kinds=None):
    kinds = kinds or ["sequential"] * len(conditions)
    names = [f"t{number}" for number in range(len(conditions))]
    edges = [
        Edge("n0", name, kind, None if when is None else When(when))
        for name, when, kind in zip(names, conditions, kinds, strict=True)
    ]
    run = run_of(nothing, nodes=[leaf(name, nothing) for name in names], edges=edges, routing=routing)
    one(run)
    return [run.get_node_id(number) for number in run.frontier()]


def yes(board):
    return 1


def no(board):
    return []


def test_routing_first_takes_the_first_edge_whose_condition_holds():
    assert fork("first", no, yes, yes) == ["t1"]
    assert fork("first", None, yes) == ["t0"]
    assert fork("first", no, no) == []


def test_routing_all_takes_all_edges_whose_condition_holds():
    assert fork("all", no, yes, None, yes) == ["t1", "t2", "t3"]


def test_parallel_edges_are_all_taken_in_addition_to_the_first_other():
    kinds = ["parallel", "sequential", "parallel", "sequential"]
    assert fork("first", yes, yes, yes, yes, kinds=kinds) == ["t0", "t1", "t2"]
    assert fork("first", no, no, yes, yes, kinds=kinds) == ["t2", "t3"]


def test_a_condition_that_fails_is_the_failure_of_its_step():
    def fails(board):
        return board["gone"]

    run = run_of(nothing, nodes=[leaf("t", nothing)], edges=[Edge("n0", "t", "conditional", When(fails), "gone > 1")])
    assert one(run) == FAILED
    message = run.history.errors[1].message
    assert "gone > 1" in message
    assert "KeyError" in message
    assert data(run) == {}


def test_the_value_of_a_condition_is_stored_with_the_edge():
    run = run_of(nothing, nodes=[leaf("t", nothing)], edges=[Edge("n0", "t", "conditional", When(lambda board: 7))])
    one(run)
    assert run.history.push_values[-1] == 7


def test_targets_are_queued_after_those_of_their_own_frame():
    edges = [Edge("n0", "a"), Edge("n0", "b"), Edge("a", "a2"), Edge("b", "b2")]
    run = run_of(nothing, nodes=[leaf(name, nothing) for name in ("a", "b", "a2", "b2")], edges=edges, routing="all")
    go_on(run)
    assert path(run) == ["n0", "a", "b", "a2", "b2"]


def test_open_frames_are_scheduled_depth_first():
    inner = Node("in", "nest", bodies=("r",), params={"policy": "shared"})
    edges = [Edge("n0", "in"), Edge("n0", "b"), Edge("x", "y")]
    nodes = [inner, leaf("b", nothing), leaf("x", nothing, scope="r"), leaf("y", nothing, scope="r")]
    run = run_of(nothing, nodes=nodes, edges=edges, regions=[Region("r", ("x",), owner="in")], routing="all")
    go_on(run)
    assert path(run) == ["n0", "in enter", "x", "y", "in leave", "b"]


def test_a_node_that_chooses_a_missing_target_fails():
    from agentnb.engine.core.work import Outcome

    run = run_of(lambda work: Outcome(route=["t1"]), nodes=[leaf("t", nothing)], edges=[Edge("n0", "t", "route")])
    assert one(run) == FAILED
    assert "'t1', which is not a node of its region" in run.history.errors[1].message


def test_an_empty_region_is_left_at_once():
    nest = Node("nest", "nest", bodies=("r",), params={"policy": "isolated"})
    run = run_of(nodes=[nest], regions=[Region("r", (), owner="nest")])
    go_on(run)
    assert path(run) == ["nest enter", "nest leave"]


@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_join_waits_for_any_number_of_branches(count):
    names = [f"b{number}" for number in range(count)]
    run = session(fan(*names))
    run.run()
    assert steps_of(run) == ["open", *names, "meet", "after"]


def test_nesting_too_many_frames_fails_the_node_that_would_open_one():
    run = session(looping(looping(graph("x"), times=1), times=1))
    run._parts.run.max_frames = 1
    run.run()
    assert (run.status, run.error.code) == ("failed", "X103")
    run._parts.run.max_frames = 2
    run.run()
    assert run.status == "finished"


# ------------------------------------------------------------------------------------------------- what events set off


def hearing(*answers):
    """Return a run of nodes that listen to `go`, with nothing else left to do."""
    nodes = [leaf(f"on{number}", answer, kind="keep", on=("go",)) for number, answer in enumerate(answers)]
    run = run_of(nothing, nodes=nodes)
    one(run)
    return run


def emitting(*types):
    def node(work):
        for type_ in types:
            work.emit(type_)

    return node


def test_an_event_emitted_while_nothing_else_waits_is_delivered():
    run = hearing(lambda work: work.emit("go") and None if work.event.seq < 4 else None)
    emit_from_outside(run, "go", None)
    go_on(run)
    assert path(run) == ["n0", *["on0"] * 4]
    assert run.frontier() == []


def test_an_event_without_listeners_leaves_the_queue_even_if_nothing_else_waits():
    run = hearing(emitting("nobody", "nobody"))
    for _ in range(3):
        emit_from_outside(run, "go", None)
    go_on(run)
    assert path(run) == ["n0", *["on0"] * 3]
    assert run.frontier() == []


def test_a_failed_behavior_that_emitted_is_followed_by_its_event():
    def fails(work):
        if work.event.seq == 1:
            work.emit("go")
        raise ValueError

    run = hearing(fails)
    emit_from_outside(run, "go", None)
    go_on(run)
    assert path(run) == ["n0", *["on0 error"] * 2]


# ------------------------------------------------------------------------------------------ a step that is given up


class NoFrames:
    """Lets nobody open a frame, and every call go out."""

    def admit_frame(self, run, act):
        return False

    def admit_call(self, *_words):
        return True


@pytest.mark.parametrize("waits", [False, True])
def test_a_forbidden_frame_abandons_its_step(waits):
    async def later(work):
        await work.loop()
        return Enter([Body("r")])

    def opens(work):
        work.write("own", 1)
        return later(work) if waits else Enter([Body("r")])

    nest = Node("nest", "do", bodies=("r",), params={"do": opens})
    run = run_of(nodes=[nest, leaf("in", nothing, scope="r")], regions=[Region("r", ("in",), owner="nest")])
    run.max_frames, run.limiter = 0, NoFrames()
    assert go_on(run) == EXHAUSTED
    assert (path(run), run.frames.keys(), run.pending_steps, data(run)) == ([], {0}, {}, {})
    assert [run.get_node_id(number) for number in run.frontier()] == ["nest"]
