from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from agentnb.draw.causality_view import ChainEvent, draw_chain
from tests.draw.drawn_recipes import HOSTILE


@pytest.fixture(autouse=True)
def _plain(monkeypatch):
    monkeypatch.setenv("AGENTNB_LAYOUT", "plain")


ROWS = (
    ChainEvent("e1", "goal.created", "user", "", "", (), "cause", -1),
    ChainEvent("e2", "object.created", "plan", "plan", "e1", ("task#1",), "self", 0, 1),
    ChainEvent("e3", "llm.requested", "write", "write", "e2", (), "effect", 1, 2),
    ChainEvent("e4", "task.done", "write", "write", "e2", ("task#1",), "effect", 1, 2),
)


def test_each_event_is_below_its_cause():
    shown = draw_chain("task#1", ROWS)
    boxes = {box.id: box for box in shown.picture.boxes}
    assert [(box.caption, box.lines, box.notes, box.count) for box in boxes.values()] == [
        ("e1 · user", ("goal.created",), (), "cause"),
        ("e2 · plan", ("object.created",), ("task#1",), "itself"),
        ("e3 · write", ("llm.requested",), (), "effect"),
        ("e4 · write", ("task.done",), ("task#1",), "effect"),
    ]
    assert [box.family for box in boxes.values()] == ["person", "event", "think", "event"]
    assert "self" in boxes["e2"].marks
    assert [(link.ends, link.label) for link in shown.picture.links] == [
        (("e1", "e2"), "plan"), (("e2", "e3"), "write"), (("e2", "e4"), "write"),
    ]  # fmt: skip


def test_it_has_a_text_form():
    assert draw_chain("task#1", ROWS).text.splitlines() == [
        "task#1: 4 events",
        "<- e1 goal.created: user from outside",
        "== e2 object.created about task#1: plan in step 1, after e1",
        "-> e3 llm.requested: write in step 2, after e2",
        "-> e4 task.done about task#1: write in step 2, after e2",
    ]


def test_the_nearest_events_of_a_long_chain_are_drawn():
    rows = [
        ChainEvent(f"e{n}", "t", "a", "a", f"e{n - 1}", (), "self" if n == 50 else "cause", n - 50) for n in range(101)
    ]
    shown = draw_chain("e50", rows, most=5)
    assert [box.id for box in shown.picture.boxes] == ["e48", "e49", "e50", "e51", "e52", ""]
    assert shown.text.splitlines()[-1] == "and 96 more events; 5 are drawn"


def test_hostile_words_remain_text():
    rows = [ChainEvent(text, text, text, text, HOSTILE[0], (text,), "effect", 1) for text in HOSTILE]
    svg = draw_chain(HOSTILE[0], rows).svg
    ET.fromstring(svg)
    assert "<script" not in svg
