from __future__ import annotations

import pytest

from agentnb.ui.debugger import build_page_module, read_page_parts

pytestmark = pytest.mark.needs_chromium

# The name of the error with which a text fails to load as a module; empty if it loads.
LOADED = """async text => {
  try {
    await import(URL.createObjectURL(new Blob([text], {type: 'text/javascript'})));
    return '';
  } catch (error) {
    return error.name;
  }
}"""


def test_names_of_different_files_cannot_collide(browser):
    """In a module, no name can be declared twice: a file that repeats itself under another name declares only that."""
    page = browser.new_page()
    page.goto("about:blank")
    names = list(read_page_parts())
    before = ""
    for name, text in read_page_parts().items():
        twice = text + text.replace(f"const {name}Part = ", "const otherPart = ")
        assert page.evaluate(LOADED, before + twice) == "", name
        stray = f"{text}function stray() {{}}\n"
        again = stray + stray.replace(f"const {name}Part = ", "const otherPart = ")
        assert page.evaluate(LOADED, before + again) == "SyntaxError"
        before += text
    assert page.evaluate(LOADED, build_page_module()) == ""
    assert len(set(names)) == len(names) == 14
    page.close()
