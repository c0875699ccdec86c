"""A small project of a user, for the type checkers: mypy and pyright must accept every line as it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, assert_type

import networkx as nx

import agentnb as nb

Strictness = Literal["path", "values", "reads"]


def count(n: int) -> dict[str, int]:
    return {"n": n + 1}


def recipe() -> nb.Recipe:
    graph: nx.DiGraph[str] = nx.DiGraph(name="count")
    graph.add_node("add", function=count, inputs={"n": "n"})
    return nb.load(graph)


def summary(session: nb.Session) -> Mapping[str, Any]:
    status: str = session.status
    step: nb.SimulationStep | None = session.step()
    assert_type(session.position, int)
    assert_type(session.current, str | None)
    assert_type(session.forks, tuple[nb.Session, ...])
    return {"status": status, "node": None if step is None else step.node_id, "board": dict(session.board)}


def is_same(session: nb.Session, strict: Strictness = "values") -> bool:
    report = session.replay(strict=strict)
    return report.ok


def explore() -> list[int]:
    session = nb.Session(recipe(), {"n": 1}, budget={"max_steps": 10}, durability="step")
    session.breakpoints.add("add", side="after")
    stop = session.subscribe(lambda step: None, to="step")
    session.run(until="n > 3", max_steps=5)
    stop()
    session.back().edit({"n": 7}).goto(0)
    fork = session.fork(name="other")
    assert fork.parent is session
    return session.find("n > 1")


async def beside() -> nb.SimulationTrace:
    session = nb.Session(recipe(), {"n": 1})
    await session.astep()
    return await session.arun()
