"""What a page sends: one command at a time, what is pressed meanwhile once more after it, and the speed of Run."""

from __future__ import annotations

import pytest

import agentnb as nb
from tests.session import small_sessions

pytestmark = pytest.mark.needs_chromium


def finish_commands(on, **over):
    """Say that all that was sent is done, and show where the session stands."""
    messages = on.page.evaluate("host.sent.splice(0)")
    on.show(**over)
    for message in messages:
        on.page.evaluate("([answers, view]) => host.fire('msg:custom', {answers, view})",
                         [message["number"], message["view"]])  # fmt: skip
    return [message["do"] for message in messages if message["do"] != "query"]


def test_commands_pressed_during_another_run_after_it(host):
    on = host()
    for _ in range(3):
        on.button("Step").click()
    assert [finish_commands(on) for _ in range(4)] == [["step"], ["step"], ["step"], []]


def test_the_number_of_waiting_commands_is_limited(host):
    on = host()
    on.button("Step").evaluate("button => { for (let time = 0; time < 20; time++) button.click(); }")
    assert [len(finish_commands(on)) for _ in range(6)] == [1, 1, 1, 1, 0, 0]


def test_it_waits_while_a_step_is_running(host):
    on = host()
    on.button("Step").click()
    on.show(status="running", can=["pause", "stop"])
    on.button("Step").click(force=True)
    assert finish_commands(on, status="running", can=["pause", "stop"]) == ["step"]
    assert finish_commands(on, status="running", can=["pause", "stop"]) == []
    on.show()
    assert finish_commands(on) == ["step"]
    assert finish_commands(on) == []


def test_a_held_key_repeats_one_command_at_a_time(host):
    on = host()
    on.page.get_by_label("agentnb cockpit").focus()
    for _ in range(9):
        on.page.keyboard.down("ArrowRight")
    assert finish_commands(on) == ["step"]
    for _ in range(9):
        on.page.keyboard.down("ArrowRight")
    on.page.keyboard.up("ArrowRight")
    assert [finish_commands(on), finish_commands(on), finish_commands(on)] == [["step"], ["step"], []]


@pytest.mark.parametrize("other", ["Back", "Pause"])
def test_another_command_cancels_waiting_ones(host, other):
    on = host()
    on.show(can=["step", "back", "pause"])
    on.button("Step").click()
    on.button("Step").click()
    on.button(other).click()
    assert finish_commands(on) == ["step", other.lower()]
    assert finish_commands(on) == []


PROBLEM = {"code": "X1", "what": "", "where": "", "why": "", "do": "", "severity": "error"}


@pytest.mark.parametrize(
    "over", [{"status": "failed"}, {"status": "waiting", "can": ["back"]}, {"problems": [PROBLEM]}]
)
def test_a_failed_step_cancels_waiting_commands(host, over):
    on = host()
    on.button("Step").click()
    on.button("Step").click()
    assert finish_commands(on, **over) == ["step"]
    assert finish_commands(on) == []


def test_a_run_is_started_once(host):
    on = host()
    on.button("Run").click()
    on.button("Run").click()
    assert [finish_commands(on), finish_commands(on)] == [["run"], []]


def test_the_speed_is_chosen_and_shown(host):
    on = host()
    choice = on.page.get_by_role("combobox", name="speed of Run")
    assert choice.input_value() == ""
    choice.select_option("3 a second")
    assert on.sent() == [("speed", 3)]
    on.session.speed = 3
    on.show()
    assert choice.input_value() == "3"
    choice.select_option("full speed")
    assert on.sent() == [("speed", None)]
    on.session.speed = 7
    on.show()
    assert (choice.input_value(), choice.locator("option").count()) == ("7", 5)


def test_plus_and_minus_change_the_speed_and_other_keys_stay_in_the_list(host):
    on = host()
    on.page.get_by_label("agentnb cockpit").focus()
    results = []
    for key, now in [("-", None), ("-", 10), ("-", 7), ("-", 1), ("+", 1), ("+", 7), ("+", 10), ("+", None)]:
        on.session.speed = now
        on.show()
        on.page.keyboard.press(key)
        results += [value for _, value in on.sent()]
    assert results == [10, 3, 3, 1, 3, 10, None, None]
    on.page.get_by_role("combobox", name="speed of Run").focus()
    on.page.keyboard.press("ArrowLeft")
    assert on.session.position == 0
    assert ("back", None) not in on.sent()


def test_the_page_does_not_grow_with_the_steps(host):
    on = host(nb.Session(nb.load(small_sessions.counting(10**9)), {"n": 0}, budget={"max_steps": 10**9}))
    sizes = []
    for steps in (500, 5_000):
        on.session.run(max_steps=steps)
        on.show()
        on.obey()
        sizes.append(on.page.evaluate("document.querySelectorAll('*').length"))
        assert on.page.evaluate("Object.values(host.listeners).flat().length") < 20
    assert sizes[1] - sizes[0] < 50
