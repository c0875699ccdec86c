from __future__ import annotations

import pytest

from agentnb.ui import Controls
from tests.ui import runs


@pytest.fixture
def session():
    return runs.session()


@pytest.fixture
def widgets(session):
    made = session.controls()
    yield made
    made.close()


def able(widgets):
    return {verb for verb, button in widgets.buttons.items() if not button.disabled}


def test_each_button_does_what_it_says(session, widgets):
    widgets.buttons["step"].click()
    assert (session.position, widgets.slider.value, widgets.slider.max) == (1, 1, 1)
    widgets.buttons["back"].click()
    assert (session.position, widgets.slider.value) == (0, 0)
    widgets.buttons["run"].click()
    assert session.status == "waiting"
    widgets.buttons["reset"].click()
    assert (session.status, len(session.trace)) == ("ready", 0)


def test_the_slider_travels(session, widgets):
    session.step()
    widgets.slider.value = 0
    assert session.position == 0


def test_an_answer_is_typed_where_one_is_asked(session, widgets):
    assert widgets.answer.layout.display == "none"
    session.run()
    assert widgets.answer.layout.display != "none"
    widgets.answer.value = "yes"
    assert session.board["decision"] == "yes"
    assert widgets.answer.value == ""
    assert widgets.answer.layout.display == "none"


def test_buttons_are_able_where_they_make_sense(session, widgets):
    assert able(widgets) == {"step", "run"}
    session.run()
    assert able(widgets) == {"back", "reset"}


def test_the_line_says_what_happened_and_what_went_wrong(session, widgets):
    widgets.buttons["step"].click()
    assert widgets.line.value.startswith("Step 1: 'classify'")
    widgets.slider.max = 9
    widgets.slider.value = 9
    assert widgets.line.value.startswith("X111")


def test_closed_controls_hear_no_more(session):
    made = Controls(session)
    made.close()
    session.step()
    assert made.slider.value == 0
