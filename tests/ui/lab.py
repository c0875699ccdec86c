"""A real JupyterLab or Notebook on this machine for a test, its settings its own, and a page that drives it."""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest

OPENING = 60_000  # milliseconds; a loaded machine is slow to start a kernel
REPLY = 20_000
# A kernel that looks idle may not be connected yet, and a cell run then is lost: only the application knows.
CONNECTED = """() => {
  const widget = window.jupyterapp?.shell.currentWidget;
  const session = widget?.sessionContext ?? widget?.context?.sessionContext;
  const kernel = session?.isReady && session.session?.kernel;
  return kernel && kernel.status === 'idle' && kernel.connectionStatus === 'connected';
}"""
# While a slow machine loads a page again, the manager of ipywidgets may miss a widget, although the kernel lists it. A
# person loads the page once more.
NOT_RESTORED = "Error displaying widget: model not found"
CALM = {"fetchNews": "false", "checkForUpdates": False, "doNotDisturbMode": True}


def _environment(home):
    names = ("CONFIG_DIR", "DATA_DIR", "RUNTIME_DIR")
    places = {f"JUPYTER_{name}": str(home / name.lower()) for name in names}
    places |= {"IPYTHONDIR": str(home / "ipython"), "JUPYTER_PLATFORM_DIRS": "1"}
    settings = home / "settings"
    calm = settings / "@jupyterlab" / "apputils-extension" / "notification.jupyterlab-settings"
    calm.parent.mkdir(parents=True)
    calm.write_text(json.dumps(CALM))
    places |= {"JUPYTERLAB_SETTINGS_DIR": str(settings), "JUPYTERLAB_WORKSPACES_DIR": str(home / "workspaces")}
    return {**os.environ, **places}


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def _await(process, url, log):
    end = time.monotonic() + 90
    while time.monotonic() < end:
        if process.poll() is not None:
            break
        try:
            urllib.request.urlopen(url, timeout=2).close()
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
        else:
            return
    pytest.fail(f"Jupyter did not start:\n{Path(log.name).read_text()[-3000:]}")


@contextmanager
def running(folder, home, app="jupyterlab"):
    """Start JupyterLab, or Notebook 7 (`app="notebook"`), on `folder` with everything of its own under `home`.

    Yield what makes a notebook's name its address.
    """
    port, token = free_port(), secrets.token_hex(8)
    named = {"jupyterlab": "LabApp", "notebook": "JupyterNotebookApp"}[app]
    command = [
        *(sys.executable, "-m", app, "--no-browser", "--allow-root", "--ServerApp.ip=127.0.0.1"),
        *(f"--ServerApp.port={port}", "--ServerApp.port_retries=0", f"--ServerApp.root_dir={folder}"),
        *(f"--IdentityProvider.token={token}", "--ServerApp.terminals_enabled=False", "--LabApp.news_url=None"),
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
        # A language server that happens to be installed here reports a page that is loaded anew in a dialog.
        "--LanguageServerManager.autodetect=False",
        f"--{named}.expose_app_in_browser=True",
    ]
    place = f"lab/workspaces/auto-{token}/tree" if app == "jupyterlab" else "notebooks"
    with (home / "lab.log").open("w") as log:
        process = subprocess.Popen(
            command, stdout=log, stderr=subprocess.STDOUT, env=_environment(home), start_new_session=True
        )
        try:
            _await(process, f"http://127.0.0.1:{port}/api/status?token={token}", log)
            yield lambda name: f"http://127.0.0.1:{port}/{place}/{name}?reset&token={token}"
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


# What can be seen on a cockpit, by name.
SEEN = """{
  current: (root, id) => [...root.querySelectorAll('g.node.current')].map(group => group.dataset.node).join() === id,
  visited: (root, ids) =>
    [...root.querySelectorAll('g.node.visited')].map(group => group.dataset.node).sort().join() === ids,
  step: (root, number) => root.querySelector('.agentnb-where').textContent.startsWith(`step ${number} of `)
    && Number(root.querySelector('input[type=range]').value) === number,
  beyond: (root, number) => Number(root.querySelector('input[type=range]').value) > number,
  status: (root, word) => root.querySelector('.agentnb-status').textContent === word,
  said: (root, part) => root.querySelector('.agentnb-sentence').textContent.includes(part),
  problem: (root, part) => root.querySelector('.agentnb-problems').textContent.includes(part),
}"""


class Notebook:
    """A notebook in JupyterLab or in Notebook 7, as a person has it before them."""

    def __init__(self, page, address):
        self.page, self.console = page, list[str]()
        page.set_default_timeout(REPLY)
        page.on("console", lambda line: self.console.append(line.text) if line.type in {"error", "warning"} else None)
        page.goto(address)
        self._opened()

    def _opened(self):
        self.page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=OPENING)
        self.page.wait_for_function(CONNECTED, timeout=OPENING)

    def reload(self):
        """Save, and load the whole page anew, as a browser does; the kernel stays."""
        self.page.evaluate("window.jupyterapp.commands.execute('docmanager:save')")
        self.page.reload()
        self._opened()

    def clear(self):
        """Remove all outputs, and bring the page to the front."""
        self.page.bring_to_front()
        self.page.evaluate("window.jupyterapp.commands.execute('notebook:clear-all-cell-outputs')")
        self.page.wait_for_function("!document.querySelector('.jp-OutputArea-child')")

    def restart(self):
        """Start the kernel anew; what it knew is gone."""
        self.page.evaluate("window.jupyterapp.shell.currentWidget.context.sessionContext.session.kernel.restart()")
        self.page.wait_for_function(CONNECTED, timeout=OPENING)

    def cell(self, text):
        """Return the number of the code cell that says this, or else of the first whose source has it."""
        sources = self.page.evaluate(
            "window.jupyterapp.shell.currentWidget.content.widgets.map("
            "cell => cell.model.type === 'code' ? cell.model.sharedModel.getSource() : '')"
        )
        return sources.index(text) if text in sources else next(at for at, one in enumerate(sources) if text in one)

    def kind(self, index):
        """Return whether a cell is code, markdown or raw."""
        return self.page.evaluate(
            "index => window.jupyterapp.shell.currentWidget.content.widgets[index].model.type", index
        )

    def run(self, text):
        """Run the cell whose source has this text, and wait until it has ended."""
        index = self.cell(text)
        self.page.evaluate(
            "index => { const notebook = window.jupyterapp.shell.currentWidget.content;"
            " notebook.activeCellIndex = index; notebook.deselectAll();"
            " notebook.widgets[index].model.clearExecution();"  # what it was in another kernel's time
            " window.jupyterapp.commands.execute('notebook:run-cell'); }",
            index,
        )
        self.page.wait_for_function(
            "index => window.jupyterapp.shell.currentWidget.content.widgets[index].model.executionCount",
            arg=index,
            timeout=OPENING,
        )
        outputs = self.page.evaluate(
            "index => window.jupyterapp.shell.currentWidget.content.widgets[index].model.outputs.toJSON()", index
        )
        errors = [output for output in outputs if output["output_type"] in {"error", "stream"}]
        assert not [output for output in errors if output.get("name") != "stdout"], errors
        return index

    def cockpit(self, index):
        """Return the cockpit below a cell, which Lab draws only if it is in view."""
        self.page.evaluate("index => window.jupyterapp.shell.currentWidget.content.scrollToItem(index)", index)
        cell = self.page.locator(f'.jp-Cell[data-windowed-list-index="{index}"]')
        root = cell.locator(".agentnb-cockpit")
        try:
            root.or_(cell.get_by_text(NOT_RESTORED)).first.wait_for(timeout=REPLY)
            if not root.count():
                self.page.reload()
                self._opened()
                root.wait_for(timeout=REPLY)
        except Exception as error:  # Playwright, which has a class for it, may not be installed
            error.add_note(
                f"the cell shows {cell.all_inner_texts()}; the console's last lines are {self.console[-20:]}"
            )
            raise
        return Cockpit(self.page, root)

    def close(self):
        self.page.evaluate("window.jupyterapp.shell.currentWidget.context.sessionContext.shutdown()")
        self.page.close()


class Cockpit:
    """A cockpit on the screen: its buttons, and what can be seen on it."""

    def __init__(self, page, root):
        self.page, self.root = page, root

    def press(self, name):
        self.root.get_by_role("button", name=name, exact=True).click()

    def slide(self, place):
        slider = self.root.get_by_role("slider")
        slider.evaluate(
            "(slider, place) => { slider.value = place; for (const name of ['input', 'change'])"
            " slider.dispatchEvent(new Event(name, {bubbles: true})); }",
            place,
        )

    def shows(self, **wanted):
        """Wait until the screen shows this: current (a node), step (a number), status, or said (a part of the line)."""
        for name, value in wanted.items():
            self.page.wait_for_function(
                f"([root, name, value]) => ({SEEN})[name](root, value)",
                arg=[self.root.element_handle(), name, value],
                timeout=REPLY,
            )

    def value(self, key):
        """Return what stands on the board for a key, and how the last step marked it."""
        row = self.root.locator(f'tr[data-row="{key}"]')
        return row.locator(".agentnb-value").inner_text(), row.get_attribute("data-mark") or ""
