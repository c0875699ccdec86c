"""A PostgreSQL server for tests: made in a temporary folder, started, stopped and started again, removed."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from itertools import count
from pathlib import Path
from urllib.parse import quote

USER, PASSWORD = "agentnb", "s3cr3t-4711/%"

# The server is the child of a small program that ends it when it is told so, or when this process is gone, however
# that came about; then nobody else is left to remove the folder.
WATCH = """
import json, shutil, signal, subprocess, sys
server = subprocess.Popen(sys.argv[3:], stdin=subprocess.DEVNULL, **json.loads(sys.argv[1]))
how = sys.stdin.read()
server.send_signal(signal.SIGINT if how == "stop" else signal.SIGQUIT)
try:
    server.wait(15)
except subprocess.TimeoutExpired:
    server.kill()
if not how:
    shutil.rmtree(sys.argv[2], ignore_errors=True)
"""


class Server:
    """A server on a free port of this machine, which asks for a password. `programs` is the folder of `initdb`."""

    def __init__(self, programs: Path) -> None:
        self.programs = programs
        self.folder = Path(tempfile.mkdtemp(prefix="agentnb-postgres-"))
        self.port = 0
        self._names = count(1)
        self._watch: subprocess.Popen[bytes] | None = None
        # PostgreSQL refuses to run as root.
        self._as = {"user": "postgres", "group": "postgres", "extra_groups": []} if os.geteuid() == 0 else {}
        if self._as:
            shutil.chown(self.folder, "postgres", "postgres")
        secret = self.folder / "password"
        secret.write_text(PASSWORD)
        secret.chmod(0o644)
        words = ["--auth=scram-sha-256", f"--pwfile={secret}", f"--username={USER}", "--encoding=UTF8", "--no-sync"]
        self._run([programs / "initdb", "-D", self.folder / "cluster", "--locale=C", *words])

    @property
    def url(self) -> str:
        return f"postgresql://{USER}:{quote(PASSWORD, safe='')}@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        """Start the server, on the port that it had before."""
        for _ in range(5):
            port = self.port or free_port()
            if self._start(port):
                self.port = port
                return
        raise RuntimeError(f"the server does not start:\n{self._log.read_text()}")

    def stop(self, *, at_once: bool = False) -> None:
        """Stop the server; at once is as if it had crashed."""
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.communicate(b"at once" if at_once else b"stop", timeout=60)

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def store(self) -> str:
        """Return the URL of a store that nobody has used yet: a schema of its own."""
        import psycopg

        name = f"store_{next(self._names)}"
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(f'CREATE SCHEMA "{name}"')
        return f"{self.url}?options=-csearch_path%3D{name}"

    @property
    def _log(self) -> Path:
        return self.folder / "log"

    def _start(self, port: int) -> bool:
        settings = {
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "port": port,
            "fsync": "off",  # a test kills programs, never the machine
            "shared_buffers": "16MB",
            "max_connections": 60,
        }
        words = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        server = [self.programs / "postgres", "-D", self.folder / "cluster", *words]
        command = [sys.executable, "-c", WATCH, json.dumps(self._as), self.folder, *server]
        with self._log.open("ab") as log:
            self._watch = subprocess.Popen(
                [*map(str, command)], stdin=subprocess.PIPE, stdout=log, stderr=log, cwd=self.folder
            )
        until = time.monotonic() + 60
        while time.monotonic() < until:
            if self._answers(port):
                return True
            if self._watch.poll() is not None or self._taken():
                break
            time.sleep(0.02)
        self.stop(at_once=True)
        return False

    def _answers(self, port: int) -> bool:
        import psycopg

        try:
            psycopg.connect(
                host="127.0.0.1", port=port, user=USER, password=PASSWORD, dbname="postgres", connect_timeout=5
            ).close()
        except psycopg.OperationalError:
            return False
        return True

    def _taken(self) -> bool:
        return b"could not create any TCP/IP sockets" in self._log.read_bytes()

    def _run(self, command: list[object]) -> None:
        done = subprocess.run(
            [*map(str, command)], capture_output=True, text=True, check=False, cwd=self.folder, **self._as
        )
        if done.returncode:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise RuntimeError(f"{command[0]} failed:\n{done.stdout}{done.stderr}")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
