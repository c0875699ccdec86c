"""Who writes a run, and whether that program is still there."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from agentnb.secrets import hide
from agentnb.store import writer_identity
from agentnb.store.writer_identity import (
    LIVE,
    Writer,
    identify_writer,
    is_alive,
    is_elsewhere,
    make_overtaken_error,
    make_writer_error,
    read,
)


@pytest.fixture
def mine():
    LIVE.add("a token")
    yield identify_writer("a token")
    LIVE.discard("a token")


def test_the_repr_of_a_writer_names_its_place(mine):
    text = str(mine)
    for part in (mine.user, mine.host, f"process {os.getpid()}", mine.program, "since 20", " UTC"):
        assert part in text
    assert mine.token not in text


def test_a_writer_survives_its_row(mine):
    assert read(mine.to_text()) == mine


@pytest.mark.parametrize("text", [None, "", "{", "[]", "7", '{"pid":1}', '{"token":1,"later":2}'])
def test_an_invalid_claim_names_nobody(text):
    assert read(text) is None


def test_this_process_is_a_writer_while_its_log_is_open(mine):
    assert is_alive(mine)
    LIVE.discard("a token")
    assert not is_alive(mine)


@pytest.mark.parametrize("distance", [-1, 1])
def test_another_process_is_not_this_one(monkeypatch, distance):
    other = identify_writer("a token of its own")
    monkeypatch.setattr(os, "getpid", lambda: other.pid + distance)
    assert is_alive(other)


def test_another_process_is_a_writer_while_it_runs():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        began = writer_identity._read_start(process.pid)
        other = replace(identify_writer("x"), pid=process.pid, started=began)
        assert is_alive(other)
        assert not is_alive(replace(other, started=began - 60)), "another program had this number before"
        process.kill()
        while psutil.Process(process.pid).status() != psutil.STATUS_ZOMBIE:
            pass
        assert not is_alive(other)
    assert not is_alive(other)


@pytest.mark.parametrize(("difference", "alive"), [(-3, 0), (-2, 1), (-1, 1), (0, 1), (1, 1), (2, 1), (3, 0)])
def test_start_times_may_differ_by_two_seconds(mine, monkeypatch, difference, alive):
    monkeypatch.setattr(writer_identity, "_read_start", lambda pid: 1000.0)
    assert is_alive(replace(mine, started=1000.0 + difference)) == alive


def test_no_writer_is_not_alive():
    assert not is_alive(None)


@pytest.mark.parametrize(
    "other", [{"host": "elsewhere"}, {"process_table": "another boot or container"}], ids=["host", "process table"]
)
def test_a_process_elsewhere_cannot_be_checked_and_counts_as_alive(mine, monkeypatch, other):
    monkeypatch.setattr(writer_identity, "_read_own_process_table", lambda pid: "this one")
    here = replace(mine, process_table="this one")
    elsewhere = replace(here, **other)
    assert (is_elsewhere(elsewhere), is_elsewhere(here)) == (True, False)
    LIVE.discard("a token")
    assert (is_alive(elsewhere), is_alive(here)) == (True, False)
    problem = make_writer_error("one", elsewhere, "runs.db").problems[0]
    assert (problem.code, str(elsewhere) in problem.why, "take_over=True" in problem.do) == ("L411", True, True)


@pytest.mark.parametrize(("theirs", "ours"), [("", "known"), ("known", ""), ("", "")], ids=["theirs", "ours", "both"])
def test_an_unknown_process_table_is_taken_for_the_own_one(mine, monkeypatch, theirs, ours):
    monkeypatch.setattr(writer_identity, "_read_own_process_table", lambda pid: ours)
    assert not is_elsewhere(replace(mine, process_table=theirs))


def test_without_proc_the_process_table_is_unknown(monkeypatch):
    monkeypatch.setattr(writer_identity, "_PROC", Path("/no/such/folder"))
    writer_identity._read_own_process_table.cache_clear()
    try:
        assert identify_writer("x").process_table == ""
    finally:
        writer_identity._read_own_process_table.cache_clear()


def test_a_process_that_cannot_be_inspected_counts_as_alive(mine, monkeypatch):
    def may_not(pid):
        raise psutil.AccessDenied(pid)

    monkeypatch.setattr(psutil, "Process", may_not)
    assert is_alive(mine)


def test_without_psutil_only_this_process_is_alive(mine, monkeypatch):
    monkeypatch.setitem(sys.modules, "psutil", None)
    writer_identity._read_own_start.cache_clear()
    try:
        assert identify_writer("a token").started == 0.0
    finally:
        writer_identity._read_own_start.cache_clear()
    assert is_alive(mine)
    for distance in (-1, 1):
        assert not is_alive(replace(mine, pid=mine.pid + distance))


def test_setting_the_clock_has_no_effect(mine, monkeypatch):
    if sys.platform != "linux":
        pytest.skip("elsewhere the time when a process began is told in the clock's own time")
    earlier, born = psutil.boot_time(), psutil.Process.create_time
    monkeypatch.setattr(psutil, "boot_time", lambda: earlier + 5000)
    monkeypatch.setattr(psutil.Process, "create_time", lambda self: born(self) + 5000)
    assert is_alive(mine)


def test_a_user_without_a_name_has_a_number(monkeypatch):
    def unknown():
        raise KeyError("getpwuid(): uid not found: 4711")

    monkeypatch.setattr(writer_identity.getpass, "getuser", unknown)
    assert identify_writer("x").user == str(os.getuid())


def test_a_program_is_shown_without_its_arguments(monkeypatch):
    hide("s3cr3t-77")
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", None)
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)
    monkeypatch.setattr(sys, "argv", ["/somewhere/train.py", "--key=s3cr3t-77"])
    assert identify_writer("x").program == "train.py"
    monkeypatch.setattr(sys, "argv", ["/somewhere/s3cr3t-77.py"])
    assert identify_writer("x").program == "********.py"
    monkeypatch.setattr(sys, "argv", [""])
    assert identify_writer("x").program.startswith("python")
    monkeypatch.setenv("JPY_SESSION_NAME", "/somewhere/triage.ipynb")
    assert identify_writer("x").program == "triage.ipynb"


def test_a_claimed_run_is_reported_with_its_writer(mine):
    other = replace(mine, pid=4711, program="train.py")
    problem = make_writer_error("one", other, "runs.db").problems[0]
    assert (problem.code, problem.where) == ("L411", "runs.db")
    assert str(other) in problem.why
    assert "another program" in make_writer_error("one", None, "runs.db").problems[0].why
    assert "another log of this process" in make_writer_error("one", mine, "runs.db").problems[0].why
    assert "number 7" in make_overtaken_error("one", 7, 5, "runs.db").problems[0].why


def test_a_writer_is_equal_to_itself_only():
    assert Writer("a", "u", "h", 1, 1.0, "s", "p") != Writer("b", "u", "h", 1, 1.0, "s", "p")
