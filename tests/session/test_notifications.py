"""test_notifications: a change in place is announced once per session."""

from __future__ import annotations

import asyncio
import warnings

import networkx as nx

import agentnb as nb


def add(items):
    items.append(len(items))


def appending(**options):
    graph = nx.DiGraph(name="appending", entry="look")
    graph.add_node("look", function=lambda board: {"seen": len(board["items"])})
    graph.add_node("first", function=add, inputs={"items": "items"})
    graph.add_node("second", function=add, inputs={"items": "items"})
    graph.add_edges_from([("look", "first"), ("first", "second")])
    return nb.Session(nb.load(graph), {"items": []}, **options)


def warned(action):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        action()
    return [str(each.message) for each in caught if "in place" in str(each.message)]


def test_the_first_change_in_place_is_a_warning_with_step_node_and_key():
    session = appending()
    assert warned(session.step) == []
    (text,) = warned(session.step)
    assert text.startswith("step 2, 'first', changed 'items' in place.")
    assert "breakpoints.add(in_place=True)" in text
    assert warned(session.step) == []
    writes = session.trace.frames.writes
    assert list(writes[writes["in_place"]]["step"]) == [2, 3]


def test_a_run_warns_once_and_names_the_line_of_the_caller():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        appending().run()
    (each,) = caught
    assert each.filename == __file__
    assert len(warned(lambda: asyncio.run(appending().arun()))) == 1


def test_a_fork_or_a_reopened_run_does_not_repeat_a_warning(tmp_path):
    session = appending(store=tmp_path / "runs.db", run_id="run")
    assert len(warned(session.run)) == 1
    assert warned(session.fork(at=1).run) == []
    session.close()
    reopened = nb.open(tmp_path / "runs.db", "run", recipe=session.recipe)
    assert warned(reopened.back) == []
    assert warned(appending().fork(at=0, edit={"items": [1]}).run) != []
