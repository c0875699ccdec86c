"""The cockpit in marimo: a Session as the last line of a cell is its cockpit, and its buttons act."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager

import pytest

from tests.ui.lab import free_port
from tests.ui.pages import opened

pytestmark = pytest.mark.needs_chromium
pytest.importorskip("marimo", reason="pip install marimo")

APP = """
import marimo

app = marimo.App()


@app.cell
def _():
    import agentnb as nb
    session = nb.Session(nb.samples("refine"), {"number": 2.0})
    session
"""
PATIENCE = 60  # seconds until the server answers


@contextmanager
def served(folder):
    """Serve a notebook of marimo; yield its address."""
    (folder / "app.py").write_text(APP, encoding="utf-8")
    port = free_port()
    command = [sys.executable, "-m", "marimo", "-y", "-q", "run", str(folder / "app.py"), "--headless", "--no-token"]
    environment = {**os.environ, "HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "MARIMO_SKIP_UPDATE_CHECK": "1"}
    server = subprocess.Popen([*command, "--port", str(port)], env=environment, cwd=folder, stderr=subprocess.DEVNULL)
    try:
        address, end = f"http://127.0.0.1:{port}/", time.monotonic() + PATIENCE
        while True:
            try:
                urllib.request.urlopen(address)
                break
            except urllib.error.URLError:
                assert time.monotonic() < end, "marimo does not answer"
                time.sleep(0.1)
        yield address
    finally:
        server.terminate()
        server.wait()


def test_a_session_in_marimo_is_its_cockpit(chromium, tmp_path):
    from playwright.sync_api import expect

    with served(tmp_path) as address, opened(chromium, viewport={"width": 1300, "height": 1000}) as (context, outside):
        page = context.new_page()
        page.goto(address)
        sentence = page.locator(".agentnb-sentence")
        sentence.wait_for(timeout=PATIENCE * 1000)
        page.get_by_role("button", name="Step", exact=True).click()
        expect(sentence).to_contain_text("Step 1: 'start'")
        page.get_by_role("button", name="Run", exact=True).click()
        expect(sentence).to_contain_text("The run has finished.")
        page.close()
    assert outside == []
