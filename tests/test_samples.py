from __future__ import annotations

import pytest

from agentnb.clock import FrozenClock
from agentnb.errors import RecipeError
from agentnb.samples import samples
from agentnb.scenarios import run_scenarios
from agentnb.session import Session


def test_the_list_names_each_sample_with_its_dialect():
    shown = repr(samples())
    for sample in samples():
        assert f"{sample.name} " in shown
        assert sample.dialect in {"coreason", "networkx"}


@pytest.mark.parametrize("name", [sample.name for sample in samples()])
def test_a_sample_has_no_problems_and_draws(name):
    recipe = samples(name)
    assert recipe.name == name
    assert recipe.check() == []
    assert recipe.draw().dot.startswith("digraph")
    assert recipe.fingerprint == samples(name).fingerprint


@pytest.mark.parametrize("name", [sample.name for sample in samples()])
def test_a_sample_begins_without_inputs(name):
    recipe = samples(name)
    assert set(recipe.inputs) <= set(recipe.init)


def test_the_triage_has_what_a_first_look_needs():
    kinds = [node.kind for node in samples("triage").nodes.values()]
    assert {"agent", "router", "human"} <= set(kinds)
    assert len([edge for edge in samples("triage").edges if edge.source == "sort"]) == 3


def test_a_misspelt_name_is_asked_for():
    with pytest.raises(RecipeError) as caught:
        samples("tirage")
    (problem,) = caught.value.problems
    assert (problem.code, problem.do) == ("R132", "did you mean 'triage'?")


ANSWERS = {"triage": ["shorter, please", "approve"], "approval": ["yes", "yes"]}


@pytest.mark.parametrize("name", [sample.name for sample in samples()])
def test_a_sample_runs_offline_to_its_end(name):
    session = Session(samples(name), answers=ANSWERS.get(name))
    session.run()
    assert (session.status, session.error) == ("finished", None)


def test_the_triage_goes_round_until_a_person_lets_go():
    session = Session(samples("triage"), answers=ANSWERS["triage"])
    visited = [step.node_id for step in session.run().steps]
    assert visited.count("write") == 2
    assert visited[-2:] == ["decide", "close"]


def test_the_document_goes_round_until_it_scores_well_enough():
    session = Session(samples("document"))
    session.run()
    verdicts = [step.observation["score"] for step in session.trace.steps if step.node_id == "judge"]
    assert (verdicts, session.trace.score, session.trace.steps[-1].node_id) == ([0.3, 0.6, 0.9], 0.9, "publish")


def test_the_documents_scenarios_pass():
    assert run_scenarios(samples("document")).counts == "2 passed"


@pytest.mark.parametrize(("answers", "last"), [(["no"], "refuse"), (["yes", "no"], "refuse"), (["yes", "yes"], "tell")])
def test_the_approval_needs_everybodys_yes(answers, last):
    session = Session(samples("approval"), answers=answers)
    session.run()
    assert (session.status, session.trace.steps[-1].node_id) == ("finished", last)


def test_an_approval_that_nobody_answers_in_time_is_refused():
    class Hours(FrozenClock):
        hours = 0

        def ns(self):
            return super().ns() + self.hours * 3600 * 10**9

    clock = Hours()
    session = Session(samples("approval"), clock=clock)
    session.run()
    assert session.pending[0].left == 3600
    clock.hours = 1
    session.run()
    assert [step.node_id for step in session.trace.steps][-2:] == ["manager", "refuse"]


def test_the_triage_waits_for_a_person_where_nobody_answers():
    session = Session(samples("triage"), answers=[])
    session.run()
    assert (session.status, session.current) == ("waiting", "review")


def test_other_inputs_lead_elsewhere():
    offers = {}
    for item in ("lamp", "desk"):
        session = Session(samples("fanout"), {"item": item})
        session.run()
        offers[item] = session.board["offer"]
    assert offers["lamp"] != offers["desk"]


def test_the_loop_comes_near_enough():
    session = Session(samples("refine"), {"number": 9.0})
    session.run()
    assert session.board["root"] == 3.0
