from __future__ import annotations

import pytest

from tests.ui import ticket_recipe
from tests.ui.test_page_timeline import settle

pytestmark = pytest.mark.needs_chromium


@pytest.fixture
def on(host):
    session = ticket_recipe.session("hello")
    session.run()
    session.fork(at=1, name="bold").step()
    page_host = host(session)
    settle(page_host)
    return page_host


def rows(on):
    return [one.text_content() for one in on.page.locator(".agentnb-forks li").all()]


def test_the_tree_shows_start_length_and_selection_of_each_run(on):
    assert rows(on) == ["triage: 3 steps, finishedshown", "⋔ bold from step 1: 2 steps, pausedcompare"]
    assert on.page.locator(".agentnb-forks [aria-current=true]").text_content() == "triage"
    assert on.page.locator("[data-pane=forks] .agentnb-pane-title").text_content() == "Forks (1)"


def test_a_click_shows_a_run_and_the_header_names_it(on):
    first = on.session
    assert on.page.locator(".agentnb-run").text_content() == f"run {first.run_id[-6:]}"
    on.button("bold").click()
    assert on.obey() == ["switch"]
    settle(on)
    assert on.session.name == "bold"
    assert on.page.locator(".agentnb-run").text_content() == f"run bold {on.session.run_id[-6:]}, a fork of triage"
    assert on.page.locator(".agentnb-where").text_content() == "step 2 of 2"
    assert on.page.locator(".agentnb-forks [aria-current=true]").text_content() == "bold"
    on.button("triage").click()
    on.obey()
    settle(on)
    assert on.session is first


def test_fork_here_takes_a_name_and_shows_the_fork(on):
    on.page.get_by_label("name of the fork").fill(" braver ")
    on.button("Fork here").click()
    assert on.obey() == ["fork"]
    settle(on)
    assert (on.session.name, on.session.position) == ("braver", 3)
    assert "⋔ braver from step 3: 3 steps, finishedshown" in rows(on)
    assert on.page.get_by_label("name of the fork").input_value() == ""
    on.page.get_by_label("name of the fork").press("Enter")
    on.obey()
    settle(on)
    assert on.session.name == "braver@3"


def test_keys_typed_into_the_name_are_not_commands(on):
    box = on.page.get_by_label("name of the fork")
    box.press_sequentially("io R")
    assert (box.input_value(), on.sent()) == ("io R", [])


def test_abandoned_steps_are_shown_by_a_click(on):
    on.session.goto(1)
    on.session.set_next("tell")
    on.show()
    settle(on)
    on.button("triage, original").click()
    on.obey()
    settle(on)
    assert on.page.locator(".agentnb-where").text_content() == "step 3 of 3"


def test_an_impossible_fork_is_explained_by_the_button(on):
    on.show(can=["pause"], status="running")
    assert on.button("Fork here").get_attribute("aria-disabled") == "true"
    on.button("Fork here").click(force=True)
    assert on.sent() == []


def test_a_running_session_is_not_queried_until_it_pauses(on):
    for _ in range(5):
        on.show(status="running", length=9)
    assert [one for one in on.page.evaluate("host.sent") if one["value"] == "forks"] == []
    on.show()
    settle(on)
    assert len(rows(on)) == 2


def test_the_focus_stays_in_the_tree(on):
    on.button("bold").focus()
    on.page.keyboard.press("Enter")
    on.obey()
    settle(on)
    assert on.page.evaluate("Boolean(document.activeElement.closest('.agentnb-forks'))")
