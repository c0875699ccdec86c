from __future__ import annotations

from agentnb.recipe.model import Edge, Node, Recipe
from agentnb.session import Session


def test_a_run_that_reaches_it_fails_and_can_be_redirected():
    nodes = {name: Node(name, kind) for name, kind in (("a", "noop"), ("gone", "missing"), ("b", "noop"))}
    run = Session(Recipe("draft", "test", nodes, (Edge("a", "gone"), Edge("gone", "b")), ("a",)))
    run.run()
    assert (run.status, run.current, run.error.code) == ("failed", "gone", "X402")
    assert run.trace.steps[-1].type == "error"
    assert run.skip().status == "skipped"
    run.run()
    assert run.status == "finished"
