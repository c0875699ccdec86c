from __future__ import annotations

import networkx as nx
import pytest

import agentnb as nb
from agentnb.clock import FrozenClock
from agentnb.recipe.model import Node, Recipe
from agentnb.session import Session
from tests.session.small_sessions import asking, session


def test_it_waits_and_the_answer_completes_its_step():
    run = session(asking())
    assert run.step(2) is not None
    assert (run.status, run.position, run.current) == ("waiting", 1, "ask")
    step = run.answer("yes")
    assert (step.node_id, step.outputs, step.observation) == ("ask", {"answer": "yes"}, {"answer": "yes"})
    assert run.step().node_id == "after"


def test_it_shows_the_question():
    run = session(asking())
    run.run()
    (question,) = run.pending
    assert (question.kind, question.node, dict(question.arguments)) == (
        "answer",
        "ask",
        {"prompt": "Go on?", "options": ["yes", "no"]},
    )


def test_the_default_prompt_is_its_label_or_name():
    for attributes, prompt in (({"label": "The owner"}, "The owner"), ({}, "ask")):
        graph = nx.DiGraph()
        graph.add_node("ask", kind="human", **attributes)
        run = session(graph)
        run.step()
        assert dict(run.pending[0].arguments) == {"prompt": prompt}
        assert run.answer("x").outputs == {"ask": "x"}


def test_an_answer_may_be_any_value():
    graph = asking()
    del graph.nodes["ask"]["options"]
    run = session(graph, answers=[{"choice": ["a"], "why": None}])
    run.step(2)
    assert run.board["answer.choice.0"] == "a"


def test_questions_are_recorded_as_calls():
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


def test_a_question_has_a_role_and_a_time_limit():
    run = Session(made_of(role="reviewer", timeout=600))
    run.step()
    assert dict(run.pending[0].arguments) == {"prompt": "Refund?", "role": "reviewer", "timeout": 600}
    run = Session(made_of(timeout=0, role=""))
    run.step()
    assert dict(run.pending[0].arguments) == {"prompt": "Refund?"}


def test_an_answer_in_time_is_accepted():
    run = Session(made_of(timeout=600))
    run.step()
    assert run.answer("yes").outputs == {"response": "yes"}


def test_a_late_answer_counts_as_none():
    run = Session(made_of(timeout=600), clock=Hurrying())
    run.run()
    run.run()
    assert (run.status, run.current) == ("failed", "ask")
    assert isinstance(run.cause, TimeoutError)


def test_on_a_terminal_the_prompt_names_the_role(monkeypatch):
    requests = []
    monkeypatch.setattr("agentnb.world.world.ask_on_terminal", lambda prompt, *rest: requests.append(prompt) or "yes")
    Session(made_of(role="reviewer")).run()
    Session(made_of()).run()
    assert requests == ["Refund? (for role reviewer)", "Refund?"]


def test_an_invalid_answer_is_rejected_and_the_question_stays_open():
    graph = nx.DiGraph()
    graph.add_node("ask", kind="human", prompt="How many?", schema={"type": "integer", "maximum": 5}, output="n")
    run = session(graph)
    run.step()
    assert dict(run.pending[0].arguments)["schema"] == {"type": "integer", "maximum": 5}
    with pytest.raises(nb.ExecutionError, match="X144"):
        run.answer("many")
    assert (run.status, run.position, len(run.trace.frames.calls)) == ("waiting", 0, 0)
    assert run.answer(3).outputs == {"n": 3}


def choosing(*options, **attributes):
    graph = nx.DiGraph()
    graph.add_node("ask", kind="human", prompt="Buy?", options=list(options), output="said", **attributes)
    return graph


@pytest.mark.parametrize("typo", ["maybe", "Yes", "y", "", "yess", None, True, ["yes"], {"yes": 1}])
def test_an_answer_that_is_not_an_option_is_rejected_and_nothing_is_lost(typo):
    run = session(choosing("yes", "no"))
    run.run()
    with pytest.raises(nb.ExecutionError, match="its options are: yes, no") as caught:
        run.answer(typo)
    assert [problem.code for problem in caught.value.problems] == ["X147"]
    assert (run.status, run.position, len(run.pending)) == ("waiting", 0, 1)
    assert run.answer(" yes ").outputs == {"said": "yes"}


def test_the_nearest_option_is_suggested():
    run = session(choosing("approve", "Deny"))
    run.run()
    for typo, meant in (("aprove", "approve"), ("deny", "Deny")):
        with pytest.raises(nb.ExecutionError, match=f"did you mean '{meant}'"):
            run.answer(typo)


@pytest.mark.parametrize(
    ("answer", "said"), [(True, True), ("no", False), (1, 1), ("1", 1), ("2.5", 2.5), ("low", "low"), (2.5, 2.5)]
)
def test_an_option_may_be_any_value_and_can_be_chosen_by_its_text(answer, said):
    run = session(choosing(*[True, False, 1, 2.5, "low"]))
    run.run()
    run.answer(answer)
    assert run.board["said"] == said
    assert type(run.board["said"]) is type(said)


def test_a_scripted_answer_that_is_not_an_option_fails_its_node():
    run = session(choosing("yes", "no"), answers=["maybe"])
    run.run()
    assert (run.status, run.error.code, dict(run.board)) == ("failed", "X147", {})


def test_a_paused_question_accepts_no_invalid_answer_either():
    run = session(choosing("yes", "no"), answers=["yes"])
    for side in ("before", "after"):
        run.breakpoints.add(call="human", side=side)
    run.run()
    for _ in range(2):
        with pytest.raises(nb.ExecutionError, match="X147"):
            run.change(run.pending[0].id, answer="maybe")
        run.run()
    assert (run.status, run.board["said"]) == ("finished", "yes")


def test_on_a_terminal_a_typo_repeats_the_question(monkeypatch):
    lines, requests = ["maybe", "no"], []
    monkeypatch.setattr(
        "agentnb.world.world.ask_on_terminal", lambda prompt, *_: requests.append(prompt) or lines.pop(0)
    )
    run = session(choosing("yes", "no"))
    run.run()
    assert run.board["said"] == "no"
    assert requests[0] == "Buy? [yes, no]"
    assert "'maybe' is not one of the options" in requests[1]


def test_on_a_terminal_a_number_is_parsed_according_to_the_schema(monkeypatch):
    lines = ["many", "4"]
    monkeypatch.setattr("agentnb.world.world.ask_on_terminal", lambda *_: lines.pop(0))
    graph = nx.DiGraph()
    graph.add_node("ask", kind="human", schema={"type": "integer"}, output="n")
    run = session(graph)
    run.run()
    assert run.board["n"] == 4
