from __future__ import annotations

import asyncio
import json
import re

import networkx as nx
import pytest

from agentnb.clock import FrozenClock
from agentnb.errors import RecipeError
from agentnb.kinds import evaluator
from agentnb.load import load
from agentnb.recipe.model import Node, Recipe
from agentnb.session import Session
from agentnb.trace.steps import StepType
from agentnb.world.llm.verdict import find_verdict
from tests.dialects.coreason.recipe_texts import agent, content
from tests.session.small_sessions import path, session

JUDGE = {
    "id": "judge",
    "type": "evaluator",
    "target_variable": "output",
    "evaluator_agent_ref": "critic",
    "evaluation_profile": "good prose",
    "pass_threshold": 0.8,
    "max_refinements": 2,
    "pass_route": "publish",
    "fail_route": "write",
    "feedback_variable": "critique",
}


def recipe(**judge):
    """Return a writer whose drafts a judge sends back, and a publisher behind it."""
    nodes = [agent("write", inputs_map={"note": "critique"}), {**JUDGE, **judge}, agent("publish")]
    return load(content(nodes, [("write", "judge")]))


def judged(*scores, **options):
    """Return a session whose judge gives these scores in turn, each with a critique that names it."""
    drafts = [f"draft {number}" for number in range(1, 9)]
    answers = {"judge": [{"score": score, "critique": f"only {score}"} for score in scores], "write": drafts}
    return Session(recipe(**options), llm={**answers, "publish": "done"})


def observed(run):
    """Return (score, refinement, decision, forced) of each evaluation."""
    observations = [step.observation for step in run.trace.steps if step.kind == "evaluator"]
    return [(each["score"], each["refinement"], each["decision"], each["forced"]) for each in observations]


# ------------------------------------------------------------------------------------------------ where it leads


@pytest.mark.parametrize(
    ("score", "said"),
    [(0.8001, "0.8001 has reached 0.8:"), (0.7999, "0.7999 is below 0.8:"), (0.81, "0.81 has reached 0.80:")],
)
def test_a_score_near_the_threshold_is_shown_with_all_digits(score, said):
    run = judged(score)
    run.run()
    assert run.trace.steps[1].thought.startswith(f"Score {said}")


def test_a_score_that_reaches_the_threshold_passes():
    run = judged(0.8)
    run.run()
    step = run.trace.steps[1]
    assert "good prose" in run.trace.frames.calls["arguments"].iloc[1]["messages"][0]["content"]
    assert path(run) == ["write", "judge", "publish"]
    assert (step.type, step.inputs, step.outputs) == (StepType.REASONING, {"output": "draft 1"}, {})
    assert step.thought == "Score 0.80 has reached 0.80: passed, go to 'publish'"
    assert step.observation == {"score": 0.8, "passed": True, "threshold": 0.8, "critique": "only 0.8",
                                "refinement": 0, "decision": "publish", "forced": False,
                                "simulated": False}  # fmt: skip
    assert run.trace.score == 0.8


def test_a_lower_score_goes_back_with_the_critique():
    run = judged(0.4, 0.9)
    run.run()
    assert path(run) == ["write", "judge", "write", "judge", "publish"]
    first = run.trace.steps[1]
    assert first.thought == "Score 0.40 is below 0.80: refinement 1 of 2, go to 'write'"
    assert first.outputs == {"critique": "only 0.4"}
    assert run.trace.steps[2].inputs == {"note": "only 0.4"}
    assert observed(run) == [(0.4, 1, "write", False), (0.9, 1, "publish", False)]
    assert run.trace.score == 0.9


def test_after_the_last_refinement_the_run_ends_with_the_last_critique():
    run = judged(0.1, 0.2, 0.3, 0.4)
    run.run()
    assert path(run) == ["write", "judge"] * 3
    assert (run.status, run.board["critique"]) == ("finished", "only 0.3")
    assert observed(run)[-1] == (0.3, 2, None, True)
    assert run.trace.steps[-1].thought == "Score 0.30 is below 0.80, and all 2 refinements are used: forced end"


@pytest.mark.parametrize("most", [0, -3])
def test_without_refinements_the_first_failure_ends_the_run(most):
    run = judged(0.1, max_refinements=most)
    run.run()
    assert (path(run), run.status, run.board["critique"]) == (["write", "judge"], "finished", "only 0.1")
    assert "no refinement" in run.trace.steps[-1].thought


def test_an_empty_route_ends_the_run():
    run = judged(0.9, pass_route="")
    run.run()
    assert (path(run), run.status) == (["write", "judge"], "finished")
    assert run.trace.steps[-1].thought.endswith("go to the end")


def test_refinements_are_counted_anew_after_a_pass():
    run = judged(0.1, 0.2, 0.9, 0.3, 0.4, 0.5, pass_route="write")
    run.run()
    assert observed(run) == [
        (0.1, 1, "write", False),
        (0.2, 2, "write", False),
        (0.9, 2, "write", False),
        (0.3, 1, "write", False),
        (0.4, 2, "write", False),
        (0.5, 2, None, True),
    ]


def test_a_score_just_below_the_threshold_is_reported_with_all_digits():
    run = judged(0.7999)
    run.run(max_steps=2)
    assert run.trace.steps[1].thought.startswith("Score 0.7999 is below 0.8:")


def test_without_a_critique_the_score_is_reported():
    run = Session(recipe(), tools={"critic": lambda output: 0.25})
    run.run(max_steps=2)
    assert run.board["critique"] == "Score 0.25 is below 0.80."


def test_a_critique_may_be_any_value():
    run = Session(recipe(), tools={"critic": lambda output: {"score": 0.25, "feedback": ["shorter", {"line": 3}]}})
    run.run(max_steps=2)
    assert run.board["critique"] == ["shorter", {"line": 3}]


# ------------------------------------------------------------------------------------------------ back, fork, held


def test_going_back_and_forward_again_counts_the_same():
    run = judged(0.1, 0.2, 0.3, 0.9)
    run.run()
    steps, seen = path(run), observed(run)
    for k in range(len(steps)):
        run.goto(k).run()
        assert (path(run), observed(run)) == (steps, seen)


def test_in_the_past_only_earlier_refinements_are_counted():
    run = judged(0.1, 0.2, 0.3)
    run.run()
    run.goto(3)
    assert run.step().observation["refinement"] == 2
    run.goto(1)
    assert run.step().observation["refinement"] == 1


def test_a_fork_with_another_judge_shares_the_earlier_evaluations():
    run = judged(0.1, 0.2, 0.3)
    run.run()
    strict = run.fork(3, tools={"critic": lambda output: 0.0})
    strict.run()
    assert observed(strict) == [(0.1, 1, "write", False), (0.0, 2, "write", False), (0.0, 2, None, True)]
    kind = run.fork(1, tools={"critic": lambda output: 1})
    kind.run()
    assert (path(kind), run.trace.score, kind.trace.score) == (["write", "judge", "publish"], 0.3, 1.0)


def test_an_edited_score_counts():
    run = judged(0.1, 0.2, 0.3, 0.4, pass_route="write")
    held = run.breakpoints.add(call="llm", node="judge", side="after", once=True)
    run.run()
    (pending,) = run.pending
    assert held.hits == 1
    run.change(pending.id, answer={"score": 1.0})
    run.run()
    assert [each[:2] for each in observed(run)] == [(1.0, 0), (0.2, 1), (0.3, 2), (0.4, 2)]


def test_earlier_answers_are_not_evaluated_again(monkeypatch):
    read = []
    monkeypatch.setattr(evaluator, "find_verdict", lambda answer: read.append(answer) or find_verdict(answer))
    run = judged(*[0.1] * 8, max_refinements=7)
    run.run()
    assert observed(run)[-1] == (0.1, 7, None, True)
    assert len(read) == 8


def test_failures_of_a_judge_count_neither_as_scores_nor_as_refinements():
    answers = iter([0.1, "no idea", 0.2, 0.9])
    run = Session(recipe(), tools={"critic": lambda output: next(answers)})
    run.run()
    assert (run.status, run.current) == ("failed", "judge")
    run.run()
    assert (run.status, run.error) == ("finished", None)
    ok = [step for step in run.trace.steps if step.kind == "evaluator" and step.status == "ok"]
    assert [step.observation["refinement"] for step in ok] == [1, 2, 2]


def test_a_step_that_failed_after_its_score_counts_no_refinement():
    judge = Node("judge", "evaluator", params={"target": "text", "threshold": 1, "max_refinements": 1, "ref": "critic",
                                               "fail_route": "gone"})  # fmt: skip
    loaded_recipe = Recipe("made", "test", {"judge": judge}, (), ("judge",), meta={"draft": True})
    run = Session(loaded_recipe, {"text": "x"}, tools={"critic": lambda text: 0.1})
    for _ in range(3):  # were the first to count, the second would end the run
        run.run()
        assert (run.status, run.current) == ("failed", "judge")
        assert "X105" in str(run.cause)


def test_retries_are_rows_of_the_calls_and_one_evaluation():
    nodes = [agent("write"), {**JUDGE, "recovery": {"max_retries": 2, "retry_delay_seconds": 0.5}}, agent("publish")]
    answers = iter([OSError("line"), OSError("line"), 0.2, OSError("line"), 0.9])

    def critic(output):
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    loaded_recipe = load(content(nodes, [("write", "judge")]))
    run = Session(loaded_recipe, tools={"critic": critic}, clock=FrozenClock())
    run.run()
    rows = run.trace.frames.calls
    rows = rows[rows["node"] == "judge"]
    assert rows["attempt"].tolist() == [1, 2, 3, 1, 2]
    assert rows["backoff_seconds"].tolist() == [0.0, 0.5, 0.5, 0.0, 0.5]
    assert rows["error"].notna().tolist() == [True, True, False, True, False]
    assert observed(run) == [(0.2, 1, "write", False), (0.9, 1, "publish", False)]


# ------------------------------------------------------------------------------------------------ who judges


def test_a_bound_judge_is_recorded_as_an_agent_call():
    run = Session(recipe(), tools={"critic": lambda output: 1})
    run.run(max_steps=2)
    call = run.trace.frames.calls.to_dict("records")[-1]
    assert (call["kind"], call["name"]) == ("agent", "critic")
    assert call["arguments"] == {"output": "Mocked output from write-agent"}


@pytest.mark.parametrize(
    "critic",
    [
        lambda output: len(output) + 0,
        lambda text: len(text) + 0,
        lambda text, /: len(text) + 0,
        lambda *texts: len(texts[0]),
        lambda **given: len(given["output"]),
        lambda text, limit=3, **given: len(text),
        len,
    ],
)
def test_a_judge_receives_the_value_by_name_or_alone(critic):
    run = Session(recipe(pass_threshold=1.5), tools={"critic": critic, "write-agent": lambda note="": "text"})
    run.run(max_steps=2)
    assert run.trace.score == 4.0


@pytest.mark.parametrize("critic", [lambda: 1, lambda text, other: 1, lambda *, text: 1, lambda output, other: 1])
def test_a_judge_with_other_requirements_is_reported_when_the_session_is_created(critic):
    with pytest.raises(RecipeError, match="R135") as caught:
        Session(recipe(), tools={"critic": critic})
    assert "signature" in str(caught.value)


@pytest.mark.parametrize("takes", ["output", "text"])
def test_an_async_judge_is_awaited(takes):
    async def by_name(output):
        await asyncio.sleep(0)
        return 0.9

    async def alone(text):
        await asyncio.sleep(0)
        return 0.9

    run = Session(recipe(), tools={"critic": by_name if takes == "output" else alone})
    run.run()
    assert (path(run)[-1], run.trace.score) == ("publish", 0.9)


def test_the_request_contains_the_criteria_and_the_model():
    requests = []

    def answer(request):
        requests.append(request)
        return "Here you are:\n```json\n" + json.dumps({"score": 0.95, "critique": "fine"}) + "\n```"

    rubric = [{"name": "brevity", "description": "is it short?", "threshold": 0.5, "strict": False}]
    profile = {"evaluator_model": "judge-1", "grading_rubric": rubric}
    loaded_recipe = recipe(evaluation_profile=profile)
    run = Session(loaded_recipe, llm=answer, tools={"write-agent": lambda note="": {"output": {"lines": [1]}}})
    run.run(max_steps=2)
    (request,) = requests
    system, user = request.messages
    assert (request.model, system.role, user.content) == ("judge-1", "system", 'output: {"lines": [1]}')
    for words in ("critic", "brevity (should come to 0.5): is it short?", '"score"', '"critique"'):
        assert words in system.content
    assert run.trace.score == 0.95
    assert run.trace.steps[1].observation["simulated"] is False
    assert run.trace.frames.calls["kind"].tolist() == ["agent", "llm"]


def test_simulated_scores_come_in_turn_and_the_last_repeats():
    simulated = [{"score": 0.5, "critique": "longer"}, {"score": 0.6}]
    run = Session(recipe(metadata={"simulated": simulated}))
    run.run()
    assert [each[0] for each in observed(run)] == [0.5, 0.6, 0.6]
    first = run.trace.steps[1]
    assert first.outputs == {"critique": "longer"}
    assert first.thought.endswith("(simulated)")
    assert first.observation["simulated"] is True


def test_a_simulated_score_depends_on_the_seed_and_is_marked():
    def scores(seed):
        run = Session(recipe(pass_threshold=1, max_refinements=5), seed=seed)
        run.run()
        scores = [each[0] for each in observed(run)]
        run.goto(3).run()
        assert [each[0] for each in observed(run)] == scores
        assert all(step.observation["simulated"] for step in run.trace.steps if step.kind == "evaluator")
        return scores

    assert len(set(scores(1))) > 1
    assert scores(1) == scores(1) != scores(2)
    assert all(0 <= score <= 1 for score in scores(3))


# ------------------------------------------------------------------------------------------------ what is judged


def test_a_missing_value_is_a_problem():
    nodes = [agent("write", metadata={"simulated": {"text": "x"}}), JUDGE, agent("late")]
    document = content([*nodes, agent("publish")], [("write", "judge"), ("publish", "late")])
    run = Session(load(document))
    run.run()
    assert (run.status, run.current) == ("failed", "judge")
    message = str(run.cause)
    assert "X404" in message
    assert "'output'" in message
    assert re.search("declare that they write it: (late, publish|publish, late)\n", message)
    run.edit({"output": "by hand"})
    run.step()
    assert run.trace.steps[-1].inputs == {"output": "by hand"}


def test_the_judged_value_is_recorded_unchanged():
    run = Session(recipe(), tools={"critic": lambda output: output.clear() or 1,
                                   "write-agent": lambda note="": {"output": {"text": "x"}}})  # fmt: skip
    run.run(max_steps=2)
    assert run.trace.steps[1].inputs == {"output": {"text": "x"}}


def test_none_is_a_value_to_judge():
    seen = []
    loaded_recipe = recipe()
    run = Session(loaded_recipe, {"output": None}, tools={"critic": lambda output: seen.append(output) or 1,
                                                 "write-agent": lambda note="": None})  # fmt: skip
    run.run(max_steps=2)
    assert seen == [None]


# ------------------------------------------------------------------------------------------------ beyond coreason


@pytest.mark.parametrize("critic", [len, lambda work="other", text="": len(text)])
def test_an_evaluator_in_a_graph_may_have_a_nested_target(critic):
    graph = nx.DiGraph()
    graph.add_node("judge", kind="evaluator", target=("work", "text"), ref="critic", threshold=2, pass_route="end")
    graph.add_node("end", kind="noop")
    graph.add_edge("judge", "end")
    run = session(graph, {"work": {"text": "abc"}}, tools={"critic": critic})
    run.run()
    assert (path(run), run.trace.score, run.trace.steps[0].inputs) == (["judge", "end"], 3.0, {"work.text": "abc"})
    assert [read.key for read in run.trace.steps[0].reads] == ["work"]
