from __future__ import annotations

import pytest

from agentnb.clock import FrozenClock
from agentnb.dialects.coreason.parts.nodes import make_node
from agentnb.dialects.coreason.parts.sections_schema import PolicyConfig
from agentnb.dialects.coreason.schema import AgentNode, EvaluatorNode, GenerativeNode, HumanNode, RouterNode
from agentnb.errors import Place
from agentnb.load import load
from agentnb.recipe.model import Rescue, RouteTarget
from agentnb.session import Session
from tests.dialects.coreason.recipe_texts import agent, content, router
from tests.session.small_sessions import path

PLACE = Place("t.yaml", 1, 1)
JUDGE = {
    "target_variable": "reply.text",
    "evaluator_agent_ref": "critic",
    "evaluation_profile": {"evaluator_model": "m", "grading_rubric": []},
    "pass_threshold": 0.8,
    "max_refinements": 2,
    "pass_route": "done",
    "fail_route": "write",
    "feedback_variable": "critique",
}
MADE = {
    "agent": lambda **more: AgentNode(**{"id": "n", "agent_ref": "writer", **more}),
    "human": lambda **more: HumanNode(id="n", prompt="Go on?", **more),
    "router": lambda **more: RouterNode(**{"id": "n", "input_key": "k", "routes": {}, "default_route": "d", **more}),
    "evaluator": lambda **more: EvaluatorNode(**{"id": "n", **JUDGE, **more}),
    "generative": lambda **more: GenerativeNode(**{"id": "n", "goal": "a poem", "output_schema": {}, **more}),
}
ASKING = ("agent", "evaluator", "generative")


def node(kind, policy=None, model=None, **more):
    return make_node(MADE[kind](**more), PLACE, PolicyConfig(**policy) if policy else None, model)


def options(made):
    return {key: made.params[key] for key in ("timeout", "attempts", "backoff") if key in made.params}


# ------------------------------------------------------------------------------------------------ retries, timeout


@pytest.mark.parametrize(
    ("policy", "recovery", "expected"),
    [
        (None, None, {}),
        ({"max_retries": 0}, {}, {}),
        ({"max_retries": -1}, None, {}),
        ({"max_retries": 2}, None, {"attempts": 3, "backoff": 0.0}),
        ({"max_retries": 2}, {}, {"attempts": 3, "backoff": 0.0}),
        ({"max_retries": 2}, {"max_retries": 1}, {"attempts": 2, "backoff": 1.0}),
        ({"max_retries": 2}, {"max_retries": 0}, {}),
        (None, {"max_retries": 3, "retry_delay_seconds": 0.25}, {"attempts": 4, "backoff": 0.25}),
        (None, {"max_retries": 3, "retry_delay_seconds": -1}, {"attempts": 4, "backoff": 0.0}),
        (None, {"max_retries": -3}, {}),
        ({"timeout_seconds": 7}, None, {"timeout": 7}),
        ({"timeout_seconds": 0}, None, {}),
        ({"timeout_seconds": -1}, None, {}),
    ],
)
@pytest.mark.parametrize("kind", ASKING)
def test_the_recovery_of_a_node_overrides_the_policy(kind, policy, recovery, expected):
    assert options(node(kind, policy, recovery=recovery)) == expected


@pytest.mark.parametrize("kind", ASKING)
@pytest.mark.parametrize(("told", "found"), [({"repeatable": True}, True), ({}, None), ({"repeatable": "often"}, None)])
def test_metadata_declare_whether_a_call_is_repeatable(kind, told, found):
    assert node(kind, metadata=told).params.get("repeatable") is found
    assert "repeatable" not in node("human", metadata=told).params


def test_a_question_has_its_own_timeout_and_is_asked_once():
    policy = {"max_retries": 3, "timeout_seconds": 5}
    assert options(node("human", policy, timeout_seconds=60)) == {"timeout": 60}
    assert options(node("human", policy, recovery={"max_retries": 4})) == {}
    assert options(node("human", timeout_seconds=0)) == {}
    assert options(node("router", policy)) == {}


def test_retries_are_seen_among_the_calls():
    answers = iter([OSError("line"), "fine"])

    def write():
        answer = next(answers)
        if isinstance(answer, OSError):
            raise answer
        return answer

    document = content(["write"], policy={"max_retries": 1})
    run = Session(load(document), tools={"write-agent": write}, clock=FrozenClock())
    run.run()
    calls = run.trace.frames.calls
    assert (run.status, dict(run.board)) == ("finished", {"output": "fine"})
    assert (calls["attempt"].tolist(), calls["backoff_seconds"].tolist()) == ([1, 2], [0.0, 0.0])
    assert calls["error"].iloc[0] == "OSError: line"


# ------------------------------------------------------------------------------------------------ rescue


@pytest.mark.parametrize("kind", MADE)
def test_only_a_recovery_that_continues_handles_a_failure(kind):
    for recovery in (None, {}, {"behavior": "route_to_fallback", "fallback_node_id": "x", "default_output": {"a": 1}}):
        assert node(kind, recovery=recovery).rescue is None


@pytest.mark.parametrize("kind", ["agent", "human", "generative"])
def test_a_node_continues_by_its_edges(kind):
    custom_node = node(kind, recovery={"behavior": "continue_with_default", "default_output": {"a": 1}})
    assert custom_node.rescue == Rescue({"a": 1})
    assert "a" in custom_node.writes
    assert node(kind, recovery={"behavior": "continue_with_default"}).rescue == Rescue({})
    assert node(kind, recovery={"behavior": "ignore", "default_output": {"a": 1}}).rescue == Rescue({})


def test_a_choosing_node_continues_by_its_default_route():
    ignore = {"recovery": {"behavior": "ignore"}}
    assert node("router", **ignore).rescue == Rescue({}, (RouteTarget("d", "otherwise"),))
    assert node("router", default_route="", **ignore).rescue == Rescue({}, ())
    assert node("evaluator", **ignore).rescue == Rescue({}, (RouteTarget("done", "pass"),))
    assert node("evaluator", pass_route="", **ignore).rescue == Rescue({}, ())


@pytest.mark.parametrize(
    ("recovery", "wrote"),
    [
        ({"behavior": "continue_with_default", "default_output": {"output": "sorry"}}, {"output": "sorry"}),
        ({"behavior": "ignore"}, {}),
    ],
)
def test_a_run_continues_from_the_failed_step(recovery, wrote):
    def write():
        raise OSError("line")

    document = content([agent("write", recovery=recovery), "after"], [("write", "after")])
    run = Session(load(document), tools={"write-agent": write})
    run.run()
    assert (run.status, path(run)) == ("finished", ["write error", "after"])
    assert run.trace.steps[0].outputs == wrote


def test_a_failed_judge_passes_if_its_failure_is_ignored():
    judge = {"id": "judge", "type": "evaluator", **JUDGE, "recovery": {"behavior": "ignore"}}
    document = content(
        [agent("write", metadata={"simulated": {"reply.text": "x"}}), judge, "done"], [("write", "judge")]
    )
    run = Session(load(document), tools={"critic": lambda text: "no idea"})
    run.run()
    assert (run.status, path(run)) == ("finished", ["write", "judge error", "done"])


# ------------------------------------------------------------------------------------------------ agents


def prompt(policy=None, **more):
    return node("agent", policy, **more).params.get("prompt")


def test_an_agent_receives_its_inputs():
    safe = {"safety_preamble": "Do no harm."}
    profile = {"role": "editor", "task_primitive": "shorten"}
    assert prompt() is None
    assert prompt(safe) == "Do no harm."
    assert prompt(system_prompt_override="Write.") == "Write."
    assert prompt(safe, system_prompt_override="Write.") == "Do no harm.\n\nWrite."
    assert prompt(agent_ref=None, cognitive_profile=profile) == "Your role: editor. Your task: shorten."
    assert prompt(cognitive_profile={"role": "editor"}) == "Your role: editor."
    assert prompt(system_prompt_override="Write.", cognitive_profile=profile) == "Write."


def test_a_requested_agent_receives_the_request():
    custom_node = node("agent", agent_ref={"intent": "write well", "constraints": ["short", "plain"]})
    assert custom_node.params["prompt"] == "write well\nConditions:\n- short\n- plain"
    assert (custom_node.params["ref"], custom_node.params["wanted"]["intent"]) == ("n", "write well")
    assert prompt(agent_ref={"intent": "write well"}) == "write well"


def test_the_model_of_a_node_overrides_that_of_the_recipe():
    assert "model" not in node("agent").params
    assert node("agent", model="small").params["model"] == "small"
    assert node("agent", model="small", model_policy="big").params["model"] == "big"
    chosen = {"strategy": "lowest_cost", "min_context_window": 8000}
    assert node("agent", model="small", model_policy=chosen).params["model"] == chosen
    for kind in ("evaluator", "generative"):
        assert node(kind, model={"temperature": 0}).params["model"] == {"temperature": 0}


def test_the_model_and_its_settings_are_in_the_request():
    requests = []
    document = content(
        [agent("a", model_policy="big"), agent("b", model_policy={"strategy": "lowest_cost"})], [("a", "b")]
    )
    run = Session(load(document), llm=lambda request: requests.append(request) or "fine")
    run.run()
    assert [(request.model, dict(request.settings)) for request in requests] == [
        ("big", {}),
        (None, {"strategy": "lowest_cost"}),
    ]


# ------------------------------------------------------------------------------------------------ the other types


def test_an_evaluator_has_the_parameters_of_its_kind():
    simulated = [{"score": 0.1}, {"score": 0.9}]
    custom_node = node("evaluator", {"safety_preamble": "Do no harm."}, metadata={"simulated": simulated})
    assert (custom_node.reads, custom_node.writes, custom_node.inputs) == (("reply.text",), ("critique",), None)
    params = dict(custom_node.params)
    assert params.pop("profile")["evaluator_model"] == "m"
    assert params == {
        "target": ("reply.text",),
        "ref": "critic",
        "threshold": 0.8,
        "max_refinements": 2,
        "pass_route": "done",
        "fail_route": "write",
        "feedback": "critique",
        "prompt": "Do no harm.",
        "simulated": tuple(simulated),
    }
    assert node("evaluator", evaluation_profile="strict").params["profile"] == "strict"


def test_a_generative_node_has_the_parameters_of_its_kind():
    schema = {"type": "object", "properties": {"title": {}, "lines": {}}}
    custom_node = node("generative", output_schema=schema, allowed_tools=["search"], solver={"n_samples": 3})
    params = custom_node.params
    assert (params["goal"], params["schema"], params["tools"]) == ("a poem", schema, ("search",))
    assert params["solver"]["n_samples"] == 3
    assert custom_node.writes == ("title", "lines")
    assert node("generative", output_schema={"type": "array"}).writes == ("n",)
    assert node("generative", output_schema={"type": "object"}).writes == ()


def test_simulated_answers_are_one_mapping_or_several():
    for kind in ASKING:
        assert node(kind, metadata={"simulated": {"a": 1}}).params["simulated"] == ({"a": 1},)
        assert "simulated" not in node(kind, metadata={"simulated": [{"a": 1}, "b"]}).params
        assert "simulated" not in node(kind, metadata={"simulated": []}).params


def test_presentation_and_requests_are_not_params():
    custom_node = node("agent", interaction={}, visualization={}, collaboration={}, reasoning={}, recovery={})
    assert set(custom_node.params) == {"ref", "output"}


def test_a_route_of_a_router_may_be_any_text():
    recipe = load(content([router("r", {"yes": "a", "": ""}, "a"), "a"])).nodes["r"]
    assert (recipe.params["input_key"], dict(recipe.params["routes"])) == (("topic",), {"yes": "a", "": ""})


def test_an_invalid_timeout_counts_as_none():
    policy = {"timeout_seconds": 10**400, "max_retries": 1}
    params = load(content(["a"], policy=policy)).nodes["a"].params
    assert (params.get("timeout"), params["attempts"]) == (None, 2)
    for delay in (float("inf"), float("nan"), -1.0):
        recipe = load(content([agent("a", recovery={"max_retries": 1, "retry_delay_seconds": delay})]))
        assert recipe.nodes["a"].params["backoff"] == 0


def test_the_default_model_policy_may_be_a_models_name():
    recipe = load(content([agent("a"), agent("b", model_policy="big")], [("a", "b")], default_model_policy="small"))
    assert [recipe.nodes[name].params["model"] for name in "ab"] == ["small", "big"]


@pytest.mark.parametrize(
    ("seconds", "kept"), [(1, True), (10**9, True), (10**9 + 1, False), (0, False), (-1, False), (None, False)]
)
def test_a_wait_is_longer_than_nothing_and_at_most_30_years(seconds, kept):
    found = seconds if kept else None
    assert node("human", timeout_seconds=seconds).params.get("timeout") == found
    assert node("agent", {"timeout_seconds": seconds}).params.get("timeout") == found
    if seconds is not None:
        delayed = node("agent", recovery={"max_retries": 1, "retry_delay_seconds": seconds})
        assert delayed.params["backoff"] == (found or 0)


@pytest.mark.parametrize(
    ("kind", "more", "reads", "writes"),
    [
        ("agent", {}, (), ("output",)),
        ("agent", {"inputs_map": {"a": "x", "b": "y", "c": "x"}}, ("x", "y"), ("output",)),
        ("agent", {"metadata": {"simulated": [{"p": 1, "q": 2}, {"q": 3, "r": 4}]}}, (), ("p", "q", "r")),
        ("human", {}, (), ("response",)),
        ("router", {}, ("k",), ()),
        ("evaluator", {}, ("reply.text",), ("critique",)),
        ("generative", {}, (), ()),
        ("generative", {"output_schema": {"type": "string"}}, (), ("n",)),
        ("generative", {"output_schema": {"a": "string", "b": "integer"}}, (), ("a", "b")),
    ],
)
def test_each_type_of_node_has_its_reads_and_writes(kind, more, reads, writes):
    custom_node = node(kind, **more)
    assert (custom_node.id, custom_node.kind, custom_node.label, custom_node.place) == ("n", kind, "", PLACE)
    assert (custom_node.reads, custom_node.writes) == (reads, writes)
    rescue = {"behavior": "continue_with_default", "default_output": {"z": 1, **dict.fromkeys(writes)}}
    assert node(kind, recovery=rescue, **more).writes == (*writes, "z")


def test_a_generative_node_has_nothing_but_its_params():
    custom_node = node("generative", {"safety_preamble": "Do no harm."}, "m", allowed_tools=["a", "b"])
    assert {key: value for key, value in custom_node.params.items() if key != "solver"} == {
        "goal": "a poem", "schema": {}, "tools": ("a", "b"), "prompt": "Do no harm.", "model": "m",
    }  # fmt: skip
    assert custom_node.inputs is None
    assert node("generative", model={}).params.keys() == {"goal", "schema", "tools", "solver"}
