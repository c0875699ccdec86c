"""laws: how the cost of an operation grows, measured at several sizes; and the plot of docs/performance.md.

Run it: `python benchmarks/laws.py --json laws.json`, then `python benchmarks/laws.py --plot laws.json -o laws.svg`. The
plot needs matplotlib (`pip install agentnb-kit[bench]`). A point is the processor's time of this process per unit (a
step, an event, a run ...), the median of three measurements.
"""

from __future__ import annotations

import argparse
import json
import platform
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent.parent))

import cockpit
import networkx as nx
import reactive
from clocks import seconds_of

import agentnb as nb
from agentnb.dialects import activegraph
from agentnb.engine.persistence.event_log import Entry, RunRow, seal
from agentnb.store import open_log
from agentnb.store.tables import SAID
from agentnb.trace import SimulationTrace
from agentnb.ui.token_streams import Streams
from agentnb.world.llm.base import LLMRequest, LLMResponse, ToolCall

RUNS = 3
STEPS = (1_000, 10_000, 100_000, 1_000_000)
PIECES = (1_000, 10_000, 100_000)
ROUNDS = (25, 50, 100, 200, 400)
EVENTS = (1_000, 10_000, 100_000)
RUNS_OF_A_STORE = (1_000, 10_000, 100_000)


class Point(NamedTuple):
    """One measurement: the operation, the unit of `size`, how many there were, and the seconds of one unit."""

    what: str
    unit: str
    size: int
    seconds: float


def timed(work: Callable[[], Any], units: int, runs: int = RUNS) -> float:
    """Return the median of the processor's seconds per unit."""
    return median(seconds_of(work) for _ in range(runs)) / units


def long_runs(folder: Path) -> Iterator[Point]:
    """Yield what a run of so many steps costs to make, to move in, to write, to read and to look at."""
    for size in STEPS:
        session = cockpit.ring(2)
        yield Point("a step is made", "steps", size, seconds_of(lambda s=session, n=size: s.run(until=n)) / size)
        places = [size * part // 11 for part in range(1, 11)]
        yield Point("goto", "steps", size, timed(lambda s=session, at=places: [*map(s.goto, at)], len(places)))
        session.goto(size)
        trace, file = session.trace, folder / f"{size}.json"
        yield Point("trace.to_json", "steps", size, timed(lambda t=trace, f=file: t.to_json(f), size))
        yield Point("SimulationTrace.read", "steps", size, timed(lambda f=file: SimulationTrace.read(f), size))

        def look(trace: Any = trace) -> None:
            for step in trace.steps:
                _ = step.inputs, step.outputs

        yield Point("inputs and outputs of all steps", "steps", size, timed(look, size))
        watched = cockpit.Watched(session)
        yield Point(
            "a step back in the cockpit", "steps", size, timed(lambda s=session: [s.back() for _ in range(10)], 10)
        )
        watched.close()


def pictures(_folder: Path) -> Iterator[Point]:
    """Yield what the kernel needs to show one step of a recipe of so many nodes."""
    for size in (10, 100, 1_000):
        row = next(row for row in cockpit.message_rows(f"{size:,} nodes", cockpit.ring(size)) if row.unit == "ms")
        yield Point("a step in the cockpit, by nodes", "nodes", size, row.value / 1_000)


def behaviors(folder: Path) -> Iterator[Point]:
    """Yield what an event costs in memory, kept in SQLite, and when its run is loaded."""
    for size in EVENTS:
        runtime = reactive.begun(reactive.OURS, reactive.OBJECTS, size, reactive.LEAN)
        yield Point("an event, in memory", "events", size, seconds_of(runtime.run_until_idle) / size)
    for size in EVENTS[:2]:
        inner = folder / f"events{size}"
        inner.mkdir()
        runtime = reactive.begun(reactive.OURS, reactive.OBJECTS, size, reactive.LEAN, inner)
        yield Point("an event, kept in SQLite", "events", size, seconds_of(runtime.run_until_idle) / size)
        runtime.session.close()
        load = reactive.loader(reactive.OURS, inner, runtime.run_id, size)
        yield Point("an event of a run that is loaded", "events", size, timed(load, size))


def many_runs(folder: Path) -> Iterator[Point]:
    """Yield what lists of runs cost, in stores of so many: one real run, and copies of it with ids of their own."""
    session = cockpit.ring(2)
    session.run(until=2)
    session.save(folder / "many.db")
    session.close()
    store = open_log(folder / "many.db")
    row, entries = store.run(), [*store.entries(session.run_id)]
    stored, began = 0, datetime(2026, 1, 1, tzinfo=UTC)
    for size in RUNS_OF_A_STORE:
        add_copies(folder / "many.db", row, entries, range(stored, size), began)
        stored = size
        middle = {"limit": 50, "after": f"run-{size // 2}"}
        day = {"since": began + timedelta(minutes=size // 2), "until": began + timedelta(minutes=size // 2 + 50)}
        yield Point("nb.runs, all of them: a run", "runs", size, timed(partial(nb.runs, store), size))
        for operation, query in {
            "the newest 50": {"limit": 50},
            "50 from the middle": middle,
            "of one recipe, 10": {"recipe": "recipe 7", "limit": 10},
            "of a period, 50": day,
            "of a rare status": {"status": "failed"},
            "with a text in the id": {"contains": f"run-{size - 1}"},
        }.items():
            yield Point(f"nb.runs: {operation}", "runs", size, timed(partial(nb.runs, store, **query), 1, 5))
        yield Point("nb.open, the last run", "runs", size, timed(partial(nb.open, store), 1, 5))
        opened = nb.open(store)
        yield Point("session.tree", "runs", size, timed(opened.tree, 1, 5))


def add_copies(file: Path, row: RunRow, entries: list[Entry], numbers: range, began: datetime) -> None:
    """Write copies of a run into a store, in one transaction: one per minute, of 100 recipes; one of 1,000 failed."""
    runs, standing = "INSERT INTO agentnb_runs VALUES ", "INSERT INTO agentnb_standing VALUES "
    with closing(sqlite3.connect(file)) as connection, connection:
        for number in numbers:
            copy = row._replace(
                run_id=f"run-{number}", recipe=f"recipe {number % 100}", created=began + timedelta(minutes=number),
                head=without_checksum(row.head), status="failed" if number % 1_000 == 7 else "finished",
            ).seal()  # fmt: skip
            values = [getattr(copy, name) for name in SAID]
            values[SAID.index("created")] = time = copy.created.isoformat(timespec="microseconds")
            connection.execute(f"{runs}(?{', ?' * len(SAID)})", [number + 2, *values])
            state = [number + 2, len(entries), copy.status, copy.steps, None, time, None]
            connection.execute(f"{standing}(?, ?, ?, ?, ?, ?, ?)", state)
            for entry in entries:
                body = seal(copy.run_id, *entry[:2], without_checksum(entry.body)).body
                connection.execute("INSERT INTO agentnb_entries VALUES (?, ?, ?, ?)", [number + 2, *entry[:2], body])


def without_checksum(text: str) -> str:
    """Return a stored document without its checksum."""
    end = text.rindex(',"crc":')
    return f"{text[:end]}}}"


class Streaming:
    """A model that answers in so many pieces."""

    def __init__(self, pieces: int) -> None:
        self.pieces = pieces

    def complete(self, request: LLMRequest) -> LLMResponse:
        """Return the answer; a listener receives it piece by piece."""
        if request.on_token is not None:
            for _ in range(self.pieces):
                request.on_token("word ")
        return LLMResponse("word " * self.pieces)


def answers(_folder: Path) -> Iterator[Point]:
    """Yield what a piece of a streamed answer costs, and a round (the model asks for a tool and gets its result)."""
    graph = nx.DiGraph(name="answers", entry="ask")
    graph.add_node("ask", kind="llm", prompt="Tell me.")
    recipe = nb.load(graph)
    for size in PIECES:
        session = nb.Session(recipe, llm=Streaming(size))
        session.subscribe(id, to="token")
        yield Point("a streamed piece, with a listener", "pieces", size, seconds_of(session.run) / size)
        session = nb.Session(recipe, llm=Streaming(size))
        streams = Streams(session, id)
        yield Point("a streamed piece, in the cockpit", "pieces", size, seconds_of(session.run) / size)
        streams.close()
    for size in ROUNDS:
        for form, native in {"calls in JSON": False, "native calls": True}.items():
            session = agent(size, native=native)
            yield Point(f"a round of an agent, {form}", "rounds", size, seconds_of(session.run) / size)


def agent(rounds: int, *, native: bool) -> nb.Session:
    """Return an agent whose model calls a tool so many times; its conversation grows by two messages each time."""
    if native:
        calls = (ToolCall(f"call_{n}", "search", {"q": f"rain {n}"}) for n in range(rounds))
        script: list[Any] = [*(LLMResponse("", tool_calls=(call,)) for call in calls), "done"]
    else:
        texts = [{"tool_name": "search", "parameters": {"q": f"rain {n}"}} for n in range(rounds)]
        script = [json.dumps(text) for text in (*texts, {"tool_name": "none", "response": "done"})]
    model = {"provider": "openai", "model": "a model", "native_tools": native}
    config = {"name": "agent", "task": "Find it.", "llm": model, "tools": ["search"], "max_calls": rounds + 1}
    recipe = nb.load(config, dialect="symphony")
    return nb.Session(recipe, {"task": "Where does it rain?"}, llm=script, tools={"search": search})


def search(q: str) -> str:
    """Search the web."""
    return f"{q}: " + "rain " * 20


SOURCES = {"steps": long_runs, "pictures": pictures, "events": behaviors, "runs": many_runs, "answers": answers}


def plot(points: list[Point], file: Path) -> None:
    """Draw the points, one line per operation, on logarithmic axes."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams.update({"svg.hashsalt": "agentnb", "svg.fonttype": "none", "font.size": 11})
    from matplotlib import pyplot as plt
    from matplotlib.ticker import NullFormatter

    units = [*dict.fromkeys(point.unit for point in points)]
    rows = (len(units) + 1) // 2
    figure, axes = plt.subplots(rows, min(len(units), 2), figsize=(9, 4.8 * rows), sharey=True, squeeze=False)
    for axis in axes.flat[len(units) :]:
        axis.remove()
    for axis, unit in zip(axes.flat, units, strict=False):
        for operation in dict.fromkeys(point.what for point in points if point.unit == unit):
            matching = [point for point in points if point.what == operation]
            axis.plot(
                [p.size for p in matching],
                [p.seconds * 1e6 for p in matching],
                marker="o",
                markersize=4,
                label=operation,
            )
        axis.set(xscale="log", yscale="log", xlabel=f"number of {unit}", ylabel="µs of processor time, each")
        sizes = sorted({point.size for point in points if point.unit == unit})
        axis.set_xticks(sizes, [f"{size:,}" for size in sizes])
        axis.xaxis.set_minor_formatter(NullFormatter())
        axis.grid(visible=True, alpha=0.3)
        axis.legend(loc="upper left", bbox_to_anchor=(0, -0.16), frameon=False)  # below: nothing hides a line
    figure.tight_layout()
    figure.savefig(file, metadata={"Date": None})


def main() -> int:
    """Measure, or plot what was measured."""
    parser = argparse.ArgumentParser(description="how costs grow")
    parser.add_argument("--only", choices=SOURCES, help="measure these operations only")
    parser.add_argument("--json", type=Path, help="write the points to this file")
    parser.add_argument("--plot", type=Path, help="plot the points of this file instead of measuring")
    parser.add_argument("-o", type=Path, default=Path("performance.svg"), help="the plot")
    options = parser.parse_args()
    if options.plot is not None:
        results = json.loads(options.plot.read_text(encoding="utf-8"))
        plot([Point(*row) for row in results["points"]], options.o)
        return 0
    points: list[Point] = []
    assert activegraph  # imported before anything is measured
    with tempfile.TemporaryDirectory() as folder:
        for name in SOURCES if options.only is None else (options.only,):
            for point in SOURCES[name](Path(folder)):
                points.append(point)
                print(f"{point.what:36}{point.size:>10,} {point.unit:8}{point.seconds * 1e6:>12,.2f} µs", flush=True)
    if options.json is not None:
        environment = {"date": f"{datetime.now(UTC):%Y-%m-%d}", "python": platform.python_version()}
        options.json.write_text(json.dumps({**environment, "points": points}, indent=1), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
