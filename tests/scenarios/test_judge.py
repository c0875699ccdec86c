"""A model's verdict, and that there is none without a model."""

from __future__ import annotations

import asyncio
import json

import pytest

import agentnb as nb
from agentnb.clock import FrozenClock
from agentnb.scenarios.judge import JUDGE
from tests.scenarios.scenario_recipes import computed, ran, refunds, scenario, writes

GOOD = {"score": 0.9, "passed": True, "reason": "It greets."}
BAD = {"score": 0.1, "passed": False, "reason": "It is rude."}
GREETS = scenario({"text": "Hello"}, "llm_judge", about="It greets by name", inputs={"name": "Ada"})
RECIPE = writes(text="Hi Ada", other="not asked for")


@pytest.mark.parametrize("form", [json.dumps, dict, lambda said: f"I think:\n```json\n{json.dumps(said)}\n```"])
@pytest.mark.parametrize("said", [GOOD, BAD])
def test_the_verdict_of_the_model_is_the_result(form, said):
    result = ran(RECIPE, GREETS, llm=[form(said)])
    assert (result.passed, result.score, result.reason) == (said["passed"], said["score"], said["reason"])
    assert result.problem is None
    assert result.description == (None if said["passed"] else "the judge: It is rude.")


def test_an_async_model_can_judge():
    async def model(request):
        await asyncio.sleep(0)
        return GOOD

    assert ran(RECIPE, GREETS, llm=model).passed


def test_the_judge_sees_the_expected_and_actual_values():
    seen = []
    ran(RECIPE, GREETS, llm=lambda request: seen.append(request) or GOOD)
    (request,) = seen
    assert request.node == JUDGE
    assert [message.role for message in request.messages] == ["system", "user"]
    assert "material" in request.messages[0].content
    shown = request.messages[1].content
    assert all(text in shown for text in ("It greets by name", '{"name": "Ada"}', '{"text": "Hello"}', "Hi Ada"))
    assert "not asked for" not in shown


def test_secrets_are_not_shown_to_the_judge():
    seen = []
    login = scenario(None, "llm_judge", about="It logs in", inputs={"api_key": "sk-4711"})
    recipe = computed(lambda board: {"said": f"with {board['api_key']}"})
    ran(recipe, login, llm=lambda request: seen.append(request.prompt) or GOOD)
    assert "********" in seen[0]
    assert "sk-4711" not in seen[0]


def test_without_a_model_there_is_no_verdict():
    result = ran(RECIPE, GREETS)
    assert (result.passed, result.score, result.status, result.problem.code) == (False, None, "finished", "X414")
    assert "llm=" in result.problem.do


@pytest.mark.parametrize(
    "said",
    [
        "It is fine.",
        "[1]",
        "{}",
        '{"passed": "perhaps"}',
        '{"passed": true, "score": 80}',
        '{"passed": true, "score": "high"}',
        '{"score": 1.5}',
        "yes or no",
        "",
        {"passed": 1},
        5,
        None,
    ],
)
def test_an_invalid_verdict_is_reported(said):
    result = ran(RECIPE, GREETS, llm=[said])
    assert (result.passed, result.score, result.problem.code) == (False, None, "X414")


@pytest.mark.parametrize(
    "said", ['{"passed": true}', "yes", "Pass.", True, '{"pass": true}', '{"passed": "yes"}', "true"]
)
def test_a_verdict_without_a_score_counts_as_all_or_nothing(said):
    result = ran(RECIPE, GREETS, llm=[said])
    assert (result.passed, result.score) == (True, 1)


@pytest.mark.parametrize("said", ['{"passed": false}', "no", "FAIL", False, '{"pass": "no"}'])
def test_a_failed_verdict_without_score_counts_as_zero(said):
    result = ran(RECIPE, GREETS, llm=[said])
    assert (result.passed, result.score) == (False, 0)


@pytest.mark.parametrize("said", ['{"score": 0.8, "comments": "fine"}', "0.8", 0.8, {"score": "0.8"}])
def test_a_score_alone_passes_from_the_threshold(said):
    result = ran(RECIPE, GREETS, llm=[said])
    assert (result.passed, result.score) == (True, 0.8)
    strict = nb.run_scenarios(RECIPE, [GREETS], llm=[said], fuzzy=0.9)[0]
    assert (strict.passed, strict.score) == (False, 0.8)


def test_a_failing_judge_is_a_problem_of_the_scenario():
    def model(request):
        raise ConnectionError("nobody there")

    report = nb.run_scenarios(RECIPE, [GREETS, scenario({"text": "Hi Ada"}, id="two")], llm=model)
    assert [row.passed for row in report] == [False, True]
    assert "nobody there" in report[0].description


def test_a_run_that_failed_is_not_judged():
    requests = []
    result = ran(computed(lambda: 1 / 0), GREETS, llm=requests.append)
    assert (result.passed, result.problem.code, requests) == (False, "X100", [])


def test_scripted_answers_for_the_judge_follow_those_of_the_run():
    closing = scenario({"output": "done"}, "llm_judge", inputs={"ticket": "a"})
    result = ran(refunds(), closing, llm=["read", "done", GOOD])
    assert (result.passed, result.actual) == (True, {"output": "done"})


def test_a_script_by_node_has_the_judge_beside_the_nodes():
    script = {"read": ["read"], "close": ["done"], JUDGE: [GOOD]}
    rows = [scenario({"output": "done"}, "llm_judge", id=id, inputs={"ticket": "a"}) for id in "ab"]
    assert nb.run_scenarios(refunds(), rows, llm=script).ok
    missing = ran(refunds(), rows[0], llm={"read": ["read"], "close": ["done"]})
    assert (missing.passed, missing.problem.code) == (False, "X304")


def test_a_node_named_like_the_judge_has_the_first_answers():
    recipe = nb.load({
        "metadata": {"name": "t"}, "interface": {},
        "topology": [{"id": JUDGE, "type": "agent", "agent_ref": "one"}],
    })  # fmt: skip
    result = ran(recipe, scenario({"output": "mine"}, "llm_judge"), llm={JUDGE: ["mine", GOOD]})
    assert (result.passed, result.actual) == (True, {"output": "mine"})


def test_without_expected_values_the_description_is_judged():
    polite = scenario(None, "llm_judge", about="It is polite")
    assert not ran(RECIPE, polite, llm=[BAD]).passed
    assert ran(RECIPE, polite).problem.code == "X414"
    assert ran(RECIPE, scenario(None, "llm_judge")).passed  # nothing to judge by: the end is enough


def test_chaos_spares_the_judge():
    assert ran(RECIPE, GREETS, llm=[GOOD], chaos={"error_rate": 1, "latency_ms": 5}, clock=FrozenClock()).passed
