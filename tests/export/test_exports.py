from __future__ import annotations

import json
import warnings

import pandas as pd
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode
from pyarrow import parquet

import agentnb as nb
from agentnb.errors import ExecutionError
from agentnb.export.otel import send_live
from agentnb.samples import EVENTS
from agentnb.trace.frames import NAMES
from tests.export.finished_sessions import RUNS, answered, approved, nested
from tests.recordings.test_otel import encoded


def collector():
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider, exporter


def sent(session):
    provider, exporter = collector()
    assert session.trace.to_otel(provider) == len(exporter.get_finished_spans())
    return exporter.get_finished_spans()


# -- OpenTelemetry -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", RUNS)
def test_every_step_and_call_is_a_span_inside_its_parent(make):
    session = make()
    spans = sent(session)
    ids = {span.context.span_id: span for span in spans}
    (root,) = [span for span in spans if span.parent is None]
    assert root.attributes["gen_ai.operation.name"] == "invoke_agent"
    assert {span.context.trace_id for span in spans} == {root.context.trace_id}
    phases = session.trace.frames.steps.phase
    calls = session.trace.frames.calls
    assert len(spans) == 1 + (phases != "leave").sum() + len(calls)
    for span in spans:
        assert span.start_time <= span.end_time
        if span.parent is not None:
            assert ids[span.parent.span_id].start_time <= span.start_time
    for span in spans:
        if "agentnb.step" in span.attributes and span.attributes["agentnb.kind"] not in {"loop", "subgraph"}:
            step = session.trace.steps[span.attributes["agentnb.step"] - 1]
            names = []
            while (span := ids[span.parent.span_id]) is not root:
                names.append(span.name)
            assert len(names) == step.depth


def test_calls_follow_the_genai_conventions():
    spans = sent(answered())
    (chat,) = [span for span in spans if span.attributes.get("gen_ai.operation.name") == "chat"]
    assert (chat.name, chat.kind) == ("chat m-1", SpanKind.CLIENT)
    attributes = chat.attributes
    assert (attributes["gen_ai.usage.input_tokens"], attributes["gen_ai.usage.output_tokens"]) == (12, 5)
    assert (attributes["gen_ai.provider.name"], attributes["gen_ai.response.model"]) == ("vendor", "m-1")
    assert attributes["gen_ai.response.finish_reasons"] == ("stop",)
    assert "blue" in attributes["gen_ai.output.messages"]
    assert "sky" in attributes["gen_ai.input.messages"]
    tools = [span for span in spans if span.attributes.get("gen_ai.operation.name") == "execute_tool"]
    assert tools
    assert all(json.loads(span.attributes["gen_ai.tool.call.arguments"]) for span in tools)


def test_a_failure_is_an_error_of_its_span_and_of_the_run():
    import networkx as nx

    graph = nx.DiGraph(name="broken")
    graph.add_node("boom", function=lambda x: {"y": 1 / x}, inputs={"x": "x"})
    session = nb.Session(nb.load(graph), {"x": 0})
    session.run()
    spans = sent(session)
    assert {span.name: span.status.status_code for span in spans} == {
        "boom": StatusCode.ERROR, "invoke_agent broken": StatusCode.ERROR,
    }  # fmt: skip
    (boom,) = (span for span in spans if span.name == "boom")
    assert boom.attributes["error.type"] == "ZeroDivisionError"
    assert boom.status.description == "ZeroDivisionError: division by zero"
    assert ".py:" in boom.attributes["agentnb.line"]


@pytest.mark.parametrize("name", ["rag", "refine"])
def test_spans_are_sent_while_it_runs(name):
    inputs = {"rag": {"question": "What color is the sky?"}, "refine": {"number": 2}}[name]
    session = nb.Session(nb.samples(name), inputs)
    provider, exporter = collector()
    stop = send_live(session, provider)
    session.step(2)
    before = len(exporter.get_finished_spans())
    assert before
    session.run()
    stop()
    live = [span.name for span in exporter.get_finished_spans()]
    assert sorted(live) == sorted(span.name for span in sent(session))
    session.goto(0).step()
    assert len(exporter.get_finished_spans()) == len(live), "it has stopped"


def test_sent_spans_can_be_opened(tmp_path):
    session = nested()
    rows = [
        {"traceId": f"{span.context.trace_id:032x}", "spanId": f"{span.context.span_id:016x}",
         "parentSpanId": f"{span.parent.span_id:016x}" if span.parent else "", "name": span.name,
         "startTimeUnixNano": str(span.start_time), "endTimeUnixNano": str(span.end_time),
         "attributes": [{"key": key, "value": encoded(value)} for key, value in span.attributes.items()]}
        for span in sent(session)
    ]  # fmt: skip
    path = tmp_path / "spans.json"
    path.write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": rows}]}]}))
    reopened = nb.open(path)
    phases = session.trace.frames.steps.phase
    assert (reopened.trace.frames.steps.phase == "run").sum() == phases.isin(["run", "again"]).sum()


# -- tables ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", RUNS)
def test_parquet_files_contain_every_row(make, tmp_path):
    trace = make().trace
    trace.to_parquet(tmp_path / "run")
    trace.to_parquet(tmp_path / "run.parquet")
    parquet_table = parquet.read_table(tmp_path / "run.parquet")
    about = json.loads(parquet_table.schema.metadata[b"agentnb"])
    assert (about["run_id"], about["fingerprint"]) == (trace.run_id, trace.fingerprint)
    for name in NAMES:
        table = parquet.read_table(tmp_path / "run" / f"{name}.parquet")
        assert table.column_names == list(trace.frames[name].columns)
        assert len(table) == len(trace.frames[name])
        assert parquet_table["table"].to_pylist().count(name) == len(table)
    assert pd.read_parquet(tmp_path / "run" / "steps.parquet")["node"].tolist() == [
        step.node_id for step in trace.steps
    ]
    assert set(trace.to_arrow()) == set(NAMES)


@pytest.mark.parametrize("make", RUNS)
def test_process_mining_reads_the_event_log(make):
    import pm4py

    session = make()
    log = session.trace.to_event_log()
    assert len(log) == len(session.trace)
    assert log["time:timestamp"].is_monotonic_increasing
    assert (log["time:timestamp"] >= log["start_timestamp"]).all()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        done = log[log["lifecycle:transition"] == "complete"]
        graph, start, end = pm4py.discover_dfg(done)
        assert sum(graph.values()) == len(done) - 1
        assert (list(start), list(end)) == ([done["concept:name"].iloc[0]], [done["concept:name"].iloc[-1]])
        net, initial, final = pm4py.discover_petri_net_inductive(done)
        fitness = pm4py.fitness_token_based_replay(done, net, initial, final)
    assert fitness["log_fitness"] == pytest.approx(1.0)


# -- pictures ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["incident", "feedback", "team"])
def test_a_run_that_events_from_outside_started_has_every_export(name, tmp_path):
    session = nb.Session(nb.samples(name))
    for event in EVENTS[name]:
        session.emit(*event)
    session.run()
    trace = session.trace
    lines = trace.sequence_diagram().splitlines()
    assert sum(": emit " in line for line in lines) == len(EVENTS[name])
    assert not any(line.endswith(" as nan") for line in lines)
    assert len(trace.to_event_log()) == len(trace)
    trace.to_parquet(tmp_path / "run.parquet")
    session.to_html(tmp_path / "run.html")
    for chart in ("timeline", "durations", "board", "usage"):
        getattr(trace.charts, chart).to_dict()


@pytest.mark.parametrize("make", RUNS)
def test_a_sequence_diagram_has_an_arrow_per_step_and_call(make):
    session = make()
    text = session.trace.sequence_diagram()
    assert text.startswith("sequenceDiagram\n")
    declared = [line.split()[1] for line in text.splitlines() if " as " in line]
    for line in text.splitlines()[1:]:
        if "->>" in line or "-x" in line:
            assert line.split(":")[0].replace("--", "-").replace("-x", "->>").strip().split("->>")[0] in declared
    assert sum(f": {step}. " in text for step in range(1, len(session.trace) + 1)) == len(session.trace)
    assert "more steps" in session.trace.sequence_diagram(max_steps=1)


def test_people_are_actors_and_hostile_texts_are_escaped():
    session = approved()
    session.edit({"note": "a;b #1\nend\nparticipant x"})
    assert "actor p" in session.trace.sequence_diagram()
    import networkx as nx

    graph = nx.DiGraph(name="evil")
    graph.add_node("a;\nparticipant evil", function=lambda: {"x": "; Note over p0: <b>\nloop"})
    session = nb.Session(nb.load(graph))
    session.run()
    lines = session.trace.sequence_diagram().splitlines()
    assert len(lines) == 4
    assert all(";" not in line.replace("#35;", "").replace("#59;", "").replace("#lt;", "").replace("#gt;", "")
               for line in lines)  # fmt: skip


@pytest.mark.parametrize("make", RUNS)
@pytest.mark.parametrize("name", ["timeline", "durations", "board", "usage"])
def test_charts_carry_their_data(make, name):
    session = make()
    chart = getattr(session.trace.charts, name).to_dict()
    text = json.dumps(chart)
    assert "url" not in chart["data"]
    if name == "timeline":
        values = chart["data"].get("values") or chart["datasets"][chart["data"]["name"]]
        assert len(values) == len(session.trace)
    assert name == "usage" or session.trace.steps[0].node_id in text or name == "board"
    if name == "usage" and make is answered:
        assert '"tokens": 12' in text
    assert "usage" in repr(session.trace.charts)


@pytest.mark.parametrize("of", ["trace", "sweep"])
def test_charts_are_displayed_without_a_network(of):
    import altair as alt

    charts = answered().trace.charts
    if of == "sweep":
        charts = nb.sweep(nb.samples("rag"), [{"question": "Why?"}]).charts
    chart = charts.durations
    shown = chart.properties(width=300)._repr_mimebundle_()
    drawn = shown["application/vnd.vegalite.v5+json"]  # what JupyterLab draws itself
    alt.Chart.from_dict({**drawn, "$schema": chart.to_dict()["$schema"]})
    assert "<script" not in shown["text/html"]
    assert "<th scope" in shown["text/html"]
    with alt.renderers.enable("html"):  # the reader's own choice
        assert "application/vnd.vegalite.v5+json" not in chart._repr_mimebundle_()
    assert alt.renderers.active == "default"


def test_a_missing_library_is_reported_with_the_remedy(monkeypatch):
    import sys

    trace = nested().trace
    for library, export in (("pyarrow", lambda: trace.to_parquet("x")), ("altair", lambda: trace.charts.board),
                         ("opentelemetry.trace", lambda: trace.to_otel(TracerProvider()))):  # fmt: skip
        monkeypatch.setitem(sys.modules, library, None)
        with pytest.raises(ExecutionError, match=r"L590.*\n.*\n.*\n.*pip install"):
            export()


CONVENTIONS = ("gen_ai.operation.name", "gen_ai.provider.name")  # what each model span must have


@pytest.mark.parametrize("name", ["rag", "document", "moderation", "triage", "search"])
def test_every_attribute_and_message_follows_the_conventions(name):
    from opentelemetry.semconv._incubating.attributes import gen_ai_attributes as known

    names = {value for value in vars(known).values() if isinstance(value, str) and value.startswith("gen_ai.")}
    operations = {each.value for each in known.GenAiOperationNameValues}
    session = nb.Session(nb.samples(name), answers=["approve"])
    session.run(max_steps=30)
    spans = sent(session)
    used = {key for span in spans for key in span.attributes if key.startswith("gen_ai.")}
    assert used - names == set()
    actual = [span for span in spans if "gen_ai.operation.name" in span.attributes]
    assert len(actual) > 0
    for span in actual:
        attributes = span.attributes
        assert attributes["gen_ai.operation.name"] in operations
        assert span.name.startswith(f"{attributes['gen_ai.operation.name']} ")
        if attributes["gen_ai.operation.name"] == "execute_tool":
            assert attributes["gen_ai.tool.type"] == "function"
        for side in ("input", "output"):
            for message in json.loads(attributes.get(f"gen_ai.{side}.messages", "[]")):
                assert {"role", "parts"} | ({"finish_reason"} if side == "output" else set()) == message.keys()
                assert message["parts"]
                assert all(isinstance(part["content"], str) for part in message["parts"] if part["type"] == "text")
        if "gen_ai.input.messages" in attributes:
            assert set(CONVENTIONS) <= attributes.keys()


def test_messages_of_libraries_become_roles_and_parts():
    from agentnb.export.otel import _to_message

    openai = {"role": "assistant", "content": None,
              "tool_calls": [{"id": "c1", "function": {"name": "rain", "arguments": "{}"}}]}  # fmt: skip
    langchain = {
        "type": "ai",
        "data": {"type": "ai", "content": "hm", "tool_calls": [{"name": "rain", "args": {}, "id": "c1"}]},
    }
    tool_call = {"type": "tool_call", "id": "c1", "name": "rain"}
    assert _to_message(openai, "user") == {"role": "assistant", "parts": [{**tool_call, "arguments": "{}"}]}
    text = {"type": "text", "content": "hm"}
    assert _to_message(langchain, "user") == {"role": "assistant", "parts": [text, {**tool_call, "arguments": {}}]}
    answer = {"role": "tool", "tool_call_id": "c1", "content": "70 %"}
    response = {"type": "tool_call_response", "id": "c1", "response": "70 %"}
    assert _to_message(answer, "user") == {"role": "tool", "parts": [response]}
    image = {"type": "image", "url": "x"}
    several = _to_message({"role": "user", "content": [{"type": "text", "text": "hm"}, image]}, "user")
    assert several == {"role": "user", "parts": [text, image]}
