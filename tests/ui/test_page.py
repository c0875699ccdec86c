from __future__ import annotations

import pytest

from agentnb.ui.commands import COMMANDS
from tests.ui import ticket_recipe

pytestmark = pytest.mark.needs_chromium


def test_a_step_changes_classes_and_texts_but_not_the_layout(host):
    on = host()
    places = """[...document.querySelectorAll('g.node, g.edge path')].map(
        part => part.getAttribute('transform') || part.getAttribute('d'))"""
    before = on.page.evaluate(places)
    on.page.evaluate("window.first = document.querySelector('svg.agentnb')")
    assert on.marked("current") == ["classify"]
    on.session.step()
    on.show()
    assert (on.marked("current"), on.marked("visited")) == (["ask"], ["classify"])
    assert on.page.locator("g.node[data-node=classify] .count").text_content() == "×1"
    assert on.page.evaluate(places) == before
    assert on.page.evaluate("window.first === document.querySelector('svg.agentnb')")
    on.session.back()
    on.show()
    assert (on.marked("current"), on.marked("visited")) == (["classify"], [])


def test_a_taken_edge_is_marked(host):
    on = host()
    on.show(picture={"nodes": {}, "edges": {"1": {"classes": ["taken"]}}})
    taken = on.page.locator("g.edge.taken")
    assert (taken.count(), taken.get_attribute("data-target")) == (1, "refuse")
    on.show()
    assert taken.count() == 0


def test_the_board_marks_what_changed(host):
    on = host()
    on.session.step()
    on.show()
    row = on.page.locator("tr[data-row=category]")
    assert row.get_attribute("data-mark") == "written"
    assert row.locator(".agentnb-value").inner_text() == "'refund'"
    assert "written by the last step" in row.text_content()
    assert on.page.locator("tr[data-row=decision] .agentnb-value").inner_text() == "not yet"
    row.get_by_role("button", name="category", exact=True).click()
    assert row.get_attribute("aria-expanded") == "true"


VERBS = {
    "Back": "back", "Step": "step", "Into": "into", "Over": "over", "Out": "out", "Run": "run", "Run back": "run_back",
    "Pause": "pause", "Stop": "stop", "Reset": "reset",
}  # fmt: skip


def test_every_button_sends_its_command(host):
    on = host()
    on.show(can=list(VERBS.values()))
    for name in VERBS:
        on.button(name).click()
    assert on.sent() == [(verb, None) for verb in VERBS.values()]


def test_every_button_names_its_key(host):
    on = host()
    on.page.get_by_label("agentnb cockpit").focus()
    for name, verb in VERBS.items():
        on.show(can=[verb, "goto"])
        keys = on.button(name).get_attribute("aria-keyshortcuts").split()
        key_name = keys[0].replace("Arrow", "")
        assert on.button(name).get_attribute("title").endswith(f"({key_name})")
        for key in keys:
            on.page.keyboard.press(key if len(key) > 1 else key.lower())
            on.heard()
    assert on.sent() == [(verb, None) for verb in VERBS.values() for _ in COMMANDS[verb].keys]


def test_chords_pass_through_to_the_notebook(host):
    on = host()
    on.page.evaluate(
        "window.passed = []; document.addEventListener('keydown', e => passed.push([e.key, e.defaultPrevented]))"
    )
    on.page.get_by_label("agentnb cockpit").focus()
    for chord in ("Control+s", "Control+Shift+C", "Alt+ArrowRight"):
        on.page.keyboard.press(chord)
    assert on.sent() == []
    passed = {tuple(each) for each in on.page.evaluate("passed")}
    assert passed >= {("s", False), ("C", False), ("ArrowRight", False)}


def test_the_focus_can_be_seen(host):
    on = host()
    on.page.get_by_label("agentnb cockpit").focus()
    for _ in range(40):
        on.page.keyboard.press("Tab")
        if not on.page.evaluate("Boolean(document.activeElement.closest('.agentnb-cockpit'))"):
            break
        seen = """() => {
          const at = document.activeElement, shape = at.querySelector?.('.shape') || at;
          const seen = [at, shape].some(each => getComputedStyle(each).outlineStyle !== 'none');
          return seen ? '' : at.outerHTML.slice(0, 80);
        }"""
        assert on.page.evaluate(seen) == ""


def test_a_disabled_button_sends_nothing_and_keeps_the_focus(host):
    on = host()
    assert on.button("Back").get_attribute("aria-disabled") == "true"
    on.button("Back").click(force=True)
    assert on.sent() == []
    assert on.page.evaluate("document.activeElement.textContent") == "Back"


def test_a_command_is_not_repeated_before_it_is_done(host):
    on = host()
    on.button("Step").click()
    on.button("Step").click()
    assert on.sent() == [("step", None)]
    on.button("Step").click()
    on.page.evaluate("host.fire('msg:custom', {answers: 1, view: 'another'})")
    on.button("Step").click()
    assert on.sent() == []


def test_a_completed_command_can_be_sent_again(host):
    on = host()
    on.button("Step").click()
    on.heard()
    on.button("Step").click()
    assert on.sent() == [("step", None), ("step", None)]


def test_the_slider_sends_one_position_at_a_time_and_the_last_one_wins(host):
    on = host(ticket_recipe.session("hello"))
    on.session.run()
    on.show()
    slider = on.page.get_by_role("slider")
    move = "(slider, place) => { slider.value = place; slider.dispatchEvent(new Event('input')); }"
    for place in (2, 1, 0):
        slider.evaluate(move, place)
    slider.evaluate("slider => slider.dispatchEvent(new Event('change'))")
    on.session.goto(2)
    on.show()
    assert slider.input_value() == "0"
    on.heard()
    assert on.sent() == [("goto", 2), ("goto", 0)]


def test_the_keyboard_controls_the_run(host):
    on = host()
    on.session.step()
    on.show()
    on.page.get_by_label("agentnb cockpit").focus()
    for key in ("ArrowRight", "ArrowLeft", " ", "Home", "b"):
        on.page.keyboard.press(key)
    assert on.sent() == [("step", None), ("back", None), ("run", None), ("goto", 0), ("stop_at", None)]
    on.show(can=["pause"])
    on.page.keyboard.press(" ")
    assert on.sent() == [("pause", None)]


def test_keys_stay_in_the_cockpit(host):
    on = host()
    on.page.evaluate(
        "window.leaked = 0; document.addEventListener('keydown', ({key}) => { if (key !== 'Shift') window.leaked++ })"
    )
    on.page.get_by_label("agentnb cockpit").focus()
    on.page.keyboard.press("ArrowRight")
    for key in ("i", "o", "u", "x", "b", "Shift+R", "Shift+Space"):
        on.page.keyboard.press(key)
    assert on.page.evaluate("leaked") == 0
    assert on.page.locator("[data-lm-suppress-shortcuts=true]").count() == 1  # where JupyterLab looks


def test_every_control_can_be_reached_by_tab(host):
    on = host()
    on.session.step()
    on.show()
    names = set()
    for _ in range(80):
        on.page.keyboard.press("Tab")
        names.add(
            on.page.evaluate("document.activeElement.getAttribute('aria-label') || document.activeElement.textContent")
        )
    assert names >= {
        "agentnb cockpit",
        "Back",
        "Step",
        "Run",
        "Pause",
        "Reset",
        "step",
        "Graph, scrolls",
        "Blackboard, scrolls",
    }


def test_a_question_is_answered_by_text_or_by_an_option(host):
    on = host()
    on.session.run()
    on.show(problems=[])
    assert "Refund <i>this</i>?" in on.page.locator(".agentnb-ask").inner_text()
    on.button("Another answer").click()
    box = on.page.get_by_label("another answer for ask")
    box.fill("perhaps")
    on.show(problems=[])
    assert box.input_value() == "perhaps"
    box.press("Enter")
    on.heard()
    on.button("no").click()
    assert on.sent() == [("answer", "perhaps"), ("answer", "no")]
    on.session.answer("no")
    on.show()
    assert on.page.locator(".agentnb-ask").count() == 0


def test_an_error_is_a_card_and_its_text_is_escaped(host):
    on = host()
    on.session.run()
    on.session.answer("explode")
    on.session.run()
    on.show()
    card = on.page.locator(".agentnb-problems")
    assert "<b>the till is empty</b>" in card.inner_text()
    assert card.locator("dt").all_inner_texts() == ["where", "why", "do"]
    assert on.marked("failed") == ["tell"]
    on.session.back()
    on.show()
    assert card.inner_text() == ""


def test_two_views_agree_and_a_removed_view_stops_listening(host):
    on = host(views=2)
    on.session.step()
    on.show()
    assert on.marked("current") == ["ask", "ask"]
    on.page.evaluate("host.ends[0]()")
    assert on.page.locator(".agentnb-cockpit").count() == 1
    on.page.evaluate("host.ends[1]()")
    assert on.page.evaluate("Object.values(host.listeners).flat().length") == 0


def test_a_silent_kernel_is_reported(host, browser):
    on = host()
    on.page.clock.install()
    on.button("Step").click()
    on.page.clock.fast_forward(5000)
    assert on.page.get_by_text("The kernel has not answered yet").is_visible()
    on.show()
    assert not on.page.get_by_text("The kernel has not answered yet").is_visible()


def test_a_missing_kernel_is_reported_until_it_responds(host):
    on = host()
    by_text = on.page.get_by_text("The kernel of this cockpit is gone")
    assert not by_text.is_visible()
    on.page.evaluate("host.fire('comm_live_update')")
    assert by_text.is_visible()
    on.show()
    assert not by_text.is_visible()


def test_a_long_step_is_not_reported_as_an_error(host):
    on = host()
    on.page.clock.install()
    on.button("Step").click()
    on.show(status="running", can=["reset"])
    on.page.clock.fast_forward(60_000)
    assert not on.page.get_by_text("The kernel has not answered yet").is_visible()


CONTRAST = """() => {
  const parse = text => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => { const f = v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b); };
  const back = element => {
    for (let at = element; at; at = at.parentElement) {
      const color = parse(getComputedStyle(at).backgroundColor);
      if (color.length < 4 || color[3] > 0) return color;
    }
    return [255, 255, 255];
  };
  const bad = [];
  for (const element of document.querySelectorAll('.agentnb-cockpit *')) {
    const own = [...element.childNodes].some(node => node.nodeType === 3 && node.textContent.trim());
    if (!own || element.closest('svg, .agentnb-hidden, [hidden], [aria-disabled=true]')) continue;
    if (!element.checkVisibility()) continue;
    const [a, b] = [light(parse(getComputedStyle(element).color)), light(back(element))].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) bad.push(element.textContent);
  }
  return bad;
}"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_is_legible_in_both_themes(host, theme):
    on = host()
    on.session.run()
    on.show()
    on.page.evaluate("theme => { document.body.dataset.jpThemeLight = String(theme === 'light'); }", theme)
    on.page.wait_for_selector(f".agentnb-cockpit[data-theme={theme}]")
    assert on.page.evaluate(CONTRAST) == []


def test_the_theme_of_the_notebook_overrides_that_of_the_system(host):
    on = host()
    on.page.emulate_media(color_scheme="dark")
    on.page.wait_for_selector(".agentnb-cockpit[data-theme=dark]")
    on.page.evaluate("() => { document.body.dataset.jpThemeLight = 'true'; }")
    on.page.wait_for_selector(".agentnb-cockpit[data-theme=light]")


@pytest.mark.parametrize("width", [400, 1200])
def test_nothing_overflows_the_page(host, width):
    on = host()
    on.page.set_viewport_size({"width": width, "height": 800})
    on.session.run()
    on.show()
    assert on.page.evaluate("document.documentElement.scrollWidth") <= width
    graph, board = (on.page.locator(f"[data-pane={name}]").bounding_box() for name in ("graph", "board"))
    assert (board["x"] >= graph["x"] + graph["width"]) is (width > 620)
