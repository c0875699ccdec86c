"""Five small graphs, one for each way of moving that the five systems need, built of test kinds alone."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agentnb.engine.core.drivers import LOOP, run_in_loop, run_in_own_loop, run_plain, step_in_loop
from agentnb.engine.core.plan import Plan
from agentnb.engine.core.run import Run
from agentnb.engine.core.time_travel import open_tip
from agentnb.engine.core.work import Body, Enter, Kind, Outcome
from agentnb.engine.effects.dispatch import EffectDispatcher
from agentnb.recipe.model import Edge, Node, Recipe, Region
from agentnb.world.effect import Effect
from agentnb.world.world import World


def do(node, world):
    """A leaf: what it does is a function of its work."""
    return node.params["do"]


def nest(node, world):
    """A composite: opens its bodies, each with a scope of this policy, and merges their `out` in branch order."""
    policy = node.params["policy"]

    def perform(work):
        if work.phase == "start":
            branches = len(node.bodies) > 1
            return Enter(
                [
                    Body(region, policy, node.params.get("given", {}), number if branches else -1)
                    for number, region in enumerate(node.bodies)
                ]
            )
        return {node.id: [frame.scope.data.get("out") for frame in work.frames]}

    return perform


KINDS = {
    "do": Kind("do", do),
    "nest": Kind("nest", nest),
    "keep": Kind("keep", do, keeps_writes=True),
}


@dataclass
class Shape:
    """A recipe of test kinds, the steps that it takes and the board that it ends with."""

    nodes: list[Node]
    edges: list[Edge]
    entry: tuple[str, ...]
    steps: list[str]  # when stepped
    end: dict[str, Any]
    regions: list[Region] = field(default_factory=list)
    routing: str = "first"
    inputs: dict[str, Any] = field(default_factory=dict)
    llm: Any = None
    emits: tuple[str, ...] = ()
    ran: list[str] | None = None  # when running, where that differs: branches then run at the same time

    def run(self) -> Run:
        run = Run(self.plan(), EffectDispatcher())
        run.begin(self.inputs)
        return run

    def plan(self) -> Plan:
        regions = {region.id: region for region in [Region("root", self.entry), *self.regions]}
        nodes = {node.id: node for node in self.nodes}
        recipe = Recipe("shape", "test", nodes, tuple(self.edges), self.entry, regions=regions, routing=self.routing)
        return Plan(recipe, KINDS, World(llm=self.llm))


def step(run: Run) -> int:
    """One step, whatever it needs; in the past it begins a branch."""
    open_tip(run)
    code = run_plain(run, once=True)
    return run_in_own_loop(lambda: step_in_loop(run)) if code == LOOP else code


def go_on(run: Run) -> int:
    """Run to where it stops."""
    open_tip(run)
    code = run_plain(run)
    return run_in_own_loop(lambda: run_in_loop(run)) if code == LOOP else code


def board(run: Run) -> dict[str, Any]:
    from agentnb.board.values import thaw

    return {key: thaw(value) for key, value in run.root.scope.data.items()}


def path(run: Run) -> list[str]:
    """Every step so far: its node, with a mark for what was not a plain turn."""
    results = []
    for number, history in enumerate(run.chain):
        end = run.chain[number + 1].base if number + 1 < len(run.chain) else run.position
        for row in range(1, min(end, run.position) - history.base + 1):
            flag, activation_number = history.step_flags[row], history.step_activations[row]
            mark = {1: " enter", 2: " again", 3: " leave"}.get(flag & 3, "")
            mark += {4: " error", 8: " cancelled", 12: " skipped"}.get(flag & 12, "")
            results.append(run.get_node_id(activation_number) + mark)
    return results


def leaf(name: str, function: Any, kind: str = "do", scope: str = "root", on: tuple[str, ...] = ()) -> Node:
    return Node(name, kind, scope=scope, params={"do": function}, on=on)


# -- (a) a FIFO diamond with revisits, and an error target that goes to the front --------------------------------------


def _count(name):
    return lambda work: {"log": [*work.board.get("log", []), name], name: work.board.get(name, 0) + 1}


def _fails_first(work):
    if "fixed" not in work.board:
        raise ValueError("not yet")
    return _count("c")(work)


def _mend(work):
    return {"log": [*work.board["log"], "fix"], "fixed": True}


DIAMOND = Shape(
    nodes=[
        leaf("a", _count("a")),
        leaf("b", _count("b")),
        leaf("c", _fails_first),
        leaf("d", _count("d")),
        leaf("fix", _mend),
    ],
    edges=[
        Edge("a", "b"),
        Edge("a", "c"),
        Edge("a", "b"),
        Edge("b", "d"),
        Edge("c", "d"),
        Edge("c", "fix", "error"),
        Edge("fix", "c"),
    ],
    entry=("a",),
    routing="all",
    # c fails with b and d waiting behind it: its handler comes before them, the retried c after.
    steps=["a", "b", "c error", "fix", "b", "d", "c", "d", "d"],
    end={"log": ["a", "b", "fix", "b", "d", "c", "d", "d"], "a": 1, "b": 2, "fixed": True, "d": 3, "c": 1},
)


# -- (b) one pointer with a router and a cycle ------


def _ask(work):
    number = work.board["n"]
    return Outcome({"asked": number}, route=["again" if number < 3 else "done"], value=number)


CYCLE = Shape(
    nodes=[
        leaf("ask", _ask),
        leaf("again", lambda work: {"n": work.board["n"] + 1}),
        leaf("done", lambda work: {"end": work.board["n"] * 10}),
    ],
    edges=[Edge("ask", "again", "route"), Edge("ask", "done", "route"), Edge("again", "ask")],
    entry=("ask",),
    inputs={"n": 1},
    steps=["ask", "again", "ask", "again", "ask", "done"],
    end={"n": 3, "asked": 3, "end": 30},
)


# -- (c) two concurrent branches with child scopes: one fails, the other is cancelled ------


class Meeting:
    """Both branches are in flight before one of them fails: proved by a barrier, not by a clock."""

    def __init__(self) -> None:
        self.begun: set[str] = set()

    async def wait_for(self, name: str) -> None:
        while name not in self.begun:  # noqa: ASYNC110  (a set is all that both sides share)
            await asyncio.sleep(0)


def branches(meeting: Meeting | None = None) -> Shape:
    async def left(work):
        await work.loop()
        if meeting is not None:
            meeting.begun.add("left")
            await meeting.wait_for("right")
        work.write("out", "never")
        raise ValueError("left breaks")

    async def right(work):
        await work.loop()
        if meeting is not None:
            meeting.begun.add("right")
            await meeting.wait_for("left")
        await asyncio.Event().wait()

    return Shape(
        nodes=[
            Node("both", "nest", bodies=("one", "two"), params={"policy": "child"}),
            leaf("first", lambda work: {"out": 1, "seen": work.board["x"]}, scope="one"),
            leaf("left", left, scope="one"),
            leaf("second", lambda work: {"out": 2, "x": "mine"}, scope="two"),
            leaf("right", right, scope="two"),
            leaf("rescue", lambda work: {"rescued": True, "x_is": work.board["x"]}),
        ],
        edges=[Edge("first", "left"), Edge("second", "right"), Edge("both", "rescue", "error")],
        entry=("both",),
        regions=[Region("one", ("first",), owner="both"), Region("two", ("second",), owner="both")],
        inputs={"x": "root's"},
        steps=["both enter", "first", "left error", "second cancelled", "both leave error", "rescue"],
        ran=["both enter", "first", "second", "left error", "right cancelled", "both leave error", "rescue"],
        end={"x": "root's", "rescued": True, "x_is": "root's"},
    )


# -- (d) a node whose inside is a graph with an isolated scope, and an LLM call whose prompt is edited ------


async def _think(work):
    prompt = f"Say {work.board['word']}"
    answer = await work.call(Effect("llm", "model", {"messages": [{"role": "user", "content": prompt}]}))
    return {"out": answer.content}


NESTED = Shape(
    nodes=[
        leaf("before", lambda work: {"secretive": True}),
        Node("inside", "nest", bodies=("in",), params={"policy": "isolated", "given": {"word": "yes"}}),
        leaf("think", _think, scope="in"),
        leaf("look", lambda work: {"sees": sorted(work.board)}, scope="in"),
        leaf("after", lambda work: {"said": work.board["inside"][0]}),
    ],
    edges=[Edge("before", "inside"), Edge("inside", "after"), Edge("think", "look")],
    entry=("before",),
    regions=[Region("in", ("think",), owner="inside")],
    llm=lambda request: request.prompt.upper(),
    steps=["before", "inside enter", "think", "look", "inside leave", "after"],
    end={"secretive": True, "inside": ["SAY YES"], "said": "SAY YES"},
)


# -- (e) a reactive queue in which a node emits in mid-step, reads that back, then raises ------


def _greet(work):
    work.write("greeted", work.event.payload)
    seen = work.emit("greeting.done", {"to": work.event.payload})
    events = [event.id for event in work.events if event.type == "greeting.done"]
    work.write("seen", events)
    assert events[-1] == seen.id
    raise RuntimeError("after the emit")


REACTIVE = Shape(
    nodes=[
        leaf("greet", _greet, kind="keep", on=("hello",)),
        leaf(
            "count", lambda work: {"count": work.board.get("count", 0) + 1}, kind="keep", on=("hello", "greeting.done")
        ),
    ],
    edges=[],
    entry=(),
    emits=("ada", "bob"),
    # Each event goes to both listeners in turn; what greet emits is queued behind what is there.
    steps=["greet error", "count", "greet error", "count", "count", "count"],
    end={"greeted": "bob", "seen": ["evt_003", "evt_004"], "count": 4},
)


def begun(name: str) -> Run:
    """Return a run of a shape at its start, with the events that set it off."""
    from agentnb.engine.core.event_queue import emit_from_outside

    shape = shape_of(name)
    run = shape.run()
    for payload in shape.emits:
        emit_from_outside(run, "hello", payload)
    return run


def shape_of(name: str) -> Shape:
    shapes: Mapping[str, Any] = {
        "diamond": DIAMOND,
        "cycle": CYCLE,
        "branches": branches(),
        "nested": NESTED,
        "reactive": REACTIVE,
    }
    return shapes[name]


SHAPES = ("diamond", "cycle", "branches", "nested", "reactive")
