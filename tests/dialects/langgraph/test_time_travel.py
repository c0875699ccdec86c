"""Random graphs with a person who goes back and edits: as in a run in which nobody went back, and in a replay."""

from __future__ import annotations

import operator
from contextlib import suppress
from typing import Annotated, Any, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt

import agentnb as nb
from agentnb.dialects.langgraph.api import load_graph
from agentnb.errors import AgentNbError
from tests.dialects.langgraph.programs import build, plans
from tests.property.modelled_sessions import describe_session

STEPS = 30
EDITS = st.none() | st.sampled_from([{"last": "by hand"}, {"total": 50}, {"names": ["x"]}, {"brief": "edited"}])
MOVES = st.lists(st.tuples(st.integers(0, 100), EDITS, st.integers(1, STEPS)), min_size=1, max_size=4)


def walk(session: Any, steps: int) -> None:
    """Step to where the run ends or has taken so many steps."""
    while session.position < steps and session.status != "failed" and session.step() is not None:
        pass


def accepts_edit(session: Any, changes: dict[str, Any]) -> bool:
    with suppress(AgentNbError):
        session.edit(changes)
        return True
    return False


@given(plan=plans(asks=False), moves=MOVES)
def test_a_run_that_went_back_is_like_one_that_did_not(plan, moves):
    recipe, edits = load_graph(build(plan), config={"recursion_limit": 12}), dict[int, list[Any]]()
    session = nb.Session(recipe, {"last": "in"}, run_id="r")
    walk(session, STEPS)
    for share, changes, steps in moves:
        session.goto(share * session.trace.reading().tip // 100)
        edits = {step: rows for step, rows in edits.items() if step <= session.position}
        if changes and accepts_edit(session, changes):
            edits.setdefault(session.position, []).append(changes)
        walk(session, session.position + steps)
    assert session.replay(strict="reads").ok
    other = nb.Session(recipe, {"last": "in"}, run_id="r")
    for step in range(session.position + 1):
        for changes in edits.get(step, ()):
            other.edit(changes)
        session.goto(step)
        assert describe_session(session) == describe_session(other)
        other.step()


# -- edits in a superstep ----------------------------------------------------------------------------------------------


class State(TypedDict, total=False):
    value: int
    seen: Annotated[list, operator.add]


def writes(state):
    return {"value": 1}


def reads(state):
    return {"seen": [state["value"]]}


def asks(state):
    return {"seen": [interrupt("go on?"), state["value"]]}


def run_of(second: Any, *, inside: bool = False, **options: Any) -> nb.Session:
    """Return a run of a node that writes, and a second one in the same superstep that reads."""
    graph = StateGraph(State).add_node("writes", writes).add_node("z_second", second)
    graph.add_edge(START, "writes").add_edge(START, "z_second")
    if inside:
        graph = StateGraph(State).add_node("inner", graph.compile()).add_edge(START, "inner")
    return nb.Session(nb.load(graph), {"value": 0}, **options)


def edits_after_the_step(run):
    run.edit({"value": 5})
    return run


def edits_twice(run):
    run.edit({"value": 4, "other": nb.ABSENT})
    return edits_after_the_step(run)


def edits_after_going_back(run):
    run.step()
    run.back()
    return edits_after_the_step(run)


def edits_in_a_fork(run):
    return edits_after_the_step(run.fork())


def edits_before_a_fork(run):
    return edits_after_the_step(run).fork()


EDITED = [edits_after_the_step, edits_twice, edits_after_going_back, edits_in_a_fork, edits_before_a_fork]


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("act", EDITED)
def test_the_other_nodes_of_a_superstep_see_an_edit_and_not_what_a_node_wrote(act, inside):
    run = run_of(reads, inside=inside)
    run.run(until="inner/z_second" if inside else "z_second")
    run = act(run)
    run.run()
    assert run.board["seen"] == [5]
    assert run.replay(strict="reads").ok


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("edits", [True, False])
def test_a_node_that_waits_sees_an_edit(edits, inside, tmp_path):
    run = run_of(asks, inside=inside, store=tmp_path / "runs.db", run_id="r")
    run.run()
    if edits:
        run.edit({"value": 5})
    run.answer("yes")
    run.run()
    assert run.board["seen"] == ["yes", 5 if edits else 0]
    assert run.replay(strict="reads").ok
