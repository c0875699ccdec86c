"""What the killed runs run: a loop around tools, events, a subgraph and branches. Each call has a name."""

from __future__ import annotations

import hashlib
import json
import os
import random
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zlib import crc32

from agentnb.board.values import thaw
from agentnb.clock import TickingClock
from agentnb.engine.control.budget import Budget
from agentnb.engine.core.plan import Plan
from agentnb.engine.core.run import Run
from agentnb.engine.core.work import Kind, Work
from agentnb.engine.effects.dispatch import EffectDispatcher
from agentnb.kinds import KINDS
from agentnb.recipe.model import Edge, Node, Recipe, Region
from agentnb.session import Session
from agentnb.session.limits import Limits
from agentnb.session.reopen import reopen_run
from agentnb.session.session import make_session
from agentnb.store import open_log
from agentnb.world.effect import Effect
from agentnb.world.world import World
from tests.kills.progress_marks import Marks

ROUNDS = 5
PARTS = 24  # events of one step, each of them kept at once
INPUTS = {"who": "main", "n": 0, "seen": []}
TOOLS = {"search", "weigh", "count", "price", "look", "shaky"}
REPEATABLE = {"look"}


def text(of: str, size: int) -> str:
    """Return a text of some size that is the same each time, and shares nothing with that of another name."""
    return hashlib.sha256(of.encode()).hexdigest() * (size // 64)


def answer_of(call: str) -> Any:
    """Return what a call is answered, whoever asks."""
    tool = call.split("/")[1]
    return {"text": text(call, 60_000)} if tool == "search" else {tool: text(call, 2_000)}


class Tools:
    """The tools of a run. Without a folder they are quiet, and take no time.

    In a folder they write each call to `calls` as it is made, and to `answers` when it is answered.
    """

    def __init__(self, folder: Path | None = None, marks: Marks | None = None, seed: int = 0) -> None:
        self.marks, self.folder = marks, folder
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        self._files = [os.open(folder / name, flags) for name in ("calls", "answers")] if folder else []
        self._random, self._lock = random.Random(seed), threading.Lock()

    def table(self) -> dict[str, Any]:
        return {name: self._tool(name) for name in sorted(TOOLS)}

    def _tool(self, name: str) -> Any:
        def tool(who: str, n: int, chance: float = 0.0) -> Any:
            call = f"{who}/{name}/{n}"
            fails = name == "shaky" and n % 2 == 0 and self._first(call)
            if self._files:
                assert self.marks is not None
                with self.marks.calling(call):
                    os.write(self._files[0], f"{call} {chance}\n".encode())
                    with self._lock:
                        seconds = self._random.uniform(0.001, 0.007)
                    time.sleep(seconds)
            if fails:
                raise ConnectionError("come again")
            return answer_of(call)

        tool.answered = self._answered  # type: ignore[attr-defined]  # for the nodes that call it themselves
        return tool

    def _answered(self, call: str) -> None:
        if self._files:
            os.write(self._files[1], f"{call}\n".encode())

    def close(self) -> None:
        for file in self._files:
            os.close(file)

    def _first(self, call: str) -> bool:
        """Say whether a call is made for the first time, by whatever process."""
        lines = [] if self.folder is None else read_lines(self.folder / "calls")
        return self.folder is not None and not any(line.startswith(f"{call} ") for line in lines)


def read_lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


# -- nodes ---------------------------------------------------------------------------------------------------------


def _do(node: Node, world: Any) -> Any:
    return lambda work: node.params["do"](work, world)


KINDS_HERE: dict[str, Kind] = {**KINDS, "do": Kind("do", _do), "keep": Kind("keep", _do, keeps_writes=True)}


async def _tell(work: Work, world: Any) -> dict[str, Any]:
    """Emit, draw, call, emit, call: cut anywhere, it goes on with what it has done."""
    name, n = work.board["who"], work.board["n"]
    work.emit("begun", {"who": name, "n": n})
    chance, note = work.run.random.random(), work.run.ids("note")
    weighed = await _asked(work, world, "weigh", n, chance)
    for part in range(PARTS):
        work.emit("weighed", {"n": n, "part": part, "note": note, "text": text(f"{name}{n}.{part}", 24_000)})
    counted = await _asked(work, world, "count", n, work.run.random.random())
    work.emit("counted", {"n": n, "chance": chance})
    return {"chance": chance, "note": note, **weighed, **counted}


async def _price(work: Work, world: Any) -> dict[str, Any]:
    """Emit, call, emit: its events are kept with its step."""
    n = work.board["n"]
    work.emit("asks", n)
    priced = await _asked(work, world, "price", n, 0.0)
    work.emit("priced", n)
    return dict(priced)


async def _asked(work: Work, world: Any, tool: str, n: int, chance: float) -> Any:
    arguments = {"who": work.board["who"], "n": n, "chance": chance}
    answer = thaw(await work.call(Effect("tool", tool, arguments, target=world.tools[tool])))
    world.tools[tool].answered(f"{arguments['who']}/{tool}/{n}")
    return answer


def _sum(work: Work, world: Any) -> dict[str, Any]:
    board = work.board
    n = board["n"]
    changed = text("blob", 40_000)[: -40 * (n + 1)] + text(f"blob {n}", 40 * (n + 1))
    return {"n": n + 1, "seen": [*board["seen"], board["chance"]], "blob": changed, "left": None}


def _made(key: str) -> Any:
    return lambda work, world: {key: text(f"{key} {work.board['n']}", 3_000)}


def _node(name: str, do: Any, scope: str, kind: str = "do") -> Node:
    return Node(name, kind, scope=scope, params={"do": do})


def _tool(name: str, scope: str, **more: Any) -> Node:
    inputs = {"who": ("who",), "n": ("n",)}
    return Node(f"call_{name}", "tool", scope=scope, inputs=inputs, params={"function": name, **more})


def recipe(rounds: int = ROUNDS) -> Recipe:
    nodes = [
        Node("rounds", "loop", params={"times": rounds}, bodies=("round",)),
        _tool("search", "round"),
        _node("tell", _tell, "round", "keep"),
        Node("deep", "subgraph", scope="round", bodies=("deep",),
             params={"inputs": {"who": ("who",), "n": ("n",)}, "outputs": {"depth": ("shape",)}}),
        _tool("look", "deep", repeatable=True),
        _node("shape", _made("shape"), "deep"),
        Node("both", "parallel", scope="round", bodies=("left", "right")),
        _node("price", _price, "left"),
        _node("left_end", _made("left"), "left"),
        _node("right_begin", _made("right"), "right"),
        _tool("shaky", "right", attempts=2),
        _node("sum", _sum, "round"),
        _node("end", _made("end"), "root"),
    ]  # fmt: skip
    edges = [("rounds", "end"), ("call_search", "tell"), ("tell", "deep"), ("deep", "both"), ("both", "sum"),
            ("call_look", "shape"), ("price", "left_end"), ("right_begin", "call_shaky")]  # fmt: skip
    regions = [Region("root", ("rounds",)), Region("round", ("call_search",), owner="rounds"),
               Region("deep", ("call_look",), owner="deep"), Region("left", ("price",), owner="both"),
               Region("right", ("right_begin",), owner="both")]  # fmt: skip
    return Recipe("killed", "test", {node.id: node for node in nodes}, tuple(Edge(*e) for e in edges), ("rounds",),
                  regions={region.id: region for region in regions})  # fmt: skip


# -- sessions ------------------------------------------------------------------------------------------------------


def plan(tools: Tools, rounds: int = ROUNDS) -> Plan:
    return Plan(recipe(rounds), KINDS_HERE, World(tools=tools.table()))


def begin(
    tools: Tools, store: Any = None, run_id: str = "run", durability: Any = "step", rounds: int = ROUNDS
) -> Session:
    """Return a new session of the recipe, kept in a store."""
    run = Run(plan(tools, rounds), EffectDispatcher(), clock=TickingClock(), seed=11)
    run.begin(INPUTS)
    session = make_session(run, Limits(Budget()), "killed", dict(INPUTS), run_id)
    session._parts.persistence.record_new_run(store, durability)
    return session


def again(tools: Tools, store: Any, run_id: str = "run", rounds: int = ROUNDS) -> Session:
    """Return a kept session, ready to go on."""
    log = open_log(store)
    return reopen_run(log, log.run(run_id), plan(tools, rounds))


def digest(board: Mapping[str, Any]) -> str:
    checksum = size = 0
    for key, value in sorted(board.items()):
        plain = f"{key} {value if isinstance(value, str) else json.dumps(thaw(value))}\n".encode()
        checksum, size = crc32(plain, checksum), size + len(plain)
    return f"{checksum:08x}.{size}"


def here(session: Session) -> str:
    """Return the digest of the board where a session stands."""
    return digest(session._parts.run.root.scope.visible_items())


def events(session: Session) -> list[tuple[Any, ...]]:
    return [(event.seq, event.step, event.id, event.type, event.actor, event.cause, thaw(event.payload))
            for event in session.events]  # fmt: skip
