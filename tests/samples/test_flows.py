from __future__ import annotations

import agentnb as nb
from agentnb.dialects.polaris import GraphExecutor
from agentnb.samples import flows


def test_the_search_looks_round_by_round_and_makes_do_where_nobody_answers():
    session = GraphExecutor().session(flows.search())
    session.run()
    nodes = [step.node_id for step in session.trace.steps if step.kind == "system"]
    assert nodes[0] == "begin"
    assert sorted(nodes[1:4]) == ["ask", "look", "think"]
    assert nodes[4] == "note"
    assert nodes[-2:] == ["note", "praise"]
    assert session.board[f"{flows.__name__}.Report"].text == (
        "found in the drawer after 2 places; somebody said: it is not on the shelf"
    )


def test_it_has_nothing_wrong_and_is_drawn_with_its_handler():
    assert str(flows.search().validate()) == "ok"
    assert "error of ask" in nb.samples("search").draw().dot
