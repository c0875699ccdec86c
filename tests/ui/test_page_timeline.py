from __future__ import annotations

import networkx as nx
import pytest

import agentnb as nb
from tests.ui import ticket_recipe

pytestmark = pytest.mark.needs_chromium


def settle(on):
    """Let the page ask what it wants to know, and answer, until it has nothing more to ask."""
    quiet = 0
    while quiet < 5:
        value = on.page.evaluate("host.sent.length")
        if value:
            on.obey()
        on.page.wait_for_timeout(80)
        quiet = 0 if value else quiet + 1


def show_timeline(host, session):
    on = host(session)
    settle(on)
    return on


def steps(on):
    return on.page.locator(".agentnb-step")


def names(on):
    return [one.get_attribute("aria-label").split(",")[0] for one in steps(on).all()]


def finished():
    session = ticket_recipe.session("hello")
    session.run()
    return session


def counting(count):
    graph = nx.DiGraph(name="count", entry="add")
    graph.add_node("add", function=lambda n: {"n": n + 1}, inputs={"n": "n"})
    graph.add_edge("add", "add")
    session = nb.Session(nb.load(graph), {"n": 0})
    session.run(max_steps=count)
    return session


def test_each_step_is_a_named_option_in_order(host):
    on = show_timeline(host, finished())
    assert names(on) == ["step 1: classify", "step 2: refuse", "step 3: tell"]
    assert on.page.get_by_role("listbox", name="steps of the run").get_by_role("option").count() == 3
    assert steps(on).nth(1).get_attribute("aria-setsize") == "3"
    assert steps(on).nth(1).get_attribute("aria-posinset") == "2"
    assert steps(on).nth(2).get_attribute("aria-current") == "step"
    assert " ms" in steps(on).first.get_attribute("title")


def test_a_run_without_steps_shows_how_to_start(host):
    on = show_timeline(host, ticket_recipe.session())
    assert on.page.get_by_text("No step yet").is_visible()
    on.session.step()
    on.show()
    settle(on)
    assert names(on) == ["step 1: classify"]
    assert not on.page.get_by_text("No step yet").is_visible()


def test_a_click_goes_to_a_step_and_later_steps_are_marked(host):
    on = show_timeline(host, finished())
    steps(on).first.click()
    assert on.obey() == ["goto"]
    settle(on)
    assert on.session.position == 1
    assert steps(on).first.get_attribute("aria-selected") == "true"
    assert [one.get_attribute("data-later") for one in steps(on).all()] == [None, "", ""]
    assert steps(on).first.get_attribute("aria-current") == "step"


def test_arrow_keys_select_a_step_and_enter_goes_to_it(host):
    on = show_timeline(host, finished())
    box = on.page.get_by_role("listbox", name="steps of the run")
    box.press("ArrowLeft")
    box.press("ArrowLeft")
    assert on.sent() == []
    on.page.wait_for_function("document.querySelectorAll('.agentnb-step')[0].getAttribute('aria-selected') === 'true'")
    assert box.get_attribute("aria-activedescendant") == steps(on).first.get_attribute("id")
    box.press("End")
    box.press("Home")
    box.press("Enter")
    assert on.sent() == [("goto", 1)]


def test_failed_and_skipped_steps_have_a_sign_and_a_label(host):
    session = ticket_recipe.session("hello", answers=["explode"])
    session.step()
    session.skip()
    session.edit({"reply": "refund: explode"})
    session.run()
    on = show_timeline(host, session)
    marks_shown = [(one.get_attribute("data-status"), one.text_content()[0]) for one in steps(on).all()]
    assert marks_shown == [("ok", "c"), ("skipped", "»"), ("failed", "✕")]
    assert "failed" in steps(on).nth(2).get_attribute("aria-label")
    assert "reply = 'refund: explode' was set manually" in steps(on).nth(1).get_attribute("aria-label")


def test_nested_steps_are_in_separate_lanes(host):
    session = nb.Session(nb.samples("refine"))
    session.step(12)
    on = show_timeline(host, session)
    places = "[...document.querySelectorAll('.agentnb-step')].map(one => [one.dataset.step, one.style.top])"
    tops = dict(on.page.evaluate(places))
    by_depth = {}
    for step in session.trace.steps:
        by_depth.setdefault(step.depth, set()).add(tops[str(step.step)])
    assert all(len(lanes) == 1 for lanes in by_depth.values())
    assert len(set.union(*by_depth.values())) == 3


def test_interventions_and_forks_are_marked_on_timeline_and_slider(host):
    session = finished()
    session.goto(1)
    session.edit({"category": "odd"})
    session.fork(name="other")
    session.run()
    on = show_timeline(host, session)
    marks = on.page.locator(".agentnb-steps .agentnb-tick")
    assert "category = 'odd' was set manually" in marks.first.get_attribute("title")
    assert "'other' starts here" in marks.first.get_attribute("title")
    ticks = on.page.locator(".agentnb-marks .agentnb-tick")
    assert [one.get_attribute("data-kind") for one in ticks.all()] == ["intervention"]
    assert ticks.first.get_attribute("title") == "step 1: intervention, 2 forks"
    ticks.last.click()
    assert on.obey() == ["goto"]
    assert on.session.position == 1


def test_new_steps_replace_abandoned_ones(host):
    session = finished()
    on = show_timeline(host, session)
    session.goto(1)
    session.set_next("tell")
    session.edit({"reply": "none"})
    session.step()
    on.show()
    settle(on)
    assert names(on) == ["step 1: classify", "step 2: tell"]


def test_another_run_of_the_same_length_is_distinguished(host):
    session = finished()
    on = show_timeline(host, session)
    on.session = session.fork(at=1)
    on.session.set_next("tell")
    on.session.step()
    on.show()
    settle(on)
    assert names(on) == ["step 1: classify", "step 2: tell"]
    on.session = session
    on.show()
    settle(on)
    assert names(on) == ["step 1: classify", "step 2: refuse", "step 3: tell"]


def test_only_the_visible_part_of_a_long_run_is_rendered(host):
    on = show_timeline(host, counting(100_000))
    assert names(on)[-1] == "step 100000: add"
    assert steps(on).count() < 100
    overview = on.page.locator(".agentnb-overview")
    overview.click()  # in its middle
    settle(on)
    middle = [int(one.get_attribute("data-step")) for one in steps(on).all()]
    assert len(middle) < 100
    assert middle[0] < 50_000 < middle[-1]
    assert middle == list(range(middle[0], middle[-1] + 1))
    on.page.get_by_role("listbox", name="steps of the run").press("Home")
    settle(on)
    assert names(on)[0] == "step 1: add"


def test_a_running_session_is_queried_a_few_times_a_second(host):
    on = show_timeline(host, counting(10))
    for _ in range(30):
        on.session.step()
        on.show(status="running")
    value = [one for one in on.page.evaluate("host.sent") if one["value"] == "timeline"]
    assert len(value) <= 1  # the next one waits for this one's answer
    settle(on)
    assert names(on)[-1] == "step 40: add"


def test_a_collapsed_timeline_requests_the_current_step_only(host):
    session = ticket_recipe.session("hello")
    on = show_timeline(host, session)
    on.button("Timeline").click()
    session.run()
    on.show()
    on.page.wait_for_timeout(700)  # longer than a timeline that is open waits before it asks
    value = on.page.evaluate(
        "host.sent.filter(({value}) => value === 'timeline').map(({target}) => [target.from, target.to])"
    )
    assert value == [[3, 3]]  # the current one alone, with the marks of the slider
    settle(on)
    assert steps(on).count() == 0
    on.button("Timeline").click()
    settle(on)
    assert steps(on).count() == 3


def test_steps_can_be_zoomed(host):
    on = show_timeline(host, counting(60))
    assert steps(on).last.text_content() == "add"
    few = steps(on).count()
    for _ in range(3):
        on.button("smaller steps").click()
    settle(on)
    assert (steps(on).last.text_content(), steps(on).count() > few) == ("", True)
    on.button("larger steps").click()
    on.button("larger steps").click()
    settle(on)
    assert steps(on).last.text_content() == "add"
    assert on.sent() == []


def test_names_are_escaped(host):
    graph = nx.DiGraph(name="odd", entry="<img src=x onerror=window.harmed=1>")
    graph.add_node("<img src=x onerror=window.harmed=1>", function=lambda: {"<b>": 1})
    session = nb.Session(nb.load(graph))
    session.run()
    session.edit({"n": "<script>window.harmed=1</script>"})
    on = show_timeline(host, session)
    assert "<img" in steps(on).first.text_content()
    assert on.page.evaluate("window.harmed") is None
    assert on.page.locator(".agentnb-timeline img").count() == 0
