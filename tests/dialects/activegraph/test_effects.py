from __future__ import annotations

from decimal import Decimal

import pytest
from pydantic import BaseModel

from agentnb.dialects.activegraph import LLMBehavior, LLMBehaviorError, LLMResponse, Tool, ToolCall
from agentnb.errors import Problem
from agentnb.world.llm.base import LLMError
from tests.dialects.activegraph.runtimes import runtime

SAID = Problem("X337", "the server said no", "openai:small", "it is so", "ask another")


def make_asking_runtime(provider, *tools, **options):
    """Return a runtime whose behavior has asked a model; nothing is waited for between two attempts."""

    def note(event, graph, ctx, answer):
        graph.emit("noted", {})

    asks = LLMBehavior("ask", note, on=["goal.created"], handler=note, tools=list(tools))
    team = runtime(asks, llm_provider=provider, llm_retry_initial_delay_seconds=0.0, **options)
    team.run_goal("go")
    return team


def failing(error):
    def answer(request):
        raise error

    return answer


@pytest.mark.parametrize(
    ("error", "reason", "times"),
    [
        (LLMError(SAID, status=401), "llm.auth_error", 1),
        (LLMError(SAID, status=403), "llm.auth_error", 1),
        (LLMError(SAID, status=400), "llm.request_error", 1),
        (LLMError(SAID, status=429), "llm.request_error", 1),
        (LLMError(SAID, status=429, is_retryable=True), "llm.rate_limited", 3),
        (LLMError(SAID, status=503, is_retryable=True), "llm.network_error", 3),
        (OSError("no way"), "llm.network_error", 3),
        (LLMBehaviorError("llm.auth_error", "wrong key"), "llm.auth_error", 1),
    ],
)
def test_a_failure_has_a_reason_and_is_retried_if_that_may_help(error, reason, times):
    team = make_asking_runtime(failing(error))
    assert [failure.reason for failure in team.errors] == [reason]
    assert [event.type for event in team.graph.events].count("llm.requested") == times


def test_an_exhausted_script_is_not_called_again():
    team = make_asking_runtime([])
    assert ([error.reason for error in team.errors], len(team.session._parts.run.history.calls)) == (
        ["llm.request_error"],
        1,
    )


def test_the_retry_delay_of_a_server_is_respected():
    team = make_asking_runtime(
        failing(LLMError(SAID, status=429, is_retryable=True, retry_after=0.01)), llm_retry_max_attempts=2
    )
    waits = [call.arguments["seconds"] for call in team.session._parts.run.history.calls if call.kind == "sleep"]
    assert waits == [0.01]


class Query(BaseModel):
    q: str


class Found(BaseModel):
    n: int


class Model:
    default_model = "model-1"

    def __init__(self, *calls):
        self.calls = list(calls)

    def complete(self, **words):
        if not self.calls:
            return LLMResponse("done")
        return LLMResponse("", tool_calls=[ToolCall("1", *self.calls.pop(0))])


def look(args, ctx):
    return {"n": len(args.q)} if args.q else {"m": 1}


LOOK = Tool("look", look, input_schema=Query, output_schema=Found)


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (("look", {"q": "x"}), None),
        (("look", {}), "tool.invalid_input"),
        (("look", {"q": ""}), "tool.invalid_output"),
        (("other", {}), "tool.unknown_tool"),
        (("breaks", {}), "tool.execution_error"),
    ],
)
def test_arguments_and_results_of_a_tool_match_its_schemas(call, reason):
    breaks = Tool("breaks", lambda args, ctx: 1 / 0)
    team = make_asking_runtime(Model(call), LOOK, breaks)
    assert [error.reason for error in team.errors] == ([] if reason is None else [reason])
    answers = [event.payload for event in team.graph.events if event.type == "tool.responded"]
    assert [bool(answer["error"]) for answer in answers] == (
        [] if reason == "tool.unknown_tool" else [reason is not None]
    )


def test_a_replay_does_not_repeat_a_failure_whose_cause_is_fixed():
    team = make_asking_runtime(Model(("other", {})))
    other = make_asking_runtime(Model(), Tool("other", lambda args, ctx: {"n": 1}))
    assert team.session.replay(strict="path").ok
    assert not team.session.replay(recipe=other.session.recipe, strict="path").ok


def test_a_tool_may_be_named_by_the_runtime():
    team = make_asking_runtime(Model(("look", {"q": "abc"})), "look", tools=[LOOK])
    (answer,) = (event.payload["output"] for event in team.graph.events if event.type == "tool.responded")
    assert answer == {"n": 3}


def test_a_call_that_costs_more_than_is_left_is_not_made():
    class Dear(Model):
        def count_tokens(self, **words):
            return 100

        def estimate_cost(self, **words):
            return words["input_tokens"]

    team = make_asking_runtime(Dear(), budget={"max_cost_usd": 5})
    assert [error.reason for error in team.errors] == ["budget.cost_exhausted"]
    assert [event.type for event in team.graph.events].count("llm.requested") == 0


def test_nothing_is_left_after_overspending():
    class Dear(Model):
        def count_tokens(self, **words):
            return 100

        def estimate_cost(self, **words):
            return Decimal(1)

        def complete(self, **words):
            return LLMResponse("", tool_calls=[ToolCall("1", "look", {})], cost_usd=Decimal(3))

    team = make_asking_runtime(Dear(), Tool("look", lambda args, ctx: {}, cost_per_call=Decimal(4)),
                               budget={"max_cost_usd": 5})  # fmt: skip
    (failure,) = (event.payload for event in team.graph.events if event.type == "behavior.failed")
    assert (failure["reason"], failure["budget_remaining_usd"]) == ("budget.cost_exhausted", "0")


@pytest.mark.parametrize(("own", "questions"), [(5, 1), (6, 2), (9, 3), (2, 0)])
def test_a_call_that_costs_more_than_its_behavior_has_left_is_not_made(own, questions):
    class Dear(Model):
        def count_tokens(self, **words):
            return 100

        def estimate_cost(self, **words):
            return Decimal(3)

        def complete(self, **words):
            return LLMResponse("done", cost_usd=Decimal(3))

    asks = LLMBehavior("ask", lambda *_: None, on=["go"], handler=lambda *_: None, budget={"max_cost_usd": own})
    team = runtime(asks, llm_provider=Dear(), budget={"max_cost_usd": 50})
    for _ in range(questions + 1):
        team.session.emit("go", {})
    team.run_until_idle()
    assert [event.type for event in team.graph.events].count("llm.requested") == questions
