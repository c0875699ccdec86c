"""Stores that fail in the middle of a run, in each way that stores do, and are fixed again."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import networkx as nx

import agentnb as nb
from agentnb.session.reopen import reopen_run
from agentnb.store import SqlLog

ROUNDS = 6
SIZE = 20_000  # of what each round writes: more than a full disk has room for
BATCH = {"steps": 3, "ms": 600_000}


class Store:
    """A store that can be broken for a while; `code` is the problem that it has then."""

    code = ""

    def __init__(self, where: Any) -> None:
        self.log = SqlLog(where, seconds=0.02)

    @contextlib.contextmanager
    def broken(self) -> Iterator[None]:
        self.breaks()
        try:
            yield
        finally:
            self.fix()

    def breaks(self) -> None: ...

    def fix(self) -> None: ...


class Full(Store):
    """An SQLite file with no room for another page."""

    code = "L417"

    def breaks(self) -> None:
        self._pages("page_count", 0)

    def fix(self) -> None:
        self._pages("page_count", 1 << 20)

    def _pages(self, name: str, more: int) -> None:
        connection = self.log._link._connection
        (pages,) = connection.execute(f"PRAGMA {name}").fetchone()
        connection.execute(f"PRAGMA max_page_count={pages + more}").fetchall()


class Locked(Store):
    """An SQLite file that another program writes to."""

    code = "L418"

    def breaks(self) -> None:
        self._other = sqlite3.connect(self.log._link.database.path, isolation_level=None, check_same_thread=False)
        self._other.execute("BEGIN IMMEDIATE")

    def fix(self) -> None:
        self._other.close()


class ReadOnly(Store):
    """An SQLite file whose rights were taken away, opened anew."""

    code = "L419"

    def breaks(self) -> None:
        self._rights(0o400, 0o500)

    def fix(self) -> None:
        self._rights(0o600, 0o700)

    def _rights(self, file: int, folder: int) -> None:
        path = self.log._link.database.path
        self.log._link.drop()
        os.chmod(os.path.dirname(path), 0o700)  # noqa: PTH101, PTH120
        for name in (path, f"{path}-wal", f"{path}-shm"):
            with contextlib.suppress(FileNotFoundError):
                os.chmod(name, file)  # noqa: PTH101
        os.chmod(os.path.dirname(path), folder)  # noqa: PTH101, PTH120


class Gone(Store):
    """A PostgreSQL server that is stopped, and started again."""

    code = "L421"

    def __init__(self, server: Any) -> None:
        super().__init__(server.store())
        self._server = server

    def breaks(self) -> None:
        self._server.stop(at_once=True)

    def fix(self) -> None:
        self._server.start()


class Tools:
    """Tools that count their calls; `during` is done in the call of that name and number, after it has gone out."""

    def __init__(self) -> None:
        self.made: Counter[str] = Counter()
        self.during: dict[str, Callable[[], None]] = {}

    def ask(self, n: int, text: str = "") -> dict[str, Any]:
        return self._call("ask", n)

    def tell(self, n: int) -> dict[str, Any]:
        return self._call("tell", n)

    def _call(self, name: str, n: int) -> dict[str, Any]:
        call = f"{name} {n}"
        self.made[call] += 1
        self.during.pop(call, lambda: None)()
        return {name: f"{call} {'x' * SIZE}"}


def looping(tools: Tools, **attributes: Any) -> Any:
    """Return a loop of two tools and a function; `attributes` go to both tools."""
    graph = nx.DiGraph(name="trouble", entry="ask")
    graph.add_node("ask", kind="tool", function=tools.ask, inputs={"n": "n", "text": "text"}, **attributes)
    graph.add_node("add", function=lambda n: {"n": n + 1, "text": f"{n}" * SIZE}, inputs={"n": "n"})
    graph.add_node("tell", kind="tool", function=tools.tell, inputs={"n": "n"}, **attributes)
    graph.add_edge("ask", "add")
    graph.add_edge("add", "tell")
    graph.add_edge("tell", "ask", when=f"n < {ROUNDS}")
    return nb.load(graph)


def get_trace_document(session: Any) -> Any:
    """Return a session's trace, as it would be written, but for the tables: rows that nothing names stay untold."""
    trace = json.loads(session.trace.to_json())
    return [each["p"] for each in trace["slices"]], trace["outcome"]


def is_kept(session: Any) -> None:
    """Check that the store holds what the session knows: nothing less, and nothing twice."""
    log, run_id = session._parts.state.log, session.run_id
    # `open` would have the session keep what it has not
    reopened = reopen_run(log, log.run(run_id), session._parts.run.plan)
    assert get_trace_document(reopened) == get_trace_document(session)
    assert (reopened.position, dict(reopened.board)) == (session.position, dict(session.board))
    numbers = [entry.seq for entry in log.entries(run_id)]
    assert numbers == list(range(1, len(numbers) + 1))
