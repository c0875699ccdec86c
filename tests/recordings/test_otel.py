from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
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
    told = span("b", "", "chat 2", 2, 3, operation__name="chat")
    told["events"] = [
        {"name": "gen_ai.user.message", "attributes": [{"key": "content", "value": encoded("hi")}]},
        {"name": "gen_ai.choice", "attributes": [{"key": "message", "value": encoded('{"content": "hello"}')}]},
    ]
    session = nb.open(written(tmp_path / "spans.json", [old, told]))
    assert session.goto(1).board["messages"] == [{"role": "user", "content": "hi"}, {"content": "hello"}]
    assert session.goto(2).board["messages"][1]["content"] == {"content": "hello"}


def test_several_traces_and_lines(tmp_path):
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


@settings(max_examples=60)
@given(st.data())
def test_damaged_spans_are_told_or_shown(tmp_path_factory, data):
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
