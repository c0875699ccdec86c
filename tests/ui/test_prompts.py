from __future__ import annotations

import json

import networkx as nx
import pytest

import agentnb as nb
from agentnb.dialects.symphony import AgentExecutor
from agentnb.errors import AgentNbError
from agentnb.samples.agents import moderation
from agentnb.session.pending import Pending
from agentnb.ui.prompts import apply_change, describe_pending, give
from tests.session.shape_sessions import asking, to_where_it_waits


def make_held_session(steps=3):
    """Return a session that is held inside its agent: before its call goes out, or one further after it came back.

    Its agent has no model and no simulated answers, so its answer is a text.
    """
    sample = moderation()
    recipe = nb.load(AgentExecutor(sample.config, tools=sample.tools))
    session = nb.Session(recipe, {"task": "Comment 7 by Kim: You are a fool."})
    for _ in range(steps):
        session.step_into()
    return session


def texts(fields):
    return {field["label"]: field["text"] for field in fields}


def test_an_approval_shows_its_tool_and_arguments():
    (pending,) = to_where_it_waits(asking("cycle", "approval")).pending
    question = describe_pending(pending)
    assert (question["kind"], question["name"], texts(question["arguments"])) == ("approval", "may it", {"of": "again"})


def test_a_call_shows_its_request_and_then_its_answer():
    before = describe_pending(make_held_session(3).pending[0])
    assert texts(before["arguments"])["user message"] == "Comment 7 by Kim: You are a fool."
    assert before["answer"] is None
    after = describe_pending(make_held_session(4).pending[0])
    assert texts(after["answer"])["tool_name"] == "none"
    assert json.loads(json.dumps(after)) == after


def test_a_paused_call_is_sent_as_edited():
    session = make_held_session()
    (pending,) = session.pending
    apply_change(session, {"arguments": [[["messages", 1, "content"], "Comment 8: Hello."]]}, pending.id)
    messages = session.pending[0].arguments["messages"]
    assert [message["content"] for message in messages][1] == "Comment 8: Hello."
    assert messages[0] == pending.arguments["messages"][0]
    session.step_into()
    apply_change(session, {"answer": [[["response"], "Leave it."]]}, pending.id)
    session.step_into()
    assert session.board["answer"]["response"] == "Leave it."


def test_a_resumed_call_cannot_be_edited():
    session = make_held_session()
    (pending,) = session.pending
    session.step()
    with pytest.raises(AgentNbError, match="U307"):
        apply_change(session, {"arguments": []}, pending.id)


def test_a_call_can_be_answered_before_it_is_sent():
    session = make_held_session()
    (pending,) = session.pending
    assert describe_pending(pending)["model"] is True
    apply_change(session, {"reply": {"text": "It is harmless.", "as": "text"}}, pending.id)
    session.step()
    assert "It is harmless." in str(session.board["answer"])


def asks(**declared):
    graph = nx.DiGraph(name="asks")
    graph.add_node("ask", kind="human", prompt="Well?", output="said", **declared)
    session = nb.Session(nb.load(graph))
    session.step()
    return session


@pytest.mark.parametrize(
    ("declared", "way", "options"),
    [
        ({}, "text", []),
        ({"options": ["a", "b"]}, "choice", ["a", "b"]),
        ({"options": ["Yes", "No"]}, "confirm", ["Yes", "No"]),
        ({"options": [True, False]}, "confirm", ["yes", "no"]),
        ({"schema": {"type": "boolean"}}, "confirm", []),
        ({"schema": {"type": "integer"}}, "number", []),
        ({"schema": {"type": "array"}}, "json", []),
        ({"schema": {"type": "string", "minLength": 2}}, "text", []),
        ({"schema": {"enum": [1, "two"]}}, "choice", ["1", "two"]),
        ({"schema": {"type": ["string", "integer"]}}, "text", []),
    ],
)
def test_the_declaration_of_a_node_defines_the_answer_field(declared, way, options):
    question = describe_pending(asks(**declared).pending[0])
    assert (question["input"], question["options"]) == (way, options)
    assert json.loads(json.dumps(question)) == question


@pytest.mark.parametrize(
    ("declared", "typed", "value"),
    [
        ({}, "3", "3"),
        ({"options": [1, 2]}, "2", 2),
        ({"options": [True, False]}, "no", False),
        ({"schema": {"type": "boolean"}}, "yes", True),
        ({"schema": {"type": "integer"}}, "3", 3),
        ({"schema": {"type": "array"}}, "[1]", [1]),
    ],
)
def test_an_answer_is_converted_to_its_type(declared, typed, value):
    session = asks(**declared)
    give(session, typed, "ask")
    assert session.board["said"] == value


@pytest.mark.parametrize(
    ("schema", "typed", "code"),
    [
        ({"type": "integer"}, "many", "U305"),
        ({"type": "integer", "maximum": 5}, "6", "U322"),
        ({"type": "boolean"}, "perhaps", "U322"),
        ({"enum": ["a", "b"]}, "c", "U322"),
    ],
)
def test_an_invalid_answer_is_rejected(schema, typed, code):
    session = asks(schema=schema)
    with pytest.raises(AgentNbError, match=code):
        give(session, typed, "ask")
    assert session.status == "waiting"


def test_a_requested_approval_is_edited_and_then_granted():
    session = to_where_it_waits(asking("cycle", "approval"))
    (pending,) = session.pending
    apply_change(session, {"arguments": [[["of"], "something else"]]}, pending.id)
    assert texts(describe_pending(session.pending[0])["arguments"]) == {"of": "something else"}
    give(session, "yes", pending.id)
    assert session.board["said"]["arguments"] == {"of": "something else"}


def test_only_editable_values_of_a_request_are_open():
    about = {
        "prompt": "May it?",
        "what": "object",
        "object_type": "note",
        "data": {"text": "x"},
        "reason": "it is said twice",
        "pack": "",
    }
    question = describe_pending(Pending("approval_1", "approval", "n", "note", about, free=("data",)))
    assert [(row["label"], row["as"] == "fixed") for row in question["arguments"]] == [
        ("what", True), ("object_type", True), ("reason", True), ("data", False),
    ]  # fmt: skip


def test_a_masked_value_is_requested_as_a_secret():
    question = describe_pending(Pending("masked_api_key", "answer", "api_key", "api_key", {"prompt": "give it again"}))
    assert question["input"] == "secret"


@pytest.mark.parametrize("by", ["node", "id"])
def test_approvals_are_granted_by_node_or_by_id(by):
    session = to_where_it_waits(asking("cycle", "approval"))
    give(session, "no, too dear", getattr(session.pending[0], by))
    assert session.board["said"] == {"approved": False, "reason": "too dear", "by": None}
