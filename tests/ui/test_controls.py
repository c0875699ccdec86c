from __future__ import annotations

import asyncio

import pytest

import agentnb as nb
from agentnb.ui.controls import Controls
from tests.ui import ticket_recipe


@pytest.fixture
def session():
    return ticket_recipe.session()


@pytest.fixture
def widgets(session):
    controls = session.controls()
    yield controls
    controls.close()


def able(widgets):
    return {verb for verb, button in widgets.buttons.items() if not button.disabled}


def test_each_button_executes_its_command(session, widgets):
    widgets.buttons["step"].click()
    assert (session.position, widgets.slider.value, widgets.slider.max) == (1, 1, 1)
    widgets.buttons["back"].click()
    assert (session.position, widgets.slider.value) == (0, 0)
    widgets.buttons["run"].click()
    assert session.status == "waiting"
    widgets.buttons["reset"].click()
    assert (session.status, len(session.trace)) == ("ready", 0)


def test_the_slider_moves_the_session(session, widgets):
    session.step()
    widgets.slider.value = 0
    assert session.position == 0


def test_an_answer_is_typed_if_there_is_a_question(session, widgets):
    assert widgets.answer.layout.display == "none"
    session.run()
    assert widgets.answer.layout.display != "none"
    widgets.answer.value = "yes"
    assert session.board["decision"] == "yes"
    assert widgets.answer.value == ""
    assert widgets.answer.layout.display == "none"


def test_buttons_are_enabled_if_they_have_an_effect(session, widgets):
    assert able(widgets) == {"step", "into", "over", "run"}
    session.run()
    assert able(widgets) == {"back", "run_back", "stop", "reset"}


def test_the_status_line_reports_steps_and_errors(session, widgets):
    widgets.buttons["step"].click()
    assert widgets.line.value.startswith("Step 1: 'classify'")
    widgets.slider.max = 9
    widgets.slider.value = 9
    assert widgets.line.value.startswith("X111")


def test_closed_controls_receive_nothing(session):
    controls = Controls(session)
    controls.close()
    session.step()
    assert controls.slider.value == 0


def test_the_buttons_step_into_a_node_and_release_it():
    session = nb.Session(nb.samples("moderation"))
    controls = session.controls()
    for _ in range(3):
        controls.buttons["into"].click()
    assert (session.status, controls.answer.layout.display) == ("in_flight", "none")
    assert "Held before agent call" in controls.line.value
    controls.buttons["stop"].click()
    assert (session.status, session.current) == ("paused", "llm")
    controls.buttons["run_back"].click()
    assert session.position == 0
    controls.close()


def test_the_buttons_step_by_frame():
    session = nb.Session(nb.samples("research"))
    controls = session.controls()
    for _ in range(3):
        controls.buttons["step"].click()
    assert "out" in able(controls)
    controls.buttons["out"].click()
    assert (session.position, session.current, "out" in able(controls)) == (6, "each", False)
    controls.buttons["over"].click()
    assert session.position > 6
    controls.close()


def test_the_speed_is_chosen_and_shown(session, widgets):
    widgets.speed.value = 3.0
    assert session.speed == 3
    widgets.speed.value = 0.0
    assert session.speed is None
    session.speed = 7
    assert (widgets.speed.value, widgets.speed.label) == (7.0, "7 a second")


def test_run_to_a_node_can_be_chosen(session, widgets):
    widgets.to.value = "ask"
    assert (session.current, session.position, widgets.to.value) == ("ask", 1, "")
    session.run()
    assert widgets.to.disabled


def test_controls_do_not_block_the_event_loop():
    async def main():
        session = ticket_recipe.session("hello")
        controls = session.controls()
        controls.speed.value = 10.0
        controls.buttons["over"].click()
        for _ in range(50):
            await asyncio.sleep(0.01)
            if controls.slider.value:
                break
        assert (session.position, session.speed, controls.slider.value) == (1, 10.0, 1)
        controls.buttons["pause"].click()
        await asyncio.sleep(0)
        controls.close()

    asyncio.run(main())
