"""Writer identity and liveness: which process writes a run, as JSON text."""

from __future__ import annotations

import getpass
import json
import os
import socket
import sys
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Final

from agentnb.errors import Problem, StoreError
from agentnb.text import safe_str

LIVE: Final[set[str]] = set()  # tokens of the open logs of this process
_PROC: Final = Path("/proc")
_SLACK: Final = 2.0  # tolerance in seconds between two readings of a process's start time


@dataclass(frozen=True, slots=True)
class Writer:
    """The log that holds a run: `token` identifies it, the other fields describe where it runs.

    `process_table` identifies the table in which `pid` counts: the boot of the host, and its PID namespace. Containers
    that share a volume may have equal host names and process ids. It is empty if it is unknown.
    """

    token: str
    user: str
    host: str
    pid: int
    started: float
    since: str
    program: str
    process_table: str = ""

    def __str__(self) -> str:
        return f"{self.user} on {self.host}, process {self.pid} ({self.program}), since {self.since[:19]} UTC"

    def to_text(self) -> str:
        """Return the writer as JSON text."""
        return json.dumps(asdict(self), separators=(",", ":"))


def identify_writer(token: str) -> Writer:
    """Return the identity of this process as a writer."""
    since = datetime.now(UTC).isoformat(sep=" ")
    pid = os.getpid()
    return Writer(
        token, _get_user(), socket.gethostname(), pid, _read_own_start(pid), since, _find_program(),
        _read_own_process_table(pid),
    )  # fmt: skip


def read(text: str | None) -> Writer | None:
    """Return the writer named in a row; None if there is none, or it cannot be parsed."""
    try:
        return Writer(**json.loads(text)) if text else None
    except (TypeError, ValueError, RecursionError):  # RecursionError: the parser's depth limit
        return None


def is_alive(writer: Writer | None) -> bool:
    """Return True if a writer may still write: its process is running, or cannot be checked from here."""
    if writer is None:
        return False
    if is_elsewhere(writer):
        return True
    if writer.pid == os.getpid() and writer.token not in LIVE:
        return False
    return _is_running(writer.pid, writer.started)


def is_elsewhere(writer: Writer) -> bool:
    """Return True if it cannot be checked from here whether a writer's process is running.

    It is on another host, in another container, or from before a restart of this host.
    """
    tables = {writer.process_table, _read_own_process_table(os.getpid())} - {""}
    return writer.host != socket.gethostname() or len(tables) > 1


def make_writer_error(run_id: str, writer: Writer | None, where: str) -> StoreError:
    """L411: another process is writing this run, or has written to it since."""
    if writer is not None and is_elsewhere(writer):
        return StoreError(
            Problem(
                "L411",
                f"run {run_id!r} is claimed by a session elsewhere",
                where,
                f"a run has one writer at a time; currently {writer}. Whether that process is still running cannot be "
                "checked from here: it is on another host, in another container, or from before a restart of this host",
                "continue there, or close the session there and try again; if that process has ended, take the run "
                "over: nb.open(..., take_over=True), on the command line --take-over",
            )
        )
    owner = str(writer) if writer else "another program"
    if writer is not None and (writer.pid, writer.host) == (os.getpid(), socket.gethostname()):
        owner = f"another log of this process: {owner}"
    return StoreError(
        Problem(
            "L411",
            f"run {run_id!r} is being written by another session",
            where,
            f"a run has one writer at a time; currently {owner}",
            "continue there, or close the run there (or end that program) and try again, or save this session to "
            "another store: session.save('other.db')",
        )
    )


def make_overtaken_error(run_id: str, last: int, first: int, where: str) -> StoreError:
    """Return the error for a run to which another writer has written since this one did."""
    return StoreError(
        Problem(
            "L411",
            f"another session has written to run {run_id!r}",
            where,
            f"its last entry is number {last}, but the entries of this session begin at {first}",
            "reopen the run to continue from its current state, nb.open(...); or save this session to another store: "
            "session.save('other.db')",
        )
    )


def _get_user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # the user of a container may have no name
        return str(os.getuid()) if hasattr(os, "getuid") else "somebody"


def _find_program() -> str:
    """Return the name of the notebook or program, without its arguments, which may contain a secret."""
    notebook = Path(os.environ.get("JPY_SESSION_NAME", "")).name
    main: Any = sys.modules.get("__main__")
    spec = getattr(main, "__spec__", None)
    name = spec.name.removesuffix(".__main__") if spec else Path(sys.argv[0] if sys.argv else "").name
    return safe_str(notebook or name or Path(sys.executable).name or "python")


@cache
def _read_own_start(pid: int) -> float:
    """Return the start time of this process, which is `pid`."""
    return _read_start(pid)


@cache
def _read_own_process_table(pid: int) -> str:  # noqa: ARG001  (a forked process may have another one)
    """Return what identifies the process table of this process, which is `pid`; empty except on Linux."""
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {(_PROC / 'self/ns/pid').readlink()}"
    except OSError:
        return ""


def _read_start(pid: int) -> float:
    """Return the start time of a process, in seconds.

    On Linux since boot, independent of clock changes; elsewhere since 1970.
    """
    try:
        import psutil
    except ImportError:  # WebAssembly: there are no other processes
        return 0.0
    start = float(psutil.Process(pid).create_time())
    return start - float(psutil.boot_time()) if sys.platform == "linux" else start


def _is_running(pid: int, started: float) -> bool:
    try:
        import psutil
    except ImportError:
        return pid == os.getpid()
    try:
        # A killed process remains in the process table as a zombie until its parent waits for it.
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE and abs(_read_start(pid) - started) <= _SLACK
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:
        return True
