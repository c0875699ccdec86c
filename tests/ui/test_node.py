from __future__ import annotations

import json

import pytest

import agentnb as nb
from agentnb.dialects.activegraph import Graph, Runtime, behavior
from agentnb.draw.reactive import get_event_type
from agentnb.ui.details.cells import Cells
from agentnb.ui.details.node import describe_node, explain_not_run, iter_prompts, to_plain
from tests.ui import ticket_recipe


def describe(session, name):
    return describe_node(session, name, Cells())


def texts(cells):
    return {cell["name"]: cell["text"] for cell in cells}


@pytest.fixture(scope="module")
def team():
    session = nb.Session(nb.samples("team"))
    session.emit("goal.created", {"goal": "How swifts live"})
    session.step(8)
    return session


def test_a_node_reports_its_place_and_its_definition():
    actual = describe(nb.Session(nb.samples("triage")), "sort")
    assert actual["place"].endswith("samples/triage.yaml:26")
    assert (actual["path"], actual["kind"], actual["missing"]) == ("topology.nodes[1].id", "router", False)
    (definition,) = actual["definition"]
    assert definition["text"].startswith("- id: sort\n  type: router")
    assert definition["name"] == actual["place"]
    assert texts(actual["parameters"]) == {
        "input_key": "['topic']",
        "routes": "{'refund': 'check_order', 'bug': 'find_bug'}",
        "default": "write",
    }
    assert [True, "check_order", "route", "refund"] in actual["edges"]
    assert [False, "read", "sequential", ""] in actual["edges"]


def test_a_node_reports_reads_writes_and_inputs():
    facts = dict(describe(nb.Session(nb.samples("triage")), "check_order")["facts"])
    assert facts == {
        "inputs": "text ← ticket, customer ← customer",
        "reads": "ticket, customer",
        "writes": "order, charges, refund",
    }
    inside = dict(describe(nb.Session(nb.samples("research")), "archive")["facts"])
    assert inside["inside"] == "answer, look_up"
    assert inside["calls"].startswith("archive (python, tools/research.py#archive, ")
    assert (
        dict(describe(nb.Session(nb.samples("research")), "answer")["facts"])["steps"]
        == "are not counted towards max_steps"
    )


def test_functions_of_the_recipe_and_bound_ones_are_shown_by_their_source():
    (definition,) = describe(nb.Session(nb.samples("refine")), "measure")["definition"]
    assert 'return {"error": abs(guess * guess - number)}' in definition["text"]
    text, function = describe(nb.Session(nb.samples("rag")), "find")["definition"]
    assert (text["text"].startswith("- id: find"), function["text"].startswith("def search(")) == (True, True)
    assert "text_search.py:" in function["name"]


@pytest.mark.parametrize(
    ("sample", "name", "prompt"),
    [
        ("triage", "review", [("asks", "Send this reply? Say approve, drop, or what to change.")]),
        ("rag", "answer", [("system", "{{> rules }}"), ("user", "Question: {{ question }}\n\n{% for passage")]),
        ("team", "write", [("description", "You write short memos")]),
        ("refine", "start", []),
    ],
)
def test_a_prompt_is_shown_as_written(sample, name, prompt):
    actual = list(iter_prompts(nb.samples(sample).nodes[name]))
    assert [role for role, _ in actual] == [role for role, _ in prompt]
    assert all(text.startswith(start) for (_, text), (_, start) in zip(actual, prompt, strict=True))


def test_the_next_node_is_marked():
    session = ticket_recipe.session()
    session.step(2)
    assert describe(session, "ask")["now"] == "waits for a person"
    assert describe(session, "tell")["now"] == ""
    second = ticket_recipe.session("hello")
    assert describe(second, "classify")["now"] == "is next"
    held = nb.Session(nb.samples("rag"))
    held.step_into()
    assert describe(held, "find")["now"].startswith("is at work, held before")
    failed = ticket_recipe.session(answers=["explode"])
    failed.run()
    assert describe(failed, "tell")["now"] == "has failed"
    nested = nb.Session(nb.samples("refine"))
    nested.step(3)
    assert describe(nested, "improve")["now"] == "was entered, and has not been left"


def test_a_behavior_reports_what_triggers_it(team):
    actual = describe(team, "search")
    assert texts(actual["reacts"]) == {
        "on": "['object.created']",
        "where": "{'object.type': 'task', 'object.data.kind': 'question'}",
        "creates": "['note']",
    }
    assert (actual["listens"], actual["label"]) == (True, "")
    assert actual["definition"][0]["text"].startswith("def search(")
    assert texts(describe(team, "unblock")["reacts"])["relation type"] == "blocks"


def test_a_behavior_reports_all_its_options():
    @behavior(on=["a"], priority=3, budget={"max_llm_calls": 2}, activate_after=2, pattern="(t:task)", name="late")
    def late(event, graph, ctx):
        """Do nothing."""

    session = Runtime(Graph(), behaviors=[late]).session
    assert texts(describe(session, "late")["reacts"]) == {
        "on": "['a']",
        "pattern": "(t:task)",
        "activate after": "2",
        "priority": "3",
        "budget": "{'max_llm_calls': 2}",
    }


def test_an_event_type_reports_emitters_and_triggered_behaviors(team):
    name = next(id_ for id_ in ids_of(team) if get_event_type(team.recipe, id_) == "task.done")
    actual = describe(team, name)
    facts = dict(actual["facts"])
    assert (facts["emitted"], facts["emitted by"], facts["triggered"]) == ("3 times", "search (×3)", "unblock (×3)")
    assert [event["type"] for event in actual["latest"]] == ["task.done"] * 3
    json.dumps(actual)


def ids_of(session):
    from agentnb.draw.reactive import get_event_id_prefix

    return [get_event_id_prefix(session.recipe) + type_ for type_ in ("task.done", "nothing.of.the.sort")]


def test_a_behavior_reports_why_it_was_not_triggered(team):
    actual = explain_not_run(team, ["publish", None])
    assert "listens to 'draft.accepted'" in actual["reason"]
    event = next(event for event in team.events if event.type == "object.created")
    explanation = explain_not_run(team, ["review", event.id])
    assert "where: object.type should be 'draft'" in explanation["reason"]
    assert explanation["edges"][0][:2] == ["object.created", "event"]
    assert explain_not_run(team, ["review", "evt_999"])["reason"].startswith("there is no event 'evt_999'")
    assert explain_not_run(team, "nobody")["edges"] == []
    json.dumps([actual, explanation])


def test_parameters_become_plain_values():
    class When:
        text = "n > 1"

    class Strange:
        def __repr__(self):
            return "<strange>"

    plain = to_plain({"when": When(), "kinds": (int, str), "call": len, int: Strange(), "n": 1.5})
    assert plain == {"when": "n > 1", "kinds": ["int", "str"], "call": "len", "int": "<strange>", "n": 1.5}
