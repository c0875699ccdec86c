from __future__ import annotations

import pytest

import agentnb as nb
from tests.ui import ticket_recipe

pytestmark = pytest.mark.needs_chromium


@pytest.fixture
def incident():
    return nb.Session(nb.samples("incident"))


def pane(on):
    return on.page.locator("[data-pane=objects]")


def list_drawn(on):
    return on.page.evaluate(
        "[...document.querySelectorAll('[data-pane=objects] g.node')].map(group => group.dataset.node)"
    )


def test_objects_of_a_reactive_run_are_shown_beside_the_graph(host, incident):
    on = host(incident)
    assert pane(on).is_visible()
    on.show()
    on.obey()
    assert list_drawn(on) == []
    assert pane(on).get_by_text("No objects yet.").is_visible()
    incident.emit("alert.raised", {"service": "api", "text": "slow"})
    incident.step(2)
    on.show()
    on.obey()
    assert set(list_drawn(on)) == {"service#1", "alert#2", "incident#3"}
    assert pane(on).locator("g.edge").count() == 1


def test_an_unchanged_drawing_is_not_replaced(host, incident):
    on = host(incident)
    incident.emit("alert.raised", {"service": "api", "text": "slow"})
    incident.step()
    on.show()
    on.obey()
    on.page.evaluate("window.first = document.querySelector('[data-pane=objects] svg.agentnb')")
    on.show(said="something else")
    on.obey()
    assert on.page.evaluate("window.first === document.querySelector('[data-pane=objects] svg.agentnb')")


def test_it_keeps_its_size_over_steps_and_can_be_zoomed(host, incident):
    on = host(incident)
    incident.emit("alert.raised", {"service": "api", "text": "slow"})
    incident.step()
    on.show()
    on.obey()
    scale = """() => { const svg = document.querySelector('[data-pane=objects] svg.agentnb');
        return svg.getBoundingClientRect().width / svg.viewBox.baseVal.width; }"""
    before = on.page.evaluate(scale)
    pane(on).get_by_role("button", name="Zoom out").click()
    smaller = on.page.evaluate(scale)
    assert smaller < before
    incident.step()
    on.show()
    on.obey()
    assert on.page.evaluate(scale) == pytest.approx(smaller, abs=0.01)


def test_during_a_run_it_is_requested_only_occasionally(host, incident):
    on = host(incident)
    on.page.clock.install()
    on.page.evaluate("host.sent.splice(0)")
    for step in range(20):
        on.show(status="running", position=step)
    requests = "host.sent.filter(({value}) => value === 'objects').length"
    assert on.page.evaluate(requests) == 0
    on.page.clock.fast_forward(1000)
    assert on.page.evaluate(requests) == 1


def test_hostile_objects_remain_text(host, incident):
    on = host(incident)
    incident.emit(
        "alert.raised", {"service": "<script>window.pwned = 1</script>", "text": "<img src=x onerror=pwned=2>"}
    )
    incident.step(2)
    on.show()
    on.obey()
    assert "<script>window" in pane(on).locator("svg.agentnb").text_content()
    assert on.page.evaluate("window.pwned") is None
    assert pane(on).locator("script, img").count() == 0


def test_other_runs_have_no_object_graph(host):
    on = host(ticket_recipe.session("hello"))
    on.session.step()
    on.show()
    assert not pane(on).is_visible()
    assert "objects" not in on.page.evaluate("host.sent.map(({value}) => value)")
