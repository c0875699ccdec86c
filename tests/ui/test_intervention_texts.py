from __future__ import annotations

import pytest

from agentnb.board.values import ABSENT
from agentnb.engine.control.interventions import acting_as
from agentnb.ui.intervention_texts import describe_intervention, is_shown
from tests.ui import ticket_recipe


def last_intervention(session):
    return session.trace.reading().interventions()[-1]


@pytest.mark.parametrize(
    ("does", "words"),
    [
        (lambda session: session.edit({"ticket": "x"}), "ticket = 'x' was set manually"),
        (lambda session: session.edit({"ticket": ABSENT}), "ticket was deleted manually"),
        (lambda session: session.edit({"api_key": "sk-other"}), "api_key = '********' was set manually"),
        (lambda session: session.set_next("refuse"), "'refuse' was made the next node"),
        (lambda session: session.skip(), "'ask' was skipped manually"),
        (lambda session: (session.step(), session.answer("yes")), "'ask' was answered: 'yes'"),
        (lambda session: (session.step(), session.goto(0)), "'ask' was cancelled while it was running"),
        (lambda session: session.emit("ticket.read", {}), "'ticket.read' was emitted from outside"),
        (lambda session: session.set_budget(max_steps=9), "the limit max_steps was set to 9"),
    ],
)
def test_each_intervention_is_described_briefly(does, words):
    session = ticket_recipe.session()
    session.step()
    does(session)
    assert describe_intervention(last_intervention(session)) == words


def test_an_intervention_of_an_assistant_names_it():
    session = ticket_recipe.session()
    session.step()
    with acting_as("helper"):
        session.edit({"ticket": "x"})
        assert describe_intervention(last_intervention(session)) == "ticket = 'x' was set by helper"
        session.set_next("refuse")
        assert describe_intervention(last_intervention(session)) == "'refuse' was made the next node by helper"
    session.skip()
    assert describe_intervention(last_intervention(session)) == "'refuse' was skipped manually"


def test_technical_interventions_are_hidden():
    session = ticket_recipe.session()
    session.step(2)
    session.edit({"ticket": "x"})
    held, edit = session.trace.reading().interventions()
    assert (held.action, is_shown(held), describe_intervention(held)) == ("held", False, "")
    assert is_shown(edit)
