"""`agentnb lab`, up to the JupyterLab that it becomes."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request

import pytest

from agentnb import cli
from agentnb.cli import lab
from tests.cli.command_files import called


def test_lab_without_jupyterlab_says_what_to_install(there, capsys, monkeypatch):
    monkeypatch.setattr(lab.importlib.util, "find_spec", lambda name: None)
    code, _, err = called(capsys, "lab")
    assert code == 1
    assert 'pip install "agentnb-kit[lab]"' in err


@pytest.mark.parametrize(
    ("tool", "begin"), [("uv", ["/bin/uv", "tool", "run", "--from"]), ("pipx", ["/bin/pipx", "run", "--spec"])]
)
def test_lab_in_a_temporary_environment_runs_again_with_jupyterlab(there, capsys, monkeypatch, tool, begin):
    """`uvx --from agentnb-kit agentnb lab` and the same with pipx need no word about the extra."""
    prefix = there / "cache" / "archive" / "environment"
    prefix.mkdir(parents=True)
    (there / "cache" / "CACHEDIR.TAG").write_text("")
    if tool == "pipx":
        (prefix / "pipx_metadata.json").write_text("{}")
    became = []
    monkeypatch.setattr(lab.sys, "prefix", str(prefix))
    monkeypatch.setattr(lab.shutil, "which", lambda name: f"/bin/{name}")
    monkeypatch.setattr(lab.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(lab, "_become", lambda command, env: became.append((command, env)) or 0)
    monkeypatch.setenv("UV", "/bin/uv")
    assert cli.main(["lab", "mine", "--no-browser", "--", "--port", "9999"]) == 0
    ((words, env),) = became
    assert words[: len(begin)] == begin
    assert words[len(begin)].startswith("agentnb-kit[lab]")
    assert words[len(begin) + 1 :] == ["agentnb", "lab", "mine", "--no-browser", "--", "--port", "9999"]
    monkeypatch.setenv(*next(item for item in env.items() if item[0] not in os.environ))
    assert called(capsys, "lab")[0] == 1  # it does not run again and again


@pytest.fixture
def command(monkeypatch):
    """Return what `agentnb lab WORDS` would become, and with which surroundings."""

    def of(*words):
        became = {}
        monkeypatch.setattr(lab, "_become", lambda command, env: became.update(command=command, env=env) or 0)
        assert cli.main(["lab", *words]) == 0
        return became

    return of


def test_lab_opens_the_tour_and_works_on_copies_of_the_notebooks(there, command):
    words = command()["command"]
    assert f"--ServerApp.root_dir={there / 'agentnb-notebooks'}" in words
    assert "--LabApp.default_url=/lab/tree/00_tour.ipynb" in words


def test_lab_copies_what_is_missing_and_overwrites_nothing(there, command):
    folder = there / "mine"
    command("mine")
    tour = folder / lab.TOUR
    assert tour.read_bytes() == (lab.PACKAGE.parent / "notebooks" / lab.TOUR).read_bytes()
    tour.write_text("changed")
    assert f"--ServerApp.root_dir={folder}" in command("mine")["command"]
    assert tour.read_text() == "changed"
    command("mine", "--reset")
    assert tour.read_text() != "changed"


def test_lab_outside_of_a_clone_creates_its_own_folder(there, command, monkeypatch):
    package = there / "site" / "agentnb"
    (package / "notebooks").mkdir(parents=True)
    (package / "notebooks" / lab.TOUR).write_text("{}")
    monkeypatch.setattr(lab, "PACKAGE", package)
    command()
    assert (there / "agentnb-notebooks" / lab.TOUR).read_text() == "{}"


def test_lab_passes_options_on_to_jupyterlab(there, command, monkeypatch):
    monkeypatch.setenv("DISPLAY", ":0")
    assert "--no-browser" not in command()["command"]
    assert "--no-browser" in command("--no-browser")["command"]
    assert command("--", "--port", "9999")["command"][-2:] == ["--port", "9999"]


@pytest.mark.skipif(sys.platform in {"darwin", "win32"}, reason="a screen is always there")
def test_lab_opens_no_browser_without_a_screen(there, command, monkeypatch):
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    assert "--no-browser" in command()["command"]


def test_lab_keeps_the_users_own_jupyter_settings(there, command, monkeypatch):
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", "theirs")
    assert command()["env"]["JUPYTER_CONFIG_PATH"].split(os.pathsep)[-1] == "theirs"


def test_lab_rejects_a_path_that_is_a_file(there, capsys):
    code, _, err = called(capsys, "lab", "refunds.yaml")
    assert code == 1
    assert "refunds.yaml" in err


@pytest.mark.starts_programs
def test_lab_serves_the_tour_and_fetches_no_news(there):
    """The real thing: JupyterLab comes up, has the notebook, and ends when it is told to."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = ["lab", "mine", "--json", "--no-browser", "--", f"--port={port}", "--IdentityProvider.token=t"]
    env = {**os.environ, "JUPYTER_RUNTIME_DIR": str(there / "runtime"), "JUPYTER_CONFIG_DIR": str(there / "config")}
    with subprocess.Popen(
        [sys.executable, "-m", "agentnb", *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env
    ) as served:
        try:
            address = f"http://127.0.0.1:{port}"
            assert fetched(f"{address}/api/contents/{lab.TOUR}?token=t&content=0")["type"] == "notebook"
            settings = fetched(f"{address}/lab/api/settings/@jupyterlab/apputils-extension:notification?token=t")
            assert settings["schema"]["properties"]["fetchNews"]["default"] == "false"
        finally:
            served.send_signal(signal.SIGTERM)
        assert json.loads(served.stdout.read())["notebook"] == lab.TOUR
        assert served.wait(30) is not None


def fetched(address, within=60):
    """Return the JSON at an address, once somebody serves it."""
    end = time.monotonic() + within
    while True:
        try:
            with urllib.request.urlopen(address, timeout=5) as answer:
                return json.load(answer)
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.2)
