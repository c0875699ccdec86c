"""Runs inside Pyodide, by `await main()`: what a person does in a browser, checked. The last line it prints says OK."""

from __future__ import annotations

import asyncio
import sys
import time


async def main() -> None:
    assert sys.platform == "emscripten"
    began = time.perf_counter()
    import agentnb as nb

    imported = time.perf_counter() - began
    session = nb.Session(nb.samples("triage"), {"ticket": "My invoice is wrong"}, answers=["approve"])
    session.step()
    assert session.position == 1
    assert session.back().position == 0
    session.run()
    assert session.status in {"finished", "waiting"}, session.status
    steps = session.position
    session.goto(1)
    assert session.why(1).step == 1

    graph = page_graph()
    tools_and_async_nodes(nb, graph)
    assert (await nb.Session(nb.load(graph), {"n": 3}).arun()).steps[-1].node_id == "later"
    stores(nb, graph)
    await cockpit(nb)
    print(f"OK: imported in {imported:.1f} s, {steps} steps of triage, the cockpit moved")  # noqa: T201  (the outcome)


def page_graph():
    """Return a graph with a tool, a rule and an async node."""
    import networkx as nx

    async def later(total):
        await asyncio.sleep(0.01)
        return {"total": total + 1}

    graph = nx.DiGraph(name="page", entry="ask")
    graph.add_node("ask", kind="tool", function=lambda n: {"total": n}, inputs={"n": "n"})
    graph.add_node("later", function=later, inputs={"total": "total"})
    graph.add_edge("ask", "later", when={"<": [{"var": "total"}, 10]})
    return graph


def tools_and_async_nodes(nb, graph):
    """`run()` makes them without a loop of its own; stepping into them is refused."""
    session = nb.Session(nb.load(graph), {"n": 3})
    session.run()
    assert (session.status, session.board["total"]) == ("finished", 4), session.status
    assert session.who_wrote("total") == 2
    fork = session.fork(at=1, edit={"total": 8})
    fork.run()
    assert fork.board["total"] == 9
    refused = ""
    try:
        nb.Session(nb.load(graph), {"n": 3}).step_into()
    except nb.ExecutionError as error:
        refused = str(error)
    assert "X534" in refused, "step_into() must be refused"


def stores(nb, graph):
    """A run survives in the file system of the page."""
    session = nb.Session(nb.load(graph), {"n": 3}, store="/tmp/runs.db", run_id="one")
    session.run()
    session.close()
    assert nb.open("/tmp/runs.db", "one").goto(1).board["total"] == 3


async def cockpit(nb):
    """The widget's state, which a page shows, follows a press on Step."""
    session = nb.Session(nb.samples("triage"), {"ticket": "My invoice is wrong"}, answers=["approve"])
    widget = nb.Debugger(session)
    state = widget.get_state()
    assert "<svg" in state["svg"]  # drawn without Graphviz
    message = {"do": "step", "view": "a", "number": 1, "value": None, "target": None}
    widget._handle_custom_msg(message, [])  # what the page sends
    for _ in range(500):
        await asyncio.sleep(0.01)
        if session.position == 1 and widget.get_state() != state:
            return
    raise AssertionError(f"the cockpit did not move: {session!r}")
