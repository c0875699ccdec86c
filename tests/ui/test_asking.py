from __future__ import annotations

import json

import pytest

import agentnb as nb
from agentnb.errors import AgentNbError
from agentnb.ui.asking import asked, change, give
from tests.session.shaped import asking, to_where_it_waits


def held(steps=3):
    """Return a session that is held inside its agent: before its call goes out, or one further after it came back."""
    session = nb.Session(nb.samples("moderation"))
    for _ in range(steps):
        session.step_into()
    return session


def texts(fields):
    return {field["label"]: field["text"] for field in fields}


def test_an_approval_says_for_what_and_with_what():
    (pending,) = to_where_it_waits(asking("cycle", "approval")).pending
    found = asked(pending)
    assert (found["kind"], found["name"], texts(found["arguments"])) == ("approval", "may it", {"of": "again"})


def test_a_call_shows_what_it_sends_and_then_what_it_answers():
    before = asked(held(3).pending[0])
    assert texts(before["arguments"])["user message"] == "Comment 7 by Kim: You are a fool."
    assert before["answer"] is None
    after = asked(held(4).pending[0])
    assert texts(after["answer"])["tool_name"] == "none"
    assert json.loads(json.dumps(after)) == after


def test_a_call_that_is_held_goes_out_as_it_was_changed():
    session = held()
    (pending,) = session.pending
    change(session, {"arguments": [[["messages", 1, "content"], "Comment 8: Hello."]]}, pending.id)
    messages = session.pending[0].arguments["messages"]
    assert [message["content"] for message in messages][1] == "Comment 8: Hello."
    assert messages[0] == pending.arguments["messages"][0]
    session.step_into()
    change(session, {"answer": [[["response"], "Leave it."]]}, pending.id)
    session.step_into()
    assert session.board["answer"]["response"] == "Leave it."


def test_a_call_that_has_gone_on_cannot_be_changed():
    session = held()
    (pending,) = session.pending
    session.step()
    with pytest.raises(AgentNbError, match="U307"):
        change(session, {"arguments": []}, pending.id)


@pytest.mark.parametrize("by", ["node", "id"])
def test_leave_is_given_by_the_node_or_by_the_number_of_what_waits(by):
    session = to_where_it_waits(asking("cycle", "approval"))
    give(session, "no, too dear", getattr(session.pending[0], by))
    assert session.board["said"] == {"approved": False, "reason": "too dear", "by": None}
