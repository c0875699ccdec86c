"""Whoever calls code of a user: what a generator function, or a coroutine that nobody awaits, is told."""

import asyncio
from functools import partial

import networkx as nx
import pytest

import agentnb as nb
from agentnb.dialects import activegraph, polaris, symphony
from agentnb.errors import AgentNbError


def yields(*_given, **_words):
    yield 1


async def yields_later(*_given, **_words):
    yield 1


async def later(*_given, **_words):
    return 1


class Yields:
    def __call__(self, *_given, **_words):
        yield 1


def session_of(kind, function, **options):
    graph = nx.DiGraph()
    graph.add_node("a", kind=kind, **({} if function is None else {"function": function}))
    return nb.Session(nb.load(graph), **options)


def as_function(function):
    return session_of("function", function)


def as_tool(function):
    return session_of("tool", function)


def as_tool_by_name(function):
    return session_of("tool", "a", tools={"a": function})


def as_agent(function):
    return session_of("agent", None, tools={"a": function})


def as_model(function):
    return session_of("agent", None, llm=function)


def as_tool_of_an_agent(function):
    config = symphony.AgentConfig(name="A", tools=["t"])
    return symphony.AgentExecutor(config, llm=['{"tool_name": "t", "parameters": {}}'], tools={"t": function}).session(
        "go"
    )


def as_handler(function):
    return symphony.ToolConfig("t", handler=function).of(None, symphony.ToolConfig("t", handler=function))


def as_system(function):
    return nb.Session(nb.load(polaris.Graph().add_system(function)))


def as_condition(function):
    graph = nx.DiGraph()
    graph.add_node("a", function=lambda: 1)
    graph.add_node("b", function=lambda: 2)
    graph.add_edge("a", "b", when=function)
    return nb.Session(nb.load(graph))


def as_predicate(function):
    def one() -> int:
        return 1

    return nb.Session(nb.load(polaris.Graph().add_system(one).add_conditional_branch("ask", int, function, one)))


def as_listener(function):
    return as_function(lambda: 1).subscribe(function)


def as_hook(function):
    return polaris.HooksAPI().register("OnSystemStart", "odd", function)


def as_provider(function):
    return polaris.HooksAPI().register_provider("OnSystemStart", "odd", function)


def as_behavior(function):
    return activegraph.Behavior("odd", function)


def as_tool_of_a_behavior(function):
    return activegraph.Tool("odd", function)


CALLERS = [value for name, value in globals().items() if name.startswith("as_")]


@pytest.mark.parametrize(
    "function", [yields, yields_later, partial(yields), Yields()], ids=["yields", "later", "partial", "object"]
)
@pytest.mark.parametrize("caller", CALLERS)
def test_a_generator_function_is_refused_before_anything_runs(caller, function):
    with pytest.raises(AgentNbError) as caught:
        caller(function)
    problem = caught.value.problems[0]
    assert "generator" in f"{problem.what} {problem.why}"


RUN = [as_function, as_tool, as_tool_by_name, as_agent, as_model, as_condition]


@pytest.mark.parametrize("made", [yields, yields_later])
@pytest.mark.parametrize("caller", RUN)
def test_a_generator_that_a_call_returns_fails_the_node(caller, made):
    session = caller(lambda *_given, **_words: made())
    session.run()
    assert session.status == "failed"
    assert "generator" in str(session.error)
    assert "['a'" in session.error.where  # of the node, or of its edge
    assert "a" not in session.board or caller is as_condition


@pytest.mark.parametrize("made", [yields, yields_later, later])
def test_a_generator_inside_the_result_of_a_tool_is_a_failure(made):
    async def main():
        agent = as_tool_of_an_agent(lambda: {"rows": made()})
        await agent.arun()
        return agent

    session = asyncio.run(main())
    (tool,) = session.board["tools_executed"]
    assert not tool["success"]
    assert "which has not run" in tool["error"]


@pytest.mark.parametrize("made", [yields, yields_later, later])
def test_a_generator_that_a_system_returns_is_a_failure(made):
    def system():
        return [made()]

    session = as_system(system)
    session.run()
    assert (session.status, session.error.code) == ("failed", "X468")


@pytest.mark.parametrize("made", [yields, yields_later, later])
def test_a_generator_that_a_behavior_returns_is_a_failure(made):
    behavior = activegraph.Behavior("odd", lambda event, graph, ctx: made(), on=["goal.created"])
    runtime = activegraph.Runtime(activegraph.Graph(), behaviors=[behavior])
    runtime.run_goal("go")
    (failed,) = [event for event in runtime.graph.events if event.type == "behavior.failed"]
    assert "which has not run" in failed.payload["message"]


@pytest.mark.parametrize("made", [yields, later])
def test_a_listener_that_returns_a_generator_is_removed_with_a_warning(made):
    session = as_function(lambda: 1)
    session.subscribe(lambda step: made())
    with pytest.warns(UserWarning, match="a listener of 'step' raised TypeError and was removed: it returned a"):
        session.run()
    assert session.status == "finished"


@pytest.mark.parametrize("caller", [as_function, as_tool, as_tool_by_name, as_agent, as_model])
def test_a_coroutine_that_a_plain_callable_returns_is_awaited(caller):
    for function in (lambda *_given, **_words: later(), partial(later)):
        session = caller(function)
        session.run()
        assert (session.status, session.board["a"]) == ("finished", 1)
