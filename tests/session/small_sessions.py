"""Small networkx graphs and the sessions that run them, for the tests of sessions, kinds and magics."""

from __future__ import annotations

import networkx as nx

from agentnb.load import load
from agentnb.session import Session


def graph(*names, name="made", **functions):
    """Return a line of function nodes; a node without a function counts itself on the board under its own name."""
    made = nx.MultiDiGraph(name=name)
    for each in names:
        made.add_node(each, function=functions.get(each, counter(each)))
    nx.add_path(made, names)
    return made


def counter(key):
    return lambda board: {key: board.get(key, 0) + 1}


def add(n):
    return {"n": n + 1}


def counting(limit=3):
    """Return a cycle: `add` counts n up, `check` ends it when n has come to `limit`, and `done` says so."""
    made = nx.DiGraph(name="counting")
    made.add_node("add", function=add, inputs={"n": "n"})
    made.add_node("check", kind="noop")
    made.add_node("done", function=lambda board: {"end": board["n"]})
    made.add_edge("add", "check")
    made.add_edge("check", "done", when=f"n >= {limit}")
    made.add_edge("check", "add")
    made.graph["entry"] = "add"
    return made


def asking():
    """Return a line that asks a person between two functions."""
    made = graph("before", "after")
    made.remove_edge("before", "after")
    made.add_node("ask", kind="human", prompt="Go on?", options=["yes", "no"], output="answer")
    made.add_edge("before", "ask")
    made.add_edge("ask", "after")
    return made


def broken(error=None):
    """Return a line whose middle node fails until the board has `fixed`."""

    def middle(board):
        if not board.get("fixed"):
            raise error or ValueError("it broke")
        return {"middle": "fine"}

    return graph("first", "middle", "last", middle=middle)


def calling(answer=lambda word: f"about {word}", **attributes):
    """Return a line with a tool in the middle, `look`, which is given the board's `word`."""
    made = graph("before", "after")
    made.remove_edge("before", "after")
    made.add_node("look", kind="tool", function=answer, inputs={"word": "word"}, **attributes)
    made.add_edge("before", "look")
    made.add_edge("look", "after")
    return made


def looping(body, **attributes):
    """Return a loop `again` around a graph, with `done` behind it."""
    made = nx.DiGraph(name="looping")
    made.add_node("again", kind="loop", graph=body, **attributes)
    made.add_node("done", function=counter("done"))
    made.add_edge("again", "done")
    return made


def fan(*branches, **functions):
    """Return a node that opens parallel edges to these nodes, a join `meet`, and `after`."""
    made = nx.MultiDiGraph(name="fan")
    made.add_node("open", kind="noop")
    for each in branches:
        made.add_node(each, function=functions.get(each, counter(each)))
        made.add_edge("open", each, kind="parallel")
        made.add_edge(each, "meet")
    made.add_node("meet", kind="join")
    made.add_node("after", function=counter("after"))
    made.add_edge("meet", "after")
    return made


def session(made, inputs=None, **options):
    return Session(load(made), inputs, **options)


def path(session):
    """Return the nodes of every step up to where the session stands, with a mark for what was not a plain turn."""
    found = []
    for step in session.trace.steps[: session.position]:
        phase = "" if step.phase == "run" else f" {step.phase}"
        status = "" if step.status == "ok" else f" {step.status}"
        found.append(f"{step.node_id}{phase}{status}")
    return found


def boards(session):
    """Step to where it stops, and return the board after each step, the start first."""
    found = [dict(session.board)]
    while session.step() is not None:
        found.append(dict(session.board))
        if session.status == "failed":
            break
    return found
