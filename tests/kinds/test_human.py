from __future__ import annotations

import networkx as nx

from agentnb.clock import FrozenClock
from agentnb.recipe.model import Node, Recipe
from agentnb.session import Session
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


class Hurrying(FrozenClock):
    """A clock that goes on by an hour whenever it is looked at."""

    def ns(self):
        self._ns += 3_600_000_000_000
        return self._ns


def made_of(**params):
    node = Node("ask", "human", params={"prompt": "Refund?", **params})
    return Recipe("made", "test", {"ask": node}, (), ("ask",))


def test_who_is_asked_and_for_how_long_stands_with_the_question():
    run = Session(made_of(role="reviewer", timeout=600))
    run.step()
    assert dict(run.pending[0].arguments) == {"prompt": "Refund?", "role": "reviewer", "timeout": 600}
    run = Session(made_of(timeout=0, role=""))
    run.step()
    assert dict(run.pending[0].arguments) == {"prompt": "Refund?"}


def test_an_answer_that_comes_in_time_is_the_answer():
    run = Session(made_of(timeout=600))
    run.step()
    assert run.answer("yes").outputs == {"response": "yes"}


def test_whoever_does_not_answer_in_time_has_not_answered():
    run = Session(made_of(timeout=600), clock=Hurrying())
    run.run()
    run.run()
    assert (run.status, run.current) == ("failed", "ask")
    assert isinstance(run.cause, TimeoutError)


def test_on_a_terminal_the_line_says_for_which_role(monkeypatch):
    asked = []
    monkeypatch.setattr("agentnb.world.world.ask_on_terminal", lambda prompt, *rest: asked.append(prompt) or "yes")
    Session(made_of(role="reviewer")).run()
    Session(made_of()).run()
    assert asked == ["Refund? (for role reviewer)", "Refund?"]


def test_an_answer_that_does_not_fit_its_schema_fails_the_node_and_is_asked_for_again():
    made = nx.DiGraph()
    made.add_node("ask", kind="human", prompt="How many?", schema={"type": "integer", "maximum": 5}, output="n")
    run = session(made)
    run.step()
    assert dict(run.pending[0].arguments)["schema"] == {"type": "integer", "maximum": 5}
    run.answer("many")
    assert (run.status, run.error.code) == ("failed", "X144")
    run.retry()
    assert run.answer(3).outputs == {"n": 3}
