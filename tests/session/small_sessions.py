"""Small networkx graphs and the sessions that run them, for the tests of sessions, kinds and magics."""

from __future__ import annotations

import networkx as nx

from agentnb.load import load
from agentnb.session import Session


def graph(*names, name="made", **functions):
    """Return a line of function nodes; a node without a function counts itself on the board under its own name."""
    built_graph = nx.MultiDiGraph(name=name)
    for each in names:
        built_graph.add_node(each, function=functions.get(each, counter(each)))
    nx.add_path(built_graph, names)
    return built_graph


def counter(key):
    return lambda board: {key: board.get(key, 0) + 1}


def add(n):
    return {"n": n + 1}


def counting(limit=3):
    """Return a cycle: `add` counts n up, `check` ends it when n has come to `limit`, and `done` says so."""
    built_graph = nx.DiGraph(name="counting")
    built_graph.add_node("add", function=add, inputs={"n": "n"})
    built_graph.add_node("check", kind="noop")
    built_graph.add_node("done", function=lambda board: {"end": board["n"]})
    built_graph.add_edge("add", "check")
    built_graph.add_edge("check", "done", when=f"n >= {limit}")
    built_graph.add_edge("check", "add")
    built_graph.graph["entry"] = "add"
    return built_graph


def asking():
    """Return a line that asks a person between two functions."""
    built_graph = graph("before", "after")
    built_graph.remove_edge("before", "after")
    built_graph.add_node("ask", kind="human", prompt="Go on?", options=["yes", "no"], output="answer")
    built_graph.add_edge("before", "ask")
    built_graph.add_edge("ask", "after")
    return built_graph


def broken(error=None):
    """Return a line whose middle node fails until the board has `fixed`."""

    def middle(board):
        if not board.get("fixed"):
            raise error or ValueError("it broke")
        return {"middle": "fine"}

    return graph("first", "middle", "last", middle=middle)


def calling(answer=lambda word: f"about {word}", **attributes):
    """Return a line with a tool in the middle, `look`, which is given the board's `word`."""
    built_graph = graph("before", "after")
    built_graph.remove_edge("before", "after")
    built_graph.add_node("look", kind="tool", function=answer, inputs={"word": "word"}, **attributes)
    built_graph.add_edge("before", "look")
    built_graph.add_edge("look", "after")
    return built_graph


def looping(body, **attributes):
    """Return a loop `again` around a graph, with `done` behind it."""
    built_graph = nx.DiGraph(name="looping")
    built_graph.add_node("again", kind="loop", graph=body, **attributes)
    built_graph.add_node("done", function=counter("done"))
    built_graph.add_edge("again", "done")
    return built_graph


def fan(*branches, **functions):
    """Return a node that opens parallel edges to these nodes, a join `meet`, and `after`."""
    built_graph = nx.MultiDiGraph(name="fan")
    built_graph.add_node("open", kind="noop")
    for each in branches:
        built_graph.add_node(each, function=functions.get(each, counter(each)))
        built_graph.add_edge("open", each, kind="parallel")
        built_graph.add_edge(each, "meet")
    built_graph.add_node("meet", kind="join")
    built_graph.add_node("after", function=counter("after"))
    built_graph.add_edge("meet", "after")
    return built_graph


def session(made, inputs=None, **options):
    return Session(load(made), inputs, **options)


def path(session):
    """Return the nodes of every step up to where the session stands, with a mark for what was not a plain turn."""
    results = []
    for step in session.trace.steps[: session.position]:
        phase = "" if step.phase == "run" else f" {step.phase}"
        status = "" if step.status == "ok" else f" {step.status}"
        results.append(f"{step.node_id}{phase}{status}")
    return results


def boards(session):
    """Step to where it stops, and return the board after each step, the start first."""
    states = [dict(session.board)]
    while session.step() is not None:
        states.append(dict(session.board))
        if session.status == "failed":
            break
    return states
