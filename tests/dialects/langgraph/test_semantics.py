"""What LangGraph's constructs mean, with the package as the judge."""

from __future__ import annotations

import asyncio
import functools
import operator
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langchain_core.tools import tool
from langgraph.channels import AnyValue, DeltaChannel, EphemeralValue, Topic, UntrackedValue
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_stream_writer
from langgraph.errors import GraphRecursionError, ParentCommand
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.message import _messages_delta_reducer, add_messages, push_message
from langgraph.managed import IsLastStep, RemainingSteps  # noqa: TC002  (LangGraph reads the annotations)
from langgraph.prebuilt import ToolNode
from langgraph.runtime import Runtime  # noqa: TC002  (the same)
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command, Overwrite, RetryPolicy, Send, interrupt
from pydantic import BaseModel

import agentnb as nb
from agentnb.dialects.langgraph.api import load_graph
from agentnb.errors import RecipeError
from agentnb.load import load
from agentnb.session import Session
from agentnb.testing import record_golden, replay_golden
from tests.dialects.langgraph.judge import Course, compare, get_error_class, in_agentnb, in_langgraph


class State(TypedDict, total=False):
    xs: Annotated[list, operator.add]
    n: int


def says(word):
    return lambda state: {"xs": [f"{word}:{len(state.get('xs', []))}"]}


def chain(*nodes, schema=State, **words):
    graph = StateGraph(schema)
    graph.add_sequence(list(nodes))
    graph.add_edge(START, nodes[0][0])
    return graph.compile(**words)


def test_siblings_do_not_see_each_others_writes():
    graph = StateGraph(State)
    for name in "cab":
        graph.add_node(name, says(name))
        graph.add_edge(START, name)
    graph.add_node("last", says("last"))
    graph.add_edge(["a", "b", "c"], "last")
    _, session = compare(graph.compile(), {"n": 1})
    assert session.board["xs"] == ["a:0", "b:0", "c:0", "last:3"]
    assert [step.node_id for step in session.trace.steps] == ["a", "b", "c", "last"]


def returns_nothing(state):
    state["xs"].append("mine")


def returns_an_update(state):
    state["xs"].append("mine")
    return {"xs": ["a"]}


def returns_what_it_has_changed(state):
    state["xs"].append("mine")
    return {"xs": state["xs"]}


def returns_the_state(state):
    state["xs"].append("mine")
    state["n"] = 7
    return state


def replaces_the_value(state):
    state["xs"].append("mine")
    return {"xs": Overwrite(["only"])}


@pytest.mark.parametrize("many", [1, 100], ids=["short", "long"])
@pytest.mark.parametrize(
    "node", [returns_nothing, returns_an_update, returns_what_it_has_changed, returns_the_state, replaces_the_value]
)
def test_reducers_add_to_what_a_node_has_changed_in_place(node, many):
    seen = []

    def choose(state):
        seen.append(list(state["xs"]))
        return END

    graph = StateGraph(State)
    graph.add_node("node", node)
    graph.add_edge(START, "node")
    graph.add_conditional_edges("node", choose)
    known = graph.compile().invoke({"xs": ["in"] * many, "n": 0})
    session = Session(load(graph), {"xs": ["in"] * many, "n": 0})
    session.run()
    assert dict(session.board) == known
    assert seen[0] == seen[1]
    writes = session.trace.frames.writes
    assert set(writes.key[writes.in_place]) == ({"xs"} if node is not replaces_the_value else set())
    assert session.replay().ok
    session.back()
    assert session.board["xs"] == ["in"] * many


def test_an_edit_between_two_nodes_of_a_superstep_is_seen_by_the_second():
    graph = StateGraph(State)
    graph.add_node("a", says("a"))
    graph.add_node("b", lambda state: {"xs": [f"b saw {state['n']} and {state['xs']}"]})
    graph.add_edge(START, "a")
    graph.add_edge(START, "b")
    session = Session(load(graph), {"n": 1})
    session.step()
    session.edit({"n": 2})
    session.step()
    assert session.board["xs"] == ["a:0", "b saw 2 and []"]


def test_a_second_value_in_one_superstep_fails_as_in_langgraph():
    graph = StateGraph(State)
    for name in "ab":
        graph.add_node(name, lambda state: {"n": 2})
        graph.add_edge(START, name)
    theirs, session = compare(graph.compile(), {"n": 1})
    assert theirs.ended == get_error_class(session) == "InvalidUpdateError"
    assert "L530" in str(session.error)


@pytest.mark.parametrize("error", ["GraphRecursionError", "RecursionError", GraphRecursionError])
def test_a_breakpoint_matches_failures_of_a_superstep_by_the_classes_of_langgraph(error):
    graph = StateGraph(State)
    graph.add_node("a", says("a"))
    graph.add_edge(START, "a")
    graph.add_edge("a", "a")
    session = Session(load_graph(graph, config={"recursion_limit": 2}), {})
    breakpoint_ = session.breakpoints.add(error=error)
    session.breakpoints.add(error="InvalidUpdateError")
    session.run()
    assert [row.hits for row in session.breakpoints] == [1, 0]
    assert breakpoint_.hits == 1


def test_going_back_inside_a_superstep_and_on_again():
    graph = StateGraph(State)
    for name in "abc":
        graph.add_node(name, says(name))
        graph.add_edge(START, name)
    session = Session(load(graph), {})
    session.run()
    session.back(2)
    session.step(2)
    assert session.board["xs"] == ["a:0", "b:0", "c:0"]
    assert session.replay().ok


def test_the_writes_of_a_reducer_are_appends():
    session = Session(load(chain(("a", says("a")), ("b", says("b")))), {})
    session.run()
    writes = session.trace.frames.writes
    assert list(writes[writes.step > 0].op) == ["append", "append"]
    assert session.who_wrote("xs") == 2


def test_each_send_runs_once_with_its_own_input():
    graph = StateGraph(State)
    graph.add_node("work", lambda state: {"xs": [f"got {state}"]})
    graph.add_node("end", says("end"))
    graph.add_conditional_edges(START, lambda state: [Send("work", {"item": i}) for i in range(state["n"])], ["work"])
    graph.add_edge("work", "end")
    _, session = compare(graph.compile(), {"n": 3})
    assert session.board["xs"][1] == "got {'item': 1}"
    assert [step.node_id for step in session.trace.steps] == ["__start__", "work", "work", "work", "end"]
    sent = [{"item": 0}, {"item": 1}, {"item": 2}]
    assert [step.inputs for step in session.trace.steps[1:4]] == sent == [*session.trace.frames.steps.inputs[1:4]]


def test_the_cost_of_a_send_does_not_depend_on_their_number():
    count = 2000
    graph = StateGraph(State)
    graph.add_node("work", lambda state: {"xs": [state]})
    graph.add_conditional_edges(START, lambda state: [Send("work", i) for i in range(state["n"])])
    session = Session(load(graph), {"n": count})
    session.run()
    assert session.board["xs"] == list(range(count))
    assert (
        len(session._parts.run.history.push_activations) < 4 * count
    )  # the frontier is not written again for each of them


def test_commands_update_the_state_and_choose_the_next_node():
    graph = StateGraph(State)
    graph.add_node("a", lambda state: Command(goto=["b", Send("c", {"xs": ["sent"]})], update={"xs": ["a"], "n": 3}))
    graph.add_node("b", lambda state: [Command(update={"xs": ["b1"]}), {"xs": ["b2"]}, Command(goto=END)])
    graph.add_node("c", says("c"))
    graph.add_edge(START, "a")
    compare(graph.compile(), {})


@pytest.mark.parametrize("to", [("branch:to:b", None), ("__pregel_tasks", Send("b", {"xs": ["sent"], "n": 3}))])
def test_a_function_that_writes_to_internal_channels_chooses_the_next_nodes(to):
    def writes(state, config: RunnableConfig):
        config["configurable"]["__pregel_send"]([("xs", ["first"]), to])
        return {"xs": ["second"]}

    graph = StateGraph(State)
    graph.add_node("a", writes)
    graph.add_node("b", says("b"))
    graph.add_edge(START, "a")
    _, session = compare(graph.compile(), {})
    assert [step.node_id for step in session.trace.steps] == ["a", "b"]
    assert session.board["xs"][:2] == ["first", "second"]


def test_a_graph_called_by_a_function_asks_alternately_with_the_function():
    inner = chain(("p", lambda state: {"xs": [interrupt("one"), interrupt("two")]}))

    def calls(state):
        first = interrupt("before")
        inner_xs = inner.invoke({"xs": [], "n": 2})["xs"]
        return {"xs": [first, *inner_xs, interrupt("after")]}

    _, session = compare(chain(("a", calls)), {"n": 1}, answers=lambda question: f"re {question}")
    assert session.board["xs"] == ["re before", "re one", "re two", "re after"]


@pytest.mark.parametrize("how", ["command", "condition", "send"])
def test_a_target_that_does_not_exist_is_ignored_as_in_langgraph(how):
    graph = StateGraph(State)
    chosen = [Send("nowhere", {"n": 1})] if how == "send" else ["nowhere"]
    graph.add_node("a", lambda state: Command(goto=chosen if how == "command" else (), update={"xs": ["a"]}))
    graph.add_node("b", says("b"))
    graph.add_edge(START, "a")
    if how != "command":
        graph.add_conditional_edges("a", lambda state: [*chosen, "b"])
    _, session = compare(graph.compile(), {"n": 1})
    assert list(session.trace.frames.events.type) == ["unknown_target"]
    assert session.status == "finished"


def test_deferred_nodes_wait_for_everything_else():
    graph = StateGraph(State)
    for name in ("a", "b", "b2", "b3"):
        graph.add_node(name, says(name))
    graph.add_node("d", says("d"), defer=True)
    for edge in ((START, "a"), ("a", "b"), ("a", "d"), ("b", "b2"), ("b2", "b3"), ("b3", "d")):
        graph.add_edge(*edge)
    _, session = compare(graph.compile(), {})
    assert [step.node_id for step in session.trace.steps] == ["a", "b", "b2", "b3", "d"]


def test_a_question_of_a_node_is_pending_and_the_node_runs_again_with_the_answers():
    runs = []

    def ask(state):
        runs.append(len(runs))
        return {"xs": [interrupt("name?"), interrupt({"kind": "age"})]}

    graph = chain(("ask", ask), ("b", says("b")))
    compare(graph, {}, answers=lambda question: f"re {question}")
    runs.clear()
    session = Session(load(graph), {})
    session.run()
    assert (session.status, session.pending[0].kind, session.pending[0].arguments["prompt"]) == (
        "waiting", "answer", "name?",
    )  # fmt: skip
    session.answer("Ada")
    assert session.pending[0].arguments["prompt"] == {"kind": "age"}
    session.answer(36)
    session.run()
    assert session.board["xs"] == ["Ada", 36, "b:2"]
    assert runs == [0, 1, 2]
    assert session.replay().ok


class Inner(TypedDict, total=False):
    xs: Annotated[list, operator.add]
    own: int


def inner(last: Any) -> Any:
    graph = StateGraph(Inner)
    graph.add_node("i1", lambda state: {"xs": ["i1"], "own": 1})
    graph.add_node("i2", lambda state: {"xs": [f"i2 {state['own']}"]})
    graph.add_node("i3", last)
    graph.add_edge(START, "i1")
    graph.add_edge("i1", "i2")
    graph.add_edge("i1", "i3")
    return graph.compile()


def around(node: Any) -> Any:
    graph = StateGraph(State)
    graph.add_node("a", says("a"))
    graph.add_node("sub", node)
    graph.add_node("c", says("c"))
    graph.add_node("z", says("z"))
    for edge in ((START, "a"), ("a", "sub"), ("a", "z"), ("sub", "c")):
        graph.add_edge(*edge)
    return graph.compile()


def test_a_subgraph_is_stepped_node_by_node():
    _, session = compare(around(inner(says("i3"))), {"n": 1})
    assert [step.node_id for step in session.trace.steps] == [
        "a", "sub", "sub/i1", "sub/i2", "sub/i3", "sub", "z", "c",
    ]  # fmt: skip
    session.goto(4)
    assert session.current == "sub/i3"
    assert session.board["own"] == 1


def test_a_command_leads_out_of_a_subgraph():
    command = Command(graph=Command.PARENT, goto="c", update={"xs": ["from inside"]})
    _, session = compare(around(inner(lambda state: command)), {"n": 1})
    assert "from inside" in session.board["xs"]
    assert session.replay().ok


@pytest.mark.parametrize("how", ["returned", "raised"])
@pytest.mark.parametrize("words", [
    {},
    {"retry_policy": RetryPolicy(initial_interval=0.0001, retry_on=Exception)},
    {"error_handler": lambda state: {"xs": ["handled"]}},
], ids=["", "retried", "handled"])  # fmt: skip
def test_a_command_that_leads_out_of_the_outermost_graph_fails(how, words):
    command, calls = Command(graph=Command.PARENT, goto="a"), []

    def leave(state):
        calls.append(1)
        if how == "raised":
            raise ParentCommand(command)
        return command

    graph = StateGraph(State)
    graph.add_node("leave", leave, **words)
    graph.add_edge(START, "leave")
    theirs, session = compare(graph.compile(), {"n": 1})
    assert theirs.ended == "ParentCommand"
    assert "L544" in str(session.error)
    assert session.trace.frames.steps.error[0].startswith("ParentCommand: ")
    assert len(calls) == 2  # once there, once here


def test_a_command_that_is_raised_leads_out_of_a_subgraph():
    def leave(state):
        raise ParentCommand(Command(graph=Command.PARENT, goto="c", update={"xs": ["from inside"]}))

    _, session = compare(around(inner(leave)), {"n": 1})
    assert "from inside" in session.board["xs"]


def test_updates_that_cannot_be_merged_are_not_tried_again():
    calls = []

    def twice(state):
        calls.append(1)
        return [Command(update={"n": 1}), Command(update={"n": 2})]

    graph = StateGraph(State)
    graph.add_node("twice", twice, retry_policy=RetryPolicy(initial_interval=0.0001, retry_on=Exception))
    graph.add_edge(START, "twice")
    theirs, session = compare(graph.compile(), {"n": 1})
    assert session.trace.frames.steps.error[0].startswith(theirs.ended)
    assert len(calls) == 2


class Flash(TypedDict, total=False):
    xs: Annotated[list, operator.add]
    flash: Annotated[str, EphemeralValue]


class Lasting(TypedDict, total=False):
    xs: Annotated[list, operator.add]
    flash: str


@pytest.mark.parametrize("asks", [False, True], ids=["", "asks"])
@pytest.mark.parametrize("silent", [False, True], ids=["", "silent"])
@pytest.mark.parametrize("schemas", [(State, Flash), (Lasting, Flash), (Flash, Flash), (Flash, Lasting)],
                         ids=lambda pair: "-".join(schema.__name__ for schema in pair))  # fmt: skip
def test_a_subgraph_has_its_own_transient_keys(schemas, silent, asks):
    def reads(name):
        def read(state):
            if asks and name == "i3":
                interrupt("go on?")
            return None if silent and name != "last" else {"xs": [f"{name} sees {state.get('flash')}"]}

        return name, read

    outer, inner_schema = schemas
    inside = chain(("i1", lambda state: {"xs": ["i1"], "flash": "x"}), reads("i2"), reads("i3"), schema=inner_schema)
    graph = chain(reads("a"), ("sub", inside), reads("b"), reads("last"), schema=outer)
    _, session = compare(graph, {"xs": ["in"]}, answers=lambda question: "yes")
    assert session.replay().ok


@pytest.mark.parametrize("asks", ["i3", "i4"])
def test_a_question_during_another_node_ends_the_transient_keys_of_a_subgraph(asks):
    def does(name):
        def run(state):
            if name == asks:
                interrupt("go on?")
            return {"flash": "x"} if name == "i1" else {"xs": [f"sees {state.get('flash')}"]} if name == "b" else None

        return run

    inside = StateGraph(Flash)
    for name in ("i1", "i2", "i3", "i4"):
        inside.add_node(name, does(name))
    for edge in [(START, "i1"), ("i1", "i2"), ("i2", "i3"), ("i2", "i4")]:
        inside.add_edge(*edge)
    graph = chain(("sub", inside.compile()), ("b", does("b")), schema=Lasting)
    theirs, _ = compare(graph, {"xs": []}, answers=lambda question: "yes")
    assert theirs.last["xs"] == ["sees None"]


@pytest.mark.parametrize("writers", [(), ("i2",), ("i3",), ("i2", "i3")], ids=str)
def test_any_node_that_writes_ends_the_transient_keys_of_a_subgraph(writers):
    def does(name):
        def run(state):
            if name == "b":
                return {"xs": [f"sees {state.get('flash')}"]}
            return {"flash": "x"} if name == "i1" else {"xs": [name]} if name in writers else None

        return run

    inside = StateGraph(Flash)
    for name in ("i1", "i2", "i3"):
        inside.add_node(name, does(name))
    for edge in [(START, "i1"), ("i1", "i2"), ("i1", "i3")]:
        inside.add_edge(*edge)
    theirs, _ = compare(chain(("sub", inside.compile()), ("b", does("b")), schema=Lasting), {"xs": []})
    assert theirs.last["xs"] == [*writers, "sees None" if writers else "sees x"]


def test_conditions_from_start_of_a_subgraph_see_its_own_input():
    state = TypedDict("Own", {"xs": Annotated[list, operator.add]})  # noqa: UP013
    inside = StateGraph(state)
    for name in ("i1", "i2"):
        inside.add_node(name, lambda _, name=name: {"xs": [name]})
    inside.add_conditional_edges(START, lambda given: f"i{given.get('n', 0)}", ["i1", "i2"])
    graph = StateGraph(State)
    graph.add_node("sub", inside.compile())
    graph.add_conditional_edges(START, lambda state: [Send("sub", {"n": n}) for n in (1, 2)], ["sub"])
    theirs, _ = compare(graph.compile(), {"n": 7})
    assert theirs.last["xs"] == ["i1", "i2"]


def test_sends_to_a_subgraph():
    graph = StateGraph(State)
    graph.add_node("sub", inner(says("i3")))
    graph.add_conditional_edges(START, lambda state: [Send("sub", {"xs": [str(i)]}) for i in range(3)], ["sub"])
    compare(graph.compile(), {})


class Model(BaseModel):
    xs: Annotated[list, operator.add] = []
    n: int = 3


@dataclass
class Data:
    n: int = 4
    xs: Annotated[list, operator.add] = ()  # type: ignore[assignment]


@pytest.mark.parametrize("schema", [Model, Data])
def test_nodes_receive_an_object_of_their_schema(schema):
    graph = StateGraph(schema)
    graph.add_node("a", lambda state: {"xs": [f"{type(state).__name__} {state.n}"]})
    graph.add_node("b", lambda state: schema(n=4, xs=["b"]))
    graph.add_edge(START, "a")
    graph.add_edge("b", "a")
    graph.add_conditional_edges("a", lambda state: END if state.n == 4 else "b")
    compare(graph.compile(), {"n": 1})
    session = Session(load(graph), schema(n=1, xs=[]))
    session.run()
    assert session.board == graph.compile().invoke(schema(n=1, xs=[]))


@pytest.mark.parametrize("value", [Command(goto="a"), "text", [1], 3])
def test_an_input_that_invoke_rejects_is_a_problem(value):
    with pytest.raises(RecipeError, match="R207"):
        Session(load(chain(("a", says("a")))), value)


class Private(TypedDict):
    secret: str


class Output(TypedDict):
    n: int


def test_input_output_and_private_schemas():
    def first(state: State) -> Private:
        return {"secret": f"from {sorted(state)}"}

    def second(state: Private) -> State:
        return {"xs": [str(state)], "n": 2}

    graph = StateGraph(State, input_schema=State, output_schema=Output)
    graph.add_node(first)
    graph.add_node(second)
    graph.add_edge(START, "first")
    graph.add_edge("first", "second")
    recipe = load(graph)
    session = Session(recipe, {"n": 1})
    session.run()
    assert session.board["xs"] == ["{'secret': \"from ['n', 'xs']\"}"]
    assert recipe.outputs == ("n",)


def test_a_state_that_is_a_single_value():
    graph = StateGraph(int)
    graph.add_node("a", lambda state: state + 1)
    graph.add_edge(START, "a")
    graph.add_conditional_edges("a", lambda state: END if state > 4 else "a")
    session = Session(load(graph), {"__root__": 1})
    session.run()
    assert session.board["__root__"] == graph.compile().invoke(1) == 5


class Kinds(TypedDict, total=False):
    brief: Annotated[str, EphemeralValue]
    any: Annotated[str, AnyValue]
    topic: Annotated[list, Topic(str, accumulate=True)]
    delta: Annotated[list, DeltaChannel(lambda old, new: old + [item for each in new for item in each])]
    n: int


def test_every_kind_of_channel():
    def write(state):
        return {"brief": "b", "any": "x", "topic": ["one", "two"], "delta": [len(state.get("delta", []))], "n": 1}

    graph = chain(("a", write), ("b", lambda state: {"topic": "three", "delta": [5]}), ("c", lambda state: {"n": 2}),
                  schema=Kinds)  # fmt: skip
    compare(graph, {"n": 0, "brief": "in"})


class Loose(TypedDict, total=False):
    loose: Annotated[str, UntrackedValue]
    n: int


def test_an_untracked_value_is_seen_by_the_next_nodes():
    graph = chain(("a", lambda state: {"loose": "x"}), ("b", lambda state: {"n": len(state["loose"])}), schema=Loose)
    session = Session(load(graph), {})
    session.run()
    assert session.board["n"] == 1


class Managed(TypedDict, total=False):
    seen: Annotated[list, operator.add]
    left: RemainingSteps
    last: IsLastStep


def test_managed_values():
    def look(state):
        return {"seen": [[state["left"], state["last"]]]}

    compare(chain(("a", look), ("b", look), ("c", look), schema=Managed), {}, limit=4)


def test_a_replay_draws_the_same_message_ids():
    graph = chain(("bot", lambda state: {"messages": [AIMessage(f"re {state['messages'][-1].content}")]}),
                  ("more", lambda state: {"messages": ("human", "thanks")}), schema=MessagesState)  # fmt: skip
    session = Session(load(graph), {"messages": [HumanMessage("hi")]})
    session.run()
    messages = graph.invoke({"messages": [HumanMessage("hi")]})
    assert [(m.type, m.content) for m in session.board["messages"]] == [
        (m.type, m.content) for m in messages["messages"]
    ]  # fmt: skip
    assert all(message.id for message in session.board["messages"])
    assert session.replay().ok


def reply(state):
    return {"messages": [("ai", f"re: {state['messages'][-1].content}")]}


def reply_with_a_list(state):
    return {"messages": add_messages(state["messages"], [("ai", f"re: {state['messages'][-1].content}")])}


class Delta(TypedDict, total=False):
    messages: Annotated[list, DeltaChannel(_messages_delta_reducer)]


TALKS = {
    "reducer": (MessagesState, reply),
    "list": (MessagesState, reply_with_a_list),
    "subgraph": (MessagesState, chain(("inner", reply), schema=MessagesState)),
    "delta channel": (Delta, lambda state: {"messages": [AIMessage(f"re: {state['messages'][-1].content}")]}),
}


@pytest.mark.parametrize("stored", [False, True], ids=["memory", "one id in two stores"])
@pytest.mark.parametrize("name", TALKS)
def test_the_next_turn_of_a_thread_keeps_the_messages_without_ids(name, stored, tmp_path):
    schema, node = TALKS[name]
    graph = chain(("reply", node), schema=schema, checkpointer=InMemorySaver())
    state: Any = {}
    for turn in ("one", "two"):
        options = {"store": tmp_path / f"{turn}.db", "run_id": "thread"} if stored else {}
        session = Session(load_graph(graph, state=state), {"messages": [("user", turn)]}, **options)
        session.run()
        state = session.board
        known = graph.invoke({"messages": [("user", turn)]}, {"configurable": {"thread_id": "t"}})
    texts = [message.content for message in state["messages"]]
    assert texts == [message.content for message in known["messages"]] == ["one", "re: one", "two", "re: two"]


@pytest.mark.parametrize("name", TALKS)
def test_all_that_repeats_a_run_draws_its_message_ids(name, tmp_path):
    schema, node = TALKS[name]
    recipe = load(chain(("reply", node), ("more", reply), schema=schema))
    session = Session(recipe, {"messages": [("user", "hi")]}, store=tmp_path / "runs.db", run_id="one")
    early = session.fork(at=0)
    session.run()
    ids = [message.id for message in session.board["messages"]]
    session.trace.to_json(tmp_path / "trace.json")
    golden = record_golden(session, tmp_path / "golden.jsonl")
    early.run()
    late = session.fork(at=0)
    late.run()
    session.goto(1)
    session.run()
    assert [message.id for message in session.board["messages"]] == ids
    assert session.replay().ok
    session.close()
    opened = nb.open(tmp_path / "runs.db", "one", recipe=recipe)
    again = opened.fork(at=1)
    again.run()
    for run in (early, late, opened, again):
        assert [message.id for message in run.board["messages"]] == ids
        assert run.replay().ok
    assert nb.open(tmp_path / "trace.json").replay(recipe=recipe).ok
    assert replay_golden(recipe, golden).ok
    opened.reset()
    opened.run()
    assert not {message.id for message in opened.board["messages"][1:]} & {*ids}


@tool
def divide(a: int, b: int) -> int:
    """Divide two numbers."""
    return a // b


def report(state):
    return {"messages": [ToolMessage(f"failed: {state['error']}", tool_call_id="c", id="t")]}


@pytest.mark.parametrize("wraps", ["tools", "function", "config"])
@pytest.mark.parametrize("b", [2, 0])
def test_a_node_with_fallbacks_runs_as_in_langgraph(wraps, b):
    tools = ToolNode([divide], handle_tool_errors=False)

    def call(state):
        return tools.invoke(state)

    node = {"tools": tools, "function": RunnableLambda(call), "config": RunnableLambda(call).with_config(tags=["x"])}[
        wraps
    ].with_fallbacks([RunnableLambda(report)], exception_key="error")
    request = AIMessage("", tool_calls=[{"name": "divide", "args": {"a": 6, "b": b}, "id": "c"}], id="a")
    graph = chain(("ask", lambda state: {"messages": [request]}), ("tools", node), schema=MessagesState)
    theirs = graph.invoke({"messages": [HumanMessage("?", id="h")]})
    session = Session(load(graph), {"messages": [HumanMessage("?", id="h")]})
    session.run()
    assert session.status == "finished"
    texts = [message.content for message in session.board["messages"]]
    assert texts == [message.content for message in theirs["messages"]]
    assert texts[-1].startswith("failed: " if b == 0 else "3")
    assert session.replay().ok


class Proxy(Runnable):
    def invoke(self, value, config=None, **_words):
        return {"n": 7}

    def __getattr__(self, name):
        raise NameError(f"name 'Runtime' is not defined, for {name}")


def test_a_runnable_whose_attributes_fail_runs_as_in_langgraph():
    _, session = compare(chain(("a", Proxy()), ("b", says("b"))), {"xs": []})
    assert session.board["n"] == 7
    session.breakpoints.add(call="a")  # names of calls are looked up in the functions of all nodes
    assert session.replay().ok


def test_async_nodes_and_conditions():
    async def node(state):
        return {"xs": ["async"]}

    async def choose(state):
        return END if len(state["xs"]) > 2 else "a"

    graph = StateGraph(State)
    graph.add_node("a", node)
    graph.add_edge(START, "a")
    graph.add_conditional_edges("a", choose)
    session = Session(load(graph), {})
    session.run()
    assert session.board["xs"] == ["async"] * 3


def test_runnables_as_nodes():
    graph = chain(("a", RunnableLambda(lambda state: {"xs": ["one"]})),
                  ("b", RunnableLambda(len) | (lambda size: {"xs": [str(size)]})))  # fmt: skip
    compare(graph, {})


@tool
def double(n: int) -> dict:
    """Double a number; as a node, a tool is called with the keys of the state that it names."""
    return {"n": 2 * n, "xs": [str(n)]}


@tool
async def double_later(n: int) -> dict:
    """Double a number, awaited."""
    return {"n": 2 * n, "xs": [f"later {n}"]}


@pytest.mark.parametrize("node", [double, double_later])
def test_tools_as_nodes(node):
    is_async = node is double_later
    _, session = compare(chain(("a", node), ("b", node)), {"n": 2}, is_async=is_async)
    assert session.board["n"] == 8
    assert session.replay().ok


def test_config_context_store_and_writer_reach_the_nodes_and_streams_equal_those_of_langgraph():
    def node(state, config, runtime: Runtime[dict]):
        user = config["configurable"]["user"]
        known = runtime.store.get(("visits",), user)
        runtime.store.put(("visits",), user, {"count": known.value["count"] + 1 if known else 1})
        get_stream_writer()({"progress": 1})
        runtime.stream_writer("more")
        counts = [item.value["count"] for item in runtime.store.search(("visits",))]
        return {"xs": [user, runtime.context["model"], *counts]}

    def make():
        inner = chain(("deep", node))
        return chain(("a", node), ("inside", inner), ("b", node), store=InMemoryStore())

    config, context = {"configurable": {"user": "ada"}}, {"model": "m"}
    streamed = list(make().stream({}, config, context=context, stream_mode=["values", "custom"], subgraphs=True))
    theirs = {mode: [chunk for _, known, chunk in streamed if known == mode] for mode in ("values", "custom")}
    session = Session(load_graph(make(), config=config, context=context), {})
    session.run()
    assert dict(session.board) == theirs["values"][-1]
    assert [event.payload for event in session.events if event.type == "custom"] == theirs["custom"]
    assert len(theirs["custom"]) == 6


def test_the_number_of_supersteps_is_limited():
    graph = StateGraph(State)
    graph.add_node("a", says("a"))
    graph.add_edge(START, "a")
    graph.add_edge("a", "a")
    session = Session(load_graph(graph, config={"recursion_limit": 5}), {})
    session.run()
    assert (len(session.board["xs"]), session.status) == (5, "failed")
    assert "L533" in str(session.error)
    assert get_error_class(session) == "GraphRecursionError"


@pytest.mark.parametrize("sources", [["a", "b"], ["b", "a"], ["b", "c"], ["c", "b", "a"]], ids="".join)
def test_each_edge_of_a_join_is_followed_when_its_source_has_run(sources):
    graph = StateGraph(State)
    for name in "abcd":
        graph.add_node(name, says(name))
    graph.add_edge(START, "a").add_edge("a", "b").add_edge(START, "c").add_edge(sources, "d")
    session = Session(load_graph(graph.compile()), {})
    for source in sources:
        session.breakpoints.add(edge=(source, "d"))
    stops = []
    while session.run() and session.status == "paused":
        stops.append(session.trace.steps[-1].node_id)
    edges = session.trace.frames.edges
    in_order = [name for name in "acb" if name in sources]
    assert stops == edges[edges.target == "d"].source.tolist() == in_order


@pytest.mark.parametrize("limit", [2, 3, 4])
@pytest.mark.parametrize("entry", ["edge", "condition", "inside a subgraph"])
def test_a_run_that_ends_exactly_at_its_limit_fails_with_its_last_state(limit, entry):
    graph = StateGraph(State)
    graph.add_sequence([(name, says(name)) for name in "abc"])
    if entry == "condition":
        graph.add_conditional_edges(START, lambda state: "a", ["a"])
    else:
        graph.add_edge(START, "a")
    if entry == "inside a subgraph":
        outer = StateGraph(State)
        outer.add_node("inner", graph.compile())
        outer.add_edge(START, "inner")
        graph = outer
    theirs, session = compare(graph.compile(), {}, limit=limit)
    assert theirs.ended == ("finished" if limit == 4 else "GraphRecursionError")
    if entry != "inside a subgraph":
        assert len(session.board["xs"]) == min(3, limit)
    session.back()
    session.run()
    assert session.status == ("finished" if limit == 4 else "failed")


def test_a_fork_with_an_edit_of_a_reopened_run_continues_as_in_langgraph(tmp_path):
    import agentnb as nb

    graph = chain(("a", says("a")), ("b", says("b")), ("c", says("c")))
    session = Session(load(graph), {"n": 1}, store=tmp_path / "runs.db")
    session.step(2)
    session.close()
    opened = nb.open(tmp_path / "runs.db", recipe=load(graph))
    fork = opened.fork(at=1, edit={"xs": []})
    opened.run()
    fork.run()
    assert (opened.board["xs"], fork.board["xs"]) == (["a:0", "b:1", "c:2"], ["b:0", "c:1"])


def test_a_run_reopened_inside_a_subgraph_records_what_its_replay_does(tmp_path):
    inside = StateGraph(MessagesState)
    inside.add_node("say", lambda state: {"messages": [AIMessage("said")]})
    inside.add_conditional_edges(START, lambda state: "say", ["say"])
    graph = chain(
        ("sub", inside.compile()), ("end", lambda state: {"messages": [AIMessage("end")]}), schema=MessagesState
    )
    url = str(tmp_path / "runs.db")
    session = Session(load(graph), {"messages": [HumanMessage("go")]}, store=url)
    session.step(2)
    session.close()
    opened = nb.open(url, recipe=load(graph))
    opened.run()
    assert [message.content for message in opened.board["messages"]] == ["go", "said", "end"]
    report = opened.replay()
    assert report.ok, report
    opened.close()


def _inside(**words):
    return chain(("in1", says("in1")), ("in2", says("in2")), **words)


@pytest.mark.parametrize(
    "make",
    [
        lambda **words: chain(*((name, says(name)) for name in "abc"), interrupt_before=["b"], **words),
        lambda **words: chain(*((name, says(name)) for name in "abc"), interrupt_after=["b"], **words),
        lambda **words: chain(
            *((name, says(name)) for name in "abc"), interrupt_before=["b", "c"], interrupt_after=["a"], **words
        ),
        lambda **words: chain(*((name, says(name)) for name in "abc"), interrupt_before="*", **words),
        lambda **words: chain(*((name, says(name)) for name in "abc"), interrupt_after="*", **words),
        lambda **words: chain(("a", says("a")), ("b", _inside()), interrupt_before=["b"], **words),
        lambda **words: chain(("a", says("a")), ("b", _inside(interrupt_before=["in2"])), **words),
        lambda **words: chain(("a", says("a")), ("b", _inside(interrupt_after=["in1"])), ("c", says("c")), **words),
    ],
    ids=["before", "after", "both", "before all", "after all", "before a subgraph", "before inside", "after inside"],
)
def test_a_graph_compiled_with_interrupts_stops_where_langgraph_does(make):
    graph, settings = make(checkpointer=InMemorySaver()), {"configurable": {"thread_id": "1"}}
    theirs: list[Any] = []
    inputs: Any = {"n": 1}
    while inputs is not None or graph.get_state(settings).next:
        graph.invoke(inputs, settings)
        snapshot = graph.get_state(settings, subgraphs=True)
        inner = snapshot.tasks[0].state if snapshot.tasks else None
        theirs.append(inner.values if inner is not None and inner.values else snapshot.values)
        inputs = None
    session, ours = Session(load(make()), {"n": 1}), []
    while session.status != "finished":
        session.run()
        ours.append(dict(session.board))
    assert ours == theirs


def test_the_outputs_of_a_step_contain_everything_that_it_appended():
    session = Session(load(chain(("a", lambda state: {"xs": ["one", "two"]}), ("b", says("b")))), {})
    session.run()
    assert [step.outputs for step in session.trace.steps] == [{"xs": ["one", "two"]}, {"xs": "b:2"}]
    assert list(session.trace.frames.steps.outputs) == [{"xs": ["one", "two"]}, {"xs": "b:2"}]


def overwriting(*parts: tuple[str, Any]):
    state = TypedDict("State", {"log": Annotated[list, operator.add]})  # noqa: UP013
    graph = StateGraph(state)
    graph.add_node("start", lambda state: {"log": ["start"]})
    graph.add_edge(START, "start")
    for name, value in parts:
        graph.add_node(name, lambda state, value=value: {"log": value})
        graph.add_edge("start", name)
    return graph.compile()


@pytest.mark.parametrize(
    "parts",
    [
        [("a", Overwrite(["a"])), ("b", ["b"])],
        [("a", ["a"]), ("b", Overwrite(["b"])), ("c", ["c"])],
        [("a", ["a"]), ("b", Overwrite(["start", "a", "b"])), ("c", ["c"])],
        [("a", Overwrite(["a"])), ("b", Overwrite(["b"]))],
        [("a", {"__overwrite__": ["a"]}), ("b", ["b"])],
        [("a", ["a"]), ("b", {"__overwrite__": ["b"]})],
        [("a", {"type": "__overwrite__", "value": ["a"]}), ("b", ["b"])],
    ],
)
def test_an_overwrite_drops_what_its_siblings_add(parts):
    compare(overwriting(*parts), {"log": []})


def test_keys_outside_of_the_schema_reach_conditions_from_start():
    state = TypedDict("State", {"n": int})  # noqa: UP013
    graph = StateGraph(state)
    graph.add_node("a", lambda state: {"n": 1})
    graph.add_node("b", lambda state: {"n": 2})
    graph.add_conditional_edges(START, lambda given: given["which"], ["a", "b"])
    with pytest.warns(UserWarning, match="R220"):
        theirs, _ = compare(graph.compile(), {"n": 0, "which": "b"})
    assert theirs.last == {"n": 2}


class Flaky:
    """Fails so often, and then answers with the number of its attempt."""

    def __init__(self, fails: int, error: type[Exception] = ConnectionError) -> None:
        self.left, self.error = fails, error

    def __call__(self, state: State, runtime: Runtime) -> dict[str, Any]:
        if self.left:
            self.left -= 1
            state["xs"].append("lost")
            raise self.error("not yet")
        return {"n": runtime.execution_info.node_attempt, "xs": [len(state["xs"])]}

    async def later(self, state: State, runtime: Runtime) -> dict[str, Any]:
        return self(state, runtime)


async def ended_async(graph) -> Course:
    """Run a graph with async nodes; return how it ended."""
    try:
        return Course(last=await graph.ainvoke({"xs": []}))
    except Exception as error:  # noqa: BLE001  (the course of a run that fails ends there)
        return Course(ended=type(error).__name__)


QUICK = RetryPolicy(initial_interval=0.001, jitter=False, max_attempts=3)


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("fails", [0, 1, 2, 3])
@pytest.mark.parametrize(
    "policies",
    [QUICK, QUICK._replace(retry_on=ValueError), [QUICK._replace(retry_on=ValueError), QUICK._replace(max_attempts=2)]],
)
def test_a_retry_policy_runs_a_node_again(policies, fails, is_async):
    def made():
        flaky = Flaky(fails)
        graph = StateGraph(State)
        graph.add_node("a", flaky.later if is_async else flaky, retry_policy=policies)
        graph.add_edge(START, "a")
        return graph.compile()

    known = asyncio.run(ended_async(made())) if is_async else in_langgraph(made(), {"xs": []})
    session = Session(load(made()), {"xs": []})
    ours = in_agentnb(session)
    assert (ours.ended == "finished") == (known.ended == "finished")
    if known.ended == "finished":
        assert session.board["n"] == known.last["n"] == fails + 1
        assert [event.payload["attempt"] for event in session.events] == list(range(1, fails + 1))


def test_streamed_tokens_equal_those_of_langgraph():
    def make():
        model = GenericFakeChatModel(messages=iter([AIMessage("one two three")]))
        return chain(("say", lambda state: {"xs": [model.invoke("?").content]}))

    session, received = Session(load(make())), []
    session.subscribe(lambda token: received.append(token.text), to="token")
    session.run()
    assert session.board["xs"] == ["one two three"]
    assert received == [chunk.content for chunk, _ in make().stream({}, stream_mode="messages") if chunk.content]
    assert len(received) > 1


class AwaitedStream(BaseChatModel):
    """A model that streams its answer only if it is awaited."""

    @property
    def _llm_type(self):
        return "fake"

    def _generate(self, messages, stop=None, run_manager=None, **_):
        return ChatResult(generations=[ChatGeneration(message=AIMessage("as a whole"))])

    async def _astream(self, messages, stop=None, run_manager=None, **_):
        for text in ("in ", "pieces"):
            yield ChatGenerationChunk(message=AIMessageChunk(text))


@pytest.mark.parametrize("is_async", [False, True])
def test_a_model_that_streams_only_if_awaited_does_so_as_in_langgraph(is_async, caplog):
    model = AwaitedStream()

    def say(state):
        return {"xs": [chunk.content for chunk in model.stream("?")]}

    async def say_later(state):
        return {"xs": [chunk.content async for chunk in model.astream("?")]}

    theirs, session = compare(chain(("say", say_later if is_async else say)), {}, is_async=is_async)
    assert [text for text in theirs.last["xs"] if text] == (["in ", "pieces"] if is_async else ["as a whole"])
    assert session.replay().ok
    assert not caplog.records  # LangChain logs what a callback raises, here without a listener to the tokens


@pytest.mark.parametrize("is_async", [False, True])
def test_a_node_that_streams_a_model_receives_the_same_chunks_as_in_langgraph_and_in_a_replay(is_async):
    class Streamed(TypedDict, total=False):
        answer: Any
        pieces: list

    def say(state):
        chunks = list(model.stream("?"))
        return {"answer": functools.reduce(operator.add, chunks), "pieces": [chunk.content for chunk in chunks]}

    async def say_later(state):
        chunks = [chunk async for chunk in model.astream("?")]
        return {"answer": functools.reduce(operator.add, chunks), "pieces": [chunk.content for chunk in chunks]}

    def shape(state):
        return {key: value.model_dump(exclude={"id"}) if key == "answer" else value for key, value in state.items()}

    answers = [AIMessage("one two three", response_metadata={"model": "fake"})] * 2
    model = GenericFakeChatModel(messages=iter(answers))
    graph = chain(("say", say_later if is_async else say), schema=Streamed)
    _, session = compare(graph, {}, is_async=is_async, shape=shape)
    assert session.board["pieces"] == ["one", " ", "two", " ", "three"]
    assert type(session.board["answer"]) is AIMessageChunk
    replay = session.replay()
    assert replay.ok
    session.back()
    session.breakpoints.add(call="llm")
    session.run()
    session.change(session.pending[0].id, answer="four five")
    session.run()
    assert session.board["pieces"] == ["four five"]


@pytest.mark.parametrize("is_async", [False, True])
def test_a_command_leads_out_of_a_graph_that_a_function_invokes(is_async):
    jump = StateGraph(State)
    jump.add_node("jump", lambda state: Command(graph=Command.PARENT, goto="far", update={"xs": ["jumped"]}))
    jump.add_edge(START, "jump")
    jumping = jump.compile()

    def at_once(state):
        return jumping.invoke(state)

    async def later(state):
        return await jumping.ainvoke(state)

    graph = StateGraph(State)
    graph.add_node("near", later if is_async else at_once)
    graph.add_node("far", says("far"))
    graph.add_edge(START, "near")
    session = Session(load(graph), {"xs": []})
    session.run()
    assert session.error is None, session.error
    assert session.board["xs"] == ["jumped", "far:1"]
    if not is_async:
        assert graph.compile().invoke({"xs": []})["xs"] == session.board["xs"]


@dataclass
class Person:
    name: str


def test_the_context_becomes_an_object_of_its_schema():
    graph = StateGraph(State, context_schema=Person)
    graph.add_node("a", lambda state, runtime: {"xs": [runtime.context.name]})
    graph.add_edge(START, "a")
    session = Session(load_graph(graph, context={"name": "Ada"}), {"xs": []})
    session.run()
    assert session.board["xs"] == graph.compile().invoke({"xs": []}, context={"name": "Ada"})["xs"] == ["Ada"]
    with pytest.raises(RecipeError, match="L543"):
        load_graph(graph, context={"nom": "Ada"})


class Narrow(TypedDict, total=False):
    xs: Annotated[list, operator.add]


def test_keys_outside_of_the_input_schema_are_not_part_of_the_first_state():
    graph = StateGraph(State, input_schema=Narrow)
    graph.add_node("a", lambda state: {"xs": [sorted(state)]})
    graph.add_edge(START, "a")
    _, session = compare(graph.compile(), {"xs": [], "n": 7})
    assert session.board["xs"] == [["xs"]]


def test_writes_that_a_function_makes_itself_are_recorded():
    def speaks(state):
        push_message(AIMessage("first", id="1"))
        return {"messages": [AIMessage(f"{len(state['messages'])}", id="2")]}

    graph = chain(("a", speaks), schema=MessagesState)
    _, session = compare(graph, {"messages": [HumanMessage("hi", id="0")]})
    assert [message.content for message in session.board["messages"]] == ["hi", "first", "1"]


def test_messages_in_a_delta_channel_get_ids():
    graph = chain(
        ("a", lambda state: {"messages": [AIMessage("new"), {"role": "user", "content": "again"}]}), schema=Delta
    )
    session = Session(load(graph), {"messages": [("user", "hi")]})
    session.run()
    known = graph.invoke({"messages": [("user", "hi")]})["messages"]
    messages = session.board["messages"]
    assert [(type(message), message.content) for message in messages] == [
        (type(message), message.content) for message in known
    ]
    assert len({message.id for message in messages}) == 3
    assert session.replay().ok


def test_the_config_of_a_node_equals_that_of_langgraph():
    seen: list[Any] = []

    def looks(state, config: RunnableConfig, runtime: Runtime):
        metadata = {
            name: value
            for name, value in config["metadata"].items()
            if name not in {"langgraph_checkpoint_ns", "langgraph_triggers", "langgraph_path", "checkpoint_ns"}
        }
        seen.append(
            (
                metadata,
                config["tags"],
                config["configurable"]["thread_id"],
                runtime.execution_info.thread_id,
                runtime.control.drain_requested,
            )
        )
        return {"n": 1}

    inner = StateGraph(State)
    inner.add_node("looks", looks, metadata={"of": "the node"})
    inner.add_edge(START, "looks")
    graph = StateGraph(State)
    graph.add_node("a", looks)
    graph.add_node("b", inner.compile().with_config(tags=["inner"], metadata={"of": "the graph", "deep": 1}))
    graph.add_conditional_edges(START, lambda state: "a", ["a"])
    graph.add_edge("a", "b")
    compiled = graph.compile().with_config(tags=["outer"], configurable={"color": "red"})
    config = {"configurable": {"thread_id": "t"}, "metadata": {"mine": 2}}
    compiled.invoke({"n": 0}, config)
    known = seen[:]
    seen.clear()
    Session(load_graph(compiled, config=config), {"n": 0}).run()
    assert seen == known


@pytest.mark.parametrize("config", [{}, {"tags": ["mine"], "run_name": "the run", "max_concurrency": 2}])
def test_the_config_of_a_node_has_the_keys_that_langgraph_sets(config):
    seen = []

    def looks(state, config: RunnableConfig):
        seen.append(sorted(config.keys() - {"recursion_limit"}))

    graph = chain(("looks", looks))
    graph.invoke({"n": 0}, config)
    Session(load_graph(graph, config=config), {"n": 0}).run()
    assert seen[0] == seen[1]


def test_a_node_cannot_drain_the_run():
    session = Session(load(chain(("a", _drains))), {})
    session.run()
    assert "L531" in str(session.error)
    assert "request_drain" in str(session.error)


def _drains(state, runtime: Runtime):
    runtime.control.request_drain()


def test_a_run_continues_from_the_state_of_an_earlier_one():
    graph = chain(("a", says("a")), ("b", lambda state: {"n": state.get("n", 0) + 1}), checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "t"}}
    graph.invoke({"xs": ["one"]}, config)
    values = graph.get_state(config).values
    session = Session(load_graph(graph, state=values), {"xs": ["two"]})
    session.run()
    assert dict(session.board) == graph.invoke({"xs": ["two"]}, config)
    assert session.board["n"] == 2
    second = Session(load_graph(graph, state=session.board), {"xs": ["three"]})
    second.run()
    assert dict(second.board) == graph.invoke({"xs": ["three"]}, config)
    assert values["xs"] == ["one", "a:1"]


@pytest.mark.parametrize("saver", [None, InMemorySaver])
def test_a_subgraph_with_its_own_checkpointer_continues_where_it_ended(saver):
    def counts(state):
        return {"xs": ["x"], "n": len(state.get("xs", []))}

    inner = StateGraph(State, input_schema=Narrow, output_schema=Count)
    inner.add_node("counts", counts)
    inner.add_edge(START, "counts")
    graph = StateGraph(Count)
    graph.add_node("inner", inner.compile(checkpointer=True))
    graph.add_node("next", lambda state: {"rounds": 1})
    graph.add_edge(START, "inner")
    graph.add_edge("inner", "next")
    graph.add_conditional_edges("next", lambda state: END if state["rounds"] == 3 else "inner", ["inner", END])
    compiled = graph.compile(checkpointer=saver and saver())
    session = Session(load(compiled), {"rounds": 0})
    session.run()
    known = compiled.invoke({"rounds": 0}, {"configurable": {"thread_id": "t"}})
    assert dict(session.board) == known == {"rounds": 3, "n": 2 if saver else 0}
    session.back(4)
    session.run()
    assert dict(session.board) == known
    assert session.replay().ok


class Count(TypedDict, total=False):
    n: int
    rounds: Annotated[int, operator.add]
