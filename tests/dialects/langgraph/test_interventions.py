"""What a person does to a run of a graph, and what LangGraph does when a thread is continued, as the judge."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.runnables import RunnableConfig  # noqa: TC002  (LangGraph reads the annotations)
from langgraph.cache.memory import InMemoryCache
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime  # noqa: TC002  (LangGraph reads the annotations)
from langgraph.types import CachePolicy, Command, Send, interrupt

import agentnb as nb
from agentnb.dialects.langgraph.api import load_graph
from agentnb.errors import ExecutionError

THREAD: Any = {"configurable": {"thread_id": "1"}}


class State(TypedDict, total=False):
    calls: list
    out: Annotated[list, operator.add]


def agent(state):
    return {"calls": ["planned"]}


def tool(state):
    return {"out": [state.get("arg", "asked")]}


def last(state):
    return {"out": [f"{len(state['out'])} before"]}


def sends(state):
    return [Send("tool", {"arg": word}) for word in state["calls"]]


def routes(state):
    return "tool" if "b" in state["calls"] else END


def graph_of(path: Any, *, agent: Any = agent, cached: bool = False) -> Any:
    graph = StateGraph(State)
    graph.add_node("agent", agent, cache_policy=CachePolicy() if cached else None)
    graph.add_node("tool", tool)
    graph.add_node("last", last)
    graph.add_edge(START, "agent")
    graph.add_conditional_edges("agent", path, ["tool", END])
    graph.add_edge("tool", "last")
    return graph


def continued(graph, writes, **options):
    """Return what LangGraph's thread ends with if a person writes what the node `agent` should have written."""
    compiled = graph.compile(checkpointer=InMemorySaver(), interrupt_before=["agent"], **options)
    compiled.invoke({"calls": []}, THREAD)
    compiled.update_state(THREAD, writes, as_node="agent")
    return compiled.invoke(None, THREAD)


@pytest.mark.parametrize("path", [sends, routes])
@pytest.mark.parametrize("calls", [["b"], ["b", "c"], ["x"], []])
@pytest.mark.parametrize("cached", [False, True])
def test_conditional_edges_of_a_skipped_node_choose_by_the_writes_given_for_it(path, calls, cached):
    options = {"cache": InMemoryCache()} if cached else {}
    graph = graph_of(path, cached=cached)
    session = nb.Session(nb.load(graph.compile(**options)), {"calls": []})
    session.skip({"calls": calls})
    session.run()
    assert dict(session.board) == continued(graph, {"calls": calls}, **options)
    assert [step.node_id for step in session.trace.steps].count("agent") == 1
    assert session.replay().ok


def test_conditional_edges_of_a_skipped_start_or_subgraph_do_the_same():
    inner = StateGraph(State)
    inner.add_node("agent", agent)
    inner.add_edge(START, "agent")
    graph = graph_of(sends, agent=inner.compile())
    session = nb.Session(nb.load(graph), {"calls": []})
    session.skip({"calls": ["b"]})
    session.run()
    assert session.board["out"] == ["b", "1 before"]
    start = StateGraph(State)
    start.add_node("tool", tool)
    start.add_conditional_edges(START, routes, ["tool", END])
    session = nb.Session(nb.load(start), {"calls": ["a"]})
    session.skip({"calls": ["b"]})
    session.run()
    assert session.board["out"] == ["asked"]


def test_conditional_edges_of_a_skipped_node_see_its_first_attempt():
    attempts = []

    def choose(state, runtime: Runtime):
        attempts.append(runtime.execution_info.node_attempt)
        return END

    session = nb.Session(nb.load(graph_of(choose)), {"calls": []})
    session.skip({"calls": ["b"]})
    assert attempts == [1]


async def awaited(state):
    return END


def asking(state):
    return interrupt("where to?")


def failing(state):
    raise ValueError("lost")


@pytest.mark.parametrize(("path", "why"), [(awaited, "async"), (asking, "a person"), (failing, "ValueError: lost")])
def test_a_node_is_not_skipped_if_its_conditional_edges_then_fail(path, why):
    session = nb.Session(nb.load(graph_of(path)), {"calls": []})
    with pytest.raises(ExecutionError, match="L587") as refused:
        session.skip({"calls": ["b"]})
    assert why in refused.value.problems[0].why
    assert (session.position, dict(session.board)) == (0, {"calls": [], "out": []})


def asks_once() -> Any:
    """Return a node that asks when it is called first, and not after that."""
    called: list[int] = []

    def flaky(state):
        called.append(1)
        return {"out": [interrupt("why?") if len(called) == 1 else "fine"]}

    return flaky


def test_a_waiting_node_runs_again_without_an_answer_as_after_invoke_none():
    graph = StateGraph(State)
    graph.add_node("flaky", asks_once())
    graph.add_edge(START, "flaky")
    compiled = graph.compile(checkpointer=InMemorySaver())
    compiled.invoke({"out": []}, THREAD)
    expected = compiled.invoke(None, THREAD)
    other = StateGraph(State)
    other.add_node("flaky", asks_once())
    other.add_edge(START, "flaky")
    session = nb.Session(nb.load(other), {"out": []})
    session.run()
    assert session.status == "waiting"
    session.retry()
    session.run()
    assert (session.status, dict(session.board)) == ("finished", expected)
    assert session.replay().ok


def test_it_asks_again_and_keeps_earlier_answers_as_after_invoke_none():
    def asks(state):
        return {"out": [interrupt("first"), interrupt("second")]}

    graph = StateGraph(State)
    graph.add_node("asks", asks)
    graph.add_edge(START, "asks")
    compiled = graph.compile(checkpointer=InMemorySaver())
    (question,) = compiled.invoke({"out": []}, THREAD)["__interrupt__"]
    compiled.invoke(
        Command(resume={question.id: "one"}), THREAD
    )  # without its id, invoke(None) answers the second, too
    second = compiled.invoke(None, THREAD)
    assert [each.value for each in second["__interrupt__"]] == ["second"]
    session = nb.Session(nb.load(graph), {"out": []})
    session.run()
    session.answer("one")
    assert session.retry() is None
    assert [each.arguments["prompt"] for each in session.pending] == ["second"]
    session.answer("two")
    session.run()
    assert session.board["out"] == compiled.invoke(Command(resume="two"), THREAD)["out"]


def test_a_session_is_a_thread_whose_id_is_that_of_the_run():
    """Decision 0097: with that id in its config, LangGraph runs alike; no saver is called here."""

    class Fails(InMemorySaver):
        def put(self, *args, **kwargs):
            raise AssertionError("it is not called")

        put_writes = get_tuple = put

    def look(state, config: RunnableConfig, runtime: Runtime):
        return {"out": [config["configurable"]["thread_id"], runtime.execution_info.thread_id]}

    graph = StateGraph(State)
    graph.add_node("look", look)
    graph.add_node("inner", StateGraph(State).add_node("look", look).add_edge(START, "look").compile())
    graph.add_edge(START, "look").add_edge("look", "inner")
    session = nb.Session(nb.load(graph.compile(checkpointer=Fails())), {"calls": []})
    session.run()
    compiled = graph.compile(checkpointer=InMemorySaver())
    with pytest.raises(ValueError, match="thread_id"):
        compiled.invoke({"calls": []})
    assert session.board == compiled.invoke({"calls": []}, {"configurable": {"thread_id": session.run_id}})
    assert session.board["out"][0] == session.run_id
    assert session.replay().ok
    fork = session.fork(at=1).fork(at=1)
    fork.run()
    assert fork.board == session.board
    assert fork.replay().ok
    named = nb.Session(load_graph(compiled, config=THREAD), {"calls": []})
    named.run()
    assert named.board == graph.compile(checkpointer=InMemorySaver()).invoke({"calls": []}, THREAD)


def test_an_answer_that_is_a_command_is_rejected():
    graph = StateGraph(State).add_node("ask", lambda state: {"out": [interrupt("?")]}).add_edge(START, "ask")
    session = nb.Session(nb.load(graph))
    session.run()
    session.answer(Command(resume="yes"))
    assert session.status == "failed"
    assert "L588" in str(session.error)
    session.retry()
    session.answer("yes")
    assert session.board["out"] == ["yes"]


def test_a_reopened_fork_stays_in_its_thread(tmp_path):
    def look(state, config: RunnableConfig):
        return {"out": [config["configurable"]["thread_id"]]}

    graph = StateGraph(State).add_sequence([("a", look), ("b", look)]).add_edge(START, "a")
    recipe = nb.load(graph.compile(checkpointer=InMemorySaver()))
    session = nb.Session(recipe, store=tmp_path / "runs.db", run_id="one")
    session.run()
    fork = session.fork(at=1, name="fork")
    fork.edit({"calls": ["by hand"]})
    fork.close()
    session.close()
    opened = nb.open(tmp_path / "runs.db", fork.run_id, recipe=recipe)
    opened.run()
    assert opened.board["out"] == ["one", "one"]
    assert opened.replay().ok
