"""frames: how long a million steps take to become every DataFrame, to be shown, and to be written and read.

Run it: `python benchmarks/frames.py [--steps N] [--check]`. `--check` fails when the frames take longer than the limit.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from peers import AT_REST, plain_loop

from agentnb.engine.core.drivers import run_plain
from agentnb.engine.core.plan import Plan
from agentnb.engine.core.run import Run
from agentnb.engine.core.work import Kind, Work
from agentnb.engine.effects.dispatch import EffectDispatcher
from agentnb.recipe.model import Edge, Node, Recipe
from agentnb.trace import SimulationTrace

SECONDS_EACH = 4.0  # of a million steps: read from JSON; the inputs and outputs of all of them
SECONDS_A_MILLION = 0.25  # on a machine that has nothing else to do


def run_of(steps: int) -> Run:
    """Return a run of two nodes that take turns; each step reads a key and writes one atom."""

    def ping(work: Work) -> dict[str, Any]:
        return {"x": work.board["x"] + 1}

    def pong(work: Work) -> dict[str, Any]:
        return {"x": work.board["x"] + 1}

    nodes = {name: Node(name, "function", params={"call": call}) for name, call in (("ping", ping), ("pong", pong))}
    recipe = Recipe("bench", "graph", nodes, (Edge("ping", "pong"), Edge("pong", "ping")), ("ping",))
    run = Run(
        Plan(recipe, {"function": Kind("function", lambda node, _: node.params["call"])}, None), EffectDispatcher()
    )
    run.begin({"x": 0})
    run.limit = steps
    run.set_next_due()
    run_plain(run)
    assert run.position == steps
    return run


def best(work: Callable[[], Any], times: int = 5) -> float:
    """Return the shortest of several times, in seconds of this process: the machine may have other work too."""
    seconds = []
    for _ in range(times):
        gc.collect()
        start = time.process_time()
        work()
        seconds.append(time.process_time() - start)
    return min(seconds)


def main() -> int:
    """Measure, print a table, and return 1 where `--check` finds the limit broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    run = run_of(options.steps)

    def frames() -> list[Any]:
        return list(SimulationTrace.of(run).frames.values())

    frames()  # imports pandas, which is not what is measured
    beside = plain_loop()
    every = best(frames)
    busy = max(1.0, max(beside, plain_loop()) * 1e6 / AT_REST)  # how many times slower the machine is than at rest
    trace = SimulationTrace.of(run)
    rows = {
        "all frames": every,
        **{f"  {name}": best(lambda name=name: SimulationTrace.of(run).frames[name]) for name in trace.frames},
        "repr of steps": best(trace.frames.steps.__repr__),
        "steps[-1].to_dict()": best(trace.steps[-1].to_dict),
        "state_at(n // 2)": best(lambda: trace.state_at(options.steps // 2)),
        "wide(x)": best(lambda: trace.wide("x"), 1),
        "outputs, every dict": best(lambda: trace.frames.steps.outputs.astype(object), 1),
    }
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "trace.json")  # noqa: PTH118  (a text is what people pass)
        rows["to_json"] = best(lambda: trace.to_json(file), 1)
        rows["read"] = best(lambda: SimulationTrace.read(file), 1)
    rows["inputs, outputs of all"] = best(lambda: [len(step.inputs) + len(step.outputs) for step in trace.steps], 1)
    print(f"{options.steps:,} steps")
    for name, seconds in rows.items():
        print(f"{name:<24}{seconds:>12.6f} s")
    limit = SECONDS_A_MILLION * options.steps / 1_000_000
    print(f"{'all frames, at rest':<22}{every / busy:>12.6f} s (the machine was {busy:.2f} times as slow)")
    if options.check and every / busy > limit:
        print(f"all frames took {every / busy:.3f} s at rest, and the limit is {limit:.3f} s")
        return 1
    slow = [
        name
        for name in ("read", "inputs, outputs of all")
        if rows[name] / busy > limit / SECONDS_A_MILLION * SECONDS_EACH
    ]
    if options.check and slow:
        print(f"{' and '.join(slow)} took more than {SECONDS_EACH} s a million steps")
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
