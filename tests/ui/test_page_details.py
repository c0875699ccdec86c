from __future__ import annotations

import pytest

import agentnb as nb
from tests.ui import ticket_recipe
from tests.ui.axe import violations

pytestmark = pytest.mark.needs_chromium

QUERIES = """[...host.sent].filter(({do: verb, value}) => verb === 'query' && (value === 'node' || value === 'step'))
  .map(({target}) => target)"""


@pytest.fixture
def on(host):
    page_host = host(ticket_recipe.session("money " * 300 + "back"))
    page_host.session.step()
    page_host.show()
    return page_host


def pane(on):
    return on.page.locator("[data-pane=details]")


def opened(on):
    """Return the pane, which is open at first, with what it is told."""
    on.obey()
    return pane(on)


def picked(on, node):
    on.page.locator(f"g.node[data-node={node}]").click()
    on.obey()
    return pane(on)


def part(on, name):
    return pane(on).locator(f"details[data-part='{name}']")


def test_it_is_open_initially_follows_the_last_step_and_requests_nothing_when_closed(on):
    text = opened(on).inner_text()
    assert "Step 1" in text
    assert "classify" in text
    on.session.step()
    on.session.answer("yes")
    on.show()
    on.obey()
    assert "Step 2" in pane(on).inner_text()
    assert part(on, "Outputs").inner_text().split() == ["Outputs", "1", "decision", "new", "→", "yes"]
    on.page.get_by_role("button", name="Details of the last step").click()
    on.session.step()
    on.show()
    assert on.page.evaluate(QUERIES) == []


def test_before_the_first_step_it_shows_what_to_do(host):
    on = host(ticket_recipe.session())
    assert "Nothing has run yet" in opened(on).inner_text()
    assert on.page.evaluate(QUERIES) == []


def test_selecting_a_node_opens_it_until_the_run_is_followed_again(on):
    actual = picked(on, "tell")
    assert actual.locator(".agentnb-details-head strong").inner_text() == "tell"
    assert "It has not run up to here." in actual.inner_text()
    assert "def tell(board)" in part(on, "Definition").inner_text()
    on.session.step()
    on.show()
    on.obey()
    assert actual.locator(".agentnb-details-head strong").inner_text() == "tell"
    actual.get_by_role("button", name="follow the run").click()
    on.obey()
    assert "Step 1" in actual.inner_text()
    assert not actual.get_by_role("button", name="follow the run").is_visible()


def test_its_place_is_selectable_text(host):
    on = host(nb.Session(nb.samples("triage")))
    place = picked(on, "sort").locator(".agentnb-place").first
    assert place.inner_text().endswith("samples/triage.yaml:26")
    assert place.evaluate("element => getComputedStyle(element).userSelect") == "all"


def test_it_queries_unchanged_data_once_and_pauses_during_a_run(on):
    opened(on)
    on.show()
    on.show()
    assert on.page.evaluate(QUERIES) == []
    for number in range(30):
        on.show(status="running", position=1 + number, length=1 + number, number=100 + number)
    assert len(on.page.evaluate(QUERIES)) <= 1
    on.page.evaluate("host.sent.length = 0")
    on.show(status="paused", number=200)
    assert len(on.page.evaluate(QUERIES)) <= 1


def test_one_query_is_sent_at_a_time_and_the_last_result_is_shown(on):
    opened(on)
    for number in (2, 3, 4):
        on.show(number=number)
    assert len(on.page.evaluate(QUERIES)) == 1
    on.session.step()
    on.session.answer("yes")
    on.show()
    on.obey()
    assert "Step 2" in pane(on).inner_text()


def test_a_long_value_is_shown_completely_on_demand(on):
    inputs = part(on, "Inputs")
    opened(on)
    assert len(inputs.locator("code").inner_text()) < 1000
    inputs.get_by_role("button", name="show all").click()
    on.obey()
    assert inputs.locator("code").inner_text() == "money " * 300 + "back"
    on.session.watch("category")
    on.show()
    on.obey()
    assert len(inputs.locator("code").inner_text()) > 1000
    inputs.get_by_role("button", name="show less").click()
    assert len(inputs.locator("code").inner_text()) < 1000


def test_sections_collapse_and_keep_their_state(on):
    opened(on)
    outputs = part(on, "Outputs")
    assert outputs.get_attribute("open") is not None
    outputs.locator("summary").click()
    on.session.step()
    on.session.answer("yes")
    on.show()
    on.obey()
    assert part(on, "Outputs").get_attribute("open") is None
    part(on, "Outputs").locator("summary").focus()
    on.page.keyboard.press("Enter")
    assert part(on, "Outputs").get_attribute("open") is not None
    assert on.sent() == []


def test_the_steps_of_a_node_can_be_browsed(host):
    session = nb.Session(nb.samples("refine"))
    session.run()
    on = host(session)
    steps = [step.step for step in session.trace.steps if step.node_id == "measure"]
    actual = picked(on, "measure")
    before = actual.get_by_role("button", name=f"previous step of this node: step {steps[-2]}")
    before.focus()
    on.page.keyboard.press("Enter")
    on.obey()
    assert actual.locator(".agentnb-details-head strong").inner_text() == f"Step {steps[-2]}"
    assert on.page.evaluate("document.activeElement.dataset.at") == "before"
    on.page.keyboard.press("Enter")
    on.obey()
    actual.get_by_role("button", name=f"next step of this node: step {steps[-2]}").click()
    on.obey()
    assert actual.locator(".agentnb-details-head strong").inner_text() == f"Step {steps[-2]}"
    actual.get_by_role("button", name=f"Go to step {steps[-2]}").click()
    assert on.obey() == ["goto"]
    assert session.position == steps[-2]
    goes = actual.get_by_role("button", name=f"Go to step {steps[-2]}")
    assert goes.get_attribute("aria-disabled") == "true"
    session.back()
    on.show()
    on.obey()
    assert "Details of the last step" in actual.inner_text()


def test_links_lead_to_nodes_and_steps(host):
    session = nb.Session(nb.samples("triage"))
    session.step(3)
    on = host(session)
    actual = opened(on)
    actual.get_by_role("button", name="write", exact=True).first.click()
    on.obey()
    assert actual.locator(".agentnb-details-head strong").inner_text() == "write"
    picked(on, "sort")
    actual.locator(".agentnb-ran").get_by_role("button", name="step 2").click()
    on.obey()
    assert actual.locator(".agentnb-details-head strong").inner_text() == "Step 2"
    assert "check_order, taken: topic == 'refund' is True" in part(on, "Route, and why").inner_text().replace("\n", "")


def test_a_breakpoint_is_set_and_removed_in_the_details(on):
    node_pane = picked(on, "tell")
    button = node_pane.get_by_role("button", name="Breakpoint")
    assert button.get_attribute("aria-pressed") == "false"
    button.click()
    assert on.obey() == ["stop_at"]
    assert [row.node for row in on.session.breakpoints] == ["tell"]
    assert button.get_attribute("aria-pressed") == "true"
    button.click()
    on.obey()
    assert len(on.session.breakpoints) == 0


def test_run_to_a_node_is_offered_if_possible(on):
    node_pane = picked(on, "tell")
    button = node_pane.get_by_role("button", name="Run to here")
    on.show(can=["step"])
    assert not button.is_visible()
    on.show(can=["step", "run_to"])
    button.click()
    value = on.page.evaluate("host.sent.filter(({do: verb}) => verb === 'run_to').map(({target}) => target)")
    assert value == ["tell"]


def test_a_failure_is_a_card_and_calls_show_their_messages(host):
    session = nb.Session(nb.samples("research"))
    session.run()
    on = host(session)
    number = next(step.step for step in session.trace.steps if step.status == "error")
    session.goto(number)
    on.show()
    actual = opened(on)
    assert "ConnectionError" in actual.locator(".agentnb-problem").inner_text()
    calls = part(on, "Calls").locator("article")
    assert calls.count() == 2
    assert "attempt 2 after" in calls.last.inner_text()
    write = next(step.step for step in session.trace.steps if step.node_id == "write")
    session.goto(write)
    on.show()
    on.obey()
    assert part(on, "Calls").locator(".agentnb-message[data-role=user]").count() == 1


def test_inner_steps_of_a_node_are_linked(host):
    session = nb.Session(nb.samples("refine"))
    session.run()
    on = host(session)
    actual = picked(on, "improve")
    rounds = part(on, "Inside").locator("li")
    assert rounds.count() > 2
    assert "round 1: step 3 to step 7" in rounds.first.inner_text()
    rounds.first.get_by_role("button", name="step 3").click()
    on.obey()
    assert actual.locator(".agentnb-details-head strong").inner_text() == "Step 3"


def test_a_behavior_shows_what_triggered_it_and_why_not(host):
    session = nb.Session(nb.samples("team"))
    session.emit("goal.created", {"goal": "How swifts live"})
    session.step(9)
    on = host(session)
    opened(on)
    assert "goal.created" in part(on, "Triggered by").inner_text()
    listens = part(on, "Listens")
    assert "['object.created']" in listens.inner_text()
    event = next(event for event in reversed(session.events) if event.type == "draft.returned")
    listens.get_by_label("by which event").select_option(event.id)
    listens.get_by_role("button", name="Why not?").click()
    assert on.obey() == ["query"]
    assert "it listens to 'object.created'" in listens.get_by_role("status").inner_text()


def test_a_type_of_events_is_reported_when_it_is_picked_in_the_graph(host):
    session = nb.Session(nb.samples("team"))
    session.emit("goal.created", {"goal": "How swifts live"})
    session.step(4)
    on = host(session)
    on.page.locator("g.node[data-node$='task.done']").click()
    on.obey()
    actual = pane(on)
    assert "event type" in actual.locator(".agentnb-details-head").inner_text()
    assert "search (×3)" in actual.inner_text()
    assert part(on, "Latest events").locator("details").count() == 3


def test_text_of_a_recipe_is_escaped(host):
    from agentnb.recipe.model import Edge, Node, Recipe
    from agentnb.session import Session

    evil = '<img src=x onerror="window.hit = 1"><script>window.hit = 1</script>'
    nodes = {evil: Node(evil, "human", evil, writes=("out",), params={"prompt": evil, "output": "out", "odd": [evil]})}
    recipe = Recipe(
        "evil", "test", nodes, (Edge(evil, evil, "conditional", ticket_recipe.When(evil, 1), evil),), (evil,)
    )
    session = Session(recipe, {evil: evil}, validate_inputs=False, answers=[evil])
    session.step()
    on = host(session)
    actual = opened(on)
    on.page.wait_for_timeout(50)
    assert on.page.evaluate("window.hit") is None
    assert actual.locator("img, script").count() == 0
    assert evil in actual.inner_text()


def test_no_secret_is_on_the_page(host):
    session = ticket_recipe.session()
    session.step()
    session.edit({"api_key": "sk-another-one"})
    on = host(session)
    actual = opened(on)
    assert "api_key" in actual.inner_text()
    assert "sk-another-one" not in on.page.content()
    assert ticket_recipe.KEY not in on.page.content()


def test_a_missing_step_is_reported(on):
    opened(on)
    on.session.run()
    on.session.answer("yes")
    on.session.run()
    on.show()
    on.obey()
    picked(on, "classify").locator(".agentnb-ran").get_by_role("button", name="step 1").click()
    on.obey()
    on.session.reset()
    on.show()
    on.obey()
    assert "This step no longer exists." in pane(on).inner_text()


def test_letters_typed_in_the_details_are_not_commands(on):
    opened(on)
    pane(on).locator(".agentnb-details").focus()
    on.page.keyboard.press("PageDown")
    assert on.sent() == []


STANDS = {
    "a failed call": ("research", 4),
    "a route": ("triage", 2),
    "a round": ("refine", 9),
    "an event": ("team", 8),
}


@pytest.mark.parametrize("stand", STANDS)
def test_axe_finds_no_violations_in_the_details(host, stand):
    name, steps = STANDS[stand]
    session = nb.Session(nb.samples(name))
    if name == "team":
        session.emit("goal.created", {"goal": "How swifts live"})
    session.step(steps)
    on = host(session)
    opened(on)
    on.page.evaluate("for (const one of document.querySelectorAll('.agentnb-details details')) one.open = true")
    on.page.add_style_tag(
        content=".agentnb-cockpit .agentnb-details { height: auto !important; max-height: none !important; }"
    )
    assert violations(on.page, "[data-pane=details]") == {}


def test_at_200_percent_zoom_nothing_overflows(host):
    session = nb.Session(nb.samples("team"))
    session.emit("goal.created", {"goal": "How swifts live"})
    session.step(8)
    on = host(session)
    opened(on)
    on.page.set_viewport_size({"width": 480, "height": 450})
    wide = pane(on).locator(".agentnb-details").evaluate("element => [element.scrollWidth, element.clientWidth]")
    assert wide[0] <= wide[1]
