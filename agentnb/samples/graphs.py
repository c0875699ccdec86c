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
    """Return an offer: three concurrent questions, a join, a choice by a condition, and a letter by an agent."""
    import networkx as nx

    inputs = {"item": {"type": "string", "default": "lamp"}, "count": {"type": "integer", "default": 3}}
    graph: nx.DiGraph[str] = nx.DiGraph(name="fanout", inputs=inputs, outputs=["offer", "letter"])
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
    graph.add_node("write", kind="agent", inputs={"item": "item", "count": "count", "offer": "offer"}, output="letter",
                   prompt="Write a letter of three sentences to the customer who asked for this offer.",
                   simulated="Thank you for asking. You will find our offer enclosed. We look forward to your order.",
                   writes=["letter"])  # fmt: skip
    graph.add_edge("confirm", "write")
    graph.add_edge("postpone", "write")
    return graph


LETTERS = [
    "Your invoice of May over 80 euros is due on Friday.",
    "Can we meet on Tuesday instead of Monday?",
    "YOU HAVE WON a cruise! Answer today!",
]


def inbox() -> nx.DiGraph[str]:
    """Return an inbox that is sorted letter by letter: an agent in a cycle, a router, and an agent that answers."""
    import networkx as nx

    inputs = {"letters": {"type": "array", "items": {"type": "string"}, "default": LETTERS}}
    graph: nx.DiGraph[str] = nx.DiGraph(
        name="inbox", inputs=inputs, outputs=["bills", "answers"], init={"bills": [], "answers": [], "thrown_away": []}
    )
    graph.add_node("open", function=_open_letter, inputs={"letters": "letters"}, writes=["letter", "letters"])
    graph.add_node("sort", kind="agent", inputs={"letter": "letter"}, writes=["sort"],
                   prompt='Of which sort is this letter? Answer with one JSON object: {"sort": "bill"}, '
                   '{"sort": "question"} or {"sort": "advertising"}.',
                   simulated=[{"sort": "bill"}, {"sort": "question"}, {"sort": "advertising"}])  # fmt: skip
    routes = {"bill": "file", "question": "answer"}
    graph.add_node("by_sort", kind="router", input_key="sort", routes=routes, default="throw_away")
    graph.add_node("file", function=_file, inputs={"bills": "bills", "letter": "letter"}, writes=["bills"])
    graph.add_node("answer", kind="agent", inputs={"letter": "letter"}, output="reply", writes=["reply"],
                   prompt="Answer this letter in one friendly sentence.",
                   simulated="Tuesday suits me well; the same time as on Monday?")  # fmt: skip
    graph.add_node("send", function=_send, inputs={"answers": "answers", "reply": "reply"}, writes=["answers"])
    graph.add_node("throw_away", function=_throw_away, inputs={"thrown_away": "thrown_away", "letter": "letter"},
                   writes=["thrown_away"])  # fmt: skip
    graph.add_node("done", kind="noop")
    graph.add_edge("open", "sort")
    graph.add_edge("sort", "by_sort")
    graph.add_edge("answer", "send")
    for last in ("file", "send", "throw_away"):
        graph.add_edge(last, "open", when="letters|length > 0")
        graph.add_edge(last, "done")
    graph.graph["entry"] = "open"
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


def _open_letter(letters: list[str]) -> dict[str, object]:
    first, *others = letters
    return {"letter": first, "letters": others}


def _file(bills: list[str], letter: str) -> dict[str, list[str]]:
    return {"bills": [*bills, letter]}


def _send(answers: list[str], reply: str) -> dict[str, list[str]]:
    return {"answers": [*answers, reply]}


def _throw_away(thrown_away: list[str], letter: str) -> dict[str, list[str]]:
    return {"thrown_away": [*thrown_away, letter]}


def _postpone(item: str) -> dict[str, str]:
    return {"offer": f"no {item} left; we write to you when there are some"}
