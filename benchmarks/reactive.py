"""reactive: how fast behaviors answer to events, beside the activegraph package, in one run; and what an event keeps.

Run it: `python benchmarks/reactive.py [--events N] [--runs N] [--whole] [--check]`. `--check` exits with 1 where a
limit is broken: with default views 10,000 events a second at least; with lean views, and kept in SQLite, no slower than
the package with lean views beside it. The package comes with `pip install agentnb-kit[bench]`; without it there are no
ratios.

The programs are the same for both, word for word, and both tell the same log (see `Program`). Ours keeps its history
and can go back; the package keeps its log. Kept in SQLite means: what a behavior tells is in the file before the
behavior goes on, and outlives a killed process (`durability="step"`, the package's only way).

In memory the time is the processor's, in SQLite the clock's, for a disk is waited for. The two take turns, run by run,
and a ratio is the median of the ratios of such pairs; where it breaks its limit there are more runs, and the calmest
pairs count. With default views the package copies its whole log for each behavior: its 10,000 events take minutes, so
it is given 1,000 events, unless `--whole` is said.
"""

from __future__ import annotations

import argparse
import gc
import platform
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent.parent))

from clocks import bytes_of, seconds_of
from limits import verdict
from peers import AT_REST, plain_loop, version_of

OURS, THEIRS = "agentnb.dialects.activegraph", "activegraph"
TRIES = 5  # times the runs, at most, where the first ones break the limit
EVENTS_A_SECOND = 10_000  # with default views
TIMES_PACKAGE = 1.0  # with lean views, as fast as the package beside it
FEW = 1_000  # events of the package with default views
LEAN = {"include_types": ["nothing"], "recent_events": 0}


@dataclass(frozen=True)
class Program:
    """What both are asked to do: its behaviors, made for so many events of the log, and the event that begins it."""

    name: str
    behaviors: Callable[[Any, int, Any], list[Any]]


def chain(package: Any, events: int, view: Any) -> list[Any]:
    """One behavior that sets itself off: three events a hop."""
    hops = events // 3

    def hop(event: Any, graph: Any, _ctx: Any) -> None:
        number = event.payload["n"]
        if number < hops:
            graph.emit("begin", {"n": number + 1})

    return [package.Behavior(name="hop", fn=hop, on=["begin"], view_spec=view)]


def fan_out(package: Any, events: int, view: Any) -> list[Any]:
    """One behavior sets another off many times at once: they wait in a long queue, three events each."""

    def share(_event: Any, graph: Any, _ctx: Any) -> None:
        for number in range(events // 3):
            graph.emit("work", {"n": number})

    def work(_event: Any, _graph: Any, _ctx: Any) -> None:
        """Do nothing."""

    return [
        package.Behavior(name="share", fn=share, on=["begin"], view_spec=view),
        package.Behavior(name="work", fn=work, on=["work"], view_spec=view),
    ]


def objects(package: Any, events: int, view: Any) -> list[Any]:
    """One behavior answers to each object with another one, in a chain: three events a hop."""
    hops = events // 3

    def grow(event: Any, graph: Any, _ctx: Any) -> None:
        number = event.payload["object"]["data"]["n"] if event.type == "object.created" else 0
        if number < hops:
            graph.add_object("stone", {"n": number + 1})

    return [package.Behavior(name="grow", fn=grow, on=["begin", "object.created"], view_spec=view)]


CHAIN, FAN_OUT, OBJECTS = Program("chain", chain), Program("fan-out", fan_out), Program("objects", objects)


def begun(package: str, program: Program, events: int, view: Any, folder: Path | None = None) -> Any:
    """Return a runtime whose first event waits; in a folder it is kept in a file of its own."""
    module = import_module(package)
    graph = module.Graph()
    place = {} if folder is None else {"persist_to": str(folder / f"run{len(list(folder.iterdir()))}.db")}
    runtime = module.Runtime(graph, behaviors=program.behaviors(module, events, view), **place)
    first = module.Event(id=graph.ids.event(), type="begin", payload={"n": 1}, actor="user",
                         timestamp=graph.clock.now())  # fmt: skip
    graph.emit(first)
    return runtime


def speed(package: str, program: Program, events: int, view: Any, folder: Path | None = None) -> float:
    """Return the events a second of one run, by the processor's time; of one that is kept, by the clock."""
    runtime = begun(package, program, events, view, folder)
    if folder is None:
        seconds = seconds_of(runtime.run_until_idle)
    else:
        gc.collect()
        since = time.perf_counter()
        runtime.run_until_idle()
        seconds = time.perf_counter() - since
    event_count: int = runtime.status(1).events_processed
    assert abs(event_count - events) < 10, f"{package}, {program.name}: {event_count} events"
    if folder is not None and package == OURS:
        runtime.session.close()
    return event_count / seconds


def loader(package: str, folder: Path, run_id: str, events: int) -> Callable[[], Any]:
    """Return what loads a run of objects that is kept in a folder."""
    module, file = import_module(package), str(next(folder.glob("*.db")))
    behaviors = OBJECTS.behaviors(module, events, LEAN)
    return lambda: module.Runtime.load(file, run_id=run_id, behaviors=behaviors)


def kept(package: str, events: int) -> tuple[float, float, float]:
    """Return the processor's seconds of a run of objects in SQLite, and of loading it, and the MiB of its file."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        runtime = begun(package, OBJECTS, events, LEAN, folder)
        ran = seconds_of(runtime.run_until_idle)
        if package == OURS:
            runtime.session.close()
        run_id = runtime.run_id
        loaded = seconds_of(loader(package, folder, run_id, events))
        del runtime
        gc.collect()
        with closing(sqlite3.connect(next(folder.glob("*.db")))) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        return ran, loaded, sum(file.stat().st_size for file in folder.glob("*.db")) / 2**20


def kept_rows(events: int, runs: int) -> Iterator[Row]:
    """Yield the rows of a run of objects in SQLite: the processor's time, loading it again, the size of its file."""
    pairs = [(kept(OURS, events), kept(THEIRS, events)) for _ in range(runs)]
    units = (("the processor", "s"), ("loaded", "s"), ("file", "MiB"))
    for at, (label, unit) in enumerate(units):
        ours, theirs = (median(pair[side][at] for pair in pairs) for side in (0, 1))
        times = median(pair[1][at] / pair[0][at] for pair in pairs)
        yield Row(
            f"objects, SQLite: {label}", f"{ours:.2f} {unit}", f"{theirs:.2f} {unit}", times, "1 times", times >= 1
        )


class Row(NamedTuple):
    """A line of the table: ours, theirs, ours as often as theirs, the limit in its own words, and whether it holds."""

    what: str
    ours: str
    theirs: str = ""
    times: float | None = None
    limit: str = ""
    ok: bool | None = None


def beside(run: Callable[[str], float], runs: int, limit: float | None) -> tuple[float, float, float]:
    """Return ours, theirs and the ratio; where the limit is broken, of the calmest pairs of more runs."""
    pairs: list[tuple[float, float]] = []
    while True:
        turns = (OURS, THEIRS) if len(pairs) % 2 else (THEIRS, OURS)
        results = {package: run(package) for package in turns}
        pairs.append((results[OURS], results[THEIRS]))
        if len(pairs) < runs:
            continue
        calmest = sorted(pairs, key=lambda pair: 1 / pair[0] + 1 / pair[1])[:runs]
        times = median(ours / theirs for ours, theirs in calmest)
        if limit is None or times >= limit or len(pairs) >= TRIES * runs:
            return median(pair[0] for pair in calmest), median(pair[1] for pair in calmest), times


def compared(what: str, run: Callable[[str], float], runs: int, here: bool) -> Row:
    """Return the row of a run that is to be no slower than the package's."""
    if not here:
        return Row(what, f"{median(run(OURS) for _ in range(runs)):,.0f} events/s")
    ours, theirs, times = beside(run, runs, TIMES_PACKAGE)
    limit = f"{TIMES_PACKAGE:g} times"
    return Row(what, f"{ours:,.0f} events/s", f"{theirs:,.0f} events/s", times, limit, times >= TIMES_PACKAGE)


def slower() -> float:
    """Return how many times slower this machine is at the moment than one at rest."""
    return max(plain_loop() * 1e6 / AT_REST, 1.0)


def default_views(program: Program, events: int, runs: int, few: int, here: bool) -> Row:
    """Return the row of a run with default views: what is to be reached is a speed, on a machine at rest."""
    rates: list[float] = []
    while len(rates) < TRIES * runs:
        before = slower()
        rate = speed(OURS, program, events, None)
        rates.append(rate * max(before, slower()))
        if len(rates) >= runs and median(rates) >= EVENTS_A_SECOND:
            break
    rest = median(rates)
    theirs = f"{speed(THEIRS, program, few, None):,.0f} events/s (of {few:,})" if here else ""
    return Row(f"{program.name}, default views", f"{rest:,.0f} events/s at rest", theirs, None,
               f"{EVENTS_A_SECOND:,} events/s", rest >= EVENTS_A_SECOND)  # fmt: skip


def kept_default(program: Program, events: int, runs: int, folder: Path, here: bool) -> Row:
    """Return the row of a run in SQLite with default views, beside the package's with lean ones."""

    def run(package: str) -> float:
        return speed(package, program, events, None if package == OURS else LEAN, folder)

    return compared(f"{program.name}, default views, SQLite; theirs: lean ones", run, runs, here)


def step_back(events: int) -> Row:
    """Return the row of going back over the whole run, step by step; the package cannot."""
    session = begun(OURS, CHAIN, events, LEAN).session
    session.run()
    steps = session.position

    def back() -> None:
        while session.position:
            session.back()

    return Row("chain: a step back", f"{seconds_of(back) / steps * 1e6:,.1f} µs", "none")


def event_bytes(package: str, program: Program, events: int) -> float:
    """Return by how many bytes an event makes the run's objects grow."""
    runtime = begun(package, program, events, LEAN)
    return bytes_of(runtime.run_until_idle) / events


def sizes(program: Program, events: int, here: bool) -> Row:
    """Return the row of what an event keeps, in history and log."""
    ours = event_bytes(OURS, program, events)
    theirs = event_bytes(THEIRS, program, events) if here else None
    return Row(f"{program.name}: memory of an event", f"{ours:,.0f} bytes",
               "" if theirs is None else f"{theirs:,.0f} bytes", theirs and ours / theirs)  # fmt: skip


def all_rows(events: int, runs: int, few: int, folder: Path) -> Iterator[Row]:
    """Yield every row of the table, each as soon as it is measured."""
    is_installed = version_of(THEIRS) is not None
    for program in (CHAIN, FAN_OUT, OBJECTS):
        yield default_views(program, events, runs, few, is_installed)
    for program in (CHAIN, FAN_OUT, OBJECTS):
        run = partial(speed, program=program, events=events, view=LEAN)
        yield compared(f"{program.name}, lean views", lambda package, run=run: run(package), runs, is_installed)  # type: ignore[misc]  # bound now
    for program in (CHAIN, OBJECTS):
        run = partial(speed, program=program, events=events, view=LEAN, folder=folder)
        yield compared(f"{program.name}, lean views, SQLite", lambda package, run=run: run(package), runs, is_installed)  # type: ignore[misc]  # bound now
    if is_installed:
        yield from kept_rows(events, runs)
    yield kept_default(CHAIN, events, runs, folder, is_installed)
    yield step_back(events)
    for program in (CHAIN, OBJECTS):
        yield sizes(program, events, is_installed)


def line(row: Row) -> str:
    """Return a row as a line of a Markdown table."""
    times = "" if row.times is None else f"{row.times:,.2f}"
    verdict = {True: "yes", False: "NO", None: ""}[row.ok]
    return f"| {row.what} | {row.ours} | {row.theirs} | {times} | {row.limit} | {verdict} |"


def main() -> int:
    """Measure, print the table, and return the exit code."""
    parser = argparse.ArgumentParser(description="how fast behaviors answer to events")
    parser.add_argument("--events", type=int, default=10_000, help="events that a run tells, in about")
    parser.add_argument("--runs", type=int, default=5, help="runs a figure, of which the median counts")
    parser.add_argument("--whole", action="store_true", help="give the package all events with default views too")
    parser.add_argument("--check", action="store_true", help="exit with 1 where a limit is broken")
    options = parser.parse_args()
    release = version_of(THEIRS)
    print(f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, Python {platform.python_version()}, {platform.machine()}")
    heading = f"{THEIRS} {release}" if release else f"{THEIRS} (not installed)"
    print(f"| what | agentnb | {heading} | times | limit | kept |\n|---|---|---|---|---|---|", flush=True)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for row in all_rows(options.events, options.runs, options.events if options.whole else FEW, Path(folder)):
            rows.append(row)
            print(line(row), flush=True)
            gc.collect()
    return verdict([row.what for row in rows if row.ok is False], check=options.check)


if __name__ == "__main__":
    sys.exit(main())
