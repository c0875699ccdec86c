from __future__ import annotations

import pytest

import agentnb as nb
from tests.ui import ticket_recipe
from tests.ui.test_page import CONTRAST
from tests.ui.test_page_timeline import settle

pytestmark = pytest.mark.needs_chromium


@pytest.fixture
def failed(host):
    session = ticket_recipe.session("hello")
    session.run(until="tell")
    session.edit({"reply": "refund: explode"})
    session.run()
    return host(session)


@pytest.fixture
def spent(host):
    session = nb.Session(nb.samples("refine"), budget={"max_steps": 5})
    session.run()
    return host(session)


@pytest.fixture
def team(host):
    on = host(nb.Session(nb.samples("team")))
    settle(on)
    return on


def events(on):
    return on.page.locator(".agentnb-events")


def at_focus(on):
    return on.page.evaluate("document.activeElement.className")


def test_a_failed_node_is_retried_from_its_card(failed):
    card = failed.page.locator(".agentnb-problem")
    card.get_by_role("button", name="Try again").click()
    assert failed.obey() == ["retry"]
    assert (failed.session.status, failed.session.position) == ("failed", 4)
    failed.session.edit({"reply": "fine"})
    failed.show()
    card.get_by_role("button", name="Try again").click()
    failed.obey()
    assert failed.session.status == "finished"
    assert (card.count(), at_focus(failed)) == (0, "agentnb-cockpit")


def test_a_failed_node_is_skipped(failed):
    failed.button("Skip").click()
    assert failed.obey() == ["skip"]
    assert (failed.session.status, "sent" in failed.session.board) == ("finished", False)


def test_the_writes_of_a_skipped_node_are_validated_before_sending(failed):
    failed.button("Skip, and write …").click()
    box = failed.page.get_by_label("what it would have written, as JSON")
    assert box.evaluate("box => box === document.activeElement")
    box.fill("{sent")
    failed.button("Skip with this").click()
    assert failed.sent() == []
    assert "This is not JSON" in failed.page.locator(".agentnb-remedy .agentnb-wrong").inner_text()
    box.fill('{"sent": "by hand"}')
    failed.button("Skip with this").click()
    failed.obey()
    assert (failed.session.status, failed.session.board["sent"]) == ("finished", "by hand")


def test_text_typed_on_the_card_of_a_failure_survives_an_update(failed):
    failed.button("Skip, and write …").click()
    box = failed.page.get_by_label("what it would have written, as JSON")
    box.fill('{"sent": ')
    failed.session.watch("reply")
    failed.show()
    assert box.input_value() == '{"sent": '
    assert box.evaluate("box => box === document.activeElement")


def test_a_problem_that_is_not_a_failure_has_no_such_buttons(host):
    on = host()
    on.show(problems=[{"code": "U301", "what": "no", "where": "", "why": "", "do": "", "severity": "error"}])
    assert on.page.locator(".agentnb-problem").count() == 1
    assert on.page.locator(".agentnb-remedy").count() == 0


def test_a_limit_is_raised_on_the_card_that_names_it(spent):
    card = spent.page.locator("form.agentnb-problem")
    assert "max_steps = 5 is used up" in card.inner_text()
    number = card.get_by_label("new max_steps")
    assert number.input_value() == "10"
    number.fill("7")
    number.press("Enter")
    assert spent.obey() == ["set_budget"]
    assert (spent.session.status, card.count()) == ("paused", 0)
    spent.button("Run").click()
    spent.obey()
    assert "max_steps = 7 is used up" in card.inner_text()
    spent.button("No limit").click()
    spent.obey()
    spent.button("Run").click()
    spent.obey()
    assert spent.session.status == "finished"


def test_an_invalid_limit_is_a_problem_and_the_input_is_kept(spent):
    number = spent.page.get_by_label("new max_steps")
    number.fill("many")
    spent.button("Raise the limit").click()
    spent.obey()
    assert "is not a number" in spent.page.locator(".agentnb-problems").inner_text()
    assert (number.input_value(), spent.session.status) == ("many", "exhausted")


def test_an_event_can_be_emitted_while_the_run_is_idle(team):
    pane = events(team)
    assert pane.locator("option").first.get_attribute("value") == "goal.created"
    pane.get_by_label("type of the event").fill("goal.created")
    pane.get_by_label("payload, as JSON").fill('{"goal": "Tell of swifts."}')
    pane.get_by_role("button", name="Emit").click()
    settle(team)
    assert team.session.events[-1].payload == {"goal": "Tell of swifts."}
    assert "at the start" in pane.locator("[data-event]").inner_text()
    team.button("Run").click()
    settle(team)
    assert team.session.status == "idle"
    assert pane.locator("[data-event]").count() == 30
    assert f"and {len(team.session.events) - 30} before" in pane.inner_text()


def test_an_event_needs_a_type_and_json(team):
    pane = events(team)
    send = pane.get_by_role("button", name="Emit")
    send.click()
    assert "Enter a type" in pane.inner_text()
    assert pane.get_by_label("type of the event").evaluate("box => box === document.activeElement")
    pane.get_by_label("type of the event").fill("goal.created")
    assert "Enter a type" not in pane.inner_text()
    pane.get_by_label("payload, as JSON").fill("{goal}")
    send.click()
    assert "This is not JSON" in pane.inner_text()
    assert (team.sent(), team.session.events) == ([], ())


def test_a_click_on_an_event_shows_the_step_that_emitted_it(team):
    team.session.emit("goal.created", {"goal": "Tell of swifts."})
    team.session.run(max_steps=3)
    team.show()
    settle(team)
    row = events(team).locator("[data-event]").first
    number = team.session.events[-1].step
    row.get_by_role("button", name=f"step {number}").click()
    settle(team)
    assert team.button(f"Details of step {number}").is_visible()


def test_only_reactive_runs_have_the_pane(host):
    on = host()
    settle(on)
    assert events(on).is_hidden()


def test_names_of_events_are_escaped(team):
    team.session.emit("<img src=x onerror='window.owned = 1'>", {}, "<script>window.owned = 2</script>")
    team.show()
    settle(team)
    assert "<img src=x" in events(team).inner_text()
    assert events(team).locator("img, script").count() == 0
    assert team.page.evaluate("window.owned") is None


def test_the_details_can_make_a_node_the_next_one(host):
    on = host(ticket_recipe.session("hello"))
    settle(on)
    on.page.locator("g.node[data-node=tell]").click()
    settle(on)
    on.button("Make it next").click()
    settle(on)
    assert on.session.current == "tell"
    assert "'tell' was made the next node" in on.page.locator(".agentnb-sentence").inner_text()
    assert on.button("Make it next").count() == 0


def test_a_node_whose_frame_is_not_open_is_not_offered(host):
    on = host(nb.Session(nb.samples("refine")))
    settle(on)
    on.page.locator("g.node[data-node=measure]").click()
    settle(on)
    assert on.button("Run to here").is_visible()
    assert on.button("Make it next").count() == 0


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_cards_and_events_are_legible_in_both_themes(team, theme):
    team.session.emit("goal.created", {"goal": "Tell of swifts."})
    team.session.run(max_steps=1)
    team.show()
    settle(team)
    problem = {"code": "X100", "what": "it fell", "where": "a", "why": "b", "do": "c", "severity": "error"}
    limit = {"name": "max_steps", "value": "5", "used": "5", "more": "10"}
    able = ["retry", "skip", "set_budget", "emit", "goto"]
    team.show(status="failed", problems=[problem], limit=limit, can=able)
    team.button("Skip, and write …").click()
    team.page.evaluate("theme => { document.body.dataset.jpThemeLight = String(theme === 'light'); }", theme)
    team.page.wait_for_selector(f".agentnb-cockpit[data-theme={theme}]")
    assert team.page.locator(".agentnb-remedy, form.agentnb-problem, [data-event]").count() >= 3
    assert team.page.evaluate(CONTRAST) == []
