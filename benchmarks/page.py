"""page: what an exported page costs: its bytes, how long an export takes per step, and how soon Chromium shows it.

Run it: `python benchmarks/page.py [--steps N] [--json] [--check]`. `--check` exits with 1 where a limit is broken.
Without Chromium, how long opening takes is left out.

The run has steps of two small nodes. An export is timed by the processor's time of this process; opening by the clock,
from navigation until the page shows the last step, the best of three.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parent.parent))

import networkx as nx
from clocks import seconds_of
from cockpit import BROWSERS, Row, line
from limits import verdict

import agentnb as nb

SHORT, FORKS = 1_000, 20
SHORT_BYTES, LONG_BYTES, FORK_BYTES = 1_000_000, 15_000_000, 20_000
EXPORT_MS, OPEN_SECONDS = 5.0, 2.0  # of a step; of the long page


def loop(steps: int) -> nb.Session:
    """Return a finished run of so many steps of two nodes, which take turns."""
    graph = nx.DiGraph(name="loop", entry="add")
    graph.add_node("add", function=lambda n: {"n": n + 1}, inputs={"n": "n"})
    graph.add_node("note", function=lambda n: {"note": f"now {n}"}, inputs={"n": "n"})
    graph.add_edge("add", "note")
    graph.add_edge("note", "add", when=f"n < {steps // 2}")
    session = nb.Session(nb.load(graph), {"n": 0}, budget={"max_steps": None})
    session.run()
    return session


def opened_in(browser: str, path: Path, steps: int) -> float:
    """Return the seconds until Chromium shows the last step of a page."""
    from tests.ui.pages import opened

    seconds = []
    with opened(browser) as (context, _):
        for _ in range(3):
            page = context.new_page()
            start = time.monotonic()
            page.goto(path.as_uri())
            page.wait_for_selector("html[data-ready]")
            seconds.append(time.monotonic() - start)
            assert page.locator(".agentnb-where").inner_text() == f"step {steps} of {steps}"
            page.close()
    return min(seconds)


def size_of(session: nb.Session) -> int:
    """Return the bytes of a session's page."""
    return len(str(session.to_html()).encode())


def all_rows(steps: int) -> Iterator[Row]:
    """Yield every row of the table, each as soon as it is measured."""
    short = loop(SHORT)
    size = size_of(short)
    yield Row(f"{SHORT:,} steps: bytes", size, "bytes", SHORT_BYTES)
    for number in range(FORKS):
        short.fork(at=SHORT - 10, name=f"fork {number}").run()
    yield Row(f"{SHORT:,} steps: bytes of a fork of 10 more", (size_of(short) - size) / FORKS, "bytes", FORK_BYTES)
    session = loop(steps)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "run.html"
        took = seconds_of(lambda: session.to_html(path))
        yield Row(f"{steps:,} steps: export of a step", took / steps * 1_000, "ms", EXPORT_MS)
        yield Row(f"{steps:,} steps: bytes", path.stat().st_size, "bytes", LONG_BYTES)
        browser = next(filter(None, map(shutil.which, BROWSERS)), None)
        if browser is not None:
            yield Row(f"{steps:,} steps: opened in Chromium", opened_in(browser, path, steps), "s", OPEN_SECONDS)


def main() -> int:
    """Measure, print the table, and return the exit code."""
    parser = argparse.ArgumentParser(description="what an exported page costs")
    parser.add_argument("--steps", type=int, default=100_000, help="the length of the long run")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--check", action="store_true", help="exit with 1 where a limit is broken")
    options = parser.parse_args()
    show: Callable[[str], None] = (lambda _: None) if options.json else print
    show("| what | value | drawn anew | limit | kept |\n|---|---|---|---|---|")
    rows = []
    for row in all_rows(options.steps):
        rows.append(row)
        show(line(row))
    if options.json:
        print(json.dumps([row._asdict() for row in rows], indent=2))
    return verdict([row.what for row in rows if not row.kept], check=options.check)


if __name__ == "__main__":
    sys.exit(main())
