"""What was paid for is in the log, once, and is not repeated: whatever cuts a step, and wherever the run goes on."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentnb.clock import FrozenClock
from agentnb.dialects.activegraph import Runtime, Tool
from agentnb.dialects.polaris import Graph, Out, system
from agentnb.dialects.symphony import AgentConfig, AgentExecutor, ToolConfig, ToolRegistry
from agentnb.load import load
from agentnb.recipe.model import Edge, Node, Recipe
from agentnb.session import Session
from agentnb.session.reopen import open_stored
from agentnb.store import MemoryLog
from agentnb.world.llm.base import LLMError, LLMResponse, Usage
from tests.dialects.activegraph.runtimes import runtime, thinking, types
from tests.dialects.coreason.recipe_texts import agent, content
from tests.session.gated_nodes import live

PAID = ("llm", "tool", "system", "agent")


class World:
    """A model and tools that count their calls; some calls fail, at some the process is interrupted or stopped.

    Each call takes a second of the run's own clock. Answers are numbered by the calls that came back, so that a run
    that is cut is given the same ones as a run that is not.
    """

    def __init__(self, trouble: list[str]) -> None:
        self.trouble, self.made = list(trouble), Counter[str]()
        self.back = self.out = 0
        self.clock = FrozenClock()
        self.answer: Callable[[Any, int], Any] = lambda _, number: f"answer {number}"
        self.agrees = False  # samples that differ are a failure of their node

    def called(self, name: str) -> int:
        """Count a call, let its time pass, and return its number."""
        self.made[name] += 1
        event = self.trouble.pop(0) if self.trouble else "fine"
        if event == "interrupt":
            raise KeyboardInterrupt
        self.back += 1
        FrozenClock.__init__(self.clock, self.clock.at + timedelta(seconds=1))
        if event == "fails":
            raise LLMError("busy", is_retryable=True)
        return self.back

    def model(self, request: Any) -> Any:
        number = self.called("llm")
        return LLMResponse(self.answer(request, number), usage=Usage(3, 2, 0.5))

    async def slow_model(self, request: Any) -> Any:
        """Answer after some turns of the loop."""
        answer = self.model(request)
        self.out += 1
        for _ in range(3):
            await asyncio.sleep(0)
        return answer

    def tools(self, recipe: Any) -> Any:
        """Return the tools that a recipe names, bound to this world."""
        return {name: getattr(self, name) for name in recipe.tools if hasattr(self, name)} or None

    def look(self, word: str = "") -> Any:
        return f"found {word} {self.called('tool')}"

    def look_up(self, word: str = "", **_: Any) -> Any:
        """Answer as a tool of agentruntime does."""
        return {"text": self.look(word), "error": None}


def sampling(world: World) -> Any:
    world.agrees, world.answer = True, lambda _, __: {"a": 1}
    solver = {"strategy": "ensemble", "n_samples": 5}
    plan = Node("plan", "generative", params={"goal": "g", "schema": {"type": "object"}, "solver": solver})
    last = Node("last", "noop")
    return Recipe("sampling", "test", {"plan": plan, "last": last}, (Edge("plan", "last"),), ("plan",))


def retrying(world: World) -> Any:
    graph = nx.DiGraph(name="retrying", entry="ask", inputs={"word": {"default": "rain"}})
    graph.add_node("ask", kind="agent", attempts=4, prompt="about {{ word }}")
    graph.add_node("look", kind="tool", function=world.look, inputs={"word": "word"}, attempts=4)
    graph.add_edge("ask", "look")
    return load(graph)


def coming_back(world: World) -> Any:
    async def again(board: Any) -> Any:
        return {"n": board["n"] + 1}

    graph = nx.DiGraph(name="coming back", entry="ask", inputs={"n": {"default": 0}})
    graph.add_node("ask", kind="agent", attempts=3, prompt="the same each time")
    graph.add_node("look", kind="tool", function=world.look, attempts=3)
    graph.add_node("again", function=again)
    graph.add_edge("ask", "look")
    graph.add_edge("look", "again")
    graph.add_edge("again", "ask", when="n < 3")
    return load(graph)


def branching(world: World) -> Any:
    graph = nx.MultiDiGraph(name="branching", entry="begin")
    graph.add_node("begin", kind="noop")
    graph.add_node("join", kind="join")
    for name in ("left", "right"):
        graph.add_node(name, kind="agent", attempts=3, prompt=name)
        graph.add_edge("begin", name, kind="parallel")
        graph.add_edge(name, "join")
    return load(graph)


def agent_with_tools(world: World) -> Any:
    """Return an agent of symphony that calls its tool twice and then answers."""

    def decide(_: Any, number: int) -> Any:
        if number > 4:
            return json.dumps({"tool_name": "none", "response": f"answer {number}"})
        return json.dumps({"tool_name": "look", "parameters": {"word": f"w{number}"}})

    world.answer = decide
    tools = ToolRegistry()
    tools.register_tool("look", ToolConfig("look", "finds a word", lambda given: world.look(given["word"])))
    config = AgentConfig(name="Helper", task="Help people", tools=["look"], max_calls=4)
    return AgentExecutor(config, llm=world.model, tools=tools).recipe


def routing(world: World) -> Any:
    """Return an agent of agentruntime whose model and tool are asked in a loop."""
    return load("""
meta: {name: t, defaults: {retry: {max_attempts: 3, backoff: 0.5}}}
state: {reducer: replace, shape: {n: a number, a: any, b: any}, init: {n: 0}}
tools: [{id: look_up, kind: python, impl: "tools.py#look_up"}]
prompts: {templates: {ask: {user: "round {{ state.n }}"}}}
graph:
  inputs: [x]
  outputs: [a, b]
  nodes:
    - {id: begin, type: noop}
    - {id: ask, type: llm, prompt: ask, map: {set: {a: "{{ result.text }}"}}}
    - {id: look, type: tool, uses: look_up, inputs: {word: "{{ state.a }}"}, map: {set: {b: "{{ result.text }}"}}}
    - {id: count, type: noop, map: {merge: {n: "{{ state.n + 1 }}"}}}
    - {id: again, type: router, cases: [{when: {"<": [{var: state.n}, 3]}, to: ask}], default: done}
    - {id: done, type: noop}
  edges:
    - {from: begin, to: ask}
    - {from: ask, to: look}
    - {from: look, to: count}
    - {from: count, to: again}
""")


@dataclass
class Found:
    """What the systems of a polaris graph hand on."""

    words: list[str]


def looping(world: World) -> Any:
    """Return a graph of polaris that calls a system in a loop, and tries it again where it fails."""

    def begin() -> Found:
        return Found([f"begun {world.called('system')}"])

    def search(found: Out[Found]) -> Found:
        return Found([*found.words, f"found {world.called('system')}"])

    def body(inner: Graph) -> None:
        inner.add_system(system(search)).set_retry("search", 3, 0.5)

    graph = Graph("looping").add_system(system(begin))
    graph.add_loop("again", Found, lambda found: len(found.words) >= 4, body)
    return load(graph)


def judging(world: World) -> Any:
    """Return a writer of coreason whose drafts the model judges and sends back."""

    def answer(request: Any, number: int) -> Any:
        judges = "Answer with JSON alone" in str(request.messages)
        return json.dumps({"score": 0.01 * number, "critique": f"only {number}"}) if judges else f"draft {number}"

    world.answer = answer
    judge = {"id": "judge", "type": "evaluator", "target_variable": "output", "evaluator_agent_ref": "critic",
             "evaluation_profile": "good prose", "pass_threshold": 0.8, "max_refinements": 2, "pass_route": "publish",
             "fail_route": "write", "feedback_variable": "critique"}  # fmt: skip
    nodes = [agent("write", inputs_map={"note": "critique"}), judge, agent("publish")]
    return load(content(nodes, [("write", "judge")]))


RECIPES = [sampling, retrying, coming_back, branching, agent_with_tools, routing, looping, judging]
troubles = st.lists(st.sampled_from(["fine", "fine", "fails", "interrupt"]), max_size=9)
budgets = st.lists(st.fixed_dictionaries({}, optional={
    "max_llm_calls": st.integers(0, 8), "max_tool_calls": st.integers(0, 8), "max_tokens": st.integers(0, 40),
    "max_cost_usd": st.integers(0, 8), "max_seconds": st.integers(0, 8),
}), max_size=4)  # fmt: skip
UNLIMITED = {"max_llm_calls": None, "max_tool_calls": None, "max_tokens": None, "max_cost_usd": None,
             "max_seconds": None}  # fmt: skip


def check_log(session: Session, world: World) -> None:
    """Check that the log has each call that was made, once."""
    calls, events = session.trace.frames.calls, session.trace.frames.events
    kinds_count = Counter(calls.kind[calls.kind.isin(PAID)].astype(str))
    assert kinds_count == world.made
    committed = calls[calls.step.notna()]
    assert not committed.duplicated(["step", "node", "call", "attempt"]).any()
    answers = calls.result[calls.error.isna()].map(str)
    assert world.agrees or answers.is_unique
    used = session.status.used
    assert (used["max_llm_calls"], used["max_tool_calls"]) == (world.made["llm"], world.made["tool"])
    assert events.id.is_unique


def log_of(kept: str, folder: str) -> Any:
    """Return where a run is kept."""
    return {"nowhere": None, "memory": MemoryLog(), "sqlite": Path(folder) / "runs.db"}[kept]


def started(make: Callable[[World], Any], world: World, **options: Any) -> Session:
    recipe = make(world)
    inputs = {name: "go" for name in ("x", "task") if name in recipe.inputs}
    return Session(recipe, inputs, llm=world.model, tools=world.tools(recipe), clock=world.clock, **options)


def reopened(session: Session, world: World, log: Any) -> Session:
    """Return a session of the same run, as another process opens it."""
    session.close()
    recipe = session.recipe
    reopened = open_stored(log, session.run_id, recipe=recipe, llm=world.model, tools=world.tools(recipe))
    world.clock = reopened._parts.run.clock
    return reopened


def without_times(value: Any) -> Any:
    """Return what is on a board without when it happened: a run that was cut is later."""
    if isinstance(value, Mapping):
        return {key: without_times(item) for key, item in value.items() if not isinstance(item, datetime)}
    return [without_times(item) for item in value] if isinstance(value, list | tuple) else value


def end_of(session: Session) -> Any:
    return [(step.node_id, step.phase, step.status) for step in session.trace.steps], without_times(dict(session.board))


def uncut(make: Callable[[World], Any], trouble: list[str]) -> Any:
    """Return the end of a run in which the same calls fail, and that nothing cuts."""
    session = started(make, World([event for event in trouble if event != "interrupt"]))
    while session.run() is not None and session.status != "finished":
        session.retry()
    return end_of(session)


@given(st.sampled_from(RECIPES), troubles, budgets, st.lists(st.booleans(), min_size=12, max_size=12),
       st.sampled_from(["nowhere", "memory", "sqlite"]))  # fmt: skip
def test_each_call_is_recorded_once(make, trouble, limits, reopens, kept):
    world = World(trouble)
    with TemporaryDirectory() as folder:
        log = log_of(kept, folder)
        session = started(make, world, budget=limits[0] if limits else None, store=log)
        rest, failed = limits[1:], 0
        for reopen in [*reopens, *[False] * 12]:
            try:
                if session.status == "failed":
                    failed += 1
                    session.retry()
                session.run()
            except KeyboardInterrupt:
                assert session.status in ("paused", "exhausted", "ready", "failed")
            if log is not None and reopen:
                session = reopened(session, world, log)
            check_log(session, world)
            if session.status == "finished":
                break
            if session.status in ("exhausted", "failed"):
                session.set_budget(**{**UNLIMITED, **(rest.pop(0) if rest else {})})
        assert session.status == "finished"
        errors = session.trace.frames.calls.error.dropna()
        interrupted, fails = errors.str.startswith("CancelledError").sum(), len(errors)
        assert failed or fails == interrupted + trouble[: world.made.total()].count("fails")
        assert end_of(session) == uncut(make, trouble)
        assert session.replay().ok
        session.close()


@given(
    st.sampled_from([sampling, coming_back, branching, judging]), st.lists(st.integers(1, 6), max_size=4), st.booleans()
)
def test_a_stop_in_the_middle_of_a_step_loses_nothing(make, stops, kept):
    world = World([])
    recipe, log = make(world), MemoryLog() if kept else None

    async def main():
        session = Session(recipe, llm=world.slow_model, store=log)
        for calls in stops:
            end = world.out + calls
            session.start()
            while session._parts.state.runs_in_background and world.out < end:  # noqa: ASYNC110  (turn by turn, to stop in the middle)
                await asyncio.sleep(0)
            session.stop()
            check_log(session, world)
            if kept:
                session.close()
                session = open_stored(log, session.run_id, recipe=recipe, llm=world.slow_model)
                check_log(session, world)
        session.start()
        await session.wait()
        assert session.status == "finished"
        check_log(session, world)
        assert session.trace.frames.calls.step.notna().all()
        assert session.replay().ok

    live(main)


@pytest.mark.parametrize("again", ["in this process", "reopened"])
@pytest.mark.parametrize("interrupted", [1, 2, 3])
def test_a_model_and_tool_loop_inside_one_step_repeats_no_call(interrupted, again, tmp_path):
    world = World([])
    asks = [(text, None, ((text, "look", {}),)) for text in ("first", "second")]
    tool = Tool("look", lambda args, ctx: {"n": world.called("tool")})
    behaviors, options = thinking(*asks, ("done", None, ()), tools=[tool])
    complete = options["llm_provider"].complete

    def answer(**words: Any) -> Any:
        world.trouble = ["interrupt"] if world.made["llm"] == interrupted - 1 else []
        world.called("llm")
        return complete(**words)

    options["llm_provider"].complete = answer
    team = runtime(*behaviors, persist_to=tmp_path / "a.db", **options)
    with pytest.raises(KeyboardInterrupt):
        team.run_goal("go")
    check_log(team.session, world)
    if again == "reopened":
        team.session.close()
        team = Runtime.load(tmp_path / "a.db", behaviors=behaviors, **options)
    team.run_until_idle()
    assert world.made == {"llm": 4, "tool": 2}
    check_log(team.session, world)
    assert (types(team)[-1], team.errors, team.replay().ok) == ("thought", [], True)
