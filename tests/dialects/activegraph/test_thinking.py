"""test_thinking: models and tools are asked through the run's one door: held, changed, recorded, cached, counted."""

from __future__ import annotations

from decimal import Decimal

import pytest
from pydantic import BaseModel

from agentnb.dialects.activegraph import LLMBehavior, LLMBehaviorError, LLMCache, Policy, Runtime, Tool
from agentnb.errors import AgentNbError
from tests.dialects.activegraph.making import log, runtime, tell, thinking, types


class Note(BaseModel):
    text: str


def think(answers, **words):
    def says(event, graph, ctx, answer):
        graph.add_object("note", {"text": None if answer is None else answer.text})

    return LLMBehavior("think", says, on=["goal.created"], handler=says, **words), answers


def test_a_client_of_agentnb_answers_too():
    behavior, answers = think(['{"text": "from JSON"}', "no JSON"], output_schema=Note)
    team = runtime(behavior, llm_provider=answers)
    team.run_goal("one")
    team.run_goal("two")
    assert team.graph.get_object("note#1").data == {"text": "from JSON"}
    assert [error.reason for error in team.errors] == ["llm.parse_error"]


def test_a_question_is_held_and_answered_by_a_person():
    behavior, answers = think(["never asked"])
    team = runtime(behavior, llm_provider=answers)
    session = team.session
    session.breakpoints.add(call="llm")
    team.run_goal("go")
    (held,) = session.pending
    assert (session.status, held.node) == ("in_flight", "think")
    session.breakpoints.clear()
    session.run()
    assert types(team)[-1] == "object.created"
    assert [(call.kind, call.name) for call in session.engine.history.calls] == [("llm", "default")]


def test_what_was_answered_is_not_asked_again_in_a_fork_that_uses_the_cache():
    behaviors, options = thinking(("one", None, ()))
    team = runtime(*behaviors, replay_llm_cache=True, **options)
    team.run_goal("go")
    fork = team.fork("evt_001", replay_llm_cache=True)
    fork.session.goto(0)
    fork.run_until_idle()
    requested = [event.payload["cache_hit"] for event in fork.graph.events if event.type == "llm.requested"]
    assert (requested, types(fork)[-1]) == ([True], "thought")
    assert len(LLMCache.from_events(team.graph.events).known) == 1


def test_what_a_kept_run_was_answered_is_not_asked_again_where_it_is_loaded_so(tmp_path):
    behaviors, options = thinking(("one", None, ()))
    team = runtime(*behaviors, persist_to=tmp_path / "run.db", **options)
    team.run_goal("go")
    team.session.close()
    loaded = Runtime.load(tmp_path / "run.db", behaviors=behaviors, replay_llm_cache=True, **options)
    loaded.session.goto(0)
    loaded.run_until_idle()
    assert [event.payload["cache_hit"] for event in loaded.graph.events if event.type == "llm.requested"] == [True]
    assert (loaded.errors, types(loaded)[-1]) == ([], "thought")


def test_a_fork_asks_again_as_often_as_its_runtime_does_unless_something_else_is_said():
    behaviors, options = thinking(*(LLMBehaviorError("llm.network_error", "gone") for _ in range(4)))
    team = runtime(*behaviors, **{**options, "llm_retry_max_attempts": 2})
    tell(team)
    asked = []
    for words in ({}, {"llm_retry_max_attempts": 1}):
        fork = team.fork("evt_001", **words)
        fork.run_until_idle()
        asked.append(types(fork).count("llm.requested"))
    assert asked == [2, 1]


def test_a_server_says_when_it_may_be_asked_again():
    class Waits:
        waited = ()

        async def sleep(self, seconds):
            Waits.waited = (*Waits.waited, seconds)

    slow = LLMBehaviorError("llm.rate_limited", "slow", payload_extras={"retry_after_seconds": 4})
    behaviors, options = thinking(slow, LLMBehaviorError("llm.network_error", "gone"), ("one", None, ()))
    team = runtime(*behaviors, **{**options, "llm_retry_initial_delay_seconds": 0.5})
    team.session.engine.clock.sleep = Waits().sleep
    team.run_goal("go")
    assert (Waits.waited, types(team)[-1]) == ((4.0, 1.0), "thought")


def test_a_tool_that_a_policy_does_not_allow_is_not_called():
    called = []
    tool = Tool("look", lambda args, ctx: called.append(args))
    behaviors, options = thinking(("", None, (("c1", "look", {}),)), tools=[tool])
    team = runtime(*behaviors, policy=Policy(can_call_tool=["other"]), **options)
    team.run_goal("go")
    assert (team.errors[0].reason, called) == ("policy.denied", [])


@pytest.mark.parametrize(("limit", "most", "asked"), [("max_llm_calls", 1, 1), ("max_tool_calls", 1, 2)])
def test_a_limit_of_calls_is_reached_within_a_delivery_and_nothing_is_lost(limit, most, asked):
    calls = [("", None, ((f"c{number}", "look", {}),)) for number in range(3)]
    tool = Tool("look", lambda args, ctx: {"n": 1})
    behaviors, options = thinking(*calls, ("done", None, ()), tools=[tool])
    team = runtime(*behaviors, budget={limit: most}, **options)
    team.run_goal("go")
    assert (team.status().state, team.graph.events[-1].payload["exhausted_by"]) == ("exhausted", limit)
    assert len(calls) + 1 - len(options["llm_provider"].answers) == asked


def test_cost_is_counted_in_decimals_of_models_and_of_tools():
    tool = Tool("look", lambda args, ctx: {}, cost_per_call=Decimal("0.5"))
    behaviors, options = thinking(("", None, (("c1", "look", {}),)), ("", None, ()), tools=[tool])
    team = runtime(*behaviors, budget={"max_cost_usd": "1"}, **options)
    team.run_goal("go")
    assert team.budget.cost_remaining_amount() == Decimal("0.496")
    assert team.status().budget.cost_used_usd == "0.504"


def test_what_a_model_has_made_says_so():
    behavior, answers = think(["one"])
    team = runtime(behavior, llm_provider=answers)
    team.run_goal("go")
    request = next(event.id for event in team.graph.events if event.type == "llm.requested")
    assert team.graph.get_object("note#1").provenance["llm_request_event_id"] == request


def test_a_runtime_without_a_model_says_so_before_anything_runs():
    behavior, _ = think([])
    with pytest.raises(AgentNbError, match="R328"):
        runtime(behavior)


def test_a_kept_run_of_a_model_is_replayed_on_its_answers(tmp_path):
    behavior, answers = think(['{"text": "one"}'], output_schema=Note)
    team = runtime(behavior, llm_provider=answers, persist_to=tmp_path / "run.db")
    team.run_goal("go")
    team.session.close()
    loaded = Runtime.load(tmp_path / "run.db", behaviors=[behavior], llm_provider=[], replay_strict=True)
    assert log(loaded) == log(team)
