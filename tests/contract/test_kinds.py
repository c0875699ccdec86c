"""One suite for every kind of the table: each can be loaded, drawn, bound, stepped, taken back and run again."""

from __future__ import annotations

from types import MappingProxyType

import networkx as nx
import pytest

from agentnb.clock import FrozenClock
from agentnb.dialects.symphony import AgentExecutor
from agentnb.engine.core.work import Kind
from agentnb.kinds import KINDS
from agentnb.kinds.agent import ASKING
from agentnb.kinds.typed_values import TypedCondition
from agentnb.load import load
from agentnb.recipe.agent_expansion import WHOLE
from agentnb.recipe.model import Edge, Node, Recipe, Region
from agentnb.session import Session
from agentnb.store import MemoryLog
from agentnb.trace.steps import StepType
from agentnb.world.agents import Agent
from agentnb.world.tools.registry import ToolRegistry
from tests.session.small_sessions import boards, graph, path

INSIDE = {"loop", "subgraph"}
ATTRIBUTES = {
    "agent": {"inputs": {"word": "word"}},
    "decision": {},
    "evaluator": {"target": "word", "threshold": 0, "pass_route": "end"},
    "function": {"function": lambda board: {"out": board["word"]}},
    "generative": {"goal": "Name it", "schema": {"type": "object", "properties": {"name": {"type": "string"}}}},
    "human": {"prompt": "Go on?"},
    "join": {},
    "llm": {"prompt": (("user", "What is {{ word }}?"),)},
    "loop": {"graph": graph("inner"), "times": 2},
    "noop": {},
    "parallel": {},
    "router": {"input_key": "word", "default": "end"},
    "subgraph": {"graph": graph("inner")},
    "switch": {},
    "system": {"function": lambda: "hello", "takes": (), "gives": (str,), "keys": {str: "text"}},
    "tool": {"function": lambda: "found"},
}
RUNNABLE = {"perform": lambda work: {"out": work.board["word"]}}
CALL = {"kind": "tool", "tool_name": "find", "parameters": {"n": 1}}
PARTS = {  # of an agent or of a dialect: its parameters, and what stands on the board
    "runnable": (RUNNABLE, {"word": "hello"}),
    "chat": ({}, {"request": {"messages": [{"role": "user", "content": "go"}]}}),
    "parse": ({}, {"answer": '{"tool_name": "none", "response": "x"}'}),
    "pick": ({"tools": ("find",)}, {"decision": CALL}),
    "prompt": ({"compose": lambda config, tools: f"{config} {tools}", "config": {}, "tools": ()}, {}),
    "use": ({}, {"decision": CALL}),
}
BUILT = {  # no networkx graph is written so
    "parallel": {},
    "decision": {"predicate": TypedCondition("asks", str, "word", bool), "branches": {"true": "one"}},
    "switch": {"discriminator": TypedCondition("asks", str, "word", len), "cases": ((5, "one"),)},
}
# They run when an event comes, and never of themselves: tests/kinds has them, one by one.
REACTIVE = {"behavior", "llm_behavior", "relation_behavior"}
FAILING = {"missing"}  # that it fails is all that it does


def recipe_of(kind):
    if kind in FAILING:
        nodes = {"here": Node("here", kind), "end": Node("end", "noop")}
        return Recipe("kinds", "test", nodes, (), ("here",))
    if kind == "task":
        built_graph = nx.DiGraph(name="kinds")
        built_graph.add_node("here", function=AgentExecutor({"name": "A"}, llm=lambda _: "x"), inputs={"task": "word"})
        built_graph.add_node("end", kind="noop")
        built_graph.add_edge("here", "end")
        return load(built_graph)
    if kind in PARTS:
        params, init = PARTS[kind]
        registry = ToolRegistry()
        registry.register_tool("find", {"handler": lambda given: given})
        nodes = {"here": Node("here", kind, params=params), "end": Node("end", "noop")}
        meta = {"agents": {WHOLE: Agent(tools=registry)}}
        return Recipe("kinds", "test", nodes, (Edge("here", "end"),), ("here",), init=init, meta=meta)
    if kind in BUILT:
        nodes = {
            "here": Node("here", kind, bodies=("one",), params=BUILT[kind]),
            "inner": Node("inner", "noop", scope="one"),
            "end": Node("end", "noop"),
        }
        regions = {"root": Region("root", ("here",)), "one": Region("one", ("inner",), owner="here")}
        return Recipe("kinds", "test", nodes, (Edge("here", "end"),), ("here",), regions=regions)
    built_graph = nx.DiGraph(name="kinds")
    built_graph.add_node("here", kind=kind, **ATTRIBUTES[kind])
    built_graph.add_node("end", kind="noop")
    built_graph.add_edge("here", "end")
    return load(built_graph)


@pytest.fixture(params=sorted(KINDS.keys() - REACTIVE))
def kind(request):
    return request.param


def session_of(kind):
    return Session(recipe_of(kind), {"word": "hello"}, answers={"here": "yes"}, clock=FrozenClock())


def test_every_kind_has_an_example():
    assert set(ATTRIBUTES) | set(PARTS) | {"task"} | FAILING | REACTIVE == set(KINDS)


def test_the_table_cannot_be_changed_and_each_row_has_its_own_name(kind):
    assert isinstance(KINDS, MappingProxyType)
    row = KINDS[kind]
    assert isinstance(row, Kind)
    assert row.name == kind
    assert StepType[row.step_type]


def test_it_can_be_drawn(kind):
    recipe = recipe_of(kind)
    assert "here" in recipe.draw().dot


def test_it_runs_to_the_end(kind):
    run = session_of(kind)
    run.run()
    if kind in FAILING:
        assert (run.status, run.current) == ("failed", "here")
        return
    assert (run.status, run.trace.steps[-1].node_id) == ("finished", "end")
    assert run.trace.steps[0].type is StepType[KINDS[kind].step_type]
    assert run.trace.steps[0].kind == kind


def test_a_composite_node_enters_and_leaves_and_a_leaf_runs(kind):
    run = session_of(kind)
    run.run()
    agent = ["here/system_prompt", "here/request", "here/llm", "here/result"]
    inside = {"missing": ["here error"],
              "task": ["here enter", *agent, "here leave", "end"],
              "loop": ["here enter", "inner", "here again", "inner", "here leave", "end"],
              **{built: ["here enter", "inner", "here leave", "end"] for built in BUILT},
              "subgraph": ["here enter", "inner", "here leave", "end"]}  # fmt: skip
    assert path(run) == inside.get(kind, ["here", "end"])


def test_going_back_shows_the_boards_again_and_running_again_ends_the_same(kind):
    run = session_of(kind)
    seen = boards(run)
    for k in reversed(range(run.position)):
        assert dict(run.goto(k).board) == seen[k]
    steps, end = path(run.goto(run._parts.run.history.tip)), dict(run.board)
    for k in range(len(steps)):
        run.goto(k).run()
        assert (path(run), dict(run.board)) == (steps, end)
        run.goto(k)


def test_its_steps_are_rows_of_the_trace(kind):
    run = session_of(kind)
    run.run()
    frame = run.trace.frames.steps
    assert frame["kind"].iloc[0] == kind
    assert frame["status"].iloc[0] == ("error" if kind in FAILING else "ok")


@pytest.mark.parametrize("llm", [None, {"here": [{"name": "a", "score": 1}]}], ids=["nobody", "script"])
@pytest.mark.parametrize("kind", sorted(ASKING))
def test_a_simulated_answer_is_stored_with_its_step_and_not_before(kind, llm):
    log = MemoryLog()
    run = Session(recipe_of(kind), {"word": "a"}, llm=llm, store=log, run_id="run", validate_inputs=False)
    run.run()
    assert (run.status, len(run.trace.frames.calls)) == ("finished", 1)
    assert log.last("run") == 1 + run.position


def test_a_real_call_is_stored_when_it_is_sent_and_when_it_is_answered():
    log = MemoryLog()
    run = Session(recipe_of("tool"), {"word": "a"}, store=log, run_id="run")
    run.run()
    assert log.last("run") == 1 + run.position + 2
