from __future__ import annotations

from functools import partial

import pytest

import agentnb as nb
from agentnb.dialects.polaris import Graph, GraphExecutor
from tests.dialects.polaris.polaris_graphs import Plan, note, nothing, path, plan, tell


def session_of(*branches, says):
    graph = Graph().add_system(plan).add_conditional_branch("ask", Plan, lambda _: says, *branches).add_system(plan)
    return GraphExecutor().session(graph)


@pytest.mark.parametrize(("says", "runs"), [(1, "tell"), ([], "note")])
def test_the_truth_of_the_answer_chooses_a_branch_and_the_run_continues_after_it(says, runs):
    session = session_of(tell, note, says=says)
    session.run()
    assert path(session) == ["plan", "ask enter", runs, "ask leave", "plan_2"]
    step = session.trace.steps[3]
    assert (step.thought, step.observation) == (
        f"ask(Plan) is {str(bool(says)).lower()}",
        {"branch": str(bool(says)).lower()},
    )


def test_an_omitted_branch_is_skipped():
    session = session_of(tell, says=False)
    session.run()
    assert path(session) == ["plan", "ask", "plan_2"]


def test_taking_an_empty_branch_is_a_failure():
    session = session_of(tell, nothing, says=False)
    session.run()
    assert (session.status, session.error.code) == ("failed", "X453")
    other = session_of(tell, nothing, says=True)
    other.run()
    assert other.status == "finished"


def test_an_async_predicate_is_rejected():
    async def later(_):
        return True

    for function in (later, partial(later)):
        with pytest.raises(nb.RecipeError, match="R145: its predicate is async"):
            Graph().add_conditional_branch("ask", Plan, function, tell)
    graph = Graph().add_system(plan).add_conditional_branch("ask", Plan, lambda _: later(None), tell)
    session = nb.Session(nb.load(graph))
    session.run()
    assert session.error.code == "X454"
    assert "returned a coroutine" in session.error.what
