"""step: what one step costs, and going back, forking and calling; as times, as ratios to a plain loop, beside others.

Run it: `python benchmarks/step.py [--steps N] [--runs N] [--json] [--check]`. `--check` exits with 1 where a limit is
broken. Each figure is the median of several runs, with the plain loop before and after each. Where it breaks its limit
there are more runs, and the calmest count, those beside which the plain loop was fastest: the machine may have had
other work. Other libraries need `pip install agentnb-kit[bench]`.
"""

from __future__ import annotations

import argparse
import gc
import json
import platform
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parent.parent))

from clocks import medians
from limits import verdict
from loops import (
    MANY,
    MESSAGES,
    READ_N,
    Travels,
    append,
    board_of,
    condition,
    count,
    frame_bytes,
    growth,
    one,
    rewrite,
    run_step,
    small,
    step_bytes,
    two,
    two_nodes,
)
from peers import AT_REST, PEERS, first, measured, plain_loop, second, version_of

TRIES = 5  # times the runs, at most, where the first ones break the limit
TIMES_PLAIN = 20  # a step, as often as a step of the plain loop


@dataclass(frozen=True)
class Figure:
    """One figure to measure, in µs, bytes or times, and the limit that it keeps."""

    what: str
    measure: Callable[[], float]
    limit: float | None = None
    unit: str = "µs"
    runs: int | None = None
    times_plain: float | None = None


@dataclass(frozen=True)
class Row:
    """A figure as it was measured; `ratio` is to a step of the plain loop, measured beside it.

    `at_rest` is what the limit is held against: the time on a machine that has nothing else to do.
    """

    what: str
    value: float | None
    unit: str
    ratio: float | None
    limit: float | None
    ok: bool | None
    note: str = ""
    at_rest: float | None = None


def steps_figures() -> Iterator[Figure]:
    """Yield what a step of `run()` takes."""
    forms = {
        "reads nothing": two_nodes(one, two),
        "reads the board": two_nodes(first, second),
        "by inputs": two_nodes(count, count, inputs=READ_N),
    }
    for keys, limit in ((2, 3.0), (MANY, 5.0)):
        for form, recipe in forms.items():
            measure = partial(run_step, recipe, board_of(keys))
            yield Figure(f"a step, {keys:,} keys, {form}", measure, limit, times_plain=TIMES_PLAIN)
    conditions = {"text": "n < 9", "JsonLogic": {"<": [{"var": "n"}, 9]}, "a function": lambda board: board["n"] < 9}
    for form, when in conditions.items():
        yield Figure(f"a condition on an edge, {form}: a step more", partial(condition, when), 0.8)
    armed = partial(run_step, forms["reads the board"], board_of(MANY), armed=True)
    yield Figure(f"a step, {MANY:,} keys, reads, a condition breakpoint and a watch", armed, 5.0)
    yield Figure(
        "a tool call through the effect door", partial(run_step, two_nodes(one, two, "tool"), board_of(2)), 6.0
    )
    messages = {"log": MESSAGES}
    yield Figure("a list of 200 messages: append", partial(run_step, two_nodes(append, append), messages, 500), 5.0)
    rewriting = partial(run_step, two_nodes(rewrite, rewrite), messages, 200)
    yield Figure("a list of 200 messages: read and rewritten", rewriting, 100.0)


def travel_figures(steps: int) -> Iterator[Figure]:
    """Yield what going elsewhere takes."""
    travels = Travels(steps)
    yield Figure(f"back, {MANY:,} keys", travels.back, 5.0)
    yield Figure(f"goto, the first call, {MANY:,} keys", travels.first_goto, 1_000.0, runs=5)
    yield Figure(f"goto, the slowest of 100 places in {steps:,} steps", travels.slowest_goto, 1_000.0, runs=3)
    yield Figure(f"fork where it stands, {MANY:,} keys", travels.fork, 15.0)
    yield Figure(f"fork at an earlier step, {MANY:,} keys", travels.fork_earlier, 40.0)


def size_figures(steps: int) -> Iterator[Figure]:
    """Yield what grows with the steps: their time, which must not, and their memory."""
    yield Figure(f"a step of {steps:,}, as often as one of 1,000", partial(growth, steps), 1.2, "times", runs=1)
    for keys in (2, MANY):
        quiet, reading = two_nodes(one, two), two_nodes(small, small)
        yield Figure(f"memory of a step, {keys:,} keys", partial(step_bytes, quiet, keys), 100.0, "bytes", runs=1)
        yield Figure(
            f"the same with one read, {keys:,} keys", partial(step_bytes, reading, keys), 108.0, "bytes", runs=1
        )
    yield Figure("memory of entering a frame", frame_bytes, 3_000.0, "bytes", runs=1)


def measure(figure: Figure, runs: int) -> Row:
    """Measure a figure beside the plain loop; where it breaks its limit, again: of all runs the calmest count."""
    runs = figure.runs or runs
    seconds: list[tuple[float, float]] = []
    before = plain_loop()
    while True:
        value = figure.measure()
        after = plain_loop()
        seconds.append((max(before, after), value))
        before = after
        if len(seconds) >= runs:
            row = row_of(figure, sorted(seconds)[:runs])
            if row.ok is not False or len(seconds) >= TRIES * runs:
                return row


def row_of(figure: Figure, found: list[tuple[float, float]]) -> Row:
    """Return the row of what was measured: pairs of a plain loop's step and the figure."""
    timed = figure.unit == "µs"
    value = median(pair[1] for pair in found) * (1e6 if timed else 1.0)
    ratio = median(pair[1] / pair[0] for pair in found) if timed else None
    rest = value if ratio is None else min(value, ratio * AT_REST)
    ok = None if figure.limit is None else rest <= figure.limit
    if ok and ratio is not None and figure.times_plain is not None:
        ok = ratio <= figure.times_plain
    return Row(figure.what, value, figure.unit, ratio, figure.limit, ok, at_rest=rest)


def peer_rows(runs: int) -> Iterator[Row]:
    """Yield a step of the same loop in each other library; one that is not installed is told, not measured."""
    for peer in PEERS:
        release = version_of(peer.package)
        if release is None:
            yield Row(
                f"{peer.name}: a step", None, "µs", None, None, None, f"not installed: pip install {peer.package}"
            )
            continue
        row = measure(Figure(f"{peer.name} {release}: a step", partial(measured, peer)), min(runs, 5))
        yield replace(row, note=f"keeps {peer.keeps}")


def all_rows(steps: int, runs: int) -> Iterator[Row]:
    """Yield every row of the table, each as soon as it is measured."""
    yield Row("plain Python loop: a step", medians(plain_loop, 3 * runs) * 1e6, "µs", 1.0, None, None, "keeps nothing")
    yield from peer_rows(runs)
    for figure in (*steps_figures(), *travel_figures(steps), *size_figures(steps)):
        yield measure(figure, runs)
        gc.collect()


def line(row: Row) -> str:
    """Return a row as a line of a Markdown table."""
    value = "" if row.value is None else f"{row.value:,.2f} {row.unit}"
    ratio = "" if row.ratio is None else f"{row.ratio:,.1f}"
    rest = "" if row.at_rest is None or row.ratio is None else f"{row.at_rest:,.2f} {row.unit}"
    limit = "" if row.limit is None else f"{row.limit:,g} {row.unit}"
    ok = {True: "yes", False: "NO", None: ""}[row.ok]
    return f"| {row.what} | {value} | {ratio} | {rest} | {limit} | {ok or row.note} |"


def main() -> int:
    """Measure, print the table, and return the exit code."""
    parser = argparse.ArgumentParser(description="what one step costs")
    parser.add_argument("--steps", type=int, default=1_000_000, help="the length of the long run")
    parser.add_argument("--runs", type=int, default=7, help="runs a figure, of which the median counts")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--check", action="store_true", help="exit with 1 where a limit is broken")
    options = parser.parse_args()
    if not options.json:
        print(f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, Python {platform.python_version()}, {platform.machine()}")
        print("| what | median | x plain loop | at rest | limit | kept |\n|---|---|---|---|---|---|", flush=True)
    rows = []
    for row in all_rows(options.steps, options.runs):
        rows.append(row)
        if not options.json:
            print(line(row), flush=True)
    if options.json:
        print(json.dumps([asdict(row) for row in rows], indent=2))
    return verdict([row.what for row in rows if row.ok is False], check=options.check)


if __name__ == "__main__":
    sys.exit(main())
