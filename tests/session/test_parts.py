"""Parts of values: which step changed one message, one field or one item, in every dialect that has such values."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

import networkx as nx
import pytest
from burr.core import ApplicationBuilder, action
from langchain_core.messages import AIMessage
from langgraph.graph import END, START, MessagesState, StateGraph

import agentnb as nb
import agentnb.dialects.activegraph as ag

USER = {"name": "?", "age": 1}


def chain(*functions, **init):
    """A line of networkx functions."""
    graph = nx.DiGraph(name="parts", entry="n1", inputs=list(init))
    for number, function in enumerate(functions, 1):
        graph.add_node(f"n{number}", function=function)
        if number > 1:
            graph.add_edge(f"n{number - 1}", f"n{number}")
    return nb.Session(nb.load(graph), init)


def langgraph(schema, functions, inputs):
    """A line of LangGraph nodes."""
    graph = StateGraph(schema)
    names = [f"n{number}" for number, _ in enumerate(functions, 1)]
    for name, function in zip(names, functions, strict=True):
        graph.add_node(name, function)
    for source, target in zip([START, *names], [*names, END], strict=True):
        graph.add_edge(source, target)
    return nb.Session(nb.load(graph), inputs)


def fields_in_place():
    def set_age(board):
        board["user"]["age"] = 2

    def set_name(board):
        board["user"]["name"] = "Ann"

    return chain(set_age, set_name, user=dict(USER))


def fields_in_langgraph():
    class State(TypedDict):
        user: dict[str, Any]

    return langgraph(
        State,
        [lambda state: {"user": {**state["user"], "age": 2}}, lambda state: {"user": {**state["user"], "name": "Ann"}}],
        {"user": dict(USER)},
    )


def fields_in_burr():
    @action(reads=["user"], writes=["user"])
    def n1(state):
        return state.update(user={**state["user"], "age": 2})

    @action(reads=["user"], writes=["user"])
    def n2(state):
        return state.update(user={**state["user"], "name": "Ann"})

    application = (
        ApplicationBuilder().with_actions(n1, n2).with_transitions(("n1", "n2")).with_state(user=dict(USER))
        .with_entrypoint("n1").build()
    )  # fmt: skip
    return nb.Session(nb.load(application))


def fields_in_agentruntime():
    text = """
meta: {name: parts}
state: {shape: {user: u, x: x}, init: {user: {name: "?", age: 1}}}
graph:
  inputs: [x]
  outputs: [user]
  nodes:
    - {id: n1, type: noop, map: {set: {user.age: 2}}}
    - {id: n2, type: noop, map: {set: {user.name: Ann}}}
  edges: [{from: n1, to: n2}]
"""
    return nb.Session(nb.load(text), {"x": 0})


FIELDS = [fields_in_place, fields_in_langgraph, fields_in_burr, fields_in_agentruntime]


@pytest.mark.parametrize("make", FIELDS)
def test_the_step_that_changed_a_field_is_known(make):
    session = make()
    session.run()
    steps = {path: session.who_wrote(path) for path in ("user", "user.name", "user.age")}
    assert steps == {"user": 2, "user.name": 2, "user.age": 1}
    assert session.who_wrote("user.name", at=1) == 0
    assert session.slice("user.age").steps == [0, 1] if make is not fields_in_agentruntime else [1]


@pytest.mark.parametrize("make", FIELDS)
@pytest.mark.parametrize(("key", "changes"), [("user.name", [2]), ("user.age", [1]), ("user", [1, 2])])
def test_a_breakpoint_on_a_part_stops_where_the_part_changed(make, key, changes):
    session, stops = make(), []
    session.breakpoints.add(key=key)
    while session.status != "finished":
        session.run()
        if session.stopped_by is not None:
            stops.append(session.position)
    assert stops == changes
    session.run_back()
    assert session.position == next((step for step in reversed(changes) if step < 2), 0)


def test_the_step_that_appended_a_message_is_known():
    class State(TypedDict):
        log: Annotated[list[str], operator.add]

    def by_reducer():
        return langgraph(State, [lambda state: {"log": ["one"]}, lambda state: {"log": ["two"]}], {"log": ["zero"]})

    def in_place():
        return chain(lambda board: board["log"].append("one"), lambda board: board["log"].append("two"), log=["zero"])

    def returned():
        def add(item):
            return lambda board: {"log": [*board["log"], item]}

        return chain(add("one"), add("two"), log=["zero"])

    def by_append():
        return chain(lambda: {"log": nb.Append("one")}, lambda: {"log": nb.Append("two")}, log=["zero"])

    for make in (by_reducer, in_place, returned, by_append):
        session = make()
        session.run()
        assert [session.who_wrote(f"log.{index}") for index in range(3)] == [0, 1, 2], make
        assert [session.who_wrote(f"log[{index}]") for index in range(3)] == [0, 1, 2], make
        assert session.who_wrote("log[-1]") == 2
        assert session.who_wrote("log[3]") is None


def test_messages_are_found_in_both_notations():
    def reply(state):
        return {"messages": [AIMessage("one", id="b")]}

    def correct(state):
        state["messages"][0].content = "HELLO"

    session = langgraph(MessagesState, [reply, correct], {"messages": [("user", "hello")]})
    session.run()
    assert session.board["messages[0].content"] == session.board["messages.0.content"] == "HELLO"
    assert [session.who_wrote(path) for path in ("messages[0].content", "messages.0.id", "messages[1]")] == [2, 0, 1]
    assert session.find("messages[0].content == 'HELLO'") == [2]


def test_fields_of_objects_of_a_reactive_run():
    graph = ag.Graph()

    @ag.behavior(name="make", on=["go"])
    def make(event, graph, ctx):
        graph.add_object("doc", {"title": "t", "score": 0})

    @ag.behavior(name="score", on=["object.created"])
    def score(event, graph, ctx):
        graph.patch_object(event.payload["object"]["id"], {"score": 5})

    runtime = ag.Runtime(graph, behaviors=[make, score])
    graph.emit(ag.Event(id=graph.ids.event(), type="go", payload={}, actor="user"))
    runtime.run_until_idle()
    session = runtime.session
    key = next(key for key in session.board if key.startswith("doc#"))
    assert [session.who_wrote(f"{key}.data.{field}") for field in ("title", "score")] == [1, 2]


# -- equal values ------------------------------------------------------------------------------------------------------


def rewriting():
    """Nodes that return the whole state, as many programs do."""

    class State(TypedDict):
        essay: str
        grammar: float
        depth: float

    def grade(state):
        return {**state, "grammar": 0.5}

    def measure(state):
        return {**state, "depth": 0.7}

    return langgraph(State, [grade, measure], {"essay": "x", "grammar": 0.0, "depth": 0.0})


def test_an_equal_value_is_not_a_change():
    session = rewriting()
    session.run()
    assert {key: session.who_wrote(key) for key in session.board} == {"essay": 0, "grammar": 1, "depth": 2}
    writes = session.trace.frames.writes
    assert [*writes.key[writes.changed & (writes.step > 0)]] == ["grammar", "depth"]
    assert len(writes) == 9  # what a node returned is recorded, equal or not
    fresh = rewriting()
    fresh.breakpoints.add(key="essay")
    fresh.run()
    assert (fresh.status, fresh.stopped_by) == ("finished", None)


def test_values_of_other_types_are_changes():
    session = chain(lambda: {"n": True}, lambda: {"n": 1.0}, lambda: {"n": 1.0}, n=1)
    session.run()
    assert [*session.trace.frames.writes.changed] == [True, True, True, False]
    assert session.who_wrote("n") == 2


def test_the_paths_of_a_write_are_the_parts_that_differ():
    def change(board):
        board["user"]["tags"].append("b")
        board["user"]["name"] = "Ann"

    session = chain(change, lambda: {"user": 1}, user={"name": "?", "age": 1, "tags": ["a"]})
    session.edit({"user.age": 5})
    session.run()
    writes = session.trace.frames.writes
    assert [*writes.paths] == [[], ["age"], ["name", "tags.1"], []]


# -- blame -------------------------------------------------------------------------------------------------------------


def test_blame_lists_every_change_with_its_actor():
    session = fields_in_place()
    session.step()
    session.edit({"user.name": "Bob"})
    session.run()
    table = session.blame("user.name")
    assert [*table.columns] == ["step", "node", "actor", "old", "new"]
    assert [*zip(table.step, table.actor, table.new, strict=True)] == [
        (0, "input", "?"), (1, "person", "Bob"), (2, "node", "Ann")
    ]  # fmt: skip
    assert table.node.iloc[2] == "n2"
    assert table.node.isna().tolist() == [True, True, False]
    assert [*session.blame("user.name", at=1).new] == ["?", "Bob"]
    assert session.blame("user.nothing").empty
    with pytest.raises(nb.ExecutionError, match="X145"):
        session.blame("usr.name")


def test_blame_masks_secrets():
    session = chain(lambda: {"login": {"password": "Zx9q-88-Ab", "user": "ann"}}, login={})
    session.run()
    assert "Zx9q" not in str(session.blame("login.password").new.tolist() + session.blame("login").new.tolist())
