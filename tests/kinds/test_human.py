from __future__ import annotations

import networkx as nx

from tests.session.making import asking, session


def test_it_waits_and_the_answer_is_its_step():
    run = session(asking())
    assert run.step(2) is not None
    assert (run.status, run.position, run.current) == ("waiting", 1, "ask")
    step = run.answer("yes")
    assert (step.node_id, step.outputs, step.observation) == ("ask", {"answer": "yes"}, {"answer": "yes"})
    assert run.step().node_id == "after"


def test_it_says_what_is_asked():
    run = session(asking())
    run.run()
    (asked,) = run.pending
    assert (asked.kind, asked.node, dict(asked.arguments)) == (
        "answer",
        "ask",
        {"prompt": "Go on?", "options": ["yes", "no"]},
    )


def test_the_prompt_is_its_label_or_its_name_where_none_is_given():
    for attributes, prompt in (({"label": "The owner"}, "The owner"), ({}, "ask")):
        made = nx.DiGraph()
        made.add_node("ask", kind="human", **attributes)
        run = session(made)
        run.step()
        assert dict(run.pending[0].arguments) == {"prompt": prompt}
        assert run.answer("x").outputs == {"ask": "x"}


def test_an_answer_may_be_any_value():
    run = session(asking(), answers=[{"choice": ["a"], "why": None}])
    run.step(2)
    assert run.board["answer.choice.0"] == "a"


def test_asking_is_in_the_calls():
    run = session(asking(), answers=["yes"])
    run.run()
    (call,) = run.trace.frames.calls.to_dict("records")
    assert (call["kind"], call["node"], call["result"]) == ("human", "ask", "yes")
