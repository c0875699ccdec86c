from __future__ import annotations

import asyncio
import threading

import pytest
import yaml

import agentnb.dialects.agentruntime as front
from agentnb.dialects.agentruntime import (
    AgentDefinition,
    AgentRuntimeError,
    LLMClient,
    NodeExecutionError,
    RetryPolicy,
    build_agent_from_path,
    build_agent_from_yaml,
)
from agentnb.errors import ExecutionError, RecipeError
from agentnb.load import load
from agentnb.secrets import hide
from tests.dialects.agentruntime.agent_files import HEAD, TOOLS, edges, line, text, write

TOOL_NAMES = ("echo", "add", "failing", "raising", "own")
PROMPTS = "prompts: {templates: {ask: {user: '{{ x }}'}}}"
ASKS = "nodes: [{id: say, type: llm, prompt: ask, map: {set: {a: '{{ result.text }}'}}%s}]"


def built(tmp_path, graph, *more, **options):
    (tmp_path / "tools.py").write_text(TOOLS)
    return build_agent_from_yaml(yaml.safe_load(text(graph, *more, **options)), tmp_path)


# -- building -----------------------------------------------------------------------------------------------------


def test_an_agent_is_built_from_its_file_and_run(tmp_path):
    agent = build_agent_from_path(str(write(tmp_path, text("\n".join([line("a", "b"), edges("a-b")])))))
    state = agent.run({"x": 1})
    assert type(state) is dict
    assert state["log"] == ["a", "b"]
    assert [step.node_id for step in agent.trace.steps] == ["a", "b"]


def test_the_returned_state_belongs_to_the_caller(tmp_path):
    agent = built(tmp_path, line("a"))
    agent.run({"x": 1})["log"].append("mine")
    assert agent.run({"x": 1})["log"] == ["a"]


def test_a_dict_without_a_base_path_looks_in_the_working_directory(tmp_path, monkeypatch):
    write(tmp_path, "")
    monkeypatch.chdir(tmp_path)
    graph = "nodes: [{id: call, type: tool, uses: echo, inputs: {text: hello}, map: {set: {a: '{{ result.text }}'}}}]"
    assert build_agent_from_yaml(yaml.safe_load(text(graph))).run({"x": 1})["a"] == "hello"


def test_mistakes_are_a_value_error_with_every_problem():
    with pytest.raises(ValueError, match="R182") as caught:
        build_agent_from_yaml(
            yaml.safe_load(text("nodes: [{id: a, type: tool, uses: gone}, {id: b, type: llm, prompt: other}]"))
        )
    assert isinstance(caught.value, RecipeError)
    assert [problem.code for problem in caught.value.problems if problem.severity == "error"] == ["R182", "R182"]


@pytest.mark.parametrize("content", [None, 5, 2.5, True, "meta: {name: t}", "", [], [{"meta": {}}], {1}, b"meta: {}"])
def test_content_that_is_not_a_mapping_is_a_value_error(content):
    with pytest.raises(ValueError, match="cannot be read as agentruntime") as caught:
        build_agent_from_yaml(content)
    (problem,) = caught.value.problems
    assert problem.code == "R107"
    assert "'graph'" in problem.do


@pytest.mark.parametrize("content", ["", "# a comment", "- a", "[1]", "one text", "5", "null", "true"])
def test_a_file_that_is_not_a_mapping_is_a_value_error(tmp_path, content):
    file = tmp_path / "agent.yaml"
    file.write_text(content)
    with pytest.raises(ValueError, match="cannot be read as agentruntime") as caught:
        build_agent_from_path(file)
    assert caught.value.problems[0].where.startswith(str(file))


OUTSIDE = """
meta: {name: t}
state: {shape: {x: any}}
tools: [{id: ours, kind: python, impl: "%s"}]
graph: {inputs: [x], outputs: [x], nodes: [{id: a, type: tool, uses: ours, map: {set: {x: "{{ result.text }}"}}}]}
"""


def test_tools_from_elsewhere_can_be_allowed_by_the_entry_points(tmp_path):
    beside, own = tmp_path / "beside", tmp_path / "own"
    for folder in (beside, own):
        folder.mkdir()
    (beside / "tools.py").write_text("def run(**given):\n    return {'text': 'from elsewhere'}\n")
    content = OUTSIDE % f"{beside}/tools.py#run"
    file = own / "agent.yaml"
    file.write_text(content)
    for allow in ([str(beside)], str(beside), [beside]):
        assert build_agent_from_path(file, allow=allow).run({"x": 1}) == {"x": "from elsewhere"}
        assert build_agent_from_yaml(yaml.safe_load(content), own, allow=allow).run({"x": 1}) == {"x": "from elsewhere"}
    agent = build_agent_from_path(file)
    assert [problem.code for problem in agent.recipe.check()] == ["R156"]
    with pytest.raises(RecipeError, match="R156"):
        agent.run({"x": 1})
    assert load(build_agent_from_path(file, allow=[beside])).check() == []


def test_run_of_none_reports_missing_inputs(tmp_path):
    agent = built(tmp_path, line("a"))
    with pytest.raises(AgentRuntimeError, match="inputs are missing: x"):
        agent.run(None)
    with pytest.raises(AgentRuntimeError, match="inputs are missing: x"):
        asyncio.run(agent.arun(None))


def nested(count):
    """Return an agent with so many subgraphs inside one another; the innermost is run by a loop."""
    graph = {"inputs": ["x"], "outputs": ["x"]}
    inner = [{"id": "loop", "type": "loop", "body": "n", "max_iterations": 2}, {"id": "n"}]
    levels = [[{"id": "n", "type": "subgraph", "graph": f"g{number}"}] for number in range(count)]
    return {
        "meta": {"name": "t"},
        "state": {"shape": {"x": "any"}},
        "graph": {**graph, "nodes": levels[0]},
        "subgraphs": {f"g{n}": {**graph, "nodes": nodes} for n, nodes in enumerate([*levels[1:], inner])},
    }


def test_subgraphs_may_be_nested_as_deep_as_the_caller_allows():
    agent = build_agent_from_yaml(nested(70))
    assert agent.run({"x": 1}, max_subgraph_depth=70) == {"x": 1}
    with pytest.raises(AgentRuntimeError, match="max_subgraph_depth is 69") as caught:
        agent.run({"x": 1}, max_subgraph_depth=69)
    assert not isinstance(caught.value, NodeExecutionError)


def test_without_a_limit_subgraphs_may_be_nested_8_deep():
    assert build_agent_from_yaml(nested(8)).run({"x": 1}) == {"x": 1}
    with pytest.raises(AgentRuntimeError, match="max_subgraph_depth is 8"):
        build_agent_from_yaml(nested(9)).run({"x": 1})


def test_a_missing_file_is_a_problem(tmp_path):
    with pytest.raises((RecipeError, FileNotFoundError)):
        build_agent_from_path(tmp_path / "gone.yaml")


def test_before_its_first_run_an_agent_has_no_trace(tmp_path):
    assert built(tmp_path, line("a")).trace is None


def test_every_name_of_the_front_door_is_there():
    assert all(getattr(front, name) is not None for name in front.__all__)
    assert AgentDefinition.model_validate(yaml.safe_load(text(line("a")))).meta.name == "t"
    with pytest.raises(AttributeError, match="create_openai"):
        _ = front.create_openai_client


# -- models -------------------------------------------------------------------------------------------------------


def test_a_client_and_a_callable_exclude_each_other(tmp_path):
    agent = built(tmp_path, line("a"))
    with pytest.raises(ValueError, match="llm_client or llm_callable"):
        agent.run({"x": 1}, llm_client=LLMClient(lambda **_: {}), llm_callable=lambda node, prompt: {})


def provided(settings, llm="mine:some"):
    return HEAD.replace("{name: t}", f"{{name: t, defaults: {{llm: '{llm}'}}, providers: {settings}}}")


def test_without_either_the_recipes_provider_is_asked(tmp_path):
    agent = built(tmp_path, ASKS % "", PROMPTS, head=provided("{mine: {type: simulated}}"))
    assert agent.run({"x": 1})["a"] == "Mocked output from say"
    assert agent.session({"x": 1}).run().frames.calls["kind"].tolist() == ["llm"]
    assert agent.run({"x": 1}, llm_callable=lambda node, prompt: "own")["a"] == "own"


@pytest.mark.parametrize(
    ("settings", "llm", "told"),
    [
        ("{other: {type: simulated}}", "mine:some", "X417"),
        ("{mine: {type: gone}}", "mine:some", "X330"),
        ("{mine: {type: openai_compatible, api_key: '{{env.AGENT_TEST_KEY}}'}}", "mine:some", "X333.*AGENT_TEST_KEY"),
    ],
)
def test_a_provider_that_cannot_be_asked_is_reported(tmp_path, monkeypatch, settings, llm, told):
    monkeypatch.delenv("AGENT_TEST_KEY", raising=False)
    with pytest.raises(AgentRuntimeError, match=f"(?s){told}"):
        built(tmp_path, ASKS % "", PROMPTS, head=provided(settings, llm)).run({"x": 1})


def test_an_error_of_the_provider_is_reported_before_missing_inputs(tmp_path):
    with pytest.raises(AgentRuntimeError, match="X330"):
        built(tmp_path, line("a"), head=provided("{mine: {type: gone}}")).run({})


def test_a_missing_model_is_reported_at_the_first_call_and_cannot_be_caught(tmp_path):
    graph = ASKS % ", on_error: {resume: true}"
    with pytest.raises(AgentRuntimeError, match=r"X417.*'say'") as caught:
        built(tmp_path, graph, PROMPTS).run({"x": 1})
    assert not isinstance(caught.value, NodeExecutionError)
    never = graph.replace("nodes: [", "nodes: [{id: r, cases: [{when: false, to: say}]}, ")
    assert built(tmp_path, never, PROMPTS).run({"x": 1})["a"] is None


def test_a_failing_model_is_retried_as_its_node_declares(tmp_path):
    requests = []

    def ask(node, prompt):
        requests.append(prompt)
        return {"error": "busy"} if len(requests) < 3 else {"text": "fine"}

    graph = ASKS % ", retry: {max_attempts: 3, backoff: 0}"
    assert built(tmp_path, graph, PROMPTS).run({"x": 1}, llm_callable=ask)["a"] == "fine"
    requests.clear()
    with pytest.raises(NodeExecutionError, match="busy"):
        built(tmp_path, graph.replace("3", "2"), PROMPTS).run({"x": 1}, llm_callable=ask)


def test_a_client_retries_by_itself_only_on_request():
    answers = [ValueError("no"), {"error": "busy"}, {"text": "fine"}]

    def call(**_):
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert LLMClient(call).generate("node", {}, retry=RetryPolicy(3)) == {"text": "fine"}
    answers[:] = [{"error": "busy"}]
    assert LLMClient(call).generate("node", {}) == {"error": "busy"}
    answers[:] = [ValueError("first"), ValueError("last")]
    with pytest.raises(ValueError, match="last"):
        LLMClient(call).generate("node", {}, retry=RetryPolicy(2))


def test_a_policy_has_two_names_for_its_seconds():
    assert RetryPolicy(2, 0.5).backoff == RetryPolicy(2, backoff=0.5).backoff_seconds == 0.5
    assert (RetryPolicy().max_attempts, RetryPolicy().backoff) == (1, 0.0)


# -- what is raised -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("node", "said"),
    [
        ("{id: a, type: tool, uses: failing}", ["'a'", "type=tool", "tool=failing", "error={", "come back tomorrow"]),
        (
            "{id: a, type: tool, uses: raising}",
            ["'a'", "type=tool", "tool=raising", "exception=ValueError", "it broke"],
        ),
        ("{id: a, type: llm, prompt: ask}", ["'a'", "type=llm", "prompt=ask", "exception=OSError", "no line"]),
        ("{id: a, type: noop, map: {set: {b: '{{ x.y.z }}'}}}", ["'a'", "type=noop", "exception=", "x.y"]),
        ("{id: a, name: Ada, type: tool, uses: raising}", ["'a'", "tool=raising"]),
    ],
)
def test_a_failed_node_names_itself_its_type_its_tool_or_prompt_and_what_failed(tmp_path, node, said):
    def ask(node, prompt):
        raise OSError("no line")

    with pytest.raises(NodeExecutionError) as caught:
        built(tmp_path, f"nodes: [{node}]", PROMPTS).run({"x": 1}, llm_callable=ask)
    assert all(word in str(caught.value) for word in said), str(caught.value)
    assert caught.value.__cause__ is not None


def test_its_message_is_short_and_contains_no_secret(tmp_path):
    graph = "nodes: [{id: a, type: tool, uses: own}]"
    tool = "  - {id: own, kind: python, impl: 'tools.py#echo', config: {api_key: sk-4711-abc}}\ngraph:\n"
    content = yaml.safe_load(text(graph).replace("graph:\n", tool, 1))

    def refuses(api_key):
        hide(api_key)
        raise ValueError(f"{api_key} is refused")

    with pytest.raises(NodeExecutionError, match=r"\*\*\*\* is refused") as caught:
        build_agent_from_yaml(content, tmp_path).run({"x": 1}, tool_overrides=dict.fromkeys(TOOL_NAMES, refuses))
    assert "sk-4711" not in str(caught.value)
    below = "nodes: [{id: a, type: noop, map: {set: {x.deep: 1}}}]"
    with pytest.raises(NodeExecutionError) as caught:
        built(tmp_path, below).run({"x": 1})
    assert "\n" not in caught.value.problems[0].what


def test_the_errors_have_common_base_classes():
    assert issubclass(NodeExecutionError, ExecutionError)
    assert issubclass(AgentRuntimeError, ExecutionError)


def test_errors_of_the_engine_raised_by_a_tool_are_not_caught(tmp_path):
    def ends():
        raise AgentRuntimeError("enough")

    graph = "nodes: [{id: a, type: tool, uses: echo, on_error: {resume: true}}]"
    with pytest.raises(AgentRuntimeError, match="enough") as caught:
        built(tmp_path, graph).run({"x": 1}, tool_overrides={"echo": ends})
    assert not isinstance(caught.value, NodeExecutionError)


def yields(**_given):
    yield 1


@pytest.mark.parametrize("override", [5, None, yields])
def test_an_override_that_is_not_a_tool_is_reported(tmp_path, override):
    graph = "nodes: [{id: a, type: tool, uses: echo}]"
    with pytest.raises(RecipeError) as caught:
        built(tmp_path, graph).run({"x": 1}, tool_overrides={"echo": override})
    (problem,) = caught.value.problems
    assert (problem.code, problem.where) == ("R161", "tools={'echo': ...}")
    assert "tools.py" not in str(problem)


def test_an_unwritten_output_is_reported_and_none_is_a_value(tmp_path):
    with pytest.raises(AgentRuntimeError, match=r"X421.*gone"):
        built(tmp_path, line("a"), outputs="[log, gone]").run({"x": 1})
    assert built(tmp_path, line("a"), outputs="[log, a]").run({"x": 1})["a"] is None


def test_missing_inputs_are_listed(tmp_path):
    with pytest.raises(AgentRuntimeError, match="inputs are missing: x, n"):
        built(tmp_path, line("a"), inputs="[x, a, n]").run({"a": 1})


def test_a_tool_that_hangs_ends_at_its_timeout(tmp_path):
    gate = threading.Event()
    graph = "nodes: [{id: a, type: tool, uses: echo, timeout: {seconds: 0.02}}]"
    try:
        with pytest.raises(NodeExecutionError, match=r"TimeoutError.*0\.02"):
            built(tmp_path, graph).run({"x": 1}, tool_overrides={"echo": lambda: gate.wait(None)})
    finally:
        gate.set()


# -- beside -------------------------------------------------------------------------------------------------------


def test_async_code_awaits_it(tmp_path):
    agent = built(tmp_path, ASKS % "", PROMPTS)
    state = asyncio.run(agent.arun({"x": 1}, llm_callable=lambda node, prompt: {"text": "hi"}))
    assert state["a"] == "hi"
    with pytest.raises(ValueError, match="not both"):
        asyncio.run(agent.arun({"x": 1}, llm_callable=len, llm_client=len))
    with pytest.raises(TypeError):
        asyncio.run(agent.arun({"x": 1}, strange=1))


def test_run_works_while_a_loop_is_running(tmp_path):
    agent = built(tmp_path, line("a"))

    async def inside():
        return agent.run({"x": 1})

    assert asyncio.run(inside())["log"] == ["a"]


def test_it_is_stepped_as_a_session(tmp_path):
    session = built(tmp_path, "\n".join([line("a", "b"), edges("a-b")])).session({"x": 1})
    assert session.step().node_id == "a"
    assert session.back().board["log"] == []
    assert session.run().outcome["outputs"] == {"log": ["a", "b"]}


def test_two_concurrent_runs_are_independent(tmp_path):
    agent = built(tmp_path, "nodes: [{id: a, type: tool, uses: echo, map: {set: {a: '{{ result.n }} {{ x }}'}}}]")
    both, results = threading.Barrier(2, timeout=20), {}

    def one(number):
        def tool():
            both.wait()
            return {"n": number}

        results[number] = agent.run({"x": number}, tool_overrides={"echo": tool})["a"]

    threads = [threading.Thread(target=one, args=(number,)) for number in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {1: "1 1", 2: "2 2"}


def test_a_loop_that_never_ends_by_its_rule_is_an_error():
    agent = build_agent_from_yaml({
        "meta": {"name": "t"}, "state": {"shape": {"n": "int"}},
        "graph": {"inputs": ["n"], "outputs": ["n"], "nodes": [
            {"id": "l", "type": "loop", "body": "b", "until": False, "max_iterations": 2}, {"id": "b"}]},
    })  # fmt: skip
    with pytest.raises(AgentRuntimeError, match="2 times"):
        agent.run({"n": 1})


def test_a_provider_that_is_not_listed_is_named_when_a_model_is_asked(tmp_path):
    head = HEAD.replace("{name: t}", "{name: t, defaults: {llm: 'opnai:gpt'}, providers: {openai: {}}}")
    with pytest.raises(AgentRuntimeError, match=r"X417(.|\n)*'opnai', which is not listed"):
        built(tmp_path, ASKS % "", PROMPTS, head=head).run({"x": 1})


@pytest.mark.parametrize(
    ("policy", "outcomes", "ended", "waits"),
    [
        (None, ["fine"], "fine", []),
        (None, [OSError("a")], OSError, []),
        (RetryPolicy(3, 0.5), ["fine"], "fine", []),
        (RetryPolicy(3, 0.5), [OSError("a"), "fine"], "fine", [0.5]),
        (RetryPolicy(3, 0.5), [{"error": "a"}, {"error": ""}], {"error": ""}, [0.5]),
        (RetryPolicy(3, 0.5), [{"error": "a"}, OSError("b"), {"error": "c"}], {"error": "c"}, [0.5, 0.5]),
        (RetryPolicy(3, 0.5), [{"error": "a"}, {"error": "b"}, OSError("c")], OSError, [0.5, 0.5]),
        (RetryPolicy(2), [OSError("a"), OSError("b")], OSError, [0.0]),
        (RetryPolicy(2, backoff=0.25), [{"error": 1}, ["no mapping"]], ["no mapping"], [0.25]),
    ],
)
def test_a_client_makes_the_attempts_of_its_policy(monkeypatch, policy, outcomes, ended, waits):
    requests, waited, left = [], [], list(outcomes)
    monkeypatch.setattr("time.sleep", waited.append)

    def call(*, node, prompt, timeout):
        requests.append((node, prompt, timeout))
        outcome = left.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    prompt = {"user": "?"}
    if ended is OSError:
        with pytest.raises(OSError, match=str(outcomes[-1])):
            LLMClient(call).generate("n", prompt, retry=policy, timeout=7.0)
    else:
        assert LLMClient(call).generate("n", prompt, retry=policy, timeout=7.0) == ended
    assert (requests, waited, left) == ([("n", prompt, 7.0)] * len(outcomes), waits, [])
    assert all(sent is not prompt for _, sent, _ in requests)


def test_async_code_may_pass_each_option(tmp_path):
    graph = "nodes: [{id: call, type: tool, uses: echo, map: {set: {a: '{{ result.n }}'}}}]"
    agent = built(tmp_path, graph)
    state = asyncio.run(agent.arun({"x": 1}, tool_overrides={"echo": lambda: {"n": 5}}, max_steps=1))
    assert (state["a"], len(agent.trace.steps)) == (5, 1)
    deep = build_agent_from_yaml(nested(2))
    with pytest.raises(AgentRuntimeError, match="max_subgraph_depth is 1"):
        asyncio.run(deep.arun({"x": 1}, max_subgraph_depth=1))
    with pytest.raises(AgentRuntimeError, match="max_steps is 2"):
        asyncio.run(deep.arun({"x": 1}, max_steps=2))
    client = LLMClient(lambda **_: {"text": "hi"})
    assert asyncio.run(built(tmp_path, ASKS % "", PROMPTS).arun({"x": 1}, llm_client=client))["a"] == "hi"


def test_an_exhausted_run_tells_its_limit_and_where_it_stopped(tmp_path):
    chain = "\n".join([line("a", "b", "c"), edges("a-b", "b-c")])
    with pytest.raises(AgentRuntimeError) as caught:
        built(tmp_path, chain).run({"x": 1}, max_steps=2)
    (problem,) = caught.value.problems
    assert (problem.code, problem.what) == ("X420", "the run of 't' has used up max_steps")
    assert (problem.where, problem.why) == ("after step 2", "max_steps is 2; next would be 'c'")


def test_a_failure_names_the_nodes_around_it(tmp_path):
    graph = "nodes: [{id: outer, type: subgraph, graph: one}, {id: breaks, type: noop}]"
    inner = """
    subgraphs:
      one:
        inputs: [x]
        outputs: [a]
        nodes: [{id: again, body: breaks, max_iterations: 2}, {id: breaks, uses: raising}]
    """
    with pytest.raises(NodeExecutionError) as caught:
        built(tmp_path, graph, inner).run({"x": 1})
    (problem,) = caught.value.problems
    assert problem.what.startswith("node 'breaks' in 'again' in 'outer' failed (type=tool, tool=raising): exception=")
    assert isinstance(caught.value.__cause__, ValueError)


def test_the_state_of_a_run_with_a_memory_has_its_window(tmp_path):
    graph = "nodes: [{id: a, type: noop, map: {merge: {messages: [one, two, three]}}}]"
    head = HEAD.replace("c: any}", "c: any, messages: any}")
    state = built(tmp_path, graph, "memory: {enabled: true, k: 2}", head=head).run({"x": 1})
    assert state["messages_window"] == ["two", "three"]
