from __future__ import annotations

import asyncio
import json

import pytest

import agentnb as nb
from agentnb.errors import RecipeError
from agentnb.recipe.model import Node, Recipe, Rescue
from agentnb.world.llm.base import LLMResponse
from tests.dialects.coreason.recipe_texts import content

TRIP = {"type": "object", "required": ["city", "days"],
        "properties": {"city": {"type": "string"}, "days": {"type": "integer", "minimum": 1}}}  # fmt: skip
ROME, OSLO = {"city": "Rome", "days": 3}, {"city": "Oslo", "days": 2}
NO_DAYS = {"city": "Rome", "days": 0}


def plan(**more):
    return {"id": "plan", "type": "generative", "goal": "Plan a trip", "output_schema": TRIP, **more}


def session(node=None, inputs=None, **options):
    """Return a session of a coreason recipe with one generative node, written as a file would be."""
    return nb.Session(nb.load(json.dumps(content([node or plan()]))), inputs or {"wish": "warm"}, **options)


def make_run(params, inputs=None, rescue=None, **options):
    node = Node("plan", "generative", params=params, rescue=rescue)
    return nb.Session(Recipe("made", "test", {"plan": node}, (), ("plan",)), inputs, **options)


def calls(run):
    return run.trace.frames.calls


def get_prompts(run, number=-1):
    return [message["content"] for message in calls(run)["arguments"].iloc[number]["messages"]]


# ------------------------------------------------------------------------------------------------------- asking a model


def test_a_valid_answer_is_merged_into_the_board():
    run = session(llm=[ROME])
    step = run.step()
    assert dict(run.board) == {"wish": "warm", **ROME}
    assert step.thought == "Filled 2 fields towards: Plan a trip"
    assert (step.inputs, step.observation) == ({"goal": "Plan a trip"}, ROME)
    assert step.action == {"goal": "Plan a trip", "by": "model"}
    assert step.type.value == "reasoning"
    assert [(read.key) for read in step.reads] == ["wish"]
    assert calls(run)[["kind", "name"]].to_numpy().tolist() == [["llm", "plan"]]


@pytest.mark.parametrize(
    "answer",
    [json.dumps(ROME), f"```json\n{json.dumps(ROME)}\n```", f"Here it is: {json.dumps(ROME)}", LLMResponse(ROME)],
)
def test_the_answer_may_be_text_with_json_in_it(answer):
    assert session(llm=[answer]).step().outputs == ROME


@pytest.mark.parametrize(
    ("schema", "answer", "wrote"),
    [({"type": "array"}, "[1, 2]", [1, 2]), ({"type": "string"}, '"warm"', "warm"), ({"type": "null"}, "null", None)],
)
def test_an_answer_that_is_not_an_object_is_written_under_the_node_id(schema, answer, wrote):
    step = session(plan(output_schema=schema), llm=[answer]).step()
    assert step.outputs == {"plan": wrote}
    assert step.thought == "Filled 1 field towards: Plan a trip"


def test_the_model_receives_the_goal_the_board_and_the_schema():
    params = {"goal": "Plan a trip", "schema": TRIP, "prompt": "Be brief.", "model": "large", "tools": ("search",)}
    run = make_run(params, {"wish": {"deep": [1, "warm"]}}, llm=[ROME])
    assert run.step().action["tools"] == ["search"]
    system, user = get_prompts(run)
    assert system.startswith("Be brief.\n\n")
    assert "JSON" in system
    assert user.startswith("Goal: Plan a trip\n")
    assert '"wish": {"deep": [1, "warm"]}' in user
    assert user.endswith(json.dumps(TRIP))
    assert calls(run)["arguments"].iloc[0]["model"] == "large"


def test_no_secret_of_the_board_is_sent_to_the_model():
    inputs = {"api_key": "k-4711-plain", "deep": {"password": "s3same open"}, "note": "it is k-4711-plain"}
    seen = []
    session(inputs=inputs, llm=lambda request: seen.append(request.prompt) or ROME).step()
    assert "k-4711-plain" not in seen[0]
    assert "s3same" not in seen[0]
    assert '"api_key": "********"' in seen[0]


def test_a_large_board_is_truncated_and_keeps_its_small_values():
    inputs = {"first": "x" * 200_000, **{f"key{number}": number for number in range(50)}, "last": "seen"}
    run = session(inputs=inputs, llm=[ROME])
    run.step()
    user = get_prompts(run)[1]
    assert len(user) < 25_000
    assert "characters left out" in user
    assert '"last": "seen"' in user


def test_each_value_of_a_large_board_keeps_at_least_100_characters():
    run = session(inputs={f"key{number}": "x" * 150 for number in range(250)}, llm=[ROME])
    run.step()
    assert f'"key0": "{"x" * 99}... (52 characters left out)' in get_prompts(run)[1]


def test_values_that_json_lacks_are_sent_as_text():
    run = session(inputs={"when": {3, 1}, "odd": {(1, 2): "x"}, "raw": b"abc"}, llm=[ROME])
    run.step()
    assert '"when": ["1", "3"]' in get_prompts(run)[1]
    assert run.board["city"] == "Rome"


def test_an_async_model_is_awaited():
    async def answer(_request):
        await asyncio.sleep(0)
        return ROME

    assert session(llm=answer).step().outputs == ROME


# ---------------------------------------------------------------------------------------------------- what does not fit


def test_an_invalid_answer_is_reported_to_the_model_and_retried():
    run = session(llm=["no idea", NO_DAYS, ROME])
    step = run.step()
    assert step.outputs == ROME
    assert step.thought == "Filled 2 fields towards: Plan a trip (after 2 answers that did not fit)"
    assert calls(run)["result"].tolist() == ["no idea", NO_DAYS, ROME]
    assert [len(get_prompts(run, number)) for number in range(3)] == [2, 4, 6]
    *_, first, why_first, second, why_second = get_prompts(run)
    assert (first, second) == ("no idea", json.dumps(NO_DAYS))
    assert "not JSON" in why_first
    assert "- days: 0 is less than the minimum of 1" in why_second


def test_a_model_without_valid_answer_fails_the_step_with_each_path_and_rule():
    run = session(llm=["no idea", ROME | {"days": "two"}, {"city": 7, "days": 0}, ROME])
    run.step()
    assert (run.status, run.error.code) == ("failed", "X407")
    assert "in 3 answers" in run.error.what
    assert "topology.nodes[0]" in run.error.where
    assert "city: 7 is not of type 'string'; days: 0 is less than the minimum of 1" in run.error.why
    assert "It answered: {'city': 7, 'days': 0}" in run.error.why
    assert len(calls(run)) == 3
    assert dict(run.board) == {"wish": "warm"}


@pytest.mark.parametrize(("iterations", "times"), [(1, 1), (2, 2), (3, 3), (10, 3)])
def test_max_iterations_limits_the_attempts(iterations, times):
    run = session(plan(solver={"max_iterations": iterations}), llm=lambda _request: "no")
    run.run()
    assert (run.status, len(calls(run))) == ("failed", times)


def test_many_errors_and_long_answers_are_abbreviated():
    schema = {"type": "object", "required": [f"key{number}" for number in range(40)]}
    run = session(plan(output_schema=schema), llm=lambda _request: {"x": "y" * 5000})
    run.step()
    assert "and 30 more" in run.error.why
    assert len(run.error.why) < 1500


def test_an_invalid_value_under_a_secret_name_is_not_shown():
    schema = {"properties": {"api_key": {"type": "integer"}}}
    run = session(plan(output_schema=schema), llm=lambda _request: {"api_key": "k-0815-plain"})
    run.step()
    assert "api_key: type: 'integer'" in run.error.why
    assert "k-0815-plain" not in str(run.error)


@pytest.mark.parametrize("options", [{"llm": [ROME]}, {"tools": {"plan": dict}}, {}], ids=["model", "callable", "none"])
def test_an_invalid_schema_is_reported_and_no_model_is_called(options):
    run = session(plan(output_schema={"properties": {"city": {"type": "strng"}}}), **options)
    run.step()
    assert (run.status, run.error.code) == ("failed", "X409")
    assert "properties.city.type" in run.error.why
    assert len(calls(run)) == 0


def test_a_recovery_continues_after_a_failure():
    run = make_run({"schema": TRIP}, rescue=Rescue({"city": "home"}), llm=lambda _request: "no")
    run.run()
    assert (run.status, run.board["city"]) == ("finished", "home")
    assert run.trace.steps[0].status == "error"


def test_a_failing_model_is_retried_as_often_as_the_node_declares():
    fails = iter([OSError("no line"), OSError("no line")])

    def answer(_request):
        for error in fails:
            raise error
        return ROME

    run = make_run({"schema": TRIP, "attempts": 3}, llm=answer)
    assert run.step().outputs == ROME
    assert calls(run)["attempt"].tolist() == [1, 2, 3]


# ------------------------------------------------------------------------------------------------------ several answers


def ensemble(method=None, n=3, **more):
    solver = {"strategy": "ensemble", "n_samples": n, **more}
    return plan(solver=solver if method is None else {**solver, "aggregation_method": method})


@pytest.mark.parametrize(
    ("method", "answers", "wrote", "said"),
    [
        (None, [OSLO, ROME, ROME], ROME, "(2 of 3 answers agree)"),
        ("majority_vote", [OSLO, {"days": 3, "city": "Rome"}, ROME], ROME, "(2 of 3 answers agree)"),
        ("majority_vote", [OSLO, ROME, "no"], OSLO, "(1 of 3 answers agree)"),
        ("best_of_n", ["no", OSLO, ROME], OSLO, "(the first that fits of 3 answers)"),
        ("weighted_merge", [OSLO, {"city": "Rome", "days": 2}, ROME], {"city": "Rome", "days": 2},
         "(each field by the majority of 3 answers)"),
        ("weighted_merge", [{**OSLO, "x": 1}, {**OSLO, "x": 1}, ROME], {**OSLO, "x": 1},
         "(each field by the majority of 3 answers)"),
        ("weighted_merge", [{**OSLO, "x": 1}, OSLO, OSLO], OSLO, "(each field by the majority of 3 answers)"),
    ],
)  # fmt: skip
def test_an_ensemble_requests_several_answers_and_chooses_one(method, answers, wrote, said):
    run = session(ensemble(method), llm=answers)
    step = run.step()
    assert step.outputs == wrote
    assert step.thought == f"Filled {len(wrote)} fields towards: Plan a trip {said}"
    assert len(calls(run)) == 3
    assert {len(get_prompts(run, number)) for number in range(3)} == {2}


def test_similar_but_unequal_values_are_different_votes():
    node = {**ensemble(), "output_schema": {"enum": [1, True, "1"]}}
    assert session(node, llm=["true", "1", '"1"']).step().outputs == {"plan": True}
    assert session(node, llm=["true", "1", "1"]).step().outputs == {"plan": 1}


def test_an_invalid_merge_falls_back_to_a_vote_on_whole_answers():
    schema = {"enum": [{"a": 1, "b": 1}, {"a": 2, "b": 2}, {"a": 1, "b": 2, "c": 3}]}
    answers = [{"a": 1, "b": 1}, {"a": 2, "b": 2}, {"a": 1, "b": 2, "c": 3}]
    step = session({**ensemble("weighted_merge"), "output_schema": schema}, llm=answers).step()
    assert step.outputs == {"a": 1, "b": 1}
    assert "1 of 3 answers agree" in step.thought


def test_an_ensemble_without_valid_answer_is_retried():
    run = session(ensemble(n=2), llm=["no", NO_DAYS, "no", ROME])
    assert run.step().outputs == ROME
    assert [len(get_prompts(run, number)) for number in range(4)] == [2, 2, 4, 6]
    never = session(ensemble(n=2), llm=lambda _request: "no")
    never.step()
    assert (never.error.code, len(calls(never))) == ("X407", 4)


@pytest.mark.parametrize("strategy", ["standard", "tree_search"])
def test_other_strategies_request_one_answer(strategy):
    run = session(plan(solver={"strategy": strategy, "n_samples": 5}), llm=[ROME, OSLO])
    assert run.step().outputs == ROME
    assert len(calls(run)) == 1


# ---------------------------------------------------------------------------------------------------- bound, or made up


def test_a_callable_bound_to_the_node_id_replaces_the_model():
    run = session(llm=[OSLO], tools={"plan": lambda board: {"city": board["wish"], "days": 1}})
    step = run.step()
    assert step.outputs == {"city": "warm", "days": 1}
    assert step.action["by"] == "callable"
    assert run.simulated == ()
    assert calls(run)["kind"].tolist() == ["agent"]


async def slowly(board):
    await asyncio.sleep(0)
    return {"city": board["wish"], "days": 1}


@pytest.mark.parametrize(
    ("function", "wrote"),
    [
        (lambda: ROME, ROME),
        (lambda: json.dumps(ROME), ROME),
        (lambda: LLMResponse(ROME), ROME),
        (slowly, {"city": "warm", "days": 1}),
    ],
)
def test_a_bound_callable_may_have_no_parameters_be_async_and_return_text(function, wrote):
    assert session(tools={"plan": function}).step().outputs == wrote


def test_a_valid_text_is_used_unchanged():
    run = session(plan(output_schema={"type": "string"}), tools={"plan": lambda: "[1]"})
    assert run.step().outputs == {"plan": "[1]"}


def test_an_invalid_result_of_a_bound_callable_fails_without_retry():
    run = session(tools={"plan": lambda: NO_DAYS})
    run.step()
    assert (run.error.code, len(calls(run))) == ("X407", 1)
    assert "its bound function" in run.error.what


def test_a_bound_object_must_be_callable():
    with pytest.raises(RecipeError, match="R203"):
        session(tools={"plan": "no function"})


@pytest.mark.parametrize(
    ("function", "wrote"),
    [
        (lambda goal, schema: {"city": goal, "days": len(schema["required"])}, {"city": "Choose", "days": 2}),
        (lambda *, goal, board: {"city": f"{goal} {board['wish']}", "days": 1}, {"city": "Choose warm", "days": 1}),
        (lambda given, schema=None: {"city": given["wish"], "days": len(schema)}, {"city": "warm", "days": 3}),
        (lambda *given: {"city": given[0]["wish"], "days": 1}, {"city": "warm", "days": 1}),
        (lambda **rest: {"city": "x", "days": len(rest) + 1}, {"city": "x", "days": 1}),
    ],
)
def test_a_bound_callable_may_receive_the_goal_and_the_schema(function, wrote):
    schema = {"type": "object", "properties": {"city": {}, "days": {}}, "required": ["city", "days"]}
    run = session(plan(goal="Choose", output_schema=schema), tools={"plan": function})
    assert run.step().outputs == wrote


@pytest.mark.parametrize("function", [lambda board, other: None, lambda *, other: None])
def test_a_bound_agent_with_other_requirements_is_reported_when_the_session_is_created(function):
    with pytest.raises(RecipeError, match=r"R202.*missing a required.*'other'"):
        session(tools={"plan": function})


def test_without_a_model_the_answer_is_simulated_from_schema_and_seed():
    run = session()
    step = run.step()
    assert step.thought == "Filled 2 fields towards: Plan a trip (simulated)"
    assert step.outputs["city"].startswith("city ")
    assert step.outputs["days"] >= 1
    assert session().step().outputs == step.outputs
    assert any(session(seed=seed).step().outputs != step.outputs for seed in range(1, 5))


def test_simulated_answers_of_the_recipe_come_first():
    run = session(plan(metadata={"simulated": [ROME]}))
    step = run.step()
    assert step.outputs == ROME
    assert step.thought.endswith("(simulated)")
    several = session(plan(metadata={"simulated": [ROME, OSLO]}))
    answers = [several.step().outputs]
    for _ in range(2):
        several.set_next("plan")
        answers.append(several.step().outputs)
    assert answers == [ROME, OSLO, OSLO]  # the last one stands for all behind it
    wrong = session(plan(metadata={"simulated": NO_DAYS}))
    wrong.step()
    assert (wrong.error.code, "the simulated answer" in wrong.error.what) == ("X407", True)


def test_a_schema_without_sample_data_is_a_problem():
    run = session(plan(output_schema={"type": "string", "pattern": "(?=x)y"}))
    run.step()
    assert (run.status, run.error.code) == ("failed", "X408")


# --------------------------------------------------------------------------------------------------- back, and again


def loop(**options):
    node, other = plan(), {"id": "again", "type": "router", "input_key": "no", "routes": {}, "default_route": "plan"}
    recipe = nb.load(json.dumps(content([node, other], [("plan", "again")])))
    return nb.Session(recipe, {"wish": "warm"}, **options)


@pytest.mark.parametrize("options", [{}, {"llm": [ROME, "no", OSLO, ROME]}], ids=["simulated", "model"])
def test_each_execution_has_its_own_answer_and_repeats_it_after_going_back(options):
    run = loop(**options)
    run.step(5)
    first = [step.outputs for step in run.trace.steps if step.node_id == "plan"]
    assert len({str(each) for each in first[:2]}) == 2
    for k in (0, 1, 2, 3):
        run.goto(k).step(5 - k)
        assert [step.outputs for step in run.trace.steps if step.node_id == "plan"] == first


def test_async_runs_have_the_same_results():
    async def main():
        run = session(llm=["no", ROME])
        await run.arun()
        return dict(run.board)

    assert asyncio.run(main()) == {"wish": "warm", **ROME}
