"""What a person may do to a run of behaviors: break, hold a question, choose what is next; policies."""

from __future__ import annotations

import asyncio

import pytest
from pydantic import BaseModel

from agentnb.dialects.activegraph import Graph, LLMBehavior, LLMResponse, Policy, Runtime, Tool, ToolCall
from agentnb.errors import AgentNbError
from agentnb.samples.reactive import team
from tests.dialects.activegraph.runtimes import on, runtime


class Text(BaseModel):
    text: str


def keep(event, graph, ctx, answer):
    graph.add_object("text", {"text": answer.text})


def answered(request):
    return {"text": "changed" if "CHANGED" in request.prompt else "as it was"}


@pytest.fixture
def held():
    """A run that holds the question of its only behavior."""
    asks = LLMBehavior("ask", keep, on=["go"], handler=keep, output_schema=Text)
    asking = Runtime(Graph(), behaviors=[asks], llm_provider=answered)
    asking.session.emit("go", {})
    while not asking.session.pending:
        asking.session.step_into()
    return asking


def test_a_breakpoint_can_be_set_at_a_behavior():
    writers = team()
    writers.session.breakpoints.add("write")
    writers.session.emit("goal.created", {"goal": "x"})
    writers.session.run()
    stopped = writers.session.stopped_by
    assert (stopped and stopped.node, writers.errors) == ("write", [])


def test_a_paused_model_call_is_answered_by_a_person(held):
    held.session.change(held.session.pending[0].id, answer={"text": "by hand"})
    held.session.run()
    assert (held.errors, held.graph.objects("text")[0].data) == ([], {"text": "by hand"})
    assert held.replay().ok


def test_the_request_of_a_model_call_can_be_edited(held):
    call = held.session.pending[0]
    messages = [{"role": "user", "content": "CHANGED"}]
    held.session.change(call.id, arguments={**call.arguments, "messages": messages})
    held.session.run()
    assert held.graph.objects("text")[0].data == {"text": "changed"}
    assert held.replay().ok


def test_a_behavior_can_be_next_only_if_an_event_waits_for_it():
    @on("go")
    def first(event, graph, ctx):
        graph.add_object("first", {})

    @on("go")
    def second(event, graph, ctx):
        graph.add_object("second", {})

    @on("come")
    def third(event, graph, ctx):
        graph.add_object("third", {})

    pair = runtime(first, second, third)
    pair.session.emit("go", {})
    pair.session.step()
    pair.session.back()
    with pytest.raises(AgentNbError, match="X123"):
        pair.session.set_next("third")
    pair.session.set_next("second")
    pair.session.step()
    assert [item.type for item in pair.graph.all_objects()] == ["second"]


def test_a_behavior_that_may_not_create_a_relation_may_not_remove_one():
    @on("go")
    def cut(event, graph, ctx):
        graph.remove_relation("rel_001")

    strict = runtime(cut, policy=Policy(can_create_relation=["other"]))
    item = strict.graph.add_object("x", {})
    strict.graph.add_relation(item.id, item.id, "near")
    strict.session.emit("go", {})
    strict.run_until_idle()
    assert [error.reason for error in strict.errors] == ["policy.denied"]
    assert len(strict.graph.all_relations()) == 1


def requests(team):
    return [event for event in team.graph.events if event.type == "llm.requested"]


def test_the_log_has_the_request_as_it_was_sent(held):
    call = held.session.pending[0]
    messages = [{"role": "user", "content": "CHANGED"}]
    held.session.change(call.id, arguments={**call.arguments, "messages": messages})
    held.session.run()
    (requested,) = requests(held)
    assert [message["content"] for message in requested.payload["prompt"]["messages"]] == ["CHANGED"]
    (answered,) = (event for event in held.graph.events if event.type == "llm.responded")
    assert (answered.caused_by, answered.payload["prompt_hash"]) == (requested.id, requested.payload["prompt_hash"])
    messages_sent = held.session.trace.frames.calls["arguments"].tolist()[0]["messages"]
    assert [message["content"] for message in messages_sent] == ["CHANGED"]
    assert held.replay().ok


def test_an_unchanged_paused_call_is_recorded_as_in_a_run_without_pauses(held):
    asks = LLMBehavior("ask", keep, on=["go"], handler=keep, output_schema=Text)
    free = Runtime(Graph(), behaviors=[asks], llm_provider=answered)
    free.session.emit("go", {})
    free.run_until_idle()
    held.session.run()
    (one,), (other,) = requests(held), requests(free)
    assert (one.id, one.payload["prompt_hash"]) == (other.id, other.payload["prompt_hash"])
    types = [[event.type for event in each.graph.events] for each in (held, free)]
    assert types[1][: len(types[0])] == types[0]


def test_the_answer_to_an_edited_request_is_cached_under_that_request_alone(held):
    call = held.session.pending[0]
    held.session.change(call.id, arguments={**call.arguments, "messages": [{"role": "user", "content": "CHANGED"}]})
    held.session.run()
    second_fork = held.fork(held.graph.events[0].id, replay_llm_cache=True)
    second_fork.session.goto(0)
    second_fork.run_until_idle()
    assert [event.payload["cache_hit"] for event in requests(second_fork)] == [False]
    assert second_fork.graph.objects("text")[0].data == {"text": "as it was"}


def test_a_conversation_continues_from_the_edited_request():
    received = []

    class Model:
        default_model = "m"

        def complete(self, *, messages, **words):
            received.append([message.content for message in messages])
            if messages[-1].role == "tool":
                return LLMResponse("done")
            return LLMResponse("", tool_calls=[ToolCall("1", "look", {})])

    def note(event, graph, ctx, answer):
        graph.emit("noted", {})

    asks = LLMBehavior("ask", note, on=["go"], handler=note, tools=[Tool("look", lambda args, ctx: {"n": 1})])
    team = Runtime(Graph(), behaviors=[asks], llm_provider=Model())
    team.session.breakpoints.add(call="llm")
    team.session.emit("go", {})
    team.session.run()
    (call,) = team.session.pending
    team.session.change(call.id, arguments={**call.arguments, "messages": [{"role": "user", "content": "CHANGED"}]})
    team.session.breakpoints.clear()
    team.session.run()
    assert [messages[0] for messages in received] == ["CHANGED", "CHANGED"]
    assert team.replay().ok


def test_a_background_run_does_the_same_as_a_stepped_one():
    by_hand, live = team(), team()
    by_hand.session.emit("goal.created", {"goal": "x"}).run()

    async def start():
        live.session.emit("goal.created", {"goal": "x"}).start()
        await live.session.wait()

    asyncio.run(start())
    assert live.session.status == "idle"
    steps = [[step.node_id for step in each.session.trace.steps] for each in (live, by_hand)]
    assert steps[0] == steps[1]
    assert live.replay().ok


@pytest.mark.parametrize("stops", range(2, 8))
@pytest.mark.parametrize("shared", [False, True])
def test_actions_of_a_person_during_step_into_are_not_part_of_the_step(stops, shared):
    @on("go")
    def make(event, graph, ctx):
        first = graph.add_object("x", {})
        second = graph.add_object("x", {"of": first.id})
        graph.patch_object(first.id, {"done": True})
        graph.add_relation(second.id, first.id, "next", {})

    team = Runtime(Graph(), behaviors=[make])
    team.session.emit("go", {})
    for _ in range(stops):
        team.session.step_into()
    if shared:
        team.session.fork()
    made = team.graph.add_object("y", {})
    team.graph.add_relation(made.id, made.id, "itself", {})
    team.session.run()
    steps = {event.payload["object"]["id"]: event.step for event in team.session.events if "object" in event.payload}
    assert sorted((id_[0], step) for id_, step in steps.items()) == [("x", 1), ("x", 1), ("y", None)]
    assert {item.id for item in team.graph.all_objects()} == {*steps}
    assert team.graph.get_object("x#1").data == {"done": True}
    assert len({event.id for event in team.graph.events}) == len(team.graph.events) == 9
    assert team.replay().ok
