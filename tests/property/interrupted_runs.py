"""Runs that are cut and taken up; run as a program, it takes up those of the files that it is told of."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from agentnb.session import Session
from agentnb.session.reopen import reopen_run
from agentnb.store import MemoryLog, open_log
from agentnb.world.effect import Effect
from tests.engine.graph_shapes import Shape, shape_of
from tests.session.shape_sessions import LEAF, session_of

TABLES = {
    "steps": ["step", "node", "phase", "frame", "branch", "status", "inputs", "outputs", "error"],
    "writes": ["step", "node", "scope", "key", "op", "old", "new", "in_place"],
    "reads": ["step", "node", "scope", "key"],
    "edges": ["step", "source", "target", "kind", "condition", "value"],
    "calls": ["step", "node", "call", "kind", "name", "attempt", "arguments", "result", "error"],
    "events": ["seq", "step", "id", "type", "actor", "cause", "payload"],
}


def facts(session: Session) -> dict[str, Any]:
    """Return all that a run has done, but for the times."""
    frames = session.trace.frames
    return {
        "status": str(session.status),
        "board": repr(dict(session.board)),
        **{name: repr([frames[name][column].tolist() for column in columns]) for name, columns in TABLES.items()},
    }


def finished(session: Session, most: int = 60) -> Session:
    """Step a run to its end, or as far as `most` steps; one that fails is left where it failed."""
    while session.position < most:
        if session.status == "failed" or (session.step() is None and session.status != "in_flight"):
            break
    return session


def cut(log: MemoryLog, run_id: str, at: int, into: Any = None) -> Any:
    """Return a log that has the first entries of a run alone."""
    shorter = MemoryLog() if into is None else into
    shorter.create(log.run(run_id), list(log.entries(run_id, 0, at)))
    shorter.release(run_id)
    return shorter


def asking(name: str, asked: list[str]) -> Shape:
    """Return a shape in which a leaf asks twice before it works; `asked` notes each time."""
    shape, leaf = shape_of(name), LEAF[name]

    def tell(of: str) -> str:
        asked.append(of)
        return f"about {of}"

    def twice(does: Callable[..., Any]) -> Callable[..., Any]:
        async def do(work: Any) -> Any:
            answers = [await work.call(Effect("tool", "ask", {"of": f"{leaf} {n}"}, target=tell)) for n in range(2)]
            return {**does(work), "said": answers}

        return do

    nodes = [
        replace(node, params={**node.params, "do": twice(node.params["do"])}) if node.id == leaf else node
        for node in shape.nodes
    ]
    return replace(shape, nodes=nodes)


def kept_session(name: str, log: Any) -> tuple[Session, list[str]]:
    """Return a session of a shape that asks, kept in a log; and what it asks, as it does."""
    requests: list[str] = []
    session = session_of(name, asking(name, requests))
    session._parts.state._run_id = "r"
    session._parts.persistence.record_new_run(log, "step")
    return session, requests


def main() -> None:
    ends: dict[str, list[dict[str, Any]]] = {}
    for name, files in json.load(sys.stdin).items():
        ends[name] = []
        for file in files:
            requests: list[str] = []
            log = open_log(file)
            session = reopen_run(log, log.run("r"), asking(name, requests).plan())
            ends[name].append({"facts": facts(finished(session)), "asked": len(requests)})
            log.close()
    json.dump(ends, sys.stdout)


if __name__ == "__main__":
    main()
