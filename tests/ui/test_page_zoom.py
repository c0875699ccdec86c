from __future__ import annotations

import pytest

import agentnb as nb
from tests.ui import ticket_recipe
from tests.ui.page_graphs import WIDTH, chosen, done, long, node, tool

pytestmark = pytest.mark.needs_chromium

SCROLL = "[...document.querySelectorAll('.agentnb-graph')].map(each => [each.scrollLeft, each.scrollTop])[0]"
IN_SIGHT = """id => {
  const outer = document.querySelector('.agentnb-graph').getBoundingClientRect();
  const inner = document.querySelector(`g.node[data-node="${id}"]`).getBoundingClientRect();
  return inner.top >= outer.top && inner.bottom <= outer.bottom
    && inner.left >= outer.left && inner.right <= outer.right;
}"""


@pytest.fixture
def on(host):
    return host(ticket_recipe.session("hello"))


def test_it_zooms_by_buttons_and_keys_and_keeps_its_size_over_steps(on):
    fitted = on.page.evaluate(WIDTH)
    tool(on, "Zoom in").click()
    larger = on.page.evaluate(WIDTH)
    assert larger > fitted
    on.session.step()
    on.show()
    assert on.page.evaluate(WIDTH) == larger
    on.page.get_by_label("Graph, scrolls").focus()
    on.page.keyboard.press("-")
    assert on.page.evaluate(WIDTH) == pytest.approx(fitted, abs=0.5)
    on.page.keyboard.press("-")
    assert on.page.evaluate(WIDTH) < fitted
    on.page.keyboard.press("0")
    size, window = (on.page.locator(part).first.bounding_box() for part in (".agentnb-graph svg", ".agentnb-graph"))
    assert size["height"] <= window["height"]
    tool(on, "Actual size").click()
    natural = on.page.evaluate("document.querySelector('.agentnb-graph svg').viewBox.baseVal.width * 4 / 3")
    assert on.page.evaluate(WIDTH) == pytest.approx(natural, abs=0.5)
    assert done(on) == []


def test_the_wheel_zooms_with_a_modifier_around_the_pointer(on):
    script = """() => { const box = document.querySelector('g.node[data-node=refuse] .shape').getBoundingClientRect();
        return [box.left + box.width / 2, box.top + box.height / 2]; }"""
    tool(on, "Actual size").click()
    for _ in range(3):
        tool(on, "Zoom in").click()
    node(on, "refuse").scroll_into_view_if_needed()
    before, wide = on.page.evaluate(script), on.page.evaluate(WIDTH)
    on.page.mouse.move(*before)
    on.page.keyboard.down("Control")
    on.page.mouse.wheel(0, -40)
    on.page.keyboard.up("Control")
    on.page.wait_for_function(f"{WIDTH} > {wide}")
    assert on.page.evaluate(script) == pytest.approx(before, abs=3)


def test_pinch_zooms_and_one_finger_scrolls(on):
    fingers = """(moves) => {
      const graph = document.querySelector('.agentnb-graph');
      for (const [type, pointerId, x, y] of moves) {
        const at = {pointerId, pointerType: 'touch', clientX: x, clientY: y, bubbles: true};
        graph.dispatchEvent(new PointerEvent(type, at));
      }
    }"""
    before = on.page.evaluate(WIDTH)
    on.page.evaluate(fingers, [["pointerdown", 1, 300, 300], ["pointermove", 1, 380, 380], ["pointerup", 1, 380, 380]])
    assert on.page.evaluate(WIDTH) == before
    on.page.evaluate(fingers, [
        ["pointerdown", 1, 300, 300], ["pointerdown", 2, 400, 300], ["pointermove", 2, 500, 300],
        ["pointerup", 2, 500, 300], ["pointermove", 1, 900, 300], ["pointerup", 1, 900, 300],
    ])  # fmt: skip
    assert on.page.evaluate(WIDTH) == pytest.approx(before * 2, rel=0.01)


def test_it_can_be_dragged_and_a_drag_is_not_a_click(on):
    for _ in range(6):
        tool(on, "Zoom in").click()
    before = on.page.evaluate(SCROLL)
    at = on.page.locator(".agentnb-graph").first.bounding_box()
    middle = (at["x"] + at["width"] / 2, at["y"] + at["height"] / 2)
    on.page.mouse.move(*middle)
    on.page.mouse.down()
    on.page.mouse.move(middle[0] - 30, middle[1] - 50, steps=4)
    on.page.mouse.up()
    assert on.page.evaluate(SCROLL) == pytest.approx([before[0] + 30, before[1] + 50], abs=1)
    assert (chosen(on), done(on)) == ([], [])


def test_it_follows_the_run_unless_told_not_to(host):
    session = nb.Session(long(60))
    on = host(session)
    on.page.emulate_media(reduced_motion="reduce")
    assert on.page.evaluate(IN_SIGHT, "n0")
    session.step(50)
    on.show()
    assert on.page.evaluate(IN_SIGHT, "n50")
    follow = tool(on, "Follow")
    follow.click()
    assert follow.get_attribute("aria-pressed") == "false"
    session.goto(0)
    on.show()
    assert not on.page.evaluate(IN_SIGHT, "n0")
    follow.click()
    assert on.page.evaluate(IN_SIGHT, "n0")


def test_a_page_shown_later_shows_the_current_position(host):
    """A notebook puts a view together before the view has a place and a size."""
    session = nb.Session(long(60))
    session.step(50)
    on = host(session)
    on.page.evaluate("""async () => {
      const root = document.querySelector('.agentnb-cockpit');
      root.parentNode.style.display = 'none';
      // Two frames: if none is drawn while it is hidden, its size has not changed.
      await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
      host.fire('change:svg');
    }""")
    on.page.evaluate("document.querySelector('.agentnb-cockpit').parentNode.style.display = ''")
    on.page.wait_for_function(f"({IN_SIGHT})('n50')")
