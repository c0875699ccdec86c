"""Questions and approvals show what they are about as it is meant: Markdown, JSON, changes; never as markup."""

from __future__ import annotations

import json

import pytest

from tests.ui import ticket_recipe
from tests.ui.test_artifacts import SECOND, second_draft
from tests.ui.test_page import CONTRAST
from tests.ui.test_page_prompts import EVIL
from tests.ui.test_page_safety import TRAPS, nothing_happened

pytestmark = pytest.mark.needs_chromium

DOCUMENT = """# Release *1.2*

Hello **Ada**, see `run()` and [the notes](https://example.com/notes) or <https://example.com>.
Not snake_case_names, not \\*this\\*.

1. build
2. test
   - on Linux
   - [x] on a Mac

> quoted
> twice

| name | count |
|---|---:|
| nodes | 3 |

```python
print("# no heading")
```
---
![a chart](javascript:alert(1))"""


def question(host, text, **more):
    """Show a question about one value; return the place where it is rendered."""
    on = host()
    on.session.run()
    about = [{"key": "reply", "text": text, "as": "text", **more}]
    card = {"id": "1", "kind": "answer", "node": "ask", "name": "ask", "prompt": "Send?", "role": "",
            "seconds_left": None, "options": [], "input": "text", "arguments": [], "answer": None,
            "about": about}  # fmt: skip
    on.show(pending=[card], problems=[])
    return on, on.page.locator(".agentnb-rendered")


def test_markdown_is_rendered_and_legible(host):
    on, place = question(host, DOCUMENT)
    for tag, text in (
        ("strong", "Ada"), ("em", "1.2"), ("code", "run()"), ("ol > li >> nth=0", "build"),
        ("ul > li >> nth=0", "on Linux"), ("blockquote", "quoted\ntwice"), ("th >> nth=0", "name"),
        ("td >> nth=1", "3"), ("pre", 'print("# no heading")'),
        (".agentnb-heading", "Release 1.2"),
    ):  # fmt: skip
        assert place.locator(tag).inner_text() == text
    words = place.inner_text()
    assert "the notes https://example.com/notes or https://example.com." in words
    assert "Not snake_case_names, not *this*." in words
    assert "☑ on a Mac" in words
    assert "image: a chart javascript:alert(1)" in words
    assert place.locator("hr").count() == 1
    assert place.locator("em").count() == 1
    place.get_by_role("button", name="Text").click()
    assert place.locator(".agentnb-fixed").inner_text() == DOCUMENT
    nothing_happened(on)


def test_json_is_laid_out_with_its_parts_in_colors(host):
    _, place = question(host, json.dumps({"a": [1, 2.5], "b": None, "c": 'x "y"'}))
    assert json.loads(place.locator(".agentnb-json").inner_text()) == {"a": [1, 2.5], "b": None, "c": 'x "y"'}
    for kind, text in (("name", '"a"'), ("number", "1"), ("word", "null"), ("string", '"x \\"y\\""')):
        assert place.locator(f".agentnb-json-{kind}").first.inner_text() == text


def test_a_number_is_not_rounded(host):
    _, place = question(host, '{"id": 12345678901234567890}')
    assert "12345678901234567890" in place.inner_text()


def test_plain_text_stays_as_it_is(host):
    _, place = question(host, "We are\n  looking into it: 2 * 3 * 4, a_b_c.")
    assert place.inner_text() == "We are\n  looking into it: 2 * 3 * 4, a_b_c."
    assert place.get_by_role("button").count() == 0


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_second_draft_shows_its_changes_legibly(host, theme):
    on = host(second_draft())
    on.page.evaluate("theme => { document.body.dataset.theme = theme; }", theme)
    on.show(problems=[])
    place = on.page.locator(".agentnb-rendered").first
    assert "2 lines added, 2 removed, compared with the value before step 3" in place.inner_text()
    added = place.locator("[data-sign='+']").all()
    words = [line.locator(".agentnb-diff-text").inner_text() for line in added]
    assert words == [SECOND.split("\n")[4], SECOND.split("\n")[7]]
    assert added[0].locator("mark").all_inner_texts() == ["two", "nights"]
    assert on.page.evaluate(CONTRAST) == []
    place.get_by_role("button", name="Rendered").click()
    assert place.locator("li").first.inner_text() == "two nights"


def test_an_invisible_character_is_shown(host):
    _, place = question(host, "pay\u202e100\u200b EUR")
    assert "".join(place.inner_text().split()) == "payU+202E100U+200BEUR"


def test_values_never_become_markup(host):
    links, nested = [f"[x]({trap})" for trap in TRAPS], [f"- **{trap}**\n> `{trap}`" for trap in TRAPS]
    text = "\n\n".join([EVIL, *TRAPS, *links, *nested])
    on, place = question(host, text, diff=[["-", [[text, True]]], ["+", [[text, False]]]], since="then")
    nothing_happened(on)
    for view in ("Rendered", "Text", "Changes"):
        place.get_by_role("button", name=view).click()
        nothing_happened(on)
    assert on.page.evaluate("window.owned") is None


@pytest.mark.parametrize("part", ["*", "[", "`", "> ", "_a", "- ", "|-"])
def test_no_text_blocks_the_page(host, part):
    text = part * (20_000 // len(part))
    _, place = question(host, f"# {text}\n{text}")
    assert place.inner_text(timeout=10_000)


def test_a_field_of_an_approval_is_rendered_and_edited(host):
    on = host(ticket_recipe.session())
    row = {"path": ["text"], "label": "text", "text": "**now**", "as": "text", "note": ""}
    card = {"id": "a", "kind": "approval", "node": "ask", "name": "send", "prompt": "send", "role": "",
            "seconds_left": None, "options": [], "arguments": [row], "answer": None}  # fmt: skip
    on.show(pending=[card], can=["answer", "change"], problems=[])
    place = on.page.locator(".agentnb-previewed")
    assert place.locator("strong").inner_text() == "now"
    place.get_by_text("Edit", exact=True).click()
    place.locator("textarea").fill("**later**")
    assert place.locator("strong").inner_text() == "later"
    on.button("Undo changes").click()
    assert place.locator("strong").inner_text() == "now"
    place.locator("textarea").fill("**later**")
    on.button("Approve").click()
    assert on.sent() == [
        ("change", {"arguments": [[["text"], {"text": "**later**", "as": "text"}]]}),
        ("approve", None),
    ]
