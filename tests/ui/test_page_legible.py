from __future__ import annotations

import operator

import networkx as nx
import pytest

import agentnb as nb
from agentnb.ui.commands import run_command
from tests.ui import ticket_recipe
from tests.ui.page_graphs import approval

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
    value = on.page.evaluate(MEASURED)
    assert value["least"] >= 11
    assert value["cut"] <= 0
    assert value["flows"] <= 2  # the reads and the writes of the current node


@pytest.mark.parametrize("width", [590, 700, 860, 960, 1280])
def test_buttons_and_speed_are_on_one_line(host, width):
    on = host(ticket_recipe.session())
    on.page.set_viewport_size({"width": width, "height": 900})
    tops = on.page.evaluate(
        "[...document.querySelectorAll('.agentnb-buttons > *')].map(each => each.getBoundingClientRect().top)"
    )
    assert len(tops) == 11
    assert len(set(tops)) == 1


def test_written_keys_are_the_first_rows_with_the_previous_value(host):
    on = host(ticket_recipe.session("hello"))
    on.session.edit({"reply": "old"})
    on.session.step(2)
    on.show()
    first = on.page.locator(".agentnb-board tbody:not([hidden]) > tr").first
    assert first.get_attribute("data-row") == "reply"
    assert first.locator(".agentnb-value").inner_text() == "'old' → 'no'"


def test_a_list_that_grew_shows_what_was_appended(host):
    graph = nx.MultiDiGraph(reducers={"log": operator.add}, init={"log": ["a"]}, supersteps=True)
    graph.add_node("write", function=lambda board: {"log": ["b"]})
    on = host(nb.Session(nb.load(graph)))
    on.session.step()
    on.show()
    value = on.page.locator("tr[data-row=log] .agentnb-value")
    assert value.inner_text() == "… + 'b'"
    on.session.back()
    on.show()
    assert value.inner_text() == "['a']"


def test_enter_submits_a_field_even_if_the_page_cancels_the_event(host):
    on = host()
    on.page.evaluate("document.body.addEventListener('beforeinput', event => event.preventDefault(), true)")
    for label, typed, sent in (
        ("stop when this holds", "n > 3", ("query", "breakpoint")),
        ("watch this", "ticket", ("query", "condition")),
        ("name of the fork", "", ("fork", {"name": None, "expect": None})),
    ):
        box = on.page.get_by_label(label, exact=True)
        box.evaluate("(box, text) => { box.value = text; }", typed)
        box.focus()
        box.press("Enter")
        assert on.sent() == [sent]  # the kernel looks at an expression before it is added


def test_a_question_shows_its_subject(host):
    on = host()
    on.session.run()
    on.show(problems=[])
    card = on.page.locator(".agentnb-ask")
    assert card.locator(".agentnb-artifact").inner_text().split() == ["ticket", "money", "back"]
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


def test_a_question_mark_shows_the_shortcuts_and_a_node_has_a_menu(host):
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


# What ends right of the cockpit or of its own pane and cannot be scrolled to, and texts of empty fields that are cut.
CUT_OFF = """() => {
  const root = document.querySelector('.agentnb-cockpit');
  const pen = document.createElement('canvas').getContext('2d');
  const parts = [...root.querySelectorAll('*')].filter(one => one.offsetParent !== null && !one.closest('svg'));
  const scrolls = one => ['auto', 'scroll'].includes(getComputedStyle(one).overflowX);
  const isCut = one => {
    const {right} = one.getBoundingClientRect();
    for (let box = one.parentElement; root.contains(box); box = box.parentElement) {
      if (scrolls(box)) return false;
      if (getComputedStyle(box).textOverflow === 'ellipsis') return false;
      if ((box === root || box.matches('.agentnb-pane, .agentnb-cards > *')) && right > box.getBoundingClientRect().right + 1) return true;
    }
    return false;
  };
  const hides = one => {
    const {font, paddingLeft, paddingRight} = getComputedStyle(one);
    pen.font = font;
    return pen.measureText(one.placeholder).width > one.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight) + 1;
  };
  return [
    ...parts.filter(one => !one.closest('.agentnb-hidden') && isCut(one)).map(one => `${one.tagName} ${one.className}`),
    ...parts.filter(one => one.matches('input[placeholder]') && !one.value && hides(one)).map(one => one.placeholder),
  ];
}"""  # noqa: E501


def _failing():
    graph = nx.DiGraph(name="failing", entry="divide")

    def divide(board):
        return {"a_quotient_with_a_long_name": board["dividend"] / board["divisor"], "why": "a wide line of source"}

    graph.add_node("divide", function=divide)
    session = nb.Session(nb.load(graph), {"dividend": 1.0, "divisor": 0.0})
    session.run()
    return session


def _compared():
    session = nb.Session(nb.samples("refine"), {"number": 2.0})
    session.run()
    session.goto(8)
    high = session.fork(name="high", expect="error < 1")
    high.run()
    run_command(session, "beside", None, high.run_id)
    return session


def _waiting():
    session = nb.Session(nb.samples("triage"), {"ticket": "I was charged twice."})
    session.run()
    return session


@pytest.mark.parametrize("make", [_failing, _compared, _waiting, approval])
def test_nothing_is_cut_off_at_any_width(host, make):
    on = host(make())
    on.obey()
    for width in (250, 360, 430, 600, 700, 940, 1100, 1440, 1600):  # the first two: 700 pixels at a zoom of 200 %
        on.page.set_viewport_size({"width": width, "height": 900})
        on.page.wait_for_timeout(60)
        assert on.page.evaluate(CUT_OFF) == [], width


def test_the_current_step_stays_in_view_at_another_width(host):
    session = nb.Session(nb.samples("refine"), {"number": 2.0})
    session.run()
    session.goto(9)
    on = host(session)
    on.obey()
    seen = """() => {
      const [one, strip] = ['[aria-current]', '.agentnb-strip'].map(
        each => document.querySelector(`.agentnb-strip ${each}, ${each}.agentnb-strip`).getBoundingClientRect());
      return one.left >= strip.left && one.right <= strip.right;
    }"""
    for width in (1600, 700, 1100, 500):
        on.page.set_viewport_size({"width": width, "height": 900})
        on.page.wait_for_timeout(100)
        assert on.page.evaluate(seen), width
