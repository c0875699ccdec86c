from __future__ import annotations

import pytest

import agentnb as nb

pytest.importorskip("langgraph")


def test_the_trip_requests_every_fare_and_books_the_chosen_one():
    session = nb.Session(nb.samples("trip"), {"cities": ["Oslo", "Rome"]})
    session.run()
    assert (session.status, session.current, len(session.board["offers"])) == ("waiting", "choose", 2)
    session.answer("Rome")
    session.run()
    assert session.board["booking"] == "Rome for 120 euros"


def test_the_forecast_calls_its_tool_for_each_city_and_a_replay_makes_no_call():
    session = nb.Session(nb.samples("forecast"))
    session.run()
    assert [step.node_id for step in session.trace.steps] == ["ask", "think", "act", "think"]
    assert session.board["messages"][-1].content == "The chance of rain: 70 % in Oslo; 30 % in Rome."
    assert list(session.trace.frames.calls["kind"]) == ["llm", "tool", "tool", "llm"]
    assert session.replay().ok
