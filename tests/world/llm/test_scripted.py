from __future__ import annotations

import asyncio

import networkx as nx
import pytest

from agentnb.errors import ExecutionError
from agentnb.recipe.model import Node
from agentnb.session import Session
from agentnb.world.llm.base import LLMRequest, LLMResponse
from agentnb.world.llm.scripted import ScriptedClient
from tests.kinds.test_parallel import branching
from tests.session.small_sessions import session


def ask(script, number=0, of_node=0, node="n"):
    return ScriptedClient(script).complete(LLMRequest((), node=node, number=number, of_node=of_node))


def test_a_list_answers_in_the_order_of_calls():
    assert ask(["a", "b"], number=1, of_node=0).content == "b"


def test_a_mapping_answers_by_node():
    script = {"n": ["a", "b"], "other": "always"}
    assert ask(script, number=9, of_node=1).content == "b"
    assert ask(script, node="other").content == "always"


@pytest.mark.parametrize("script", [[], {"other": ["x"]}, {}])
def test_an_exhausted_script_is_reported(script):
    with pytest.raises(ExecutionError, match="X304"):
        ask(script)


@pytest.mark.parametrize("script", [["a", {"b": 1}], {"n": ["a", {"b": 1}]}])
def test_a_text_is_reported_as_one_piece(script):
    chunks = []
    for number in (0, 1):
        ScriptedClient(script).complete(LLMRequest((), node="n", number=number, of_node=number, on_token=chunks.append))
    assert chunks == ["a"]


def test_a_function_declares_its_parameters():
    chunks = []

    def answer(request):
        request.on_token("a")
        request.on_token("b")
        return "ab"

    assert ScriptedClient(answer).complete(LLMRequest((), on_token=chunks.append)).content == "ab"
    assert chunks == ["a", "b"]


def test_a_function_answers_with_text_a_mapping_or_a_response():
    assert ask(lambda request: request.node).content == "n"
    assert ask(lambda request: {"a": 1}).content == {"a": 1}
    response = LLMResponse("text", model="own")
    assert ask(lambda request: response) is response


def test_an_async_function_is_awaited():
    async def answer(request):
        await asyncio.sleep(0)
        return "later"

    assert asyncio.run(ask(answer)).content == "later"


def talk():
    graph = nx.DiGraph()
    graph.add_node("one", kind="agent", prompt="Be short.", inputs={"question": "q"}, output="a1")
    graph.add_node("two", kind="agent", inputs={"said": "a1"}, output="a2")
    graph.add_edge("one", "two")
    return graph


@pytest.mark.parametrize(
    "llm", [["x", "y"], {"one": ["x"], "two": "y"}, lambda request: {"one": "x"}.get(request.node, "y")]
)
def test_a_session_answers_from_its_script_and_again_after_going_back(llm):
    run = session(talk(), {"q": "why"}, llm=llm)
    for k in (0, 1, 0):
        run.goto(k).run()
        assert (run.status, run.board["a1"], run.board["a2"]) == ("finished", "x", "y")


def test_questions_are_recorded_as_calls():
    run = session(talk(), {"q": {"deep": [1]}}, llm=["x", {"a2": "a mapping is merged"}])
    run.run()
    first = run.trace.frames.calls.iloc[0]
    assert first["arguments"]["messages"] == [
        {"role": "system", "content": "Be short."},
        {"role": "user", "content": 'question: {"deep": [1]}'},
    ]
    assert (first["kind"], first["result"], run.board["a2"]) == ("llm", "x", "a mapping is merged")


def test_an_exhausted_script_fails_the_node_and_the_run_can_go_back():
    run = session(talk(), {"q": "why"}, llm=["x"])
    run.run()
    assert (run.status, run.current, run.error.code) == ("failed", "two", "X304")
    assert run.back().status == "paused"


def test_an_async_model_is_awaited_whether_or_not_a_loop_runs():
    async def answer(request):
        await asyncio.sleep(0)
        return request.node

    run = session(talk(), {"q": "why"}, llm=answer)
    run.run()
    assert (run.board["a1"], run.board["a2"]) == ("one", "two")

    async def main():
        inner = session(talk(), {"q": "why"}, llm=answer)
        inner.step()
        await inner.astep()
        return dict(inner.board)

    assert asyncio.run(main())["a2"] == "two"


def branches(number):
    return branching(*([Node(f"b{each}", "agent", params={"output": f"b{each}"})] for each in range(number)))


@pytest.mark.parametrize("way", ["run", "step", "live"])
def test_concurrent_branches_take_the_answers_of_a_list_in_turn(way):
    run = Session(branches(4), llm=["w", "x", "y", "z"])
    if way == "live":

        async def main():
            run.start()
            await run.wait()

        asyncio.run(main())
    while way == "step" and run.step():
        pass
    if way == "run":
        run.run()
    assert run.status == "finished"
    assert [run.board[f"b{each}"] for each in range(4)] == ["w", "x", "y", "z"]


def test_concurrent_calls_have_different_numbers():
    numbers = []

    async def answer(request):
        numbers.append((request.node, request.number, request.of_node))
        await asyncio.sleep(0.001 * (3 - len(numbers)))  # who asks first is answered last
        return "x"

    Session(branches(3), llm=answer).run()
    assert sorted(numbers) == [("b0", 0, 0), ("b1", 1, 0), ("b2", 2, 0)]  # the calls themselves begin in threads


def test_scripted_people_answer_in_turn_too():
    nodes = [[Node(f"h{each}", "human", params={"prompt": "?", "output": f"h{each}"})] for each in range(3)]
    run = Session(branching(*nodes), answers=["a", "b", "c"])
    run.run()
    assert [run.board[f"h{each}"] for each in range(3)] == ["a", "b", "c"]
