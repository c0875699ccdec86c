from __future__ import annotations

import pytest

from agentnb.errors import AgentNbError
from agentnb.ui.page_queries import QUERIES, run_query
from tests.ui import ticket_recipe


def test_a_query_changes_nothing():
    session = ticket_recipe.session()
    session.step()
    before = (session.position, dict(session.board), session.frontier)
    assert run_query(session, "key", "category")["field"]["text"] == "refund"
    assert (session.position, dict(session.board), session.frontier) == before


def test_an_unknown_query_is_a_problem():
    with pytest.raises(AgentNbError) as caught:
        run_query(ticket_recipe.session(), "kay", "category")
    (problem,) = caught.value.problems
    assert (problem.code, "key" in problem.do) == ("U308", True)


def test_every_query_has_a_description():
    assert all(name.isidentifier() for name in QUERIES)
