from __future__ import annotations

import pytest

from tests.ui import runs

pytestmark = pytest.mark.needs_chromium


@pytest.fixture
def on(host):
    made = host(runs.session("money " * 300 + "back"))
    made.session.step()
    made.show()
    return made


def opened(on, key):
    on.page.get_by_role("button", name=key, exact=True).click()
    on.obey()
    return on.page.locator(f"tbody:has(tr[data-row={key}])")


def test_a_row_opens_to_all_of_its_value_and_who_wrote_it(on):
    part = opened(on, "ticket")
    assert part.get_by_label("value of ticket").input_value() == "money " * 300 + "back"
    assert "from the inputs" in part.inner_text()
    part = opened(on, "category")
    assert "written by step 1, classify" in part.inner_text()
    on.button("category").click()
    assert part.get_by_label("value of category").count() == 0


def test_from_a_value_to_the_step_that_wrote_it(on):
    on.session.run()
    on.session.answer("yes")
    on.show()
    part = opened(on, "category")
    part.get_by_role("button", name="step 1, classify").click()
    assert "goto" in on.obey()
    assert on.session.position == 1


def test_a_value_is_edited_in_place(on):
    part = opened(on, "category")
    assert not part.get_by_role("button", name="Save").is_visible()
    part.get_by_label("value of category").fill("other")
    part.get_by_role("button", name="Save").click()
    assert on.obey()[0] == "edit"
    assert on.session.board["category"] == "other"
    assert part.get_by_label("value of category").input_value() == "other"
    assert part.locator(".agentnb-value").inner_text() == "'other'"


def test_a_key_that_is_not_there_yet_takes_json_and_nothing_else(on):
    part = opened(on, "decision")
    box = part.get_by_label("value of decision")
    box.fill("maybe")
    part.get_by_role("button", name="Save").click()
    assert on.sent() == []
    assert "This is no JSON" in part.inner_text()
    box.fill('{"refund": true}')
    part.get_by_role("button", name="Save").click()
    on.obey()
    assert on.session.board["decision"] == {"refund": True}


def test_what_holds_a_secret_is_shown_masked_and_not_edited(on):
    part = opened(on, "api_key")
    assert runs.KEY not in on.page.content()
    assert part.get_by_role("textbox").count() == 0
    assert "holds a secret" in part.inner_text()


def test_what_is_typed_is_not_lost_when_the_run_moves(on):
    part = opened(on, "category")
    box = part.get_by_label("value of category")
    box.fill("half")
    on.session.step()
    on.show()
    on.obey()
    assert box.input_value() == "half"
    part.get_by_role("button", name="Undo changes").click()
    assert box.input_value() == "refund"


def test_an_open_row_shows_the_value_of_each_step_and_is_quiet_while_it_runs(on):
    part = opened(on, "category")
    on.session.back()
    on.show(status="running")
    assert on.sent() == []
    on.show()
    assert on.obey() == ["look"]
    assert part.get_by_label("value of category").input_value() == ""
    on.show()
    assert on.sent() == []


def test_keys_and_values_are_filtered(on):
    def rows():
        return [row.get_attribute("data-row") for row in on.page.locator("tr[data-row]").all() if row.is_visible()]

    every = rows()
    on.page.get_by_label("filter the blackboard").fill("CAT")
    assert rows() == ["category"]
    on.show()
    assert rows() == ["category"]
    on.page.get_by_label("filter the blackboard").fill("money")
    assert rows() == ["ticket"]
    on.page.get_by_label("filter the blackboard").fill("nothing like it")
    assert on.page.get_by_text("Nothing has this in its key or value.").is_visible()
    on.page.get_by_label("filter the blackboard").fill("")
    assert rows() == every


def test_letters_typed_into_a_field_steer_nothing(on):
    part = opened(on, "category")
    part.get_by_label("value of category").press_sequentially("iouxbR .,")
    on.page.get_by_label("filter the blackboard").press_sequentially("iou ")
    assert on.sent() == []
