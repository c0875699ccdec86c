"""Error handlers, caches and timeouts of nodes, with the package as the judge."""

from __future__ import annotations

import asyncio
import operator
import time
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langgraph import errors
from langgraph.cache.memory import InMemoryCache
from langgraph.errors import NodeError, NodeTimeoutError
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime  # noqa: TC002  (the same)
from langgraph.types import CachePolicy, Command, Overwrite, RetryPolicy, Send, TimeoutPolicy, interrupt

import agentnb as nb
from agentnb.dialects.langgraph.api import load_graph
from agentnb.load import load
from agentnb.session import Session
from agentnb.store import MemoryLog
from tests.dialects.langgraph.judge import compare
from tests.session.test_batched_saving import copied


class State(TypedDict, total=False):
    xs: Annotated[list, operator.add]
    n: int


def says(word):
    return lambda state: {"xs": [word]}


def fails(state):
    raise ValueError("it broke")


def handles(state, error: NodeError):
    return {"xs": [f"{error.node} {type(error.error).__name__} {error.error} {state.get('xs')}"]}


def graph_of(*nodes: Any, defaults: Any = None, **more: Any) -> Any:
    """Return a graph whose nodes all run first, except those that start with an underscore."""
    graph = StateGraph(State)
    if defaults:
        graph.set_node_defaults(**defaults)
    for name, function, words in nodes:
        graph.add_node(name, function, **words)
        if not name.startswith("_"):
            graph.add_edge(START, name)
    return graph


# -- error handlers ----------------------------------------------------------------------------------------------------

HANDLED = {"error_handler": handles}


def beside_siblings():
    graph = graph_of(("a", fails, HANDLED), ("aa", says("aa"), {}), ("b", says("b"), {}), ("_c", says("c"), {}))
    graph.add_edge("a", "_c")  # not taken
    return graph


def in_a_join():
    graph = graph_of(("a", fails, HANDLED), ("b", says("b"), {}), ("_c", says("c"), {}))
    graph.add_edge(["a", "b"], "_c")
    return graph


def with_a_command():
    def goes(state, error: NodeError):
        return Command(update={"xs": [str(error.error)]}, goto="_c")

    return graph_of(("a", fails, {"error_handler": goes}), ("_c", says("c"), {}))


def of_all_nodes_and_sends():
    def works(state):
        if state["n"] % 2:
            raise TimeoutError(state["n"])
        return {"xs": [state["n"]]}

    graph = graph_of(("p", lambda state: {}, {}), ("_w", works, {}), ("_q", fails, {}), defaults=HANDLED)
    sends = [*(Send("_w", {"n": number}) for number in range(4)), "_q"]
    graph.add_conditional_edges("p", lambda state: sends, ["_w", "_q"])
    return graph


def after_a_condition_that_fails():
    graph = graph_of(("a", says("a"), HANDLED), ("_c", says("c"), {}), ("_d", says("d"), {}), ("b", says("b"), {}))
    graph.add_edge("a", "_c")
    graph.add_conditional_edges("a", RunnableLambda(lambda state: "_d", name="first"), ["_d"])
    graph.add_conditional_edges("a", RunnableLambda(fails, name="second"), ["_d"])
    return graph


def after_a_condition_that_fails_again_and_again():
    graph = graph_of(("a", says("a"), {**HANDLED, "retry_policy": RetryPolicy(initial_interval=0.001, jitter=False,
                                                                             retry_on=ValueError)}))  # fmt: skip
    graph.add_conditional_edges("a", fails, ["a"])
    return graph


def after_a_condition_that_asks():
    graph = graph_of(("a", says("a"), HANDLED), ("_c", says("c"), {}))
    graph.add_conditional_edges("a", lambda state: interrupt("where?").removeprefix("re where?"), {"": "_c"})
    return graph


def of_all_nodes_beside_conditions_without_declared_targets():
    graph = graph_of(("_a", says("a"), {}), ("_b", fails, {}), defaults=HANDLED)
    graph.add_conditional_edges(START, lambda state: "_a")
    graph.add_conditional_edges("_a", lambda state: "_b")
    return graph


def that_fails():
    return graph_of(("a", fails, {"error_handler": fails}), ("b", says("b"), {}))


def of_a_wrong_result():
    return graph_of(("a", lambda state: 5, HANDLED))


def of_a_subgraph():
    inner = StateGraph(State)
    inner.add_sequence([("x", says("x")), ("y", fails)])
    inner.add_edge(START, "x")
    return graph_of(("a", inner.compile(), HANDLED), ("b", says("b"), {}), ("_c", says("c"), {}))


def of_sends_to_a_subgraph():
    inner = StateGraph(State)
    inner.add_node("x", lambda state: fails(state) if state["n"] == 1 else {"xs": [state["n"]]})
    inner.add_edge(START, "x")
    graph = graph_of(("p", lambda state: {}, {}), ("_s", inner.compile(), HANDLED))
    graph.add_conditional_edges("p", lambda state: [Send("_s", {"n": number}) for number in range(3)], ["_s"])
    return graph


def inside_a_subgraph():
    inner = StateGraph(State)
    inner.add_node("x", fails, error_handler=handles)
    inner.add_node("y", says("y"))
    inner.add_edge(START, "x")
    inner.add_edge("x", "y")
    return graph_of(("a", inner.compile(), HANDLED))


def that_asks():
    def asks(state, error: NodeError):
        # The error is still known when `b` has run. LangGraph restores it from a text, which differs from the message.
        return {"xs": [interrupt(f"{error.error}?"), "it broke" in str(error.error)]}

    return graph_of(("a", fails, {"error_handler": asks}), ("b", says("b"), {}))


def of_a_second_value():
    return graph_of(("a", lambda state: {"n": 1}, HANDLED), ("b", lambda state: {"n": 2}, HANDLED))


def of_two_overwrites():
    def twice(state):
        return [Command(update={"xs": Overwrite([1])}), Command(update={"xs": Overwrite([2])})]

    return graph_of(("a", twice, HANDLED))


HANDLERS = [beside_siblings, in_a_join, with_a_command, of_all_nodes_and_sends, after_a_condition_that_fails,
            after_a_condition_that_fails_again_and_again, after_a_condition_that_asks, that_fails, of_a_wrong_result,
            of_a_subgraph, of_sends_to_a_subgraph, inside_a_subgraph, that_asks, of_a_second_value,
            of_two_overwrites, of_all_nodes_beside_conditions_without_declared_targets]  # fmt: skip


@pytest.mark.parametrize("make", HANDLERS)
def test_an_error_handler_runs_as_in_langgraph(make):
    _, session = compare(make().compile(), {"n": 1}, answers=lambda question: f"re {question}")
    board, end = dict(session.board), session.position
    session.goto(1)
    session.goto(end)
    assert dict(session.board) == board
    assert session.replay().ok


def test_an_error_handler_is_a_separate_step_after_the_failed_one():
    session = Session(load(beside_siblings()), {"n": 1})
    session.run()
    assert [(step.node_id, step.status) for step in session.trace.steps] == [
        ("a", "error"), ("__error_handler__a", "ok"), ("aa", "ok"), ("b", "ok"),
    ]  # fmt: skip
    session.goto(1)
    assert session.current == "__error_handler__a"
    assert ("a", "__error_handler__a") in [(edge.source, edge.target) for edge in session.recipe.edges]


@pytest.mark.parametrize("limit", [1, 2, 3, 4])
@pytest.mark.parametrize("entry", ["edge", "condition", "question"])
def test_the_limit_of_supersteps_holds_for_an_error_handler(entry, limit):
    def goes(state, error: NodeError):
        return Command(update={"xs": [str(error.error)]}, goto=[] if entry == "question" else "_c")

    def asks(state):
        return {"xs": [interrupt("?")]}

    others = [(f"_{name}", says(name), {}) for name in ("b", "bb", "c")]
    graph = graph_of(("_a", fails, {"error_handler": goes}), ("_q", asks, {}), *others)
    if entry == "question":
        graph.add_edge(START, "_q").add_edge("_q", "_b").add_edge("_b", "_bb").add_edge("_bb", "_a")
    elif entry == "condition":
        graph.add_conditional_edges(START, lambda state: "_a", ["_a"])
    else:
        graph.add_edge(START, "_a")
    theirs, session = compare(graph.compile(), {"n": 1}, limit=limit, answers=lambda question: "yes")
    said, step_count = ["it broke", "c"], limit
    if entry == "question":  # nothing follows the error handler
        said, step_count = ["yes", "b", "bb", "it broke"], limit + 2
    assert session.board["xs"] == said[:step_count]
    assert theirs.ended == ("finished" if step_count > len(said) else "GraphRecursionError")


def test_an_error_handler_that_a_person_repeats_receives_the_same_error():
    session = Session(load(beside_siblings()), {"n": 1})
    session.step(3)
    session.set_next("__error_handler__a")
    session.step()
    assert [step.node_id for step in session.trace.steps] == ["a", "__error_handler__a", "aa", "__error_handler__a"]
    assert session.board["xs"][2] == session.board["xs"][0] == "a ValueError it broke []"


def test_a_run_can_be_reopened_between_a_failure_and_its_handler(tmp_path):
    path = tmp_path / "runs.db"
    session = Session(load(beside_siblings()), {"n": 1}, store=path)
    session.step()
    run_id = session.run_id
    session.close()
    reopened = nb.open(path, run_id, recipe=load(beside_siblings()))
    reopened.run()
    assert reopened.board["xs"][0].endswith("it broke []")
    reopened.close()


def test_handlers_in_a_networkx_graph_run_in_the_same_superstep():
    import networkx as nx

    graph = nx.DiGraph(supersteps=True, reducers={"log": lambda old, new: [*(old or []), *new]})
    graph.add_node("start", function=dict)
    graph.add_node("a", function=fails)
    graph.add_node("b", function=lambda board: {"log": [f"b saw {board.get('log')}"]})
    graph.add_node("mend", function=lambda board: {"log": [f"mend saw {board.get('log')}"]})
    graph.add_edges_from([("start", "a"), ("start", "b")], kind="parallel")
    graph.add_edge("a", "mend", kind="error")
    session = Session(load(graph), {})
    session.run()
    assert session.board["log"] == ["mend saw None", "b saw None"]


# -- caches ------------------------------------------------------------------------------------------------------------


def cached(calls, policy=None, **words):
    def works(state):
        calls.append(state["n"])
        return Command(update={"xs": [state["n"], *state.get("xs", [])]}, goto=[Send("_s", {"n": 7}), "_c"])

    return graph_of(
        ("a", works, {"cache_policy": policy or CachePolicy(), **words}), ("_s", says("s"), {}), ("_c", says("c"), {})
    )


@pytest.mark.parametrize("first", ["there", "here"])
def test_a_cache_is_shared_with_langgraph(first):
    calls: list[int] = []
    graph = cached(calls)
    graph.add_edge("a", "_s")
    graph.add_conditional_edges("a", lambda state: "_c", ["_c"])
    compiled = graph.compile(cache=InMemoryCache())
    if first == "there":
        known = compiled.invoke({"n": 1})
    session = Session(load(compiled), {"n": 1})
    session.run()
    if first == "here":
        known = compiled.invoke({"n": 1})
    assert calls == [1]
    assert dict(session.board) == known
    compare(compiled, {"n": 1})
    assert calls == [1]
    other = Session(load(compiled), {"n": 2})
    other.run()
    assert calls == [1, 2]


class Watched(InMemoryCache):
    """A cache that knows what was stored in it."""

    def __init__(self) -> None:
        super().__init__()
        self.stored: list[Any] = []

    def set(self, pairs):
        self.stored += [repr((*key, sorted(map(repr, writes)), lives)) for key, (writes, lives) in pairs.items()]
        super().set(pairs)


@pytest.mark.parametrize("way", ["edges", "condition", "command"])
def test_the_entries_in_a_cache_are_those_of_langgraph(way):
    def works(state):
        update = {"xs": [len(state.get("xs", []))], "n": state["n"] + 1}
        return Command(update=update, goto=["_d", Send("_d", {"n": 8})]) if way == "command" else update

    def make(cache):
        names = ["a", "b", "_c", "_d", "_e"]
        graph = graph_of(*((name, works if name == "a" else says(name), {"cache_policy": CachePolicy()})
                           for name in names))  # fmt: skip
        for sources, target in [(["a", "b"], "_c"), (["b", "_c"], "_d"), (["a", "_d"], END), (["_c", "a"], "_e")]:
            graph.add_edge(sources, target)
        for source, target in [("a", "_c"), ("a", END), ("_c", "_e"), ("a", "b")]:
            graph.add_edge(source, target)
        if way == "condition":
            graph.add_conditional_edges("a", lambda state: ["_d", Send("_e", {"n": 9}), END], ["_d", "_e", END])
        return graph.compile(cache=cache)

    ours, theirs = Watched(), Watched()
    compare(make(theirs), {"n": 1}, ours=make(ours))
    assert sorted(ours.stored) == sorted(theirs.stored)
    assert len(ours.stored) >= 5


def test_a_replay_uses_the_cached_answers_of_the_run(tmp_path):
    calls: list[int] = []
    compiled = cached(calls).compile(cache=InMemoryCache())
    for expected in ([1], [1]):
        session = Session(load(compiled), {"n": 1}, store=tmp_path / "runs.db")
        session.run()
        assert calls == expected
        kinds = session.trace.frames.calls.kind.tolist()
        run_id = session.run_id
        session.close()
        opened = nb.open(tmp_path / "runs.db", run_id, recipe=load(compiled))
        compiled.cache.clear()
        before = list(calls)
        assert opened.replay().ok
        assert kinds in (["cache", "cache"], ["cache"])
        del calls[len(before) :]
        opened.close()
        Session(load(compiled), {"n": 1}).run()  # the cache knows it again
        del calls[1:]


def test_nodes_of_one_superstep_do_not_share_a_cache_entry():
    calls: list[int] = []

    def works(state):
        calls.append(state["n"])
        return {"xs": [state["n"]]}

    def make():
        calls.clear()
        graph = graph_of(("p", lambda state: {}, {}), ("_w", works, {"cache_policy": CachePolicy(ttl=60)}))
        graph.add_conditional_edges("p", lambda state: [Send("_w", {"n": 1})] * 3, ["_w"])
        return graph.compile(cache=InMemoryCache())

    known = make().invoke({"n": 0})
    assert calls == [1, 1, 1]
    session = Session(load(make()), {"n": 0})
    session.run()
    assert calls == [1, 1, 1]
    assert dict(session.board) == known
    session.goto(2)
    session.run()
    assert dict(session.board) == known


def test_one_of_several_equal_sends_is_answered_by_an_earlier_run():
    calls: list[int] = []

    def works(state):
        calls.append(state["n"])
        return {"xs": [len(calls)]}

    def make():
        calls.clear()
        graph = graph_of(("p", lambda state: {}, {}), ("_w", works, {"cache_policy": CachePolicy()}))
        graph.add_conditional_edges("p", lambda state: [Send("_w", {"n": 1})] * state["n"], ["_w"])
        return graph.compile(cache=InMemoryCache())

    # LangGraph's threads may call equal Sends in any order; the last of them is the one that is not called.
    their_graph = make()
    known = [sorted(their_graph.invoke({"n": number})["xs"]) for number in (1, 3)]
    our_graph = make()
    sessions = [Session(load(our_graph), {"n": number}) for number in (1, 3)]
    for session, expected in zip(sessions, known, strict=True):
        session.run()
        assert sorted(session.board["xs"]) == expected
    assert sessions[1].board["xs"] == [2, 3, 1]
    sessions[1].goto(3)
    sessions[1].run()
    assert sessions[1].board["xs"] == [2, 3, 1]


def test_an_equal_send_to_another_node_has_its_own_entry():
    calls: list[str] = []

    def make():
        calls.clear()
        works = [(name, lambda state, name=name: calls.append(name) or {"xs": [name]}, {"cache_policy": CachePolicy()})
                 for name in ("_v", "_w")]  # fmt: skip
        graph = graph_of(("p", lambda state: {}, {}), *works)
        graph.add_conditional_edges("p", lambda state: [Send("_v", {"n": 1}), Send("_w", {"n": 1})], ["_v", "_w"])
        return graph.compile(cache=InMemoryCache())

    compiled = make()
    known = [compiled.invoke({"n": 0}) for _ in range(2)]
    assert sorted(calls) == ["_v", "_w"]
    compiled = make()
    for expected in known:
        session = Session(load(compiled), {"n": 0})
        session.run()
        assert dict(session.board) == expected
    assert calls == ["_v", "_w"]


def test_a_cache_lookup_interrupted_by_a_kill_is_repeated():
    class Killing(InMemoryCache):
        stored = None

        def get(self, keys):
            if self.stored is None:
                self.stored = copied(log)  # what a new process finds if this one is killed here
            return super().get(keys)

    calls: list[int] = []
    log, cache = MemoryLog(), Killing()
    compiled = cached(calls).compile(cache=cache)
    Session(load(compiled), {"n": 1}, store=log, run_id="run").run()
    cache.clear()
    reopened = nb.open(cache.stored, "run", recipe=load(compiled))
    reopened.run()
    assert (reopened.status, calls) == ("finished", [1, 1])


def test_a_command_leaves_a_cached_subgraph():
    def leaves(state):
        return Command(graph=Command.PARENT, update={"xs": ["left"]}, goto="_c")

    inner = StateGraph(State)
    inner.add_node("x", leaves)
    inner.add_edge(START, "x")
    compiled = graph_of(
        ("p", lambda state: {}, {}), ("_a", inner.compile(), {"cache_policy": CachePolicy()}), ("_c", says("c"), {})
    )
    compiled.add_conditional_edges("p", lambda state: [Send("_a", {"n": n}) for n in range(state["n"])], ["_a"])
    cached_graph = compiled.compile(cache=InMemoryCache())
    for number in (1, 1, 3):
        theirs, session = compare(cached_graph, {"n": number})
        assert theirs.ended == session.status == "finished"
        assert session.board["xs"] == [*["left"] * number, "c"]


def test_a_key_function_chooses_and_an_entry_ends():
    calls: list[int] = []
    compiled = cached(calls, CachePolicy(key_func=lambda state: str(state["n"] % 2), ttl=0)).compile(
        cache=InMemoryCache()
    )
    for number in (1, 3):
        Session(load(compiled), {"n": number}).run()
    assert calls == [1, 3]  # an entry that lives for no time
    compiled = cached(calls, CachePolicy(key_func=lambda state: str(state["n"] % 2))).compile(cache=InMemoryCache())
    for number in (1, 3, 2):
        Session(load(compiled), {"n": number}).run()
    assert calls == [1, 3, 1, 2]


def test_a_failure_is_not_cached_and_a_subgraph_is():
    calls: list[int] = []
    inner = StateGraph(State)
    inner.add_node("x", lambda state: calls.append(1) or {"xs": ["x"]})
    inner.add_edge(START, "x")
    compiled = graph_of(("a", inner.compile(), {"cache_policy": CachePolicy()})).compile(cache=InMemoryCache())
    compare(compiled, {"n": 1})
    assert calls == [1]
    failing = graph_of(("a", lambda state: calls.append(2) or fails(state), {"cache_policy": CachePolicy()}))
    compiled = failing.compile(cache=InMemoryCache())
    compare(compiled, {"n": 1})
    assert calls == [1, 2, 2]


# -- timeouts ---------------------------------------------------------------------------------------------------------


ATTEMPTS: list[int] = []


def timed(seconds, timeout, beat=0.0, **words):
    async def works(state, runtime: Runtime):
        ATTEMPTS.append(runtime.execution_info.node_attempt)
        left = seconds
        while left > 0:
            await asyncio.sleep(min(left, beat or left))
            left -= beat or left
            if beat:
                runtime.heartbeat()
        return {"xs": ["in time"]}

    return graph_of(("a", works, {"timeout": timeout, **words}))


async def handles_late(state, error: NodeError):
    return {"xs": [type(error.error).__name__, error.error.kind]}


PATIENT = TimeoutPolicy(idle_timeout=10, refresh_on="heartbeat")
TIMEOUTS = {
    "in time": lambda: timed(0.0, 30),
    "run": lambda: timed(30, 0.02),
    "handled": lambda: timed(30, 0.02, error_handler=handles_late),
    "idle": lambda: timed(30, TimeoutPolicy(idle_timeout=0.02)),
    "idle, in time": lambda: timed(0.01, TimeoutPolicy(idle_timeout=0.9)),
    "progress": lambda: timed(0.3, PATIENT, 0.1),
    "both": lambda: timed(30, TimeoutPolicy(run_timeout=0.05, idle_timeout=10), 0.01),
    "tried again": lambda: timed(30, 0.02, retry_policy=RetryPolicy(initial_interval=0.001, jitter=False)),
}


@pytest.mark.parametrize("name", TIMEOUTS)
def test_a_timeout_cancels_an_attempt_as_in_langgraph(name):
    compiled = TIMEOUTS[name]().compile()
    ATTEMPTS.clear()
    try:
        known: Any = asyncio.run(compiled.ainvoke({"n": 1}))
    except NodeTimeoutError as error:
        known = error
    attempts = list(ATTEMPTS)
    ATTEMPTS.clear()
    session = Session(load(compiled), {"n": 1})
    session.run()
    assert attempts == ATTEMPTS
    if isinstance(known, NodeTimeoutError):
        assert session.status == "failed"
        assert f"exceeded its {known.kind} timeout" in str(session.error)
    else:
        assert (session.status, dict(session.board)) == ("finished", known)


def test_a_send_has_its_own_timeout():
    async def works(state):
        await asyncio.sleep(state["n"])
        return {"xs": [state["n"]]}

    async def starts(state):
        return {}

    graph = graph_of(("p", starts, {}), ("_w", works, {"error_handler": handles_late}))
    sends = [Send("_w", {"n": 0}, timeout=30), Send("_w", {"n": 30}, timeout=0.02)]
    graph.add_conditional_edges("p", lambda state: sends, ["_w"])
    session = Session(load(graph), {"n": 1})
    session.run()
    assert session.status == "finished"
    assert session.board["xs"] == [0, "NodeTimeoutError", "run"]


def test_a_timeout_is_suspended_while_a_call_is_paused():
    @tool
    async def look_up(what: str) -> str:
        """Look something up."""
        return f"{what}: found"

    async def works(state):
        return {"xs": [await look_up.ainvoke({"what": "it"})]}

    session = Session(load(graph_of(("a", works, {"timeout": 0.5}))), {"n": 1})
    session.breakpoints.add(call="tool")
    session.run()
    assert session.status == "in_flight"
    time.sleep(0.6)
    session.run()
    assert (session.status, session.board["xs"]) == ("finished", ["it: found"])


def test_a_timeout_of_a_sync_node_is_rejected():
    with pytest.raises(nb.RecipeError, match="sync"):
        load_graph(graph_of(("a", says("a"), {"timeout": 1})))


def raises_cancelled(state):
    raise asyncio.CancelledError


async def awaits_cancelled(state):
    await asyncio.sleep(0)
    raise asyncio.CancelledError


@pytest.mark.skipif(not hasattr(errors, "NodeCancelledError"), reason="this LangGraph lets it end the run")
@pytest.mark.parametrize("handled", [False, True], ids=["", "handled"])
@pytest.mark.parametrize("node", [raises_cancelled, awaits_cancelled])
def test_a_node_that_raises_cancelled_error_itself_fails(node, handled):
    graph = StateGraph(State)
    words = {"error_handler": lambda state: {"xs": ["handled"]}} if handled else {}
    graph.add_node("node", node, **words)
    graph.add_edge(START, "node")
    theirs, session = compare(graph.compile(), {"n": 1}, is_async=node is awaits_cancelled)
    assert theirs.ended == ("finished" if handled else "NodeCancelledError")
    assert session.trace.frames.steps.error[0].startswith("NodeCancelledError: ")
