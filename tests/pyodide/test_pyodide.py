"""agentnb in WebAssembly: checks.py in Pyodide, under Node and in a page of Chromium.

PYODIDE names the folder of the npm package `pyodide`; without it these tests are skipped.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.pyodide.packing import pack
from tests.ui.pages import opened

HERE = Path(__file__).parent
PYODIDE = os.environ.get("PYODIDE", "")
pytestmark = pytest.mark.skipif(not PYODIDE, reason="PYODIDE is not set")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    pack(folder / "site.zip", folder)
    return folder


def test_pyodide_steps_back_and_forth_in_node(site):
    command = ["node", str(HERE / "node.mjs"), PYODIDE, str(site / "site.zip"), str(HERE / "checks.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].startswith("OK")


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.mark.needs_chromium
def test_pyodide_steps_back_and_forth_in_a_page(site, chromium):
    (site / "pyodide").symlink_to(Path(PYODIDE).resolve())
    for name in ("page.html", "checks.py"):
        shutil.copy(HERE / name, site)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        with opened(chromium) as (browser, outside):
            page = browser.new_page()
            page.goto(f"http://127.0.0.1:{server.server_address[1]}/page.html")
            page.wait_for_function("window.outcome !== undefined", timeout=280_000)
            assert page.evaluate("window.outcome").startswith("OK")
            assert outside == []
    finally:
        server.shutdown()
        server.server_close()
