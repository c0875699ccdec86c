from __future__ import annotations

import pytest

import agentnb as nb
from agentnb.recipe.model import Edge, Node, Recipe
from agentnb.ui.artifacts import diff_lines, make_artifact
from agentnb.ui.prompts import describe_pending, describe_request

FIRST = "# Offer\n\nDear Ada,\n\n- one night\n- breakfast\n\nWe charge 90 EUR."
SECOND = (
    "# Offer\n\nDear Ada,\n\n- two nights\n- breakfast\n\nWe charge **160 EUR**, see [terms](https://example.com/t)."
)


def offers():
    """Return a recipe whose person sees each draft of an offer, and how it differs from the one before."""

    def write(rounds):
        return {"offer": (FIRST, SECOND)[min(rounds, 1)], "rounds": rounds + 1, "rooms": {"beds": rounds + 1}}

    nodes = [
        Node("write", "function", inputs={"rounds": ("rounds",)}, reads=("rounds",),
             writes=("offer", "rounds", "rooms"), params={"function": write}),
        Node("decide", "human", reads=("offer", "rooms"), writes=("verdict",),
             params={"prompt": "Send it?", "output": "verdict"}),
    ]  # fmt: skip
    edges = (Edge("write", "decide"), Edge("decide", "write"))
    return Recipe("offers", "test", {node.id: node for node in nodes}, edges, ("write",), {"rounds": int})


def second_draft():
    session = nb.Session(offers(), {"rounds": 0})
    session.run()
    session.answer("shorter")
    session.run()
    return session


def test_the_first_version_has_no_changes():
    session = nb.Session(offers(), {"rounds": 0})
    session.run()
    offer, rooms = describe_request(session, session.pending[0])
    assert offer == {"key": "offer", "text": FIRST, "as": "text"}
    assert rooms == {"key": "rooms", "text": '{\n  "beds": 1\n}', "as": "json"}


def test_a_request_is_shown_after_routing_nodes():
    session = nb.Session(nb.samples("approval"))
    session.run()
    (question,) = session.pending
    assert question.node == "manager"
    request = describe_request(session, question)
    assert {value["key"]: value["text"] for value in request} == {
        "request": "Two monitors for the new colleague, 640 euros",
        "requester": "Ada",
        "amount": "640",
        "size": "large",
    }


def test_a_later_version_is_compared_with_the_one_that_it_replaced():
    session = second_draft()
    offer, rooms = describe_request(session, session.pending[0])
    signs = [sign for sign, _ in offer["diff"]]
    assert signs == [" ", " ", " ", " ", "-", "+", " ", " ", "-", "+"]
    assert offer["since"] == "the value before step 3"
    assert "".join(text for text, _ in offer["diff"][5][1]) == "- two nights"
    assert [sign for sign, _ in rooms["diff"]] == [" ", "-", "+", " "]


def test_both_versions_can_be_reconstructed_from_the_lines():
    for before, after in ((FIRST, SECOND), ("a\nb\nc", "b\nc\nd"), ("one", ""), ("x" * 3000, "x" * 2999), ("", "a")):
        lines = [(sign, "".join(text for text, _ in parts)) for sign, parts in diff_lines(before, after)]
        assert [text for sign, text in lines if sign in " -"] == before.splitlines()
        assert [text for sign, text in lines if sign in " +"] == after.splitlines()


def test_secrets_are_masked_in_both_versions():
    artifact = make_artifact({"api_key": "sk-abc"}, "x", {"api_key": "sk-old"}, "before")
    assert "sk-" not in str(artifact)
    assert "diff" not in make_artifact("new", "password", "old", "before")


def test_a_value_of_another_type_is_not_an_earlier_version():
    assert "diff" not in make_artifact("1", "n", 1, "before")
    assert "diff" not in make_artifact("now", "n", "", "before")


@pytest.mark.parametrize(("op", "lost"), [("update", False), ("replace", True)])
def test_a_pending_patch_shows_what_it_would_replace(op, lost):
    from tests.dialects.activegraph.runtimes import on, runtime

    @on("looked")
    def propose(event, graph, ctx):
        graph.propose_patch(event.payload["id"], op, {"state": "done"}, rationale="it is done")

    team = runtime(propose)
    task = team.graph.add_object("task", {"state": "open", "title": "write"})
    team.session.emit("looked", {"id": task.id})
    team.run_until_idle()
    (value,) = (row for row in describe_pending(team.session.pending[0])["arguments"] if row["label"] == "value")
    lines = [(sign, "".join(text for text, _ in parts).strip(' ",')) for sign, parts in value["diff"]]
    assert ("+", 'state": "done') in lines
    assert ("-", 'title": "write') in lines if lost else "title" not in str(lines)
