"""What can be given as scenarios, and what is refused before anything runs."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

import agentnb as nb
from agentnb.dialects.coreason import RecipeDefinition, SimulationScenario
from agentnb.dialects.coreason.parts.sections_schema import ChaosConfig, SimulationRequest
from agentnb.errors import BoardError, ExecutionError
from agentnb.recipe.model import Scenario
from agentnb.scenarios.definitions import collect_scenarios, copy_expected
from tests.scenarios.scenario_recipes import codes, refunds, writes

RECIPE = writes(n=1)


def refused(given, recipe=RECIPE):
    with pytest.raises(ExecutionError) as raised:
        collect_scenarios(recipe, given)
    return raised


def test_the_default_scenarios_are_those_of_the_recipe():
    first, second = collect_scenarios(refunds(), None)
    assert (first.id, first.about, first.compare) == ("refund", "Money is asked back", "exact_match")
    assert second.inputs == {"ticket": "hello"}


@pytest.mark.parametrize(
    "row",
    [
        Scenario("a", {"n": 1}, {"n": 2}, "fuzzy", "b"),
        {"id": "a", "inputs": {"n": 1}, "expected": {"n": 2}, "compare": "fuzzy", "about": "b"},
        {"id": "a", "inputs": {"n": 1}, "expected_output": {"n": 2}, "validation_logic": "fuzzy", "description": "b"},
        SimulationScenario(
            id="a", description="b", inputs={"n": 1}, expected_output={"n": 2}, validation_logic="fuzzy"
        ),
        SimpleNamespace(
            id="a", description="b", inputs={"n": 1}, expected_output={"n": 2},
            validation_logic=SimpleNamespace(value="fuzzy"),
        ),
    ],
)  # fmt: skip
def test_every_form_gives_the_same_scenarios(row):
    assert collect_scenarios(RECIPE, [row]) == (Scenario("a", {"n": 1}, {"n": 2}, "fuzzy", "b"),)


def test_an_id_selects_a_scenario():
    assert collect_scenarios(RECIPE, [{"id": "a"}]) == (Scenario("a", {}),)
    assert collect_scenarios(RECIPE, iter([{"id": 7}]))[0].id == "7"


def test_missing_scenarios_are_rejected_with_an_example():
    raised = refused(None)
    assert codes(raised) == ["X410"]
    assert "tests: [{id:" in raised.value.problems[0].do
    assert codes(refused([])) == ["X410"]


def test_the_suggested_example_can_be_loaded():
    order = refused(None).value.problems[0].do
    text = order[order.index("`") + 1 : order.rindex("`")]
    assert collect_scenarios(refunds(text + "\n"), None)[0].id == "greets"


def test_duplicate_ids_are_reported():
    raised = refused([{"id": "a"}, {"id": "b"}, {"id": "a"}])
    assert codes(raised) == ["X411"]
    assert "2 scenarios have the id 'a'" in raised.value.problems[0].what


@pytest.mark.parametrize(
    ("given", "cure"),
    [
        ([{"id": "a", "compare": "fuzy"}], "did you mean 'fuzzy'?"),
        ([{"id": "a", "expcted": {}}], "did you mean 'expected'?"),
        ([{"inputs": {}}], "'id'"),
        ([{"id": ""}], "'id'"),
        ([{"id": "a", "inputs": [1]}], "'inputs'"),
        ([{"id": "a", "expected": "text"}], "'expected'"),
        ([5], "'id'"),
        (["a"], "'id'"),
        ("a", "'id'"),
        ({"a": 1}, "'id'"),
        (5, "'id'"),
    ],
)
def test_invalid_scenarios_are_reported(given, cure):
    raised = refused(given)
    assert codes(raised) == ["X412"]
    assert cure in raised.value.problems[0].do


def test_custom_code_is_rejected_and_the_others_run():
    rows = [{"id": "a", "compare": "code_eval"}, {"id": "b", "expected": {"text": "Hi"}}]
    report = nb.run_scenarios(writes(text="Hi"), rows)
    assert [(row.passed, row.problem and row.problem.code, row.steps) for row in report] == [
        (False, "X413", 0), (True, None, 1),
    ]  # fmt: skip
    assert "exact_match, fuzzy or llm_judge" in report["a"].problem.do


def test_all_errors_are_reported_at_once():
    inputs = [5, {"id": "a", "compare": "code_eval"}, {"id": "b", "compare": "x"}, {"id": "b", "inputs": 3}]
    assert codes(refused(inputs)) == ["X412", "X412", "X412", "X411"]


def test_a_mistake_in_a_file_is_reported_with_its_place():
    recipe = refunds("tests:\n  - {id: a, description: b, inputs: {}, validation_logic: exact_match}\n")
    (scenario,) = recipe.scenarios
    assert scenario.place is not None
    with pytest.raises(ExecutionError) as raised:
        nb.run_scenarios(recipe, [*recipe.scenarios, *recipe.scenarios])
    assert raised.value.problems[0].where == str(scenario.place)


def test_expected_values_are_copies_that_a_board_accepts():
    expected = {"a": [1]}
    copy = copy_expected(Scenario("s", {}, expected))
    expected["a"].append(2)
    assert copy == {"a": [1]}
    assert copy_expected(Scenario("s", {})) is None
    expected["a"].append(expected)
    with pytest.raises(BoardError):
        copy_expected(Scenario("s", {}, expected))


GREETS = {"id": "a", "inputs": {}, "expected": {"text": "Hi"}}
SAYS = {
    "metadata": {"name": "says"},
    "interface": {},
    "topology": [{"id": "say", "type": "agent", "agent_ref": "speaker"}],
}
SPEAKER = {"speaker": lambda: {"text": "Hi"}}


@pytest.mark.parametrize("recipe", [SAYS, RecipeDefinition.model_validate(SAYS), nb.load(SAYS)])
def test_a_recipe_may_be_a_dict_or_a_definition(recipe):
    assert nb.run_scenarios(recipe, [GREETS], agents=SPEAKER).ok
    assert nb.run_scenarios(recipe, [GREETS], tools={"speaker": len}, agents=SPEAKER).ok


def test_an_object_that_is_not_a_recipe_is_reported():
    with pytest.raises(ExecutionError, match="X117"):
        nb.run_scenarios("says.yaml", [GREETS])


@pytest.mark.parametrize(
    "given",
    [
        GREETS,
        Scenario("a", {}, {"text": "Hi"}),
        SimulationScenario(id="a", description="", inputs={}, expected_output={"text": "Hi"}, validation_logic="fuzzy"),
        {"scenario": GREETS},
    ],
)
def test_a_single_scenario_is_accepted(given):
    report = nb.run_scenarios(SAYS, given, agents=SPEAKER)
    assert (len(report), report["a"].passed) == (1, True)


def test_a_request_has_its_own_chaos():
    scenario = SimulationScenario(
        id="a", description="", inputs={}, expected_output={"text": "Hi"}, validation_logic="exact_match"
    )
    request = SimulationRequest(scenario=scenario, chaos_config=ChaosConfig(error_rate=1))
    report = nb.run_scenarios(SAYS, [request, {**GREETS, "id": "b"}], agents=SPEAKER)
    assert [row.passed for row in report] == [False, True]
    assert not nb.run_scenarios(SAYS, request, agents=SPEAKER, chaos={"error_rate": 0}).ok
    assert nb.run_scenarios(SAYS, SimulationRequest(scenario=scenario), agents=SPEAKER).ok
