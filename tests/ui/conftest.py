"""Nobody sits at a terminal while the screen is tested; a bare page with a cockpit on it."""

from __future__ import annotations

import io
import sys

import pytest

from agentnb.ui.command_queue import to_problems
from agentnb.ui.commands import COMMANDS, list_commands, run_command
from agentnb.ui.debugger import build_page_module, build_page_style
from agentnb.ui.graph_view import draw_at_once, get_drawing
from agentnb.ui.view_model import make_screen
from tests.ui import ticket_recipe
from tests.ui.pages import HOST, opened


@pytest.fixture(autouse=True)
def _nobody_types(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO())


@pytest.fixture(scope="module")
def browser(chromium):
    with opened(chromium) as (context, outside):
        yield context
        assert outside == []


# what a page looks at by itself
BY_ITSELF = (
    "timeline",
    "forks",
    "drawing",
    "flows",
    "objects",
    "node",
    "step",
    "events",
    "second",
    "history",
    "slice",
    "usage",
    "clauses",
)


class Host:
    """A page with a cockpit on it, and the session whose state it is shown."""

    def __init__(self, page, session, views):
        self.page, self.session = page, session
        self.drawing = get_drawing(session)
        state = {"svg": draw_at_once(session), "state": make_screen(session, self.drawing), "commands": list_commands()}
        page.evaluate("([a, b, c, d]) => mount(a, b, c, d)", [build_page_module(), build_page_style(), state, views])

    def show(self, **over):
        state = {**make_screen(self.session, self.drawing), **over}
        self.page.evaluate("state => host.model.set('state', state)", state)

    def obey(self):
        """Do to the session what the page has asked for, as a kernel does, and show and tell the page what came of it.

        Return the verbs that a person asked for.
        """
        value, verbs, problems = self.page.evaluate("host.sent.splice(0)"), [], ()
        while value:
            for message in value:
                replacement = None
                problems = problems if message["do"] == "query" else ()
                verbs += [message["do"]] if message["value"] not in BY_ITSELF else []
                try:
                    replacement = run_command(self.session, message["do"], message["value"], message["target"])
                except Exception as error:  # noqa: BLE001
                    problems = to_problems(error, message["do"])
                if COMMANDS[message["do"]].returns_session and not problems:
                    self.session, replacement = replacement, None
                reply = {"answers": message["number"], "view": message["view"], "result": replacement}
                self.page.evaluate("heard => host.fire('msg:custom', heard)", reply)
            self.problems = problems
            self.state = make_screen(self.session, self.drawing, problems)
            self.page.evaluate("state => host.model.set('state', state)", self.state)
            value = self.page.evaluate("host.sent.splice(0)")
        return verbs

    def heard(self):
        """Say that every command so far is done."""
        self.page.evaluate(
            "[...host.sent].forEach(({number, view}) => host.fire('msg:custom', {answers: number, view}))"
        )

    def sent(self):
        return [
            (message["do"], message["value"])
            for message in self.page.evaluate("host.sent.splice(0)")
            if message["value"] not in BY_ITSELF
        ]  # fmt: skip

    def marked(self, mark):
        script = f"[...document.querySelectorAll('g.node.{mark}')].map(group => group.dataset.node)"
        return self.page.evaluate(script)

    def button(self, name):
        return self.page.get_by_role("button", name=name, exact=True)


@pytest.fixture(scope="module")
def tab(browser):
    """One page for all tests of a file, and its errors: a new page costs more than most tests."""
    page, errors = browser.new_page(), []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    return page, errors


@pytest.fixture
def host(tab):
    page, errors = tab
    page.mouse.move(0, 0)
    page.set_viewport_size({"width": 1280, "height": 720})
    page.emulate_media(color_scheme="light", reduced_motion="no-preference")
    page.evaluate(HOST)
    yield lambda session=None, views=1: Host(page, session or ticket_recipe.session(), views)
    page.goto("about:blank")  # what it still does ends before the next test, which begins here
    page_errors, errors[:] = errors.copy(), []
    assert page_errors == []
