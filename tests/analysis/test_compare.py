"""Where two runs parted, and everything that differs after that."""

from __future__ import annotations

from collections import Counter
from itertools import count

import networkx as nx
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import agentnb as nb
from agentnb.errors import ExecutionError
from tests.analysis.random_recipes import INPUTS, KEYS, programs


def counting(factor=2, name="count"):
    graph = nx.DiGraph(name=name, entry="add")
    graph.add_node("add", function=lambda n: {"n": n + 1}, inputs={"n": "n"})
    graph.add_node("scale", function=lambda n: {"scaled": n * factor}, inputs={"n": "n"})
    graph.add_node("end", function=lambda board: {"out": board["limit"] + 1})
    graph.add_edge("add", "add", when="n < limit")
    graph.add_edge("add", "scale")
    graph.add_edge("scale", "end")
    return nb.load(graph)


def ran(recipe=None, **inputs):
    session = nb.Session(recipe or counting(), {"n": 0, "limit": 2, **inputs})
    session.run()
    return session


def test_equal_runs_do_not_differ():
    comparison = nb.compare(ran(), ran())
    assert comparison.first_divergence is None
    assert set(comparison.to_frame()["change"]) == {"same"}
    assert "do not differ" in repr(comparison)
    assert comparison.slices == (None, None)


def test_an_additional_iteration_of_a_loop_shifts_nothing():
    a, b = ran(), ran()
    b = b.fork(at=0, edit={"limit": 3})
    b.run()
    frame = nb.compare(a, b).to_frame()
    assert list(frame.columns) == ["change", "node", "frame", "visit", "step_a", "step_b", "paths"]
    only = frame[frame["change"] == "only_b"]
    assert only[["node", "visit", "step_b"]].to_dict("records") == [{"node": "add", "visit": 3, "step_b": 3}]
    scale = frame[frame["node"] == "scale"].iloc[0]
    assert (scale["change"], scale["step_a"], scale["step_b"], scale["paths"]) == ("differs", 3, 4, ["scaled"])


def test_the_first_divergence_names_step_node_path_and_both_values():
    divergence = nb.compare(ran(), ran(counting(factor=5))).first_divergence
    assert (divergence.step_a, divergence.step_b, divergence.node, divergence.path, divergence.a, divergence.b) == (
        3, 3, "scale", "scaled", 4, 10,
    )  # fmt: skip
    assert "'scaled' was written as 4 in a and 10 in b" in divergence.reason


def test_inputs_that_differ_are_the_first_divergence():
    comparison = nb.compare(ran(), ran(limit=3))
    divergence = comparison.first_divergence
    assert (divergence.step_a, divergence.step_b, divergence.node, divergence.path, divergence.a, divergence.b) == (
        0,
        0,
        None,
        "limit",
        2,
        3,
    )
    assert comparison.to_frame().iloc[0]["step_a"] == 0


def test_the_causes_of_the_divergence_are_reported_for_both_runs():
    comparison = nb.compare(ran(), ran(counting(factor=5)))
    one, other = comparison.slices
    assert one.steps == other.steps == [0, 1, 2, 3]
    assert "what led to it in a:" in repr(comparison)
    assert "step 3, 'scale': write scaled" in repr(comparison)


def test_a_fork_with_an_edit_diverges_where_the_person_edited():
    session = ran()
    fork = session.fork(at=2, edit={"n": 7})
    fork.run()
    divergence = nb.compare(session, fork).first_divergence
    assert (divergence.step_a, divergence.step_b, divergence.path, divergence.a, divergence.b) == (2, 2, "n", 2, 7)
    assert "a person's edit" in divergence.reason


def test_nested_values_are_reported_by_their_path():
    def answering(value):
        graph = nx.DiGraph(name="deep", entry="say")
        graph.add_node("say", function=lambda board: {"answer": {"text": "hi", "score": [1, value]}})
        return ran(nb.load(graph))

    divergence = nb.compare(answering(2), answering(3)).first_divergence
    assert (divergence.path, divergence.a, divergence.b) == ("answer.score.1", 2, 3)


def test_failures_routes_calls_and_events_are_compared():
    def made(tool):
        graph = nx.DiGraph(name="calls", entry="ask")
        graph.add_node("ask", kind="tool", function="look_up", inputs={"word": "word"})
        graph.add_node("left", function=lambda board: {})
        graph.add_node("right", function=lambda board: {})
        graph.add_edge("ask", "left", when="size > 1")
        graph.add_edge("ask", "right")
        session = nb.Session(nb.load(graph), {"word": "x", "size": 0}, tools={"look_up": tool})
        session.run()
        return session

    def fails(word):
        raise ValueError("no such word")

    one, two = made(lambda word: {"size": 1}), made(lambda word: {"size": 2})
    assert nb.compare(one, two).to_frame()["paths"][0] == ["size", "route", "call:look_up.result.size"]
    differences = nb.compare(one, made(fails)).differences
    assert [each.path for each in differences if each.path == "error"] == ["error"]
    assert any("failed with" in each.reason for each in differences)


def test_traces_stored_runs_and_sessions_can_be_compared(tmp_path):
    a, b = ran(), ran(counting(factor=5))
    a.trace.to_json(tmp_path / "a.json")
    b.save(tmp_path / "b.db")
    comparison = nb.compare(nb.SimulationTrace.read(tmp_path / "a.json"), nb.open(tmp_path / "b.db"))
    assert comparison.first_divergence == nb.compare(a, b).first_divergence
    assert comparison.to_frame().equals(nb.compare(a, b).to_frame())
    assert "only" not in comparison.draw().svg.split("</style>")[1]


def test_a_run_that_ended_earlier_is_reported():
    a, b = ran(), nb.Session(counting(), {"n": 0, "limit": 2})
    b.run(max_steps=3)
    divergence = nb.compare(a, b).first_divergence
    assert (divergence.step_a, divergence.step_b, divergence.node) == (4, None, "end")
    assert "in a only; b ended after step 3" in divergence.reason


def test_an_object_that_is_not_a_run_is_rejected():
    with pytest.raises(ExecutionError, match="A101") as error:
        nb.compare(ran(), counting())
    assert "nb.Session(recipe, inputs) makes" in str(error.value)


def test_both_routes_are_in_one_drawing():
    edited = nx.DiGraph(name="count", entry="add")
    edited.add_node("add", function=lambda n: {"n": n + 1}, inputs={"n": "n"})
    edited.add_node("other", function=lambda n: {"scaled": n}, inputs={"n": "n"})
    edited.add_edge("add", "add", when="n < limit")
    edited.add_edge("add", "other")
    comparison = nb.compare(ran(), ran(nb.load(edited)))
    svg = comparison.draw().svg.split("</style>")[1]
    assert 'family-act visited only-b" data-node="other"' in svg
    assert 'family-act visited only-a" data-node="scale"' in svg
    assert "parted" in svg
    assert "only-a" not in nb.compare(ran(), ran()).draw().svg.split("</style>")[1]


def test_secrets_are_masked_in_every_view():
    def kept(secret):
        graph = nx.DiGraph(name="secret", entry="sign")
        graph.add_node("sign", function=lambda board: {"password": secret, "size": len(secret)})
        return ran(nb.load(graph))

    comparison = nb.compare(kept("hunter2-hunter2"), kept("swordfish-9"))
    shown = [
        repr(comparison),
        repr(comparison.first_divergence),
        comparison._repr_html_(),
        comparison.to_frame().to_string(),
    ]
    assert all("hunter2" not in text and "swordfish" not in text for text in shown)


def test_branches_that_ran_in_another_order_are_the_same():
    recipe = nb.samples("fanout")
    a, b = (nb.Session(recipe, {}, validate_inputs=False) for _ in range(2))
    a.run()
    while b.step():
        pass
    assert nb.compare(a, b).first_divergence is None


@pytest.mark.parametrize("name", ["refine", "search", "research", "document", "rag", "team", "incident", "moderation"])
def test_a_sample_does_not_differ_from_itself(name):
    def made():
        session = nb.Session(nb.samples(name), {}, validate_inputs=False, seed=3, clock=nb.FrozenClock())
        if name == "team":
            session.emit("goal.created", {"goal": "batteries"})
        session.run(max_steps=60)
        return session

    comparison = nb.compare(made(), made())
    assert comparison.first_divergence is None
    assert comparison._repr_html_()


def test_a_fork_with_a_hypothesis_states_the_verdict():
    session = ran()
    right = session.fork(at=2, edit={"n": 7}, note="n was too small", expect="scaled > 10")
    wrong = session.fork(at=2, expect=lambda board: board["scaled"] > 10)
    assert (right.note, right.expectation_holds, session.expectation_holds) == ("n was too small", False, None)
    right.run()
    wrong.run()
    assert (right.expectation_holds, wrong.expectation_holds) == (True, False)
    assert "n was too small; expected scaled > 10: holds" in session.tree()
    assert "does not hold" in session.tree()
    assert nb.compare(session, right).verdicts == {"b": True}
    assert "b was expected to satisfy 'scaled > 10' (n was too small): it does" in repr(nb.compare(session, right))
    assert nb.compare(wrong, right).verdicts == {"a": False, "b": True}


def naive(a, b):
    """Return the rows of a comparison by joining the two tables of steps on node, frame and visit."""
    tables = []
    for session in (a, b):
        visits: Counter = Counter()
        edges = session.trace.frames.edges
        table = {}
        for step in session.trace.steps:
            visits[step.node_id] += 1
            taken = edges[edges["step"] == step.step]
            values = [None if value is pd.NA else value for value in taken["value"]]  # a condition's value counts, too
            route = [*zip(map(str, taken["target"]), values, strict=True)]
            table[step.node_id, visits[step.node_id]] = (step.step, dict(step.outputs), route)
        tables.append(table)
    results = {}
    for key in {**tables[0], **tables[1]}:
        one, other = tables[0].get(key), tables[1].get(key)
        change = "only_b" if one is None else "only_a" if other is None else (
            "same" if one[1:] == other[1:] else "differs")  # fmt: skip
        results[key] = (change, one and one[0], other and other[0])
    return results


@given(programs(), st.sampled_from(KEYS), st.integers(0, 60), st.one_of(st.none(), st.integers(0, 6)))
def test_random_runs_are_aligned_as_by_a_naive_join(program, key, value, change):
    assume(sum(line.asks is not None for line in program.lines) < 2)  # loops inside loops are aligned by their rounds
    a, b = program.session(), program.session({**INPUTS, key: value}, change)
    frame = nb.compare(a, b).to_frame()
    frame = frame[frame["node"].notna()]
    rows = {
        (row.node, row.visit): (row.change, None if row.change == "only_b" else row.step_a,
                                None if row.change == "only_a" else row.step_b)
        for row in frame.itertuples()
    }  # fmt: skip
    assert rows == naive(a, b)
    assert list(frame["step_a"].dropna()) == sorted(frame["step_a"].dropna())


# -- loops inside loops ------------------------------------------------------------------------------------------------


@st.composite
def nests(draw):
    """Draw the body of a run: nodes, and loops, each of which begins and ends with a node."""
    shape = st.deferred(lambda: st.just("node") | st.lists(shape, max_size=3))
    numbers = count()

    def fill(item):
        if item == "node":
            return next(numbers)
        nest = [next(numbers), *map(fill, item)]
        return nest if len(nest) == 1 or isinstance(nest[-1], int) else [*nest, next(numbers)]

    return [next(numbers), *map(fill, draw(st.lists(shape, min_size=1, max_size=3)))]


def make_nest(body, repeats):
    """Return the recipe of a body: the last node of a loop leads back if `repeats` says so of the step."""
    graph = nx.MultiDiGraph(name="nest", entry="n0")
    ends = []

    def last(item):
        return item if isinstance(item, int) else last(item[-1])

    def add(item):
        if isinstance(item, int):
            graph.add_node(f"n{item}", function=lambda board: {"turn": board["turn"] + 1})
            for end in ends:
                graph.add_edge(f"n{end}", f"n{item}")
            ends[:] = [item]
            return
        for each in item:
            add(each)
        again = {"when": lambda board: repeats[board["turn"] % len(repeats)]}
        graph.add_edge(f"n{last(item)}", f"n{item[0]}", **again)

    for each in body:
        add(each)
    # A condition comes before the edge that leads on.
    ordered = nx.MultiDiGraph(**graph.graph)
    ordered.add_nodes_from(graph.nodes(data=True))
    ordered.add_edges_from(sorted(graph.edges(data=True), key=lambda edge: "when" not in edge[2]))
    return nb.load(ordered)


def walk_nest(body, repeats, most):
    """Return the steps of a body by what they are: node -> number, with the rounds of all loops around it."""
    results, turn = {}, 0

    def walk(items, rounds):
        nonlocal turn
        for item in items:
            if turn >= most:
                return
            if isinstance(item, int):
                turn += 1
                results[item, rounds] = turn
                continue
            number, continues = 0, True
            while continues and turn < most:
                number += 1
                walk(item, (*rounds, number))
                continues = repeats[turn % len(repeats)]

    walk(body, ())
    return results


REPEATS = st.lists(st.booleans(), min_size=1, max_size=7).filter(lambda found: not all(found))


@given(nests(), REPEATS, REPEATS)
def test_loops_inside_loops_are_aligned_as_by_a_naive_walk(body, one, other):
    sessions = []
    for repeats in (one, other):
        session = nb.Session(make_nest(body, repeats), {"turn": 0})
        session.run(max_steps=60)
        sessions.append(session)
    walked = [walk_nest(body, repeats, 60) for repeats in (one, other)]
    assert [len(session.trace) for session in sessions] == [len(steps) for steps in walked]
    expected = {(walked[0].get(key), walked[1].get(key)) for key in {**walked[0], **walked[1]}}
    rows = nb.compare(*sessions).rows
    assert {(row.pair.step_a, row.pair.step_b) for row in rows} == expected
    assert len(rows) == len(expected)


def test_an_additional_iteration_of_an_inner_loop_shifts_nothing_in_later_iterations():
    body = [0, [1, [2], 3]]
    a = nb.Session(make_nest(body, [number == 4 for number in range(8)]), {"turn": 0})
    b = nb.Session(make_nest(body, [number in (3, 5) for number in range(9)]), {"turn": 0})
    for session in (a, b):
        session.run()
    frame = nb.compare(a, b).to_frame()
    only = frame[frame["change"] == "only_b"]
    assert only[["node", "step_b", "visit"]].to_dict("records") == [{"node": "n2", "step_b": 4, "visit": 2}]
    assert "only_a" not in set(frame["change"])


def test_regions_that_are_opened_again_are_aligned_by_the_surrounding_iterations():
    def made(rounds, times):
        graph = nx.DiGraph(name="rounds", entry="begin")
        graph.add_node("begin", function=lambda board: {"round": board["round"] + 1, "n": 0})
        graph.add_node("inner", function=lambda board: {"n": board["n"] + 1})
        graph.add_node("end", function=lambda board: {"out": board["round"]})
        graph.add_edge("begin", "inner")
        graph.add_edge("inner", "inner", when=lambda board: board["n"] < times[board["round"] - 1])
        graph.add_edge("inner", "end")
        graph.add_edge("end", "begin", when=lambda board: board["round"] < rounds)
        session = nb.Session(nb.load(graph), {"round": 0})
        session.run()
        return session

    frame = nb.compare(made(3, [1, 2, 1]), made(3, [3, 2, 1])).to_frame()
    ends = frame[frame["node"] == "end"]
    assert list(ends["change"]) == ["same"] * 3
    assert list(frame[frame["change"] == "only_b"]["node"]) == ["inner"] * 2


def test_a_failure_comes_before_what_was_not_written_because_of_it():
    def halving(n):
        return {"half": 10 // n}

    graph = nx.DiGraph(name="halves", entry="halve")
    graph.add_node("halve", function=halving, inputs={"n": "n"})
    runs = [nb.Session(nb.load(graph), {"n": n}) for n in (5, 5)]
    runs[1] = runs[1].fork(at=0, edit={"n": 0})
    for run in runs:
        run.run()
    differences = nb.compare(*runs).rows[0].differences
    assert [each.path for each in differences][:2] == ["error", "half"]
