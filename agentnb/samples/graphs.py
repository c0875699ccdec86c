"""Samples of networkx: graphs written in Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import networkx as nx


def refine() -> nx.DiGraph[str]:
    """Return Newton's square root: a loop around a subgraph, until the error is small."""
    import networkx as nx

    better: nx.DiGraph[str] = nx.DiGraph(name="one step of Newton's")
    better.add_node("divide", function=_divide, inputs={"number": "number", "guess": "guess"}, writes=["quotient"])
    better.add_node("average", function=_average, inputs={"a": "guess", "b": "quotient"}, writes=["guess"])
    better.add_edge("divide", "average")

    rounds: nx.DiGraph[str] = nx.DiGraph(name="until it is near enough")
    rounds.add_node(
        "better",
        kind="subgraph",
        graph=better,
        inputs={"number": "number", "guess": "guess"},
        outputs={"guess": "guess"},
    )
    rounds.add_node("measure", function=_measure, inputs={"number": "number", "guess": "guess"}, writes=["error"])
    rounds.add_edge("better", "measure")

    number = {"type": "number", "default": 2.0}
    graph: nx.DiGraph[str] = nx.DiGraph(name="refine", inputs={"number": number}, outputs=["root"])
    graph.add_node("start", function=_start, inputs={"number": "number"}, writes=["guess", "error"])
    graph.add_node("improve", kind="loop", graph=rounds, until="error < 0.000001", max=50)
    graph.add_node("report", function=_report, inputs={"guess": "guess"}, writes=["root"])
    nx.add_path(graph, ["start", "improve", "report"])
    return graph


def fanout() -> nx.DiGraph[str]:
    """Return an offer: three questions asked concurrently, a join, and a choice by a condition."""
    import networkx as nx

    inputs = {"item": {"type": "string", "default": "lamp"}, "count": {"type": "integer", "default": 3}}
    graph: nx.DiGraph[str] = nx.DiGraph(name="fanout", inputs=inputs, outputs=["offer"])
    graph.add_node("order", kind="noop")
    graph.add_node("price", function=_price, inputs={"item": "item", "count": "count"}, writes=["price"])
    graph.add_node("stock", function=_stock, inputs={"item": "item"}, writes=["stock"])
    graph.add_node("freight", function=_freight, inputs={"count": "count"}, writes=["freight"])
    graph.add_node("meet", kind="join")
    for question in ("price", "stock", "freight"):
        graph.add_edge("order", question, kind="parallel")
        graph.add_edge(question, "meet")
    graph.add_node("confirm", function=_confirm, inputs={"price": "price", "freight": "freight"}, writes=["offer"])
    graph.add_node("postpone", function=_postpone, inputs={"item": "item"}, writes=["offer"])
    graph.add_edge("meet", "confirm", when="stock >= count")
    graph.add_edge("meet", "postpone")
    return graph


def _start(number: float) -> dict[str, float]:
    return {"guess": number, "error": number}


def _divide(number: float, guess: float) -> dict[str, float]:
    return {"quotient": number / guess}


def _average(a: float, b: float) -> dict[str, float]:
    return {"guess": (a + b) / 2}


def _measure(number: float, guess: float) -> dict[str, float]:
    return {"error": abs(guess * guess - number)}


def _report(guess: float) -> dict[str, float]:
    return {"root": round(guess, 6)}


def _price(item: str, count: int) -> dict[str, float]:
    return {"price": count * {"lamp": 19.9, "desk": 240.0}.get(item, 10.0)}


def _stock(item: str) -> dict[str, int]:
    return {"stock": {"lamp": 12, "desk": 0}.get(item, 1)}


def _freight(count: int) -> dict[str, float]:
    return {"freight": 4.5 + 0.5 * count}


def _confirm(price: float, freight: float) -> dict[str, str]:
    return {"offer": f"{price + freight:.2f}, sent today"}


def _postpone(item: str) -> dict[str, str]:
    return {"offer": f"no {item} left; we write to you when there are some"}
