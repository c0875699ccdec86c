from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import agentnb as nb
from agentnb.errors import AgentNbError, StoreError

SECOND = 1_000_000_000
START = 1_700_000_000 * SECOND


def encoded(value):
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case list():
            return {"arrayValue": {"values": [encoded(item) for item in value]}}
        case dict():
            return {"kvlistValue": {"values": [{"key": key, "value": encoded(item)} for key, item in value.items()]}}
    return {"stringValue": str(value)}


def span(id, parent, name, began, ended, error=None, **said):
    row = {"traceId": "t1", "spanId": id, "parentSpanId": parent, "name": name,
           "startTimeUnixNano": str(START + began * SECOND), "endTimeUnixNano": str(START + ended * SECOND),
           "attributes": [{"key": f"gen_ai.{key.replace('__', '.')}", "value": encoded(value)}
                          for key, value in said.items()]}  # fmt: skip
    if error:
        row["status"] = {"code": 2, "message": error}
    return row


ASKED = [{"role": "user", "parts": [{"type": "text", "content": "Weather in Rome?"}]}]
ANSWERED = [{"role": "assistant", "parts": [{"type": "text", "content": "sunny"}]}]
SPANS = [
    span("a", "", "invoke_agent helper", 0, 10, operation__name="invoke_agent", agent__name="helper"),
    span("b", "a", "chat m", 1, 3, operation__name="chat", request__model="m", provider__name="openai",
         usage__input_tokens=10, usage__output_tokens=4, input__messages=json.dumps(ASKED),
         output__messages=json.dumps(ANSWERED), response__finish_reasons=["stop"]),
    span("c", "a", "execute_tool weather", 4, 6, operation__name="execute_tool", tool__name="weather",
         tool__call__arguments='{"city": "Rome"}', tool__call__result='{"sky": "blue"}'),
    span("d", "a", "execute_tool time", 5, 7, operation__name="execute_tool", tool__name="time",
         tool__call__result="noon"),
    span("e", "a", "chat m", 8, 9, operation__name="chat", request__model="m", usage__input_tokens=20,
         usage__output_tokens=1),
]  # fmt: skip


def written(path, spans):
    path.write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}))
    return path


def test_spans_become_steps_frames_branches_and_calls(tmp_path):
    session = nb.open(written(tmp_path / "spans.json", SPANS))
    steps = session.trace.frames.steps
    assert list(zip(steps.node, steps.phase, strict=True)) == [
        ("helper", "enter"), ("helper/chat m", "run"), ("helper/weather", "run"), ("helper/time", "run"),
        ("helper/chat m", "run"), ("helper", "leave"),
    ]  # fmt: skip
    assert list(steps.branch.fillna(-1)) == [-1, 0, 0, 1, 0, -1]
    assert list(steps.seconds) == [0, 2, 2, 2, 1, 10]
    calls = session.trace.frames.calls
    assert list(calls.kind) == ["llm", "tool", "tool", "llm"]
    assert (calls.tokens_in[0], calls.provider[0], calls.model[0], calls.finish_reason[0]) == (
        10,
        "openai",
        "m",
        "stop",
    )
    assert session.board["usage"] == {"input_tokens": 30, "output_tokens": 5}
    assert session.board["weather.sky"] == "blue"
    assert session.goto(2).board["messages"] == [*ASKED, *ANSWERED]
    assert (session.who_wrote("weather"), session.status) == (None, "paused")
    assert session.run(until="weather").steps
    assert "helper" in session.draw().dot


def test_a_failed_span_is_a_failed_step(tmp_path):
    spans = [span("a", "", "run", 0, 3, error="no model"), span("b", "a", "inner", 1, 2, error="no model")]
    session = nb.open(written(tmp_path / "spans.json", spans))
    assert session.status == "failed"
    assert [step.error for step in session.trace.steps] == [None, "Error: no model", "Error: no model"]


def test_messages_may_be_events_or_numbered_attributes(tmp_path):
    old = span("a", "", "chat", 0, 1, operation__name="chat")
    old["attributes"] += [{"key": "gen_ai.prompt.0.role", "value": encoded("user")},
                          {"key": "gen_ai.prompt.0.content", "value": encoded("hi")},
                          {"key": "gen_ai.completion.0.content", "value": encoded("hello")}]  # fmt: skip
    data = span("b", "", "chat 2", 2, 3, operation__name="chat")
    data["events"] = [
        {"name": "gen_ai.user.message", "attributes": [{"key": "content", "value": encoded("hi")}]},
        {"name": "gen_ai.choice", "attributes": [{"key": "message", "value": encoded('{"content": "hello"}')}]},
    ]
    session = nb.open(written(tmp_path / "spans.json", [old, data]))
    assert session.goto(1).board["messages"] == [{"role": "user", "content": "hi"}, {"content": "hello"}]
    assert session.goto(2).board["messages"][1]["content"] == {"content": "hello"}


def test_several_traces_and_lines_are_read(tmp_path):
    other = [{**span("x", "", "later", 50, 60), "traceId": "t2"}]
    path = tmp_path / "spans.jsonl"
    lines = [json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": rows}]}]}) for rows in (SPANS, other)]
    path.write_text("\n".join(lines))
    assert nb.open(path).run_id == "t2"
    assert len(nb.open(path, "t1").trace) == 6
    with pytest.raises(StoreError, match="L577"):
        nb.open(path, "t3")
    path.write_text('{"resourceSpans": [{"scopeSpans": 3}]}')
    with pytest.raises(StoreError, match="L576"):
        nb.open(path)


SOME = st.none() | st.integers(-1, 2**70) | st.text(max_size=3) | st.lists(st.integers(), max_size=2)


def places(value, path=()):
    yield path
    for key, item in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(item, (*path, key))


@given(st.data())
def test_damaged_spans_are_reported_or_shown(tmp_path_factory, data):
    document = json.loads(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": SPANS}]}]}))
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(sorted((path for path in places(document) if path), key=repr)))
        part = document
        for key in path[:-1]:
            part = part[key]
        part[path[-1]] = data.draw(SOME)
    file = tmp_path_factory.mktemp("spans") / "spans.json"
    file.write_text(json.dumps(document))
    try:
        session = nb.open(file, format="otel")
        session.goto(0)
        session.run()
        session.trace.frames.steps  # noqa: B018
        session.recipe.draw().dot  # noqa: B018
    except AgentNbError:
        pass


def spans_of(*rows):
    """Return an OTLP document of spans under one root; each row is a name and its attributes."""

    def value(given):
        return {"intValue": str(given)} if isinstance(given, int) else {"stringValue": given}

    spans = [
        {
            "traceId": "t", "spanId": f"s{at}", "parentSpanId": "s0" if at else "", "name": name,
            "startTimeUnixNano": str(1_000 + at * 10), "endTimeUnixNano": str(1_005 + at * 10 if at else 9_000),
            "attributes": [{"key": key, "value": value(each)} for key, each in attributes.items()],
        }
        for at, (name, attributes) in enumerate(rows)
    ]  # fmt: skip
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]})


OPENINFERENCE = spans_of(
    ("AgentExecutor", {"openinference.span.kind": "AGENT", "agent.name": "planner", "input.value": "hi"}),
    ("ChatOpenAI", {
        "openinference.span.kind": "LLM", "llm.model_name": "gpt-x", "llm.provider": "openai",
        "llm.input_messages.0.message.role": "system", "llm.input_messages.0.message.content": "be brief",
        "llm.input_messages.1.message.role": "user", "llm.input_messages.1.message.content": "rain?",
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.tool_calls.0.tool_call.id": "c1",
        "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "weather",
        "llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments": '{"city": "Oslo"}',
        "llm.token_count.prompt": 11, "llm.token_count.completion": 4, "llm.finish_reason": "tool_calls",
    }),
    ("weather", {"openinference.span.kind": "TOOL", "tool.name": "weather", "input.value": '{"city": "Oslo"}',
                 "output.value": '{"rain": 70}'}),
)  # fmt: skip
OPENLLMETRY = spans_of(
    ("planner.workflow", {"traceloop.span.kind": "agent", "traceloop.entity.name": "planner"}),
    ("openai.chat", {
        "llm.request.type": "chat", "gen_ai.system": "openai", "gen_ai.request.model": "gpt-x",
        "gen_ai.prompt.0.role": "system", "gen_ai.prompt.0.content": "be brief",
        "gen_ai.prompt.1.role": "user", "gen_ai.prompt.1.content": "rain?",
        "gen_ai.completion.0.role": "assistant", "gen_ai.completion.0.finish_reason": "tool_calls",
        "gen_ai.completion.0.tool_calls.0.id": "c1", "gen_ai.completion.0.tool_calls.0.name": "weather",
        "gen_ai.completion.0.tool_calls.0.arguments": '{"city": "Oslo"}',
        "gen_ai.usage.prompt_tokens": 11, "gen_ai.usage.completion_tokens": 4,
    }),
    ("weather.tool", {"traceloop.span.kind": "tool", "traceloop.entity.name": "weather",
                      "traceloop.entity.input": '{"city": "Oslo"}', "traceloop.entity.output": '{"rain": 70}'}),
)  # fmt: skip
LANGSMITH = spans_of(
    ("planner", {"langsmith.span.kind": "chain", "gen_ai.prompt": '{"topic": "rain"}'}),
    ("ChatOpenAI", {
        "langsmith.span.kind": "llm", "gen_ai.operation.name": "chat", "gen_ai.system": "openai",
        "gen_ai.request.model": "gpt-x", "gen_ai.response.finish_reason": "tool_calls",
        "gen_ai.prompt": json.dumps({"messages": [[{"role": "system", "content": "be brief"},
                                                   {"role": "user", "content": "rain?"}]]}),
        "gen_ai.completion": json.dumps({"role": "assistant", "content": "", "tool_calls": [{"name": "weather"}]}),
        "gen_ai.usage.input_tokens": 11, "gen_ai.usage.output_tokens": 4,
    }),
    ("weather", {"langsmith.span.kind": "tool", "gen_ai.prompt": '{"city": "Oslo"}',
                 "gen_ai.completion": '{"rain": 70}'}),
)  # fmt: skip


@pytest.mark.parametrize(
    "text", [OPENINFERENCE, OPENLLMETRY, LANGSMITH], ids=["openinference", "openllmetry", "langsmith"]
)
def test_spans_of_other_libraries_are_read_with_their_names(text, tmp_path):
    path = tmp_path / "spans.json"
    path.write_text(text)
    session = nb.open(path)
    begin, chat, tool, end = session.trace.steps
    assert (begin.phase, end.phase, begin.node_id) == ("enter", "leave", "planner")
    assert (chat.kind, tool.kind, tool.node_id) == ("llm", "tool", "planner/weather")
    model, call = session.trace.frames.calls.to_dict("records")
    values = (model["kind"], model["model"], model["provider"], model["tokens_in"], model["tokens_out"])
    assert values == ("llm", "gpt-x", "openai", 11, 4)
    assert model["finish_reason"] == "tool_calls"
    messages = [(row["role"], row["content"]) for row in model["arguments"]["messages"]]
    assert messages == [("system", "be brief"), ("user", "rain?")]
    assert (call["kind"], call["name"], call["arguments"], call["result"]) == (
        "tool", "weather", {"city": "Oslo"}, {"rain": 70}
    )  # fmt: skip
    answer = session.board["messages"][-1]
    assert answer["role"] == "assistant"
    (tool_call,) = answer["tool_calls"]
    assert "weather" in (tool_call.get("name"), tool_call.get("function", {}).get("name"))
    assert session.board["usage"] == {"input_tokens": 11, "output_tokens": 4}
    assert session.who_wrote("weather") == 3


FILES = Path(__file__).parent / "otel_files"  # written by the libraries themselves, see write.py there


@pytest.mark.parametrize("library", ["openinference", "openllmetry", "langsmith"])
def test_exports_of_the_libraries_show_the_run_of_the_agent(library):
    """The scripted run of write.py is the judge: what its model and its tools were asked and said."""
    session = nb.open(FILES / f"{library}.jsonl")
    assert (session.status, session.recipe.name, session.simulated) == ("finished", "helper", ())
    frame = session.trace.frames.calls
    order = ["scripted-1", *sorted(["weather", "clock"], key=list(frame["name"]).index), "scripted-1"]
    assert list(frame["name"]) == order
    first, second = (call for call in frame.to_dict("records") if call["kind"] == "llm")
    assert (first["tokens_in"], first["tokens_out"], second["tokens_in"], second["tokens_out"]) == (10, 5, 12, 7)
    assert first["finish_reason"] in {"tool_calls", "tool_call"}  # OpenLLMetry has a word of its own
    assert (second["finish_reason"], first["provider"], first["model"]) == ("stop", "openai", "scripted-1")
    messages = [(message["role"], text_of(message)) for message in first["arguments"]["messages"]]
    assert messages == [("system", "You are terse."), ("user", "Weather and time in Rome?")]
    assert [message["role"] for message in second["arguments"]["messages"]][:3] == ["system", "user", "assistant"]
    board = session.board
    assert (board["weather"], board["clock"]) == ({"sky": "sunny", "city": "Rome"}, "noon")
    assert board["usage"] == {"input_tokens": 22, "output_tokens": 12}
    assert board["messages"][-1]["role"] == "assistant"
    assert text_of(board["messages"][-1]) == "It is sunny at noon in Rome."
    tools = frame[frame["kind"] == "tool"]
    one = "Rome" if library == "openinference" else {"city": "Rome"}  # it writes a single argument without its name
    assert list(tools["arguments"]) == [one, one]
    branches = session.trace.frames.steps.set_index("step")["branch"]
    assert sorted(branches[step] for step in tools["step"]) == [0, 1]  # they ran at the same time
    assert session.find("weather.sky == 'sunny'")[0] == session.who_wrote("weather")
    assert session.who_wrote("messages") == int(frame["step"].iloc[-1])


def text_of(message):
    parts = message.get("parts")
    return message["content"] if parts is None else "".join(part["content"] for part in parts)


@pytest.mark.parametrize("library", ["openinference", "langsmith"])
def test_a_failure_is_reported_without_the_traceback_around_it(library):
    session = nb.open(FILES / f"{library}_failed.jsonl")
    assert session.status == "failed"
    errors = session.trace.frames.steps.set_index("node")["error"].dropna()
    assert set(errors) == {"ValueError: the clock has stopped"}
    assert list(session.trace.frames.calls["error"].dropna()) == ["the clock has stopped"]


@pytest.mark.parametrize("said", [
    {"llm.input_messages.0.message": "x", "llm.input_messages.0.message.role": "user"},
    {"llm.input_messages.0.message.role": "user", "llm.input_messages.0.message": "x"},
    {"gen_ai.prompt.0." + "a." * 5_000 + "b": "x"},
    {"gen_ai.prompt.99999999999999999999.role": "user", "gen_ai.prompt..role": "x", "gen_ai.prompt.0.": "y"},
    {"gen_ai.prompt": "[" * 90_000}, {"gen_ai.prompt": "[[[[[]]]]]"}, {"gen_ai.prompt": '{"messages": {"a": 1}}'},
    {"gen_ai.operation.name": 3}, {"openinference.span.kind": 7}, {"traceloop.span.kind": "tool", "tool.name": 5},
])  # fmt: skip
def test_unusual_attributes_of_libraries_are_shown_or_reported(said, tmp_path):
    path = tmp_path / "spans.json"
    path.write_text(spans_of(("root", {}), ("call", {"openinference.span.kind": "LLM", **said})))
    try:
        session = nb.open(path)
    except StoreError:
        return
    session.goto(0).run()
    str(session.trace.to_json())
