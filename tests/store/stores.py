"""What the tests of stores share: rows, entries, the three kinds of log, and writers in other processes."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self
from unittest.mock import patch

import psutil
import pytest

from agentnb.engine.persistence.event_log import Entry, EventLog, RunRow
from agentnb.errors import StoreError
from agentnb.store import MemoryLog, SqlLog

ROOT = Path(__file__).parent.parent.parent
CREATED = datetime(2026, 1, 2, 3, 4, 5, 678901, UTC)


def row(run_id: str = "one", **given: Any) -> RunRow:
    defaults = {"name": "a run", "recipe": "name: triage", "dialect": "coreason", "fingerprint": "f00d", "head": "{}"}
    return RunRow(run_id, **(defaults | {"created": CREATED} | given))


def some(first: int, last: int, body: str = '{"n":%d}') -> list[Entry]:
    return [Entry(seq, seq * 2, body % seq if "%" in body else body) for seq in range(first, last + 1)]


def refused(code: str, act: Callable[..., Any], *given: Any, **named: Any) -> str:
    """Return what is said when an act is refused with this code."""
    with pytest.raises(StoreError) as caught:
        act(*given, **named)
    assert [problem.code for problem in caught.value.problems] == [code], str(caught.value)
    return str(caught.value)


@dataclass
class Store:
    """A store of one kind; `log` is a log of it, `another` makes a second one beside it."""

    kind: str
    where: str
    logs: list[EventLog] = field(default_factory=list)

    @property
    def log(self) -> EventLog:
        return self.logs[0] if self.logs else self.another()

    def another(self) -> EventLog:
        log = MemoryLog() if self.kind == "memory" else SqlLog(self.where)
        self.logs.append(log)
        return log

    def close(self) -> None:
        while self.logs:
            self.logs.pop().close()


class Elsewhere:
    """A program in another process that has the store's URL; it says a line and waits for one in turn.

    `within` is the command that runs it, as in a container.
    """

    def __init__(self, store: str, program: str, *words: str, within: Sequence[str] = ()) -> None:
        command = [*within, sys.executable, "-c", f"{BEGIN}{program}", store, *words]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        self.process = subprocess.Popen(
            command, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}, text=True, **pipes
        )

    def hears(self) -> str:
        """Return the next line that it says; what it complains of where it says nothing."""
        line = self.process.stdout.readline().strip()
        assert line, self.process.communicate()[1]
        return line

    def told(self, line: str = "go") -> None:
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def ends(self) -> None:
        output, complained = self.process.communicate(timeout=60)
        assert self.process.returncode == 0, output + complained

    def dies(self) -> None:
        """Kill it; it stays in the table of processes until it is asked for."""
        process = psutil.Process(self.process.pid)
        self.process.kill()
        while process.status() != psutil.STATUS_ZOMBIE:
            pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.process.kill()
        self.process.communicate()


BEGIN = """
import sys
from agentnb.engine.persistence.event_log import Entry
from agentnb.store import SqlLog
from tests.store.stores import row, some
log = SqlLog(sys.argv[1])
def say(line): print(line, flush=True)
def wait(): sys.stdin.readline()
"""

HOLDS = """
log.create(row("theirs"), some(1, 3))
say("holds")
wait()
log.release("theirs")
say("released")
wait()
"""


@contextmanager
def claimed_elsewhere(where: str, run_id: str) -> Iterator[EventLog]:
    """Hold a run as a session on another host does; the value is the log of that session."""
    log = SqlLog(where)
    with patch("socket.gethostname", return_value="another-host"):
        log.claim(run_id)
    try:
        yield log
    finally:
        log.close()


def bodies(entries: Sequence[Entry]) -> list[str]:
    return [entry.body for entry in entries]


@contextmanager
def changed(path, statement):
    """Hold a second connection to a file that has done something, outside a store."""
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.execute(statement).fetchall()
        yield connection
    finally:
        connection.close()


def everything(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def make_damaged_schema(path: Path, name: bytes) -> None:
    """Create a database whose only table has a damaged definition; SQLite quotes the table's name in its error."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("CREATE TABLE things (id INTEGER)")
        connection.execute("PRAGMA writable_schema=1")
        connection.execute("UPDATE sqlite_master SET sql = 'CREATE', name = CAST(? AS TEXT)", [name])
