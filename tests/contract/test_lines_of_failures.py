"""A failure in the user's code names its line: in every dialect, wherever the code is called, and in every reader."""

from __future__ import annotations

import asyncio
import importlib.util
import sys
from pathlib import Path
from typing import Annotated, Any, TypedDict

import networkx as nx
import pytest
from burr.core import ApplicationBuilder, Condition, action
from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import START, StateGraph
from langgraph.types import RetryPolicy

import agentnb as nb
import agentnb.dialects.activegraph as ag
from agentnb.dialects.polaris import Graph, Out
from agentnb.dialects.symphony import AgentConfig, AgentExecutor, ToolConfig, ToolRegistry
from agentnb.dialects.table import DIALECTS
from tests.dialects.activegraph.programs_of_models import Answers

SOURCE = """\
import asyncio
import json


def parse(*args, **kwargs):
    text = "costs $12.50"
    return json.loads(text)


async def wait_and_parse(*args, **kwargs):
    await asyncio.sleep(0)
    return parse()
"""
LINE = "parsing.py:7"  # a library raises the error there
MESSAGE = "JSONDecodeError: Expecting value: line 1 column 1 (char 0)"


def write_module(folder: Path, source: str = SOURCE) -> Any:
    """Import the user's module `parsing`, written into a folder."""
    (folder / "parsing.py").write_text(source, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("parsing", folder / "parsing.py")
    assert spec is not None
    module = sys.modules["parsing"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(autouse=True)
def parsing(tmp_path, monkeypatch):
    """The user's module, in the current folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "parsing", None)
    return write_module(tmp_path)


def add(old: int, new: int) -> int:
    """Call the user's function, as a reducer."""
    return sys.modules["parsing"].parse(old, new)


# -- networkx


def _graph(**attributes: Any) -> nx.DiGraph:
    graph = nx.DiGraph(name="g")
    graph.add_node("a", **attributes)
    graph.add_node("b", kind="noop")
    graph.add_edge("a", "b")
    return graph


def networkx_function(parsing, **options):
    return nb.Session(nb.load(_graph(function=parsing.parse, inputs={})), **options)


def networkx_async_function(parsing, **options):
    return nb.Session(nb.load(_graph(function=parsing.wait_and_parse, inputs={})), **options)


def networkx_tool(parsing, **options):
    graph = _graph(kind="tool", function="parse", inputs={})
    return nb.Session(nb.load(graph), tools={"parse": parsing.parse}, **options)


def networkx_retried_tool_in_a_thread(parsing, **options):
    graph = _graph(kind="tool", function="parse", inputs={}, attempts=3, timeout=60)
    return nb.Session(nb.load(graph), tools={"parse": parsing.parse}, **options)


def networkx_condition(parsing, **options):
    graph = _graph(kind="noop")
    graph.edges["a", "b"]["when"] = parsing.parse
    return nb.Session(nb.load(graph), **options)


def networkx_reducer(parsing, **options):
    graph = _graph(function=lambda: {"k": 1}, reducers={"k": parsing.parse})
    return nb.Session(nb.load(graph), {"k": 0}, **options)


def networkx_branches(parsing, **options):
    graph = nx.DiGraph(name="g")
    graph.add_node("start", kind="noop")
    for name, function in (("a", parsing.wait_and_parse), ("b", lambda: {"b": 1})):
        graph.add_node(name, function=function, inputs={})
        graph.add_edge("start", name, kind="parallel")
    return nb.Session(nb.load(graph), **options)


# -- LangGraph


class State(TypedDict):
    text: str
    total: Annotated[int, add]


class Model(FakeMessagesListChatModel):
    """A chat model that accepts tools."""

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        return self


def _state_graph(node: Any = lambda state: {}, **options: Any) -> StateGraph:
    graph = StateGraph(State)
    graph.add_node("a", node, **options)
    graph.add_edge(START, "a")
    return graph


def _langgraph(graph: StateGraph, options: dict[str, Any]) -> nb.Session:
    return nb.Session(nb.load(graph.compile(name="g")), {"text": ""}, **options)


def langgraph_node(parsing, **options):
    return _langgraph(_state_graph(parsing.parse), options)


def langgraph_async_node(parsing, **options):
    return _langgraph(_state_graph(parsing.wait_and_parse), options)


def langgraph_retried_node(parsing, **options):
    policy = RetryPolicy(max_attempts=2, initial_interval=0.0, jitter=False, retry_on=ValueError)
    return _langgraph(_state_graph(parsing.parse, retry_policy=policy), options)


def langgraph_router(parsing, **options):
    graph = _state_graph()
    graph.add_conditional_edges("a", parsing.parse, ["a"])
    return _langgraph(graph, options)


def langgraph_reducer(parsing, **options):
    return _langgraph(_state_graph(lambda state: {"total": 1}), options)


def langgraph_subgraph(parsing, **options):
    return _langgraph(_state_graph(_state_graph(parsing.parse).compile()), options)


def langgraph_graph_in_a_function(parsing, **options):
    inner = _state_graph(parsing.parse).compile()
    return _langgraph(_state_graph(lambda state: inner.invoke({"text": ""})), options)


def langgraph_tool(parsing, **options):
    def read(text: str) -> str:
        """Read a text."""
        return parsing.parse(text)

    calls = [{"name": "read", "args": {"text": "x"}, "id": "1", "type": "tool_call"}]
    agent = create_agent(Model(responses=[AIMessage("", tool_calls=calls)]), [read])
    return nb.Session(nb.load(agent), {"messages": [HumanMessage("go")]}, **options)


# -- Burr


def _application(function: Any, options: dict[str, Any], condition: Any = None) -> nb.Session:
    a = action(reads=[], writes=["x"])(function)
    b = action(reads=[], writes=[])(lambda state: state)
    transition = ("a", "b") if condition is None else ("a", "b", Condition.lmda(condition, []))
    builder = ApplicationBuilder().with_actions(a=a, b=b).with_transitions(transition).with_entrypoint("a")
    return nb.Session(nb.load(builder.with_state(x=0).build()), **options)


def burr_action(parsing, **options):
    return _application(lambda state: parsing.parse(), options)


def burr_async_action(parsing, **options):
    async def a(state):
        return await parsing.wait_and_parse()

    return _application(a, options)


def burr_condition(parsing, **options):
    return _application(lambda state: state, options, parsing.parse)


# -- polaris


def _polaris(graph: Graph, options: dict[str, Any]) -> nb.Session:
    return nb.Session(nb.load(graph), {"builtins.int": 1}, **options)


def polaris_system(parsing, **options):
    def start(x: Out[int]) -> str:
        return parsing.parse()

    return _polaris(Graph("g").given(int).add_system(start), options)


def polaris_async_system(parsing, **options):
    async def start(x: Out[int]) -> str:
        return await parsing.wait_and_parse()

    return _polaris(Graph("g").given(int).add_system(start), options)


def polaris_predicate(parsing, **options):
    def do_nothing() -> None:
        """Stand in the branch."""

    graph = Graph("g").given(int)
    graph.add_conditional_branch("c", int, lambda x: parsing.parse(), lambda inner: inner.add_system(do_nothing))
    return _polaris(graph, options)


# -- documents


def coreason_agent(parsing, **options):
    document = {
        "metadata": {"name": "g"},
        "interface": {},
        "topology": {"entry_point": "a", "nodes": [{"id": "a", "type": "agent", "agent_ref": "one"}], "edges": []},
    }
    return nb.Session(nb.load(document), tools={"one": parsing.parse}, **options)


AGENT = """\
meta: {name: g}
state: {shape: {x: the input}}
tools: [{id: parse, kind: python, impl: "parsing.py#parse"}]
prompts: {templates: {hello: {user: hello}}}
graph:
  inputs: [x]
  outputs: [x]
  nodes: [{id: a, type: tool, uses: parse}]
  edges: []
"""


def agentruntime_tool(parsing, **options):
    file = Path(parsing.__file__).with_name("agent.yaml")
    file.write_text(AGENT, encoding="utf-8")
    return nb.Session(nb.load(file), {"x": 1}, **options)


def agentruntime_model(parsing, **options):
    text = AGENT.replace("type: tool, uses: parse", "type: llm, prompt: hello").replace("tools:", "# tools:")
    return nb.Session(nb.load(text), {"x": 1}, llm=parsing.parse, **options)


def _symphony(function: Any, options: dict[str, Any]) -> nb.Session:
    registry = ToolRegistry()
    registry.register_tool("parse", ToolConfig("parse", "parses", function))
    config = AgentConfig(name="g", description="d", task="t", tools=["parse"])
    answers = ['{"tool_name": "parse", "parameters": {}}']
    return AgentExecutor(config, llm=answers, tools=registry).session("go", **options)


def symphony_tool(parsing, **options):
    return _symphony(parsing.parse, options)


def symphony_async_tool(parsing, **options):
    return _symphony(parsing.wait_and_parse, options)


# -- activegraph


def _activegraph(behavior: Any, options: dict[str, Any], **settings: Any) -> nb.Session:
    runtime = ag.Runtime(ag.Graph(), behaviors=[behavior], **settings)
    session = nb.Session(nb.load(runtime), **options)
    session.emit("go", {})
    return session


def _do_nothing(*_: Any) -> None:
    """Handle a model's answer."""


def activegraph_behavior(parsing, **options):
    return _activegraph(ag.behavior(name="a", on=["go"])(lambda event, graph, ctx: parsing.parse()), options)


def activegraph_model(parsing, **options):
    class Provider:
        def complete(self, **words: Any) -> Any:
            return parsing.parse()

    behavior = ag.llm_behavior(name="a", on=["go"])(_do_nothing)
    return _activegraph(behavior, options, llm_provider=Provider(), llm_retry_initial_delay_seconds=0.0)


def activegraph_tool(parsing, **options):
    tool = ag.tool(name="read")(lambda args, ctx: parsing.parse())
    behavior = ag.llm_behavior(name="a", on=["go"], tools=[tool])(_do_nothing)
    return _activegraph(behavior, options, llm_provider=Answers(ag, ("", None, (("c1", "read", {}),))))


PROGRAMS = {
    name: program
    for name, program in list(globals().items())
    if name.partition("_")[0] in DIALECTS and callable(program)
}
FIRST = {name.partition("_")[0]: program for name, program in reversed(PROGRAMS.items())}


def find_error(session: nb.Session) -> str:
    return next(step.error for step in session.trace.steps if step.error is not None)


@pytest.fixture(params=FIRST.values(), ids=FIRST)
def program(request):
    """One program of each dialect."""
    return request.param


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
@pytest.mark.parametrize("way", ["run", "arun"])
def test_a_failure_names_the_line_of_the_users_code(parsing, program, way):
    session = program(parsing)
    session.run() if way == "run" else asyncio.run(session.arun())
    assert find_error(session).endswith(f" ({LINE})")
    if session.error is not None:
        assert session.error.where.endswith(f", {LINE}")


def test_it_is_in_every_text_of_the_session_and_in_its_page(parsing, program):
    session = program(parsing)
    session.run()
    (error,) = session.trace.frames.steps.error.dropna().unique()
    assert error.endswith(f"({LINE})")
    assert LINE in session.to_html()
    if session.error is not None:  # the failure of a behavior does not end the run
        assert LINE in str(session.error)
        assert LINE in session.error._repr_html_()


def test_it_is_in_a_stored_run_and_in_a_trace_that_are_opened_again(parsing, program, tmp_path):
    session = program(parsing, store=tmp_path / "runs.db", run_id="r")
    session.run()
    session.trace.to_json(tmp_path / "trace.json")
    session.close()
    for opened in (nb.open(tmp_path / "runs.db", "r"), nb.open(tmp_path / "trace.json")):
        assert find_error(opened) == find_error(session)
        assert (opened.error is None) is (session.error is None)
        assert opened.error is None or opened.error.where.endswith(f", {LINE}")
        assert LINE in opened.to_html()


def test_code_that_has_moved_is_no_divergence(program, tmp_path):
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    one = program(write_module(tmp_path / "here"))
    one.run()
    golden = nb.testing.record_golden(one, tmp_path / "golden.jsonl")
    moved = write_module(tmp_path / "there", f"# moved\n\n{SOURCE}")
    two = program(moved)
    two.run()
    assert "here" in find_error(one)
    assert "there/parsing.py:9)" in find_error(two)
    assert one.replay(recipe=two.recipe).ok
    assert nb.testing.replay_golden(two, golden).ok
    assert nb.compare(one, two).first_divergence is None
