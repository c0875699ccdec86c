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


def test_it_sends_what_is_on_the_board() -> None:
    session = executor("hello", tools=()).session("go")
    session.step(2)
    session.edit({"request": {"messages": [{"role": "user", "content": "other"}], "model": "m"}})
    session.step()
    sent = session.trace.frames.calls.arguments.iloc[0]
    assert sent == {"messages": [{"role": "user", "content": "other"}], "model": "m"}
    assert (session.board["answer"], session.board["model"]) == ("hello", "m")


def test_usage_is_what_the_model_says() -> None:
    session = ask_agent(executor(LLMResponse("x", "m", Usage(3, 4)), tools=()))
    assert session.board["usage"] == {"requests": 1, "tokens_in": 3, "tokens_out": 4, "cost_usd": None}


def test_a_failure_is_the_steps_and_says_why_on_the_board() -> None:
    def broken(_request: Any) -> Any:
        raise ConnectionError("no line")

    session = ask_agent(AgentExecutor(AgentConfig(name="A"), llm=broken))
    assert session.trace.steps[-1].status == "error"
    assert session.board["failure"] == {"node": "llm", "type": "ConnectionError", "message": "no line"}
    assert session.current == "result"


def test_a_time_out_of_the_config_is_the_calls() -> None:
    import asyncio

    async def slow(_request: Any) -> str:
        await asyncio.sleep(60)
        return "late"

    session = ask_agent(AgentExecutor(AgentConfig(name="A", timeout=0.05), llm=slow))
    assert "longer than 0.05 s" in session.board["failure"]["message"]
    assert session.current == "result"


def test_without_a_model_the_answer_is_simulated_and_counts_as_one() -> None:
    from agentnb import Session, load

    session = Session(load({"name": "A", "task": "t", "tools": ["x"]}), {"task": "go"})
    session.step(3)
    assert session.board["answer"]["tool_name"] == "none"
    assert session.trace.frames.calls.kind.tolist() == ["agent"]


def test_a_mapping_is_an_answer_too() -> None:
    session = AgentExecutor(AgentConfig(name="A", tools=["x"]), llm=lambda _: {"tool_name": "none", "response": "y"})
    assert session.execute_task("go").result.response == "y"


def test_pieces_of_an_answer_are_heard_as_they_come() -> None:
    class Streams:
        def complete(self, request: Any) -> LLMResponse:
            for piece in ("he", "llo"):
                request.on_token(piece)
            return LLMResponse("hello", "m")

    heard: list[str] = []
    session = AgentExecutor(AgentConfig(name="A"), llm=Streams()).session("go")
    session.subscribe(lambda token: heard.append(token.text), to="token")
    session.run()
    assert heard == ["he", "llo"]


def test_two_rounds_add_up() -> None:
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


def test_a_fence_is_noted() -> None:
    session = executor(f"```json\n{json.dumps(call('ok'))}\n```").session("go")
    session.step(4)
    assert "fence" in session.trace.steps[-1].thought


def test_an_answer_that_a_person_has_edited_is_what_is_read() -> None:
    session = executor("words").session("go")
    session.step(3)
    session.edit({"answer": json.dumps({"tool_name": "none", "response": "fixed"})})
    session.run()
    assert session.board["result"]["response"] == "fixed"


def test_what_cannot_be_read_is_the_steps_failure_and_the_run_continues() -> None:
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
def test_what_may_not_be_called_does_not_go_out(answer: dict[str, Any], told: str) -> None:
    session = executor(answer).session("go")
    session.step(5)
    assert session.trace.steps[-1].status == "error"
    (tried,) = session.board["tools_executed"]
    assert told in tried["error"]
    assert not tried["success"]
    assert session.current == "result"
    assert "tool" not in session.trace.frames.calls.kind.tolist()


def test_every_wrong_parameter_is_reported_with_its_path() -> None:
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
    (tried,) = agent.execute_task("go").result.tools_executed
    assert {each["path"] for each in tried.details} == {
        "many.inputParams.a", "many.inputParams.b", "many.inputParams.list[0].x",
    }  # fmt: skip


def test_a_person_is_asked_only_where_the_call_could_go_out() -> None:
    session = executor(call("other"), require_approval=True).session("go")
    session.run()
    assert (session.status, session.pending) == ("finished", ())


def test_a_scripted_verdict_is_one() -> None:
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


def test_what_is_approved_with_other_parameters_is_called_with_those() -> None:
    session = asked_for(7)
    session.run()
    calls = session.trace.frames.calls.set_index("kind")
    assert (calls.arguments["approval"], calls.arguments["tool"]) == ({"n": 1}, {"n": 7})
    assert session.board["tools_executed"][0]["parameters"] == {"n": 7}
    assert session.trace.frames.interventions["action"].tolist() == ["change", "approve"]
    assert session.replay().ok


def test_parameters_that_do_not_fit_are_not_called_though_a_person_has_given_them() -> None:
    session = asked_for("x")
    session.run()
    assert "Input validation failed" in session.board["tools_executed"][0]["error"]
    assert "tool" not in session.trace.frames.calls.kind.tolist()
    assert session.replay().ok


def test_a_verdict_may_bring_its_own_parameters() -> None:
    answers = [{"approved": True, "arguments": {"n": 5}}]
    session = executor(call("ok", n=1), require_approval=True).session("go", answers=answers)
    session.run()
    assert session.board["tools_executed"][0]["parameters"] == {"n": 5}


def composed(**fields: object) -> str:
    session = executor("x", **fields).session("go")
    session.step()
    return str(session.board["system_prompt"])


def test_the_model_is_told_who_it_is_and_which_tools_it_has() -> None:
    text = composed()
    for part in ("Helper", "helps", "Help people", "doubles a number", '"n"', "tool_name"):
        assert part in text
    assert "of another agent" not in text


def test_without_tools_there_is_no_word_of_json() -> None:
    assert "tool_name" not in composed(tools=())


def test_directives_come_once_whatever_else_there_is() -> None:
    for fields in ({}, {"system_prompt": "Own."}, {"tools": ()}):
        assert composed(directives="Never shout.", **fields).count("Never shout.") == 1


def test_what_is_not_registered_is_reported_as_odd() -> None:
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
def test_whatever_a_tool_returns_is_its_result(answer: Any, result: Any) -> None:
    session = used(lambda _given: answer)
    (tried,) = session.board["tools_executed"]
    assert (tried["success"], tried["result"]) == (True, result)
    assert tried["metrics"]["duration"] >= 0


def test_a_tool_is_given_its_parameters_as_one_dict_of_its_own() -> None:
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


def test_a_failure_is_the_steps_and_its_result_stays() -> None:
    session = used(lambda _given: ToolResult(success=False, error="sold out", details=[{"path": "x"}]))
    step = next(step for step in session.trace.steps if step.kind == "use")
    assert step.status == "error"
    (tried,) = session.board["tools_executed"]
    assert (tried["error"], tried["details"]) == ("sold out", [{"path": "x"}])
    assert session.trace.frames.calls.query("kind == 'tool'").error.iloc[0] == "ToolFailed: sold out"


def test_a_time_out_is_a_failed_result() -> None:
    import threading

    never = threading.Event()
    session = used(lambda _given: never.wait(60), timeout=0.05)
    never.set()
    assert "longer than" in session.board["tools_executed"][0]["error"]


def test_a_secret_parameter_is_not_shown() -> None:
    agent = executor(call("ok", n=1, api_key="sk-verysecret1"))
    agent.execute_task("go")
    assert "sk-verysecret1" not in agent.trace.frames.calls.to_string()


def test_a_person_may_answer_in_a_tools_place_with_any_value() -> None:
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


def test_what_would_end_a_whole_run_is_the_agents_alone() -> None:
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


def test_a_message_offers_none_of_them_as_a_kind() -> None:
    misspelt = nx.DiGraph(name="misspelt")
    misspelt.add_node("a", kind="promt")
    with pytest.raises(RecipeError) as raised:
        Session(load(misspelt))
    (problem,) = [each for each in raised.value.problems if each.code == "R117"]
    offered = problem.why.split(": ")[1].split(", ")
    assert {"agent", "llm", "tool"} <= set(offered)
    assert not {"prompt", "chat", "parse", "pick", "use", "missing", "runnable"} & set(offered)
    assert "'prompt'" not in problem.do
