from __future__ import annotations

import json

import pytest

from tests.dialects.activegraph.making import on, runtime


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
    by = {line.split("]")[0][1:]: line.split("]")[1].strip() for line in lines}
    assert (by["goal.created"], by["object.created"]) == ('user: "write"', "task#1")
    assert (by["relation.created"], by["patch.applied"]) == ("task#1 -> task#1 (near)", "task#1: api_key")
    assert (by["behavior.failed"], by["runtime.idle"]) == ("fails: ValueError: no", "nothing is left to do")
    assert repr(told.trace) == "\n".join(lines)


def test_the_failures_are_those_of_the_log(told):
    assert [(each.behavior, each.exception_type) for each in told.trace.failures()] == [("fails", "ValueError")]


def test_the_causes_of_an_object_lead_back_to_what_was_told_from_outside(told):
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
