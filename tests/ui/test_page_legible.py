from __future__ import annotations

import pytest

import agentnb as nb
from tests.ui import ticket_recipe

pytestmark = pytest.mark.needs_chromium

# The smallest text of the drawing in pixels, what is cut off at its right, and the height that it lacks.
MEASURED = """() => {
  const pane = document.querySelector('.agentnb-graph');
  const seen = element => element.getClientRects().length > 0 && getComputedStyle(element).display !== 'none';
  const sizes = [...pane.querySelectorAll('svg text')].filter(text => text.textContent && seen(text))
    .map(text => parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().a);
  const [board, flows] = [pane.querySelector('.board'), [...pane.querySelectorAll('.flow')]];
  const right = element => element.getBoundingClientRect().right;
  const cut = seen(board) ? right(board) - right(pane) : 0;
  return {least: Math.min(...sizes), cut, flows: flows.filter(seen).length};
}"""


@pytest.mark.parametrize("width", [700, 1280, 1600])
def test_the_text_of_the_graph_is_legible_and_the_board_is_never_cut(host, width):
    session = nb.Session(nb.samples("triage"), {"ticket": "I was charged twice."})
    on = host(session)
    on.page.set_viewport_size({"width": width, "height": 900})
    session.step(4)
    on.show()
    on.page.wait_for_timeout(200)
    found = on.page.evaluate(MEASURED)
    assert found["least"] >= 11
    assert found["cut"] <= 0
    assert found["flows"] <= 2  # the reads and the writes of the current node


@pytest.mark.parametrize("width", [700, 860, 960, 1280])
def test_the_buttons_and_the_speed_are_one_line(host, width):
    on = host(ticket_recipe.session())
    on.page.set_viewport_size({"width": width, "height": 900})
    tops = on.page.evaluate(
        "[...document.querySelectorAll('.agentnb-buttons > *')].map(each => each.getBoundingClientRect().top)"
    )
    assert len(tops) == 11
    assert len(set(tops)) == 1


def test_what_was_written_is_the_first_row_with_the_value_before(host):
    on = host(ticket_recipe.session("hello"))
    on.session.edit({"reply": "old"})
    on.session.step(2)
    on.show()
    first = on.page.locator(".agentnb-board tbody:not([hidden]) > tr").first
    assert first.get_attribute("data-row") == "reply"
    assert first.locator(".agentnb-value").inner_text() == "'old' → 'no'"


def test_enter_submits_a_field_where_the_page_around_cancels_the_event_that_would(host):
    on = host()
    on.page.evaluate("document.body.addEventListener('beforeinput', event => event.preventDefault(), true)")
    for label, typed, sent in (
        ("stop when this holds", "n > 3", ("look", "breakpoint")),
        ("watch this", "ticket", ("look", "condition")),
        ("name of the fork", "", ("fork", {"name": None, "expect": None})),
    ):
        box = on.page.get_by_label(label, exact=True)
        box.evaluate("(box, text) => { box.value = text; }", typed)
        box.focus()
        box.press("Enter")
        assert on.sent() == [sent]  # the kernel looks at an expression before it is added


def test_a_question_shows_what_it_is_about(host):
    on = host()
    on.session.run()
    on.show(problems=[])
    card = on.page.locator(".agentnb-ask")
    assert card.locator(".agentnb-artefact").inner_text().split() == ["ticket", "money", "back"]
    left = "document.querySelector('.agentnb-graph').getBoundingClientRect().top"
    before = on.page.evaluate(left)
    on.show(pending=[], problems=[])
    assert on.page.evaluate(left) == before  # a card does not move the graph


def test_a_failed_node_shows_the_line_of_the_users_code(host):
    session = ticket_recipe.session()
    session.run()
    session.answer("explode")
    session.run()
    on = host(session)
    on.show()
    card = on.page.locator(".agentnb-problem[data-code=X100]")
    assert "raise ValueError" in card.locator(".agentnb-raised").inner_text()
    assert "ticket_recipe.py:" in card.locator(".agentnb-place").first.inner_text()
    card.get_by_text("Full traceback").click()
    assert "the till is empty" in card.locator("pre").last.inner_text()


def test_a_question_mark_shows_the_keys_and_a_node_has_a_menu(host):
    on = host()
    on.page.get_by_label("agentnb cockpit").focus()
    on.page.keyboard.press("?")
    sheet = on.page.get_by_role("dialog", name="Keys")
    assert "F10" in sheet.inner_text()
    on.page.keyboard.press("Escape")
    assert sheet.is_hidden()
    on.page.locator("g.node[data-node=tell]").click(button="right")
    on.page.get_by_role("menuitem", name="Run to here").click()
    assert on.page.evaluate("host.sent.splice(0).filter(one => one.do === 'run_to').map(one => one.target)") == ["tell"]
    assert on.page.get_by_role("menu").is_hidden()
