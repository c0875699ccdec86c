"""In the page: two runs side by side, slices, search, expectations, logpoints, mistakes at their field, the layout."""

from __future__ import annotations

import pytest

import agentnb as nb
from tests.ui import ticket_recipe

pytestmark = pytest.mark.needs_chromium


def settled(on, times=6):
    for _ in range(times):
        on.obey()
        on.page.wait_for_timeout(60)


def refined():
    session = nb.Session(nb.samples("refine"), {"number": 2.0})
    session.run()
    return session


def test_a_second_run_opens_beside_the_first_and_one_slider_moves_both(host):
    session = refined()
    session.fork(at=6, edit={"guess": 40.0}, name="high", expect="error < 1").run()
    on = host(session)
    settled(on)
    assert on.page.locator("[data-holds=true]").inner_text() == "expected error < 1: holds"
    on.button("compare with high").click()
    settled(on)
    pane = on.page.locator("[data-pane=second]")
    assert "First divergence: step 6, 'better'" in pane.inner_text()
    assert on.marked("parted") == ["better"]
    pane.get_by_role("button", name="go to the first divergence").click()
    settled(on)
    assert session.position == 6
    assert pane.locator("[aria-current=step]").get_attribute("aria-label").startswith("step 6: better")
    assert on.page.locator("tr[data-row=guess] .agentnb-other").inner_text() == "40.0"
    assert on.page.locator(".agentnb-steps [data-step='7']").get_attribute("data-change") == "differs"
    pane.get_by_role("button", name="next difference").click()
    settled(on)
    assert session.position == 7
    pane.get_by_role("button", name="close the second run").click()
    settled(on)
    assert not pane.is_visible()
    assert on.marked("parted") == []


def test_a_click_on_a_key_shows_what_led_to_its_value(host):
    on = host(refined())
    settled(on)
    on.page.locator("tr[data-row=error] .agentnb-key").click()
    settled(on)
    pane = on.page.locator("[data-pane=details]")
    assert "What led to error" in pane.inner_text()
    assert "step 25, measure wrote error" in pane.inner_text()
    assert "measure" in on.marked("in-slice")
    assert on.page.locator(".agentnb-steps [data-slice]").count() > 0
    pane.get_by_role("button", name="step 25").first.click()
    settled(on)
    assert on.marked("in-slice") == []


def test_the_history_of_a_key_is_in_a_card_and_its_nodes_light_up(host):
    on = host(refined())
    settled(on)
    on.page.locator("tr[data-row=error] th").hover()
    on.page.wait_for_timeout(300)
    settled(on)
    card = on.page.locator(".agentnb-board .agentnb-tip")
    assert "step 25, measure" in card.inner_text()
    assert card.locator("polyline").count() == 1
    assert on.marked("agentnb-writes") == ["start", "measure"]
    on.page.locator("header").hover()
    assert on.marked("agentnb-writes") == []


def test_the_search_field_goes_to_the_previous_and_next_match(host):
    session = refined()
    session.goto(9)
    on = host(session)
    settled(on)
    on.page.get_by_label("find steps where this holds").fill("error < 0.5")
    on.page.wait_for_timeout(400)
    settled(on)
    on.button("next step found").click()
    settled(on)
    assert session.position == 11
    on.button("previous step found").click()
    settled(on)
    assert session.position == 8
    assert "2 of 15" in on.page.locator(".agentnb-finder").inner_text()


def test_an_error_is_shown_at_its_field_and_the_input_is_kept(host):
    on = host(ticket_recipe.session("hello"))
    box = on.page.get_by_label("stop when this holds", exact=True)
    box.fill("reply ==")
    box.press("Enter")
    on.obey()
    assert "it is incomplete after '=='" in on.page.locator(".agentnb-stops .agentnb-wrong:not(:empty)").inner_text()
    assert (box.input_value(), box.get_attribute("aria-invalid")) == ("reply ==", "true")
    assert on.page.locator(".agentnb-problem").count() == 0
    box.fill("reply == 'no'")
    box.press("Enter")
    on.obey()
    assert [row.text for row in on.session.breakpoints] == ["reply == 'no'"]
    assert box.input_value() == ""


def test_a_logpoint_is_set_from_a_nodes_menu_and_its_messages_are_shown(host):
    on = host(ticket_recipe.session("hello"))
    on.page.locator("g.node[data-node=tell]").click(button="right")
    on.page.get_by_role("menuitem", name="Log a message here …").click()
    on.page.get_by_label("message", exact=True).fill("reply is {{ reply }}")
    on.page.get_by_label("message", exact=True).press("Enter")
    on.obey()
    on.session.run()
    on.show()
    assert on.page.locator(".agentnb-messages").inner_text().split("\n") == ["Messages", "reply is no"]


def test_zoom_and_collapsed_regions_are_restored(host):
    on = host(refined())
    settled(on)
    on.page.evaluate("host.ends.forEach(end => end())")
    on.page.route("http://127.0.0.1:9/*", lambda route: route.fulfill(body="<!doctype html>", content_type="text/html"))
    on.page.goto("http://127.0.0.1:9/")  # a place with storage
    from tests.ui.conftest import Host
    from tests.ui.pages import HOST

    def opened():
        on.page.evaluate(HOST)
        fresh = Host(on.page, on.session, 1)
        settled(fresh)
        return fresh

    first = opened()
    first.page.get_by_role("button", name="close region one step of Newton's").click()
    first.page.get_by_role("button", name="Zoom in").first.click()
    settled(first)
    width = first.page.locator(".agentnb-graph svg").first.bounding_box()["width"]
    first.page.reload()
    again = opened()
    assert again.page.locator("g.node.kind-region").count() == 1
    assert abs(again.page.locator(".agentnb-graph svg").first.bounding_box()["width"] - width) < 2
