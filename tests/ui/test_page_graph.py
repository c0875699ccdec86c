from __future__ import annotations

import json

import pytest

import agentnb as nb
from agentnb.draw.svg_patch import diff_patches
from agentnb.ui import graph_view, picture_marks
from tests.ui import ticket_recipe
from tests.ui.page_graphs import chosen, done, long, node, obeyed, tool

pytestmark = pytest.mark.needs_chromium


@pytest.fixture
def on(host):
    return host(ticket_recipe.session("hello"))


# -- nodes ------------------------------------------------------------------------------------------------------------


def test_a_click_selects_a_node_without_a_query(on):
    node(on, "tell").click()
    assert (done(on), chosen(on)) == ([], ["tell"])
    assert node(on, "tell").get_attribute("aria-pressed") == "true"
    node(on, "ask").click()
    assert chosen(on) == ["ask"]
    assert node(on, "tell").get_attribute("aria-pressed") == "false"


def test_a_click_in_the_margin_sets_a_breakpoint_and_another_removes_it(on):
    margin = node(on, "tell").locator(".agentnb-reach")
    assert not node(on, "tell").locator(".dot").is_visible()
    margin.click()
    assert obeyed(on) == ["stop_at"]
    assert (on.marked("breakpoint"), chosen(on)) == (["tell"], [])
    assert node(on, "tell").locator(".dot").is_visible()
    margin.click()
    on.obey()
    assert (on.marked("breakpoint"), len(on.session.breakpoints)) == ([], 0)


def test_the_margin_is_large_enough_to_be_hit(on):
    size = node(on, "tell").locator(".agentnb-reach").bounding_box()
    assert min(size["width"], size["height"]) >= 16


def test_nodes_are_reached_selected_and_given_breakpoints_by_keyboard(on):
    node(on, "classify").focus()
    names = []
    for _ in range(len(on.session.recipe.nodes)):
        names.append(on.page.evaluate("document.activeElement.dataset.node"))
        on.page.keyboard.press("ArrowDown")
    assert sorted(names) == sorted(on.session.recipe.nodes)
    for key in ("Enter", "b"):
        on.page.keyboard.press(key)
    assert (chosen(on), obeyed(on)) == ([names[0]], ["stop_at"])
    assert [row.node for row in on.session.breakpoints] == [names[0]]
    assert on.page.evaluate("document.querySelectorAll('g.node[tabindex=\"0\"]').length") == 1


def test_a_card_describes_the_element_under_the_pointer(on):
    on.session.step()
    on.show()
    node(on, "ask").hover()
    card = on.page.locator(".agentnb-tip").first
    card.wait_for()
    assert card.inner_text().split("\n")[:3] == ["Ask the owner (ask)", "human", "reads ticket"]
    node(on, "classify").hover()
    on.page.wait_for_function("document.querySelector('.agentnb-tip').innerText.includes('visited ×1')")
    on.page.mouse.move(2, 2)
    card.wait_for(state="hidden")
    assert on.page.locator(".agentnb-graph title").count() == 0


def test_a_card_describes_an_edge(on):
    point = on.page.locator("g.edge[data-source=classify][data-target=ask] .agentnb-near").evaluate("""line => {
      const middle = line.getPointAtLength(line.getTotalLength() / 2).matrixTransform(line.getScreenCTM());
      return [middle.x + 3, middle.y];
    }""")
    on.page.mouse.move(*point)
    card = on.page.locator(".agentnb-tip").first
    card.wait_for()
    assert card.inner_text().split("\n") == ["classify → ask", "conditional category == 'refund'"]


def test_the_card_opens_on_focus_and_closes_with_escape(on):
    on.page.get_by_label("Graph, scrolls").focus()
    on.page.keyboard.press("Tab")
    card = on.page.locator(".agentnb-tip").first
    card.wait_for()
    on.page.keyboard.press("Escape")
    assert not card.is_visible()


# -- the board in the drawing -----------------------------------------------------------------------------------------


def row(on, key):
    return on.page.locator(f'.agentnb-graph g.row[data-row="{key}"]')


def test_the_drawn_board_shows_current_values(on):
    assert row(on, "ticket").locator(".value").text_content() == "'hello'"
    assert ticket_recipe.KEY not in on.page.locator(".agentnb-graph").first.inner_html()
    on.session.step()
    on.show()
    assert row(on, "category").locator(".value").text_content() == "'other'"
    assert "written" in row(on, "category").get_attribute("class")
    on.session.back()
    on.show()
    assert row(on, "category").locator(".value").text_content() == ""
    assert row(on, "category").get_attribute("class") == "row"


def test_a_long_value_is_truncated_in_its_row_and_its_card_shows_more(on):
    on.session.edit({"ticket": "what is long " * 6, "api_key": "長い" * 20})
    on.show()
    shown = row(on, "ticket").locator(".value").text_content()
    assert (len(shown), shown[-1]) == (24, "…")
    tool(on, "Board").click()  # beside the graph there is no room for it at this width
    row(on, "ticket").hover()
    card = on.page.locator(".agentnb-tip").first
    card.wait_for()
    assert card.inner_text().startswith("ticket = 'what is long what is long what is long")
    assert "read by classify" in card.inner_text()


def test_a_new_key_gets_its_own_row(on):
    on.session.run()
    on.show()
    assert row(on, "sent").locator(".key").text_content() == "sent"
    assert row(on, "sent").locator(".value").text_content() == "True"
    on.session.goto(0)
    on.show()
    assert row(on, "sent").count() == 0


def test_edges_of_the_current_node_are_highlighted(on):
    lit = "[...document.querySelectorAll('g.flow.active')].map(({ dataset: d }) => `${d.direction} ${d.node}`)"
    assert sorted(on.page.evaluate(lit)) == ["read classify", "write classify"]
    on.session.step()
    on.show()
    assert on.page.evaluate(lit) == ["write refuse"]


def test_observed_edges_are_requested_when_the_run_pauses(on):
    flow = on.page.locator("g.flow[data-node=tell][data-direction=write]")
    on.session.run()
    on.show(status="running")
    assert flow.count() == 0
    on.show()
    on.obey()
    assert flow.count() == 1
    assert flow.locator(".line").get_attribute("d").startswith("M")
    on.session.goto(0)
    on.show()
    on.obey()
    assert flow.count() == 0


def test_a_hidden_board_takes_no_space(on):
    board = tool(on, "Board")
    board.click()
    wide = on.page.evaluate("document.querySelector('.agentnb-graph svg').viewBox.baseVal.width")
    board.click()
    assert board.get_attribute("aria-pressed") == "false"
    assert not on.page.locator(".agentnb-graph g.board").is_visible()
    assert on.page.evaluate("document.querySelector('.agentnb-graph svg').viewBox.baseVal.width") < wide - 200
    board.click()
    assert on.page.locator(".agentnb-graph g.board").is_visible()
    assert done(on) == []


def test_changes_of_the_drawing_per_step_are_small(on):
    for size in (10, 1000):
        session = nb.Session(long(size))
        session.edit({f"key{number}": number for number in range(size)})
        drawing = graph_view.get_drawing(session)
        before = picture_marks.mark_picture(drawing, session._parts.pictures.view())
        session.step()
        actual = diff_patches(before, picture_marks.mark_picture(drawing, session._parts.pictures.view()))
        assert set(actual["nodes"]) == {"n0", "n1"}
        assert len(json.dumps(actual)) < 300


# -- the table --------------------------------------------------------------------------------------------------------


def test_the_graph_has_a_table_that_follows_the_run(on):
    table = on.page.get_by_role("table", name="Nodes of the graph")
    assert table.count() == 0
    tool(on, "Table").click()
    rows = [line.split("\t") for line in table.locator("tbody tr").all_inner_texts()]
    assert rows[0] == ["classify", "function", "is next", "ask (category == 'refund'), refuse"]
    assert rows[-1] == ["tell", "function", "not yet", "–"]
    on.session.step()
    on.session.breakpoints.add(node="tell")
    on.show()
    states = dict(zip(on.session.recipe.nodes, table.locator("td:nth-child(3)").all_inner_texts(), strict=True))
    assert (states["classify"], states["refuse"], states["tell"]) == ("ran ×1", "is next", "has a breakpoint")
    table.get_by_role("button", name="refuse").click()
    assert chosen(on) == ["refuse"]
    assert on.page.evaluate("document.querySelector('.agentnb-graph-table').closest('[aria-live]')") is None


def test_the_map_covers_no_node_if_a_corner_is_free(host):
    on = host(nb.Session(nb.samples("incident")))
    on.page.set_viewport_size({"width": 700, "height": 1000})
    on.page.locator("[data-pane=graph] .agentnb-map").wait_for()
    avoids_nodes = """() => {
      const pane = document.querySelector('[data-pane=graph]');
      const [map, window_] = ['.agentnb-map', '.agentnb-graph'].map(one => pane.querySelector(one).getBoundingClientRect());
      const nodes = [...pane.querySelectorAll('g.node .shape')].map(node => node.getBoundingClientRect());
      const cuts = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
      const moved = (left, top) => ({left, top, right: left + map.width, bottom: top + map.height});
      const [right, bottom] = [window_.right - map.width - 14, window_.bottom - map.height - 14];
      const corners = [[window_.left + 14, window_.top + 14], [window_.left + 14, bottom], [right, window_.top + 14], [right, bottom]];
      const free = corners.filter(corner => !nodes.some(node => cuts(node, moved(...corner))));
      return free.length > 0 && !nodes.some(node => cuts(node, map));
    }"""  # noqa: E501
    on.page.wait_for_function(avoids_nodes)
    assert on.page.locator("[data-pane=graph] .agentnb-map").get_attribute("data-corner") != "bottom right"
