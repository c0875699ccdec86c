"""What the runs visited, and which parts the wrong ones have in common."""

from __future__ import annotations

from collections import Counter

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

import agentnb as nb
from agentnb.errors import ExecutionError
from tests.analysis.corpus import UNSEEN
from tests.analysis.random_recipes import INPUTS, KEYS, programs


def sorting():
    graph = nx.DiGraph(name="sorting", entry="look")
    graph.add_node("look", function=lambda n: {"seen": n}, inputs={"n": "n"})
    graph.add_node("small", function=lambda n: {"out": n}, inputs={"n": "n"})
    graph.add_node("large", function=lambda n: {"out": -n}, inputs={"n": "n"})
    graph.add_node("never", function=lambda n: {"out": n}, inputs={"n": "n"})
    graph.add_edge("look", "never", when="n > 100")
    graph.add_edge("look", "large", when="n > 5")
    graph.add_edge("look", "small")
    recipe = nb.load(graph)
    sessions = [nb.Session(recipe, {"n": n}, run_id=f"n{n}") for n in range(10)]
    for session in sessions:
        session.run()
    return sessions


def test_it_counts_nodes_edges_and_the_outcomes_of_conditions():
    coverage = nb.coverage(sorting())
    frame = coverage.to_frame()
    assert list(frame.columns) == ["element", "kind", "outcome", "visits", "runs"]
    counts = {(row.element, row.outcome if row.kind == "condition" else None): row.visits for row in frame.itertuples()}
    assert counts == {
        ("look", None): 10, ("small", None): 6, ("large", None): 4, ("never", None): 0,
        ("look -> never", None): 0, ("look -> large", None): 4, ("look -> small", None): 6,
        ("look: n > 100", True): 0, ("look: n > 100", False): 10,
        ("look: n > 5", True): 4, ("look: n > 5", False): 6,
    }  # fmt: skip
    assert coverage.unvisited == ["never", "look -> never", "look: n > 100 is True"]
    assert repr(coverage) == "<Coverage of 10 runs: 3 of 4 nodes, 2 of 3 edges, 3 of 4 outcomes of conditions>"


def test_the_element_that_only_wrong_runs_visit_is_the_first_suspect():
    runs = sorting()
    ranking = nb.suspects(runs, lambda run: run.board["out"] >= 0)
    assert list(ranking.columns) == ["element", "kind", "failed", "passed", "ochiai"]
    assert ranking.iloc[0].to_dict() == {"element": "large", "kind": "node", "failed": 4, "passed": 0, "ochiai": 1.0}
    assert ranking.equals(nb.suspects(runs, [run.board["out"] >= 0 for run in runs]))
    assert ranking["ochiai"].is_monotonic_decreasing
    look = ranking[ranking["element"] == "look"].iloc[0]
    assert look["ochiai"] == pytest.approx(4 / (4 * 10) ** 0.5)


def test_both_are_drawn_as_heat_maps():
    runs = sorting()
    for drawing in (nb.coverage(runs).draw(), nb.suspects(runs, lambda run: run.board["out"] >= 0).draw()):
        svg = drawing.svg.split("</style>")[1]
        assert "heat-5" in svg
        assert "heat-" not in svg.split('data-node="never"')[0].rsplit("<g", 1)[1]
        assert "fillcolor" in drawing.dot
    assert set(nb.coverage(runs)._repr_mimebundle_()) >= {"image/svg+xml", "text/plain"}


def test_a_step_that_failed_is_an_element():
    def fails(n):
        raise ValueError("no")

    graph = nx.DiGraph(name="fails", entry="try")
    graph.add_node("try", function=fails, inputs={"n": "n"})
    session = nb.Session(nb.load(graph), {"n": 1})
    session.run()
    assert nb.suspects([session], [False]).iloc[0]["element"] == "try failed"


def test_decisions_are_counted_by_branch():
    runs = [nb.Session(nb.samples("search"), seed=seed) for seed in range(2)]
    for run in runs:
        run.run()
    frame = nb.coverage(runs).to_frame()
    branches = frame[frame["element"].str.startswith("decision") | frame["outcome"].isin(["true", "false"])]
    if len(branches):
        assert branches["visits"].sum() >= 2


def test_a_store_of_traces_and_several_recipes_can_be_counted(tmp_path):
    runs = sorting()[:2]
    for run in runs:
        run.save(tmp_path / "runs.db")
    assert nb.coverage(tmp_path / "runs.db").to_frame().equals(nb.coverage(runs).to_frame())
    other = nb.Session(nb.samples("refine"), {"number": 2.0})
    other.run()
    assert nb.coverage([*runs, other.trace]).runs == 3


def test_mistakes_are_reported():
    with pytest.raises(ExecutionError, match="A103"):
        nb.coverage([])
    with pytest.raises(ExecutionError, match="A104"):
        nb.suspects(sorting(), [True])
    with pytest.raises(ExecutionError, match="A101"):
        nb.coverage([1])


@given(programs(), st.sampled_from(KEYS), st.integers(0, 60))
def test_random_runs_are_counted_as_their_tables_say(program, key, value):
    runs = [program.session(), program.session({**INPUTS, key: value})]
    frame = nb.coverage(runs).to_frame()
    nodes, edges = Counter(), Counter()
    for run in runs:
        nodes.update(str(node) for node in run.trace.frames.steps["node"])
        taken = run.trace.frames.edges
        edges.update(zip(taken["source"].astype(str), taken["target"].astype(str), strict=True))
    actual = frame[frame["kind"] == "node"].set_index("element")["visits"]
    assert {name: count for name, count in actual.items() if count} == dict(nodes)
    counts = Counter()
    for row in frame[frame["kind"] == "edge"].itertuples():
        source, target = row.element.split(" [")[0].split(" -> ")
        counts[source, target] += row.visits
    assert +counts == edges


def test_a_run_that_lacks_what_ok_reads_is_wrong_and_an_ok_that_always_raises_is_a_problem():
    runs = sorting()
    ranking = nb.suspects(runs, lambda run: 1 / (9 - run.board["seen"]) > 0)
    assert ranking.iloc[0][["element", "failed", "passed"]].to_list() == ["large", 1, 3]
    with pytest.raises(ExecutionError, match="A118: ok raised KeyError for every run"):
        nb.suspects(runs, lambda run: run.board["typo"])


@pytest.mark.parametrize(("word", "goes_on"), [("while", True), ("until", False)])
def test_the_condition_of_a_loop_has_outcomes(word, goes_on):
    condition = {"while": "n < 3", "until": "n >= 3"}[word]
    runs = []
    for start in (0, 5):
        inner = nx.DiGraph(name="inner", entry="add")
        inner.add_node("add", function=lambda n: {"n": n + 1}, inputs={"n": "n"})
        graph = nx.DiGraph(name="rounds", entry="again")
        graph.add_node("again", kind="loop", graph=inner, **{word: condition})
        runs.append(nb.Session(nb.load(graph), {"n": start}))
        runs[-1].run()
    frame = nb.coverage(runs).to_frame().query("kind == 'condition'")
    counts = {(row.element, row.outcome): (row.visits, row.runs) for row in frame.itertuples()}
    again = (3, 1) if word == "while" else (2, 1)  # `until` is asked after the first round
    assert counts == {(f"again: {condition}", goes_on): again, (f"again: {condition}", not goes_on): (2, 2)}


def test_the_filter_of_a_behavior_has_outcomes():
    bugs = {bug.name: bug for bug in UNSEEN}
    bug = bugs["a filter that never holds"]
    runs = [bug.run(value) for value in (1, 11, 30)]
    frame = nb.coverage(runs).to_frame().query("kind == 'condition'")
    assert [(row.element, row.outcome, row.visits, row.runs) for row in frame.itertuples()] == [
        ("bill_orders: {'kind': 'order'}", True, 0, 0), ("bill_orders: {'kind': 'order'}", False, 2, 2),
    ]  # fmt: skip
    assert nb.suspects(runs, [True, False, False]).iloc[0]["element"] == "bill_orders: {'kind': 'order'} is False"
