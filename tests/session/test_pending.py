from __future__ import annotations

import networkx as nx
import pytest

from agentnb.errors import BoardError, ExecutionError
from agentnb.recipe.model import Edge, Node, Region
from agentnb.world.effect import Effect
from tests.engine.graph_shapes import Shape, leaf
from tests.session.gated_nodes import live
from tests.session.shape_sessions import session_of
from tests.session.small_sessions import asking, calling, graph, session


def noting(calls):
    def look(word):
        calls.append(word)

    return look


def make_held_run(side="before", **options):
    run = session(calling(**options), {"word": "rain"})
    run.breakpoints.add(call="tool", side=side)
    run.run()
    return run


def test_a_call_is_paused_before_it_is_sent():
    calls = []
    run = make_held_run(answer=noting(calls))
    assert (run.status, run.position, run.current, calls) == ("in_flight", 1, "look", [])
    (call,) = run.pending
    assert (call.kind, call.node, dict(call.arguments)) == ("call", "look", {"word": "rain"})


def test_a_paused_call_continues_with_the_next_step():
    run = make_held_run()
    step = run.step()
    assert (step.node_id, step.outputs, run.status) == ("look", {"look": "about rain"}, "paused")
    assert run.pending == ()


def test_a_paused_call_continues_with_the_next_run():
    run = make_held_run()
    run.run()
    assert (run.status, run.board["look"]) == ("finished", "about rain")


def test_its_arguments_can_be_edited():
    run = make_held_run()
    run.change(run.pending[0].id, arguments={"word": "snow"})
    assert dict(run.pending[0].arguments) == {"word": "snow"}
    run.run()
    assert run.board["look"] == "about snow"
    assert run.trace.frames.calls["arguments"].tolist() == [{"word": "snow"}]
    assert run.trace.frames.interventions["action"].tolist() == ["change"]


def test_an_answer_before_it_is_sent_replaces_it():
    calls = []
    run = make_held_run(answer=noting(calls))
    run.change("look", answer="mine")
    run.run()
    assert (run.board["look"], calls) == ("mine", [])
    assert run.trace.frames.calls["result"].tolist() == ["mine"]


def test_after_a_call_its_answer_can_be_read_and_edited():
    run = make_held_run(side="after")
    assert run.pending[0].answer == "about rain"
    run.change(run.pending[0].id, answer="mine")
    run.run()
    assert run.board["look"] == "mine"
    assert run.trace.frames.calls["result"].tolist() == ["mine"]


def test_edited_values_are_copies():
    run = make_held_run()
    arguments = {"word": ["snow"]}
    run.change("look", arguments=arguments)
    arguments["word"].append("more")
    run.run()
    assert run.board["look"] == "about ['snow']"


@pytest.mark.parametrize("move", [lambda run: run.back(), lambda run: run.goto(1), lambda run: run.stop()])
def test_moving_abandons_the_call_and_it_is_sent_again_later(move):
    calls = []
    run = make_held_run(answer=noting(calls))
    move(run)
    assert (run.pending, calls) == ((), [])
    assert "cancelled" in run.trace.frames.interventions["action"].tolist()
    run.run()
    assert run.status == "in_flight"
    run.run()
    assert (run.status, calls) == ("finished", ["rain"])


def test_an_edit_does_not_change_a_pending_call():
    run = make_held_run()
    run.edit({"word": "snow"})
    assert dict(run.pending[0].arguments) == {"word": "rain"}
    run.run()
    run.run()
    assert (run.status, run.board["word"]) == ("finished", "snow")


def test_an_edit_during_a_question_keeps_the_question():
    run = session(asking())
    run.run()
    run.edit({"note": "look again"})
    assert run.status == "waiting"
    run.answer("yes")
    assert run.board["note"] == "look again"
    assert run.status != "waiting"


def test_a_call_that_is_not_paused_cannot_be_edited():
    run = session(calling(), {"word": "rain"})
    with pytest.raises(ExecutionError, match="X115"):
        run.change("look", answer=1)


def test_answers_and_calls_are_distinguished():
    run = session(asking())
    run.run()
    with pytest.raises(ExecutionError, match="'ask'"):
        run.change("ask", answer="yes")
    with pytest.raises(ExecutionError, match="X115"):
        make_held_run().answer("yes")


def test_the_call_can_be_named_by_its_effect_too():
    for pattern in ("look", "l*", "*", "tool"):
        run = session(calling("look"), {"word": "rain"}, tools={"look": lambda word: word})
        run.breakpoints.add(call=pattern)
        run.run()
        assert run.status == "in_flight", pattern


# -- approvals ---------------------------------------------------------------------------------------------------------


def leave(**options):
    """Return a session whose node asks for leave to pay, and says what it was told."""

    async def pay(work):
        answer = await work.call(Effect("approval", "pay", {"amount": 5}, **options))
        return {"paid": answer["approved"], "by": answer["by"], "reason": answer["reason"]}

    return session_of("pays", Shape([leaf("pay", pay), leaf("after", lambda work: {})], [Edge("pay", "after")],
                                    ("pay",), [], {}))  # fmt: skip


def test_an_approval_waits_in_pending():
    run = leave()
    run.run()
    (question,) = run.pending
    assert (run.status, question.kind, question.node, question.name, dict(question.arguments)) == (
        "waiting", "approval", "pay", "pay", {"amount": 5},
    )  # fmt: skip
    assert question.id.startswith("approval_")
    assert run.step() is None


@pytest.mark.parametrize("wanted", [None, "pay", "id"])
def test_an_approval_commits_the_step(wanted):
    run = leave()
    run.run()
    step = run.approve(run.pending[0].id if wanted == "id" else wanted, by="ada")
    assert (step.outputs, run.current) == ({"paid": True, "by": "ada", "reason": ""}, "after")
    assert run.trace.frames.calls["result"].tolist() == [{"approved": True, "by": "ada", "reason": ""}]
    interventions = run.trace.frames.interventions
    assert (interventions["action"].tolist(), interventions["actor"].tolist()) == (["approve"], ["ada"])


def test_a_denial_has_a_reason():
    run = leave()
    run.run()
    assert run.deny("pay", "too dear").outputs == {"paid": False, "by": None, "reason": "too dear"}
    interventions = run.trace.frames.interventions
    assert (interventions["action"].tolist(), interventions["actor"].tolist(), interventions["new"].tolist()) == (
        ["deny"], ["user"], [{"approved": False, "by": None, "reason": "too dear"}],
    )  # fmt: skip


def test_the_verdict_is_frozen():
    messages = []

    async def asks(work):
        messages.append(await work.call(Effect("approval", "pay", {})))

    run = session_of("pays", Shape([leaf("pay", asks)], [], ("pay",), [], {}))
    run.run()
    run.approve()
    with pytest.raises(BoardError, match="B101"):
        messages[0]["approved"] = False


def test_approvals_and_answers_are_distinguished():
    run, other = leave(), session(asking())
    run.run()
    other.run()
    for action in (run.answer, other.approve, other.deny):
        with pytest.raises(ExecutionError, match="X115"):
            action("any")
    with pytest.raises(ExecutionError, match="approval of 'pay'"):
        run.answer("yes")
    assert (run.status, other.status) == ("waiting", "waiting")


def test_a_background_run_continues_after_an_approval():
    run = leave()

    async def test():
        await run.start().wait()
        assert run.status == "waiting"
        run.approve()
        await run.wait()
        assert run.status == "finished"

    live(test)


def test_an_undecided_approval_times_out():
    run = leave(timeout=0.0)  # the time is up as soon as it is asked
    run.run()
    assert run.status != "waiting"
    run.run()
    assert (run.status, run.error.code) == ("failed", "X100")
    assert "'pay' was not answered within 0 s" in run.error.what


# -- what is held ------------------------------------------------------------------------------------------------------


def test_a_step_releases_the_first_of_several_paused_calls():
    async def calls(work):
        return {"out": await work.call(Effect("tool", "look", {}, target=lambda: work.node.id))}

    nodes = [Node("both", "nest", bodies=("one", "two"), params={"policy": "child"}),
             leaf("a", calls, scope="one"), leaf("b", calls, scope="two")]  # fmt: skip
    regions = [Region("one", ("a",), owner="both"), Region("two", ("b",), owner="both")]
    run = session_of("both", Shape(nodes, [], ("both",), [], {}, regions))
    run.breakpoints.add(call="look")
    run.run()
    assert [one.node for one in run.pending] == ["a", "b"]
    assert run.step().node_id == "a"
    (left,) = run.pending
    run.change(left.id, answer="mine")
    run.run()
    assert (run.status, run.board["both"]) == ("finished", ["a", "mine"])


def test_step_n_ends_at_a_paused_call():
    run = session(calling(), {"word": "rain"})
    run.breakpoints.add(call="tool")
    assert (run.step(9).node_id, run.status, run.position) == ("before", "in_flight", 1)
    assert (run.step(9).node_id, run.status) == ("after", "finished")


def test_astep_n_ends_at_a_paused_call():
    run = session(calling(), {"word": "rain"})
    run.breakpoints.add(call="tool")

    async def test():
        await run.astep(9)
        assert (run.status, run.position) == ("in_flight", 1)
        await run.astep(9)

    live(test)
    assert run.status == "finished"


def test_start_releases_paused_calls():
    run = make_held_run()

    async def test():
        await run.start().wait()
        assert run.status == "finished"

    live(test)


def test_without_paused_calls_nothing_is_shown():
    run = session(asking())
    run.run()
    assert (run.held_at, "held" in repr(run)) == ("", False)


def test_an_unnamed_tool_has_the_name_of_its_node():
    built_graph = graph("before")
    built_graph.add_node("fetch", kind="tool", function=lambda _board: {"found": 1})
    built_graph.add_node("look", kind="tool", function=lambda _board: {"seen": 1})
    nx.add_path(built_graph, ["before", "fetch", "look"])
    run = session(built_graph, tools={"look": lambda _board: {"seen": 2}})
    run.breakpoints.add(call="look")
    run.breakpoints.add(call="fetch", side="after")
    names = []
    while run.run() and run.status == "in_flight":
        names += [call.name for call in run.pending]
    assert names == ["fetch", "look"]
    assert run.trace.frames.calls.name.tolist() == ["fetch", "look"]
