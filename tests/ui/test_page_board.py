from __future__ import annotations

import pytest

import agentnb as nb
from agentnb.ui import board_view
from tests.ui import ticket_recipe

pytestmark = pytest.mark.needs_chromium


@pytest.fixture
def on(host):
    page_host = host(ticket_recipe.session("money " * 300 + "back"))
    page_host.session.step()
    page_host.show()
    return page_host


def opened(on, key):
    on.page.get_by_role("button", name=key, exact=True).click()
    on.obey()
    return on.page.locator(f"tbody:has(tr[data-row={key}])")


def test_a_row_opens_to_its_complete_value_and_its_writer(on):
    part = opened(on, "ticket")
    assert part.get_by_label("value of ticket").input_value() == "money " * 300 + "back"
    assert "from the inputs" in part.inner_text()
    part = opened(on, "category")
    assert "written by step 1, classify" in part.inner_text()
    on.button("category").click()
    assert part.get_by_label("value of category").count() == 0
    assert part.locator("tr[data-row]").get_attribute("aria-expanded") is None


def test_a_value_links_to_the_step_that_wrote_it(on):
    on.session.run()
    on.session.answer("yes")
    on.show()
    row = on.page.locator("tr[data-row=category]")
    row.get_by_role("button", name="1 classify").click()
    assert "goto" in on.obey()
    assert on.session.position == 1


def test_a_value_is_edited_in_place(on):
    part = opened(on, "category")
    assert part.get_by_role("button", name="Save").get_attribute("aria-disabled") == "true"
    part.get_by_label("value of category").fill("other")
    part.get_by_role("button", name="Save").click()
    assert on.obey()[:2] == ["query", "edit"]
    assert on.session.board["category"] == "other"
    assert part.get_by_label("value of category").input_value() == "other"
    assert part.locator(".agentnb-value").inner_text() == "'other'"


def test_the_new_value_is_in_view_after_a_long_old_one(on):
    on.session.edit({"ticket": "plenty " * 300})
    on.show()
    cell = on.page.locator("tr[data-row=ticket] .agentnb-value")
    old, arrow = (cell.locator(each).bounding_box() for each in ("s", "s + span"))
    assert old["width"] <= cell.bounding_box()["width"] / 2
    assert arrow["x"] + arrow["width"] < cell.bounding_box()["x"] + cell.bounding_box()["width"] * 0.7


def test_a_new_key_accepts_only_json(on):
    part = opened(on, "decision")
    box = part.get_by_label("value of decision")
    box.fill("maybe")
    part.get_by_role("button", name="Save").click()
    assert on.sent() == []
    assert "This is not JSON" in part.inner_text()
    box.fill('{"refund": true}')
    part.get_by_role("button", name="Save").click()
    on.obey()
    assert on.session.board["decision"] == {"refund": True}


def test_a_value_can_change_its_kind(on):
    part = opened(on, "decision")
    for kind, typed, value in (
        ("text", "maybe", "maybe"),
        ("number", "2.5", 2.5),
        ("true / false", None, True),
        ("nothing", None, None),
    ):
        part.get_by_label("kind").select_option(label=kind)
        if typed is not None:
            part.get_by_label("value of decision").fill(typed)
        part.get_by_role("button", name="Save").click()
        on.obey()
        assert on.session.board["decision"] == value
        assert part.get_by_label("kind").evaluate("pick => pick.selectedOptions[0].text") == kind


def test_an_invalid_number_is_reported_at_its_field(on):
    part = opened(on, "decision")
    part.get_by_label("kind").select_option(label="number")
    part.get_by_label("value of decision").fill("many")
    part.get_by_role("button", name="Save").click()
    assert on.sent() == []
    assert "This is not a number" in part.inner_text()


def test_a_schema_violation_is_reported_at_its_field_and_nothing_is_written(host):
    on = host(nb.Session(nb.samples("document")))
    part = opened(on, "audience")
    part.get_by_label("value of audience").fill("dogs")
    part.get_by_role("button", name="Save").click()
    assert on.obey() == ["query"]
    assert "'audience' is 'dogs'" in part.inner_text()
    assert on.session.board["audience"] == "children"


def test_a_secret_is_never_shown_and_can_be_filled(on):
    part = opened(on, "api_key")
    assert ticket_recipe.KEY not in on.page.content()
    box = part.get_by_label("value of api_key")
    assert (box.get_attribute("type"), box.input_value()) == ("password", "")
    assert "contains a secret" in part.inner_text()
    box.fill("sk-another-4713")
    part.get_by_role("button", name="Save").click()
    on.obey()
    assert on.session.board["api_key"] == "sk-another-4713"
    assert "4713" not in on.page.content()


def test_a_value_is_copied_as_text(on):
    part = opened(on, "category")
    on.page.evaluate("document.addEventListener('copy', () => { window.copied = document.activeElement.value; })")
    part.get_by_role("button", name="Copy").click()
    part.get_by_role("button", name="Copied").wait_for()
    assert on.page.evaluate("window.copied") == "refund"


def test_keys_can_be_added_and_deleted(on):
    on.button("add a key").click()
    on.page.get_by_label("new key", exact=True).fill("order.lines")
    on.page.get_by_label("kind").select_option(label="JSON")
    on.page.get_by_label("value of the new key").fill("[1, 2]")
    on.button("Add").nth(0).click()
    on.obey()
    assert on.session.board["order"] == {"lines": [1, 2]}
    part = on.page.locator("tbody:has(tr[data-row=order])")
    part.get_by_role("button", name="edit order").click()
    on.obey()
    part.get_by_role("button", name="Delete").click()
    on.obey()
    assert "order" not in on.session.board
    assert part.locator("tr[data-row=order] .agentnb-value").inner_text() == "deleted"


def test_a_value_can_be_edited_with_the_keyboard_alone(on):
    row = on.page.locator("tr[data-row=ticket]")
    row.focus()
    row.press("F2")
    on.obey()
    field = on.page.get_by_label("value of ticket")
    assert field.evaluate("field => field === document.activeElement")
    before = field.input_value()
    on.page.keyboard.type("!")
    on.page.keyboard.press("Escape")
    assert field.input_value() == before
    on.page.keyboard.press("Escape")
    assert (field.count(), row.evaluate("row => row === document.activeElement")) == (0, True)


# -- the tree ----------------------------------------------------------------------------------------------------------

DEEP = {"a.b": {"lines": [{"n": 1}, {"n": None}]}, "name": "nut"}


@pytest.fixture
def deep(on):
    on.session.edit({"order": DEEP})
    on.show()
    return on


def lines(on):
    return [
        row.get_attribute("data-path") for row in on.page.locator("tbody:has(tr[data-row=order]) tr[data-path]").all()
    ]


def test_a_value_opens_to_its_parts_which_can_be_edited(deep):
    on = deep
    for name in ("order", "a.b", "lines", "1"):
        on.button(name).click()
        on.obey()
    assert lines(on)[-2:] == ['["order","a.b","lines","1","n"]', '["order","name"]']
    on.button("n").click()
    on.obey()
    on.page.get_by_role("treegrid").get_by_label("kind").select_option(label="number")
    on.page.get_by_label("value of n", exact=True).fill("7")
    on.button("Save").click()
    on.obey()
    assert on.session.board["order"]["a.b"]["lines"][1] == {"n": 7}
    changed = on.page.locator('tr[data-path=\'["order","a.b","lines","1","n"]\']')
    assert changed.locator(".agentnb-value").inner_text() == "7"
    assert changed.get_attribute("data-mark") == "written"
    on.button("order").click()
    assert lines(on) == ['["order"]']


def test_many_parts_are_shown_a_page_at_a_time(deep):
    on = deep
    on.session.edit({"order": list(range(230))})
    on.show()
    on.button("order").click()
    on.obey()
    assert len(lines(on)) == 101
    for count in (201, 231):
        on.page.get_by_role("button", name="show more of").click()
        on.obey()
        assert len(lines(on)) == count
    assert on.page.get_by_role("button", name="show more of").count() == 0


def test_open_rows_follow_the_run(deep):
    on = deep
    on.button("order").click()
    on.obey()
    on.session.edit({"order": {"name": "bolt", "size": 3}})
    on.show()
    on.obey()
    assert lines(on) == ['["order"]', '["order","name"]', '["order","size"]']
    on.session.edit({"order": "all sold"})
    on.show()
    on.obey()
    assert lines(on) == ['["order"]']


def test_arrow_keys_navigate_the_tree(deep):
    on = deep
    focused_path = "document.activeElement.closest('tr').dataset.path"
    on.page.locator("tr[data-row=order]").focus()
    on.page.keyboard.press("ArrowRight")
    on.obey()
    for key, path in (("ArrowDown", '["order","a.b"]'), ("ArrowDown", '["order","name"]'), ("ArrowLeft", '["order"]'),
                      ("ArrowUp", '["category"]'), ("End", '["decision"]'), ("Home", '["category"]'),
                      ("ArrowDown", '["order"]'), ("End", '["decision"]')):  # fmt: skip
        on.page.keyboard.press(key)
        assert on.page.evaluate(focused_path) == path
    on.page.locator('tr[data-path=\'["order","name"]\']').focus()
    on.page.keyboard.press("Enter")
    on.obey()
    assert on.page.get_by_label("value of name").is_visible()
    on.page.keyboard.press("Home")
    on.page.keyboard.press("ArrowRight")
    assert on.page.evaluate("document.activeElement.textContent") == "category"
    assert on.page.evaluate("document.querySelectorAll('.agentnb-board tr[tabindex=\"0\"]').length") == 1
    assert on.sent() == []


def test_it_is_an_accessible_tree(deep):
    on = deep
    assert on.page.get_by_role("treegrid", name="Blackboard").count() == 1
    row = on.page.get_by_role("row", name="order")
    assert (row.get_attribute("aria-level"), row.get_attribute("aria-expanded")) == ("1", "false")
    on.button("order").click()
    on.obey()
    assert row.first.get_attribute("aria-expanded") == "true"
    assert on.page.locator('tr[data-path=\'["order","name"]\']').get_attribute("aria-level") == "2"
    assert on.page.get_by_role("columnheader").all_inner_texts() == [
        "Change",
        "Key",
        "Type",
        "Value",
        "Step",
        "Whole value",
    ]


# -- many keys ---------------------------------------------------------------------------------------------------------


def painted(on):
    return on.page.locator("tr[data-row]").count()


def test_many_keys_are_rendered_lazily_and_can_be_reached(on, monkeypatch):
    monkeypatch.setattr(board_view, "ROWS", sent := 300)
    on.session.edit({f"key{number:04}": number for number in range(sent + 150)})
    on.show()
    assert painted(on) == 200
    seen = 200
    more = on.page.locator(".agentnb-more .agentnb-link")  # by its role it would be looked for in every row
    while more.is_visible():
        more.click()
        on.obey()
        assert painted(on) > seen
        seen = painted(on)
    assert seen == sent + 150 + 5
    on.page.get_by_label("filter the blackboard").fill(f"key{sent + 149:04}")
    on.page.wait_for_function("host.sent.length > 0")
    on.obey()
    assert [row.get_attribute("data-row") for row in on.page.locator("tbody:not([hidden]) tr[data-row]").all()] == [
        f"key{sent + 149:04}"
    ]


@pytest.mark.parametrize("key", ["key0250", "key0499"])
def test_just_written_keys_are_rendered_first(on, monkeypatch, key):
    monkeypatch.setattr(board_view, "ROWS", 300)  # the page paints 200 of them
    on.session.goto(0)
    on.session.edit({f"key{number:04}": number for number in range(500)})
    on.session.step()
    on.session.edit({key: -1})
    on.show()
    assert key in [row.get_attribute("data-row") for row in on.page.locator("tr[data-row]").all()[:4]]


def test_a_step_touches_only_the_lines_that_differ(on):
    on.session.edit({f"key{number:04}": number for number in range(1000)})
    on.show()
    on.page.evaluate("""() => {
        window.touched = new Set();
        const part = target => target.closest ? target : target.parentElement;
        const note = ({target}) => touched.add(part(target).closest('tr, p')?.dataset.row);
        const all = {subtree: true, childList: true, attributes: true, characterData: true};
        new MutationObserver(rows => rows.forEach(note)).observe(document.querySelector('.agentnb-board'), all);
    }""")
    on.session.edit({"key0007": "changed", "key0900": "out of sight"})
    on.show()
    touched_rows = on.page.evaluate("[...touched]")
    assert set(touched_rows) <= {"key0007", "category", "ticket", None}
    assert on.page.locator("tr[data-row=key0007] .agentnb-value").inner_text() == "'changed'"
    assert "written by the last step" in on.page.locator(".agentnb-more").inner_text()


def test_typed_text_survives_a_step(on):
    part = opened(on, "category")
    box = part.get_by_label("value of category")
    box.fill("half")
    on.session.step()
    on.show()
    on.obey()
    assert box.input_value() == "half"
    part.get_by_role("button", name="Undo changes").click()
    assert box.input_value() == "refund"


def test_an_open_row_shows_the_value_of_each_step_and_pauses_while_it_runs(on):
    part = opened(on, "category")
    on.session.back()
    on.show(status="running")
    assert on.sent() == []
    on.show()
    assert on.obey() == ["query"]
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
    assert on.page.get_by_text("No key or value contains this text.").is_visible()
    on.page.get_by_label("filter the blackboard").fill("")
    assert rows() == every


def test_letters_typed_into_a_field_are_not_commands(on):
    part = opened(on, "category")
    part.get_by_label("value of category").press_sequentially("iouxbR .,")
    on.page.get_by_label("filter the blackboard").press_sequentially("iou ")
    assert on.sent() == []
