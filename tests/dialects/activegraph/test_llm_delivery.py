"""Models and tools are asked through the run's one door: held, changed, recorded, cached, counted."""

from __future__ import annotations

import time
from decimal import Decimal

import pytest
from pydantic import BaseModel, Field, RootModel

from agentnb.dialects import activegraph
from agentnb.dialects.activegraph import (
    FrozenClock,
    Graph,
    LLMBehavior,
    LLMBehaviorError,
    LLMCache,
    LLMResponse,
    MissingToolError,
    Pack,
    Policy,
    Runtime,
    Tool,
)
from agentnb.errors import AgentNbError
from tests.dialects.activegraph.judge import assert_same_signatures
from tests.dialects.activegraph.programs_of_models import Answers
from tests.dialects.activegraph.runtimes import log, runtime, tell, thinking, types


class Note(BaseModel):
    text: str


def think(answers, **words):
    def says(event, graph, ctx, answer):
        graph.add_object("note", {"text": None if answer is None else answer.text})

    return LLMBehavior("think", says, on=["goal.created"], handler=says, **words), answers


def test_a_client_of_agentnb_answers_too():
    behavior, answers = think(['{"text": "from JSON"}', "not JSON"], output_schema=Note)
    team = runtime(behavior, llm_provider=answers)
    team.run_goal("one")
    team.run_goal("two")
    assert team.graph.get_object("note#1").data == {"text": "from JSON"}
    assert [error.reason for error in team.errors] == ["llm.parse_error"]


def test_a_model_call_is_paused_and_answered_by_a_person():
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
    assert [(call.kind, call.name) for call in session._parts.run.history.calls] == [("llm", "default")]


def test_a_fork_with_the_cache_repeats_no_answered_call():
    behaviors, options = thinking(("one", None, ()))
    team = runtime(*behaviors, replay_llm_cache=True, **options)
    team.run_goal("go")
    fork = team.fork("evt_001", replay_llm_cache=True)
    fork.session.goto(0)
    fork.run_until_idle()
    requested = [event.payload["cache_hit"] for event in fork.graph.events if event.type == "llm.requested"]
    assert (requested, types(fork)[-1]) == ([True], "thought")
    assert len(LLMCache.from_events(team.graph.events)) == 1


def test_a_loaded_run_with_the_cache_repeats_no_answered_call(tmp_path):
    behaviors, options = thinking(("one", None, ()))
    team = runtime(*behaviors, persist_to=tmp_path / "run.db", **options)
    team.run_goal("go")
    team.session.close()
    loaded = Runtime.load(tmp_path / "run.db", behaviors=behaviors, replay_llm_cache=True, **options)
    loaded.session.goto(0)
    loaded.run_until_idle()
    assert [event.payload["cache_hit"] for event in loaded.graph.events if event.type == "llm.requested"] == [True]
    assert (loaded.errors, types(loaded)[-1]) == ([], "thought")


def test_a_fork_retries_as_its_runtime_does_unless_told_otherwise():
    behaviors, options = thinking(*(LLMBehaviorError("llm.network_error", "gone") for _ in range(4)))
    team = runtime(*behaviors, **{**options, "llm_retry_max_attempts": 2})
    tell(team)
    requests = []
    for words in ({}, {"llm_retry_max_attempts": 1}):
        fork = team.fork("evt_001", **words)
        fork.run_until_idle()
        requests.append(types(fork).count("llm.requested"))
    assert requests == [2, 1]


def test_a_server_may_set_the_retry_delay():
    class Waits:
        waited = ()

        async def sleep(self, seconds):
            Waits.waited = (*Waits.waited, seconds)

    slow = LLMBehaviorError("llm.rate_limited", "slow", payload_extras={"retry_after_seconds": 4})
    behaviors, options = thinking(slow, LLMBehaviorError("llm.network_error", "gone"), ("one", None, ()))
    team = runtime(*behaviors, **{**options, "llm_retry_initial_delay_seconds": 0.5})
    team.session._parts.run.clock.sleep = Waits().sleep
    team.run_goal("go")
    assert (Waits.waited, types(team)[-1]) == ((4.0, 1.0), "thought")


def test_a_tool_that_a_policy_does_not_allow_is_not_called():
    called = []
    tool = Tool("look", lambda args, ctx: called.append(args))
    behaviors, options = thinking(("", None, (("c1", "look", {}),)), tools=[tool])
    team = runtime(*behaviors, policy=Policy(can_call_tool=["other"]), **options)
    team.run_goal("go")
    assert (team.errors[0].reason, called) == ("policy.denied", [])


@pytest.mark.parametrize(("limit", "most", "asked"), [("max_llm_calls", 1, 1), ("max_tool_calls", 1, 1)])
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


def test_a_cached_answer_is_taken_when_nothing_is_left():
    tool = Tool("look", lambda args, ctx: {}, cost_per_call=Decimal(5))
    behaviors, options = thinking(("", None, (("c1", "look", {}),)), ("", None, ()), tools=[tool])
    first = runtime(*behaviors, **options)
    first.run_goal("go")
    cache = LLMCache.from_events(first.graph.events)
    team = runtime(*behaviors, budget={"max_cost_usd": "1"}, llm_cache=cache, replay_llm_cache=True, **options)
    team.run_goal("go")
    requests = [event.payload for event in team.graph.events if event.type == "llm.requested"]
    assert [(one["cache_hit"], one["budget_remaining_usd"]) for one in requests] == [(True, "1"), (True, "0")]


def test_an_object_created_by_a_model_records_it():
    behavior, answers = think(["one"])
    team = runtime(behavior, llm_provider=answers)
    team.run_goal("go")
    request = next(event.id for event in team.graph.events if event.type == "llm.requested")
    assert team.graph.get_object("note#1").provenance["llm_request_event_id"] == request


def test_a_runtime_without_a_model_says_so_before_anything_runs():
    behavior, _ = think([])
    team = runtime(behavior)  # a model's name is not needed to look at it
    with pytest.raises(AgentNbError, match="R328"):
        team.run_goal("go")
    assert team.graph.events == []


def test_a_stored_run_of_a_model_is_replayed_on_its_answers(tmp_path):
    behavior, answers = think(['{"text": "one"}'], output_schema=Note)
    team = runtime(behavior, llm_provider=answers, persist_to=tmp_path / "run.db")
    team.run_goal("go")
    team.session.close()
    loaded = Runtime.load(tmp_path / "run.db", behaviors=[behavior], llm_provider=[], replay_strict=True)
    assert log(loaded) == log(team)


class Provider:
    """Keeps what it is asked; it says what it can."""

    def __init__(self, **abilities):
        self.asked = []
        vars(self).update(abilities)

    def complete(self, **words):
        self.asked.append(words)
        return LLMResponse('{"text": "one"}', {"text": "one"})


def test_a_deterministic_behavior_is_called_with_temperature_zero():
    provider = Provider()
    for settings in ({"deterministic": True}, {}):
        behavior, _ = think([], temperature=0.9, top_p=0.5, **settings)
        runtime(behavior, llm_provider=provider).run_goal("go")
    assert [(each["temperature"], each["top_p"]) for each in provider.asked] == [(0.0, 1.0), (0.9, 0.5)]


@pytest.mark.parametrize(
    ("abilities", "words", "model"),
    [({}, {}, "claude-sonnet-4-5"), ({"default_model": "mine"}, {}, "mine"),
     ({"default_model": "mine"}, {"model": "other"}, "other")],
)  # fmt: skip
def test_the_model_is_that_of_the_behavior_or_else_of_the_provider(abilities, words, model):
    provider = Provider(**abilities)
    behavior, _ = think([], **words)
    team = runtime(behavior, llm_provider=provider)
    team.run_goal("go")
    requested = next(event.payload for event in team.graph.events if event.type == "llm.requested")
    assert (provider.asked[0]["model"], requested["model"]) == (model, model)


def test_a_missing_tool_is_reported_before_anything_runs():
    behavior, answers = think(["never asked"], tools=["look"])
    team = runtime(behavior, llm_provider=answers, tools=[Tool("looks", lambda args, ctx: {})])
    for run in (lambda: team.run_goal("go"), team.run_until_idle, lambda: team.session):
        with pytest.raises(MissingToolError, match="R233"):
            run()
    assert team.graph.events == []
    late = runtime(behavior, llm_provider=answers, tools=())
    late.load_pack(Pack("demo", "1", tools=[Tool("look", lambda args, ctx: {})]))
    late.run_goal("go")
    assert late.errors == []


class Nested(BaseModel):
    note: Note
    notes: list[Note]


class Optional(BaseModel):
    n: int = 3


class Bounded(BaseModel):
    n: int = Field(ge=1)


class Tree(BaseModel):
    children: list[Tree]


class Words(RootModel[list[str]]):
    pass


@pytest.mark.parametrize(
    ("wanted", "able", "schema", "mode"),
    [
        (True, True, Note, "native"),
        (True, True, Nested, "native"),
        (False, True, Note, "prompt"),
        (True, False, Note, "prompt"),
        (True, None, Note, "prompt"),
        (True, True, Optional, "prompt"),
        (True, True, Bounded, "prompt"),
        (True, True, Tree, "prompt"),
        (True, True, Words, "prompt"),
    ],
)
def test_structured_output_is_native_if_every_client_supports_it(wanted, able, schema, mode):
    provider = Provider(**({} if able is None else {"supports_native_structured_output": lambda model: able}))
    behavior, _ = think([], output_schema=schema)
    team = runtime(behavior, llm_provider=provider, native_structured_output=wanted)
    team.run_goal("go")
    requested = next(event.payload for event in team.graph.events if event.type == "llm.requested")
    assert requested["structured_output_mode"] == mode
    assert requested["prompt"].get("structured_output_mode") == (mode if mode == "native" else None)
    assert provider.asked[0].get("structured_output_mode") == (mode if mode == "native" else None)
    assert ("schema" in requested["prompt"]["system"]) is (mode == "prompt")


def test_native_output_changes_the_request():
    hashes = set()
    for native in (True, False):
        provider = Provider(supports_native_structured_output=lambda model: True)
        behavior, _ = think([], output_schema=Note)
        team = runtime(behavior, llm_provider=provider, native_structured_output=native)
        team.run_goal("go")
        hashes.add(next(event.payload["prompt_hash"] for event in team.graph.events if event.type == "llm.requested"))
    assert len(hashes) == 2


class Slow(Answers):
    """Takes its time before it answers or raises."""

    def complete(self, **words):
        time.sleep(0.002)
        return super().complete(**words)


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("frozen", [True, False])
def test_latencies_are_read_from_the_clock_of_the_run(frozen, is_async):
    def slow(args, ctx):
        time.sleep(0.002)
        return {"found": args["q"]}

    class Awaited(Slow):
        async def complete(self, **words):
            return super().complete(**words)

    calls = ("", None, (("c1", "slow", {"q": "1"}),))
    logs = []
    for _ in range(2):
        behaviors, options = thinking(tools=[Tool("slow", slow)])
        answers = (ValueError("down"), calls, ("fine", None, ()))
        options["llm_provider"] = (Awaited if is_async else Slow)(activegraph, *answers)
        clock = {"clock": FrozenClock("2026-01-01T00:00:00Z")} if frozen else {}
        team = Runtime(Graph(**clock, run_id="RUN"), behaviors=behaviors, **options)
        team.run_goal("go")
        assert types(team)[-1] == "thought", team.errors
        logs.append(log(team))
    latencies = [event["payload"]["latency_seconds"] for event in logs[0] if "latency_seconds" in event["payload"]]
    failed, request_latency, used, answered = latencies[0], latencies[1], latencies[2], latencies[3]
    assert (request_latency, answered) == (0.5, 0.5)  # as the provider says
    assert (failed == used == 0) if frozen else min(failed, used) >= 0.001
    assert not frozen or logs[0] == logs[1]


def test_signatures_are_those_of_the_package():
    assert_same_signatures("llm_behavior", "LLMBehavior")
