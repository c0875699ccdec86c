from __future__ import annotations

import pytest

from tests.ui.test_page_prompts import EVIL

pytestmark = pytest.mark.needs_chromium


@pytest.fixture
def on(host):
    return host()


def row(at, text, **over):
    fields = {"id": "0/ask", "node": "ask", "model": "slow-1", "attempt": 1, "at": at, "text": text,
            "size": at + len(text), "pieces": 1, "over": None}  # fmt: skip
    return {**fields, **over}


def hear(on, *rows):
    on.page.evaluate("rows => host.fire('msg:custom', {streams: rows})", list(rows))


def wanted(on):
    """Return which texts the page has asked for as a whole."""
    return [each["target"] for each in on.page.evaluate("host.sent.splice(0)") if each["do"] == "text"]


def card(on):
    return on.page.locator(".agentnb-stream")


def test_a_text_grows_as_it_streams(on):
    hear(on, row(0, "Once "))
    hear(on, row(5, "upon \U0001f426 "))
    hear(on, row(12, "a time", pieces=3))
    assert card(on).locator(".agentnb-stream-text").text_content() == "Once upon \U0001f426 a time"
    assert card(on).locator("strong").inner_text() == "ask"
    assert "slow-1 is saying" in card(on).inner_text()
    assert "18 characters in 3 pieces" in card(on).inner_text()
    assert card(on).get_attribute("aria-busy") == "true"
    assert card(on).evaluate("card => card.closest('[aria-live]')") is None


def test_a_lost_chunk_is_requested_and_a_duplicate_one_is_ignored(on):
    hear(on, row(0, "Once "))
    hear(on, row(10, "a time"))
    assert wanted(on) == ["0/ask"]
    hear(on, row(0, "Once upon a time"))
    hear(on, row(5, "upon "))
    assert card(on).locator(".agentnb-stream-text").text_content() == "Once upon a time"
    assert wanted(on) == []


def test_a_retry_starts_over_and_is_announced(on):
    hear(on, row(0, "half an ans"))
    hear(on, row(0, "all of it", attempt=2))
    assert card(on).locator(".agentnb-stream-text").text_content() == "all of it"
    assert "attempt 2" in card(on).inner_text()


def test_streamed_text_remains_until_the_run_continues(on):
    hear(on, row(0, "It is said"))
    on.session.step()
    on.show()
    hear(on, row(10, ".", over=1))
    assert "has said" in card(on).inner_text()
    assert card(on).get_attribute("aria-busy") == "false"
    on.session.back()
    on.show()
    assert card(on).count() == 0


def test_abandoned_text_disappears_and_each_branch_has_a_card(on):
    hear(on, row(0, "one"), row(0, "two", id="0/other", node="other"))
    assert card(on).count() == 2
    hear(on, row(3, "", over=-1))
    assert card(on).get_attribute("aria-label") == "the model's text for other"


def test_output_of_a_model_is_escaped(on):
    hear(on, row(0, EVIL, node=EVIL, model=EVIL))
    on.page.wait_for_timeout(50)
    assert on.page.evaluate("window.owned") is None
    assert card(on).locator(".agentnb-stream-text").text_content() == EVIL
    assert card(on).locator(":is(script, img, a)").count() == 0


def test_a_long_text_scrolls_to_its_end_unless_scrolled_up(on):
    hear(on, row(0, "line\n" * 100))
    at_end = "box => box.scrollHeight - box.scrollTop - box.clientHeight < 5"
    text = card(on).locator(".agentnb-stream-text")
    assert text.evaluate(at_end)
    text.evaluate("box => { box.scrollTop = 0; }")
    hear(on, row(500, "line\n" * 100))
    assert text.evaluate("box => box.scrollTop") == 0
