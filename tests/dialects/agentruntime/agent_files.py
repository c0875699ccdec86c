"""Agentruntime agents for the tests, written as people write them: pieces of YAML, and tools in real files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Any

import yaml

from agentnb.clock import FrozenClock
from agentnb.dialects.agentruntime import AgentRuntime, build_agent_from_path, build_agent_from_yaml
from agentnb.errors import RecipeError
from agentnb.load import load
from agentnb.session import Session

HEAD = """
meta: {name: t}
state:
  reducer: replace
  shape: {x: the input, n: a number, log: what has run, a: any, b: any, c: any}
  init: {n: 0, log: []}
"""
TOOLS = '''
"""The tools of the tests' agents, in a file of their own."""

CALLS = []


def echo(**given):
    CALLS.append(given)
    return {"result": given, "text": str(given.get("text", "")), "items": list(given.get("items", [])), "error": None}


def add(n, by=1):
    return {"result": n + by}


def failing(**given):
    return {"error": {"type": "quota", "message": "come back tomorrow"}, "text": "half", "given": given}


def raising(**given):
    raise ValueError("it broke")
'''
LIST = """
tools:
  - {id: echo, kind: python, impl: "tools.py#echo"}
  - {id: add, kind: python, impl: "tools.py#add"}
  - {id: failing, kind: python, impl: "tools.py#failing"}
  - {id: raising, kind: python, impl: "tools.py#raising"}
"""


def text(graph: str, *more: str, head: str = HEAD, inputs: str = "[x]", outputs: str = "[log]") -> str:
    """Return an agent's YAML: its head, its tools, its graph (nodes and edges), and more sections."""
    body = dedent(graph).strip("\n").replace("\n", "\n  ")
    parts = [head, LIST, f"graph:\n  inputs: {inputs}\n  outputs: {outputs}\n  {body}\n", *map(dedent, more)]
    return "\n".join(part.strip("\n") for part in parts) + "\n"


def line(*names: str) -> str:
    """Return the nodes of these names, each of which writes its own into the log."""
    rows = [f"  - {{id: {name}, type: noop, map: {{merge: {{log: [{name}]}}}}}}" for name in names]
    return "\n".join(["nodes:", *rows])


def edges(*pairs: str) -> str:
    """Return edges, written as `a-b`."""
    edges = (pair.split("-") for pair in pairs)
    return "\n".join(["edges:", *(f"  - {{from: {source}, to: {target}}}" for source, target in edges)])


def write(folder: Path, content: str, name: str = "agent.yaml") -> Path:
    """Write an agent into a folder, with its tools beside it."""
    (folder / "tools.py").write_text(TOOLS, encoding="utf-8")
    file = folder / name
    file.write_text(content, encoding="utf-8")
    return file


@dataclass
class Ran:
    """What an agent came to: its state, the nodes of its steps, the agent, and the session that was stepped beside."""

    state: dict[str, Any]
    path: list[str]
    agent: AgentRuntime
    session: Session


def ran(folder: Path, content: str, inputs: Any = None, *, strict: bool = True, **options: Any) -> Ran:
    """Run an agent three ways, and see that they agree: from its file, from its dict, and stepped in a session.

    The session goes back to every step and on again: the boards are the same each time.
    """
    file, agent_inputs = write(folder, content), {"x": 1} if inputs is None else inputs
    agent = build_agent_from_path(file)
    state = agent.run(agent_inputs, **options)
    assert build_agent_from_yaml(yaml.safe_load(content), folder).run(agent_inputs, **options) == state
    session = stepped(file, agent_inputs, strict=strict, **options)
    assert session.status == "finished", session.error
    assert (dict(session.board), path(session.trace)) == (state, path(agent.trace))
    assert list(session.board) == list(state)
    back_and_forth(session)
    return Ran(state, path(agent.trace), agent, session)


def stepped(file: Path | str, inputs: Any, *, strict: bool = True, **options: Any) -> Session:
    """Return a session of a file, stepped to where it stops; `options` are those of `run`."""
    words = {"llm_callable": "llm", "llm_client": "llm", "tool_overrides": "tools"}
    named = {words[word]: value for word, value in options.items() if word in words}
    if "llm_callable" in options:
        named["llm"] = lambda request: options["llm_callable"](None, {"user": request.prompt})
    budget = {word: options[word] for word in ("max_steps", "max_subgraph_depth") if options.get(word) is not None}
    session = Session(load(file), inputs, budget=budget, strict_expressions=strict, clock=FrozenClock(), **named)
    while session.step() is not None:
        if session.status in {"failed", "exhausted"}:
            break
    return session


def back_and_forth(session: Session) -> None:
    """Go back through every step and on again, and in a fork from each: all boards and the end are the same."""
    tip = session.position
    seen = {number: (dict(session.goto(number).board), list(session.board)) for number in range(tip, -1, -1)}
    steps, last = path(session.goto(tip).trace), seen[tip]
    session.goto(0)
    for number in range(tip):
        assert (dict(session.board), list(session.board)) == seen[number]
        session.goto(number + 1)
    for number in range(tip + 1):
        fork = session.fork(at=number)
        assert dict(fork.board) == seen[number][0]
        if fork.status != "failed":  # there it would try again
            fork.run()
        assert (path(fork.trace), dict(fork.board), list(fork.board)) == (steps, *last)
    session.goto(tip)


def path(trace: Any) -> list[str]:
    """Return the nodes of the steps, with a mark for what was not a plain turn that went well."""
    results = []
    for step in trace.steps:
        marks = [mark for mark in (step.phase, step.status) if mark not in ("run", "ok")]
        results.append(" ".join([step.node_id, *marks]))
    return results


def problems(content: Any) -> list[tuple[str, str]]:
    """Return (code, severity) of everything that is wrong with an agent, raised or not."""
    try:
        faults = load(content).check()
    except RecipeError as error:
        faults = error.problems
    return [(problem.code, problem.severity) for problem in faults]


def codes(content: Any) -> list[str]:
    return [code for code, _ in problems(content)]
