from __future__ import annotations

import pytest

import agentnb as nb
from agentnb.ui import graph_view
from tests.ui.page_graphs import chosen, large, node, tool, wait_for

pytestmark = pytest.mark.needs_chromium


@pytest.fixture
def research(host):
    return host(nb.Session(nb.samples("research")))


def fold(on, scope):
    return on.page.locator(f'.agentnb-fold[data-scope="{scope}"]')


def test_a_region_collapses_to_a_summary_box_and_expands_again(research):
    on = research
    on.session.step(8)
    on.show()
    on.obey()
    fold(on, "look_up").click()
    on.obey()
    box = node(on, "region: look_up")
    assert on.marked("current") == ["region: look_up"]
    assert box.locator(".count").text_content() == "×2"
    assert (node(on, "archive").count(), box.get_attribute("aria-expanded")) == (0, "false")
    assert on.page.evaluate("document.activeElement.dataset.node") == "region: look_up"
    on.page.keyboard.press("Enter")
    on.obey()
    assert on.marked("current") == ["archive"]
    assert on.page.evaluate("document.activeElement.dataset.scope") == "look_up"


def test_a_step_inside_a_collapsed_region_is_shown_at_its_box(research):
    on = research
    fold(on, "each").focus()
    on.page.keyboard.press("Enter")
    on.obey()
    on.session.step(3)
    on.show()
    on.obey()
    assert on.marked("current") == ["region: each"]
    on.session.step()
    on.show()
    assert on.page.locator('.agentnb-graph g.flow.active[data-node="region: each"]').count() == 2
    taken = "[...document.querySelectorAll('g.edge.taken')].map(edge => edge.dataset.target)"
    assert on.page.evaluate(taken) == ["each", "region: each"]  # and the edge into the loop


def test_all_regions_collapse_and_expand_at_once(research):
    on = research
    tool(on, "Close all").click()
    on.obey()
    assert on.page.evaluate("[...document.querySelectorAll('g.kind-region')].map(box => box.dataset.node)") == [
        "region: each"
    ]
    tool(on, "Open all").click()
    on.obey()
    assert (on.page.locator("g.cluster").count(), on.page.locator("g.kind-region").count()) == (2, 0)


def test_each_view_has_its_own_collapsed_regions(host):
    on = host(nb.Session(nb.samples("research")), views=2)
    fold(on, "each").first.click()
    on.obey()
    assert on.page.locator("g.kind-region").count() == 1


def test_selecting_a_hidden_node_marks_its_box(research):
    on = research
    node(on, "archive").click()
    fold(on, "each").click()
    on.obey()
    assert chosen(on) == ["region: each"]
    assert node(on, "region: each").get_attribute("aria-pressed") is None


def test_a_large_recipe_has_no_layout_before_the_page_opens(host):
    session = nb.Session(large())
    assert not graph_view.draw_at_once(session).startswith("<svg")
    on = host(session)
    assert on.page.get_by_text("The graph is being laid out.").is_visible()
    assert graph_view.find_collapsed(session) == ("deep",)


def test_a_large_drawing_is_sent_on_request(host):
    session = nb.Session(large())
    on = host(session)
    on.page.evaluate("host.model.set('svg', 'drawing 0')")
    wait_for(on, "g.kind-region")
    assert on.page.locator("g.node").count() == 6
    assert not on.page.get_by_text("The graph is being laid out.").is_visible()
    node(on, "region: deep").click()
    wait_for(on, 'g.node[data-node="n199"]')
    assert on.page.locator("g.node").count() == 200
