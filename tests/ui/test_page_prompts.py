from __future__ import annotations

import networkx as nx
import pytest

import agentnb as nb
from agentnb.recipe.model import Edge, Node, Recipe
from tests.session.shape_sessions import asking, to_where_it_waits
from tests.ui import ticket_recipe
from tests.ui.test_page import CONTRAST
from tests.ui.test_prompts import make_held_session

pytestmark = pytest.mark.needs_chromium

EVIL = (
    "<script>window.owned = 1</script><img src=x onerror='window.owned = 2'>"
    "<a href='javascript:window.owned = 3'>a</a>\" onmouseover=\"window.owned = 4"
)


@pytest.fixture
def approving(host):
    on = host(to_where_it_waits(asking("cycle", "approval")))
    on.show(problems=[])
    return on


@pytest.fixture
def calling(host):
    return host(make_held_session())


def card(on):
    return on.page.locator(".agentnb-ask")


def test_an_approval_shows_its_request_and_can_be_granted(approving):
    assert "requests approval for may it" in card(approving).inner_text()
    assert card(approving).get_by_label("of", exact=True).input_value() == "again"
    approving.button("Approve").click()
    assert approving.obey() == ["approve"]
    assert approving.session.board["said"]["approved"] is True
    assert card(approving).count() == 0


def test_an_approval_is_denied_with_a_reason(approving):
    approving.page.get_by_label("reason for denying it").fill("too dear")
    approving.button("Deny").click()
    assert approving.obey() == ["deny"]
    assert approving.session.board["said"] == {"approved": False, "reason": "too dear", "by": None}


def test_a_requested_approval_is_edited_and_granted(approving):
    card(approving).get_by_label("of", exact=True).fill("something else")
    approving.button("Approve").click()
    assert approving.obey() == ["change", "approve"]
    assert approving.session.board["said"]["arguments"] == {"of": "something else"}


def test_an_edit_of_a_requested_approval_may_be_saved_first(approving):
    card(approving).get_by_label("of", exact=True).fill("something else")
    approving.button("Keep changes").click()
    assert approving.obey() == ["change"]
    assert card(approving).get_by_label("of", exact=True).input_value() == "something else"
    assert not approving.button("Keep changes").is_visible()


def test_enter_in_the_reason_denies_and_never_approves(approving):
    approving.page.get_by_label("reason for denying it").press("Enter")
    assert approving.obey() == ["deny"]


def test_a_request_and_then_its_answer_can_be_read_and_edited(calling):
    assert "llm is about to call Moderation" in card(calling).inner_text()
    box = card(calling).get_by_label("user message")
    assert box.input_value() == "Comment 7 by Kim: You are a fool."
    assert not calling.button("Keep changes").is_visible()
    box.fill("Comment 8 by Bo: Thank you.")
    calling.button("Send it").click()
    assert calling.obey() == ["change", "into"]
    assert calling.session.pending[0].arguments["messages"][1]["content"] == "Comment 8 by Bo: Thank you."

    assert "Moderation has answered llm" in card(calling).inner_text()
    card(calling).get_by_text("What was sent").click()
    assert "Comment 8 by Bo" in card(calling).inner_text()
    card(calling).get_by_label("response").fill("Leave it.")
    calling.button("Keep changes").click()
    assert calling.obey() == ["change"]
    assert card(calling).get_by_label("response").input_value() == "Leave it."
    calling.button("Accept the answer").click()
    assert calling.obey() == ["into"]
    assert calling.session.board["answer"]["response"] == "Leave it."


def test_typed_text_survives_updates_and_is_sent_with_any_step(calling):
    box = card(calling).get_by_label("user message")
    box.fill("half a")
    calling.show(said="something else")
    assert box.input_value() == "half a"
    calling.button("Step").click()
    assert calling.obey() == ["change", "step"]
    assert calling.session.trace.steps[-1].node_id == "llm"


def test_a_change_can_be_undone(calling):
    box = card(calling).get_by_label("user message")
    box.fill("x")
    calling.button("Undo changes").click()
    assert box.input_value().startswith("Comment 7")
    assert not calling.button("Undo changes").is_visible()


@pytest.mark.parametrize("button", ["Send it", "Step", "Keep changes"])
def test_an_invalid_number_is_not_sent_and_is_reported_at_its_field(calling, button):
    (part,) = calling.page.locator(".agentnb-ask .agentnb-field:has([aria-label=json_object])").all()
    card(calling).get_by_text("1 setting").click()
    part.get_by_label("kind").select_option(label="number")
    box = part.get_by_label("json_object")
    box.fill("perhaps")
    card(calling).get_by_text("1 setting").click()  # folded away, it is opened again where it is wrong
    calling.button(button).click()
    assert calling.sent() == []
    assert "This is not a number" in card(calling).inner_text()
    assert box.get_attribute("aria-invalid") == "true"
    assert box.evaluate("box => box === document.activeElement")


def test_editing_an_answer_keeps_the_focus_in_the_cockpit(calling):
    calling.button("Send it").focus()
    calling.page.keyboard.press("Enter")
    calling.obey()
    assert calling.page.evaluate("Boolean(document.activeElement.closest('.agentnb-cockpit'))")


def test_messages_are_separate_and_the_settings_are_below(calling):
    assert card(calling).locator("[data-role]").count() == 2
    roles = [part.get_attribute("data-role") for part in card(calling).locator("[data-role]").all()]
    assert roles == ["system", "user"]
    assert card(calling).locator("details [aria-label=json_object]").count() == 1


def test_a_person_answers_instead_of_the_model(calling):
    calling.button("Answer it myself").click()
    box = card(calling).get_by_label("answer in place of Moderation")
    assert box.evaluate("box => box === document.activeElement")
    box.fill("It is harmless.")
    calling.button("Use this answer").click()
    assert calling.obey() == ["change", "into"]
    calling.session.step()
    assert "It is harmless." in str(calling.session.board["answer"])


def asked(host, **declared):
    graph = nx.DiGraph(name="asks")
    graph.add_node("ask", kind="human", prompt="Well?", output="said", **declared)
    session = nb.Session(nb.load(graph))
    session.step()
    on = host(session)
    on.show(problems=[])
    return on


def test_a_number_field_accepts_only_numbers(host):
    on = asked(host, schema={"type": "integer"})
    box = on.page.get_by_label("Well?")
    box.fill("many")
    box.press("Enter")
    assert on.sent() == []
    assert "This is not a number" in card(on).inner_text()
    box.fill("3")
    box.press("Enter")
    on.obey()
    assert on.session.board["said"] == 3


def test_a_boolean_has_two_buttons(host):
    on = asked(host, schema={"type": "boolean"})
    assert card(on).get_by_role("textbox").count() == 0
    on.button("no").click()
    on.obey()
    assert on.session.board["said"] is False


def test_a_choice_among_many_is_a_list(host):
    on = asked(host, options=list(range(20)))
    on.page.get_by_label("Well?").select_option("17")
    on.button("Answer").click()
    on.obey()
    assert on.session.board["said"] == 17


def test_a_choice_accepts_no_other_answer(host):
    on = asked(host, options=["a", "b"])
    assert on.page.get_by_label("another answer for ask").is_hidden()
    on.button("Another answer").click()
    on.page.get_by_label("another answer for ask").fill("both")
    on.page.get_by_label("another answer for ask").press("Enter")
    on.obey()
    assert (on.session.status, "said" in on.session.board) == ("waiting", False)


def test_a_new_question_takes_the_focus_only_from_an_idle_cockpit(host):
    graph = nx.DiGraph(name="asks")
    graph.add_node("ask", kind="human", prompt="Well?", output="said")
    session = nb.Session(nb.load(graph))
    on = host(session)
    places = {
        "document.activeElement.blur()": False,
        "document.querySelector('.agentnb-filter').focus()": False,
        "document.querySelector('.agentnb-cockpit').focus()": True,
    }
    for place, has in places.items():
        on.show()
        on.page.evaluate(place)
        session.step()
        on.show()
        assert on.page.get_by_label("Well?").evaluate("box => box === document.activeElement") is has
        session.goto(0)


def hostile():
    """Return a session whose every text tries to be more than text, waiting for a person."""
    nodes = {
        EVIL: Node(EVIL, "function", label=EVIL, writes=(EVIL,), params={"function": lambda: {EVIL: EVIL}}),
        "ask": Node(
            "ask", "human", label=EVIL, params={"prompt": EVIL, "output": "x", "options": [EVIL], "role": EVIL}
        ),
    }
    session = nb.Session(
        Recipe(EVIL, "test", nodes, (Edge(EVIL, "ask", "conditional", ticket_recipe.When("k", EVIL), EVIL),), (EVIL,)),
        {"k": EVIL},
    )
    session.breakpoints.add(node=EVIL)
    session.breakpoints.add(key=EVIL)
    session.watch("k")
    for _ in range(3):
        session.run()
    assert session.status == "waiting"
    return session


def test_scripts_in_a_recipe_do_not_run(host):
    on = host(hostile())
    on.show()
    for name in on.page.locator(".agentnb-board .agentnb-key").all():
        name.click()
    on.obey()
    for node in on.page.locator("g.node").all():
        node.hover()
    on.page.wait_for_timeout(100)
    assert on.page.evaluate("window.owned") is None
    bad = ":is(script, img, a, iframe, object, foreignObject, [onerror], [onmouseover])"
    assert on.page.evaluate("bad => document.querySelectorAll(`.agentnb-cockpit ${bad}`).length", bad) == 0
    assert "<script>window.owned" in card(on).inner_text()
    assert "<script>window.owned" in on.page.locator(".agentnb-stops").inner_text()


def test_scripts_in_an_approval_do_not_run(host):
    session = to_where_it_waits(asking("cycle", "approval"))
    on = host(session)
    row = {"path": [EVIL], "label": EVIL, "text": EVIL, "as": "fixed", "note": EVIL}
    base = {
        "id": "1",
        "kind": "approval",
        "node": EVIL,
        "name": EVIL,
        "prompt": EVIL + "?",
        "role": EVIL,
        "seconds_left": 3,
        "options": [],
    }
    on.show(
        pending=[
            {**base, "arguments": [row]},
            {**base, "id": "2", "kind": "call", "arguments": [{**row, "as": "text"}], "answer": None},
        ]
    )
    assert card(on).count() == 2
    assert on.page.evaluate("window.owned") is None
    assert on.page.evaluate("document.querySelectorAll('.agentnb-ask :is(script, img, a)').length") == 0


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", ["approving", "calling"])
def test_cards_are_legible_in_both_themes(request, name, theme):
    on = request.getfixturevalue(name)
    on.session.breakpoints.add(when="failure > 1")
    on.session.watch("failure")
    on.show()
    on.page.evaluate("theme => { document.body.dataset.jpThemeLight = String(theme === 'light'); }", theme)
    on.page.wait_for_selector(f".agentnb-cockpit[data-theme={theme}]")
    on.page.locator(".agentnb-board .agentnb-key").first.click()
    on.obey()
    assert on.page.evaluate(CONTRAST) == []


@pytest.mark.parametrize("width", [420, 1300])
@pytest.mark.parametrize("name", ["approving", "calling"])
def test_cards_do_not_overflow_the_page(request, name, width):
    on = request.getfixturevalue(name)
    on.page.set_viewport_size({"width": width, "height": 800})
    on.session.breakpoints.add(
        when="task == 'a_condition_of_one_very_long_word_that_has_no_place_where_it_could_be_broken'"
    )
    on.show()
    on.page.locator(".agentnb-board .agentnb-key").first.click()
    on.obey()
    assert on.page.evaluate("document.documentElement.scrollWidth") <= width
    cut_off = """[...document.querySelectorAll('.agentnb-cockpit :is(.agentnb-buttons, .agentnb-ask, .agentnb-stops)')]
        .filter(part => part.scrollWidth > part.clientWidth + 1).map(part => part.className)"""
    assert on.page.evaluate(cut_off) == []
