from __future__ import annotations

import asyncio
import functools

import pytest

from agentnb import Append
from agentnb.errors import RecipeError
from tests.session.small_sessions import graph, session


def run(function, board=None, inputs=None, **options):
    built_graph = graph("node", node=function)
    if inputs is not None:
        built_graph.nodes["node"]["inputs"] = inputs
    session_ = session(built_graph, board, **options)
    session_.step()
    return session_


def test_with_inputs_it_is_called_by_keyword():
    assert run(lambda *, a, b=2: {"sum": a + b}, {"x": 1}, {"a": "x"}).board["sum"] == 3


def test_without_inputs_it_may_receive_the_board():
    assert run(lambda board: {"keys": sorted(board)}, {"x": 1}).board["keys"] == ["x"]
    assert run(lambda: {"alone": True}).board["alone"] is True


def test_the_board_argument_is_read_only():
    result = run(lambda board: board.update(x=2), {"x": 1})
    assert (result.status, result.board["x"]) == ("failed", 1)
    assert "AttributeError" in result.error.what


def test_a_mapping_is_merged_none_writes_nothing_and_other_values_are_written_under_the_node_id():
    assert run(lambda: {"a": 1}).trace.steps[0].outputs == {"a": 1}
    assert run(lambda: None).trace.steps[0].outputs == {}
    assert run(lambda: 5).trace.steps[0].outputs == {"node": 5}


def test_append_adds_one_item_and_creates_a_missing_list():
    assert run(lambda: {"log": Append("line")}, {"log": ["first"]}).board["log"] == ["first", "line"]
    assert run(lambda: {"log": Append("line")}).board["log"] == ["line"]


def test_a_change_in_place_is_a_separate_write():
    result = run(lambda board: board["items"].append(2), {"items": [1]})
    (write,) = result.trace.steps[0].writes
    assert (write.key, write.old, write.new, write.in_place) == ("items", [1], [1, 2], True)
    assert result.back().board["items"] == [1]


def test_a_name_is_looked_up_in_the_tools():
    assert run("look", tools={"look": lambda board: {"found": 1}}).board["found"] == 1
    with pytest.raises(RecipeError, match="R203"):
        run("look")


def test_without_a_function_the_node_id_is_looked_up():
    built_graph = graph("node")
    del built_graph.nodes["node"]["function"]
    session_ = session(built_graph, tools={"node": lambda: "by name"})
    session_.step()
    assert session_.board["node"] == "by name"


async def later(board):
    await asyncio.sleep(0)
    return {"later": board.get("x", 0) + 1}


def test_an_async_function_runs_with_and_without_an_event_loop():
    assert run(later, {"x": 1}).board["later"] == 2

    async def main():
        return run(later, {"x": 1}).board["later"]

    assert asyncio.run(main()) == 2


def test_a_function_that_returns_an_awaitable_is_awaited():
    assert run(lambda board: later({"x": board["x"]}), {"x": 1}).board["later"] == 2
    assert run(functools.partial(later), {"x": 1}).board["later"] == 2


def test_a_callable_object_is_accepted():
    class Callable:
        def __call__(self, board):
            return {"called": True}

    assert run(Callable()).board["called"] is True


def test_a_result_that_the_board_rejects_is_a_failure():
    result = run(lambda: {5: "five"})
    assert (result.status, result.error.code, dict(result.board)) == ("failed", "B105", {})


def test_a_function_that_fails_wrote_nothing():
    def half(board):
        board["items"].append(2)
        raise ValueError("half")

    result = run(half, {"items": [1]})
    assert (result.status, result.board["items"], result.trace.steps[0].writes) == ("failed", [1], ())
    assert (result.trace.steps[0].status, result.trace.steps[0].type) == ("error", "error")
