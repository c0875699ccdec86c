"""A cockpit in a notebook that nobody looks at: nbconvert's page shows the state that the session had last."""

from __future__ import annotations

import nbformat
import pytest

pytest.importorskip("nbconvert")

CELLS = (
    "import agentnb as nb\nsession = nb.Session(nb.samples('refine'), {'number': 2.0})\nsession",
    "_ = session.run()",
    "nb.Debugger(nb.Session(nb.samples('refine'), {'number': 9.0}))",
)


@pytest.mark.starts_programs
def test_a_page_of_nbconvert_shows_the_last_state_without_scripts():
    from nbclient import NotebookClient
    from nbconvert import HTMLExporter

    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in CELLS])
    NotebookClient(notebook, kernel_name="python3", timeout=120).execute()
    moved, _, untouched = (cell.outputs for cell in notebook.cells)
    assert "step 27 of 27, finished" in moved[0]["data"]["text/html"]
    assert moved[0]["data"]["image/svg+xml"].startswith("<svg")
    assert "step 0 of 0, ready" in untouched[0]["data"]["text/html"]
    assert "application/vnd.jupyter.widget-view+json" not in moved[0]["data"]
    page, _ = HTMLExporter().from_notebook_node(notebook)
    assert "step 27 of 27, finished" in page
