"""Which single change of the past would have made the run right."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import networkx as nx
import pytest

import agentnb as nb
from agentnb.analysis.counterfactuals import compute_interval
from agentnb.errors import ExecutionError
from agentnb.world.llm import LLMResponse, Usage


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
    changes = session.counterfactuals(lambda run: run.board["refund"] == 18)
    assert list(changes.columns) == ["step", "node", "kind", "change", "outcome", "steps_after", "would_call"]
    best = changes.iloc[0].to_dict()
    assert (best["step"], best["node"], best["kind"], best["change"]) == (2, "charge", "write", "fee: 20.0 -> 2.0")
    assert best["outcome"]
    assert best["steps_after"] == 2
    assert changes["outcome"].fillna(value=False).is_monotonic_decreasing


def test_an_external_answer_is_distinguished_from_a_computed_value():
    session, _ = refund(rate=0.6)
    changes = session.counterfactuals(lambda run: run.board["refund"] > 0)
    right = changes[changes["outcome"]]
    assert {"call", "write"} <= set(right["kind"])
    assert set(right[right["kind"] == "call"]["node"]) == {"read"}


def test_unchanged_requests_are_answered_from_the_record():
    session, calls = refund()
    assert calls == ["A1"]
    session.counterfactuals(lambda run: run.board["refund"] == 18, candidates={"fee": [2.0]})
    assert calls == ["A1"]


def test_the_session_its_forks_and_its_store_do_not_change(tmp_path):
    session, _ = refund(store=tmp_path / "runs.db", run_id="one")
    before = (session.position, session.tree(), dict(session.board))
    session.counterfactuals(lambda run: False, max_forks=5)
    assert (session.position, session.tree(), dict(session.board)) == before
    assert session.forks == ()
    assert list(nb.runs(tmp_path / "runs.db")["run_id"]) == ["one"]


def test_given_candidates_and_the_number_of_forks_are_respected():
    session, _ = refund()
    changes = session.counterfactuals(lambda run: run.board["refund"] > 0, candidates={"fee": [1.0, 30.0]})
    assert list(changes["change"]) == ["fee: 20.0 -> 1.0", "fee: 20.0 -> 30.0"]
    assert list(changes["outcome"]) == [True, False]
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
    changes = session.counterfactuals(lambda run: run.board["size"] == "large")
    right = changes[changes["outcome"]]
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


def test_a_model_gives_its_second_recorded_answer_after_its_first_was_changed():
    graph = nx.DiGraph(name="twice", entry="again")
    graph.add_node("again", kind="llm", prompt="again {n}", output="said")
    graph.add_node("note", function=lambda n, said, told: {"n": n + 1, "told": [*told, said]},
                   inputs={"n": "n", "said": "said", "told": "told"})  # fmt: skip
    graph.add_edge("again", "note")
    graph.add_edge("note", "again", when="n < 2")
    session = nb.Session(nb.load(graph), {"n": 0, "told": []}, llm=["one", "two"])
    session.run()
    changes = session.counterfactuals(lambda run: run.board["told"] == ["uno", "two"], candidates={"said": ["uno"]})
    assert list(changes["outcome"]) == [True, False]


# -- samples: a fork that asks a live model is a distribution ----------------------------------------------------------


def review(seed=0, **options):
    """Return a run that drafts a text and has it graded by a model that passes good drafts in 7 of 10 cases."""
    random, requests = Random(seed), []

    def model(request):
        requests.append(request.messages[-1].content)
        return "pass" if "good" in requests[-1] and random.random() < 0.7 else "fail"

    graph = nx.DiGraph(name="review", entry="draft")
    graph.add_node("draft", function=lambda topic: {"text": f"bad {topic}"}, inputs={"topic": "topic"})
    graph.add_node("grade", kind="llm", prompt="grade: {{ text }}", output="grade")
    graph.add_edge("draft", "grade")
    session = nb.Session(nb.load(graph), {"topic": "news"}, llm=model, **options)
    session.run()
    requests.clear()
    return session, requests


def passes(run):
    return run.board["grade"] == "pass"


DRAFTS = {"text": ["good news", "bad words"], "grade": ["pass"]}


def test_a_fork_that_asks_the_model_is_repeated_and_has_an_interval():
    session, requests = review()
    changes = session.counterfactuals(passes, candidates=DRAFTS, effects=True, samples=20, progress=False)
    assert list(changes.columns) == [
        "step", "node", "kind", "change", "outcome", "steps_after", "would_call", "right", "low", "high", "samples",
        "missing",
    ]  # fmt: skip
    rows = {row["change"].partition(" -> ")[2].strip("'"): row for row in changes.to_dict("records")}
    certain, good, bad = rows["pass"], rows["good news"], rows["bad words"]
    assert (certain["right"], certain["low"], certain["high"], certain["samples"]) == (1, 1, 1, 1)
    assert 0 < good["low"] < good["right"] < good["high"] < 1
    assert good["low"] < 0.7 < good["high"]
    assert (good["samples"], bad["samples"], bad["right"]) == (20, 20, 0)
    assert len(requests) == 40
    assert list(changes["missing"]) == [0, 0, 0]
    assert list(changes["change"]) == [certain["change"], good["change"], bad["change"]]
    assert session.forks == ()


def test_samples_differ_by_the_seed_of_the_model_alone():
    def shares(seed):
        changes = review(seed)[0].counterfactuals(passes, candidates=DRAFTS, effects=True, samples=10, progress=False)
        return list(changes["right"])

    assert shares(1) == shares(1)
    assert len({tuple(shares(seed)) for seed in range(4)}) > 1


def test_requests_that_did_not_change_are_answered_from_the_record():
    session, requests = review()
    candidates = {"text": ["bad news "], "topic": ["news"]}
    changes = session.counterfactuals(passes, candidates=candidates, effects=True, samples=5, progress=False)
    assert requests == ["grade: bad news "] * 5
    assert list(changes["samples"]) == [5]


@pytest.mark.parametrize(("limits", "asks"), [({"max_llm_calls": 3}, 3), ({"max_llm_calls": 0}, 0),
                                              ({"max_seconds": 0.0001}, 0)])  # fmt: skip
def test_a_budget_that_ends_early_shows_what_is_missing(limits, asks):
    session, requests = review()
    changes = session.counterfactuals(passes, candidates={"text": ["good news", "bad words"]}, effects=True, samples=4,
                                      budget=limits, progress=False)  # fmt: skip
    assert len(requests) == asks
    assert changes["samples"].sum() == asks
    assert changes["missing"].sum() == 8 - asks
    assert (changes["samples"] + changes["missing"] == 4).all()
    if not asks:
        assert changes["right"].isna().all()
        assert not changes["outcome"].any()


def test_an_awaited_model_is_sampled_too():
    class Client:
        calls = 0

        async def complete(self, request):
            self.calls += 1
            return LLMResponse("pass", usage=Usage(7, 3))

    client = Client()
    session, _ = review()
    other = nb.Session(session.recipe, {"topic": "news"}, llm=client)
    other.run()
    changes = other.counterfactuals(lambda run: True, candidates={"text": ["good"]}, effects=True, samples=9,
                                  budget={"max_tokens": 40}, progress=False)  # fmt: skip
    assert client.calls == 1 + 4
    assert (changes["samples"][0], changes["missing"][0]) == (4, 5)


@pytest.mark.parametrize("options", [{"samples": 0}, {"samples": 10**5000}, {"samples": 2},
                                     {"budget": {"max_llm_calls": 3}},
                                     {"effects": True, "budget": {"max_steps": 3}}])  # fmt: skip
def test_invalid_samples_and_budgets_are_a_problem(options):
    with pytest.raises(nb.ExecutionError, match="A116"):
        review()[0].counterfactuals(passes, **options)


def test_intervals_are_wilson_intervals():
    published = {(0, 10): (0.0, 0.2775), (1, 10): (0.0179, 0.4042), (5, 10): (0.2366, 0.7634), (10, 10): (0.7225, 1.0)}
    for (right, count), ends in published.items():
        assert compute_interval(right, count) == pytest.approx(ends, abs=1e-4)


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
def test_a_planted_bug_is_named_first(name):
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
    changes = session.counterfactuals(lambda run: run.board["out"] == right)
    assert changes.iloc[0]["node"] == fault
    assert changes.iloc[0]["outcome"]
    assert fault in session.slice("out").nodes


def test_invalid_arguments_are_problems(tmp_path):
    session = nb.Session(nb.samples("refine"), {"number": 2.0})
    session.run(max_steps=3)
    session.save(tmp_path / "run.db")
    with pytest.raises(ExecutionError, match="A118: ok raised KeyError for every run"):
        session.counterfactuals(lambda run: run.board["typo"], max_forks=3)
    with pytest.raises(ExecutionError, match="A118: ok is 3"):
        session.counterfactuals(3)
    with pytest.raises(ExecutionError, match="X111"):
        session.counterfactuals(lambda run: True, at=99)
    with pytest.raises(ExecutionError, match="X145"):
        session.counterfactuals(lambda run: True, candidates={"gues": [1]})
    with pytest.raises(ExecutionError, match="L450"):
        nb.open(tmp_path / "run.db").counterfactuals(lambda run: True)
