"""Native tool calls of each vendor's protocol, through its SDK: whole and streamed, several, broken, unhandled."""

from __future__ import annotations

import json
import re

import networkx as nx
import pytest

from agentnb.world.llm.base import LLMError, LLMMessage, LLMRequest, LLMResponse, ToolCall, ToolDefinition, Usage
from agentnb.world.llm.vendor import name_sent
from tests.session.small_sessions import session
from tests.world.llm.model_server import of_events, of_json
from tests.world.llm.protocols import PROTOCOLS, Anthropic, Gemini, OpenAI, ask, client, request

each = pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda protocol: protocol.name)
both = pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])

SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}
SEARCH = ToolDefinition("search", "Search the web.", SCHEMA)
CLOCK = ToolDefinition("clock")
CALLS = (
    ("search", json.dumps({"q": "rain in Köln", "n": [1, {"a": None}]})),
    ("clock", "{}"),
    ("search", '{"q": "snow"}'),
)


def asked(*messages, streams=False, tools=(SEARCH, CLOCK), **rest):
    chunks = []
    return chunks, request(*messages, tools=tools, on_token=chunks.append if streams else None, **rest)


def answer(protocol, streams, *calls, **rest):
    return (protocol.stream_calls if streams else protocol.calls)(*calls, **rest)


@each
@both
def test_several_calls_in_one_answer_keep_their_order(protocol, streams, serve):
    server = serve(answer(protocol, streams, *CALLS, text="Let me see."))
    chunks, prepared = asked(streams=streams)
    actual = ask(client(protocol, server), prepared)
    assert [(call.name, dict(call.arguments)) for call in actual.tool_calls] == [
        (name, json.loads(arguments)) for name, arguments in CALLS
    ]
    assert len({call.id for call in actual.tool_calls}) == 3
    assert all(call.id for call in actual.tool_calls)
    assert (actual.content, "".join(chunks)) == ("Let me see.", "Let me see." if streams else "")
    assert actual.usage == Usage(7, 3)
    assert actual.finish_reason in {"tool_calls", "tool_use", "STOP"}


@each
@both
def test_a_call_without_text_is_an_answer(protocol, streams, serve):
    actual = ask(client(protocol, serve(answer(protocol, streams, CALLS[1]))), asked(streams=streams)[1])
    assert (actual.content, [call.name for call in actual.tool_calls]) == ("", ["clock"])


def test_openai_is_sent_tools_calls_and_results(serve):
    server = serve(OpenAI.whole())
    ask(client(OpenAI, server), conversation())
    body = server.asked[0].body
    assert body["tools"][0] == {
        "type": "function",
        "function": {"name": "search", "description": "Search the web.", "parameters": SCHEMA},
    }
    assert body["tools"][1]["function"]["parameters"] == {"type": "object", "properties": {}}
    _, assistant, one, two = body["messages"]
    assert (assistant["role"], assistant["content"]) == ("assistant", None)
    assert [(call["id"], call["function"]["name"], json.loads(call["function"]["arguments"])) for call in
            assistant["tool_calls"]] == [("t-1", "search", {"q": "rain"}), ("t-2", "clock", {})]  # fmt: skip
    assert one == {"role": "tool", "tool_call_id": "t-1", "content": "wet"}
    assert two == {"role": "tool", "tool_call_id": "t-2", "content": "noon"}


def test_anthropic_is_sent_tools_calls_and_results(serve):
    server = serve(Anthropic.whole())
    ask(client(Anthropic, server), conversation())
    body = server.asked[0].body
    assert body["tools"][0] == {"name": "search", "description": "Search the web.", "input_schema": SCHEMA}
    assert "tool_choice" not in body
    _, assistant, back = body["messages"]
    assert assistant == {"role": "assistant", "content": [
        {"type": "tool_use", "id": "t-1", "name": "search", "input": {"q": "rain"}},
        {"type": "tool_use", "id": "t-2", "name": "clock", "input": {}},
    ]}  # fmt: skip
    assert back == {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "t-1", "content": "wet"},
        {"type": "tool_result", "tool_use_id": "t-2", "content": "noon"},
    ]}  # fmt: skip


def test_gemini_is_sent_tools_calls_and_results(serve):
    server = serve(Gemini.whole())
    ask(client(Gemini, server), conversation())
    body = server.asked[0].body
    declared = body["tools"][0]["functionDeclarations"]
    assert [each["name"] for each in declared] == ["search", "clock"]
    assert declared[0]["parameters_json_schema"] == SCHEMA
    _, assistant, back = body["contents"]
    assert [part["functionCall"]["name"] for part in assistant["parts"]] == ["search", "clock"]
    assert assistant["parts"][0]["functionCall"]["args"] == {"q": "rain"}
    assert [part["functionResponse"] for part in back["parts"]] == [
        {"name": "search", "response": {"result": "wet"}},
        {"name": "clock", "response": {"result": "noon"}},
    ]


def test_gemini_is_sent_the_signature_of_a_call_again(serve):
    signed = Gemini._called([("clock", "{}")], None, "STOP")
    signed["candidates"][0]["content"]["parts"][0]["thoughtSignature"] = "c2lnbmVk"
    server = serve(of_json(signed), Gemini.whole())
    llm = client(Gemini, server)
    (call,) = ask(llm, asked()[1]).tool_calls
    assert LLMMessage.of(LLMMessage("assistant", "", (call,)).to_dict()).tool_calls == (call,)
    ask(llm, LLMRequest((LLMMessage("user", "Hi"), LLMMessage("assistant", "", (call,))), tools=(CLOCK,)))
    assert server.asked[1].body["contents"][1]["parts"][0]["thoughtSignature"] == "c2lnbmVk"


def conversation():
    calls = (ToolCall("t-1", "search", {"q": "rain"}), ToolCall("t-2", "clock"))
    messages = (
        LLMMessage("user", "Hi"),
        LLMMessage("assistant", "", calls),
        LLMMessage("tool", "wet", tool_call_id="t-1"),
        LLMMessage("tool", "noon", tool_call_id="t-2"),
    )
    message_request = LLMRequest(messages, node="n", tools=(SEARCH, CLOCK))
    arguments = {"messages": [each.to_dict() for each in messages], "tools": [SEARCH.to_dict(), CLOCK.to_dict()]}
    assert LLMRequest.of(arguments, node="n") == message_request
    return message_request


@both
@pytest.mark.parametrize(
    "broken",
    [
        '{"q": ',
        "[1]",
        "null",
        '"q"',
        "{'q': 1}",
        "[" * 20_000,
        '{"q": NaN}',
        '{"q": "\\ud800"}',
        f'{{"q": {"9" * 5000}}}',
    ],
)
def test_invalid_arguments_are_an_error_with_usage(streams, broken, serve):
    llm = client(OpenAI, serve(answer(OpenAI, streams, ("search", broken), finish="length")))
    with pytest.raises(LLMError, match=r"X365.*'search'(.|\n)*'length'") as caught:
        ask(llm, asked(streams=streams)[1])
    assert (caught.value.is_retryable, caught.value.usage) == (True, Usage(7, 3))


def test_incomplete_arguments_in_a_stream_of_anthropic_are_an_error(serve):
    server = serve(Anthropic.stream_calls(("search", '{"q": "ra'), finish="max_tokens"))
    with pytest.raises(LLMError, match=r"X365(.|\n)*'max_tokens'"):
        ask(client(Anthropic, server), asked(streams=True)[1])


@pytest.mark.parametrize("finish", ["length", "content_filter"])
@both
def test_a_call_of_openai_without_its_arguments_is_an_error_if_the_answer_breaks_off(streams, finish, serve):
    cut = answer(OpenAI, streams, ("clock", "{}"), ("search", ""), finish=finish)
    with pytest.raises(LLMError, match=rf"X365.*'search'(.|\n)*break off; it ended with '{finish}'"):
        ask(client(OpenAI, serve(cut)), asked(streams=streams)[1])
    whole = answer(OpenAI, streams, ("clock", ""), ("search", '{"q": "rain"}'), finish=finish)
    called = ask(client(OpenAI, serve(whole)), asked(streams=streams)[1]).tool_calls
    assert [dict(call.arguments) for call in called] == [{}, {"q": "rain"}]


@pytest.mark.parametrize("finish", ["max_tokens", "refusal"])
def test_a_call_of_anthropic_that_breaks_off_is_an_error(finish, serve):
    # The server completes the JSON of arguments that break off; a stream shows where they do.
    for cut, streams in [
        (Anthropic.calls(("search", "{}"), finish=finish), False),
        (Anthropic.calls(("search", '{"q": "ra"}'), finish=finish), False),
        (Anthropic.stream_calls(("search", ""), finish=finish), True),
    ]:
        with pytest.raises(LLMError, match=rf"X365.*'search'(.|\n)*'{finish}'"):
            ask(client(Anthropic, serve(cut)), asked(streams=streams)[1])


@pytest.mark.parametrize(
    ("protocol", "lost"),
    [
        (OpenAI, OpenAI.calls(text="Let me see.")),
        (OpenAI, OpenAI.calls(text="Let me see.", finish="function_call")),
        (Anthropic, Anthropic.whole("Let me see.", stop_reason="tool_use")),
        (Gemini, Gemini.whole("Let me see.", reason="MALFORMED_FUNCTION_CALL")),
        (Gemini, Gemini.whole("Let me see.", reason="UNEXPECTED_TOOL_CALL")),
    ],
)
def test_a_call_that_is_missing_beside_text_is_an_error(protocol, lost, serve):
    with pytest.raises(LLMError, match=r"X365.*the call is missing") as caught:
        ask(client(protocol, serve(lost)), asked()[1])
    assert (caught.value.is_retryable, caught.value.usage) == (True, Usage(7, 3))


@pytest.mark.parametrize("index", [{}, {"index": None}, {"index": 0}])
@pytest.mark.parametrize("arguments", ["{}", ""])
def test_calls_of_a_stream_with_the_same_index_differ_by_their_ids(index, arguments, serve):
    head = {"id": "c-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    deltas = [
        {"tool_calls": [{**index, "id": "a", "type": "function", "function": {"name": "clock", "arguments": ""}}]},
        {
            "tool_calls": [{**index, "id": "new", "function": {"arguments": arguments}}]
        },  # of the same call, without name
        {"tool_calls": [{**index, "id": "b", "type": "function", "function": {"name": "search", "arguments": ""}}]},
        {"tool_calls": [{**index, "function": {"arguments": '{"q": '}}]},
        {"tool_calls": [{**index, "function": {"arguments": '"rain"}'}}]},
    ]
    rows = [{**head, "choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    rows.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
    reply = ask(client(OpenAI, serve(of_events(*rows, end="data: [DONE]\n\n"))), asked(streams=True)[1])
    assert [(call.name, dict(call.arguments)) for call in reply.tool_calls] == [
        ("clock", {}),
        ("search", {"q": "rain"}),
    ]


EMPTY = {
    "openai": [OpenAI.whole(None), OpenAI.whole(""), OpenAI.whole("  \n"), OpenAI.calls()],
    "anthropic": [Anthropic.whole(content=[]), Anthropic.whole(""),
                  Anthropic.whole(content=[], stop_reason="max_tokens")],
    "gemini": [Gemini.whole(""), Gemini.whole("", reason="MAX_TOKENS", thoughts=9)],
}  # fmt: skip


@pytest.mark.parametrize(
    ("protocol", "empty"), [(protocol, empty) for protocol in PROTOCOLS for empty in EMPTY[protocol.name]]
)
def test_an_empty_answer_is_an_error_with_usage(protocol, empty, serve):
    with pytest.raises(LLMError, match="X364") as caught:
        ask(client(protocol, serve(empty)))
    assert caught.value.usage is not None
    assert caught.value.is_retryable


@each
def test_an_empty_stream_is_an_error_with_usage(protocol, serve):
    with pytest.raises(LLMError, match="X364"):
        ask(client(protocol, serve(protocol.stream(""))), asked(streams=True, tools=())[1])


def test_a_filtered_answer_is_a_refusal(serve):
    filtered = OpenAI.calls(finish="content_filter")
    with pytest.raises(LLMError, match=r"X344.*content_filter"):
        ask(client(OpenAI, serve(filtered)))
    with pytest.raises(LLMError, match=r"X344.*MALFORMED_FUNCTION_CALL"):
        ask(client(Gemini, serve(Gemini.whole("", reason="MALFORMED_FUNCTION_CALL"))), asked()[1])


def test_the_older_form_of_a_call_is_known(serve):
    called = {"function_call": {"name": "clock", "arguments": "{}"}}
    actual = ask(client(OpenAI, serve(OpenAI.whole(None, **called))), asked()[1])
    assert [(call.name, bool(call.id)) for call in actual.tool_calls] == [("clock", True)]


@each
@both
def test_a_call_that_nobody_handles_fails_the_node(protocol, streams, serve):
    graph = nx.DiGraph(name="talk")
    graph.add_node("one", kind="agent", prompt="Be short.", inputs={"q": "q"}, output="a")
    for text in (None, "Let me see."):
        run = session(graph, {"q": "why"}, llm=client(protocol, serve(answer(protocol, streams, CALLS[0], text=text))))
        if streams:
            run.subscribe(lambda _: None, to="token")
        run.run()
        assert (run.status, "X363" in str(run.error) or "'search'" in str(run.error)) == ("failed", True)
        row = run.trace.frames.calls.iloc[0]
        assert "X363" in row["error"]
        assert row["tokens_out"] == 3


def test_a_custom_client_whose_calls_nobody_handles_fails_too():
    graph = nx.DiGraph(name="talk")
    graph.add_node("one", kind="agent", prompt="Be short.", output="a")
    run = session(graph, llm=lambda request: LLMResponse("", tool_calls=(ToolCall("1", "search"),)))
    run.run()
    assert run.status == "failed"
    assert "X363" in run.trace.frames.calls["error"].iloc[0]


def test_a_response_with_calls_survives_recording():
    call = ToolCall("t", "search", {"q": "rain"})
    response = LLMResponse("Well.", tool_calls=(call,))
    recorded = response.recorded_value
    assert recorded == {"content": "Well.", "tool_calls": [{"id": "t", "name": "search", "arguments": {"q": "rain"}}]}
    assert LLMResponse.from_record(recorded, {"tools": [SEARCH.to_dict()]}).tool_calls == (call,)
    assert (
        LLMResponse.from_record(recorded, {}).content == recorded
    )  # nothing was offered: it is a value like any other
    assert LLMResponse("Well.").recorded_value == "Well."


@pytest.mark.parametrize(
    "call",
    ["search", None, {}, {"id": "1"}, {"name": ""}, {"name": "search", "arguments": "[1]"}, 5,
     {"name": "search", "arguments": '{"q": '}, ToolCall("1", "search", [1]), ToolCall("1", None)],
    ids=repr,
)  # fmt: skip
def test_an_invalid_tool_call_is_a_problem(call):
    for make_invalid in (lambda: LLMResponse("", tool_calls=[call]),
                 lambda: LLMMessage.of({"role": "assistant", "content": "", "tool_calls": [call]}),
                 lambda: LLMResponse.from_record({"tool_calls": [call]}, {"tools": [SEARCH]})):  # fmt: skip
        with pytest.raises(LLMError, match="X366"):
            make_invalid()


def test_calls_may_be_mappings_in_the_format_of_openai_and_without_id():
    response = LLMResponse("", tool_calls=[
        {"name": "clock"},
        {"id": "x", "type": "function", "function": {"name": "search", "arguments": '{"q": "rain"}'}},
        ToolCall("y", "clock"),
    ]).tool_calls  # fmt: skip
    assert response == (ToolCall("call_1", "clock"), ToolCall("x", "search", {"q": "rain"}), ToolCall("y", "clock"))


@each
@both
def test_a_name_that_vendors_reject_is_replaced(protocol, streams, serve):
    names = ["math.add", "math add", "größer", "a" * 65, "fine-1_A"]
    sent = [name_sent(name) for name in names]
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) for name in sent)
    assert (len(set(sent)), sent[-1]) == (5, "fine-1_A")
    server = serve(answer(protocol, streams, *((name, "{}") for name in sent)))
    _, prepared = asked(
        ("user", "Hi"), ("assistant", "", (ToolCall("t-9", "math.add"),)), ("tool", "5", (), "t-9"),
        tools=tuple(map(ToolDefinition, names)), streams=streams,
    )  # fmt: skip
    assert [call.name for call in ask(client(protocol, server), prepared).tool_calls] == names
    body = json.dumps(server.asked[0].body)
    assert "math.add" not in body
    assert body.count(f'"{sent[0]}"') >= 2
