"""test_people: what a person may do to a run of behaviours: break, hold a question, choose what is next; policies."""

from __future__ import annotations

import pytest
from pydantic import BaseModel

from agentnb.dialects.activegraph import Graph, LLMBehavior, Policy, Runtime
from agentnb.errors import AgentNbError
from agentnb.samples.reactive import team
from tests.dialects.activegraph.making import on, runtime


class Text(BaseModel):
    text: str


def keep(event, graph, ctx, answer):
    graph.add_object("text", {"text": answer.text})


def answered(request):
    return {"text": "changed" if "CHANGED" in request.prompt else "as it was"}


@pytest.fixture
def held():
    """A run that holds the question of its only behaviour."""
    asks = LLMBehavior("ask", keep, on=["go"], handler=keep, output_schema=Text)
    asking = Runtime(Graph(), behaviors=[asks], llm_provider=answered)
    asking.session.emit("go", {})
    while not asking.session.pending:
        asking.session.step_into()
    return asking


def test_a_breakpoint_may_stand_at_a_behaviour():
    writers = team()
    writers.session.breakpoints.add("write")
    writers.session.emit("goal.created", {"goal": "x"})
    writers.session.run()
    stopped = writers.session.stopped_by
    assert (stopped and stopped.node, writers.errors) == ("write", [])


def test_a_held_question_is_answered_by_hand(held):
    held.session.change(held.session.pending[0].id, answer={"text": "by hand"})
    held.session.run()
    assert (held.errors, held.graph.objects("text")[0].data) == ([], {"text": "by hand"})
    assert held.replay().ok


def test_what_a_question_says_can_be_changed(held):
    call = held.session.pending[0]
    messages = [{"role": "user", "content": "CHANGED"}]
    held.session.change(call.id, arguments={**call.arguments, "messages": messages})
    held.session.run()
    assert held.graph.objects("text")[0].data == {"text": "changed"}
    assert held.replay().ok


def test_a_behaviour_comes_next_only_where_an_event_waits_for_it():
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
    assert [made.type for made in pair.graph.all_objects()] == ["second"]


def test_who_may_not_create_a_relation_may_not_remove_one():
    @on("go")
    def cut(event, graph, ctx):
        graph.remove_relation("rel_001")

    strict = runtime(cut, policy=Policy(can_create_relation=["other"]))
    made = strict.graph.add_object("x", {})
    strict.graph.add_relation(made.id, made.id, "near")
    strict.session.emit("go", {})
    strict.run_until_idle()
    assert [error.reason for error in strict.errors] == ["policy.denied"]
    assert len(strict.graph.all_relations()) == 1
