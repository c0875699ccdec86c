"""Random small networkx recipes whose behavior a naive model can predict."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import networkx as nx
from hypothesis import strategies as st

import agentnb as nb

KEYS = ("a", "b", "c", "d", "e")
INPUTS = dict(zip(KEYS, (3, 5, 7, 11, 13), strict=True))
MOST_STEPS = 40


class Line(NamedTuple):
    """A node: the keys it reads, the key it writes, and an edge taken while `asks` is below 50 (or none)."""

    reads: tuple[str, ...]
    writes: str
    asks: str | None
    target: int
    by_board: bool


class Program(NamedTuple):
    lines: tuple[Line, ...]

    def recipe(self, change: int | None = None) -> Any:
        """Return the recipe; the node `change` computes another value."""
        graph = nx.MultiDiGraph(name="program", entry="n0")
        for number, line in enumerate(self.lines):
            extra = 1 if number == change else 0
            if line.by_board:
                graph.add_node(f"n{number}", function=by_board(number, line, extra))
            else:
                graph.add_node(f"n{number}", function=by_arguments(number, line, extra),
                               inputs={key: key for key in line.reads})  # fmt: skip
        for number, line in enumerate(self.lines):
            if line.asks is not None:
                graph.add_edge(f"n{number}", f"n{line.target}", when=f"{line.asks} < 50")
            if number + 1 < len(self.lines):
                graph.add_edge(f"n{number}", f"n{number + 1}")
        return nb.load(graph)

    def session(self, inputs: Mapping[str, int] = INPUTS, change: int | None = None) -> nb.Session:
        session = nb.Session(self.recipe(change), inputs)
        session.run(max_steps=MOST_STEPS)
        return session


def value(number: int, line: Line, found: Mapping[str, int], extra: int) -> int:
    return (sum((at + 2) * found[key] for at, key in enumerate(line.reads)) + 17 * number + 1 + extra) % 97


def by_arguments(number: int, line: Line, extra: int) -> Any:
    return lambda **found: {line.writes: value(number, line, found, extra)}


def by_board(number: int, line: Line, extra: int) -> Any:
    return lambda board: {line.writes: value(number, line, {key: board[key] for key in line.reads}, extra)}


def lines(branches: bool) -> st.SearchStrategy[Line]:
    key = st.sampled_from(KEYS)
    asks = st.one_of(st.none(), key) if branches else st.none()
    reads = st.lists(key, unique=True, max_size=2).map(tuple)
    return st.builds(Line, reads, key, asks, st.integers(0, 7), st.booleans())


@st.composite
def programs(draw: Any, branches: bool = True) -> Program:
    program_lines = draw(st.lists(lines(branches), min_size=2, max_size=7))
    return Program(tuple(line._replace(target=line.target % len(program_lines)) for line in program_lines))
