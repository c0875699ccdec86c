"""loops: the recipes that are measured, and what is measured of them. All of it through a Session."""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from statistics import median
from typing import Any

from clocks import bytes_of, seconds_of
from peers import first, second

from agentnb.engine.core.work import Append
from agentnb.expressions.conditions import to_condition
from agentnb.recipe.model import Edge, Node, Recipe, Region
from agentnb.session import Session
from agentnb.session.state import get_state

Function = Callable[..., Any]
MANY = 1_000  # keys on a large board
MESSAGES = [{"role": "user", "content": f"message {number}"} for number in range(200)]
READ_N: Mapping[str, Any] = {"n": ("n",)}


def one() -> dict[str, int]:
    """Write an atom, read nothing."""
    return {"n": 1}


def two() -> dict[str, int]:
    """Write another one."""
    return {"m": 2}


def count(n: int) -> dict[str, int]:
    """Count on, by an argument."""
    return {"n": n + 1}


def small(board: Mapping[str, int]) -> dict[str, int]:
    """Read an atom and write one that Python has already, so that only the history grows."""
    return {"n": (board["n"] + 1) % 100}


def append(_board: Any) -> dict[str, Any]:
    """Add a message to the list."""
    return {"log": Append({"role": "user", "content": "one more"})}


def rewrite(board: Mapping[str, Any]) -> dict[str, Any]:
    """Read the whole list, and write it again with another last message."""
    return {"log": [*board["log"][:-1], {"role": "user", "content": "another"}]}


def two_nodes(a: Function, b: Function, kind: str = "function", inputs: Mapping[str, Any] | None = None) -> Recipe:
    """Return the loop a -> b -> a without an end."""
    nodes = {name: Node(name, kind, inputs=inputs, params={"function": call}) for name, call in (("a", a), ("b", b))}
    return Recipe(
        "bench", "graph", nodes, (Edge("a", "b"), Edge("b", "a")), ("a",), regions={"root": Region("root", ("a",))}
    )


def with_conditions(when: Any) -> Recipe:
    """Return the loop a -> b -> a with a condition on each edge, or with none."""
    condition = None if when is None else to_condition(when)
    recipe = two_nodes(one, two)
    return replace(recipe, edges=tuple(replace(edge, when=condition) for edge in recipe.edges))


def condition(when: Any, pairs: int = 7, steps: int = 5_000) -> float:
    """Return how many seconds longer a step takes with a condition on its edge: the median of pairs of runs."""
    guarded, bare = with_conditions(when), with_conditions(None)
    return median(run_step(guarded, board_of(2), steps) - run_step(bare, board_of(2), steps) for _ in range(pairs))


def with_a_body() -> Recipe:
    """Return a node that opens a frame for one round, again and again."""
    nodes = {
        "outer": Node("outer", "loop", bodies=("body",), params={"times": 1}),
        "inner": Node("inner", "function", scope="body", params={"function": one}),
        "next": Node("next", "function", params={"function": two}),
    }
    regions = {"root": Region("root", ("outer",)), "body": Region("body", ("inner",), owner="outer")}
    return Recipe("bench", "graph", nodes, (Edge("outer", "next"), Edge("next", "outer")), ("outer",), regions=regions)


def board_of(keys: int) -> dict[str, int]:
    """Return a first board with so many keys."""
    return {"n": 0, "m": 0} | {f"key{number}": number for number in range(keys - 2)}


def run_step(recipe: Recipe, inputs: Mapping[str, Any], steps: int = 2_000, *, armed: bool = False) -> float:
    """Return the seconds of one step of `run()`; `armed`: with a condition breakpoint and a watch, both callables."""
    session = Session(recipe, inputs)
    if armed:
        session.breakpoints.add(when=lambda board: board["n"] < 0)
        session.watch(lambda board: board["n"])
    session.run(max_steps=10)
    return seconds_of(lambda: session.run(max_steps=steps)) / steps


def growth(steps: int, chunk: int = 5_000) -> float:
    """Return how many times longer a step takes in a run of `steps` than in one of 1,000; measured side by side."""
    recipe = two_nodes(first, second)
    long, slow, fast = Session(recipe, board_of(2)), [], []
    every = max(steps // 100, chunk)
    for _ in range(0, steps, every):
        slow.append(seconds_of(lambda: long.run(max_steps=every)) / every)
        short = Session(recipe, board_of(2))
        fast.append(seconds_of(lambda short=short: short.run(max_steps=1_000)) / 1_000)  # type: ignore[misc]  # bound now
    assert long.position >= steps
    return sorted(slow)[len(slow) // 2] / sorted(fast)[len(fast) // 2]


def step_bytes(recipe: Recipe, keys: int, steps: int = 50_000) -> float:
    """Return the bytes that one step adds."""
    session = Session(recipe, board_of(keys))
    session.run(max_steps=1_000)
    return bytes_of(lambda: session.run(max_steps=steps)) / steps


def frame_bytes(frames: int = 2_000) -> float:
    """Return the bytes that entering a frame and leaving it add, with the steps around it."""
    session = Session(with_a_body(), board_of(MANY))
    session.run(max_steps=40)
    return bytes_of(lambda: session.run(max_steps=4 * frames)) / frames


class Travels:
    """One long run, made once: what going elsewhere in it takes."""

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self.session = Session(two_nodes(first, second), board_of(MANY))
        self.chance = random.Random(1)  # noqa: S311  (places to go to, the same in every run)

    def back(self, steps: int = 1_000) -> float:
        """Return the seconds of one `back()`."""
        session = self._at_the_end()

        def go() -> None:
            for _ in range(steps):
                session.back()

        return seconds_of(go) / steps

    def first_goto(self) -> float:
        """Return the seconds of the first `goto` that a session does."""
        session = Session(two_nodes(first, second), board_of(MANY))
        session.run(max_steps=self.steps // 10)
        return seconds_of(lambda: session.goto(self.chance.randrange(session.position)))

    def slowest_goto(self, places: int = 100) -> float:
        """Return the seconds of the slowest of many: each place is gone to twice, and its better time counts."""
        session, chance = self._at_the_end(), self.chance
        slowest = 0.0

        def go(place: int) -> float:
            session.goto(chance.randrange(self.steps))
            start = time.process_time()
            session.goto(place)
            return time.process_time() - start

        def go_about() -> None:
            nonlocal slowest
            for _ in range(places):
                place = chance.randrange(self.steps)
                slowest = max(slowest, min(go(place), go(place)))

        seconds_of(go_about)
        return slowest

    def fork(self, forks: int = 200) -> float:
        """Return the seconds of one `fork()` where the session stands: the median of many."""
        return self._median_fork(forks, None)

    def fork_earlier(self, forks: int = 200) -> float:
        """Return the seconds of one `fork(at=...)` at an earlier step: the median of many at the same step."""
        return self._median_fork(forks, self.steps // 2 + 100)

    def _median_fork(self, forks: int, at: int | None) -> float:
        session, seconds = self._at_the_end(), []
        gc.collect()
        gc.disable()
        try:
            for _ in range(forks):
                start = time.perf_counter()
                session.fork(at=at)
                seconds.append(time.perf_counter() - start)
        finally:
            gc.enable()
        return median(seconds)

    def _at_the_end(self) -> Session:
        if self.session.position < self.steps:
            if not get_state(self.session).run.is_rewound:
                self.session.run(max_steps=self.steps - self.session.position)
            self.session.goto(self.steps)
        gc.collect()
        return self.session
