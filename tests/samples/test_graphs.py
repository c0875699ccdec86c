from __future__ import annotations

import pytest

from agentnb.load import load
from agentnb.samples import graphs


def call(graph, node, board):
    """Call a node's function as its inputs say, with a plain dict as the board."""
    attributes = graph.nodes[node]
    board.update(attributes["function"](**{name: board[path] for name, path in attributes["inputs"].items()}))


def test_the_root_gets_closer_with_each_iteration():
    graph = graphs.refine()
    rounds = graph.nodes["improve"]["graph"]
    better = rounds.nodes["better"]["graph"]
    board = {"number": 2.0}
    call(graph, "start", board)
    errors = [board["error"]]
    for _ in range(4):
        call(better, "divide", board)
        call(better, "average", board)
        call(rounds, "measure", board)
        errors.append(board["error"])
    call(graph, "report", board)
    assert errors == sorted(errors, reverse=True)
    assert board["root"] == pytest.approx(2**0.5)


def test_the_loop_ends_when_the_error_is_small():
    until = load(graphs.refine()).nodes["improve"].params["until"]
    assert not until({"error": 0.5})
    assert until({"error": 0.0})


@pytest.mark.parametrize(("item", "sent"), [("lamp", True), ("desk", False)])
def test_the_offer_depends_on_the_stock(item, sent):
    graph = graphs.fanout()
    board = {"item": item, "count": 3}
    for node in ("price", "stock", "freight"):
        call(graph, node, board)
    when = next(edge.when for edge in load(graph).edges if edge.target == "confirm")
    assert bool(when(board)) is sent
    call(graph, "confirm" if sent else "postpone", board)
    assert ("sent today" in board["offer"]) is sent
