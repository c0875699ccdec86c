from __future__ import annotations

import json

import pytest

from tests.ui import ticket_recipe
from tests.ui.conftest import Host
from tests.ui.pages import HOST

pytestmark = pytest.mark.needs_chromium
HOME = "http://127.0.0.1/notebook"  # a page that may keep something, as a notebook's may


@pytest.fixture
def opened_again(browser):
    """Return a function that opens the page anew, with a cockpit on it; what the browser keeps stays."""
    page = browser.new_page()
    page.route(
        "**/notebook", lambda route: route.fulfill(body="<!doctype html><body></body>", content_type="text/html")
    )

    def again():
        page.goto(HOME)
        page.evaluate(HOST)
        return Host(page, ticket_recipe.session(), 1)

    page.goto(HOME)
    page.evaluate("localStorage.clear()")
    yield again
    page.close()


def pane(on, name, view=0):
    return on.page.locator(f"[data-pane={name}]").nth(view)


def tall(on, name, view=0):
    return round(pane(on, name, view).locator(".agentnb-room").bounding_box()["height"])


def sash(on, name):
    return pane(on, name).get_by_role("separator", name="height of")


def columns(on):
    return [round(on.page.locator(f".agentnb-{side}").bounding_box()["width"]) for side in ("left", "right")]


def test_a_closed_pane_stays_closed_in_the_next_cockpit(opened_again):
    on = opened_again()
    on.button("Timeline").click()
    assert on.button("Timeline").get_attribute("aria-expanded") == "false"
    on = opened_again()
    assert on.button("Timeline").get_attribute("aria-expanded") == "false"
    assert not pane(on, "timeline").locator(".agentnb-timeline").is_visible()
    on.button("Timeline").click()
    assert opened_again().button("Timeline").get_attribute("aria-expanded") == "true"


def test_height_and_width_are_kept_for_the_next_cockpit(opened_again):
    on = opened_again()
    before, wide = tall(on, "board"), columns(on)
    sash(on, "board").press("ArrowDown")
    on.page.get_by_role("separator", name="width of the columns").press("ArrowLeft")
    assert (tall(on, "board"), columns(on)[0] < wide[0]) == (before + 16, True)
    wide = columns(on)
    on = opened_again()
    assert (tall(on, "board"), columns(on)) == (before + 16, wide)


def test_the_widths_of_the_boards_columns_are_kept_until_they_are_reset(opened_again):
    def wide(on, name):
        return round(on.page.locator(f"thead .agentnb-{name}").bounding_box()["width"])

    on = opened_again()
    before = [wide(on, name) for name in ("heading", "by")]
    grip = on.page.get_by_role("separator", name="width of the column Key")
    box = grip.bounding_box()
    on.page.mouse.move(box["x"] + 4, box["y"] + 4)
    on.page.mouse.down()
    on.page.mouse.move(box["x"] + 44, box["y"] + 4, steps=3)
    on.page.mouse.up()
    on.page.get_by_role("separator", name="width of the column Step").press("ArrowLeft")
    assert [wide(on, name) for name in ("heading", "by")] == [before[0] + 40, before[1] + 8]
    on = opened_again()
    assert [wide(on, name) for name in ("heading", "by")] == [before[0] + 40, before[1] + 8]
    for name in ("Key", "Step"):
        on.page.get_by_role("separator", name=f"width of the column {name}").dblclick()
    assert [wide(on, name) for name in ("heading", "by")] == before
    assert [wide(opened_again(), name) for name in ("heading", "by")] == before


def test_foreign_text_in_local_storage_is_harmless(opened_again):
    on = opened_again()
    on.page.evaluate("localStorage.setItem('agentnb.panes', '{nonsense')")
    assert tall(opened_again(), "board") == tall(on, "board")
    on.page.evaluate(
        "kept => localStorage.setItem('agentnb.panes', kept)", json.dumps({"tall": {"board": "x"}, "open": 3})
    )
    assert tall(opened_again(), "board") == tall(on, "board")


@pytest.mark.parametrize("pane", ["board", "forks"])  # forks is as high as its content until then
def test_a_pane_is_resized_by_dragging_and_reset_by_a_double_click(host, pane):
    on = host()
    sash(on, pane).scroll_into_view_if_needed()
    before, box = tall(on, pane), sash(on, pane).bounding_box()
    on.page.mouse.move(box["x"] + 40, box["y"] + 3)
    on.page.mouse.down()
    on.page.mouse.move(box["x"] + 40, box["y"] + 63, steps=3)
    on.page.mouse.up()
    on.page.wait_for_timeout(50)
    assert tall(on, pane) == before + 60
    assert sash(on, pane).get_attribute("aria-valuenow") == str(before + 60)
    sash(on, pane).dblclick()
    on.page.wait_for_timeout(50)
    assert tall(on, pane) == before


def test_a_message_at_a_field_of_a_pane_is_not_cut(host):
    on = host()
    field = on.page.get_by_label("stop when this holds", exact=True)
    field.fill("n >")
    field.press("Enter")
    on.obey()
    on.page.wait_for_timeout(50)
    inside = """message => {
      const [one, room] = [message, message.closest('.agentnb-room')].map(each => each.getBoundingClientRect());
      return message.textContent !== '' && one.bottom <= room.bottom;
    }"""
    assert on.page.locator(".agentnb-stop-form .agentnb-wrong").evaluate(inside)


def test_a_pane_keeps_a_minimum_height_and_its_keys(host):
    on = host()
    for _ in range(40):
        sash(on, "board").press("ArrowUp")
    assert tall(on, "board") >= 40
    on.page.get_by_role("separator", name="width of the columns").press("ArrowRight")
    assert on.sent() == []


def test_growing_panes_push_only_lists(host):
    on = host()
    places = """[...document.querySelectorAll('.agentnb-pane:not(.agentnb-lists *)')]
        .map(one => one.getBoundingClientRect().top
            - document.querySelector('.agentnb-panes').getBoundingClientRect().top)"""
    before = on.page.evaluate(places)
    on.session.edit({f"key_{number}": "x" * 300 for number in range(40)})
    on.session.breakpoints.add(node="ask")
    on.session.step()
    on.show()
    assert on.page.evaluate(places) == before


def test_everything_fits_on_a_screen(host):
    on = host()
    on.page.set_viewport_size({"width": 1200, "height": 900})
    on.session.step()
    on.show()
    assert on.page.locator(".agentnb-cockpit").bounding_box()["height"] <= 930


@pytest.mark.parametrize("width", [480, 600])  # a narrow cell; a wide one at a zoom of 200 %
def test_in_a_narrow_cockpit_the_columns_are_stacked(host, width):
    on = host()
    on.page.set_viewport_size({"width": width, "height": 900})
    tops = [
        pane(on, name).bounding_box()["y"]
        for name in ("graph", "timeline", "stack", "board", "details", "stops", "forks")
    ]
    assert tops == sorted(tops)
    assert not on.page.get_by_role("separator", name="width of the columns").is_visible()
    assert on.page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def test_two_views_have_separate_panes(host):
    on = host(views=2)
    before = tall(on, "board", 1)
    pane(on, "board").get_by_role("button", name="Blackboard").click()
    pane(on, "forks").get_by_role("separator").press("ArrowDown")
    assert tall(on, "board", 1) == before
    assert tall(on, "forks", 0) == tall(on, "forks", 1) + 16


def test_every_scrolling_pane_can_be_reached_by_keyboard(host):
    on = host()
    lost = """[...document.querySelectorAll('.agentnb-room, .agentnb-room *')].filter(
        one => one.scrollHeight > one.clientHeight + 1 && getComputedStyle(one).overflowY === 'auto' && one.tabIndex < 0
        && !one.querySelector('[tabindex="0"], button, input')).map(one => one.className)"""
    on.session.edit({f"key_{number}": number for number in range(40)})
    on.show()
    assert on.page.evaluate(lost) == []
