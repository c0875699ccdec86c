"""The JupyterLite site that `.ci/lite` builds, opened in Chromium without a network: the tour runs to its end.

LITE names the folder of the site, PYODIDE that of the npm package `pyodide`; without them the test is skipped.
"""

from __future__ import annotations

import os
import re
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
# What fails here and nowhere else: numpy and pandas are stubs, and WebAssembly has no greenlets.
EXPECTED = re.compile(
    r"No module named '(numpy|pandas)'|name 'frames' is not defined|X534: step_into\(\) does not work"
)


class CrossOriginIsolated(Quiet):
    """Serves the site with the headers with which a kernel may wait for the page."""

    def end_headers(self):
        self.send_header("Cross-Origin-Opener-Policy", "same-origin")
        self.send_header("Cross-Origin-Embedder-Policy", "require-corp")
        super().end_headers()


@pytest.fixture
def address(tmp_path):
    site = tmp_path / "site"
    shutil.copytree(LITE, site)
    localize(site, Path(PYODIDE))
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(CrossOriginIsolated, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@pytest.mark.needs_chromium
@pytest.mark.skipif(not (LITE and PYODIDE), reason="LITE and PYODIDE are not set")
def test_the_tour_runs_to_its_end(address, chromium):
    with opened(chromium) as (browser, outside):
        page = browser.new_page()
        page.set_default_timeout(900_000)
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
        assert [error for error in errors if not EXPECTED.search(error)] == []
        assert outside == []
