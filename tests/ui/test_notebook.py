"""The cockpit in Notebook 7: it opens, its buttons act, and its keys are its own."""

from __future__ import annotations

import nbformat
import pytest

from tests.ui.lab import Notebook, running
from tests.ui.pages import opened
from tests.ui.test_browser import QUICKSTART, SLOW

pytestmark = pytest.mark.needs_chromium


@pytest.fixture(scope="module")
def classic(tmp_path_factory):
    """A Notebook server on a notebook whose one cell shows the cockpit of a run that goes on for ever."""
    folder, home = tmp_path_factory.mktemp("notebooks"), tmp_path_factory.mktemp("jupyter")
    notebook = nbformat.read(QUICKSTART, as_version=4)  # it names its kernel, so nobody is asked for one
    notebook.cells = [nbformat.v4.new_code_cell(SLOW.strip())]
    nbformat.write(notebook, folder / "slow.ipynb")
    with running(folder, home, "notebook") as address:
        yield address


def test_a_cockpit_in_notebook_7_steps_runs_pauses_and_keeps_its_keys(chromium, classic):
    with opened(chromium, viewport={"width": 1300, "height": 1000}) as (context, outside):
        page = Notebook(context.new_page(), classic("slow.ipynb"))
        cell = page.run("slow = nb.Session")
        cockpit = page.cockpit(cell)
        cockpit.press("Step")
        cockpit.shows(step=1, said="Step 1: 'tick'")
        ends = cockpit.root.locator("dl").evaluate_all(
            "lists => lists.map(list => [list, list.parentElement].map(each => each.getBoundingClientRect().right))"
        )
        assert ends, "the details of the step are lists"
        assert all(end <= room for end, room in ends), (
            "a notebook's own rules for lists must not widen those of the cockpit"
        )
        cockpit.press("Back")
        cockpit.shows(step=0)

        cockpit.root.focus()
        page.page.keyboard.press("ArrowRight")
        cockpit.shows(step=1)
        for key in ("m", "y", "d", "d"):  # what a notebook takes for: make it text, make it code, delete it
            page.page.keyboard.press(key)
        assert page.kind(cell) == "code"

        cockpit.press("Run")
        cockpit.shows(status="running", beyond=5)
        cockpit.press("Pause")
        cockpit.shows(status="paused")
        page.reload()
        again = page.cockpit(page.cell("slow = nb.Session"))
        again.shows(status="paused", beyond=5)
        page.close()
    assert outside == [], "a request left this machine"
