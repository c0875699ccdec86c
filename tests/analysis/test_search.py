"""Every step after which a condition holds, found without running again."""

from __future__ import annotations

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

import agentnb as nb
from agentnb.errors import ExecutionError
from tests.analysis.random_recipes import KEYS, programs
from tests.property.modelled_sessions import session_of
from tests.property.strategies import drawn


def counting(limit=6, **values):
    graph = nx.DiGraph(name="count", entry="add")
    graph.add_node("add", function=lambda n: {"n": n + 1}, inputs={"n": "n"})
    graph.add_node("note", function=lambda board: {"log": nb.Append(board["n"]), "deep": {"m": board["n"] % 3}})
    graph.add_edge("add", "note")
    graph.add_edge("note", "add", when=f"n < {limit}")
    session = nb.Session(nb.load(graph), {"n": 0, **values})
    session.run()
    return session


def naive(session, condition):
    """Return what `find` must, by going to every step and evaluating the condition as a breakpoint does."""
    position, results = session.position, []
    for step in range(1, len(session.trace) + 1):
        session.goto(step)
        watch = session.breakpoints.add(when=condition)
        if session.breakpoints.find_met(session._parts.run, session._parts.state.names) is not None:
            results.append(step)
        session.breakpoints.remove(watch)
    session.goto(position)
    return results


CONDITIONS = [
    "n > 3",
    "n>3",
    "n == 2",
    "n != 2",
    "n % 2 == 0",
    "not n // 2 - 1 > 0 or n == 5",
    "0 < n < 3",
    "12 % (n - 3) == 0",
    "n + n > 5",
    "n == 'x' or n > 4",
    "n",
    "n == 'x'",
    "deep.m == 1",
    "'log' in log or n > 2",
    "n > 2 and deep.m == 0",
    "log | length > 3",
    "log",
    {">": [{"var": "n"}, 3]},
    {"==": [{"var": "deep.m"}, 2]},
    {"and": [{">": [{"var": "n"}, 1]}, {"<": [{"var": "n"}, 4]}]},
    lambda board: board["n"] == 4,
    lambda board: len(board) > 2,
    lambda board: board["deep.m"] == 2,
    lambda board: board["deep"]["m"] == 1 and board["n"] > 3,
    lambda board: board["missing"],
]


@pytest.mark.parametrize("condition", CONDITIONS, ids=range(len(CONDITIONS)))
def test_it_finds_the_steps_at_which_a_breakpoint_would_stop(condition):
    session = counting()
    assert session.find(condition) == naive(session, condition)


def test_it_finds_later_steps_and_does_not_move_the_session():
    session = counting()
    session.goto(2)
    assert session.find("n > 4") == [9, 10, 11, 12]
    assert session.position == 2


def test_a_fork_is_searched_through_its_parent_and_its_edit():
    session = counting()
    fork = session.fork(at=4, edit={"n": 40})
    fork.run()
    assert fork.find("n >= 40") == naive(fork, "n >= 40") == [4, 5, 6]


def test_a_value_of_another_type_does_not_end_the_search():
    session = counting(limit=2)
    session.edit({"n": "many"}).edit({"n": [1]})
    assert session.find("n > 1") == naive(session, "n > 1")
    session.edit({"n": nb.ABSENT})
    assert session.find("n >= 1") == naive(session, "n >= 1")


def test_an_unknown_key_and_a_condition_without_an_answer_are_refused():
    session = nb.Session(nb.samples("triage"), {"ticket": "x", "customer": "y"}, validate_inputs=False)
    with pytest.raises(ExecutionError, match="X145"):
        session.find("tickett == 'x'")
    session = counting()
    with pytest.raises(ExecutionError, match="X314"):
        session.find(lambda board: (item for item in board))


@pytest.mark.parametrize("name", ["refine", "fanout", "search", "research", "document"])
@pytest.mark.parametrize("write", [0, 1, -1])
def test_in_nested_runs_it_sees_the_scope_of_the_next_node(name, write):
    session = nb.Session(nb.samples(name), {}, validate_inputs=False)
    session.run(max_steps=60)
    key = list(dict.fromkeys(session.trace.frames.writes["key"].astype(str)))[write].split(".")[0]

    def asked(board):
        return key in board and len(str(board[key])) % 2 == 0

    assert session.find(asked) == naive(session, asked)


@given(programs(), st.sampled_from(KEYS), st.sampled_from(KEYS), st.integers(0, 96))
def test_a_search_of_random_programs_equals_going_to_every_step(program, key, other, number):
    session = program.session()
    for condition in (f"{key} > {number}", f"{key} > {other}", lambda board: board[key] < number or board[other] < 9):
        assert session.find(condition) == naive(session, condition)


@given(drawn(), st.sampled_from(["a", "b", "a.b", "c"]))
def test_a_search_of_random_recipes_equals_going_to_every_step(what, key):
    session = session_of(what.recipe, what.inputs, 30)
    session.run()

    def asked(board):
        return key in board and bool(board[key])

    assert session.find(asked) == naive(session, asked)
