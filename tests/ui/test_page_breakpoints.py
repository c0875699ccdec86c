from __future__ import annotations

import pytest

import agentnb as nb
from tests.ui import ticket_recipe

pytestmark = pytest.mark.needs_chromium


@pytest.fixture
def on(host):
    return host(ticket_recipe.session("hello"))


def node(on, name):
    return on.page.locator(f"g.node[data-node={name}]")


def margin(on, name):
    return node(on, name).locator(".agentnb-reach")


def test_a_breakpoint_set_in_the_drawing_stops_the_run_and_is_listed(on):
    margin(on, "tell").click()
    on.obey()
    on.session.run()
    assert on.session.current == "tell"
    on.show()
    assert "stopped here" in on.page.locator(".agentnb-stops").inner_text()
    margin(on, "tell").click()
    on.obey()
    assert (on.marked("breakpoint"), len(on.session.breakpoints)) == ([], 0)


def test_a_screen_reader_announces_a_node(on):
    on.session.step()
    on.show()
    assert on.page.get_by_role("button", name="node classify, visited ×1").count() == 1
    assert on.page.get_by_role("button", name="node refuse, current").count() == 1


def test_a_breakpoint_is_disabled_and_removed_in_its_list(on):
    on.session.breakpoints.add(node="tell")
    on.show()
    pane = on.page.locator(".agentnb-stops")
    pane.get_by_role("checkbox").click()
    assert on.obey() == ["enable"]
    assert [row.enabled for row in on.session.breakpoints] == [False]
    assert (on.marked("breakpoint"), pane.get_by_role("checkbox").is_checked()) == ([], False)
    pane.get_by_role("button", name="remove breakpoint: before 'tell'").click()
    on.obey()
    assert len(on.session.breakpoints) == 0
    assert on.page.get_by_role("button", name="Breakpoints (0) and watches (0)").is_visible()


def test_conditions_are_added_and_errors_in_one_are_reported(on):
    pane = on.page.locator(".agentnb-stops")
    box = pane.get_by_label("stop when this holds", exact=True)
    box.fill("category == 'other'")
    box.press("Enter")
    assert on.obey() == ["query", "stop_when"]
    on.session.run()
    assert on.session.position == 1
    box.fill("category ==")
    box.press("Enter")
    assert on.obey() == ["query"]
    assert "it is incomplete after '=='" in pane.locator(".agentnb-wrong:not(:empty)").inner_text()
    assert box.input_value() == "category =="


def test_other_clauses_are_chosen_and_a_message_makes_a_logpoint(on):
    pane = on.page.locator(".agentnb-stops")
    on.obey()
    choices = pane.get_by_label("what stops the run")
    for label, typed, text in (
        ("a value changes in place", "", "changed in place"),
        ("a node sees the same board again", "", "no progress"),
        ("the budget is used up to", "80%", "budget 80%"),
    ):
        choices.select_option(label=label)
        box = pane.get_by_label(f"stop when {label}", exact=True)
        box.fill(typed)
        box.press("Enter")
        assert on.obey() == ["query", "stop_when"]
        assert str([*on.session.breakpoints][-1]) == text
    choices.select_option(label="this holds")
    pane.get_by_label("stop when this holds", exact=True).fill("category")
    log = pane.get_by_label("message to log instead of stopping")
    log.fill("{{ category }}")
    log.press("Enter")
    assert on.obey() == ["query", "stop_when"]
    assert pane.get_by_label("breakpoints", exact=True).inner_text().count("log '{{ category }}' when category") == 1
    choices.select_option(label="the budget is used up to")
    box = pane.get_by_label("stop when the budget is used up to", exact=True)
    box.fill("a lot")
    box.press("Enter")
    assert on.obey() == ["query"]
    assert "not a share of a limit" in pane.locator(".agentnb-wrong:not(:empty)").inner_text()
    assert box.input_value() == "a lot"


def test_a_watch_follows_the_run(on):
    pane = on.page.locator(".agentnb-stops")
    pane.get_by_label("watch this", exact=True).fill("category")
    pane.get_by_label("add: watch this").click()
    assert on.obey() == ["query", "watch"]
    on.session.step()
    on.show()
    assert "category = 'other'" in pane.inner_text()
    pane.get_by_role("button", name="watch no longer: category").click()
    on.obey()
    assert list(on.session.watches) == []


def test_a_breakpoint_can_be_set_while_it_runs(on):
    on.show(status="running", can=["pause"])
    margin(on, "tell").click()
    assert ("stop_at", None) in on.sent()


def test_the_stack_shows_the_position_and_the_next_node(host):
    session = nb.Session(nb.samples("research"))
    on = host(session)
    session.step(8)
    on.show()
    pane = on.page.get_by_label("Call stack and next nodes")
    frames = pane.get_by_label("call stack, the outermost first").locator("li")
    assert frames.all_inner_texts() == ["research", "each round 2", "answer"]
    assert frames.last.get_attribute("aria-current") == "true"
    assert pane.get_by_label("what comes next").locator("li").all_inner_texts() == ["archive: entry of 'look_up'"]
    session.run()
    on.show()
    assert pane.get_by_text("Nothing comes next.").is_visible()
