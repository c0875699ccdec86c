"""How a runtime is logged: one handler, JSON or plain lines, a redactor for their fields."""

from __future__ import annotations

import io
import json
import logging
from decimal import Decimal
from pathlib import Path

import pytest

from agentnb.dialects.activegraph import Tool, configure_logging
from agentnb.dialects.activegraph.parts.log_output import FIELDS, make_doc_url
from tests.dialects.activegraph.judge import assert_same_signatures
from tests.dialects.activegraph.runtimes import on, runtime, tell, thinking

ROOT = Path(__file__).parents[3]
ROOT_LOG = logging.getLogger("activegraph")


@pytest.fixture(autouse=True)
def _as_it_was():
    before = list(ROOT_LOG.handlers), ROOT_LOG.level, ROOT_LOG.propagate
    yield
    configure_logging()  # without a redactor
    ROOT_LOG.handlers[:], ROOT_LOG.propagate = before[0], before[2]
    ROOT_LOG.setLevel(before[1])


def fail(message="no"):
    @on("go")
    def fails(event, graph, ctx):
        raise ValueError(message)

    team = runtime(fails)
    tell(team, "go")
    team.run_until_idle()


def test_a_second_call_replaces_the_first():
    first, second = io.StringIO(), io.StringIO()
    assert configure_logging(stream=first) is configure_logging(stream=second)
    fail()
    failed = [line for line in second.getvalue().splitlines() if "WARNING" in line]
    assert (first.getvalue(), len(failed), len(ROOT_LOG.handlers)) == ("", 1, 1)


def test_handlers_of_others_stay():
    other = logging.NullHandler()
    ROOT_LOG.addHandler(other)
    configure_logging()
    assert other in ROOT_LOG.handlers


def test_plain_text_lines_are_readable():
    stream = io.StringIO()
    configure_logging("WARNING", json_output=False, stream=stream)
    fail()
    (line,) = stream.getvalue().splitlines()
    assert "WARNING activegraph.runtime: behavior failed: fails" in line


@pytest.mark.parametrize("redact", [lambda payload: {**payload, "message": "***"}, lambda payload: {}])
def test_a_redactor_receives_payloads_only(redact):
    stream = io.StringIO()
    configure_logging("WARNING", stream=stream, payload_redactor=redact)
    fail("my address")
    line = json.loads(stream.getvalue())
    assert line.get("error_message") in ("***", None)
    assert (line["behavior"], line["reason"], line["error_type"]) == ("fails", "exception.ValueError", "ValueError")
    assert "my address" not in stream.getvalue()


def test_each_event_that_behaviors_may_react_to_is_a_line():
    stream = io.StringIO()
    configure_logging("INFO", stream=stream)

    @on("go")
    def maker(event, graph, ctx):
        graph.add_object("note", {"text": "secret words"})

    team = runtime(maker)
    tell(team, "go")
    team.run_until_idle()
    rows = [json.loads(line) for line in stream.getvalue().splitlines()]
    emitted = [event.id for event in team.graph.events if event.type in ("go", "object.created")]
    assert [(line["message"], line["event_id"]) for line in rows] == [("event emitted", id_) for id_ in emitted]
    assert {line["run_id"] for line in rows} == {team.run_id}
    assert "secret words" not in stream.getvalue()


def test_payloads_are_logged_at_level_debug_as_the_redactor_returns_them():
    stream = io.StringIO()
    configure_logging("DEBUG", stream=stream, payload_redactor=lambda payload: {"keys": sorted(payload)})
    team = runtime(on("go")(lambda event, graph, ctx: None))
    tell(team, "go", word="my address")
    team.run_until_idle()
    (line,) = (line for line in map(json.loads, stream.getvalue().splitlines()) if line["message"] == "event emitted")
    assert line["payload"] == {"keys": ["word"]}
    assert "my address" not in stream.getvalue()


def test_a_level_is_a_name_or_a_number_and_filters_lower_records():
    stream = io.StringIO()
    configure_logging("error", stream=stream)
    fail()
    assert (stream.getvalue(), ROOT_LOG.level) == ("", logging.ERROR)
    configure_logging(logging.DEBUG, stream=stream)
    fail()
    rows = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert {line["level"] for line in rows} == {"DEBUG", "INFO", "WARNING"}
    assert {line["behavior"] for line in rows if line["level"] != "INFO"} == {"fails"}


def lines(level="DEBUG", **options):
    """Return the lines that are written of a run in which a model asks for a tool, and a behavior fails."""
    stream = io.StringIO()
    configure_logging(level, stream=stream)
    tool = Tool("look", lambda args, ctx: {}, cost_per_call=Decimal("0.5"))
    behaviors, words = thinking(("", None, (("c1", "look", {}),)), ("done", None, ()), tools=[tool])
    fails = on("thought")(lambda event, graph, ctx: 1 / 0)
    team = runtime(*behaviors, fails, **words, **options)
    team.run_goal("go")
    return team, [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_names_its_run_and_its_request():
    team, records = lines()
    by_event = {line["message"].partition(" ")[0]: line for line in records}
    assert {line["run_id"] for line in records} == {team.run_id}
    assert by_event["llm.requested"].items() >= {"behavior": "think", "model": "model-1", "cache_hit": False}.items()
    assert (
        by_event["llm.responded"].items() >= {"cost_usd": "0.002", "latency_seconds": 0.5, "cache_hit": False}.items()
    )
    assert by_event["tool.responded"].items() >= {"tool": "look", "cost_usd": "0.5", "cache_hit": False}.items()
    assert {name for line in records for name in line} <= {"timestamp", "level", "logger", "message", *FIELDS}


def test_a_failure_links_to_its_documentation():
    _, (line,) = lines("WARNING")
    assert (line["reason"], line["error_type"]) == ("exception.ZeroDivisionError", "ZeroDivisionError")
    assert line["doc_url"] == make_doc_url(line["reason"]) == "docs/recipes/activegraph.md#what-goes-wrong"


@pytest.mark.parametrize("reason", ["llm.parse_error", "tool.timeout", "budget.cost_exhausted", "policy.denied", "x"])
def test_each_reason_has_a_section_on_the_page(reason):
    path, _, part = make_doc_url(reason).partition("#")
    heads = [line[3:].lower().replace(" ", "-") for line in (ROOT / path).read_text().splitlines() if line[:3] == "## "]
    assert part in heads


def test_replayed_events_are_not_logged():
    team, records = lines()
    stream = io.StringIO()
    configure_logging("DEBUG", stream=stream)
    assert team.replay().ok
    assert (len(records) > 5, stream.getvalue()) == (True, "")


def test_signatures_are_those_of_the_package():
    assert_same_signatures("configure_logging")
