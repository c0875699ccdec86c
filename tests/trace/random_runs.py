from __future__ import annotations

import random

from agentnb.board.values import ABSENT
from agentnb.clock import FrozenClock
from agentnb.engine.control import interventions
from agentnb.engine.core.drivers import run_plain
from agentnb.engine.core.plan import Plan
from agentnb.engine.core.run import Run
from agentnb.engine.core.time_travel import goto, start_branch
from agentnb.engine.core.work import Append, Body, Enter, Kind, Outcome
from agentnb.engine.effects.dispatch import EffectDispatcher
from agentnb.recipe.model import Edge, Node, Recipe, Region

KINDS = {
    "function": Kind("function", lambda node, _: node.params["call"]),
    "router": Kind("router", lambda node, _: node.params["call"], "REASONING"),
    "subgraph": Kind("subgraph", lambda node, _: node.params["call"], "SYSTEM_EVENT"),
}


def node(name, call, kind="function", **words):
    return Node(name, kind, params={"call": call}, **words)


def counter():
    """A node that counts, a router that asks, a subgraph with a board of its own, a node that fails at 7."""

    def count(work):
        n = work.board["n"]
        if n == 7:
            raise ValueError("seven")
        return {"n": n + 1, "log": Append({"n": n})}

    def route(work):
        n = work.board["n"]
        return Outcome(route=["inside" if n % 3 == 0 else "count"], value=n, thought=f"n is {n}", inputs={"n": n})

    def inside(work):
        if work.phase == "start":
            return Enter([Body("body", "child", {"api_key": "s3cret", "deep": {"x": [work.board["n"]]}})])
        return {"seen": work.frames[0].scope.get("deep") and 1} if work.frames else {}

    def leaf(work):
        deep = work.board["deep"]
        deep["x"].append(1)
        return {"n": work.board["n"] + 1}

    nodes = [node("count", count), node("route", route, "router"), node("fix", lambda work: {"n": 8, "log": ABSENT})]
    nodes += [node("inside", inside, "subgraph", bodies=("body",)), node("leaf", leaf, scope="body")]
    edges = [
        Edge("count", "route"),
        Edge("count", "fix", "error"),
        Edge("fix", "count"),
        Edge("route", "inside", "route"),
        Edge("route", "count", "route"),
        Edge("inside", "count", "conditional", lambda board: board["n"] < 1000, "n < 1000"),
    ]
    regions = {"body": Region("body", ("leaf",), owner="inside")}
    named = {one.id: one for one in nodes}
    return Plan(Recipe("counter", "graph", named, tuple(edges), ("count",), regions=regions), KINDS, None)


def started(plan=None, **inputs):
    run = Run(plan or counter(), EffectDispatcher(), clock=FrozenClock())
    run.begin({"n": 0, "password": "s3cret", **inputs})
    return run


def go(run, steps):
    """Make so many steps, or fewer where the run ends."""
    for _ in range(steps):
        if not run.frontier() or run_plain(run, once=True):
            break
    return run


def odyssey(seed, acts=12):
    """A run with forks, edits and failures, the same for the same seed."""
    chance, run = random.Random(seed), started()
    for _ in range(acts):
        match chance.randrange(4):
            case 0 if len(run.frames) == 1:
                interventions.edit(
                    run, {chance.choice(["n", "free", "m.a"]): chance.choice([1, [2, {"x": 3}], "text", ABSENT])}
                )
                if not isinstance(run.root.scope.get("n"), int):
                    interventions.edit(run, {"n": 0})
            case 1 if run.position > 1:
                goto(run, chance.randrange(run.position))
                start_branch(run)
            case _:
                go(run, chance.randrange(1, 8))
    return run
