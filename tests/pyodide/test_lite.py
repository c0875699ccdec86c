"""The JupyterLite site that `.ci/lite` builds, in Chromium without a network: the tour runs, a cockpit is pressed.

LITE names the folder of the site, PYODIDE that of the npm package `pyodide`; without them the test is skipped.
"""

from __future__ import annotations

import os
import shutil
import threading
from functools import partial
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.pyodide.lite import localize
from tests.pyodide.test_pyodide import PYODIDE, Quiet
from tests.ui.pages import opened

LITE = os.environ.get("LITE", "")


@pytest.fixture
def address(tmp_path):
    """Serve the site as GitHub Pages does, without headers that isolate the page.

    In an isolated page the kernel loses replies: it calls `Atomics.waitAsync(...).value.then`, and `value` is a text if
    the answer is there already.
    """
    site = tmp_path / "site"
    shutil.copytree(LITE, site)
    localize(site, Path(PYODIDE))
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@pytest.mark.needs_chromium
@pytest.mark.skipif(not (LITE and PYODIDE), reason="LITE and PYODIDE are not set")
def test_the_tour_runs_to_its_end_and_its_cockpit_reacts(address, chromium):
    with opened(chromium) as (browser, outside):
        page = browser.new_page()
        page.set_default_timeout(300_000)
        broken = []
        page.on("pageerror", lambda error: broken.append(str(error)))
        page.goto(f"{address}/lab/index.html?path=00_tour.ipynb")
        page.wait_for_selector(".jp-NotebookPanel")
        page.get_by_text("Run", exact=True).first.click()
        page.get_by_text("Run All Cells", exact=True).first.click()
        page.wait_for_function(
            "document.querySelector('.jp-Notebook')?.textContent.includes('steps 1 to 10 replayed, nothing differs')"
        )
        errors = page.eval_on_selector_all(
            ".jp-OutputArea-output[data-mime-type='application/vnd.jupyter.stderr']",
            "all => all.map(one => one.innerText)",
        )
        assert errors == []
        cockpit = page.locator(".agentnb-cockpit").first
        cockpit.scroll_into_view_if_needed()
        for command, step in (("back", 9), ("back", 8), ("step", 9), ("reset", 0), ("step", 1)):
            cockpit.locator(f".agentnb-buttons button[data-do={command}]").click()
            page.wait_for_function(
                "([root, step]) => Number(root.querySelector('input[type=range]').value) === step",
                arg=[cockpit.element_handle(), step],
            )
        assert cockpit.locator(".agentnb-sentence").inner_text().startswith("Step 1")
        assert (broken, outside) == ([], [])
