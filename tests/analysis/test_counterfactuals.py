"""test_counterfactuals: which single change of the past would have made the run right."""

from __future__ import annotations

from dataclasses import dataclass

import networkx as nx
import pytest

import agentnb as nb


def refund(rate=1.0, **options):
    calls: list[str] = []

    def look_up(order):
        calls.append(order)
        return {"price": 20, "vip": False}

    graph = nx.DiGraph(name="refund", entry="read")
    graph.add_node("read", kind="tool", function="look_up", inputs={"order": "order"})
    graph.add_node("charge", function=lambda price: {"fee": price * rate}, inputs={"price": "price"})
    graph.add_node("refund", function=lambda board: {"refund": board["price"] - board["fee"]})
    graph.add_node("refuse", function=lambda board: {"refund": 0})
    graph.add_edge("read", "charge")
    graph.add_edge("charge", "refund", when="fee < 10")
    graph.add_edge("charge", "refuse")
    session = nb.Session(nb.load(graph), {"order": "A1"}, tools={"look_up": look_up}, **options)
    session.run()
    return session, calls


def test_the_changes_that_make_the_run_right_come_first():
    session, _ = refund()
    found = session.counterfactuals(lambda run: run.board["refund"] == 18)
    assert list(found.columns) == ["step", "node", "kind", "change", "outcome", "steps_after"]
    best = found.iloc[0].to_dict()
    assert (best["step"], best["node"], best["kind"], best["change"]) == (2, "charge", "write", "fee: 20.0 -> 2.0")
    assert best["outcome"]
    assert best["steps_after"] == 2
    assert found["outcome"].is_monotonic_decreasing


def test_an_answer_of_the_world_is_told_from_a_computed_value():
    session, _ = refund(rate=0.6)
    found = session.counterfactuals(lambda run: run.board["refund"] > 0)
    right = found[found["outcome"]]
    assert {"call", "write"} <= set(right["kind"])
    assert set(right[right["kind"] == "call"]["node"]) == {"read"}


def test_what_did_not_change_is_answered_from_the_record():
    session, calls = refund()
    assert calls == ["A1"]
    session.counterfactuals(lambda run: run.board["refund"] == 18, candidates={"fee": [2.0]})
    assert calls == ["A1"]


def test_the_session_its_forks_and_its_store_stay_as_they_are(tmp_path):
    session, _ = refund(store=tmp_path / "runs.db", run_id="one")
    before = (session.position, session.tree(), dict(session.board))
    session.counterfactuals(lambda run: False, max_forks=5)
    assert (session.position, session.tree(), dict(session.board)) == before
    assert session.forks == ()
    assert list(nb.runs(tmp_path / "runs.db")["run_id"]) == ["one"]


def test_given_candidates_and_the_number_of_forks_are_kept_to():
    session, _ = refund()
    found = session.counterfactuals(lambda run: run.board["refund"] > 0, candidates={"fee": [1.0, 30.0]})
    assert list(found["change"]) == ["fee: 20.0 -> 1.0", "fee: 20.0 -> 30.0"]
    assert list(found["outcome"]) == [True, False]
    assert len(session.counterfactuals(lambda run: False, max_forks=3)) == 3


def test_another_route_and_another_input_are_tried():
    graph = nx.DiGraph(name="choice", entry="look")
    graph.add_node("look", function=lambda n: {"seen": n}, inputs={"n": "n"})
    graph.add_node("small", function=lambda board: {"size": "small"})
    graph.add_node("large", function=lambda board: {"size": "large"})
    graph.add_edge("look", "small", when="n < 10")
    graph.add_edge("look", "large")
    session = nb.Session(nb.load(graph), {"n": 9})
    session.run()
    found = session.counterfactuals(lambda run: run.board["size"] == "large")
    right = found[found["outcome"]]
    assert right.iloc[0][["kind", "change"]].to_list() == ["route", "look leads to large"]
    assert "n: 9 -> 10" in list(right[right["kind"] == "input"]["change"])


@dataclass
class Order:
    price: int
    count: int = 1

    def __post_init__(self):
        if self.price <= 0:
            raise ValueError("a price is positive")


@pytest.mark.parametrize(("value", "right"), [
    (Order(price=200), Order(price=20)),
    ({"order": {"price": 200, "count": 1}}, {"order": {"price": 20, "count": 1}}),
    ([200, 1], [20, 1]),
    ('{"price": 200, "count": 1}', '{"price": 20, "count": 1}'),
    (40, 20),
])  # fmt: skip
def test_parts_of_a_value_are_changed(value, right):
    graph = nx.DiGraph(name="parts", entry="make")
    graph.add_node("make", function=lambda board: {"made": value})
    session = nb.Session(nb.load(graph), {})
    session.run()
    best = session.counterfactuals(lambda run: run.board["made"] == right).iloc[0]
    assert (best["node"], best["kind"], best["outcome"]) == ("make", "write", True)


def test_a_model_gives_its_second_recorded_answer_when_its_first_was_changed():
    graph = nx.DiGraph(name="twice", entry="again")
    graph.add_node("again", kind="llm", prompt="again {n}", output="said")
    graph.add_node("note", function=lambda n, said, told: {"n": n + 1, "told": [*told, said]},
                   inputs={"n": "n", "said": "said", "told": "told"})  # fmt: skip
    graph.add_edge("again", "note")
    graph.add_edge("note", "again", when="n < 2")
    session = nb.Session(nb.load(graph), {"n": 0, "told": []}, llm=["one", "two"])
    session.run()
    found = session.counterfactuals(lambda run: run.board["told"] == ["uno", "two"], candidates={"said": ["uno"]})
    assert list(found["outcome"]) == [True, False]


def test_secrets_are_masked():
    graph = nx.DiGraph(name="secret", entry="sign")
    graph.add_node("sign", function=lambda password: {"password": password + "!"}, inputs={"password": "password"})
    session = nb.Session(nb.load(graph), {"password": "hunter2-hunter2"})
    session.run()
    assert "hunter2" not in session.counterfactuals(lambda run: False).to_string()


PLANTED = {  # name -> (how the nodes compute, the inputs, the right result, the node at fault)
    "a rate ten times too high": ({"tax": lambda a: {"t": a * 2.0}, "sum": lambda a, t: {"out": a + t}}, 12.0, "tax"),
    "a sign": ({"debt": lambda a: {"d": a}, "sum": lambda a, d: {"out": a + 2 * d}}, -10, "debt"),
    "one too many": ({"count": lambda a: {"c": a + 1}, "sum": lambda c: {"out": c * 100}}, 1000, "count"),
    "a flag": ({"check": lambda a: {"vip": a > 99}, "sum": lambda a, vip: {"out": a if vip else 0}}, 10, "check"),
    "half": ({"share": lambda a: {"s": a / 4}, "sum": lambda s: {"out": s * 3}}, 15.0, "share"),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_named_first(name):
    functions, right, fault = PLANTED[name]
    graph = nx.DiGraph(name="planted", entry=next(iter(functions)))
    graph.add_nodes_from(
        (node, {"function": function, "inputs": {key: key for key in function.__code__.co_varnames}})
        for node, function in functions.items()
    )
    graph.add_edge(*functions)
    session = nb.Session(nb.load(graph), {"a": 10})
    session.run()
    assert session.board["out"] != right
    found = session.counterfactuals(lambda run: run.board["out"] == right)
    assert found.iloc[0]["node"] == fault
    assert found.iloc[0]["outcome"]
    assert fault in session.slice("out").nodes
