from __future__ import annotations

import json
from decimal import Decimal

import pytest

from agentnb.dialects.activegraph import Tool
from tests.dialects.activegraph.runtimes import on, runtime, thinking


@pytest.fixture
def told():
    @on("goal.created")
    def plan(event, graph, ctx):
        task = graph.add_object("task", {"title": event.payload["goal"]})
        graph.add_relation(task.id, task.id, "near")
        graph.patch_object(task.id, {"api_key": "sk-1234567890abcdef"})

    @on("object.created")
    def fails(event, graph, ctx):
        raise ValueError("no\nand why")

    team = runtime(plan, fails)
    team.run_goal("write")
    return team


def test_each_event_is_a_line(told):
    lines = told.trace.lines()
    assert len(lines) == len(told.graph.events) == len(told.trace.events())
    by_id = {line.split("]")[0][1:]: line.split("]")[1].strip() for line in lines}
    assert (by_id["goal.created"], by_id["object.created"]) == ('user: "write"', "task#1")
    assert (by_id["relation.created"], by_id["patch.applied"]) == ("task#1 -> task#1 (near)", "task#1: api_key")
    assert (by_id["behavior.failed"], by_id["runtime.idle"]) == ("fails: ValueError: no", "nothing is left to do")
    assert repr(told.trace) == "\n".join(lines)


def test_the_failures_are_those_of_the_log(told):
    (failed,) = told.trace.failures()
    assert (failed.payload["behavior"], failed.payload["exception_type"]) == ("fails", "ValueError")
    assert "ValueError: no" in failed.payload["traceback"]


def test_the_causes_of_an_object_lead_back_to_what_was_emitted_from_outside(told):
    assert [event.type for event in told.trace.causes("task#1")][:2] == ["object.created", "goal.created"]
    assert told.trace.causal_chain("task#1").splitlines()[0] == "task#1 (task)"
    assert told.trace.causes("task#9") == []
    (failed,) = (event for event in told.graph.events if event.type == "behavior.failed")
    assert [event.type for event in told.trace.causes(failed.id)][-1] == "goal.created"


def test_it_is_printed_and_written_without_secrets(told, tmp_path, capsys):
    told.trace.print()
    assert capsys.readouterr().out.splitlines() == told.trace.lines()
    told.trace.export(tmp_path / "log.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [row["id"] for row in rows] == [event.id for event in told.graph.events]


def test_a_runtime_prints_its_log_and_its_graph(told, tmp_path, capsys):
    told.print_trace()
    assert capsys.readouterr().out.splitlines() == told.trace.lines()
    told.print_graph()
    shown = capsys.readouterr().out
    assert "objects (1):" in shown
    assert "task#1 -near-> task#1" in shown
    assert "sk-1234567890abcdef" not in shown
    told.export_trace(tmp_path / "log.jsonl")
    assert len((tmp_path / "log.jsonl").read_text().splitlines()) == len(told.graph.events)


def test_calls_are_reported_with_what_they_took_and_are_part_of_the_causes():
    @on("thought")
    def notes(event, graph, ctx):
        graph.add_object("other", {})

    look = Tool("look", lambda args, ctx: {}, cost_per_call=Decimal("0.5"))
    behaviors, options = thinking(("", None, (("c1", "look", {}),)), ("done", None, ()), tools=[look])
    behaviors[0].handler = lambda event, graph, ctx, answer: graph.add_object("note", {})
    team = runtime(*behaviors, notes, **options)
    team.run_goal("go")
    lines = {line.partition("]")[0][1:]: line for line in team.trace.lines()}
    assert "think  model=model-1 turn=1" in lines["llm.requested"]
    assert "tokens_in=5 tokens_out=7 cost=$0.002 latency=0.5s" in lines["llm.responded"]
    assert "tool=look" in lines["tool.requested"]
    assert "cost=$0.500" in lines["tool.responded"]
    chain = team.trace.causal_chain("note#1")
    kinds = ["llm.responded", "llm.requested", "tool.responded", "tool.requested", "llm.responded", "llm.requested"]
    actual = [event.type for event in team.trace.causes("note#1")]
    assert actual == ["object.created", *kinds, "goal.created"]
    depths = [(len(line) - len(line.lstrip())) // 2 for line in chain.splitlines()]
    assert depths == [0, 1, *[2] * len(kinds), 2]  # the calls of a cause are beside the next cause
    assert ("model=model-1" in chain, "tool=look" in chain) == (True, True)
