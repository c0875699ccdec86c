from __future__ import annotations

import asyncio
import json
import re

import pytest

import agentnb as nb
from agentnb.errors import AgentNbError
from agentnb.ui.debugger import Debugger, build_page_module, build_page_style, debug, open_cockpit
from tests.ui import ticket_recipe
from tests.ui.test_command_queue import hanging


@pytest.fixture
def session():
    return ticket_recipe.session()


@pytest.fixture
def debugger(session):
    cockpit = Debugger(session)
    yield cockpit
    cockpit.close()


def page_says(debugger, do, **more):
    debugger._handle_custom_msg({"do": do, "view": "a", "number": 1, **more}, [])


def test_a_message_of_the_page_is_a_command(session, debugger):
    page_says(debugger, "step")
    assert (debugger.state["position"], debugger.state["current"]) == (1, "ask")
    page_says(debugger, "goto", value=0)
    assert debugger.state["position"] == session.position == 0
    page_says(debugger, "run")
    page_says(debugger, "answer", value="yes", target="ask")
    assert session.board["decision"] == "yes"


def test_the_page_is_notified_when_its_command_is_done(debugger, monkeypatch):
    answers = []
    monkeypatch.setattr(
        debugger, "send", lambda content, buffers=None: answers.append((content, debugger.state["position"]))
    )
    page_says(debugger, "step", number=7)
    assert [one for one in answers if "answers" in one[0]] == [({"answers": 7, "view": "a"}, 1)]


def test_a_page_receives_changes_only(session, debugger, monkeypatch):
    answers = []
    monkeypatch.setattr(debugger, "send", lambda content, buffers=None: answers.append(content))
    session.step()
    (message,) = answers
    assert message["number"] == debugger.state["number"]
    assert message["changed"]["board"]["rows"] == [row for row in debugger.state["board"] if row[2]]
    assert len(json.dumps(message)) < 1_000
    debugger._command_queue.refresh()
    assert len(answers) == 1


def test_a_page_receives_the_complete_state_on_request(debugger, monkeypatch):
    sent = []
    monkeypatch.setattr(debugger, "send_state", sent.append)
    page_says(debugger, "whole")
    assert sent == ["state"]


def test_a_page_receives_the_results_of_its_queries(debugger, monkeypatch):
    answers = []
    monkeypatch.setattr(debugger, "send", lambda content, buffers=None: answers.append(content))
    page_says(debugger, "query", value="key", target="ticket", number=3)
    (message,) = answers
    assert (message["answers"], message["result"]["field"]["text"]) == (3, "money back")


def test_an_invalid_message_from_the_page_is_reported_and_harmless(session, debugger):
    page_says(debugger, "rm -rf")
    assert debugger.state["problems"][0]["code"] == "U301"
    debugger._handle_custom_msg("step", [])
    debugger._handle_custom_msg({}, [])
    assert session.position == 0


def test_changes_made_in_a_cell_are_shown(session, debugger):
    session.step()
    assert debugger.state["position"] == 1
    session.edit({"ticket": "other"})
    assert ["ticket", "'other'", ["written", "read"], "str", [1, None], "'money back'"] in debugger.state["board"]


def test_a_step_never_recomputes_the_layout(session, debugger):
    before = debugger.svg
    session.run()
    assert debugger.svg is before
    assert "data-static" not in before


def test_a_failing_drawing_is_reported_and_the_run_continues(session, debugger, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(session._parts.pictures, "view", lambda: 1 / 0)
        session.step()
    assert debugger.state["problems"][0]["code"] == "U302"
    assert session.position == 1
    session.back()
    assert debugger.state["problems"] == []


def test_a_cockpit_without_a_drawing_still_reports_errors(session, monkeypatch):
    monkeypatch.setattr(session._parts.pictures, "view", lambda: 1 / 0)
    cockpit = Debugger(session)
    assert cockpit.state["problems"][0]["code"] == "U302"
    cockpit.close()


def test_a_session_has_one_cockpit_until_it_is_closed(session):
    first = open_cockpit(session)
    assert open_cockpit(session) is first
    first.close()
    second = open_cockpit(session)
    assert second is not first
    assert open_cockpit(ticket_recipe.session()) is not second


def test_debug_creates_the_session_too():
    cockpit = debug(ticket_recipe.recipe(), {"ticket": "x", "api_key": "k"})
    assert cockpit.session.current == "classify"
    assert open_cockpit(cockpit.session) is cockpit
    cockpit.close()


def test_a_closed_cockpit_receives_nothing(session):
    cockpit = Debugger(session)
    cockpit.close()
    session.step()
    assert cockpit.state["position"] == 0


def test_without_a_front_end_a_static_display_is_shown(debugger):
    content, _ = debugger._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in content
    assert content["image/svg+xml"].startswith("<svg")
    assert "<script" not in content["text/html"] + content["image/svg+xml"]
    assert content["text/plain"] == "<Debugger of 'triage': step 0 of 0, ready. At the start: 'classify' is first.>"


def test_in_a_kernel_commands_run_on_its_event_loop():
    async def main():
        session = ticket_recipe.session("hello")
        debugger = Debugger(session)
        page_says(debugger, "run")
        assert session.position == 0
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await session.wait(10)
        while debugger.state["status"] != "finished":  # noqa: ASYNC110  (a widget has nothing to wait for)
            await asyncio.sleep(0.005)
        assert debugger.state["position"] == 3
        debugger.close()

    asyncio.run(main())


def test_the_javascript_module_is_self_contained():
    module, style = build_page_module(), build_page_style()
    assert not re.search(r"^\s*import |import\(|fetch\(|XMLHttpRequest", module, re.MULTILINE)
    assert re.findall(r"^export .*", module, re.MULTILINE) == ["export default { render: cockpitPart.render };"]
    assert "innerHTML" not in module
    for text in (module.replace("http://www.w3.org/2000/svg", ""), style):
        assert "://" not in text
        assert "@import" not in text


def test_no_css_rule_applies_outside_of_the_cockpit():
    style = re.sub(r"/\*.*?\*/", "", build_page_style(), flags=re.DOTALL)
    selectors = re.findall(r"(?:^|[{};])\s*([^{};@]+)\{", style)
    assert selectors
    assert [
        selector for selector in selectors if ".agentnb-cockpit" not in selector and ".agentnb-" not in selector
    ] == []


def test_debug_of_an_existing_session_shows_its_cockpit(session):
    session.step()
    cockpit = debug(session)
    assert cockpit.session is session
    assert cockpit is open_cockpit(session)
    with pytest.raises(AgentNbError, match="U304"):
        debug(session, {"ticket": "another"})
    cockpit.close()


def test_fork_here_shows_the_fork_and_does_not_change_the_run(session, debugger):
    session.step()
    session.breakpoints.add(node="refund")
    session.watch("category")
    page_says(debugger, "fork", value="bold")
    fork = debugger.session
    assert (fork.parent, fork.name, session.forks) == (session, "bold", (fork,))
    assert debugger.state["run"] == {"name": "bold", "id": fork.run_id[-6:], "of": "triage"}
    assert [row["node"] for row in debugger.state["breakpoints"]] == ["refund"]
    assert debugger.state["watches"] == [["category", "'refund'"]]
    page_says(debugger, "edit", value="other", target="category")
    assert (fork.board["category"], session.board["category"]) == ("other", "refund")


def test_another_run_of_the_tree_replaces_it_and_is_followed(session, debugger):
    session.step()
    page_says(debugger, "fork")
    fork = debugger.session
    page_says(debugger, "switch", target=session.run_id)
    assert (debugger.session, debugger.state["run"]["of"]) == (session, None)
    number = debugger.state["number"]
    fork.back()
    assert debugger.state["number"] == number
    session.back()
    assert debugger.state["position"] == 0


def test_a_missing_run_is_a_problem_and_changes_nothing(session, debugger):
    page_says(debugger, "switch", target="gone")
    assert [problem["code"] for problem in debugger.state["problems"]] == ["U310"]
    assert debugger.session is session


def test_a_session_of_another_recipe_is_redrawn(session, debugger):
    drawn = debugger.svg
    debugger.turn_to(session.fork())
    assert debugger.svg is drawn
    debugger.turn_to(nb.Session(nb.samples("pipeline")))
    assert debugger.svg != drawn
    assert debugger.state["name"] == "pipeline"
    assert debugger.state["position"] == 0


def test_a_cockpit_switched_to_a_fork_belongs_to_the_fork(session):
    first = open_cockpit(session)
    fork = session.fork()
    first.turn_to(fork)
    second = open_cockpit(session)
    assert (open_cockpit(fork), second is first, second.session) == (first, False, session)
    first.turn_to(session)  # that has a cockpit by now, which stays its own
    assert open_cockpit(session) is second
    first.close()
    second.close()


def test_switching_to_a_fork_does_not_wait_for_a_running_step():
    async def main():
        gate = asyncio.Event()
        session = hanging(gate)
        fork = session.fork(name="other")
        shown = Debugger(session)
        page_says(shown, "step")
        await until(lambda: shown.state["status"] == "running")
        page_says(shown, "switch", target=fork.run_id)
        await until(lambda: shown.session is fork)
        assert (shown.state["status"], shown.state["run"]["name"]) == ("ready", "other")
        page_says(shown, "switch", target=session.run_id)
        await until(lambda: shown.session is session)
        assert shown.state["status"] == "running"
        gate.set()
        await until(lambda: shown.state["position"] == 1)
        assert fork.position == 0
        shown.close()

    asyncio.run(asyncio.wait_for(main(), 20))


async def until(holds):
    while not holds():  # noqa: ASYNC110  (a page has nothing to wait for)
        await asyncio.sleep(0.005)
