"""test_observing: how a runtime is logged: one handler, JSON or plain lines, a redactor for their fields."""

from __future__ import annotations

import io
import json
import logging
from decimal import Decimal
from pathlib import Path

import pytest

from agentnb.dialects.activegraph import Tool, configure_logging
from agentnb.dialects.activegraph.observing import FIELDS, LOG, doc_url
from tests.dialects.activegraph.making import on, runtime, thinking

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def _as_it_was():
    before = list(LOG.handlers), LOG.level, LOG.propagate
    yield
    LOG.handlers[:], LOG.propagate = before[0], before[2]
    LOG.setLevel(before[1])


def fail(message="no"):
    @on("go")
    def fails(event, graph, ctx):
        raise ValueError(message)

    team = runtime(fails)
    team.session.emit("go", {})
    team.run_until_idle()


def test_a_second_call_takes_the_place_of_the_first():
    first, second = io.StringIO(), io.StringIO()
    assert configure_logging(stream=first) is configure_logging(stream=second)
    fail()
    assert (first.getvalue(), len(second.getvalue().splitlines()), len(LOG.handlers)) == ("", 1, 1)


def test_plain_lines_are_for_people():
    stream = io.StringIO()
    configure_logging(json_output=False, stream=stream)
    fail()
    (line,) = stream.getvalue().splitlines()
    assert "WARNING agentnb.activegraph: behavior failed: fails" in line


def test_a_redactor_is_asked_for_the_fields():
    stream = io.StringIO()
    configure_logging(stream=stream, payload_redactor=lambda fields: {**fields, "error_message": "***"})
    fail("my address")
    assert json.loads(stream.getvalue())["error_message"] == "***"
    assert "my address" not in stream.getvalue()


def test_a_level_is_a_name_or_a_number_and_below_it_nothing_is_written():
    stream = io.StringIO()
    configure_logging("error", stream=stream)
    fail()
    assert (stream.getvalue(), LOG.level) == ("", logging.ERROR)
    configure_logging(logging.DEBUG, stream=stream)
    fail()
    told = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert {line["level"] for line in told} == {"DEBUG", "WARNING"}
    assert [line["behavior"] for line in told] == ["fails"] * len(told)


def lines(level="DEBUG", **options):
    """Return the lines that are written of a run in which a model asks for a tool, and a behaviour fails."""
    stream = io.StringIO()
    configure_logging(level, stream=stream)
    tool = Tool("look", lambda args, ctx: {}, cost_per_call=Decimal("0.5"))
    behaviors, words = thinking(("", None, (("c1", "look", {}),)), ("done", None, ()), tools=[tool])
    fails = on("thought")(lambda event, graph, ctx: 1 / 0)
    team = runtime(*behaviors, fails, **words, **options)
    team.run_goal("go")
    return team, [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_says_of_which_run_it_is_and_what_was_asked():
    team, told = lines()
    by = {line["message"].partition(" ")[0]: line for line in told}
    assert {line["run_id"] for line in told} == {team.run_id}
    assert by["llm.requested"].items() >= {"behavior": "think", "model": "model-1", "cache_hit": False}.items()
    assert by["llm.responded"].items() >= {"cost_usd": "0.002", "latency_seconds": 0.5, "cache_hit": False}.items()
    assert by["tool.responded"].items() >= {"tool": "look", "cost_usd": "0.5", "cache_hit": False}.items()
    assert {name for line in told for name in line} <= {"timestamp", "level", "logger", "message", *FIELDS}


def test_a_failure_says_where_to_read_of_it():
    _, (line,) = lines("WARNING")
    assert (line["reason"], line["error_type"]) == ("exception.ZeroDivisionError", "ZeroDivisionError")
    assert line["doc_url"] == doc_url(line["reason"]) == "docs/reactive_agents.md#what-goes-wrong"


@pytest.mark.parametrize("reason", ["llm.parse_error", "tool.timeout", "budget.cost_exhausted", "policy.denied", "x"])
def test_each_reason_has_a_part_of_the_page(reason):
    path, _, part = doc_url(reason).partition("#")
    heads = [line[3:].lower().replace(" ", "-") for line in (ROOT / path).read_text().splitlines() if line[:3] == "## "]
    assert part in heads


def test_what_is_only_replayed_is_not_logged():
    team, told = lines()
    stream = io.StringIO()
    configure_logging("DEBUG", stream=stream)
    assert team.replay().ok
    assert (len(told) > 5, stream.getvalue()) == (True, "")
