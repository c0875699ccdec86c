"""Breakpoints on in-place changes, on no progress, and on a share of the budget."""

from __future__ import annotations

import networkx as nx
import pytest

import agentnb as nb
from agentnb.session.progress import Progress
from tests.session.small_sessions import counting, graph, looping, session


def appending():
    """Return a line whose second node appends to the list that it read, without assigning it."""

    def append(board):
        board["log"].append("seen")

    return graph("first", "append", "last", first=lambda: {"log": []}, append=append)


def circling(period=3):
    """Return a cycle whose counter starts again after `period` rounds, so that its boards come back."""
    built_graph = nx.DiGraph(name="circling", entry="turn")
    built_graph.add_node(
        "turn", function=lambda n, log: {"n": (n + 1) % period, "log": log}, inputs={"n": "n", "log": "log"}
    )
    built_graph.add_node("check", kind="noop")
    built_graph.add_edge("turn", "check")
    built_graph.add_edge("check", "turn")
    return built_graph


def stops(run, **clauses):
    point = run.breakpoints.add(**clauses)
    results = []
    for _ in range(20):
        run.run()
        if run.status != "paused" or run.stopped_by is not point:
            break
        results.append(run.position)
    return results


# -- in place ------------------------------------------------------------------------------------------------------


def test_a_run_stops_after_a_value_was_changed_in_place():
    assert stops(session(appending()), in_place=True) == [2]
    assert stops(session(appending()), in_place=True, key="log") == [2]
    assert stops(session(appending()), in_place=True, key="first") == []
    assert stops(session(appending()), in_place=True, node="append", side="after") == [2]
    assert stops(session(counting(), {"n": 0}), in_place=True) == []


def test_a_key_that_was_assigned_beside_one_changed_in_place_does_not_count():
    def both(board):
        board["log"].append(1)
        return {"other": 1}

    built_graph = graph("first", "both", "last", first=lambda: {"log": [], "other": 0}, both=both)
    assert stops(session(built_graph), in_place=True, key="other") == []
    assert stops(session(built_graph), in_place=True, key="log") == [2]


# -- no progress ---------------------------------------------------------------------------------------------------


def test_a_run_stops_before_a_node_that_had_the_same_board_at_an_earlier_visit():
    run = session(circling(), {"n": 0, "log": []}, budget={"max_steps": 12})
    assert stops(run, no_progress=True) == [6, 7, 8, 9, 10, 11]
    run = session(circling(), {"n": 0, "log": []}, budget={"max_steps": 12})
    assert stops(run, no_progress=True, node="check") == [7, 9, 11]
    run = session(circling(), {"n": 0, "log": []}, budget={"max_steps": 12})
    assert stops(run, no_progress=True, node="turn", side="after") == [7, 9, 11]


def test_a_run_whose_boards_differ_makes_progress():
    assert stops(session(counting(), {"n": 0}), no_progress=True) == []


@pytest.mark.parametrize(
    ("one", "other"), [(1, True), (0, 0.5), ([1, 2], [2, 1]), ({"a": [1]}, {"a": [2]}), ("", None)]
)
def test_different_values_are_progress(one, other):
    built_graph = nx.DiGraph(name="swap", entry="swap")
    built_graph.add_node("swap", function=lambda v, w: {"v": w, "w": v}, inputs={"v": "v", "w": "w"})
    built_graph.add_edge("swap", "swap")
    run = session(built_graph, {"v": one, "w": other}, budget={"max_steps": 6})
    assert stops(run, no_progress=True)[0] == 2


@pytest.mark.parametrize("size", [3, 40])
def test_long_values_are_compared_in_full(size):
    def turn(board):
        values = list(board["values"])
        values[size // 2] = (values[size // 2] + 1) % 4
        return {"values": values}

    built_graph = nx.DiGraph(name="long", entry="turn")
    built_graph.add_node("turn", function=turn)
    built_graph.add_edge("turn", "turn")
    run = session(built_graph, {"values": [0] * size}, budget={"max_steps": 6})
    assert stops(run, no_progress=True) == [4, 5]


def test_a_breakpoint_added_late_knows_the_earlier_visits():
    run = session(circling(), {"n": 0, "log": []}, budget={"max_steps": 20})
    run.step(5)
    assert stops(run, no_progress=True)[0] == 6


def test_an_edit_is_progress():
    run = session(circling(), {"n": 0, "log": []}, budget={"max_steps": 20})
    point = run.breakpoints.add(no_progress=True)
    run.run()
    assert (run.position, run.stopped_by) == (6, point)
    run.edit({"log": ["changed"]})
    run.run()
    assert run.position == 12  # a full round later


def test_going_back_and_forward_again_finds_the_same_stops():
    run = session(circling(), {"n": 0, "log": []}, budget={"max_steps": 12})
    places = stops(run, no_progress=True)
    back = []
    for _ in range(len(places) + 1):
        run.run_back()
        back.append(run.position)
    assert back == [*reversed([at for at in places if at < 12]), 0]
    assert [run.run() and run.position for _ in places] == places


def test_an_edit_in_the_past_forgets_later_visits():
    run = session(circling(), {"n": 0, "log": []}, budget={"max_steps": 20})
    run.breakpoints.add(no_progress=True)
    run.run()
    run.goto(2)
    run.edit({"log": ["changed"]})
    run.run()
    assert run.position == 8  # a full round later


def test_a_fork_knows_the_visits_of_its_parent():
    run = session(circling(), {"n": 0, "log": []}, budget={"max_steps": 20})
    run.step(5)
    fork = run.fork()
    fork.breakpoints.add(no_progress=True)
    fork.run()
    assert fork.position == 6
    other = run.fork(at=3)
    other.edit({"log": ["changed"]})
    other.breakpoints.add(no_progress=True)
    other.run()
    assert other.position == 9
    other.run()
    assert other.position == 10


def test_each_frame_has_its_own_visits():
    built_graph = looping(graph("inner"), until="inner >= 3")
    assert stops(session(built_graph), no_progress=True) == []


def test_a_stored_run_is_examined_without_running_it(tmp_path):
    run = session(circling(), {"n": 0, "log": []}, budget={"max_steps": 12}, store=tmp_path / "runs.db", run_id="r")
    run.run()
    opened = nb.open(tmp_path / "runs.db", "r")
    opened.breakpoints.add(no_progress=True, node="check")
    results = []
    for _ in range(4):
        opened.run_back()
        results.append(opened.position)
    assert results == [11, 9, 7, 0]


# -- budget --------------------------------------------------------------------------------------------------------


def test_a_run_stops_once_at_a_share_of_its_budget():
    run = session(circling(), {"n": 0, "log": []}, budget={"max_steps": 10})
    assert stops(run, budget=0.75) == [8]
    assert (run.status, run.position) == ("exhausted", 10)
    run.run_back()
    assert run.position == 8


def test_each_limit_has_its_share():
    def answer(request):
        return nb.LLMResponse("fine", usage=nb.Usage(30, 10))

    built_graph = nx.DiGraph(name="talk", entry="say")
    built_graph.add_node("say", kind="llm", prompt="go on", output="said")
    built_graph.add_edge("say", "say")
    run = session(built_graph, llm=answer, budget={"max_tokens": 400, "max_steps": 10, "max_llm_calls": 9})
    assert stops(run, budget=0.5) == [5]
    run = session(built_graph, llm=answer, budget={"max_tokens": 400, "max_llm_calls": 4})
    assert stops(run, budget=0.5) == [2]


def test_a_run_without_limits_has_no_share():
    assert stops(session(counting(), {"n": 0}), budget=0.1) == []


# -- all three -----------------------------------------------------------------------------------------------------

NEW = [{"in_place": True}, {"no_progress": True}, {"budget": 0.8}]


@pytest.mark.parametrize("words", NEW)
def test_they_are_shown_saved_and_loaded(words, tmp_path):
    run = session(circling(), {"n": 0, "log": []})
    point = run.breakpoints.add(**words)
    description = {"in_place": "changed in place", "no_progress": "no progress", "budget": "budget 80%"}[
        next(iter(words))
    ]
    assert repr(point) == f"<Breakpoint 1: {description}; 0 hits>"
    name, value = next(iter(words.items()))
    assert run.breakpoints.to_frame()[name].tolist() == [value]
    other = session(circling(), {"n": 0, "log": []})
    (loaded,) = other.breakpoints.load(run.breakpoints.save(tmp_path / "points.json"))
    assert getattr(loaded, name) == value
    assert str(loaded) == description


def test_hits_are_counted():
    run = session(circling(), {"n": 0, "log": []}, budget={"max_steps": 12})
    assert stops(run, no_progress=True, on_hit=3, once=True) == [8]


@pytest.mark.parametrize("words", [
    {"budget": 0}, {"budget": 1.5}, {"budget": "0.8"}, {"budget": True}, {"budget": float("nan")}, {"in_place": "yes"},
    {"no_progress": 1}, {"call": "tool", "in_place": True}, {"call": "tool", "budget": 0.5},
])  # fmt: skip
def test_an_invalid_breakpoint_is_rejected(words):
    with pytest.raises(nb.ExecutionError, match="X120"):
        session(counting(), {"n": 0}).breakpoints.add(**words)


def test_a_disabled_option_is_not_a_clause():
    with pytest.raises(nb.ExecutionError, match="X116"):
        session(counting(), {"n": 0}).breakpoints.add(in_place=False, no_progress=False)


def test_they_do_not_affect_a_replay():
    run = session(circling(), {"n": 0, "log": []}, budget={"max_steps": 9})
    for words in NEW:
        run.breakpoints.add(**words, on_hit=100)
    run.run()
    plain = session(circling(), {"n": 0, "log": []}, budget={"max_steps": 9})
    plain.run()
    assert nb.compare(run, plain).to_frame()["change"].unique().tolist() == ["same"]
    assert run.replay().ok


def test_boards_are_compared_only_if_a_breakpoint_requires_it(monkeypatch):
    requests = []
    monkeypatch.setattr(Progress, "follow", lambda *_: requests.append(1))
    run = session(counting(), {"n": 0})
    run.breakpoints.add(in_place=True)
    run.breakpoints.add(budget=0.5)
    run.run()
    assert requests == []
