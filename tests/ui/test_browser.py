from __future__ import annotations

from pathlib import Path

import nbformat
import pytest

from tests.ui.lab import Notebook, running
from tests.ui.pages import opened

pytestmark = pytest.mark.needs_chromium

QUICKSTART = Path(__file__).parents[2] / "notebooks" / "01_quickstart.ipynb"
SLOW = """
import asyncio
import networkx as nx
import agentnb as nb

async def tick(board):
    await asyncio.sleep(0.03)
    return {"n": board.get("n", 0) + 1}

graph = nx.MultiDiGraph(name="clock", entry="tick")
graph.add_node("tick", function=tick)
graph.add_edge("tick", "tick", when={"<": [{"var": "n"}, 100000]})
slow = nb.Session(nb.load(graph), budget={"max_steps": 1000000})
slow
"""
FAILING = """
def fall(board):
    raise ValueError("<b>fell over</b>")

graph = nx.MultiDiGraph(name="faller")
graph.add_node("fall", function=fall)
failing = nb.Session(nb.load(graph))
failing
"""
AGENT = """
import agentnb as nb
from agentnb.dialects.symphony import AgentConfig, AgentExecutor, ToolRegistry, tool

@tool
def hide(comment: str) -> str:
    return f"comment {comment} is hidden"

tools = ToolRegistry()
tools.register_tool("hide", hide)
config = AgentConfig(name="Keeper", description="keeps order", task="Keep order", tools=["hide"], require_approval=True)
script = [{"tool_name": "hide", "parameters": {"comment": "7"}}, {"tool_name": "none", "response": "Done."}]
agent = nb.Session(AgentExecutor(config, tools=tools).recipe, {"task": "Comment 7: You fool."}, llm=script)
agent
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """A JupyterLab on copies of the quickstart, one with cells for what it has no node for."""
    folder, home = tmp_path_factory.mktemp("notebooks"), tmp_path_factory.mktemp("jupyter")
    notebook = nbformat.read(QUICKSTART, as_version=4)
    nbformat.write(notebook, folder / "quickstart.ipynb")
    notebook.cells = [
        nbformat.v4.new_code_cell(text.strip()) for text in (SLOW, FAILING, AGENT, "slow.controls()", "slow")
    ]
    nbformat.write(notebook, folder / "more.ipynb")
    with running(folder, home) as address:
        yield address


@pytest.fixture(scope="module")
def browser(chromium, lab):
    with opened(chromium, viewport={"width": 1300, "height": 1000}) as (context, outside):
        yield context
        assert outside == [], "a request left this machine"


@pytest.fixture(scope="module")
def pages(browser, lab):
    """The notebooks opened so far, by name: JupyterLab takes longer to load than a test to run."""
    pages = {}
    yield pages
    for page in pages.values():
        page.close()


@pytest.fixture
def notebook(browser, lab, pages):
    """Open a notebook by its name, without outputs of other tests; its kernel is the one that they had."""

    def open_(name):
        if name not in pages:
            pages[name] = Notebook(browser.new_page(), lab(name))
        pages[name].clear()
        return pages[name]

    return open_


def test_every_button_of_the_quickstart_works_as_described(notebook):
    page = notebook("quickstart.ipynb")
    page.run("import agentnb as nb")
    page.run('nb.samples("triage")')
    cockpit = page.cockpit(page.run("session = nb.Session(recipe)"))
    cockpit.shows(current="read", step=0, status="ready")

    cockpit.press("Step")
    cockpit.shows(current="sort", step=1, visited="read", said="Step 1: 'read' wrote")
    assert cockpit.value("topic") == ("'refund'", "written")
    cockpit.press("Step")
    cockpit.press("Step")
    cockpit.shows(current="write", step=3, visited="check_order,read,sort")

    cockpit.press("Back")
    cockpit.shows(current="check_order", step=2, visited="read,sort")
    assert cockpit.value("refund") == ("not yet", "")
    cockpit.slide(0)
    cockpit.shows(current="read", step=0, visited="", said="3 later steps are kept")
    cockpit.slide(3)
    cockpit.shows(current="write", step=3)


SAVED = """() => window.jupyterapp.shell.currentWidget.content.model.toJSON().cells
  .flatMap(cell => cell.outputs || []).map(output => output.data || {})"""


def test_a_saved_notebook_has_the_state_that_the_cockpit_showed_last(notebook):
    page = notebook("quickstart.ipynb")
    page.run("import agentnb as nb")
    page.run('nb.samples("triage")')
    cockpit = page.cockpit(page.run("session = nb.Session(recipe)"))
    cockpit.shows(step=0)
    for step in (1, 2, 3):
        cockpit.press("Step")
        cockpit.shows(step=step)
    page.page.wait_for_function(f"({SAVED})().some(data => (data['text/html'] || '').includes('step 3 of 3'))")
    pictures = [data["text/html"] for data in page.page.evaluate(SAVED) if "agentnb-twin" in data.get("text/html", "")]
    assert ["step 3 of 3" in "".join(picture) for picture in pictures] == [True]
    assert page.page.locator(".agentnb-still").count() == 1
    assert not page.page.locator(".agentnb-still").is_visible()
    cockpit.press("Back")
    cockpit.shows(step=2)
    page.page.wait_for_function(f"({SAVED})().some(data => (data['text/html'] || '').includes('step 2 of 3'))")


def test_a_question_is_answered_in_the_cockpit_and_the_run_continues(notebook):
    page = notebook("quickstart.ipynb")
    page.run("import agentnb as nb")
    page.run('nb.samples("triage")')
    cockpit = page.cockpit(page.run("session = nb.Session(recipe)"))
    cockpit.press("Run")
    cockpit.shows(status="waiting", current="review", step=4, said="'review' waits for a person")
    cockpit.root.locator(".agentnb-asks").get_by_role("textbox").fill("Say sorry")
    cockpit.press("Answer")  # what Run has begun goes on after the answer
    cockpit.shows(status="waiting", current="review", step=7)
    assert cockpit.value("response")[0] == "'Say sorry'"
    assert cockpit.root.locator(".agentnb-asks").get_by_role("textbox").input_value() == ""
    cockpit.press("Back")
    cockpit.shows(step=6)
    cockpit.press("Step")
    cockpit.shows(step=7)
    cockpit.press("Step")
    cockpit.shows(status="waiting", step=7)
    cockpit.root.locator(".agentnb-asks").get_by_role("textbox").fill("approve")
    cockpit.page.keyboard.press("Enter")  # and after a step by hand nothing does
    cockpit.shows(current="decide", step=8)
    assert cockpit.value("response") == ("'Say sorry' → 'approve'", "written")
    cockpit.press("Run")
    cockpit.shows(status="finished", current="", said="The run has finished.")
    assert cockpit.value("closed")[0] == "True"

    cockpit.press("Reset")
    cockpit.shows(status="ready", current="read", step=0, visited="")


def test_a_cell_moves_the_cockpit_above_it(notebook):
    page = notebook("quickstart.ipynb")
    page.run("import agentnb as nb")
    page.run('nb.samples("triage")')
    cockpit = page.cockpit(page.run("session = nb.Session(recipe)"))
    page.run("session.reset()")
    cockpit.shows(step=1, current="sort")
    page.run("session.step(2)")
    cockpit.shows(step=2, current="check_order")


def test_a_running_session_is_shown_and_pause_stops_it(notebook):
    page = notebook("more.ipynb")
    cockpit = page.cockpit(page.run("slow = nb.Session"))
    cockpit.press("Run")
    cockpit.shows(status="running", beyond=5)
    cockpit.press("Pause")
    cockpit.shows(status="paused")
    at = int(cockpit.root.get_by_role("slider").input_value())
    assert cockpit.value("n") == (f"{at - 1} → {at}", "written")
    cockpit.press("Run")
    cockpit.shows(status="running", beyond=at + 3)
    cockpit.press("Back")
    cockpit.shows(status="paused")


def test_controls_and_two_views_of_one_session_agree(notebook):
    page = notebook("more.ipynb")
    first = page.cockpit(page.run("slow = nb.Session"))
    controls = page.run("slow.controls()")
    second = page.cockpit(page.run("slow"))
    cell = page.page.locator(f'.jp-Cell[data-windowed-list-index="{controls}"]')
    cell.locator("button", has_text="Step").click()
    for view in (first, second):
        view.shows(step=1, said="Step 1: 'tick'")
    second.press("Back")
    for view in (first, second):
        view.shows(step=0)
    page.page.wait_for_function("cell => cell.textContent.includes('At the start')", arg=cell.element_handle())


def test_a_fork_replaces_its_run_in_every_view_and_the_run_can_be_restored(notebook):
    page = notebook("more.ipynb")
    first = page.cockpit(page.run("slow = nb.Session"))
    second = page.cockpit(page.run("slow"))
    first.press("Step")
    first.press("Fork here")
    for view in (first, second):
        view.shows(step=1, said="a fork of 'clock'")
    second.press("Step")
    for view in (first, second):
        view.shows(step=2)
    second.press("clock")
    for view in (first, second):
        view.shows(step=1, said="Next: 'tick'")


def test_a_failure_is_a_card_and_keys_stay_in_the_cockpit(notebook):
    page = notebook("more.ipynb")
    page.run("slow = nb.Session")
    cell = page.run("failing = nb.Session")
    cockpit = page.cockpit(cell)
    cockpit.root.focus()
    page.page.keyboard.press("ArrowRight")
    cockpit.shows(status="failed", problem="<b>fell over</b>")
    page.page.keyboard.press("m")
    assert page.kind(cell) == "code"


@pytest.mark.parametrize("place", ["a button", "a field"])
def test_chords_of_the_notebook_work_while_the_cockpit_has_the_focus(notebook, place):
    page = notebook("more.ipynb")
    page.run("slow = nb.Session")
    cockpit = page.cockpit(page.run("failing = nb.Session"))
    field = cockpit.root.get_by_label("filter the blackboard")
    (cockpit.root.get_by_role("button", name="Step", exact=True) if place == "a button" else field).focus()
    page.page.evaluate("window.jupyterapp.shell.currentWidget.context.model.dirty = true")
    page.page.keyboard.press("Control+s")
    page.page.wait_for_function("!window.jupyterapp.shell.currentWidget.context.model.dirty")
    page.page.keyboard.press("Control+Shift+C")
    page.page.locator(".jp-ModalCommandPalette").wait_for()
    page.page.keyboard.press("Escape")
    field.fill("ab")
    field.press("Control+a")
    field.press("x")
    assert field.input_value() == "x"


def test_a_reloaded_page_shows_where_the_session_is(notebook):
    page = notebook("more.ipynb")
    cockpit = page.cockpit(page.run("slow = nb.Session"))
    cockpit.press("Step")
    cockpit.shows(step=1)
    page.reload()
    cockpit = page.cockpit(page.cell("slow = nb.Session"))
    cockpit.shows(step=1, status="paused")
    cockpit.press("Step")
    cockpit.shows(step=2)


def test_a_run_continues_while_the_page_is_reloaded(notebook):
    page = notebook("more.ipynb")
    cockpit = page.cockpit(page.run("slow = nb.Session"))
    cockpit.press("Over")
    cockpit.shows(status="paused", step=1)
    cockpit.press("Run")
    cockpit.shows(status="running", beyond=3)
    page.reload()
    cockpit = page.cockpit(page.cell("slow = nb.Session"))
    at = int(cockpit.root.get_by_role("slider").input_value())
    cockpit.shows(status="running", beyond=at + 3)
    cockpit.press("Pause")
    cockpit.shows(status="paused")


def test_a_cockpit_whose_kernel_is_gone_says_so_until_the_cell_is_run_again(notebook):
    page = notebook("more.ipynb")
    cockpit = page.cockpit(page.run("slow = nb.Session"))
    cockpit.press("Step")
    cockpit.shows(step=1)
    page.restart()
    cockpit.root.get_by_text("Run the cell again").wait_for()
    cockpit = page.cockpit(page.run("slow = nb.Session"))
    cockpit.shows(step=0, status="ready")
    assert not cockpit.root.get_by_text("Run the cell again").is_visible()


def test_an_agent_is_stepped_into_edited_and_its_tool_approved(notebook):
    page = notebook("more.ipynb")
    cockpit = page.cockpit(page.run("agent = nb.Session"))
    for step in (1, 2, 2):
        cockpit.press("Into")
        cockpit.shows(step=step)
    cockpit.shows(status="in flight", said="Held before llm call")
    cockpit.root.get_by_label("user message").fill("Comment 8: Hello.")
    cockpit.press("Send it")
    cockpit.shows(status="in flight", said="Held after llm call")
    cockpit.root.get_by_text("What was sent").click()
    cockpit.root.get_by_text("Comment 8: Hello.").wait_for()
    answer = '{"tool_name": "hide", "parameters": {"comment": "8"}}'
    cockpit.root.locator(".agentnb-ask").get_by_label("content").fill(answer)
    cockpit.press("Accept the answer")
    cockpit.shows(step=3, current="parse")

    cockpit.root.locator("g.node[data-node=tool] .agentnb-reach").click()
    cockpit.press("Run")
    cockpit.shows(status="waiting", current="check")
    assert "requests approval for hide" in cockpit.root.locator(".agentnb-ask").inner_text()
    cockpit.press("Approve")
    cockpit.shows(current="tool", status="paused")
    cockpit.press("Over")
    cockpit.shows(step=6)
    cockpit.press("tools_executed")
    cockpit.root.get_by_text("comment 8 is hidden").first.wait_for()
    cockpit.press("Run back")
    cockpit.shows(current="tool")
