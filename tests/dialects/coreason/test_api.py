"""Coreason's front door does what its document says, and its usage example runs as it stands there."""

from __future__ import annotations

import asyncio
import copy
import pickle
import warnings
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

import networkx as nx
import pytest

from agentnb.dialects.coreason import GraphExecutor, RecipeDefinition, SimulationScenario, SimulationTrace, StepType
from agentnb.errors import BoardError, ExecutionError, NodeExecutionError, RecipeError
from agentnb.load import load
from agentnb.world.llm.base import LLMResponse, Usage


def plain(name):
    return {"type": "agent", "id": name, "agent_ref": name}


def recipe(nodes, edges=(), entry=None, **more):
    topology = {
        "nodes": [
            {"type": "agent", "agent_ref": node, "id": node} if isinstance(node, str) else node for node in nodes
        ],
        "edges": [{"source": source, "target": target} for source, target in edges],
        "entry_point": entry or (nodes[0] if isinstance(nodes[0], str) else nodes[0]["id"]),
        **more.pop("topology", {}),
    }
    return RecipeDefinition.model_validate(
        {"metadata": {"name": "test"}, "interface": {}, "topology": topology, **more}
    )


def agent(name, **inputs):
    return {"type": "agent", "id": name, "agent_ref": f"{name}-agent", "inputs_map": inputs}


def router(routes, default="end", key="kind"):
    return {"type": "router", "id": "route", "input_key": key, "routes": routes, "default_route": default}


def run(*args, **options):
    executor = GraphExecutor(*args, **options)
    asyncio.run(executor.run())
    return executor


def path(executor):
    return [step.node_id for step in executor.trace.steps]


def test_the_documented_usage_example_runs():
    definition = recipe([agent("answer", query="user_input")])
    initial_state = {"user_input": "Hello World"}
    executor = GraphExecutor(definition, initial_state)
    trace = asyncio.run(executor.run())
    assert isinstance(trace, SimulationTrace)
    assert [step.node_id for step in trace.steps] == ["answer"]
    assert executor.context == {"user_input": "Hello World", "output": "Mocked output from answer-agent"}
    assert initial_state == {"user_input": "Hello World"}


def test_an_agent_receives_its_mapped_inputs_and_its_output_is_merged():
    seen = {}

    def answer(**inputs):
        seen.update(inputs)
        return {"text": "Hi", "score": 1}

    executor = run(
        recipe([agent("answer", query="user_input", gone="nothing")]),
        {"user_input": "?"},
        agents={"answer-agent": answer},
    )
    assert seen == {"query": "?"}
    assert executor.context == {"user_input": "?", "text": "Hi", "score": 1}
    (step,) = executor.trace.steps
    assert (step.type, step.inputs, step.observation) == (
        StepType.TOOL_EXECUTION,
        {"query": "?"},
        {"text": "Hi", "score": 1},
    )
    assert step.snapshot == executor.context


def test_an_agent_without_inputs_map_sees_nothing():
    executor = run(recipe(["a"]), {"x": 1}, agents={"a": lambda: {"y": 2}})
    assert executor.trace.steps[0].inputs == {}


def test_an_answer_that_is_not_a_mapping_is_written_under_output():
    assert run(recipe(["a"]), {}, agents={"a": lambda: "text"}).context == {"output": "text"}


def test_a_dotted_source_is_a_plain_key():
    executor = run(
        recipe([agent("a", q="deep.key")]), {"deep": {"key": 1}, "deep.key": 2}, agents={"a-agent": lambda **got: got}
    )
    assert executor.context["q"] == 2


@pytest.mark.parametrize("answers", [["yes"], {"ask": ["yes"]}, {"ask": "yes"}])
def test_a_human_node_writes_its_response(answers):
    executor = run(recipe([{"type": "human", "id": "ask", "prompt": "Go on?"}]), {}, answers=answers)
    (step,) = executor.trace.steps
    assert (step.type, step.observation) == (StepType.INTERACTION, {"response": "yes"})
    assert executor.context == {"response": "yes"}


def test_a_human_node_without_a_person_is_a_problem_and_keeps_the_earlier_steps():
    executor = GraphExecutor(recipe(["a", {"type": "human", "id": "ask", "prompt": "?"}], [("a", "ask")]), {})
    with pytest.raises(ExecutionError, match="X110"):
        asyncio.run(executor.run())
    assert path(executor) == ["a"]


@pytest.mark.parametrize(
    ("value", "key"),
    [
        ("yes", "yes"),
        (1, "1"),
        (1.0, "1.0"),
        (True, "True"),
        (True, "true"),
        (False, "false"),
        ("", ""),
        (0, "0"),
        ([1], "[1]"),
    ],
)
def test_routes_match_the_text_of_a_value(value, key):
    definition = recipe([router({key: "hit"}, "miss"), "hit", "miss"])
    executor = run(definition, {"kind": value})
    assert path(executor) == ["route", "hit"]
    step = executor.trace.steps[0]
    assert (step.type, step.inputs, step.observation) == (
        StepType.REASONING, {"kind": value}, {"decision": "hit", "value": value}
    )  # fmt: skip
    assert step.thought == f"Router decision based on kind={value}: Go to hit"


@pytest.mark.parametrize("state", [{}, *({"kind": value} for value in (None, "other", "X", "x ", "", ["x"], "null"))])
def test_without_a_match_the_default_route_is_taken(state):
    assert path(run(recipe([router({"None": "hit", "x": "hit"}, "miss"), "hit", "miss"]), state)) == ["route", "miss"]


def test_a_router_reads_a_flat_key():
    executor = run(recipe([router({"1": "hit"}, "miss", key="a.b"), "hit", "miss"]), {"a": {"b": 1}})
    assert path(executor) == ["route", "miss"]


def test_an_empty_default_ends_the_run():
    executor = run(recipe([router({"x": "hit"}, ""), "hit"]), {})
    assert path(executor) == ["route"]
    assert executor.trace.outcome["status"] == "finished"


def test_a_router_does_not_follow_edges():
    executor = run(recipe([router({"x": "hit"}, "miss"), "hit", "miss", "other"], [("route", "other")]), {"kind": "x"})
    assert path(executor) == ["route", "hit"]


def test_the_first_edge_of_several_is_taken():
    assert path(run(recipe(["a", "b", "c"], [("a", "c"), ("a", "b")]), {})) == ["a", "c"]


def test_max_steps_ends_a_cycle_and_says_so():
    executor = run(recipe(["a", "b"], [("a", "b"), ("b", "a")]), {})
    assert len(executor.trace.steps) == 50
    assert executor.trace.outcome["status"] == "exhausted"
    assert executor.trace.outcome["limit"] == "max_steps"


@pytest.mark.parametrize("limit", [0, -3])
def test_max_steps_of_zero_runs_nothing(limit):
    executor = run(recipe(["a"]), {}, max_steps=limit)
    assert len(executor.trace.steps) == 0


def test_a_chain_of_exactly_max_steps_finishes():
    names = [f"n{number}" for number in range(50)]
    executor = run(recipe(names, list(pairwise(names))), {})
    assert executor.trace.outcome == {"status": "finished", "steps": 50}


def test_a_new_run_begins_a_new_trace():
    executor = GraphExecutor(recipe(["a"]), {"n": 1})
    first = asyncio.run(executor.run())
    second = asyncio.run(executor.run())
    assert (len(first), len(second)) == (1, 1)
    assert first is not second


def test_a_failing_agent_is_an_error_step_and_raises():
    def fail():
        raise LookupError("no such order")

    executor = GraphExecutor(recipe(["a", "b"], [("a", "b")]), {}, agents={"b": fail})
    with pytest.raises(NodeExecutionError, match="no such order") as raised:
        asyncio.run(executor.run())
    assert isinstance(raised.value.__cause__, LookupError)
    assert [(step.node_id, step.status, step.type) for step in executor.trace.steps] == [
        ("a", "ok", StepType.TOOL_EXECUTION), ("b", "error", StepType.ERROR)
    ]  # fmt: skip


def test_a_draft_that_runs_into_a_missing_node_fails_there_and_keeps_the_steps_before():
    executor = GraphExecutor(recipe(["a"], [("a", "gone")], topology={"status": "draft"}), {})
    with pytest.raises(ExecutionError, match="'gone' does not exist yet"):
        asyncio.run(executor.run())
    assert [(step.node_id, step.status) for step in executor.trace.steps] == [("a", "ok"), ("gone", "error")]


def test_a_draft_without_an_entry_node_fails_at_once():
    executor = GraphExecutor(recipe(["a"], [], entry="gone", topology={"status": "draft"}), {})
    with pytest.raises(ExecutionError, match="gone"):
        asyncio.run(executor.run())
    assert path(executor) == ["gone"]


def test_the_state_is_validated_on_request():
    interface = {"inputs": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}}
    definition = recipe(["a"], interface=interface)
    GraphExecutor(definition, {})
    with pytest.raises(RecipeError, match="R205"):
        GraphExecutor(definition, {}, validate_inputs=True)
    with pytest.raises(RecipeError, match="R206"):
        GraphExecutor(definition, {"n": "one"}, validate_inputs=True)


def test_the_initial_state_may_be_none():
    assert run(recipe(["a"]), None).context == {"output": "Mocked output from a"}


def test_the_trace_names_its_recipe():
    trace = run(recipe(["a"]), {}).trace
    assert (trace.agent_id, trace.agent_version, trace.metadata["recipe_kind"]) == ("test", "v2", "Recipe")


def test_an_executor_takes_a_dict_and_can_be_stepped():
    executor = GraphExecutor(recipe(["a", "b"], [("a", "b")]).model_dump(by_alias=True, exclude_none=True), {})
    assert executor.session.step().node_id == "a"
    executor.session.back()
    assert executor.context == {}


def test_an_llm_answers_agents_that_are_not_bound():
    executor = run(recipe([agent("a", question="q")]), {"q": "Why?"}, llm=[{"text": "Because"}])
    assert executor.context["text"] == "Because"


def test_a_scenario_is_data():
    scenario = SimulationScenario.model_validate(
        {"id": "s", "description": "d", "inputs": {"a": 1}, "validation_logic": "exact_match"}
    )
    assert scenario.expected_output is None


def test_equal_clock_seed_and_run_id_give_equal_traces(tmp_path):
    from agentnb.clock import FrozenClock
    from agentnb.load import load
    from agentnb.session import Session

    texts = []
    for number in range(2):
        session = Session(load(recipe(["a", "b"], [("a", "b")])), {}, clock=FrozenClock(), seed=3, run_id="r")
        session.run().to_json(tmp_path / f"{number}.json")
        texts.append((tmp_path / f"{number}.json").read_text())
    assert texts[0] == texts[1]


@pytest.mark.parametrize(
    ("given", "order"),
    [
        ("r.yaml", "load('r.yaml')"),
        (Path("r.yaml"), "load('r.yaml')"),
        (Path("a") / "r.yaml", "r.yaml')"),
        ("kind: Recipe\ntopology: []", "load(...)"),
        (None, "load(...)"),
        ([1], "load(...)"),
        (RecipeDefinition, "load(...)"),
        (nx.DiGraph(), "load(...)"),
    ],
)
def test_an_object_that_is_not_a_recipe_is_reported_with_a_hint(given, order):
    with pytest.raises(ExecutionError) as caught:
        GraphExecutor(given, {})
    (problem,) = caught.value.problems
    assert problem.code == "X117"
    assert order in problem.do


def test_max_steps_of_none_is_50_and_a_text_is_reported():
    endless = recipe(["a", "b"], [("a", "b"), ("b", "a")])
    assert len(run(endless, {}, max_steps=None).trace.steps) == 50
    assert run(endless, {}, max_steps=-1).trace.steps == []
    for limit in ("x", True, [3]):
        with pytest.raises(ExecutionError, match="X202"):
            GraphExecutor(endless, {}, max_steps=limit)


def test_an_unused_agent_is_a_warning():
    loaded_recipe = recipe([agent("write"), agent("read")], [("write", "read")])
    with pytest.warns(UserWarning, match="'wrtie-agent'.*no node of 'test' uses it; did you mean 'write-agent'"):
        GraphExecutor(loaded_recipe, {}, agents={"wrtie-agent": lambda: 1, "read-agent": lambda: 1})
    with pytest.warns(UserWarning, match="the requested names are: write-agent, read-agent") as warned:
        GraphExecutor(loaded_recipe, {}, agents={"other": lambda: 1})
    assert [warning.filename for warning in warned] == [__file__]


def test_an_agent_that_is_not_callable_is_reported_without_a_suggestion():
    with pytest.raises(RecipeError, match="R203: the object passed for 'write-agent' is an int") as caught:
        GraphExecutor(recipe([agent("write")]), {}, agents={"write-agent": 5})
    assert caught.value.problems[0].do == "pass a function"


# -- attributes of the executor ------------------------------------------------------------------------------------

ROUND = recipe(["a"], [("a", "a")])


def test_the_cap_may_be_lowered_and_raised_as_an_attribute():
    executor = GraphExecutor(ROUND, {})
    assert executor.max_steps == 50
    for max_steps, steps in ((3, 3), (0, 0), (-1, 0), (60, 60), (None, 50)):
        executor.max_steps = max_steps
        assert executor.max_steps == steps
        assert len(asyncio.run(executor.run()).steps) == steps
    with pytest.raises(ExecutionError, match="X202"):
        executor.max_steps = "many"
    assert executor.max_steps == 50


def test_an_unknown_attribute_cannot_be_set():
    executor = GraphExecutor(ROUND, {})
    for name in ("maxsteps", "current_node_id", "agents", "trace"):
        with pytest.raises(AttributeError):
            setattr(executor, name, 3)


def test_the_recipe_is_the_definition_however_it_was_given():
    assert GraphExecutor(ROUND, {}).recipe is ROUND
    assert GraphExecutor(ROUND.dump(), {}).recipe == ROUND
    assert GraphExecutor(load(ROUND), {}).recipe is ROUND
    other = load(nx.DiGraph([("a", "b")]))
    assert GraphExecutor(other, {}, agents={"a": dict, "b": dict}).recipe.name == other.name


def test_values_written_into_the_context_are_on_the_blackboard():
    executor = GraphExecutor(recipe([agent("a", q="q")]), {"q": 1, "gone": 2}, agents={"a-agent": lambda q: {"r": q}})
    executor.context["q"] = 5
    executor.context.update({"more": [1]}, z=3)
    context = executor.context
    context |= {"y": 4}
    del context["gone"]
    assert context.pop("z") == 3
    assert context.setdefault("q", 9) == 5
    assert executor.context == context == {"q": 5, "more": [1], "y": 4}
    with pytest.raises(KeyError):
        del context["gone"]
    assert type(copy.deepcopy(context)) is dict
    assert type(pickle.loads(pickle.dumps(context))) is dict
    asyncio.run(executor.run())
    assert executor.context["r"] == 5


# -- costs that nobody knows ----------------------------------------------------------------------------------------

CAPPED = recipe([plain("a"), plain("b")], [("a", "b")], policy={"budget_cap_usd": 0.5})


def test_a_cost_cap_without_known_costs_is_reported_once():
    with pytest.warns(UserWarning, match=r"budget_cap_usd\) is 0.5, but the cost of 'a' is not known") as warnings:
        run(CAPPED, {}, llm=lambda _request: "text")
    assert len(warnings) == 1


@pytest.mark.parametrize("llm", [None, ["one", "two"], lambda _: LLMResponse("x", usage=Usage(1, 1, Decimal("0.1")))])
def test_a_cost_cap_with_known_costs_is_not_reported(llm):
    with warnings.catch_warnings(action="error"):
        assert len(run(CAPPED, {}, llm=llm).trace.steps) == 2


def test_inputs_with_a_key_that_is_not_a_string_are_reported_as_inputs():
    with pytest.raises(BoardError, match="B105") as caught:
        GraphExecutor(ROUND, {1: 2})
    assert (caught.value.problems[0].where, caught.value.problems[0].do) == ("the inputs", "use '1'")
