from __future__ import annotations

import json
from functools import reduce

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

import agentnb as nb
from agentnb.engine.persistence import flush_timer, journal
from agentnb.engine.persistence.journal import to_json_text
from agentnb.store import MemoryLog

plain = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
documents = st.recursive(plain, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))


@given(documents)
def test_a_document_survives_a_round_trip(document):
    assert json.loads(to_json_text(document)) == document


@pytest.mark.parametrize(
    "document",
    [["half of a pair \ud800"], {"\udc00": 1}, reduce(lambda inner, _: [inner], range(400), 1), [2**80, -(2**70)]],
    ids=["text", "name", "deep", "large"],
)
def test_rare_fields_are_written_too(document):
    assert json.loads(to_json_text(document)) == document


def make_batched_session(monkeypatch):
    """Return a session that saves later, and the timer of its journal, which waits for nothing else."""
    timer = flush_timer._Timer()
    monkeypatch.setattr(flush_timer, "_TIMER", timer)
    graph = nx.DiGraph(name="line")
    for name in "abcd":
        graph.add_node(name, function=dict)
    nx.add_path(graph, "abcd")
    durability = {"steps": 99, "ms": 600_000}
    return nb.Session(nb.load(graph), {}, store=MemoryLog(), run_id="run", durability=durability), timer


def test_one_flush_is_due_for_all_steps_of_a_batch(monkeypatch):
    session, timer = make_batched_session(monkeypatch)
    session.run()
    assert len(timer._due) == 1


def test_without_threads_nothing_is_due(monkeypatch):
    monkeypatch.setattr(journal, "has_threads", lambda: False)
    session, timer = make_batched_session(monkeypatch)
    session.run()
    assert timer._due == []


def test_documents_are_compact_and_not_ascii_escaped():
    assert to_json_text({"a": [1, "é"], "b": None}) == '{"a":[1,"é"],"b":null}'
