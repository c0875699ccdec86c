"""With `--json` a command prints one document on stdout, whatever happens."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from agentnb import cli
from agentnb.cli import run, script
from agentnb.cli.output import print_json
from tests.cli.command_files import RECIPE, called, run_for_json

pytestmark = pytest.mark.usefixtures("there")
RUN = ("run", "refunds.yaml", "-i", "ticket=a", "--script", "script.yaml")


def test_a_run_that_waits(capsys):
    Path("script.yaml").write_text("agents: {reader: {topic: refund}}\n")
    code, document, codes = run_for_json(capsys, *RUN)
    assert (code, document["status"], document["current"], codes) == (4, "waiting", "ask", ["U905"])


def test_a_run_that_fails(capsys, monkeypatch):
    monkeypatch.setattr(script, "_make_fixed", lambda agent: (agent[0], lambda **_: 1 / 0))
    code, document, codes = run_for_json(capsys, *RUN)
    assert (code, document["status"], codes) == (1, "failed", ["X100"])
    assert document["error"].startswith("X100")


def test_a_run_that_spends_its_budget(capsys):
    assert run_for_json(capsys, *RUN, "--max-steps", "2")[::2] == (3, [])


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (("run", "required.yaml"), "R205"),
        (("run", "absent.yaml"), "R101"),
        ((*RUN, "--trace", "no/such/out.json"), "U902"),
        (("draw", "absent.yaml", "-o", "out.svg"), "R101"),
        (("draw", "refunds.yaml", "-o", "out.xyz"), "U201"),
        (("draw", "refunds.yaml", "-o", "no/such/out.svg"), "U902"),
        (("lab", "refunds.yaml"), "U902"),
    ],
)
def test_a_command_that_fails(capsys, words, wanted):
    inputs = "{properties: {ticket: {type: string}}, required: [ticket]}"
    Path("required.yaml").write_text(RECIPE.replace("{ticket: {type: string}}", inputs))
    code, _, codes = run_for_json(capsys, *words)
    assert (code, codes) == (1, [wanted])


def test_invalid_arguments_are_errors(capsys):
    with pytest.raises(SystemExit) as left:
        cli.main(["run", "refunds.yaml", "--json", "--input", "ticket"])
    printed = capsys.readouterr()
    (problem,) = json.loads(printed.out)["problems"]
    assert (left.value.code, printed.err, problem["code"]) == (2, "", "U906")
    assert "KEY=VALUE" in problem["what"]


def interrupted(*_):
    raise KeyboardInterrupt


def test_an_interrupt(capsys, monkeypatch):
    monkeypatch.setattr(run, "_make_result", interrupted)
    code, _, codes = run_for_json(capsys, *RUN)
    assert (code, codes) == (130, ["U907"])


def test_an_interrupt_prints_no_traceback(capsys, monkeypatch):
    monkeypatch.setattr(run, "_print_end", interrupted)
    code, _, err = called(capsys, *RUN)
    assert (code, err) == (130, "")


def test_the_output_of_a_node_is_not_part_of_the_json(capsys, monkeypatch):
    monkeypatch.setattr(
        script, "_make_fixed", lambda agent: (agent[0], lambda **_: sys.stdout.write("noise") and {"topic": "other"})
    )
    code, out, err = called(capsys, *RUN, "--json")
    assert (code, json.loads(out)["status"]) == (0, "finished")
    assert "noise" in err


def test_any_value_on_the_board_is_printed_as_json(capsys, monkeypatch):
    unusual = {"topic": "other", "half": "\ud800", "\udfff": 1, "nan": float("nan"), "far": [float("-inf")],
           "long": 10 ** 5000, "set": {1}, 3: b"bytes"}  # fmt: skip
    monkeypatch.setattr(script, "_make_fixed", lambda agent: (agent[0], lambda **_: {"topic": "other", "odd": unusual}))
    code, out, err = called(capsys, *RUN, "--json")
    assert (code, err) == (0, "")
    board = json.loads(out, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))["board"]
    actual = board["odd"]
    assert (actual["half"], actual["\\udfff"], actual["nan"], actual["far"]) == ("\\ud800", 1, None, ["-inf"])
    assert (int(actual["long"], 16), actual["set"]) == (10**5000, [1])


def test_an_ascii_terminal_gets_json_too(monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii", write_through=True)
    monkeypatch.setattr(sys, "stdout", stream)
    print_json({"ö": "\U0001f600"})
    assert json.loads(stream.buffer.getvalue()) == {"ö": "\U0001f600"}


@pytest.mark.parametrize(
    ("encoding", "shown"), [("ascii", "b\\xe4d\\udcff"), ("cp1252", "b\xe4d\\udcff"), ("utf-8", "b\xe4d\\udcff")]
)
def test_text_that_a_terminal_cannot_encode_is_escaped(encoding, shown, monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding, write_through=True)
    monkeypatch.setattr(sys, "stdout", stream)
    assert cli.main(["check", "b\xe4d\udcff.yaml"]) == 1
    assert f"{shown}.yaml: 1 error" in stream.buffer.getvalue().decode(encoding)
