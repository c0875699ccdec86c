from __future__ import annotations

import json

import agentnb as nb
from agentnb.recipe.model import Edge, Node, Recipe
from agentnb.session import Session
from agentnb.ui.details.cells import Cells
from agentnb.ui.details.step import describe_step
from agentnb.world.llm.base import LLMResponse, Usage
from tests.ui import ticket_recipe


def describe(session, number):
    details = describe_step(session, number, Cells())
    json.dumps(details)
    return details


def texts(cells):
    return {cell["name"]: cell["text"] for cell in cells}


def test_a_step_shows_status_inputs_and_writes():
    session = ticket_recipe.session("hello")
    session.step()
    actual = describe(session, 1)
    assert (actual["step"], actual["node"], actual["phase"], actual["status"], actual["frame"]) == (
        1,
        "classify",
        "run",
        "ok",
        "root",
    )
    assert texts(actual["inputs"]) == {"ticket": "hello"}
    (change,) = actual["outputs"]
    assert (change["key"], change["old"], change["new"]["text"], change["op"]) == ("category", None, "other", "set")
    assert actual["seconds"] > 0
    assert actual["time"].endswith("+00:00")


def test_a_change_shows_the_previous_value_and_its_author():
    session = ticket_recipe.session("hello")
    session.step()
    session.edit({"category": "refund", "ticket": nb.ABSENT})
    written, by_hand, deleted = describe(session, 1)["outputs"]
    assert (written["note"], by_hand["note"], by_hand["old"]["text"], by_hand["new"]["text"]) == (
        "",
        "by a person",
        "other",
        "refund",
    )
    assert (deleted["op"], deleted["new"], deleted["old"]["text"]) == ("delete", None, "hello")
    interventions = describe(session, 1)["interventions"]
    assert [
        (intervention["action"], intervention["target"], intervention["actor"]) for intervention in interventions
    ] == [
        ("edit", "category", "user"),
        ("edit", "ticket", "user"),
    ]
    assert interventions[0]["new"]["text"] == "refund"


def test_a_route_has_its_conditions_and_reads_at_any_step():
    session = ticket_recipe.session()
    session.run()
    session.answer("yes")
    actual = describe(session, 1)
    assert [(one["target"], one["kind"], one["condition"]) for one in actual["targets"]] == [
        ("ask", "conditional", "category == 'refund'")
    ]
    triage = nb.Session(nb.samples("triage"))
    triage.step(4)
    explanation = describe(triage, 2)["why"]
    assert [(one["condition"], one["target"], one["value"], one["taken"]) for one in explanation] == [
        ("topic == 'refund'", "check_order", "True", True),
        ("topic == 'bug'", "find_bug", "False", False),
    ]
    assert explanation[0]["operands"] == [["topic", "refund"]]
    triage.back(4)
    assert describe(triage, 2)["why"] == explanation


def test_a_condition_that_cannot_be_evaluated_again_is_marked():
    class Once(ticket_recipe.When):
        def explain(self, board):
            raise RuntimeError("only once")

    nodes = {name: Node(name, "noop") for name in "ab"}
    edges = (Edge("a", "b", "conditional", Once("n", 1), "n == 1"),)
    session = Session(Recipe("g", "test", nodes, edges, ("a",)), {"n": 1}, validate_inputs=False)
    session.step()
    actual = describe(session, 1)
    assert [one["condition"] for one in actual["why"]] == ["cannot be evaluated: RuntimeError"]
    assert [one["target"] for one in actual["targets"]] == ["b"]


def test_a_failure_is_a_card():
    session = ticket_recipe.session(answers=["explode"])
    session.run()
    assert session.status == "failed"
    number = len(session.trace)
    assert describe(session, number)["error"]["code"] == "X100"
    session.skip({"sent": False})
    card = describe(session, number)["error"]
    assert card["what"] == "'tell' failed: ValueError: <b>the till is empty</b>"
    assert card["severity"] == "error"


def test_a_failure_that_the_recipe_handles_is_a_warning_with_each_attempt():
    session = nb.Session(nb.samples("research"))
    session.run()
    number = next(step.step for step in session.trace.steps if step.status == "error")
    actual = describe(session, number)
    assert (actual["error"]["severity"], actual["error"]["code"]) == ("warning", "")
    assert [(call["attempt"], call["kind"], call["result"]) for call in actual["calls"]] == [
        (1, "tool", None),
        (2, "tool", None),
    ]
    assert actual["calls"][1]["wait"] > 0
    assert "ConnectionError" in actual["calls"][0]["error"]["text"]
    assert actual["targets"][0]["kind"] == "error"
    assert (actual["frame"], actual["round"]) == ("each / look_up", 1)


def test_a_model_call_has_messages_with_roles_and_its_tokens():
    def model(request):
        return LLMResponse("blue light is scattered", "small", Usage(12, 5))

    session = nb.Session(nb.samples("rag"), llm=model)
    session.run()
    (call,) = describe(session, 3)["calls"]
    assert [cell["name"] for cell in call["messages"]] == ["system", "user"]
    assert call["messages"][1]["text"].startswith("Question: Why is the sky blue")
    assert call["tokens"] == [12, 5]
    assert (call["result"]["text"], call["error"], call["arguments"]) == ("blue light is scattered", None, [])


def test_a_tool_call_has_its_arguments():
    session = nb.Session(nb.samples("rag"))
    session.step()
    (call,) = describe(session, 1)["calls"]
    assert texts(call["arguments"]) == {"query": "Why is the sky blue, and red in the evening?"}
    assert (call["messages"], call["attempt"], call["tokens"]) == ([], 1, None)


def test_a_delivery_has_its_cause_and_its_effects():
    session = nb.Session(nb.samples("team"))
    session.emit("goal.created", {"goal": "How swifts live"})
    session.step(9)
    actual = describe(session, 9)
    assert (actual["node"], actual["delivered"]["type"], actual["delivered"]["actor"]) == (
        "review",
        "object.created",
        "write",
    )
    assert [(type_, step) for _, type_, step, _ in actual["delivered"]["causes"]] == [
        ("task.ready", 5), ("task.done", 2), ("object.created", 1), ("goal.created", None),
    ]  # fmt: skip
    assert "draft.returned" in [event["type"] for event in actual["events"]]
    assert actual["sets_off"] == ["write"]


def test_a_step_has_its_iteration_and_branch():
    session = nb.Session(nb.samples("search"))
    session.run()
    looks = [step.step for step in session.trace.steps if step.node_id == "look"]
    assert [describe(session, step)["branch"] for step in looks] == [0] * len(looks)
    notes = [step.step for step in session.trace.steps if step.node_id == "note"]
    assert [describe(session, step)["round"] for step in notes] == list(range(1, len(notes) + 1))


def test_the_thought_of_a_node_is_shown():
    session = nb.Session(nb.samples("triage"))
    session.step(2)
    assert texts(describe(session, 2)["notes"])["thought"].startswith("Router decision based on topic=refund")


def test_a_fork_describes_shared_steps():
    session = ticket_recipe.session("hello")
    session.run()
    fork = session.fork(at=1, edit={"ticket": "money back"})
    fork.step()
    assert describe(fork, 1)["node"] == "classify"
    assert "by a person" in [change["note"] for change in describe(fork, 1)["outputs"]]


def test_a_stored_run_is_described_without_its_recipe(tmp_path):
    session = nb.Session(nb.samples("rag"), store=tmp_path / "runs.db", run_id="one")
    session.run()
    before = [describe(session, number) for number in range(1, 4)]
    session.close()
    recording = nb.open(tmp_path / "runs.db", "one")
    after = [describe(recording, number) for number in range(1, 4)]
    assert [one["node"] for one in after] == [one["node"] for one in before]
    assert [texts(one["inputs"]) for one in after] == [texts(one["inputs"]) for one in before]
    assert after[2]["calls"][0]["messages"] == before[2]["calls"][0]["messages"]


def test_a_skipped_step_is_marked():
    session = ticket_recipe.session(answers=["explode"])
    session.run()
    session.skip({"sent": True})
    actual = describe(session, len(session.trace))
    assert (actual["status"], actual["error"]) == ("skipped", None)
