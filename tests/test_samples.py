from __future__ import annotations

import sys
from collections import Counter

import pytest

from agentnb.clock import FrozenClock
from agentnb.errors import ExecutionError, RecipeError
from agentnb.load import dialects
from agentnb.samples import ANSWERS, EVENTS, samples
from agentnb.scenarios import run_scenarios
from agentnb.session import Session
from tests.samples.installed import NAMES


def test_the_list_has_each_sample_with_its_dialect():
    shown = repr(samples())
    for sample in samples():
        assert f"{sample.name} " in shown
        assert sample.dialect in {row.name for row in dialects()}


@pytest.mark.parametrize("name", NAMES)
def test_a_sample_has_no_problems_and_draws(name):
    recipe = samples(name)
    assert recipe.name.lower() == name
    assert recipe.check() == []
    assert recipe.draw().dot.startswith("digraph")
    assert recipe.fingerprint == samples(name).fingerprint


@pytest.mark.parametrize("name", NAMES)
def test_a_sample_starts_without_inputs(name):
    recipe = samples(name)
    may_be_empty = recipe.dialect in {"langgraph", "burr"}  # their inputs may be empty, or are asked for
    assert may_be_empty or set(recipe.inputs) <= set(recipe.init)


def test_each_dialect_has_two_samples():
    count = Counter(sample.dialect for sample in samples())
    assert {row.name for row in dialects() if count[row.name] < 2} == set()


def test_a_sample_of_a_missing_package_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "langgraph.graph", None)
    monkeypatch.delitem(sys.modules, "agentnb.samples.state_graphs", raising=False)
    with pytest.raises(ExecutionError, match="langgraph") as caught:
        samples("trip")
    assert (caught.value.problems[0].code, "pip install" in caught.value.problems[0].do) == ("L590", True)


def test_the_triage_has_the_features_of_a_first_look():
    kinds = [node.kind for node in samples("triage").nodes.values()]
    assert {"agent", "router", "human"} <= set(kinds)
    assert len([edge for edge in samples("triage").edges if edge.source == "sort"]) == 3


def test_a_misspelled_name_has_a_suggestion():
    with pytest.raises(RecipeError) as caught:
        samples("tirage")
    (problem,) = caught.value.problems
    assert (problem.code, problem.do) == ("R132", "did you mean 'triage'?")


@pytest.mark.parametrize("name", NAMES)
def test_a_sample_runs_offline_to_its_end(name):
    session = Session(samples(name), answers=ANSWERS.get(name))
    for type_, payload in EVENTS.get(name, ()):
        session.emit(type_, payload)
    session.run()
    assert (session.status, session.error) == ("idle" if name in EVENTS else "finished", None)
    assert session.position > 0


def test_the_triage_loops_until_a_person_approves():
    session = Session(samples("triage"), answers=ANSWERS["triage"])
    visited = [step.node_id for step in session.run().steps]
    assert visited.count("write") == 2
    assert visited[-2:] == ["decide", "close"]


def test_the_document_is_revised_until_its_score_is_sufficient():
    session = Session(samples("document"))
    session.run()
    verdicts = [step.observation["score"] for step in session.trace.steps if step.node_id == "judge"]
    assert (verdicts, session.trace.score, session.trace.steps[-1].node_id) == ([0.3, 0.6, 0.9], 0.9, "publish")


def test_the_documents_scenarios_pass():
    assert run_scenarios(samples("document")).counts == "2 passed"


@pytest.mark.parametrize(("answers", "last"), [(["no"], "refuse"), (["yes", "no"], "refuse"), (["yes", "yes"], "tell")])
def test_the_approval_needs_every_yes(answers, last):
    session = Session(samples("approval"), answers=answers)
    session.run()
    assert (session.status, session.trace.steps[-1].node_id) == ("finished", last)


def test_an_unanswered_approval_is_denied():
    class Hours(FrozenClock):
        hours = 0

        def ns(self):
            return super().ns() + self.hours * 3600 * 10**9

    clock = Hours()
    session = Session(samples("approval"), clock=clock)
    session.run()
    assert session.pending[0].seconds_left == 3600
    clock.hours = 1
    session.run()
    assert [step.node_id for step in session.trace.steps][-2:] == ["manager", "refuse"]


def test_the_triage_waits_for_a_person():
    session = Session(samples("triage"), answers=[])
    session.run()
    assert (session.status, session.current) == ("waiting", "review")


def test_other_inputs_take_other_routes():
    offers = {}
    for item in ("lamp", "desk"):
        session = Session(samples("fanout"), {"item": item})
        session.run()
        offers[item] = session.board["offer"]
    assert offers["lamp"] != offers["desk"]


def test_the_loop_converges():
    session = Session(samples("refine"), {"number": 9.0})
    session.run()
    assert session.board["root"] == 3.0


# -- agentruntime's -----------------------------------------------------------------------------------------------


def nodes(session):
    return [step.node_id for step in session.trace.steps]


def test_the_rag_agent_asks_the_model_with_its_search_results():
    requests = []
    session = Session(samples("rag"), llm=lambda request: requests.append(request) or "Light is scattered.")
    session.run()
    assert nodes(session) == ["find", "good_enough", "answer"]
    assert session.board["answer"] == "Light is scattered."
    assert session.board["sources"][0] == "sky"
    assert all(passage["text"] in requests[0].prompt for passage in session.board["passages"])
    assert "Answer in two sentences" in requests[0].messages[0].content
    session.goto(2)
    assert [answer.taken for answer in session.why().conditions] == [True]


@pytest.mark.parametrize(
    ("question", "path"),
    [
        ("Who won the football match?", ["find", "nothing"]),
        ("What does the earth do?", ["find", "good_enough", "nothing"]),
    ],
)
def test_the_rag_agent_does_not_ask_the_model_without_results(question, path):
    session = Session(samples("rag"), {"question": question}, llm=[], clock=FrozenClock())
    session.run()
    assert (nodes(session), session.status) == (path, "finished")
    assert session.board["answer"] == "None of my texts says anything about that."


def test_the_research_agent_copes_with_a_closed_archive():
    session = Session(samples("research"), llm=["It is known."], clock=FrozenClock())
    session.run()
    assert (session.board["done"], session.board["report"]) == (2, "It is known.")
    findings = session.board["history.findings"]
    assert len(findings) == 2
    assert "tide" in findings[0].lower()
    calls = session.trace.frames.calls
    assert calls[calls["name"] == "archive"]["attempt"].tolist() == [1, 2, 1, 2]
    assert {step.frame.split("@")[0] for step in session.trace.steps} == {"root", "each", "look_up"}


def test_the_research_agent_reports_missing_knowledge():
    session = Session(samples("research"), {"topics": ["xylophones"]}, llm=["Nothing."], clock=FrozenClock())
    session.run()
    assert "unknown" in nodes(session)
    assert session.board["history.findings"] == ["Nothing is known about What is known about xylophones?"]


def test_the_assistant_remembers_each_conversation():
    recipe, requests = samples("assistant"), []

    def say(session_id, said):
        session = Session(
            recipe, {"session_id": session_id, "said": said}, llm=lambda request: requests.append(request) or "Hi!"
        )
        session.run()
        return session.board

    say("eve", "I am Eve.")
    say("bob", "I am Bob.")
    board = say("eve", "Who am I?")
    assert [message["content"] for message in board["messages"]] == ["I am Eve.", "Hi!", "Who am I?", "Hi!"]
    assert "user: I am Eve." in requests[-1].prompt
    assert "Bob" not in requests[-1].prompt


@pytest.mark.parametrize("name", ["rag", "research", "assistant"])
def test_going_back_and_forth_gives_the_same_run(name):
    session = Session(samples(name), clock=FrozenClock())
    session.run()
    boards = {number: dict(session.goto(number).board) for number in range(session.position, -1, -1)}
    for number in range(len(boards)):
        assert dict(session.goto(number).board) == boards[number]
        fork = session.fork(at=number)
        fork.run()
        assert dict(fork.board) == boards[len(boards) - 1]


@pytest.mark.skipif("cafe" not in NAMES, reason="Burr is not installed")
def test_the_cafe_serves_what_is_on_the_menu():
    session = Session(samples("cafe"), answers=ANSWERS["cafe"])
    session.run()
    assert (session.board["bill"], session.board["declined"]) == (8, ["steak"])


@pytest.mark.skipif("poster" not in NAMES, reason="Burr is not installed")
def test_the_poster_is_shortened_until_it_fits():
    session = Session(samples("poster"))
    session.run()
    assert session.board["dropped"] == ["wonderful", "summer", "market", "square"]
    assert len(session.board["headline"]) <= 60
