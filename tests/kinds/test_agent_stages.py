from __future__ import annotations

import json
from typing import Any

import networkx as nx
import pytest

from agentnb.dialects.symphony import AgentConfig, AgentExecutor, LLMResponse, ToolConfig, ToolResult
from agentnb.errors import AgentRuntimeError, Problem, RecipeError
from agentnb.load import load
from agentnb.session import Session
from agentnb.world.llm.base import Usage
from tests.dialects.symphony.symphony_agents import call, executor


def ask_agent(agent: AgentExecutor, **options: Any) -> Any:
    session = agent.session("go", **options)
    session.step(3)
    return session


def test_the_request_is_built_from_the_board() -> None:
    session = executor("hello", tools=()).session("go")
    session.step(2)
    session.edit({"request": {"messages": [{"role": "user", "content": "other"}], "model": "m"}})
    session.step()
    sent = session.trace.frames.calls.arguments.iloc[0]
    assert sent == {"messages": [{"role": "user", "content": "other"}], "model": "m"}
    assert (session.board["answer"], session.board["model"]) == ("hello", "m")


def test_usage_is_what_the_model_reports() -> None:
    session = ask_agent(executor(LLMResponse("x", "m", Usage(3, 4)), tools=()))
    assert session.board["usage"] == {"requests": 1, "tokens_in": 3, "tokens_out": 4, "cost_usd": None}


def test_a_failure_fails_the_step_and_its_reason_is_on_the_board() -> None:
    def broken(_request: Any) -> Any:
        raise ConnectionError("no line")

    session = ask_agent(AgentExecutor(AgentConfig(name="A"), llm=broken))
    assert session.trace.steps[-1].status == "error"
    assert session.board["failure"] == {"node": "llm", "type": "ConnectionError", "message": "no line"}
    assert session.current == "result"


def test_the_timeout_of_the_config_applies_to_the_call() -> None:
    import asyncio

    async def slow(_request: Any) -> str:
        await asyncio.sleep(60)
        return "late"

    session = ask_agent(AgentExecutor(AgentConfig(name="A", timeout=0.05), llm=slow))
    assert "longer than 0.05 s" in session.board["failure"]["message"]
    assert session.current == "result"


def test_a_simulated_answer_counts_as_a_call() -> None:
    from agentnb import Session, load

    session = Session(load({"name": "A", "task": "t", "tools": ["x"]}), {"task": "go"})
    session.step(3)
    assert session.board["answer"]["tool_name"] == "none"
    assert session.trace.frames.calls.kind.tolist() == ["agent"]


def test_a_mapping_is_accepted_as_an_answer() -> None:
    session = AgentExecutor(AgentConfig(name="A", tools=["x"]), llm=lambda _: {"tool_name": "none", "response": "y"})
    assert session.execute_task("go").result.response == "y"


def test_chunks_of_an_answer_reach_listeners_as_they_arrive() -> None:
    class Streams:
        def complete(self, request: Any) -> LLMResponse:
            for piece in ("he", "llo"):
                request.on_token(piece)
            return LLMResponse("hello", "m")

    chunks: list[str] = []
    session = AgentExecutor(AgentConfig(name="A"), llm=Streams()).session("go")
    session.subscribe(lambda token: chunks.append(token.text), to="token")
    session.run()
    assert chunks == ["he", "llo"]


def test_usage_of_two_model_calls_is_added_up() -> None:
    response = [
        LLMResponse(json.dumps(call("ok", n=1)), "m", Usage(1, 2)),
        LLMResponse('{"tool_name": "none"}', "m", Usage(10, 20)),
    ]
    session = executor(*response, max_calls=2).session("go")
    session.run()
    assert session.board["usage"] == {"requests": 2, "tokens_in": 11, "tokens_out": 22, "cost_usd": None}


def test_a_decision_is_on_the_board() -> None:
    session = executor(call("ok", n=1)).session("go")
    session.step(4)
    assert session.board["decision"]["kind"] == "tool"
    assert session.trace.steps[-1].observation["tool_name"] == "ok"
    assert (session.trace.steps[-1].thought, session.current) == (None, "check")


def test_a_code_fence_is_noted() -> None:
    session = executor(f"```json\n{json.dumps(call('ok'))}\n```").session("go")
    session.step(4)
    assert "fence" in session.trace.steps[-1].thought


def test_an_edited_answer_is_parsed() -> None:
    session = executor("words").session("go")
    session.step(3)
    session.edit({"answer": json.dumps({"tool_name": "none", "response": "fixed"})})
    session.run()
    assert session.board["result"]["response"] == "fixed"


def test_an_unreadable_answer_fails_the_step_and_the_run_continues() -> None:
    session = executor("words").session("go")
    session.step(4)
    assert session.trace.steps[-1].status == "error"
    assert session.board["failure"]["node"] == "parse"
    assert "decision" not in session.board
    assert session.current == "result"


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (call("nobody"), "not found"),
        (call("other"), "not allowed"),
        (call("ok", n="x"), "Input validation failed"),
        ({"tool_name": "ok", "parameters": [1]}, "object"),
        ({"tool_name": "ok", "parameters": "n=1"}, "object"),
    ],
)
def test_a_forbidden_tool_is_not_called(answer: dict[str, Any], told: str) -> None:
    session = executor(answer).session("go")
    session.step(5)
    assert session.trace.steps[-1].status == "error"
    (result,) = session.board["tools_executed"]
    assert told in result["error"]
    assert not result["success"]
    assert session.current == "result"
    assert "tool" not in session.trace.frames.calls.kind.tolist()


def test_every_invalid_parameter_is_reported_with_its_path() -> None:
    agent = executor({"tool_name": "many", "parameters": {"a": 1, "list": [{"x": "y"}]}}, tools=("many",))
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": "string"},
            "list": {"type": "array", "items": {"type": "object", "properties": {"x": {"type": "integer"}}}},
        },
        "required": ["b"],
    }
    agent.tools.register_tool("many", {"handler": lambda given: given, "inputSchema": schema})
    (result,) = agent.execute_task("go").result.tools_executed
    assert {each["path"] for each in result.details} == {
        "many.inputParams.a", "many.inputParams.b", "many.inputParams.list[0].x",
    }  # fmt: skip


def test_a_person_is_asked_only_for_valid_calls() -> None:
    session = executor(call("other"), require_approval=True).session("go")
    session.run()
    assert (session.status, session.pending) == ("finished", ())


def test_a_scripted_verdict_counts_as_a_verdict() -> None:
    session = executor(call("ok", n=1), require_approval=True).session("go", answers=[True])
    session.run()
    assert session.board["result"]["success"]
    assert session.trace.frames.calls.kind.tolist() == ["llm", "approval", "tool"]


def asked_for(n):
    """A session whose model wants to call `ok` with n=1, and which a person approves with another n."""
    session = executor(call("ok", n=1), require_approval=True).session("go")
    session.run()
    (waits,) = session.pending
    session.change(waits.id, arguments={"n": n})
    session.approve(waits.id, by="ann")
    return session


def test_a_call_approved_with_edited_parameters_uses_them() -> None:
    session = asked_for(7)
    session.run()
    calls = session.trace.frames.calls.set_index("kind")
    assert (calls.arguments["approval"], calls.arguments["tool"]) == ({"n": 1}, {"n": 7})
    assert session.board["tools_executed"][0]["parameters"] == {"n": 7}
    assert session.trace.frames.interventions["action"].tolist() == ["change", "approve"]
    assert session.replay().ok


def test_invalid_parameters_from_a_person_are_rejected() -> None:
    session = asked_for("x")
    session.run()
    assert "Input validation failed" in session.board["tools_executed"][0]["error"]
    assert "tool" not in session.trace.frames.calls.kind.tolist()
    assert session.replay().ok


def test_a_verdict_may_contain_parameters() -> None:
    answers = [{"approved": True, "arguments": {"n": 5}}]
    session = executor(call("ok", n=1), require_approval=True).session("go", answers=answers)
    session.run()
    assert session.board["tools_executed"][0]["parameters"] == {"n": 5}


def composed(**fields: object) -> str:
    session = executor("x", **fields).session("go")
    session.step()
    return str(session.board["system_prompt"])


def test_the_prompt_contains_the_role_and_the_tools() -> None:
    text = composed()
    for part in ("Helper", "helps", "Help people", "doubles a number", '"n"', "tool_name"):
        assert part in text
    assert "of another agent" not in text


def test_without_tools_the_prompt_does_not_mention_json() -> None:
    assert "tool_name" not in composed(tools=())


def test_directives_occur_once() -> None:
    for fields in ({}, {"system_prompt": "Own."}, {"tools": ()}):
        assert composed(directives="Never shout.", **fields).count("Never shout.") == 1


def test_an_unregistered_tool_is_a_warning() -> None:
    session = executor("x", tools=("nobody",)).session("go")
    session.step()
    assert session.trace.steps[0].thought == "odd: no tool is registered as 'nobody'"
    assert "nobody" in session.board["system_prompt"]


def used(handler: Any, **words: Any) -> Any:
    agent = executor(call("it", n=1), tools=("it",))
    agent.tools.register_tool("it", ToolConfig("it", "", handler, **words))
    session = agent.session("go")
    session.run()
    return session


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        ({"a": 1}, {"a": 1}),
        ("x", "x"),
        (None, None),
        (ToolResult(success=True, result=5), 5),
        ({"success": True, "result": [1]}, [1]),
    ],
)
def test_any_returned_value_is_the_result_of_a_tool(answer: Any, result: Any) -> None:
    session = used(lambda _given: answer)
    (tool_result,) = session.board["tools_executed"]
    assert (tool_result["success"], tool_result["result"]) == (True, result)
    assert tool_result["metrics"]["duration"] >= 0


def test_a_tool_receives_its_parameters_as_a_separate_dict() -> None:
    inputs: list[Any] = []

    def handler(parameters: dict[str, Any]) -> None:
        inputs.append(dict(parameters))
        parameters["n"] = 99

    session = used(handler)
    assert inputs == [{"n": 1}]
    assert session.board["tools_executed"][0]["parameters"] == {"n": 1}


def test_an_async_tool_is_awaited() -> None:
    async def handler(given: dict[str, Any]) -> int:
        return int(given["n"]) + 1

    assert used(handler).board["tools_executed"][0]["result"] == 2


def test_a_failure_fails_the_step_and_its_result_remains() -> None:
    session = used(lambda _given: ToolResult(success=False, error="sold out", details=[{"path": "x"}]))
    step = next(step for step in session.trace.steps if step.kind == "use")
    assert step.status == "error"
    (result,) = session.board["tools_executed"]
    assert (result["error"], result["details"]) == ("sold out", [{"path": "x"}])
    assert session.trace.frames.calls.query("kind == 'tool'").error.iloc[0] == "ToolFailed: sold out"


def test_a_timeout_is_a_failed_result() -> None:
    import threading

    never = threading.Event()
    session = used(lambda _given: never.wait(60), timeout=0.05)
    never.set()
    assert "longer than" in session.board["tools_executed"][0]["error"]


def test_a_secret_parameter_is_not_shown() -> None:
    agent = executor(call("ok", n=1, api_key="sk-verysecret1"))
    agent.execute_task("go")
    assert "sk-verysecret1" not in agent.trace.frames.calls.to_string()


def test_a_person_may_answer_for_a_tool_with_any_value() -> None:
    agent = executor(call("ok", n=1))
    session = agent.session("go")
    session.step(5)
    session.step_into()
    (held,) = session.pending
    session.change(held.id, answer=7)
    session.run()
    assert session.board["tools_executed"][0]["result"] == 7
    assert session.board["result"]["success"]
    assert session.replay(strict="reads").ok


def test_an_error_that_would_end_a_run_ends_the_agent_alone() -> None:
    def broken(_request: Any) -> Any:
        raise AgentRuntimeError(Problem("X332", "there is no key", "the model", "none is set", "set one"))

    agent = AgentExecutor(AgentConfig(name="A"), llm=broken)
    done = agent.execute_task("go")
    assert agent._session is not None
    assert agent._session.status == "finished"
    assert "there is no key" in str(done.error)


def test_a_secret_in_a_failure_is_hidden() -> None:
    from agentnb.secrets import hide

    hide("sk-verysecret2")

    def broken(_request: Any) -> Any:
        raise ConnectionError("refused sk-verysecret2")

    done = AgentExecutor(AgentConfig(name="A"), llm=broken).execute_task("go")
    assert "refused" in str(done.error)
    assert "sk-verysecret2" not in str(done.to_dict())


def test_messages_do_not_offer_these_kinds() -> None:
    misspelled = nx.DiGraph(name="misspelled")
    misspelled.add_node("a", kind="promt")
    with pytest.raises(RecipeError) as raised:
        Session(load(misspelled))
    (problem,) = [each for each in raised.value.problems if each.code == "R117"]
    offered = problem.why.split(": ")[1].split(", ")
    assert {"agent", "llm", "tool"} <= set(offered)
    assert not {"prompt", "chat", "parse", "pick", "use", "missing", "runnable"} & set(offered)
    assert "'prompt'" not in problem.do
