"""test_cli: the command `agentnb`, called as a person and as a program would."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from importlib.metadata import version
from pathlib import Path

import pytest

from agentnb import cli
from agentnb.trace.trace import SimulationTrace

RECIPE = """\
apiVersion: coreason.ai/v2
kind: Recipe
metadata: {name: refunds}
interface: {inputs: {ticket: {type: string}}}
topology:
  entry_point: read
  nodes:
    - {id: read, type: agent, agent_ref: reader, inputs_map: {text: ticket}}
    - {id: sort, type: router, input_key: topic, routes: {refund: ask}, default_route: close}
    - {id: ask, type: human, prompt: Refund it?}
    - {id: close, type: agent, agent_ref: closer, inputs_map: {ticket: ticket}}
  edges:
    - {source: read, target: sort}
    - {source: ask, target: close}
"""
SCRIPT = """\
agents:
  reader: {topic: refund}
  closer: {closed: true}
answers: {ask: [yes please]}
"""


@pytest.fixture
def there(tmp_path, monkeypatch):
    """A folder with a recipe, a broken one, one that never ends, and a script; it is the current folder."""
    monkeypatch.chdir(tmp_path)
    Path("refunds.yaml").write_text(RECIPE)
    Path("broken.yaml").write_text(RECIPE.replace("target: sort", "target: srot"))
    Path("endless.yaml").write_text(RECIPE + "    - {source: close, target: read}\n")
    Path("script.yaml").write_text(SCRIPT)
    return tmp_path


def called(capsys, *words):
    """Return what a command returned, printed and complained."""
    code = cli.main(words)
    printed = capsys.readouterr()
    return code, printed.out, printed.err


# ---------------------------------------------------------------------------------------------------------------- check


def test_check_says_that_a_good_recipe_is_good(there, capsys):
    code, out, _ = called(capsys, "check", "refunds.yaml")
    assert (code, out) == (0, "refunds.yaml: no problems\n")


def test_check_prints_the_problems_of_every_file(there, capsys):
    code, out, _ = called(capsys, "check", "broken.yaml", "refunds.yaml", "absent.yaml")
    assert code == 1
    assert "'srot'" in out
    assert "broken.yaml:13:" in out
    assert "did you mean 'sort'?" in out
    assert "refunds.yaml: no problems" in out
    assert "absent.yaml: 1 error" in out


def test_check_as_json(there, capsys):
    code, out, _ = called(capsys, "check", "--json", "broken.yaml", "refunds.yaml")
    told = json.loads(out)
    assert (code, told["ok"], told["files"]["refunds.yaml"]) == (1, False, [])
    assert {"code", "what", "where", "why", "do", "severity"} == set(told["files"]["broken.yaml"][0])


# ------------------------------------------------------------------------------------------------------------------ run


def test_run_prints_a_line_a_step_and_the_board(there, capsys):
    code, out, _ = called(capsys, "run", "refunds.yaml", "--input", "ticket=I want my money", "--script", "script.yaml")
    assert code == 0
    steps, _, end = out.partition("\n\n")
    assert [line.split()[1] for line in steps.splitlines()] == ["read", "sort", "ask", "close"]
    assert "topic = 'refund'" in steps
    assert "finished after 4 steps" in end
    assert "'I want my money'" in end
    assert "closed" in end


def test_run_as_json_is_one_object(there, capsys):
    code, out, err = called(capsys, "run", "refunds.yaml", "-i", "ticket=a", "--script", "script.yaml", "--json")
    told = json.loads(out)
    assert (code, err) == (0, "")
    assert (told["status"], told["steps"], told["error"], told["current"]) == ("finished", 4, None, None)
    assert told["problems"] == []
    assert told["board"]["topic"] == "refund"
    assert told["board"]["response"] == "yes please"


@pytest.mark.parametrize(
    ("word", "value"), [("n=3", 3), ("n=text", "text"), ('n="3"', "3"), ("n=[1, 2]", [1, 2]), ("n=", "")]
)
def test_an_input_is_json_where_it_is_json(there, capsys, word, value):
    _, out, _ = called(capsys, "run", "refunds.yaml", "-i", "ticket=a", "-i", word, "--script", "script.yaml", "--json")
    assert json.loads(out)["board"]["n"] == value


def test_an_input_that_is_declared_as_text_is_text(there, capsys):
    _, out, _ = called(capsys, "run", "refunds.yaml", "-i", "ticket=4711", "--script", "script.yaml", "--json")
    assert json.loads(out)["board"]["ticket"] == "4711"


def test_an_input_needs_a_value(there, capsys):
    with pytest.raises(SystemExit) as left:
        cli.main(["run", "refunds.yaml", "--input", "ticket"])
    assert left.value.code == 2
    assert "KEY=VALUE" in capsys.readouterr().err


def test_run_masks_secrets(there, capsys):
    words = ("run", "refunds.yaml", "-i", "ticket=a", "-i", "api_key=sk-123", "--script", "script.yaml")
    for more in ([], ["--json"]):
        _, out, _ = called(capsys, *words, *more)
        assert "api_key" in out
        assert "sk-123" not in out


def test_run_without_an_answer_waits_and_says_so(there, capsys):
    Path("script.yaml").write_text("agents: {reader: {topic: refund}}\n")
    code, out, err = called(capsys, "run", "refunds.yaml", "-i", "ticket=a", "--script", "script.yaml")
    assert code == 4
    assert "waiting after 2 steps" in out
    assert "'ask' waits for a person" in err
    assert "--script" in err


def test_run_stops_at_its_budget(there, capsys):
    code, out, _ = called(
        capsys, "run", "endless.yaml", "-i", "ticket=a", "--script", "script.yaml", "--max-steps", "2", "--json"
    )
    assert (code, json.loads(out)["status"], json.loads(out)["steps"]) == (3, "exhausted", 2)


def test_run_tells_what_failed(there, capsys):
    Path("script.yaml").write_text("agents: {reader: 7}\n")
    Path("refunds.yaml").write_text(RECIPE)
    code, out, _ = called(capsys, "run", "refunds.yaml", "-i", "ticket=a", "--script", "absent.yaml")
    assert code == 1
    assert out == ""


def test_run_refuses_a_broken_recipe_before_it_runs(there, capsys):
    code, out, err = called(capsys, "run", "broken.yaml", "-i", "ticket=a")
    assert (code, out) == (1, "")
    assert "'srot'" in err


def test_problems_as_json(there, capsys):
    code, out, err = called(capsys, "run", "broken.yaml", "--json")
    assert (code, err) == (1, "")
    assert json.loads(out)["problems"][0]["severity"] == "error"


def test_run_writes_the_trace(there, capsys):
    called(capsys, "run", "refunds.yaml", "-i", "ticket=a", "--script", "script.yaml", "--trace", "out.json")
    assert [step.node_id for step in SimulationTrace.read("out.json").steps] == ["read", "sort", "ask", "close"]


def test_a_script_names_its_wrong_keys_all_at_once(there, capsys):
    Path("script.yaml").write_text("answer: {ask: [a]}\nagnts: {}\n")
    code, _, err = called(capsys, "run", "refunds.yaml", "-i", "ticket=a", "--script", "script.yaml")
    assert code == 1
    assert "script.yaml:1:1" in err
    assert "did you mean 'answers'?" in err
    assert "did you mean 'agents'?" in err


def test_a_script_is_a_mapping(there, capsys):
    Path("script.yaml").write_text("- a\n- b\n")
    code, _, err = called(capsys, "run", "refunds.yaml", "-i", "ticket=a", "--script", "script.yaml")
    assert code == 1
    assert "U903" in err


def test_a_place_that_cannot_be_written_is_a_problem(there, capsys):
    words = ("run", "refunds.yaml", "-i", "ticket=a", "--script", "script.yaml", "--trace", "no/such/out.json")
    code, _, err = called(capsys, *words)
    assert code == 1
    assert "no/such/out.json" in err
    assert "Traceback" not in err


# ----------------------------------------------------------------------------------------------------------------- draw


@pytest.mark.parametrize(("file", "begins"), [("out.svg", "<"), ("out.dot", "digraph"), ("out.mmd", "flowchart")])
def test_draw_writes_what_the_suffix_says(there, capsys, file, begins):
    code, out, _ = called(capsys, "draw", "refunds.yaml", "-o", file)
    assert code == 0
    assert file in out
    assert Path(file).read_text().lstrip().startswith(begins)
    assert "close" in Path(file).read_text()


def test_draw_as_json(there, capsys):
    _, out, _ = called(capsys, "draw", "refunds.yaml", "-o", "out.dot", "--json")
    assert json.loads(out) == {"recipe": "refunds", "nodes": 4, "output": "out.dot"}


def test_draw_refuses_other_suffixes(there, capsys):
    code, _, err = called(capsys, "draw", "refunds.yaml", "-o", "out.xyz")
    assert code == 1
    assert ".xyz" in err


# ------------------------------------------------------------------------------------------------------------------ lab


def test_lab_without_jupyterlab_says_what_to_install(there, capsys, monkeypatch):
    monkeypatch.setattr(cli.importlib.util, "find_spec", lambda name: None)
    code, _, err = called(capsys, "lab")
    assert code == 1
    assert 'pip install "agentnb[lab]"' in err


@pytest.fixture
def command(monkeypatch):
    """Return what `agentnb lab WORDS` would become, and with which surroundings."""

    def of(*words):
        became = {}
        monkeypatch.setattr(cli, "_become", lambda command, env: became.update(command=command, env=env) or 0)
        assert cli.main(["lab", *words]) == 0
        return became

    return of


def test_lab_opens_the_notebooks_of_the_clone(command):
    clone = Path(cli.__file__).parent.parent / "notebooks"
    assert f"--ServerApp.root_dir={clone}" in command()["command"]


def test_lab_copies_what_is_missing_and_overwrites_nothing(there, command):
    folder = there / "mine"
    command("mine")
    quickstart = folder / cli.QUICKSTART
    assert quickstart.read_bytes() == (Path(cli.__file__).parent.parent / "notebooks" / cli.QUICKSTART).read_bytes()
    quickstart.write_text("changed")
    assert f"--ServerApp.root_dir={folder}" in command("mine")["command"]
    assert quickstart.read_text() == "changed"


def test_lab_outside_of_a_clone_makes_a_folder_of_its_own(there, command, monkeypatch):
    package = there / "site" / "agentnb"
    (package / "notebooks").mkdir(parents=True)
    (package / "notebooks" / cli.QUICKSTART).write_text("{}")
    monkeypatch.setattr(cli, "PACKAGE", package)
    command()
    assert (there / "agentnb-notebooks" / cli.QUICKSTART).read_text() == "{}"


def test_lab_passes_words_on(command, monkeypatch):
    monkeypatch.setenv("DISPLAY", ":0")
    assert "--no-browser" not in command()["command"]
    assert "--no-browser" in command("--no-browser")["command"]
    assert command("--", "--port", "9999")["command"][-2:] == ["--port", "9999"]


@pytest.mark.skipif(sys.platform in {"darwin", "win32"}, reason="a screen is always there")
def test_lab_opens_no_browser_where_there_is_no_screen(command, monkeypatch):
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    assert "--no-browser" in command()["command"]


def test_lab_keeps_the_users_own_jupyter_settings(command, monkeypatch):
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", "theirs")
    assert command()["env"]["JUPYTER_CONFIG_PATH"].split(os.pathsep)[-1] == "theirs"


def test_lab_in_a_place_that_is_a_file(there, capsys):
    code, _, err = called(capsys, "lab", "refunds.yaml")
    assert code == 1
    assert "refunds.yaml" in err


def test_lab_serves_the_quickstart_and_asks_for_no_news(there):
    """The real thing: JupyterLab comes up, has the notebook, and ends when it is told to."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = ["lab", "mine", "--json", "--no-browser", "--", f"--port={port}", "--IdentityProvider.token=t"]
    env = {**os.environ, "JUPYTER_RUNTIME_DIR": str(there / "runtime"), "JUPYTER_CONFIG_DIR": str(there / "config")}
    with subprocess.Popen(
        [sys.executable, "-m", "agentnb", *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env
    ) as lab:
        try:
            address = f"http://127.0.0.1:{port}"
            assert fetched(f"{address}/api/contents/{cli.QUICKSTART}?token=t&content=0")["type"] == "notebook"
            settings = fetched(f"{address}/lab/api/settings/@jupyterlab/apputils-extension:notification?token=t")
            assert settings["schema"]["properties"]["fetchNews"]["default"] == "false"
        finally:
            lab.send_signal(signal.SIGTERM)
        assert json.loads(lab.stdout.read())["notebook"] == cli.QUICKSTART
        assert lab.wait(30) is not None


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


# ---------------------------------------------------------------------------------------------------------- the command


def test_the_command_and_the_module_are_one():
    out = subprocess.run([sys.executable, "-m", "agentnb", "--version"], capture_output=True, text=True, check=True)
    assert out.stdout == f"agentnb {version('agentnb')}\n"


def test_help_names_the_commands(capsys):
    with pytest.raises(SystemExit) as left:
        cli.main(["--help"])
    assert left.value.code == 0
    told = capsys.readouterr().out
    assert all(name in told for name in ("lab", "check", "run", "draw"))


@pytest.mark.parametrize("name", ["lab", "check", "run", "draw"])
def test_every_command_has_json(name, capsys):
    with pytest.raises(SystemExit):
        cli.main([name, "--help"])
    assert "--json" in capsys.readouterr().out
