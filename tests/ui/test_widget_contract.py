"""The page needs of a front end only what anywidget promises: get, set, on, off and send of the model, and an element.

VS Code and others that show anywidgets offer no more than this.
"""

from __future__ import annotations

import pytest

from agentnb.ui.commands import list_commands
from agentnb.ui.debugger import build_page_module
from agentnb.ui.graph_view import draw_at_once, get_drawing
from agentnb.ui.view_model import make_screen
from tests.ui import ticket_recipe

pytestmark = pytest.mark.needs_chromium

# A model that refuses everything else, and an element in a shadow root, as some front ends have.
MOUNT = """async ([source, state]) => {
  const {default: widget} = await import(URL.createObjectURL(new Blob([source], {type: 'text/javascript'})));
  const used = new Set(), sent = [];
  const allowed = {
    get: name => state[name], set: () => {}, on: () => {}, off: () => {}, send: message => { sent.push(message); },
  };
  const model = new Proxy(allowed, {get: (target, name) => { used.add(name); return target[name]; }});
  const host = document.body.appendChild(document.createElement('div'));
  const el = host.attachShadow({mode: 'open'}).appendChild(document.createElement('div'));
  const end = await widget.render({model, el, experimental: {invoke: () => Promise.reject()}});
  el.querySelector('[data-do=step]').click();
  end();
  const verbs = sent.map(one => one.do);
  return {used: [...used].sort(), exports: Object.keys(widget), sent: verbs, left: el.childElementCount};
}"""


def test_the_page_uses_only_what_anywidget_promises(browser):
    page = browser.new_page()
    page.goto("about:blank")
    session = ticket_recipe.session()
    state = {
        "svg": draw_at_once(session), "state": make_screen(session, get_drawing(session)), "commands": list_commands(),
    }  # fmt: skip
    value = page.evaluate(MOUNT, [build_page_module(), state])
    assert set(value["used"]) <= {"get", "set", "on", "off", "send"}
    assert value["exports"] == ["render"]
    assert "step" in value["sent"]
    assert value["left"] == 0  # it leaves nothing behind
    page.close()
