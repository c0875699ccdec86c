"""What holds in WebAssembly, where there are no threads and some libraries are missing, tried here."""

from __future__ import annotations

import asyncio
import sys
import threading

import networkx as nx
import pytest

import agentnb as nb
from agentnb.scenarios.compare import measure_likeness

MISSING = ("datalogic_py", "greenlet", "psutil", "rapidfuzz", "pygraphviz")


@pytest.fixture(autouse=True)
def browser(monkeypatch):
    """Behave as in a browser: the platform is named so, the libraries without a wheel are gone, no thread starts."""
    monkeypatch.setattr(sys, "platform", "emscripten")
    for name in MISSING:
        monkeypatch.setitem(sys.modules, name, None)

    def refuse(_thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)


def recipe(*, wait=0.001):
    """Return a recipe with a function, a tool, an async node and a route by a rule."""

    async def later(total):
        await asyncio.sleep(wait)
        return {"total": total + 1}

    graph = nx.DiGraph(name="page", entry="ask")
    graph.add_node("ask", kind="tool", function=lambda n: {"total": n}, inputs={"n": "n"})
    graph.add_node("later", function=later, inputs={"total": "total"})
    graph.add_node("end", function=lambda total: {"done": total}, inputs={"total": "total"})
    graph.add_edge("ask", "later", when={"<": [{"var": "total"}, 10]})
    graph.add_edge("ask", "end")
    graph.add_edge("later", "end")
    return nb.load(graph)


def test_run_and_step_execute_tools_and_async_nodes_without_an_event_loop():
    session = nb.Session(recipe(), {"n": 3})
    session.run()
    assert (session.status, session.board["done"]) == ("finished", 4)
    assert [step.node_id for step in session.trace.steps] == ["ask", "later", "end"]
    session.back(2)
    session.step()
    assert session.board["total"] == 4


def test_run_and_step_work_while_the_event_loop_of_the_page_runs():
    async def cell():
        session = nb.Session(recipe(), {"n": 3})
        session.step()
        session.run()
        assert asyncio.current_task() is not None
        other = await nb.Session(recipe(), {"n": 20}).arun()
        return session.board["done"], other.steps[-1].outputs

    assert asyncio.run(cell()) == (4, {"done": 20})


def test_background_runs_use_the_event_loop_of_the_page():
    async def cell():
        session = nb.Session(recipe(), {"n": 3}).start()
        await session.wait(5)
        return session.status

    assert asyncio.run(cell()) == "finished"


def test_an_await_on_the_page_is_a_problem_that_suggests_arun():
    async def waits():
        await asyncio.get_running_loop().create_future()

    graph = nx.DiGraph(name="page")
    graph.add_node("wait", function=waits)

    async def cell():
        session = nb.Session(nb.load(graph))
        with pytest.raises(nb.ExecutionError, match=r"X533(.|\n)*await session.arun\(\)"):
            session.run()
        assert session.position == 0

    asyncio.run(cell())


def test_step_into_is_rejected_with_a_message():
    with pytest.raises(nb.ExecutionError, match="X534"):
        nb.Session(recipe(), {"n": 3}).step_into()


@pytest.mark.parametrize("durability", ["step", "batch"])
def test_runs_are_stored_and_reopened(tmp_path, durability):
    place = tmp_path / "runs.db"
    session = nb.Session(recipe(), {"n": 3}, store=place, run_id="one", durability=durability)
    session.run()
    session.close()
    reopened = nb.open(place, "one")
    assert reopened.goto(1).board["total"] == 3
    assert list(nb.runs(place)["status"]) == ["finished"]


def test_similarity_equals_that_of_difflib():
    assert measure_likeness("Good morning", "Good evening") == pytest.approx(0.75)


def test_a_large_drawing_is_rendered_at_once():
    from agentnb.ui.debugger import Debugger
    from agentnb.ui.graph_view import query_drawing

    graph = nx.path_graph([f"n{number}" for number in range(400)], create_using=nx.DiGraph(name="large"))
    for node in graph:
        graph.nodes[node]["function"] = dict
    session = nb.Session(nb.load(graph))
    assert Debugger(session) is not None
    assert "<svg" in query_drawing(session, None)["svg"]
