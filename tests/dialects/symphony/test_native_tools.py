"""Native tool calls of an agent: as an option, with the same results, errors and repairs as the JSON protocol's."""

from __future__ import annotations

import json

import pytest

import agentnb as nb
from agentnb.clock import FrozenClock
from agentnb.dialects.symphony import AgentConfig, AgentExecutor, LLMResponse
from agentnb.errors import RecipeError
from agentnb.trace import SimulationTrace
from agentnb.world.llm.recorded import RecordedClient
from tests.dialects.symphony.symphony_agents import registry
from tests.world.llm.model_server import serve
from tests.world.llm.protocols import OpenAI, client

__all__ = ["serve"]

NATIVE = {"model": "m-1", "native_tools": True}


def make_answer(*calls, text=""):
    """Return the answer that calls tools: each call is a name and its arguments."""
    return {"content": text, "tool_calls": [
        {"id": f"c-{number}", "name": name, "arguments": arguments} for number, (name, arguments) in enumerate(calls)
    ]}  # fmt: skip


def executor(*answers, tools=("ok", "bad", "throws"), llm=None, native=True, **fields):
    model = NATIVE if native else {"model": "m-1"}
    config = AgentConfig(
        **{"name": "Helper", "task": "Help people", "tools": list(tools), "llm": model, "max_calls": 4, **fields}
    )
    return AgentExecutor(config, llm=list(answers) if llm is None else llm, tools=registry())


def sent(session, number):
    return session.trace.frames.calls.query("kind == 'llm'").iloc[number]["arguments"]


def test_tools_are_offered_and_the_protocol_is_not_reported() -> None:
    session = executor("Fine.").session("t")
    session.run()
    request = sent(session, 0)
    assert [each["name"] for each in request["tools"]] == ["ok", "bad", "throws"]
    assert request["tools"][0]["description"] == "doubles a number"
    assert request["tools"][0]["input_schema"]["properties"] == {"n": {"type": "integer"}}
    assert "json_object" not in request
    assert "native_tools" not in request
    system = request["messages"][0]["content"]
    assert "JSON" not in system
    assert "doubles a number" not in system
    assert "Use a tool" in system


@pytest.mark.parametrize("native", [True, False])
def test_the_request_node_writes_the_declared_keys(native) -> None:
    session = executor("Fine.", llm=None, native=native).session("t")
    session.run()
    writes = session.trace.frames.writes
    for name in ("system_prompt", "request"):
        assert {*writes[writes["node"] == name]["key"]} == {*session.recipe.nodes[name].writes}
    assert ("tools" in session.recipe.nodes["system_prompt"].writes) is native


def test_plain_text_is_the_answer() -> None:
    done = executor("Nothing to do: {").execute_task("t")
    assert (done.success, done.result.response, done.result.tools_executed) == (True, "Nothing to do: {", ())


def test_json_in_an_answer_is_not_a_call_here() -> None:
    done = executor('{"tool_name": "ok", "parameters": {"n": 1}}').execute_task("t")
    assert (done.success, len(done.result.tools_executed)) == (True, 0)


@pytest.mark.parametrize("nothing", ["", "  \n", None])
def test_an_empty_answer_is_not_a_success(nothing) -> None:
    done = executor(nothing).execute_task("t")
    assert not done.success
    assert "neither text nor a tool call" in done.error


def test_the_calls_of_one_answer_are_made_in_order_and_each_is_answered() -> None:
    agent = executor(make_answer(("ok", {"n": 1}), ("bad", {}), ("ok", {"n": 3}), text="Let me see."), "Sold out.")
    session = agent.session("t")
    session.run()
    assert [step.node_id for step in session.trace.steps] == [
        "system_prompt", "request", "llm", "parse", "check", "tool", "next_call", "check", "tool", "next_call",
        "check", "tool", "next_call", "next_round", "request", "llm", "parse", "result",
    ]  # fmt: skip
    _, _, assistant, *tool_messages = sent(session, 1)["messages"]
    assert (assistant["role"], assistant["content"]) == ("assistant", "Let me see.")
    assert [call["id"] for call in assistant["tool_calls"]] == ["c-0", "c-1", "c-2"]
    assert [(each["role"], each["tool_call_id"]) for each in tool_messages] == [("tool", f"c-{n}") for n in range(3)]
    assert [json.loads(each["content"]) for each in tool_messages] == [
        {"tool_name": "ok", "success": True, "result": {"twice": 2}},
        {"tool_name": "bad", "success": False, "result": None, "error": "sold out"},
        {"tool_name": "ok", "success": True, "result": {"twice": 6}},
    ]
    result = session.board["result"]
    assert (result["success"], result["response"], result["usage"]["requests"]) == (False, "Sold out.", 2)
    assert "bad" in result["error"]
    assert session.trace.steps[3].thought == "Let me see."


def test_calls_of_later_answers_with_equal_ids_are_distinguished() -> None:
    session = executor(make_answer(("ok", {"n": 1})), make_answer(("ok", {"n": 2}), ("ok", {"n": 3})), "Done.").session(
        "t"
    )
    session.run()
    messages = [message["content"] for message in sent(session, 2)["messages"] if message["role"] == "tool"]
    assert [json.loads(each)["result"]["twice"] for each in messages] == [2, 4, 6]
    assert session.board["result"]["success"]


@pytest.mark.parametrize(
    ("name", "arguments", "error"),
    [("nobody", {}, "nobody"), ("other", {}, "other"), ("none", {}, "none"), ("ok", {"n": "x"}, "n")],
    ids=["unknown", "not the agent's", "called none", "wrong parameters"],
)
def test_a_forbidden_call_is_reported_to_the_model(name, arguments, error) -> None:
    session = executor(make_answer((name, arguments), ("ok", {"n": 2})), "Sorry.").session("t")
    session.run()
    refused, approved = (json.loads(each["content"]) for each in sent(session, 1)["messages"][-2:])
    assert (refused["success"], approved["success"]) == (False, True)
    assert error in refused["error"]
    assert session.board["result"]["success"] is False
    assert len(session.trace.frames.calls.query("kind == 'tool'")) == 1


def test_with_one_model_call_the_tool_results_are_the_response() -> None:
    done = executor(make_answer(("ok", {"n": 1}), ("ok", {"n": 2})), max_calls=1).execute_task("t")
    assert done.success
    assert done.result.response.splitlines() == [
        'Tool ok executed. Success: true. Result: {"twice": 2}',
        'Tool ok executed. Success: true. Result: {"twice": 4}',
    ]
    assert [each.parameters for each in done.result.tools_executed] == [{"n": 1}, {"n": 2}]


def test_at_max_calls_the_last_calls_are_made_and_the_model_is_not_called_again() -> None:
    session = executor(make_answer(("ok", {"n": 1})), make_answer(("ok", {"n": 2})), max_calls=2).session("t")
    session.run()
    assert session.status == "finished"
    assert session.board["usage"]["requests"] == 2
    assert session.board["result"]["response"] == 'Tool ok executed. Success: true. Result: {"twice": 4}'


@pytest.mark.parametrize(
    "call",
    [
        {"id": "1", "name": "ok", "arguments": '{"n": '},
        {"id": "1", "name": "ok", "arguments": [1]},
        {"id": "1", "arguments": {}},
        {"id": "1", "name": 5, "arguments": {}},
        "ok",
        None,
    ],
    ids=["broken JSON", "a list", "no name", "a name that is not a string", "a text", "nothing"],
)
def test_an_invalid_tool_call_is_an_error(call) -> None:
    done = executor({"content": "", "tool_calls": [call]}).execute_task("t")
    assert not done.success
    assert "is not a tool call" in done.error


def test_a_function_may_answer_in_the_format_of_openai() -> None:
    def model(request):
        if request.messages[-1].role == "tool":
            return LLMResponse(request.messages[-1].content)
        return LLMResponse(None, tool_calls=[
            {"id": "a", "type": "function", "function": {"name": "ok", "arguments": '{"n": 21}'}},
            {"type": "function", "function": {"name": "ok", "arguments": ""}},
        ])  # fmt: skip

    done = executor(llm=model).execute_task("t")
    assert done.success
    assert [each.result for each in done.result.tools_executed] == [{"twice": 42}, {"twice": 0}]


def test_a_stream_keeps_its_tool_calls() -> None:
    class Streams:
        def complete(self, request):
            raise AssertionError("it streams")

        def complete_stream(self, request):
            if request.messages[-1].role == "tool":
                yield "Do"
                yield "ne."
            else:
                yield LLMResponse("Let ")
                yield LLMResponse("me see.", tool_calls=[{"id": "a", "name": "ok", "arguments": {"n": 2}}])

    agent = executor(llm=Streams())
    session = agent.session("t")
    chunks = []
    session.subscribe(lambda token: chunks.append(token.text), to="token")
    session.run()
    assert "".join(chunks) == "Let me see.Done."
    assert session.board["result"]["response"] == "Done."
    assert [tool["result"] for tool in session.board["tools_executed"]] == [{"twice": 4}]


def test_without_a_model_the_simulated_answer_is_text() -> None:
    config = AgentConfig(name="A", tools=["ok"], llm={"native_tools": True})
    session = AgentExecutor(config, tools=registry()).session("t", llm=None)
    session.run()
    assert session.board["result"]["success"]


def test_without_tools_the_option_changes_nothing() -> None:
    session = executor("Hello", tools=()).session("t")
    session.run()
    assert "tools" not in sent(session, 0)
    assert [step.node_id for step in session.trace.steps] == ["system_prompt", "request", "llm", "result"]


def test_a_person_approves_each_call() -> None:
    session = executor(make_answer(("ok", {"n": 1}), ("ok", {"n": 2})), "Done.", require_approval=True).session("t")
    session.run()
    session.approve(session.pending[0].id)
    session.run()
    session.deny(session.pending[0].id, "too much")
    session.run()
    approved, denied = (json.loads(each["content"]) for each in sent(session, 1)["messages"][-2:])
    assert (approved["success"], denied["success"]) == (True, False)
    assert "too much" in denied["error"]


def test_a_skipped_call_is_answered_too() -> None:
    session = executor(make_answer(("throws", {}), ("ok", {"n": 2})), "Done.").session("t")
    session.run(until="tool")
    session.set_next("next_call")
    session.run()
    skipped, approved = (json.loads(each["content"]) for each in sent(session, 1)["messages"][-2:])
    assert skipped == {"tool_name": "throws", "success": False, "result": None, "error": "the tool was not called"}
    assert approved["result"] == {"twice": 4}


def test_going_back_and_forward_again_reaches_the_same_end() -> None:
    session = executor(make_answer(("ok", {"n": 1}), ("bad", {})), make_answer(("ok", {"n": 2})), "Done.").session(
        "t", clock=FrozenClock()
    )
    session.run()
    end, board = session.position, dict(session.board)
    boards = []
    for position in range(end, -1, -1):
        session.goto(position)
        boards.append(dict(session.board))
    for position, before in enumerate(reversed(boards)):
        session.goto(position)
        assert dict(session.board) == before
    assert dict(session.board) == board
    session.goto(5)
    session.run()
    assert dict(session.board) == board
    report = session.replay()
    assert report.ok, report.first_divergence


def test_a_stored_run_can_be_reopened_replayed_and_continued(tmp_path) -> None:
    path = tmp_path / "runs.db"
    agent = executor(make_answer(("ok", {"n": 1}), ("bad", {})), "Done.")
    session = agent.session("t", store=str(path), run_id="r", clock=FrozenClock())
    session.run()
    final_board = dict(session.board)
    session.close()
    seen = nb.open(str(path), "r")
    assert dict(seen.board) == final_board
    seen.close()
    reopened = nb.open(str(path), "r", recipe=agent.recipe)
    assert reopened.replay().ok
    reopened.goto(5)
    reopened.run()
    assert [tool["success"] for tool in reopened.board["tools_executed"]] == [True, False]
    assert reopened.board["conversation"] == final_board["conversation"]
    assert reopened.board["result"]["response"] == "Done."
    reopened.close()


def test_a_run_interrupted_between_its_calls_continues(tmp_path) -> None:
    path = tmp_path / "runs.db"
    agent = executor(make_answer(("ok", {"n": 1}), ("ok", {"n": 2})), "Done.")
    session = agent.session("t", store=str(path), run_id="r")
    session.run(until="next_call")
    session.close()
    reopened = nb.open(str(path), "r", recipe=agent.recipe)
    reopened.run()
    assert [tool["result"] for tool in reopened.board["tools_executed"]] == [{"twice": 2}, {"twice": 4}]
    assert reopened.board["result"]["response"] == "Done."
    reopened.close()


def test_a_paused_answer_can_be_changed_into_another_call() -> None:
    session = executor("No tool needed.", "Done.").session("t")
    session.breakpoints.add(call="llm", side="after", once=True)
    session.run()
    (pending,) = session.pending
    session.change(pending.id, answer={"content": "", "tool_calls": [{"name": "ok", "arguments": {"n": 4}}]})
    session.run()
    assert [tool["result"] for tool in session.board["tools_executed"]] == [{"twice": 8}]
    assert session.board["result"]["response"] == "Done."


def test_secrets_among_the_arguments_are_masked() -> None:
    session = executor(make_answer(("ok", {"password": "hunter2-and-more"})), "Done.").session("t")
    session.run()
    assert "hunter2" not in session.trace.frames.calls.to_json()
    assert "hunter2" not in repr(session.board)


def test_an_agent_in_another_recipe_calls_natively() -> None:
    agent = executor(make_answer(("ok", {"n": 1}), ("ok", {"n": 2})), "Done.")
    recipe = nb.load(_around())
    session = nb.Session(recipe, {"question": "q"}, tools={"clerk": agent})
    session.run()
    assert session.board["reply"] == "Done."
    assert sum(step.kind == "use" for step in session.trace.steps) == 2


def _around():
    import networkx as nx

    desk = nx.DiGraph(name="desk")
    desk.add_node("support", kind="tool", function="clerk", inputs={"task": "question"}, output="reply")
    return desk


# -- through a server ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
def test_an_agent_works_with_the_protocol_of_openai(streams, serve) -> None:
    calls = (("ok", '{"n": 1}'), ("bad", "{}"), ("ok", '{"n": 3}'))
    if streams:
        server = serve(OpenAI.stream_calls(*calls), OpenAI.stream("Sold", " out."))
    else:
        server = serve(OpenAI.calls(*calls), OpenAI.whole("Sold out."))
    session = executor(llm=client(OpenAI, server)).session("t")
    chunks = []
    if streams:
        session.subscribe(lambda token: chunks.append(token.text), to="token")
    session.run()
    first, second = (each.body for each in server.asked)
    assert [tool["function"]["name"] for tool in first["tools"]] == ["ok", "bad", "throws"]
    assert "response_format" not in first
    _, _, assistant, *tool_messages = second["messages"]
    assert [call["function"]["name"] for call in assistant["tool_calls"]] == ["ok", "bad", "ok"]
    assert [each["tool_call_id"] for each in tool_messages] == [call["id"] for call in assistant["tool_calls"]]
    assert [json.loads(each["content"])["success"] for each in tool_messages] == [True, False, True]
    assert session.board["result"]["response"] == "Sold out."
    assert session.board["usage"]["tokens_in"] == 14
    assert session.replay().ok
    assert len(server.asked) == 2


def test_malformed_arguments_from_a_server_are_a_described_failure(serve) -> None:
    done = executor(llm=client(OpenAI, serve(OpenAI.calls(("ok", '{"n": '))))).execute_task("t")
    assert not done.success
    assert "arguments that cannot be parsed" in done.error


def test_the_option_has_two_spellings_and_must_be_a_boolean() -> None:
    recipe = {"name": "A", "task": "t", "tools": ["ok"], "llm": {"model": "m", "nativeTools": True}}
    assert "next_call" in nb.load(recipe).nodes
    assert "next_call" not in nb.load({**recipe, "llm": {"model": "m"}}).nodes
    with pytest.raises(RecipeError):
        nb.load({**recipe, "llm": {"native_tools": "sometimes"}})


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
def test_a_recorded_client_answers_with_the_recorded_calls(strict, streams, serve, tmp_path) -> None:
    calls = (("ok", '{"n": 1}'), ("bad", "{}"))
    server = serve(*([OpenAI.stream_calls(*calls), OpenAI.stream("Done.")] if streams else
                     [OpenAI.calls(*calls, text="Let me see."), OpenAI.whole("Done.")]))  # fmt: skip
    first = executor(llm=client(OpenAI, server)).session("t")
    if streams:
        first.subscribe(lambda token: None, to="token")
    first.run()
    first.trace.to_json(tmp_path / "trace.json")
    for trace in (first.trace, SimulationTrace.read(tmp_path / "trace.json")):
        second = executor(llm=RecordedClient(trace, strict=strict)).session("t")
        second.run()
        assert second.board["conversation"] == first.board["conversation"]
        assert second.board["result"]["response"] == "Done."
        assert second.replay().ok
    assert len(server.asked) == 2


def test_a_strict_recorded_client_notices_a_different_call_or_tool_answer() -> None:
    first = executor(make_answer(("ok", {"n": 1})), "Done.").session("t")
    first.run()
    tools = registry()
    tools.register_tool("ok", lambda given: {"thrice": 3})
    config = AgentConfig(name="Helper", task="Help people", tools=["ok", "bad", "throws"], llm=NATIVE, max_calls=4)
    second = AgentExecutor(config, llm=RecordedClient(first.trace, strict=True), tools=tools).session("t")
    second.run()
    assert "sent a request that differs from the recording" in second.board["result"]["error"]
