from __future__ import annotations

import json

import agentnb as nb
from agentnb.ui.positions import SOON, describe_positions
from tests.session.shape_sessions import session_of
from tests.ui import ticket_recipe


def test_the_frames_around_the_next_node_and_why_it_is_next():
    session = nb.Session(nb.samples("research"))
    session.step(8)
    found = describe_positions(session)
    assert [(frame["node"], frame["round"]) for frame in found["frames"]] == [(None, 1), ("each", 2), ("answer", 1)]
    assert found["next"] == [{"node": "archive", "why": "entry of 'look_up'", "turn": "start", "branch": None}]


def test_branches_that_wait_for_their_turn_are_all_told():
    session = session_of("branches")
    session.step()
    found = describe_positions(session)
    assert [(one["node"], one["branch"]) for one in found["next"]] == [("first", 0), ("second", 1)]
    assert found["frames"][-1]["branch"] == 0


def test_a_long_queue_is_cut():
    graph = nb.load(wide(SOON + 5))
    session = nb.Session(graph)
    session.step()
    assert (len(describe_positions(session)["next"]), describe_positions(session)["later"]) == (SOON, 5)


def wide(width):
    import networkx as nx

    graph = nx.MultiDiGraph(name="wide", entry="start")
    graph.add_node("start", function=dict)
    for number in range(width):
        graph.add_node(f"n{number}", function=dict)
        graph.add_edge("start", f"n{number}", kind="parallel")
    return graph


def test_breakpoints_and_watches_with_what_they_met():
    session = ticket_recipe.session("hello")
    session.breakpoints.add(node="tell")
    session.breakpoints.add(when="missing.deep > 1").enabled = False
    session.watch("category")
    session.run()
    found = describe_positions(session)
    assert [(row["text"], row["enabled"], row["hits"], row["met"]) for row in found["breakpoints"]] == [
        ("before 'tell'", True, 1, True),
        ("when missing.deep > 1", False, 0, False),
    ]
    assert found["watches"] == [["category", "'other'"]]
    assert json.loads(json.dumps(found)) == found


def test_a_watched_secret_is_masked():
    session = ticket_recipe.session()
    session.watch("api_key")
    assert ticket_recipe.KEY not in json.dumps(describe_positions(session))
