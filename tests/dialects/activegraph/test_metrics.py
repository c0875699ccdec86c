from __future__ import annotations

from collections import defaultdict
from decimal import Decimal
from types import SimpleNamespace

import pytest
from activegraph.observability.metrics import METRIC_NAMES

from agentnb.dialects.activegraph import LLMResponse, ReplayDivergenceError, Runtime, Tool
from agentnb.dialects.activegraph.parts.metrics import METRICS
from tests.dialects.activegraph.runtimes import on, runtime, thinking


class Counts:
    """Keeps all that is counted: (name, its tags) -> values."""

    def __init__(self):
        self.found = defaultdict(list)
        self.kinds = {}

    def _take(self, kind, name, tags, value):
        assert all(isinstance(tag, str) for pair in tags.items() for tag in pair)
        self.kinds[name] = kind
        self.found[name.removeprefix("activegraph_"), *sorted(tags.values())].append(float(value))

    def counter(self, name, tags, value=1.0):
        self._take("counter", name, tags, value)

    def histogram(self, name, tags, value):
        self._take("histogram", name, tags, value)

    def gauge(self, name, tags, value):
        self._take("gauge", name, tags, value)

    def total(self, *key):
        return sum(self.found[key])


def looked(args, ctx):
    if args.get("fail"):
        raise ValueError("no")
    return {}


@pytest.fixture
def counted():
    """A run in which everything happens that is counted, and its counts."""
    counts = Counts()
    answers = [
        ("", None, (("c1", "look", {}),)),
        ("done", None, ()),
        ("", None, (("c2", "look", {"fail": True}),)),
        ValueError("the network is down"),
    ]
    tools = [Tool("look", looked, cost_per_call=Decimal("0.5"))]
    budget = {"max_cost_usd": 9, "max_events": 50}
    behaviors, options = thinking(*answers, tools=tools, llm_retry_max_attempts=1, budget=budget)
    matched = on("thought", pattern="(a:book)")(lambda event, graph, ctx: graph.emit("seen", {}))
    matched.name = "matched"
    team = runtime(*behaviors, matched, metrics=counts, **options)
    team.graph.add_object("book", {})
    for text in ("one", "two", "three"):
        team.run_goal(text)
    return team, counts


def test_behaviors_and_events_are_counted(counted):
    team, counts = counted
    types = [event.type for event in team.graph.events]
    for type_ in ("goal.created", "behavior.started", "llm.requested", "runtime.idle"):
        assert counts.total("events_emitted_total", type_) == types.count(type_) > 0
    assert counts.total("behaviors_invoked_total", "think") == 3
    assert counts.total("behaviors_invoked_total", "matched") == 1
    assert len(counts.found["behaviors_duration_seconds", "think"]) == 3
    assert counts.total("behaviors_failed_total", "think", "tool.execution_error") == 1
    assert counts.total("behaviors_failed_total", "llm.network_error", "think") == 1


def test_models_and_tools_are_counted(counted):
    _, counts = counted
    assert counts.total("llm_calls_total", "model-1") == 4
    assert counts.total("llm_failed_total", "llm.network_error", "model-1") == 1
    assert counts.found["llm_tokens_in", "model-1"] == [5.0] * 3
    assert counts.found["llm_tokens_out", "model-1"] == [7.0] * 3
    assert counts.found["llm_cost_usd", "model-1"] == [0.002] * 3
    assert counts.total("tools_calls_total", "look") == 2
    assert counts.total("tools_failed_total", "look", "tool.execution_error") == 1
    assert len(counts.found["tools_duration_seconds", "look"]) == 2


def test_current_values_are_reported(counted):
    team, counts = counted
    assert counts.found["queue_depth",][-1] == 0
    assert counts.found["budget_events_remaining", team.run_id][-1] == 50 - team.status().budget.used["max_events"]
    left = team.budget.cost_remaining_amount()
    assert counts.found["budget_cost_remaining_usd", team.run_id][-1] == float(left)
    assert counts.total("patterns_evaluated_total") == len(counts.found["patterns_evaluation_duration_seconds",]) == 1


def test_an_exceeded_budget_has_nothing_left():
    counts = Counts()
    tools = [Tool("look", looked, cost_per_call=Decimal("0.5"))]
    budget = {"max_cost_usd": "0.1", "max_events": 2}
    behaviors, options = thinking(("", None, (("c1", "look", {}),)), ("done", None, ()), tools=tools, budget=budget)
    team = runtime(*behaviors, metrics=counts, **options)
    team.run_goal("one")
    assert team.budget.cost_remaining_amount() < 0
    assert counts.found["budget_cost_remaining_usd", team.run_id][-1] == 0
    assert counts.found["budget_events_remaining", team.run_id][-1] >= 0


def test_the_queue_depth_is_the_number_of_waiting_deliveries():
    counts = Counts()
    calm = runtime(on("go")(lambda event, graph, ctx: None), metrics=counts)
    for _ in range(3):
        calm.session.emit("go", {})
    calm.run_until_idle()
    assert counts.found["queue_depth",] == [2, 1, 0, 0]


def test_cached_answers_are_counted_as_such():
    counts = Counts()
    behaviors, options = thinking(("", None, (("c1", "look", {}),)), ("done", None, ()), tools=[Tool("look", looked)])
    team = runtime(*behaviors, **options)
    team.run_goal("one")
    fork = team.fork("evt_001", metrics=counts, replay_llm_cache=True, replay_tool_cache=True)
    fork.session.goto(0)
    fork.run_until_idle()
    assert counts.total("llm_cache_hits_total", "model-1") == counts.total("llm_calls_total", "model-1") == 2
    assert counts.total("tools_cache_hits_total", "look") == counts.total("tools_calls_total", "look") == 1


@pytest.mark.filterwarnings("ignore:run 'RUN' was made with another version")
def test_diverging_strict_replays_are_counted_and_replayed_events_are_not(tmp_path):
    first = on("go", pattern="(a:book)")(lambda event, graph, ctx: graph.add_object("x", {}))
    first.name = "first"
    team = runtime(first, persist_to=tmp_path / "run.db")
    team.graph.add_object("book", {})
    team.session.emit("go", {})
    team.run_until_idle()
    team.session.close()
    counts = Counts()
    Runtime.load(tmp_path / "run.db", behaviors=[first], metrics=counts, replay_strict=True).session.close()
    assert counts.found == {}
    other = on("go", pattern="(a:book)")(lambda event, graph, ctx: graph.add_object("y", {}))
    other.name = "first"
    with pytest.raises(ReplayDivergenceError):
        Runtime.load(tmp_path / "run.db", behaviors=[other], metrics=counts, replay_strict=True)
    assert [key[0] for key in counts.found] == ["replay_divergence_detected_total"]


def test_the_names_and_types_of_metrics_are_those_of_the_package(counted):
    _, counts = counted
    theirs = {spec.name: spec.kind for spec in METRIC_NAMES if "sink" not in spec.name}
    assert {f"activegraph_{name}" for name in METRICS} == set(theirs)
    assert counts.kinds.items() <= theirs.items()
    assert len(counts.kinds) == len(theirs) - 3  # the two of caches and that of replays: see above


def test_an_answer_without_usage_counts_as_nothing():
    counts = Counts()
    (think,), options = thinking()
    answer = LLMResponse("done", None, None, None, model="m")
    provider = SimpleNamespace(complete=lambda **words: answer, default_model="m")
    runtime(think, metrics=counts, **{**options, "llm_provider": provider}).run_goal("go")
    assert [counts.found[name, "m"] for name in ("llm_tokens_in", "llm_tokens_out", "llm_cost_usd")] == [[0.0]] * 3
