"""A task from its words to its result: the truth table of the protocol, and that nothing is ever raised."""

import asyncio
import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

import agentnb as nb
from agentnb.dialects.symphony import AgentConfig, AgentExecutor, LLMHandler, LLMResponse, ToolRegistry
from agentnb.dialects.symphony.api import make_result
from agentnb.errors import with_article
from tests.dialects.symphony.symphony_agents import call, executor, registry

NONE = {"tool_name": "none", "response": "bye"}


def test_a_tool_that_works_is_a_success() -> None:
    done = executor(call("ok", n=4)).execute_task("double 4")
    assert done.success
    assert done.error is None
    assert done.result.response == 'Tool ok executed. Success: true. Result: {"twice": 8}'
    assert done.result.reasoning.startswith("Processed 1 tool actions")
    (tool,) = done.result.tools_executed
    assert (tool.name, tool.parameters, tool.success, tool.result, tool.error) == (
        "ok",
        {"n": 4},
        True,
        {"twice": 8},
        None,
    )
    assert tool.metrics.end_time >= tool.metrics.start_time


@pytest.mark.parametrize("name", ["tool_name", "toolName"])
def test_both_keys_for_the_name_of_a_tool_are_accepted(name: str) -> None:
    assert executor({name: "ok", "parameters": {}}).execute_task("go").success


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (call("bad"), "sold out"),
        (call("throws"), "no such thing"),
        (call("ok", n="four"), "Input validation failed"),
        (call("missing"), "not found"),
        (call("other"), "not allowed"),
        (call("None"), "not found"),
    ],
)
def test_a_failed_or_forbidden_tool_is_a_failed_result(answer: dict[str, Any], told: str) -> None:
    done = executor(answer).execute_task("go")
    (tool,) = done.result.tools_executed
    assert not done.success
    assert not tool.success
    assert told in tool.error
    assert told in done.error
    assert answer["tool_name"] in done.error
    assert f"Tool {answer['tool_name']} executed. Success: false. Error: " in done.result.response
    assert done.metrics.tool_calls == 1


@pytest.mark.parametrize("parameters", [{}, []])
def test_empty_parameters_are_passed(parameters: Any) -> None:
    assert executor({"tool_name": "ok", "parameters": parameters}).execute_task("go").success


def test_none_is_a_decision_and_a_success() -> None:
    done = executor({"tool_name": "none", "response": "Hello"}).execute_task("hi")
    assert (done.success, done.result.response, done.result.tools_executed) == (True, "Hello", ())


def test_none_without_a_response_is_a_success_with_a_note() -> None:
    done = executor({"tool_name": "none"}).execute_task("hi")
    assert done.success
    assert done.result.response


@pytest.mark.parametrize(
    "answer",
    ['{"answer": 42}', "[1]", "null", "plain words", '{"tool_name": "ok"}', '{"tool_name": "ok", "parameters": null}'],
)
def test_an_answer_in_another_form_fails_with_the_raw_answer(answer: str) -> None:
    done = executor(answer).execute_task("go")
    assert (done.success, done.result.response, done.result.tools_executed) == (False, answer, ())
    assert done.error


@pytest.mark.parametrize("answer", ["", None])
def test_an_empty_answer_is_reported(answer: Any) -> None:
    done = executor(LLMResponse(answer, "m")).execute_task("go")
    assert not done.success
    assert "empty" in done.result.response


def test_a_code_fence_is_accepted_and_noted() -> None:
    done = executor(f"```json\n{json.dumps(call('ok', n=1))}\n```").execute_task("go")
    assert done.success
    assert "fence" in done.result.reasoning


@pytest.mark.parametrize("answer", ["Hello", '{"tool_name": "ok", "parameters": {}}', "", None])
def test_without_tools_the_answer_is_the_result_in_any_form(answer: Any) -> None:
    agent = executor(LLMResponse(answer, "m"), tools=())
    done = agent.execute_task("go")
    assert (done.success, done.result.response) == (True, answer or "")
    assert [step.node_id for step in agent.trace.steps] == ["system_prompt", "request", "llm", "result"]


def test_a_failing_model_is_a_result_and_not_an_exception() -> None:
    def broken(_request: Any) -> Any:
        raise ConnectionError("the line is dead")

    done = AgentExecutor(AgentConfig(name="A", tools=["ok"]), llm=broken, tools=registry()).execute_task("go")
    assert not done.success
    assert "the line is dead" in done.error
    assert done.result.fallback
    assert "A" in done.result.response
    assert "go" in done.result.response


def test_without_a_model_the_error_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(LLMHandler, "_shared", None)
    done = AgentExecutor(AgentConfig(name="A"), tools=ToolRegistry()).execute_task("go")
    assert not done.success
    for words in ("there is no model provider", "none is registered", "register_provider", "OPENAI_API_KEY"):
        assert words in done.error


def test_an_unknown_provider_is_reported_with_those_that_are_known() -> None:
    handler = LLMHandler()
    handler.register_provider("local", lambda _request: "hello")
    for word, advice in (("lokal", "did you mean 'local'?"), ("quite another", "register_provider")):
        done = AgentExecutor(AgentConfig(name="A", llm={"provider": word}), llm=handler).execute_task("go")
        assert not done.success
        for words in (f"there is no provider {word!r}", "the known ones are: local", advice):
            assert words in done.error


@pytest.mark.parametrize("task", [None, 3, ["go"]])
def test_a_task_that_is_not_a_string_is_a_failed_result(task: Any) -> None:
    done = executor("x").execute_task(task)
    assert not done.success
    assert done.error.startswith(f"input 'task' is {with_article(type(task).__name__)}")
    assert "declares it as string" in done.error
    assert "pass a string" in done.error


def test_a_byte_order_mark_is_not_part_of_an_answer() -> None:
    done = executor("\ufeff" + json.dumps(call("ok", n=2))).execute_task("double")
    assert (done.success, done.result.tools_executed[0].result) == (True, {"twice": 4})


def test_the_async_method_gives_the_same_result() -> None:
    agent = executor(call("ok", n=2))
    done = asyncio.run(agent.aexecute_task("double"))
    assert done.success
    assert done.result.tools_executed[0].result == {"twice": 4}


def test_a_task_can_run_inside_a_running_loop() -> None:
    async def main() -> bool:
        return executor(call("ok", n=2)).execute_task("double").success

    assert asyncio.run(main())


def test_more_calls_let_the_agent_continue_after_a_tool() -> None:
    agent = executor(call("ok", n=2), call("ok", n=3), {"tool_name": "none", "response": "done"}, max_calls=3)
    done = agent.execute_task("double twice")
    assert (done.success, done.result.response) == (True, "done")
    assert [tool.result["twice"] for tool in done.result.tools_executed] == [4, 6]
    assert done.metrics.llm_usage.requests == 3
    third = agent.trace.frames.calls.query("kind == 'llm'").arguments.iloc[2]["messages"]
    assert [message["role"] for message in third] == ["system", "user", "assistant", "user", "assistant", "user"]
    assert '{"twice": 6}' in third[-1]["content"]


def test_the_last_call_may_still_use_a_tool() -> None:
    done = executor(call("ok", n=2), call("ok", n=3), max_calls=2).execute_task("go")
    assert done.success
    assert len(done.result.tools_executed) == 2
    assert done.result.response.startswith("Tool ok executed. Success: true")


def test_any_failed_tool_makes_the_task_a_failure() -> None:
    done = executor(call("bad"), {"tool_name": "none", "response": "sorry"}, max_calls=2).execute_task("go")
    assert (done.success, done.result.response) == (False, "sorry")
    assert "sold out" in done.error


def test_a_failure_counts_although_a_later_tool_works() -> None:
    done = executor(call("bad"), call("ok", n=2), call("throws"), max_calls=3).execute_task("go")
    assert [tool.success for tool in done.result.tools_executed] == [False, True, False]
    assert not done.success
    assert done.error == "Tool 'bad' failed: sold out; Tool 'throws' failed: LookupError: no such thing"
    done = executor(call("bad"), call("ok", n=2), max_calls=2).execute_task("go")
    assert (done.success, done.error) == (False, "Tool 'bad' failed: sold out")
    assert done.result.response == 'Tool ok executed. Success: true. Result: {"twice": 4}'


def test_every_part_of_a_result_is_an_attribute_and_a_key() -> None:
    done = executor(call("ok", n=1)).execute_task("go")
    assert done["success"] is done.success
    assert done["result"]["tools_executed"][0]["name"] == "ok"
    assert done["metrics"]["duration"] == done.metrics.duration
    assert dict(done).keys() == {"success", "result", "error", "metrics"}
    assert json.loads(json.dumps(done.to_dict(), default=str))["result"]["response"] == done.result.response


def test_tokens_and_money_add_up() -> None:
    answers = [
        LLMResponse(json.dumps(call("ok", n=1)), "m", {"prompt_tokens": 10, "completion_tokens": 5}),
        LLMResponse('{"tool_name": "none", "response": "x"}', "m", {"prompt_tokens": 20, "completion_tokens": 1}),
    ]
    agent = executor(*answers, max_calls=2, llm="m")
    done = agent.execute_task("go")
    assert (done.metrics.llm_usage.tokens_in, done.metrics.llm_usage.tokens_out) == (30, 6)
    assert done.result.model == "m"
    calls = agent.trace.frames.calls
    assert calls.kind.tolist() == ["llm", "tool", "llm"]
    assert calls.tokens_in.dropna().tolist() == [10, 20]


def test_two_executors_do_not_share_their_registries() -> None:
    first, second = registry(), registry()
    first.unregister_tool("ok")
    config = AgentConfig(name="A", tools=["ok"])
    answers = [json.dumps(call("ok", n=1))]
    assert not AgentExecutor(config, llm=answers, tools=first).execute_task("go").success
    assert AgentExecutor(config, llm=answers, tools=second).execute_task("go").success


def test_an_agent_with_the_original_field_names_is_the_same() -> None:
    config = {"name": "A", "task": "t", "tools": ["ok"], "systemPrompt": "You are A.", "maxCalls": 2,
              "llm": {"model": "m", "maxTokens": 7}}  # fmt: skip
    agent = AgentExecutor(config, llm=['{"toolName": "none", "response": "x"}'], tools=registry())
    assert agent.config.max_calls == 2
    agent.execute_task("go")
    sent = agent.trace.frames.calls.arguments.iloc[0]
    assert sent["messages"][0]["content"].startswith("You are A.")
    assert (sent["model"], sent["max_tokens"], sent["json_object"]) == ("m", 7, True)


def test_json_is_requested_only_with_tools() -> None:
    agent = executor("hello", tools=())
    agent.execute_task("go")
    assert "json_object" not in agent.trace.frames.calls.arguments.iloc[0]


def test_a_callable_receives_the_request_of_symphony() -> None:
    requests = []

    def model(request: Any) -> LLMResponse:
        requests.append(request)
        return LLMResponse('{"tool_name": "none", "response": "x"}', "m")

    config = AgentConfig(name="A", tools=["ok"], llm={"model": "m", "temperature": 0.1})
    AgentExecutor(config, llm=model, tools=registry()).execute_task("the task")
    (request,) = requests
    assert [message.role for message in request.messages] == ["system", "user"]
    assert request.messages[1].content == "the task"
    assert request.expects_json_response
    assert request.llm_config == {"model": "m", "temperature": 0.1}


def test_all_errors_of_a_config_are_reported_at_once() -> None:
    with pytest.raises(nb.RecipeError) as caught:
        AgentExecutor({"name": "", "max_calls": 0, "task": 3})
    assert {problem.code for problem in caught.value.problems} == {"R114"}
    assert len(caught.value.problems) == 3


class Unprintable:
    def __repr__(self) -> str:
        raise ValueError("no words for it")


class Undecided:
    """A value that is neither true nor false, and equals nothing."""

    __hash__ = None  # type: ignore[assignment]  # as an array

    def __bool__(self) -> bool:
        raise ValueError("it has no truth value")

    def __eq__(self, other: object) -> bool:
        raise ValueError("it cannot be compared")


@pytest.mark.filterwarnings("ignore:.*is on the board by reference")
@pytest.mark.parametrize("max_calls", [1, 2])
@pytest.mark.parametrize(
    "result",
    [
        *({(1, 2): 3, "a": 1}, {1, 2}, b"\xff", float("nan"), Unprintable(), iter([1]), Undecided(), [Undecided()]),
        *(np.array([1, 2]), np.array([]), np.array([Undecided(), None], dtype=object), {"a": np.eye(2)}),
        *(pd.Series([1, 2]), pd.DataFrame({"a": [1]}), pd.DataFrame({"a": [Undecided()]}), pd.NA),
        *({"error": None, "rows": pd.Series([1])}, {"success": True, "result": np.array([0, 1])}),
        *(10**5000, {"a": [-(10**5000), {10**5000: (1, 10**5000)}]}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_any_result_of_a_tool_can_be_reported(result: Any, max_calls: int) -> None:
    agent = executor(call("odd"), *[NONE] * (max_calls - 1), tools=("odd",), max_calls=max_calls)
    agent.tools.register_tool("odd", lambda given: result)
    done = agent.execute_task("go")
    assert done.success
    assert done.result.response.startswith("Tool odd executed. Success: true. Result: ") is (max_calls == 1)
    (tool,) = done.to_dict()["result"]["tools_executed"]
    assert (tool["name"], tool["success"]) == ("odd", True)


@pytest.mark.parametrize(
    "answer", [lambda: 5, lambda: [1], lambda: {"a": Unprintable()}, object, Unprintable, lambda: "x" * 2_000_000]
)
@pytest.mark.filterwarnings("ignore:.*is on the board by reference")
def test_any_answer_of_a_model_is_a_result(answer: Any) -> None:
    for tools, success in ((["ok"], False), ([], True)):
        agent = AgentExecutor(AgentConfig(name="A", tools=tools), llm=lambda _: answer(), tools=registry())
        assert agent.execute_task("go").success is success


@pytest.mark.parametrize("error", [SystemExit(3), TimeoutError("late"), asyncio.CancelledError(), MemoryError()])
def test_any_error_inside_is_a_result(error: BaseException) -> None:
    def broken(_given: Any) -> Any:
        raise error

    model = AgentExecutor(AgentConfig(name="A", tools=["ok"]), llm=broken, tools=registry())
    tool = executor({"tool_name": "odd", "parameters": {}}, tools=("odd",))
    tool.tools.register_tool("odd", broken)
    for agent in (model, tool):
        for done in (agent.execute_task("go"), asyncio.run(agent.aexecute_task("go"))):
            assert not done.success
            assert done.error


def test_a_person_may_interrupt_a_task() -> None:
    def interrupted(_request: Any) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        AgentExecutor(AgentConfig(name="A"), llm=interrupted).execute_task("go")


def test_cancelling_an_awaited_task_ends_it() -> None:
    async def main() -> None:
        started = asyncio.Event()

        async def slow(_request: Any) -> str:
            started.set()
            await asyncio.Event().wait()
            return "never"

        going = asyncio.create_task(AgentExecutor(AgentConfig(name="A"), llm=slow).aexecute_task("go"))
        await started.wait()
        going.cancel()
        with pytest.raises(asyncio.CancelledError):
            await going

    asyncio.run(main())


@pytest.mark.parametrize("task", [None, b"x", {}, Unprintable()])
@pytest.mark.filterwarnings("ignore:.*is on the board by reference")
def test_any_value_as_a_task_gives_a_result(task: Any) -> None:
    done = executor({"tool_name": "none", "response": "x"}).execute_task(task)
    assert not done.success
    assert "task" in done.error


def test_empty_strings_are_not_parameters() -> None:
    done = executor({"tool_name": "ok", "parameters": ""}).execute_task("go")
    assert not done.success
    assert "Expected object but received string" in done.error


def test_two_concurrent_tasks_keep_their_own_settings() -> None:
    requests: list[Any] = []

    async def main() -> list[bool]:
        both = asyncio.Event()

        async def model(request: Any) -> str:
            requests.append((request.model, request.temperature, request.messages[-1].content))
            if len(requests) == 2:
                both.set()
            await both.wait()
            return "fine"

        handler = LLMHandler()
        handler.register_provider("one", model)
        agents = [AgentExecutor(AgentConfig(name="A", llm={"model": f"m{n}", "temperature": n / 10}), llm=handler)
                  for n in (1, 2)]  # fmt: skip
        done = await asyncio.gather(*(agent.aexecute_task(f"task {n}") for n, agent in enumerate(agents, 1)))
        return [each.success for each in done]

    assert asyncio.run(main()) == [True, True]
    assert sorted(requests) == [("m1", 0.1, "task 1"), ("m2", 0.2, "task 2")]


def test_the_shared_registry_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ToolRegistry, "_shared", registry())
    answers = [json.dumps(call("ok", n=1))]
    assert AgentExecutor(AgentConfig(name="A", tools=["ok"]), llm=answers).execute_task("go").success


@pytest.mark.parametrize("tools", [5, "ok", object()])
def test_invalid_tools_are_a_problem(tools: Any) -> None:
    with pytest.raises(nb.RecipeError, match="the tools are a"):
        AgentExecutor(AgentConfig(name="A"), llm=["x"], tools=tools)


def test_a_task_that_cannot_begin_has_an_apology_as_its_result() -> None:
    done = executor(call("ok")).execute_task(5)
    assert (done.success, done.result.fallback, done.result.agent) == (False, True, "Helper")
    assert done.result.response == "Sorry: Helper could not work on the task 5."
    assert (done.result.tools_executed, done.metrics.tool_calls) == ((), 0)
    assert not executor(NONE).execute_task("hi").result.fallback


def test_the_result_of_a_task_that_has_not_finished_is_an_apology() -> None:
    session = nb.Session(nb.load(AgentConfig(name="A")), {"task": "wait"}, llm=["done"])
    session.step()
    result = make_result(session)
    assert (result.success, result.result.fallback, result.result.agent) == (False, True, "A")
    assert result.result.response == "Sorry: A could not finish the task 'wait'."
    session.run()
    assert (make_result(session).success, make_result(session).result.fallback) == (True, False)
