from __future__ import annotations

from agentnb.recipe.model import Node, Recipe
from agentnb.session import Session
from tests.session.small_sessions import path


def greet(board):
    return {"greeted": board.get("greeted", 0) + 1}


def listening():
    nodes = {
        "begin": Node("begin", "join"),
        "greet": Node("greet", "function", params={"function": greet}, on=("hello",)),
        "log": Node("log", "noop", on=("hello", "bye")),
    }
    run = Session(Recipe("reactive", "test", nodes, (), ("begin",)))
    run.run()
    return run


def test_a_listening_run_is_idle_and_continues_with_an_event():
    run = listening()
    assert (run.status, run.current, run.step()) == ("idle", None, None)
    run.emit("hello", {"to": "ada"})
    assert [(one.node, one.phase) for one in run.frontier] == [("greet", "start"), ("log", "start")]
    run.run()
    assert (run.status, path(run), run.board["greeted"]) == ("idle", ["begin", "greet", "log"], 1)
    run.emit("bye").run()
    assert path(run) == ["begin", "greet", "log", "log"]


def test_an_event_without_listeners_changes_nothing_else():
    run = listening()
    run.emit("nothing")
    assert (run.status, run.frontier) == ("idle", ())


def test_an_event_in_the_past_starts_a_branch():
    run = listening()
    run.emit("hello").run()
    run.goto(2).emit("bye")
    run.run()
    assert path(run) == ["begin", "greet", "log", "log"]
    assert [old.position for old in run.forks] == [3]


def test_going_back_before_an_event_and_forward_again_works():
    run = listening()
    run.emit("hello").run()
    run.emit("hello").run()
    assert run.board["greeted"] == 2
    for k in (4, 2, 0, 5):
        assert run.goto(k).board.get("greeted", 0) == k // 2
    run.goto(4).run()
    assert (run.status, path(run)) == ("idle", ["begin", *["greet", "log"] * 2])


def test_a_breakpoint_stops_at_an_event_of_a_node():
    def emits(work):
        work.emit("done", 1)

    from agentnb.engine.core.plan import Plan
    from agentnb.engine.core.work import Kind
    from agentnb.kinds import KINDS

    run = listening()
    kinds = {**KINDS, "noop": Kind("noop", lambda node, world: emits)}
    run._parts.run.plan = Plan(run.recipe, kinds, run._parts.run.world)
    run.reset()
    run.run()
    point = run.breakpoints.add(event="done")
    run.emit("bye").emit("bye").run()
    assert (run.position, point.hits) == (2, 1)
