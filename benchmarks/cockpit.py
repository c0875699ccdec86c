"""cockpit: what it costs to watch a run: bytes and time of a step on the page, and how fast a watched run goes.

Run it: `python benchmarks/cockpit.py [--steps N] [--runs N] [--json] [--check]`. `--check` exits with 1 where a limit
is broken. Without Chromium the page's own figures are left out.

A step's message is what the widget hands to the kernel's channel, as JSON without its envelope. Beside it stands what
drawing the whole picture anew would take. Speeds are of the processor's time of this process, the watched run and the
unwatched one in turns; the median of their ratios counts. A page is painted when the frame after the change is there.

From a click to the paint is wall time, with a bridge to this process in the place of a kernel's channel. Beside it
stands an empty round trip, a click that changes one text, measured in turns with it. What it takes beyond one frame of
a screen with 60 a second is the bridge and what else the machine does, and does not count.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent.parent))

import networkx as nx
from clocks import seconds_of
from limits import verdict

import agentnb as nb
from agentnb.ui.commands import list_commands
from agentnb.ui.debugger import Debugger, build_page_module, build_page_style

SIZES = (10, 100, 1_000)
LONG = 1_000_000  # steps of a run whose cockpit must not be slower for it
OPENED_MS, MOVED_MS = (
    2_500.0,
    50.0,
)  # until its cockpit is made, which reads each step once; until it shows another step
SHOWN = 30  # steps that are shown one by one
STEP_BYTES, PAINTED_MS, KERNEL_MS = 1_024, 30.0, 1.0
FRAME_MS = 1_000 / 60
CLICKED_MS = {2: 35.0, 300: 60.0}  # from a click on Step to the paint, by the number of nodes
SPEED, MESSAGES = 0.9, 30  # of the speed without a cockpit, at least; messages a second, at most
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


class Row(NamedTuple):
    """One figure: what it is of, its unit, the limit, whether more is better, and the time of a full redraw."""

    what: str
    value: float
    unit: str
    limit: float | None = None
    more: bool = False
    redrawn: float | None = None

    @property
    def kept(self) -> bool:
        """Whether the limit is kept."""
        if self.limit is None:
            return True
        return self.value >= self.limit if self.more else self.value <= self.limit


class Watched(Debugger):
    """A cockpit that keeps what it sends, and when; where there is no kernel, it goes nowhere else."""

    def __init__(self, session: nb.Session) -> None:
        self.sent: list[dict[str, Any]] = []
        self.times: list[float] = []
        super().__init__(session)

    @property
    def number_sent(self) -> int:
        """The number of the last change that was sent."""
        return max((int(message.get("number", 0)) for message in self.sent), default=0)

    def send(self, content: Any, buffers: Any = None) -> None:
        """Keep a message that would go to the pages."""
        json.dumps(content)  # as the kernel's channel does
        self.sent.append(content)
        self.times.append(time.monotonic())


def ring(size: int) -> nb.Session:
    """Return a session of so many nodes in a ring, which goes round for ever."""

    def add(n: int) -> dict[str, int]:
        return {"n": n + 1}

    graph = nx.DiGraph(name="ring", entry="n0")
    for number in range(size):
        graph.add_node(f"n{number}", function=add, inputs={"n": "n"})
        graph.add_edge(f"n{number}", f"n{(number + 1) % size}")
    return nb.Session(nb.load(graph), {"n": 0}, budget={"max_steps": 10**9})


def size_of(message: Any) -> int:
    """Return the bytes of a message as JSON."""
    return len(json.dumps(message, separators=(",", ":")).encode())


# -- one step, as it is shown ------------------------------------------------------------------------------------------


def message_rows(what: str, session: nb.Session) -> Iterator[Row]:
    """Yield what the kernel makes and sends for one step."""
    watched = Watched(session)
    session.step()
    watched.sent.clear()
    shown = [seconds_of(session.step) for _ in range(SHOWN)]
    bytes_ = [size_of(message) for message in watched.sent]
    watched.close()
    plain = median(seconds_of(session.step) for _ in range(SHOWN))
    pictures: list[str] = []
    redrawn = median(seconds_of(lambda: pictures.append(session.draw().svg)) for _ in range(3))
    yield Row(f"{what}: bytes of a step", max(bytes_), "bytes", STEP_BYTES, redrawn=len(pictures[-1].encode()))
    milliseconds = (median(shown) - plain) * 1_000
    yield Row(f"{what}: made in the kernel", milliseconds, "ms", KERNEL_MS, redrawn=redrawn * 1_000)


PAINT = """async messages => {
  const frame = () => new Promise(done => requestAnimationFrame(() => setTimeout(done)));
  const found = [];
  for (const message of messages) {
    await frame();
    const begun = performance.now();
    host.fire('msg:custom', message);
    document.body.getBoundingClientRect();
    found.push(performance.now() - begun);
  }
  return found;
}"""


def page_rows(browser: str, what: str, session: nb.Session) -> Iterator[Row]:
    """Yield how long a page is busy with one step, and by how many elements it grows in many steps."""
    from tests.ui.pages import HOST, opened

    watched = Watched(session)
    session.step(len(session.recipe.nodes))  # once round: every node has run
    first = {"svg": watched.svg, "state": {**watched.state}, "commands": list_commands()}
    watched.sent.clear()
    for _ in range(SHOWN * 10):
        session.step()
    messages = [message for message in watched.sent if "changed" in message]
    watched.close()
    with opened(browser) as (context, _):
        page = context.new_page()
        page.goto("about:blank")
        page.evaluate(HOST)
        page.evaluate("([a, b, c]) => mount(a, b, c, 1)", [build_page_module(), build_page_style(), first])
        took = page.evaluate(PAINT, messages[:SHOWN])
        count = "document.querySelectorAll('*').length"
        before = page.evaluate(count)
        page.evaluate(PAINT, messages[SHOWN:])
        grown = page.evaluate(count) - before
        assert page.evaluate("host.model.get('state').position") == session.position
        redrawn = page.evaluate(
            """async svg => {
              const begun = performance.now();
              const place = document.body.appendChild(document.createElement('div'));
              place.innerHTML = svg;
              place.getBoundingClientRect();
              return performance.now() - begun;
            }""",
            session.draw().svg,
        )
    yield Row(f"{what}: the page is busy", median(took), "ms", PAINTED_MS, redrawn=redrawn)
    yield Row(f"{what}: elements that {len(messages) - SHOWN:,} more steps add", grown, "", 50)


def long_rows(browser: str | None) -> Iterator[Row]:
    """Yield what a step costs after very many, and how long such a run takes to open and to be moved through."""
    from agentnb.ui.commands import run_command

    Watched(ring(10)).close()  # what is imported at the first picture is not what is measured
    title, session = f"{LONG:,} steps", ring(10)
    session.step(LONG)
    yield Row(f"{title}: the cockpit is made", seconds_of(lambda: Watched(session).close()) * 1_000, "ms", OPENED_MS)
    window = {"from": LONG // 2, "to": LONG // 2 + 100}
    looks = [seconds_of(lambda: run_command(session, "query", "timeline", window)) for _ in range(SHOWN)]
    yield Row(f"{title}: a window of the timeline", median(looks) * 1_000, "ms", MOVED_MS)
    places = [LONG // 2 if turn % 2 else LONG - 1_000 for turn in range(6)]
    moves = [seconds_of(partial(run_command, session, "goto", place)) for place in places]
    assert session.position == places[-1]
    yield Row(f"{title}: the slider goes half of them back", median(moves) * 1_000, "ms", MOVED_MS)
    session.goto(LONG)
    yield from message_rows(title, session)
    if browser is not None:
        yield from page_rows(browser, title, session)


CLICKS = """async count => {
  const painted = () => new Promise(done => requestAnimationFrame(() => setTimeout(done)));
  const button = document.querySelector('.agentnb-cockpit [data-do=step]');
  const empty = document.body.appendChild(document.createElement('button'));
  let arrived;
  host.model.send = async message => {
    for (const each of await window.bridge(message)) host.fire('msg:custom', each);
    if (message.do === 'step') arrived();
  };
  empty.onclick = async () => { empty.textContent = (await window.bridge({do: 'nothing'})).length; arrived(); };
  const found = {step: [], empty: []};
  for (let number = 0; number < count; number++) {
    for (const [name, target] of [['step', button], ['empty', empty]]) {
      await new Promise(done => setTimeout(done, 80)); // what a step before it asks for by itself is over
      await painted();
      const begun = performance.now();
      const there = new Promise(done => { arrived = done; });
      target.click();
      await there;
      await painted();
      found[name].push(performance.now() - begun);
    }
  }
  return found;
}"""


def click_rows(browser: str, size: int) -> Iterator[Row]:
    """Yield how long it takes from a click on Step to the paint."""
    from agentnb.ui.commands import run_command
    from tests.ui.pages import HOST, opened

    watched = Watched(ring(size))
    session = watched.session
    session.step(3)

    def bridge(_: Any, message: dict[str, Any]) -> list[dict[str, Any]]:
        if message["do"] == "nothing":
            return []
        watched.sent.clear()
        result = run_command(session, message["do"], message.get("value"), message.get("target"))
        return [*watched.sent, {"answers": message["number"], "view": message["view"], "result": result}]

    with opened(browser) as (context, _):
        page = context.new_page()
        page.expose_binding("bridge", bridge)
        page.goto("about:blank")
        page.evaluate(HOST)
        first = {"svg": watched.svg, "state": {**watched.state}, "commands": list_commands()}
        page.evaluate("([a, b, c]) => mount(a, b, c, 1)", [build_page_module(), build_page_style(), first])
        clicks = page.evaluate(CLICKS, SHOWN)
        assert page.evaluate("host.model.get('state').position") == session.position == SHOWN + 3
    watched.close()
    step, empty = median(clicks["step"]), median(clicks["empty"])
    title = f"{size:,} nodes: click to paint"
    yield Row(title, step - empty + FRAME_MS, "ms", CLICKED_MS[size])
    yield Row(f"{title}, with the bridge; beside it an empty round trip", step, "ms", redrawn=empty)


# -- a run that is watched ---------------------------------------------------------------------------------------------


def lived(steps: int, made: Callable[[], nb.Session]) -> float:
    """Return the processor seconds that a live run of so many steps takes; its session is made in the same loop."""
    took: list[float] = []

    async def main() -> None:
        session = made()
        gc.collect()
        start = time.process_time()
        session.start(until=steps)
        await session.wait()
        took.append(time.process_time() - start)
        await asyncio.sleep(0.5)  # a last picture may be due

    asyncio.run(main())
    return took[0]


def run_rows(steps: int, runs: int) -> Iterator[Row]:
    """Yield how fast a live run is beside one that nobody watches, and how many messages it sends."""
    watched: list[Watched] = []

    def seen() -> nb.Session:
        watched.append(Watched(ring(10)))
        return watched[-1].session

    lived(steps // 10, seen)  # what is imported at the first picture is not what is measured
    ratios = []
    watched.clear()
    for _ in range(runs):
        alone = lived(steps, lambda: ring(10))
        ratios.append(alone / lived(steps, seen))
    rates = [busiest_second(one.times) for one in watched]
    last = all(one.state["position"] == steps and one.number_sent == one.state["number"] for one in watched)
    for one in watched:
        one.close()
    yield Row(f"{steps:,} steps: speed beside one that is not watched", median(ratios), "times", SPEED, more=True)
    yield Row(f"{steps:,} steps: messages in the busiest second", max(rates), "", MESSAGES)
    yield Row(f"{steps:,} steps: the last one is shown", float(last), "", 1.0, more=True)


def busiest_second(times: list[float]) -> int:
    """Return how many of these moments lie within one second, at most."""
    return max((sum(begin <= other < begin + 1 for other in times) for begin in times), default=0)


# -- the table ---------------------------------------------------------------------------------------------------------


def all_rows(steps: int, runs: int) -> Iterator[Row]:
    """Yield every row of the table, each as soon as it is measured."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    for size in SIZES:
        yield from message_rows(f"{size:,} nodes", ring(size))
        if browser is not None:
            yield from page_rows(browser, f"{size:,} nodes", ring(size))
    yield from long_rows(browser)
    if browser is not None:
        for size in CLICKED_MS:
            yield from click_rows(browser, size)
    yield from run_rows(steps, runs)


def line(row: Row) -> str:
    """Return a row as a line of a Markdown table."""

    def told(value: float | None, unit: str = row.unit) -> str:
        return "" if value is None else f"{value:,.2f} {unit}" if value % 1 else f"{value:,.0f} {unit}".rstrip()

    verdict = {True: "yes", False: "NO"}[row.kept] if row.limit is not None else ""
    return f"| {row.what} | {told(row.value)} | {told(row.redrawn)} | {told(row.limit)} | {verdict} |"


def main() -> int:
    """Measure, print the table, and return the exit code."""
    parser = argparse.ArgumentParser(description="what it costs to watch a run")
    parser.add_argument("--steps", type=int, default=100_000, help="the length of the live run")
    parser.add_argument("--runs", type=int, default=5, help="live runs, of which the median counts")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--check", action="store_true", help="exit with 1 where a limit is broken")
    options = parser.parse_args()
    show: Callable[[str], None] = (lambda _: None) if options.json else print
    show("| what | value | drawn anew | limit | kept |\n|---|---|---|---|---|")
    rows = []
    for row in all_rows(options.steps, options.runs):
        rows.append(row)
        show(line(row))
    if options.json:
        print(json.dumps([row._asdict() for row in rows], indent=2))
    return verdict([row.what for row in rows if not row.kept], check=options.check)


if __name__ == "__main__":
    sys.exit(main())
