"""test_observing: how a runtime is logged: one handler, JSON or plain lines, a redactor for their fields."""

from __future__ import annotations

import io
import json
import logging

import pytest

from agentnb.dialects.activegraph import configure_logging
from agentnb.dialects.activegraph.observing import LOG
from tests.dialects.activegraph.making import on, runtime


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
