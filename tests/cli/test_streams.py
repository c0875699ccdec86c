"""Streams that take no output: a closed pipe, a full device, none at all."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agentnb.cli import main
from agentnb.cli.arguments import make_parser

FULL = Path("/dev/full")
QUESTION = (
    '{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-03-26", '
    '"capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}}\n'
)
# The words of one call of each command; the files are made by `folder`.
COMMANDS = {
    "check": ["check", "rag"],
    "run": ["run", "rag", "--store", "new.db"],
    "draw": ["draw", "rag", "-o", "rag.mmd"],
    "runs": ["runs", "runs.db"],
    "trace": ["trace", "trace.json"],
    "diff": ["diff", "trace.json", "trace.json"],
    "export": ["export", "runs.db", "-o", "rag.html"],
    "resume": ["resume", "runs.db", "rag"],
    "answer": ["answer", "waiting.db", "triage", "yes"],
    "fork": ["fork", "runs.db", "rag", "--at", "1"],
    "replay": ["replay", "rag", "rag.jsonl"],
}
needs_full = pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full here")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    main(["run", "rag", "--store", "runs.db", "--trace", "trace.json"])
    main(["run", "triage", "--store", "waiting.db"])
    main(["export", "runs.db", "-o", "rag.jsonl"])
    return tmp_path


def call(words, monkeypatch, **streams):
    """Run a command with other streams, and return its exit code."""
    with monkeypatch.context() as patch:
        for name, stream in streams.items():
            patch.setattr(sys, name, stream)
        try:
            return main(words)
        except SystemExit as end:
            return end.code


def test_every_command_is_covered():
    commands = next(action for action in make_parser()._actions if action.dest == "command").choices
    assert set(commands) == {*COMMANDS, "mcp", "lab"}  # lab runs until it is stopped; its server prints to stderr


@needs_full
@pytest.mark.parametrize("words", [*COMMANDS.values(), ["--help"], ["--versions"], ["run", "rag", "--json"]], ids=str)
def test_a_full_device_is_a_problem(folder, monkeypatch, capsys, words):
    with FULL.open("w") as full:
        code = call(words, monkeypatch, stdout=full)
    output = capsys.readouterr().err
    assert code in {1, 4}
    assert "U910: the output cannot be written: No space left on device" in output
    if "--store" in words:  # the run is complete all the same
        assert main(["runs", "new.db"]) == 0
        assert "finished" in capsys.readouterr().out


@pytest.mark.parametrize("words", [*COMMANDS.values(), ["check", "no_such_file"], ["run", "no_such_file"]], ids=str)
def test_a_closed_pipe_ends_quietly(folder, monkeypatch, capsys, words):
    expected = main(words)
    capsys.readouterr()
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w") as out:  # noqa: PTH123  (a file descriptor)
        assert call(words, monkeypatch, stdout=out) in {expected, 0}
    assert "roken" not in capsys.readouterr().err


@pytest.mark.parametrize("words", [["check", "rag"], ["run", "rag", "--json"], ["--help"]], ids=str)
def test_a_process_without_standard_output_runs(folder, monkeypatch, capsys, words):
    capsys.readouterr()
    assert call(words, monkeypatch, stdout=None) == 0
    assert capsys.readouterr().err == ""


@needs_full
def test_messages_that_cannot_be_written_change_nothing(folder, monkeypatch):
    with FULL.open("w") as full:
        assert call(["run", "no_such_file"], monkeypatch, stderr=full) == 1


@needs_full
@pytest.mark.starts_programs
def test_the_mcp_server_reports_that_it_cannot_write_answers(tmp_path):
    pytest.importorskip("mcp", reason="the server needs the MCP SDK")
    with FULL.open("w") as full:
        done = subprocess.run([sys.executable, "-m", "agentnb", "mcp"], check=False, text=True, cwd=tmp_path,
                              timeout=120, input=QUESTION, stdout=full, stderr=subprocess.PIPE)  # fmt: skip
    assert done.returncode == 1
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr
