"""Check that `COMMAND lab` starts JupyterLab and serves the tour: python serve_lab.py COMMAND..."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request


def main(command: list[str]) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [*command, "lab", "--no-browser", "--", f"--port={port}", "--IdentityProvider.token=t"]
    address = f"http://127.0.0.1:{port}/api/contents/00_tour.ipynb?token=t&content=0"
    with tempfile.TemporaryDirectory() as folder:
        served = subprocess.Popen(words, cwd=folder, start_new_session=True)
        try:
            assert fetch(address, served)["type"] == "notebook"
        finally:
            if served.poll() is None:
                os.killpg(served.pid, signal.SIGTERM)  # its own group: uv and pipx wait for a child
            served.wait(60)
    print(f"OK: {' '.join(words[: len(command) + 1])}")  # noqa: T201  (the outcome)


def fetch(address: str, served: subprocess.Popen[bytes], seconds: float = 300) -> dict[str, str]:
    """Return the JSON at an address, once somebody serves it; installing JupyterLab takes its time."""
    end = time.monotonic() + seconds
    while True:
        try:
            with urllib.request.urlopen(address, timeout=5) as answer:
                return json.load(answer)
        except OSError:
            if served.poll() is not None or time.monotonic() > end:
                raise
            time.sleep(0.2)


if __name__ == "__main__":
    main(sys.argv[1:])
