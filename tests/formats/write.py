"""Writes one file of each format of this version, which later versions must open: python -m tests.formats.write

The files of a release are kept in the folder of its version and never written again.
"""

from __future__ import annotations

import socket
import sqlite3
import tomllib
from datetime import UTC, datetime
from pathlib import Path

import networkx as nx

import agentnb as nb
from agentnb.recordings.golden_files import to_json_text

FOLDER = Path(__file__).parent
BEGAN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def recipe() -> nb.Recipe:
    """Return a recipe with a function, a tool, a loop, a condition and a question to a person."""
    graph = nx.DiGraph(name="orders", entry="price")
    graph.add_node("price", kind="tool", function="catalog", inputs={"item": "item"})
    graph.add_node(
        "add", function=lambda total, cost: {"total": total + cost}, inputs={"total": "total", "cost": "cost"}
    )
    graph.add_node("approve", kind="human", prompt="Pay {{ total }}?", output="paid")
    graph.add_edge("price", "add")
    graph.add_edge("add", "add", when="total < 30")
    graph.add_edge("add", "approve")
    return nb.load(graph)


def session(**options: object) -> nb.Session:
    """Return a finished run: five steps, with an edit and an answer."""
    run = nb.Session(
        recipe(), {"item": "tea", "total": 0, "at": BEGAN}, tools={"catalog": lambda item: {"cost": 10}},
        clock=nb.FrozenClock(BEGAN), run_id="orders-1", **options,
    )  # fmt: skip
    run.breakpoints.add("add", when="total > 100")
    run.step()
    run.edit({"item": "coffee"})
    run.run()
    run.answer("yes")
    return run


def version_here() -> str:
    """Return the version of the clone, which may not be installed anew."""
    return str(
        tomllib.loads((FOLDER.parent.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    )


def main() -> None:
    """Write the files of the installed version."""
    folder = FOLDER / ".".join(version_here().split(".")[:2])
    folder.mkdir()
    run = session(store=folder / "run.db")
    run.trace.to_json(folder / "trace.json")
    (folder / "golden.jsonl").write_text(to_json_text(run.trace), encoding="utf-8")
    run.to_html(folder / "page.html")
    run.trace.to_parquet(folder / "run.parquet")
    run.breakpoints.save(folder / "breakpoints.json")
    run.close()
    with sqlite3.connect(folder / "run.db") as connection:
        connection.execute("VACUUM")
    connection.close()
    assert socket.gethostname().encode() not in (folder / "run.db").read_bytes(), "the file names this computer"


if __name__ == "__main__":
    main()
