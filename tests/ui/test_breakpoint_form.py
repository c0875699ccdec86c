from __future__ import annotations

import pytest

import agentnb as nb
from agentnb.engine.control import breakpoints
from agentnb.ui.breakpoint_form import CLAUSES, describe_form_error, list_clauses
from agentnb.ui.commands import run_command
from tests.ui import ticket_recipe


def test_every_clause_except_those_of_the_graph_is_offered():
    assert set(CLAUSES) == set(breakpoints.CLAUSES) - {"node", "edge"}
    assert [row[0] for row in list_clauses()] == list(CLAUSES)


@pytest.mark.parametrize(
    ("clause", "text", "shown"),
    [
        ("when", "category == 'refund'", "when category == 'refund'"),
        ("key", "reply", "key reply"),
        ("in_place", "", "changed in place"),
        ("in_place", "reply", "key reply, changed in place"),
        ("no_progress", "", "no progress"),
        ("no_progress", "tell", "before 'tell', no progress"),
        ("budget", "80%", "budget 80%"),
        ("budget", "0.5", "budget 50%"),
        ("error", "", "error True"),
        ("error", "ValueError", "error ValueError"),
        ("call", "*", "call *"),
        ("event", "done", "event done"),
        ("step", "3", "step 3"),
    ],
)
def test_typed_values_become_a_breakpoint(clause, text, shown):
    session = ticket_recipe.session("hello")
    typed = {"clause": clause, "text": text, "log": ""}
    assert describe_form_error(session, typed) == ""
    run_command(session, "stop_when", typed)
    assert [str(row) for row in session.breakpoints] == [shown]
    assert run_command(session, "query", "breakpoint", typed) == ""
    run_command(session, "stop_when", {**typed, "log": "here"})
    assert [row.log for row in session.breakpoints] == [None, "here"]


@pytest.mark.parametrize(
    ("typed", "wrong"),
    [
        ({"clause": "when", "text": "n >"}, "it is incomplete after '>'"),
        ({"clause": "budget", "text": "a lot"}, "is not a share of a limit"),
        ({"clause": "budget", "text": "300%"}, "is not a share of a limit"),
        ({"clause": "step", "text": "two"}, "is not a step number"),
        ({"clause": "no_progress", "text": "tel"}, "mean 'tell'"),
        ({"clause": "when", "text": "sent", "log": "{{ n"}, "n"),
        ({"clause": "anything"}, "it is empty"),
        (None, "it is empty"),
    ],
)
def test_a_mistake_is_described_and_nothing_is_added(typed, wrong):
    session = ticket_recipe.session("hello")
    assert wrong in describe_form_error(session, typed)
    with pytest.raises(nb.AgentNbError):
        run_command(session, "stop_when", typed)
    assert len(session.breakpoints) == 0


def test_a_logpoint_of_any_clause_writes_its_message(capsys):
    session = ticket_recipe.session("hello")
    run_command(session, "stop_when", {"clause": "key", "text": "reply", "log": "it says {{ reply }}"})
    session.run()
    assert session.status == "finished"
    assert capsys.readouterr().out == "it says no\n"
