"""What must work right after `pip install agentnb-kit`, without extras, Graphviz and a network: python smoke.py"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import agentnb as nb


def main() -> None:
    assert shutil.which("dot") is None, "this is meant to run without Graphviz's dot"
    assert "site-packages" in str(nb.__file__), f"not the installed package: {nb.__file__}"
    for sample in nb.samples():
        missing = sample.dialect in {"langgraph", "burr"} and importlib.util.find_spec(sample.dialect) is None
        text = ""
        try:
            nb.samples(sample.name)
        except nb.ExecutionError as error:
            text = str(error)
        assert (f"agentnb-kit[{sample.dialect}]" in text) if missing else not text, text
    session = nb.Session(nb.samples("triage"), {"ticket": "My invoice is wrong"}, answers=["approve"], store="runs.db")
    session.step()
    session.back()
    session.run()
    assert session.status == "finished", session.status
    assert "<svg" in session.draw().svg
    assert len(session.trace.frames.steps) == session.position
    session.to_html("run.html")
    nb.Debugger(session)
    session.close()
    assert nb.open("runs.db").goto(1).position == 1
    if importlib.util.find_spec("greenlet") is None:
        try:
            nb.Session(nb.samples("triage"), {"ticket": "x"}).step_into()
        except nb.ExecutionError as error:
            assert "agentnb-kit[stepinto]" in str(error), error  # noqa: PT017  (no pytest here)
    for words in (["--versions"], ["runs", "runs.db"], ["trace", "runs.db"], ["export", "runs.db", "-o", "again.html"]):
        subprocess.run([str(Path(sys.executable).with_name("agentnb")), *words], check=True, stdout=subprocess.DEVNULL)
    without = subprocess.run([str(Path(sys.executable).with_name("agentnb")), "lab"], capture_output=True, text=True,
                             check=False)  # fmt: skip
    assert importlib.util.find_spec("jupyterlab") or "agentnb-kit[lab]" in without.stderr, without.stderr
    print(f"OK: agentnb {nb.__version__} on Python {sys.version.split()[0]}")  # noqa: T201  (the outcome)


if __name__ == "__main__":
    import os

    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        main()
        os.chdir("/")
