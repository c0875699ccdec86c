from __future__ import annotations

from decimal import Decimal

import pytest

import agentnb as nb
from agentnb.dialects.activegraph import Behavior, LLMBehavior, Runtime, Tool
from agentnb.dialects.activegraph.errors import RegistrationError
from agentnb.dialects.activegraph.parts.behavior_budgets import measure_behavior_usage
from agentnb.errors import AgentNbError
from tests.dialects.activegraph.runtimes import on, on_relation, runtime, thinking


def hop(event, graph, ctx):
    graph.emit("go", {"n": event.payload.get("n", 0) + 1})


def hopper(**budget):
    return Behavior("hop", hop, on=["go"], budget=budget)


def went(found):
    """Return the behaviors that were given an event, in order."""
    return [step.node_id for step in found.session.trace.steps]


def test_a_behavior_is_not_triggered_after_its_calls_are_used_up():
    chain = runtime(hopper(max_behavior_calls=3), budget={"max_behavior_calls": 50})
    chain.session.emit("go", {})
    chain.run_until_idle()
    assert (went(chain), chain.session.status) == (["hop"] * 3, "idle")
    assert chain.graph.events[-1].payload["used_up"] == {"hop": "max_behavior_calls"}
    assert "budget: its max_behavior_calls=3 is used up" in str(chain.session.why_not("hop"))


def test_others_continue():
    @on("go")
    def note(event, graph, ctx):
        graph.add_object("note", {})

    both = runtime(hopper(max_behavior_calls=2), note)
    both.session.emit("go", {})
    both.run_until_idle()
    assert went(both) == ["hop", "note", "hop", "note", "note"]


def test_events_in_the_queue_do_not_exceed_it():
    team = runtime(hopper(max_behavior_calls=2))
    for _ in range(5):
        team.session.emit("go", {})
    team.run_until_idle()
    assert went(team) == ["hop", "hop"]


@pytest.mark.parametrize("delay", [None, 1])
@pytest.mark.parametrize(("limits", "expected"), [({}, 3), ({"max_patches": 1}, 3), ({"max_behavior_calls": 2}, 2),
                                                  ({"max_behavior_calls": 2, "max_patches": 0}, 0)])  # fmt: skip
def test_relations_of_one_event_do_not_exceed_it(limits, expected, delay):
    @on_relation("near", "go", budget=limits, activate_after=delay)
    def follow(relation, event, graph, ctx):
        graph.emit("followed", {"target": relation.target})

    @on_relation("near", "go", activate_after=delay)
    def note(relation, event, graph, ctx):
        graph.emit("noted", {"target": relation.target})

    team = runtime(follow, note)
    middle, *others = [team.graph.add_object("place", {}) for _ in range(4)]
    for other in others:
        team.graph.add_relation(middle.id, other.id, "near")
    team.session.emit("go", {"place": middle.id})
    team.session.emit("tick", {})
    team.run_until_idle()
    targets = {type_: [event.payload["target"] for event in team.graph.events if event.type == type_]
               for type_ in ("followed", "noted")}  # fmt: skip
    places = ["place#2", "place#3", "place#4"]
    assert targets == {"followed": places[:expected], "noted": places}


def test_deferred_deliveries_do_not_exceed_it():
    @on("go", activate_after=1, budget={"max_behavior_calls": 1})
    def later(event, graph, ctx):
        graph.add_object("note", {})

    team = runtime(later)
    for type_ in ("go", "go", "other", "other", "other"):
        team.session.emit(type_, {})
    team.run_until_idle()
    assert len(team.graph.objects("note")) == 1


def test_patches_count_towards_the_budget_of_their_behavior():
    @on("go", budget={"max_patches": 2})
    def first(event, graph, ctx):
        graph.patch_object("book#1", {"n": event.payload["n"]})

    @on("go")
    def second(event, graph, ctx):
        graph.patch_object("book#1", {"m": event.payload["n"]})

    team = runtime(first, second)
    team.graph.add_object("book", {})
    for number in range(4):
        team.session.emit("go", {"n": number})
    team.run_until_idle()
    assert team.graph.get_object("book#1").data == {"n": 1, "m": 3}


def asking(budget, *answers, tools=()):
    """Return a runtime whose behavior `think` asks a model within this budget."""
    (think,), options = thinking(*answers, tools=tools)
    behavior = LLMBehavior("think", think.fn, on=["goal.created"], handler=think.fn, tools=list(tools), budget=budget)
    return runtime(behavior, **options)


def test_model_calls_are_counted_and_none_is_made_beyond_the_limit():
    tool = Tool("look", lambda args, ctx: {"found": 1})
    calls = [("", None, (("1", "look", {}),)), ("", None, (("2", "look", {}),)), ("done", None, ())]
    team = asking({"max_llm_calls": 2}, *calls, tools=[tool])
    team.run_goal("one")
    team.run_goal("two")
    assert [event.type for event in team.graph.events].count("llm.requested") == 2
    assert [(error.behavior, error.reason) for error in team.errors] == [("think", "budget.llm_calls_exhausted")]
    assert went(team) == ["think"]


def test_tools_are_counted():
    tool = Tool("look", lambda args, ctx: {"found": 1})
    calls = [("", None, (("1", "look", {}), ("2", "look", {}))), ("done", None, ())]
    team = asking({"max_tool_calls": 1}, *calls, tools=[tool])
    team.run_goal("one")
    assert [event.type for event in team.graph.events].count("tool.requested") == 1
    assert [error.reason for error in team.errors] == ["budget.tool_calls_exhausted"]


def test_its_costs_are_decimals():
    tool = Tool("look", lambda args, ctx: {"found": 1}, cost_per_call=Decimal("0.10"))
    calls = [("", None, (("1", "look", {}),)), ("done", None, ())] * 3
    team = asking({"max_cost_usd": "0.20"}, *calls, tools=[tool])
    for text in ("one", "two", "three"):
        team.run_goal(text)
    think = team.get_behavior("think")
    spent = measure_behavior_usage(team.session._parts.run, "think", think.budget)
    assert (went(team), spent["max_cost_usd"] >= Decimal("0.20")) == (["think", "think"], True)


def test_usage_after_back_fork_or_load_is_that_of_the_position(tmp_path):
    team = runtime(hopper(max_behavior_calls=3), persist_to=tmp_path / "run.db")
    team.session.emit("go", {})
    team.run_until_idle()
    session = team.session
    fork = session.fork(at=1)
    fork.run()
    assert [step.node_id for step in fork.trace.steps] == ["hop"] * 3
    session.goto(2)
    assert measure_behavior_usage(session._parts.run, "hop", {"max_behavior_calls": 3}) == {"max_behavior_calls": 2}
    assert team.replay().ok
    session.close()
    loaded = Runtime.load(tmp_path / "run.db", behaviors=[hopper(max_behavior_calls=5)], replay_strict=False)
    loaded.session.emit("go", {})
    loaded.run_until_idle()
    assert measure_behavior_usage(loaded.session._parts.run, "hop", {"max_behavior_calls": 5}) == {
        "max_behavior_calls": 5
    }
    loaded.session.close()


def test_a_replay_of_a_run_with_budgets_finds_nothing():
    chain = runtime(hopper(max_behavior_calls=3))
    for _ in range(3):
        chain.session.emit("go", {})
    chain.run_until_idle()
    assert chain.replay().ok


@pytest.mark.parametrize("limit", ["max_events", "max_depth", "max_seconds", "max_steps", "max_llm_call"])
def test_a_limit_for_runs_is_rejected_for_a_behavior(limit):
    with pytest.raises(RegistrationError, match="R331"):
        hopper(**{limit: 3})


@pytest.mark.parametrize("value", [-1, 1.5, "many", True])
def test_an_invalid_limit_is_rejected(value):
    with pytest.raises(AgentNbError, match="R331"):
        hopper(max_behavior_calls=value)


def test_a_session_of_the_recipe_keeps_to_it_too():
    session = nb.Session(runtime(hopper(max_behavior_calls=2)).session.recipe)
    session.emit("go", {}).run()
    assert (session.position, session.status) == (2, "idle")
